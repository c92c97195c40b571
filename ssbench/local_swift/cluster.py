"""The embedded Swift: its server processes, and the context manager that starts and stops them all."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import random
import re
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile, zip_longest
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from ssbench.base import interruption, own_processes
from ssbench.base.errors import ClusterError, UsageError
from ssbench.base.text_values import format_duration
from ssbench.fleet.addresses import is_loopback
from ssbench.local_swift.configuration import (
    DELAY_POINTS,
    LISTINGS_SERVER,
    Layout,
    Policy,
    SlowTarget,
    SwiftConfiguration,
    make_tempauth_options,
    set_mounted,
    write_slow_targets,
)
from ssbench.local_swift.releases import SwiftInstallation, find_installation
from ssbench.local_swift.server_settings import (
    SectionOptions,
    ServerSetting,
    find_unknown_keys,
    make_filters,
    refuse_missing_filters,
)

if TYPE_CHECKING:
    from ssbench.store.stores import Credentials

#: Seconds that a server may take until it listens; 2 are usual on an idle machine.
START_TIMEOUT_SECONDS = 60.0
_TAIL_LINES = 15

#: A line of a traceback: the file and the number.
_FRAME_PATTERN = re.compile(r'  File "(.+)", line (\d+)')

#: Seconds between two looks at whether to wait on.
_TICK_SECONDS = 0.1


#: What each of its processes runs.
_SERVER_MODULE = "ssbench.local_swift._serve"


class PortTakenError(Exception):
    """Another program took the port between its choice and its use."""


#: The addresses that this name may stand for.
_LOCALHOST = ("127.0.0.1", "::1")


def _find_last_exception(lines: Sequence[str]) -> str:
    """Return what ended a program that wrote these lines, in one line; empty where no traceback ends them."""
    raised = [*takewhile(lambda line: not line.startswith(" "), reversed(lines))][::-1]
    frame = _FRAME_PATTERN.match(next((line for line in reversed(lines) if _FRAME_PATTERN.match(line)), ""))
    if frame is None or not raised or len(raised) > _TAIL_LINES or len(raised) == len(lines):
        return ""
    return f"{' '.join(raised)} ({'/'.join(Path(frame[1]).parts[-2:])}, line {frame[2]})"


class ServerProcess:
    """A child process that serves some of Swift's apps, and can be made to fail.

    ``name`` names the log file; messages have it and ``swift``, what the whole Swift is called. ``apps`` are
    the configuration files it serves. ``python`` is what runs it, None: the Python of this process; another
    one has its modules in :func:`write_program`.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        apps: list[str],
        python: str | None = None,
        *,
        swift: str = "the local Swift",
    ) -> None:
        self.name = name
        self._title = f"the {name} server of {swift}"
        self.log = directory / "log" / f"{name}.log"
        self._directory = directory
        self._apps = apps
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id, None when it does not run."""
        with interruption.hold_signals():
            return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start it if it does not run, and wait until it listens; see :meth:`launch`, :meth:`wait_ready`."""
        with interruption.hold_signals():
            if self.pid is None:
                self.launch()
                self.wait_ready()

    def launch(self) -> None:
        """Start it, and do not wait.

        It ends when the calling *thread* ends: that is what Linux ties PR_SET_PDEATHSIG to.
        """
        self.log.parent.mkdir(exist_ok=True)
        environment = {
            **own_processes.make_child_environment(),
            **(_make_program_environment(self._directory) if self._python else {}),
            "PYTHONUNBUFFERED": "1",
            # All its addresses are numbers; importing what resolves names takes a quarter of the start.
            "EVENTLET_NO_GREENDNS": "yes",
        }
        program = own_processes.make_python_command(_SERVER_MODULE, "-W", "ignore")
        if self._python:
            program = [self._python, "-W", "ignore", "-m", _SERVER_MODULE]
        with interruption.hold_signals(), self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - its own program and arguments
                [*program, str(self._directory / "etc"), str(os.getpid()), *self._apps],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._directory,
                env=environment,
                start_new_session=True,
            )

    def wait_ready(self, timeout: float = START_TIMEOUT_SECONDS) -> None:
        """Wait until it listens.

        Raises PortTakenError, ClusterError with the tail of its log when it ended or took longer than
        ``timeout`` seconds, and KeyboardInterrupt.
        """
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("wait_ready() without launch()")
        pipe = self._process.stdout
        deadline = time.monotonic() + timeout
        said = b""
        with interruption.hold_signals(), selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not said.endswith(b"\n"):
                interruption.raise_if_interrupted()
                left = deadline - time.monotonic()
                if not selector.select(max(0.0, min(_TICK_SECONDS, left))):
                    if left > 0:
                        continue
                    self.kill()
                    raise ClusterError(
                        f"{self._title} was not ready in {format_duration(timeout)}{self.tail()}"
                    )
                block = os.read(pipe.fileno(), 4096)
                if not block:
                    break
                said += block
        if said != b"ready\n":
            self.kill()
            if said.startswith(b"port "):
                raise PortTakenError(said.decode().strip())
            raise ClusterError(f"{self._title} did not start{self.tail()}")

    def tail(self) -> str:
        """Return the last lines of its log, of a traceback what was raised, as the end of an error's text."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        if raised := _find_last_exception(lines):
            return f": {raised}"
        lines = lines[-_TAIL_LINES:]
        return "; its log ends:\n" + "\n".join(f"    {line}" for line in lines) if lines else ""

    def kill(self) -> None:
        """End it at once, running or stopped; its port then refuses connections."""
        if self._process is None:
            return
        with interruption.hold_signals():
            self._process.kill()
            self._process.wait()
            if self._process.stdout:
                self._process.stdout.close()
            self._process = None

    def restart(self) -> None:
        """Kill it and start it again, on the same port."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """Send SIGSTOP: it accepts connections and answers none."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        with interruption.hold_signals():
            if self._process:
                self._process.send_signal(number)


#: What servers of another Python import of this package: it stands alone in a package of the same name.
_PROGRAM_FOLDER = "program"
_PROGRAM_MODULES = ("_serve.py", "_cache.py")


def write_program(directory: Path) -> None:
    """Write what servers of another Python import; raises OSError."""
    package = directory / _PROGRAM_FOLDER / "ssbench"
    module = package / "local_swift"
    module.mkdir(parents=True, exist_ok=True)
    for folder in (package, module):
        (folder / "__init__.py").touch()
    for name in _PROGRAM_MODULES:
        (module / name).write_bytes(Path(__file__).with_name(name).read_bytes())


def _make_program_environment(directory: Path) -> dict[str, str]:
    """Return the variables by which another Python finds these modules, and those of the user's filters."""
    search = [str(directory / _PROGRAM_FOLDER), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    return {"PYTHONPATH": os.pathsep.join(search), "PYTHONDONTWRITEBYTECODE": "1"}


def find_server_processes(urls: Iterable[str], proc: Path = Path("/proc")) -> set[int]:
    """Return the processes of the embedded Swifts that serve some URLs, whoever started them here."""
    return {*find_server_kinds(urls, proc)}


def find_server_kinds(urls: Iterable[str], proc: Path = Path("/proc")) -> dict[int, str]:
    """Return the same, each with what it serves: ``proxy``, ``listings`` or ``object``.

    The kernel says who listens at a URL; the other servers have the same folder and the same parent.
    """
    from ssbench.base import host  # noqa: PLC0415 - the help of the sub-command does without

    sockets = set()
    for url in urls:
        with suppress(ValueError):  # a port that is no number
            parts = urlsplit(url)
            for address in _LOCALHOST if parts.hostname == "localhost" else (parts.hostname or "",):
                sockets |= host.find_listening_sockets(address, parts.port or 80, proc)
    if not sockets:
        return {}
    swifts: dict[int, tuple[bytes, ...]] = {}
    kinds = {}
    for folder in host.list_process_folders(proc):
        with suppress(OSError, ValueError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            place = words.index(_SERVER_MODULE.encode()) + 1
            swifts[int(folder.name)] = tuple(words[place : place + 2])
            app = b"".join(words[place + 2 : place + 3]).decode(errors="replace").partition("-")[0]
            kinds[int(folder.name)] = app if app in {"proxy", "object"} else LISTINGS_SERVER
    found = {swift for pid, swift in swifts.items() if host.has_socket(pid, sockets, proc)}
    return {pid: kinds[pid] for pid, swift in swifts.items() if swift in found}


# -- The whole Swift -------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: Below Linux's range of ephemeral ports, so that no outgoing connection sits on one.
_PORT_RANGE = range(20_000, 32_768)
_MAX_ATTEMPTS = 5

_IN_MEMORY_HINT = "not where files take no user attributes, because objects are kept in memory there"

#: What is wrong with a folder, and not with the program or the memory.
_FOLDER_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO)

#: The removal of a folder needs no word for so long; ten thousand objects take half a minute.
_QUIET_REMOVAL_SECONDS = 3.0

#: Waits for a word or for the end of its input, which is the end of our process, and removes a folder.
#: In the second case the servers are dying at the same moment and may still write.
_REMOVE_SCRIPT = (
    'trap "" INT TERM HUP; read -r word || sleep 1; rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }'
)


class LocalSwift:
    """A Swift of its own in child processes, for as long as the context lasts.

    ``directory`` keeps its data and is left in place; without one a temporary folder is made, and
    removed at the end, also when this process is killed. ``port`` is the proxy's (default: any free
    one, the first one's of several). ``policies`` are storage policies, the first one the default: a
    name, or ``NAME:ec:DATA+PARITY`` for erasure coding. ``layout`` says how many servers, devices and
    replicas there are. ``token_life`` is in seconds. Its servers send statsd lines to ``statsd_port`` of this
    host, each under the name of its process.

    ``swift_settings`` (``FILE:SECTION:KEY=VALUE``) and ``swift_filters`` (names) are what the option
    ``--swift-config`` takes (filters with a plus sign). ``release`` is a version of PyPI, which is installed
    into the user's cache where it is not there yet, or the path of a Python with Swift or
    of a checkout; empty: the Swift that is installed here. ``title`` is what messages call it.

    For tests, in paste's terms: ``filters`` are sections by name, put in front of the
    authentication; ``authentication`` replaces tempauth's; ``proxy_options`` and ``object_options``
    go into the apps' sections. Modules of filters are found by way of ``PYTHONPATH``.

    The servers are :attr:`proxies`, :attr:`listings` (accounts and containers) and
    :attr:`object_servers`; each can be killed, restarted, stopped and resumed by itself. A restart of
    the only proxy makes every token invalid; several proxies share their tokens. :meth:`slow`,
    :meth:`fail` and :meth:`repair` work before it starts and while it runs.

    Raises UsageError for settings and filters that do not fit. Entering raises UsageError (Swift is not
    installed, cannot be, or lacks a filter; the directory is unusable, in use or of another layout, the port
    is taken, too few devices) and ClusterError (a server did not start; with the tail of its log).
    The servers end with the thread that enters, so enter in one that lasts.
    """

    user = "test:tester"
    key = "testing"
    #: A reseller admin, who may use every account.
    admin = "admin:admin"
    admin_key = "admin"

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        bind_ip: str = "127.0.0.1",
        port: int | None = None,
        policies: Sequence[str] = ("gold", "silver"),
        layout: Layout | None = None,
        token_life: int = 86400,
        statsd_port: int | None = None,
        filters: Mapping[str, SectionOptions] | None = None,
        authentication: Mapping[str, SectionOptions] | None = None,
        proxy_options: SectionOptions | None = None,
        object_options: SectionOptions | None = None,
        swift_settings: Sequence[str] = (),
        swift_filters: Sequence[str] = (),
        release: str = "",
        title: str = "the local Swift",
    ) -> None:
        self._policies = [Policy.parse(policy) for policy in policies]
        self.layout = (layout or Layout()).resolved(self._policies)
        self.bind_ip = bind_ip
        #: Only proxies ask for a token, so that no other host is to reach the others.
        self._storage_ip = bind_ip if is_loopback(bind_ip) else "::1" if ":" in bind_ip else "127.0.0.1"
        self.policies = tuple(policy.name for policy in self._policies)
        self.directory = Path()
        self.servers: list[ServerProcess] = []
        self._ports: Mapping[str, int] = {}
        self._asked_directory = Path(directory).resolve() if directory is not None else None
        self._fixed_port = port
        self.statsd_port = statsd_port
        self._authentication = authentication or make_tempauth_options(token_life)
        self._filters = filters or {}
        self._proxy_options = proxy_options or {}
        self._object_options = object_options or {}
        self._settings = [ServerSetting.parse(each) for each in swift_settings]
        self._added_filters = make_filters(swift_filters)
        self._release = release
        self._title = title
        self._installation: SwiftInstallation | None = None
        self._configuration: SwiftConfiguration | None = None
        self._in_memory = False  # no files can have objects
        self._slow: dict[str, SlowTarget] = {}
        self._failed: set[str] = set()
        self._lock: IO[str] | None = None
        self._remover: subprocess.Popen[bytes] | None = None
        # What does not fit is refused before anything is started.
        self._describe(self.directory, memory=False).make_files()

    def __enter__(self) -> LocalSwift:
        start_swifts([self])
        return self

    def _find_installation(self) -> SwiftInstallation:
        """Return the Swift that is served, and warn of what it ignores; raises UsageError."""
        found = find_installation(self._release)
        refuse_missing_filters(self._added_filters, found.filters, found.version)
        for each in find_unknown_keys(self._settings, found.package):
            _log.warning(
                "%s: Swift %s does not have the key %s, and ignores it", each.place, found.version, each.key
            )
        return found

    @property
    def place(self) -> str:
        """The directory that was asked for, or the one of temporary folders."""
        return str(self._asked_directory or tempfile.tempdir)

    @property
    def version(self) -> str:
        """The number of the release that is served; empty before it is started."""
        return self._installation.version if self._installation else ""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def restart_ended(self) -> None:
        """Start those of its servers again that have ended; raises ClusterError."""
        for server in self.servers:
            if server.pid is None:
                _log.warning("The %s server of %s has ended; starting it again", server.name, self._title)
                try:
                    server.restart()
                except PortTakenError:
                    server.kill()
                    raise ClusterError(
                        f"the {server.name} server of {self._title} has ended, and its port is taken by now"
                    ) from None

    def credentials(self, *, all_accounts: bool = False) -> Credentials:
        """Return those of :attr:`user`, or of :attr:`admin`, who may use ``all_accounts``."""
        from ssbench.store.stores import Credentials  # noqa: PLC0415 - only runs ask for them

        user, key = (self.admin, self.admin_key) if all_accounts else (self.user, self.key)
        return Credentials(version="1.0", auth_url=self.auth_url, user=user, key=key)

    @property
    def port(self) -> int:
        """Port of the (first) proxy; 0 before there is one."""
        return self._ports.get(self.layout.proxy_names[0], self._fixed_port or 0)

    @property
    def address(self) -> str:
        """``http://HOST:PORT`` of the (first) proxy."""
        return _format_address(self.bind_ip, self.port)

    @property
    def auth_url(self) -> str:
        """URL of version 1 authentication (``ST_AUTH``)."""
        return f"{self.address}/auth/v1.0"

    @property
    def storage_url(self) -> str:
        """URL of the account of :attr:`user`."""
        return self.storage_urls[0]

    @property
    def storage_urls(self) -> list[str]:
        """URLs of the account of :attr:`user`, one for each proxy."""
        return [
            f"{_format_address(self.bind_ip, self._ports[name])}/v1/AUTH_test"
            for name in self.layout.proxy_names
        ]

    @property
    def recon_urls(self) -> dict[str, str]:
        """``http://HOST:PORT`` of each server that answers ``/recon``: account, container, object-1, ..."""
        names = ["account", "container", *self.layout.object_names]
        return {name: _format_address(self._storage_ip, self._ports[name]) for name in names}

    @property
    def log_directory(self) -> Path:
        """Where each process has its log file, ``NAME.log``."""
        return self.directory / "log"

    @property
    def proxy(self) -> ServerProcess:
        """The process of the (first) proxy server."""
        return self.servers[0]

    @property
    def proxies(self) -> list[ServerProcess]:
        """The processes of the proxy servers."""
        return self.servers[: self.layout.proxies]

    @property
    def listings(self) -> ServerProcess:
        """The process of the account and the container server."""
        return self.servers[self.layout.proxies]

    @property
    def object_servers(self) -> list[ServerProcess]:
        """The processes of the object servers."""
        return self.servers[self.layout.proxies + 1 :]

    def slow(self, target: str, delay: float, share: float = 1.0, where: str | None = None) -> None:
        """Delay a share of the requests to a device, an object server or a proxy, by ``delay`` seconds.

        ``where`` is one of ``request``, before the server's application sees it (the default for a
        proxy, and all there is); ``open``, where the object is opened, by every method (the default for
        the others); ``block``, the same, and the whole process is blocked; ``commit``, before what was
        written is put in its place. Replaces what there was for ``target``; raises UsageError.
        """
        targets = [*self.layout.device_owners, *self.layout.object_names, *self.layout.proxy_names]
        if target not in targets:
            raise UsageError(f"slow {target}: no such thing, there are {', '.join(targets)}")
        is_proxy = target in self.layout.proxy_names
        where = where or ("request" if is_proxy else "open")
        places = DELAY_POINTS[:1] if is_proxy else DELAY_POINTS
        if where not in places:
            raise UsageError(f"slow {target} at {where!r}: can be at {', '.join(places)}")
        self._slow[target] = SlowTarget(target, delay, share, where)
        self._apply_faults()

    def fail(self, device: str) -> None:
        """Have the object server answer 507 for ``device``, as if it were not mounted; raises UsageError."""
        if device not in self.layout.device_owners:
            raise UsageError(f"fail {device}: the devices are {', '.join(self.layout.device_owners)}")
        self._failed.add(device)
        self._apply_faults()

    def repair(self, target: str) -> None:
        """End what :meth:`slow` and :meth:`fail` began with ``target``."""
        self._slow.pop(target, None)
        self._failed.discard(target)
        self._apply_faults()

    def _apply_faults(self) -> None:
        """Hand what is slow and failed to the servers, if there are any yet; raises UsageError."""
        configuration = self._configuration
        if configuration is None:
            return
        if configuration.objects_in_memory and (
            self._failed or any(slow.where != "request" for slow in self._slow.values())
        ):
            raise UsageError(f"failed devices, and delays where objects are opened or put: {_IN_MEMORY_HINT}")
        write_slow_targets(configuration.slow_file, self._slow.values())
        for device in self.layout.device_owners:
            set_mounted(configuration.device(device), device not in self._failed)

    def stop(self) -> None:
        """End the servers and remove a temporary folder; safe to call again.

        Where the removal takes long, a signal ends the waiting for it, but not the removal.
        """
        with interruption.hold_signals():
            for server in self.servers:
                server.kill()
            remover, self._remover = self._remover, None
            if remover and remover.stdin:
                with suppress(BrokenPipeError):
                    remover.stdin.write(b"\n")
                    remover.stdin.close()
                with suppress(subprocess.TimeoutExpired):
                    remover.wait(_QUIET_REMOVAL_SECONDS)
            if self._lock:
                self._lock.close()
                self._lock = None
        if remover and remover.returncode is None:
            _log.info("Removing the local Swift's objects in %s", self.directory)
            remover.wait()

    def _open_directory(self) -> Path:
        """Make the folder and see to its removal, or take the one asked for; raises UsageError."""
        if self._asked_directory is None:
            path = Path(tempfile.mkdtemp(prefix="ssbench-swift-"))
            self._remover = subprocess.Popen(  # noqa: S603 - the path is our own, and no part of the script
                ["/bin/sh", "-c", _REMOVE_SCRIPT, "sh", str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
            return path
        path = self._asked_directory
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Nothing is written to it, nor to what a link of this name leads to.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self._lock = open(os.open(path / "lock", flags, 0o666))  # noqa: PTH123, SIM115 - until stop()
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{path}: another local Swift is using this directory") from None
        except OSError as error:
            why = "its file lock is a link" if error.errno == errno.ELOOP else error.strerror
            raise UsageError(f"{path}: cannot keep a Swift there: {why}") from None
        return path

    def prepare_start(self) -> None:
        """Find what is to be served, and make its folder; raises UsageError."""
        self._installation = self._find_installation()
        self.directory = self._open_directory()
        if not self._installation.is_own:
            write_program(self.directory)
        self._in_memory = not has_extended_attributes(self.directory)
        if self._in_memory and (self.layout.replicas > 1 or any(each.data for each in self._policies)):
            raise UsageError(f"{self.directory}: replicas and erasure coding: {_IN_MEMORY_HINT}")

    def configure_servers(self) -> None:
        """Choose ports, write the files, and make the servers, which are not started."""
        self._ports = self._choose_ports()
        self._configuration = self._describe(self.directory, memory=self._in_memory)
        self._configuration.write()
        self._apply_faults()
        apps = {
            **{name: [name] for name in self.layout.proxy_names},
            LISTINGS_SERVER: ["account", "container"],
            **{name: [name] for name in self.layout.object_names},
        }
        found = self._installation
        python = found.python if found and not found.is_own else None
        self.servers = [
            ServerProcess(self.directory, name, each, python, swift=self._title)
            for name, each in apps.items()
        ]

    def wait_ready(self, timeout: float) -> bool:
        """Wait until the servers listen; False if a port was taken meanwhile.

        Raises ClusterError where one takes longer than ``timeout`` seconds.
        """
        try:
            for server in self.servers:
                server.wait_ready(timeout)
        except PortTakenError:
            for server in self.servers:
                server.kill()
            return False
        return True

    def _describe(self, directory: Path, *, memory: bool) -> SwiftConfiguration:
        """Return what the servers are to be; ``memory``: no files can have objects."""
        return SwiftConfiguration(
            directory=directory,
            proxy_ip=self.bind_ip,
            storage_ip=self._storage_ip,
            policies=self._policies,
            layout=self.layout,
            ports=self._ports,
            authentication=self._authentication,
            filters=self._filters,
            proxy_options=self._proxy_options,
            object_options=self._object_options,
            objects_in_memory=memory,
            statsd_port=self.statsd_port,
            settings=self._settings,
            added_filters=self._added_filters,
        )

    def _choose_ports(self) -> dict[str, int]:
        """Choose a free port for each app; raises UsageError when a fixed one, or the address, is not."""
        apps = [*self.layout.proxy_names, "account", "container", *self.layout.object_names]
        ports = {}
        if self._fixed_port:
            if error := _find_bind_error(self.bind_ip, self._fixed_port):
                raise UsageError(f"{self.bind_ip} port {self._fixed_port}: {error}")
            ports = {apps.pop(0): self._fixed_port}
        if error := _find_bind_error(self.bind_ip, 0):
            raise UsageError(f"{self.bind_ip}: {error}")
        candidates = (
            port
            for port in random.sample(_PORT_RANGE, len(_PORT_RANGE))
            if port != self._fixed_port
            and not any(_find_bind_error(ip, port) for ip in {self.bind_ip, self._storage_ip})
        )
        return ports | dict(zip(apps, candidates, strict=False))


def start_swifts(swifts: Sequence[LocalSwift]) -> None:
    """Start some Swifts, their servers in turn; raises what :class:`LocalSwift` says of entering one.

    On a virtual machine the memory that a process gets makes its speed, and what is started in succession
    gets memory alike. Of two equal Swifts, each started as a whole, the later one used 1 to 2 % less CPU for
    an operation (5 pairs in either order); with their servers in turn it was 0.3 %, and varied half as much.
    """
    # What began must not be lost to an exception in the middle, nor the locks of subprocess.
    with interruption.hold_signals():
        try:
            for swift in swifts:
                swift.prepare_start()
            left = [*swifts]
            for _ in range(_MAX_ATTEMPTS):
                for swift in left:
                    swift.configure_servers()
                for servers in zip_longest(*(each.servers for each in left)):
                    for server in filter(None, servers):
                        interruption.raise_if_interrupted()
                        server.launch()
                timeout = START_TIMEOUT_SECONDS * len(left)  # all of them start on the same cores
                left = [each for each in left if not each.wait_ready(timeout)]
                if not left:
                    break
            else:
                raise ClusterError(f"the local Swift found its ports taken {_MAX_ATTEMPTS} times")
            interruption.raise_if_interrupted()
        except BaseException as error:
            for swift in swifts:
                swift.stop()
            if isinstance(error, OSError) and error.errno in _FOLDER_ERRORS:
                raise UsageError(f"{swifts[0].place}: cannot keep a Swift there: {error.strerror}") from None
            raise


def _format_address(ip: str, port: int) -> str:
    return f"http://{f'[{ip}]' if ':' in ip else ip}:{port}"


def has_extended_attributes(directory: Path) -> bool:
    """Tell whether files there take user attributes, in which Swift keeps what it knows of an object."""
    with tempfile.NamedTemporaryFile(dir=directory) as probe:
        try:
            os.setxattr(probe.name, "user.ssbench", b"x" * 1024)
        except OSError:
            return False
    return True


def _find_bind_error(ip: str, port: int) -> str | None:
    """Return why a server could not listen there; None when it could."""
    try:
        with socket.create_server((ip, port), family=socket.AF_INET6 if ":" in ip else socket.AF_INET):
            return None
    except OSError as error:
        return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
