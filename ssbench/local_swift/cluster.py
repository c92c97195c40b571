"""The embedded Swift as a whole: a context manager."""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import random
import re
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from ssbench.errors import ClusterError, UsageError
from ssbench.local_swift.configuration import (
    LISTINGS,
    PROXY,
    Configuration,
    Options,
    object_role,
    tempauth,
)
from ssbench.local_swift.processes import PortTakenError, ServerProcess

#: Below Linux's range of ephemeral ports, so that no outgoing connection sits on one.
_PORTS = range(20_000, 32_768)
_ATTEMPTS = 5

#: Waits for a word or for the end of its input, which is the end of our process, and removes a folder.
#: In the second case the servers are dying at the same moment and may still write.
_REMOVER = 'trap "" INT TERM HUP; read -r word || sleep 1; rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }'


class LocalSwift:
    """A Swift of its own in child processes, for as long as the context lasts.

    ``directory`` keeps its data and is left in place; without one a temporary folder is made, and
    removed at the end, also when this process is killed. ``port`` is the proxy's (default: any free
    one). ``policies`` are names of storage policies, the first one the default. Each of
    ``object_servers`` is a process of its own with one device. ``token_life`` is in seconds.

    For tests, in paste's terms: ``filters`` are sections by name, put in front of the
    authentication; ``authentication`` replaces tempauth's; ``proxy_options`` and ``object_options``
    go into the apps' sections. Modules of filters are found by way of ``PYTHONPATH``.

    The servers are :attr:`proxy`, :attr:`listings` (accounts and containers) and
    :attr:`object_servers`; each can be killed, restarted, stopped and resumed by itself. A restart of
    the proxy makes every token invalid.

    Entering raises UsageError (Swift is not installed, the directory is unusable or in use, the port
    is taken) and ClusterError (a server did not start; with the tail of its log).
    The servers end with the thread that enters, so enter in one that lasts.
    """

    user = "test:tester"
    key = "testing"

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        bind_ip: str = "127.0.0.1",
        port: int | None = None,
        policies: Sequence[str] = ("gold", "silver"),
        object_servers: int = 1,
        token_life: int = 86400,
        filters: Mapping[str, Options] | None = None,
        authentication: Mapping[str, Options] | None = None,
        proxy_options: Options | None = None,
        object_options: Options | None = None,
    ) -> None:
        for policy in policies:
            if not re.fullmatch(r"[A-Za-z0-9-]+", policy):
                raise UsageError(f"storage policy {policy!r}: expected letters, digits and hyphens")
        self.bind_ip = bind_ip
        self.port = port or 0
        self.policies = tuple(policies)
        self.directory = Path()
        self.servers: list[ServerProcess] = []
        self._asked_directory = Path(directory).resolve() if directory is not None else None
        self._fixed_port = port
        self._object_roles = [object_role(index) for index in range(object_servers)]
        self._authentication = authentication or tempauth(token_life)
        self._filters = filters or {}
        self._proxy_options = proxy_options or {}
        self._object_options = object_options or {}
        self._lock: IO[str] | None = None
        self._remover: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LocalSwift:
        for package in ("swift", "eventlet"):
            try:
                importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                raise UsageError(
                    f"a local Swift needs the package {package!r}: pip install swift eventlet"
                    " (or '.[swift]' in a clone of ssbench)"
                ) from None
        try:
            self.directory = self._open_directory()
            self._start(self.directory)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """``http://HOST:PORT`` of the proxy."""
        host = f"[{self.bind_ip}]" if ":" in self.bind_ip else self.bind_ip
        return f"http://{host}:{self.port}"

    @property
    def auth_url(self) -> str:
        """URL of version 1 authentication (``ST_AUTH``)."""
        return f"{self.address}/auth/v1.0"

    @property
    def storage_url(self) -> str:
        """URL of the account of :attr:`user`."""
        return f"{self.address}/v1/AUTH_test"

    @property
    def proxy(self) -> ServerProcess:
        """The process of the proxy server."""
        return self.servers[0]

    @property
    def listings(self) -> ServerProcess:
        """The process of the account and the container server."""
        return self.servers[1]

    @property
    def object_servers(self) -> list[ServerProcess]:
        """The processes of the object servers."""
        return self.servers[2:]

    def stop(self) -> None:
        """End the servers and remove a temporary folder; safe to call again."""
        for server in self.servers:
            server.kill()
        if self._remover and self._remover.stdin:
            with suppress(BrokenPipeError):
                self._remover.stdin.write(b"\n")
                self._remover.stdin.close()
            self._remover.wait()
            self._remover = None
        if self._lock:
            self._lock.close()
            self._lock = None

    def _open_directory(self) -> Path:
        """Make the folder and see to its removal, or take the one asked for; raises UsageError."""
        if self._asked_directory is None:
            path = Path(tempfile.mkdtemp(prefix="ssbench-swift-"))
            self._remover = subprocess.Popen(  # noqa: S603 - the path is our own, and no part of the script
                ["/bin/sh", "-c", _REMOVER, "sh", str(path)],
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
            self._lock = (path / "lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{path}: another local Swift is using this directory") from None
        except OSError as error:
            raise UsageError(f"{path}: cannot keep a Swift there: {error.strerror}") from None
        return path

    def _start(self, directory: Path) -> None:
        memory = not has_extended_attributes(directory)
        for _ in range(_ATTEMPTS):
            ports = self._choose_ports()
            self.port = ports[PROXY]
            Configuration(
                directory=directory,
                bind_ip=self.bind_ip,
                policies=self.policies,
                object_roles=self._object_roles,
                ports=ports,
                authentication=self._authentication,
                filters=self._filters,
                proxy_options=self._proxy_options,
                object_options=self._object_options,
                objects_in_memory=memory,
            ).write()
            self.servers = [
                ServerProcess(directory, PROXY, [PROXY]),
                ServerProcess(directory, LISTINGS, ["account", "container"]),
                *(ServerProcess(directory, role, [role]) for role in self._object_roles),
            ]
            for server in self.servers:
                server.launch()
            try:
                for server in self.servers:
                    server.wait_ready()
            except PortTakenError:
                for server in self.servers:
                    server.kill()
                continue
            return
        raise ClusterError(f"the local Swift found its ports taken {_ATTEMPTS} times")

    def _choose_ports(self) -> dict[str, int]:
        """Choose a free port for each app; raises UsageError when a fixed one, or the address, is not."""
        apps = ["account", "container", *self._object_roles]
        if self._fixed_port:
            if error := _bind_error(self.bind_ip, self._fixed_port):
                raise UsageError(f"{self.bind_ip} port {self._fixed_port}: {error}")
            ports = {PROXY: self._fixed_port}
        else:
            apps.insert(0, PROXY)
            ports = {}
        if error := _bind_error(self.bind_ip, 0):
            raise UsageError(f"{self.bind_ip}: {error}")
        candidates = (
            port
            for port in random.sample(_PORTS, len(_PORTS))
            if port != self._fixed_port and not _bind_error(self.bind_ip, port)
        )
        return ports | dict(zip(apps, candidates, strict=False))


def has_extended_attributes(directory: Path) -> bool:
    """Tell whether files there take user attributes, in which Swift keeps what it knows of an object."""
    with tempfile.NamedTemporaryFile(dir=directory) as probe:
        try:
            os.setxattr(probe.name, "user.ssbench", b"x" * 1024)
        except OSError:
            return False
    return True


def _bind_error(ip: str, port: int) -> str | None:
    """Return why a server could not listen there; None when it could."""
    try:
        with socket.create_server((ip, port), family=socket.AF_INET6 if ":" in ip else socket.AF_INET):
            return None
    except OSError as error:
        return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
