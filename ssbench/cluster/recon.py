"""Asks servers how they are by Swift's recon middleware and a proxy's ``/info``, and makes records of it.

What is missing, null or of another shape than Swift's becomes None: servers of many versions are asked, and
whoever answers may be no Swift at all. https://docs.openstack.org/swift/latest/admin_guide.html lists what
recon tells. A :class:`Sampler` asks from threads of its own, so that none that is silent delays many others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

import msgspec
import urllib3

from ssbench.results.cluster_observation import MAX_SAMPLED_DEVICES, Disk, Proxy, Server, State

#: What is asked in each round, and what is asked besides before and after the run.
EACH_ROUND_PATHS = ("load", "async", "sockstat", "diskusage")
BOTH_ENDS_PATHS = (
    "version",
    "time",
    "devices",
    "quarantined",
    "replication/account",
    "replication/container",
    "replication/object",
    "reconstruction/object",
)

#: Devices, policies and names of one server that are kept, and characters of a text.
_MAX_NAMES = 1000
_MAX_TEXT_LENGTH = 200
_MINUTE_SECONDS = 60.0

#: What no count and no number of seconds of a server reaches.
_MAX_COUNT = 2**53
_MAX_SECONDS = 1e11

_T = TypeVar("_T")


class _Load(msgspec.Struct):
    minute: float | None = msgspec.field(default=None, name="1m")


class _Async(msgspec.Struct):
    async_pending: int | None = None
    async_pending_last: float | None = None


class _Sockets(msgspec.Struct):
    tcp_in_use: int | None = None
    time_wait: int | None = None
    orphan: int | None = None
    tcp_mem_allocated_bytes: int | None = None


class _Disk(msgspec.Struct):
    """A disk as recon lists it."""

    device: str
    mounted: bool | str = False  # may be an error message
    size: int | str = 0  # empty text: it is not mounted
    used: int | str = 0  # empty text: it is not mounted


class _Quarantined(msgspec.Struct):
    accounts: int = 0
    containers: int = 0
    objects: int = 0


class _Version(msgspec.Struct):
    version: str


class _Replication(msgspec.Struct):
    """``replication_last`` is seconds since 1970, ``replication_time`` minutes for objects, else seconds."""

    replication_time: float | None = None
    replication_last: float | None = None


class _Reconstruction(msgspec.Struct):
    object_reconstruction_time: float | None = None
    object_reconstruction_last: float | None = None


def parse_recon_state(answers: Mapping[str, bytes], at: float) -> State:
    """Make a state of answers by their path below ``/recon``; whatever they hold, nothing is raised."""
    sound = _SoundNumbers()
    load = _decode_answer(answers, "load", _Load)
    pending = _decode_answer(answers, "async", _Async)
    sockets = _decode_answer(answers, "sockstat", _Sockets)
    version = _decode_answer(answers, "version", _Version)
    quarantined = _decode_answer(answers, "quarantined", _Quarantined)
    age, seconds = _parse_replication(answers, sound)
    return State(
        at=at,
        load=sound.seconds("load", load.minute) if load else None,
        async_pending=sound.count("async", pending.async_pending) if pending else None,
        async_counted=sound.seconds("async", pending.async_pending_last) if pending else None,
        tcp_in_use=sound.count("sockstat", sockets.tcp_in_use) if sockets else None,
        time_wait=sound.count("sockstat", sockets.time_wait) if sockets else None,
        orphans=sound.count("sockstat", sockets.orphan) if sockets else None,
        tcp_memory=sound.count("sockstat", sockets.tcp_mem_allocated_bytes) if sockets else None,
        disks=_parse_disks(_decode_answer(answers, "diskusage", list[_Disk]), sound),
        version=version.version[:_MAX_TEXT_LENGTH] if version else None,
        root=next(iter(_decode_answer(answers, "devices", dict[str, Any]) or {}), "")[:_MAX_TEXT_LENGTH]
        or None,
        quarantined=sound.count(
            "quarantined", quarantined.accounts + quarantined.containers + quarantined.objects
        )
        if quarantined
        else None,
        replication_age=age,
        replication_seconds=seconds,
        unsound=tuple(sorted(sound.wrong)),
    )


class _SoundNumbers:
    """Lets numbers pass that a server can have; ``wrong`` are the paths of the others."""

    def __init__(self) -> None:
        self.wrong: set[str] = set()

    def count(self, path: str, value: int | None) -> int | None:
        """Return a count, None for what is none."""
        if value is None or 0 <= value < _MAX_COUNT:
            return value
        self.wrong.add(path)
        return None

    def seconds(self, path: str, value: float | None) -> float | None:
        """Return seconds, a time since 1970 or a load; None for what is none."""
        if value is None or 0 <= value < _MAX_SECONDS:
            return value
        self.wrong.add(path)
        return None


def _decode_answer(answers: Mapping[str, bytes], path: str, shape: type[_T]) -> _T | None:
    if path not in answers:
        return None
    try:
        return msgspec.json.decode(answers[path], type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _parse_disks(disks: list[_Disk] | None, sound: _SoundNumbers) -> tuple[Disk, ...] | None:
    if disks is None:
        return None
    return tuple(
        Disk(
            each.device[:_MAX_TEXT_LENGTH],
            each.mounted is True,
            sound.count("diskusage", _parse_number(each.size)) or 0,
            sound.count("diskusage", _parse_number(each.used)) or 0,
        )
        for each in sorted(disks, key=lambda disk: disk.device)[:_MAX_NAMES]
    )


def _parse_number(size: int | str) -> int:
    return size if isinstance(size, int) else 0


def _parse_replication(
    answers: Mapping[str, bytes], sound: _SoundNumbers
) -> tuple[dict[str, float], dict[str, float]]:
    """Return how many seconds ago each kind of replication ended, and how many seconds it took."""
    ages: dict[str, float] = {}
    seconds: dict[str, float] = {}
    now = sound.seconds("time", _decode_answer(answers, "time", float))
    passes: dict[str, tuple[float | None, float | None]] = {}
    for kind, unit in (("account", 1.0), ("container", 1.0), ("object", _MINUTE_SECONDS)):
        path = f"replication/{kind}"
        if found := _decode_answer(answers, path, _Replication):
            took = sound.seconds(path, found.replication_time)
            passes[kind] = sound.seconds(path, found.replication_last), None if took is None else took * unit
    path = "reconstruction/object"
    if rebuilt := _decode_answer(answers, path, _Reconstruction):
        took = sound.seconds(path, rebuilt.object_reconstruction_time)
        passes["reconstruction"] = (
            sound.seconds(path, rebuilt.object_reconstruction_last),
            None if took is None else took * _MINUTE_SECONDS,
        )
    for kind, (last, took) in passes.items():
        if last and now is not None:
            # Both by the server's own clock: those of two hosts are never compared.
            ages[kind] = max(0.0, now - last)
        if took is not None:
            seconds[kind] = took
    return ages, seconds


class _Policy(msgspec.Struct):
    name: str
    default: bool = False


class _Swift(msgspec.Struct):
    version: str | None = None
    policies: list[_Policy] = []


def parse_proxy_info(url: str, answer: bytes) -> Proxy:
    """Make a record of what ``/info`` answered; nothing is raised."""
    sections = _decode_answer({"info": answer}, "info", dict[str, Any])
    swift = None
    if sections and isinstance(sections.get("swift"), dict):
        try:
            swift = msgspec.convert(sections["swift"], _Swift)
        except msgspec.ValidationError:
            swift = None
    if not sections or swift is None:
        return Proxy(url, failure="its /info is not that of a Swift")
    policies = sorted(swift.policies[:_MAX_NAMES], key=lambda policy: not policy.default)
    constraints = {
        name[:_MAX_TEXT_LENGTH]: value
        for name, value in list(sections["swift"].items())[:_MAX_NAMES]
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    }
    return Proxy(
        url,
        version=swift.version[:_MAX_TEXT_LENGTH] if swift.version else None,
        policies=tuple(policy.name[:_MAX_TEXT_LENGTH] for policy in policies),
        constraints=constraints,
        features=tuple(name[:_MAX_TEXT_LENGTH] for name in sorted(sections)[:_MAX_NAMES] if name != "swift"),
    )


# -- Asking servers --------------------------------------------------------------------------------


#: Seconds for a connection, for the next bytes of an answer, and for all that a server is asked in a round.
_CONNECT_SECONDS = 2.0
_READ_SECONDS = 3.0
_ROUND_SECONDS = 6.0
#: A larger answer is not Swift's (bytes).
_MAX_ANSWER = 4 * 1024 * 1024
#: So many are asked at the same time.
MAX_THREADS = 16
_SERVER_KINDS = ("account", "container", "object")


class _NoAnswerError(Exception):
    """Its text is the reason."""


class _RefusedError(_NoAnswerError):
    """An answer, but not with status 200."""


def make_pool(*, insecure: bool = False, ca_certificates: str | None = None) -> urllib3.PoolManager:
    """Make what requests are sent with; ``ca_certificates`` is a PEM text."""
    verification = {"cert_reqs": "CERT_NONE"} if insecure else {"ca_cert_data": ca_certificates}
    return urllib3.PoolManager(
        num_pools=MAX_THREADS * 4,
        retries=False,
        timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS),
        **verification,
    )


def ask_info(pool: urllib3.PoolManager, url: str) -> Proxy:
    """Ask a proxy for its ``/info``; failures are recorded in the result."""
    try:
        _, body = _get_answer(pool, "GET", f"{url}/info", time.monotonic() + _ROUND_SECONDS)
    except _NoAnswerError as error:
        return Proxy(url, failure=str(error))
    return parse_proxy_info(url, body)


def _get_answer(pool: urllib3.PoolManager, method: str, url: str, deadline: float) -> tuple[str, bytes]:
    """Return the header ``Server`` and the body; raises _NoAnswerError."""
    body = bytearray()
    try:
        answer = pool.request(method, url, redirect=False, preload_content=False)
        try:
            if answer.status != 200:
                raise _RefusedError(f"answered {answer.status}")
            while chunk := answer.read1(65536):
                body += chunk
                if len(body) > _MAX_ANSWER:
                    raise _NoAnswerError(f"an answer of more than {_MAX_ANSWER:,} bytes")
                if time.monotonic() > deadline:
                    raise _NoAnswerError(f"no whole answer in {_ROUND_SECONDS:g} s")
        finally:
            answer.close()  # a connection whose answer was read to its end is back in the pool by now
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise _NoAnswerError(_describe_error(error)) from None
    return answer.headers.get("Server", ""), bytes(body)


def _describe_error(error: Exception) -> str:
    match error:
        case urllib3.exceptions.NameResolutionError():
            return "unknown host"
        case urllib3.exceptions.NewConnectionError(__cause__=OSError(strerror=str(reason))):
            return reason
        case urllib3.exceptions.ConnectTimeoutError():
            return f"no connection in {_CONNECT_SECONDS:g} s"
        case urllib3.exceptions.ReadTimeoutError():
            return f"no answer in {_READ_SECONDS:g} s"
    return str(error)[:200]


class _AskedServer:
    """A server, and what it has said so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.kind = ""
        self.asked = self.unanswered = 0
        self.failure: str | None = None
        self.busy = 0  # with so many rounds
        self.before: State | None = None
        self.after: State | None = None
        self.during: list[State] = []

    def record(self) -> Server:
        return Server(
            self.url,
            self.kind,
            self.asked,
            self.unanswered,
            self.failure,
            self.before,
            self.after,
            tuple(self.during),
        )


class Sampler:
    """Samples the recon of servers: :meth:`before`, every ``interval`` seconds from then on, :meth:`after`.

    Moments count from ``start``, a time of the monotonic clock. Nothing is raised.
    """

    def __init__(self, urls: Sequence[str], interval: float, start: float) -> None:
        self.interval = interval
        self._start = start
        self._servers = [_AskedServer(url) for url in urls]
        self._pool = make_pool()
        self._changed = threading.Condition()
        self._jobs: SimpleQueue[tuple[_AskedServer, str]] = SimpleQueue()
        self._ended = threading.Event()
        self._sampled = 0
        self._begun = False
        for number in range(min(MAX_THREADS, len(urls))):
            threading.Thread(target=self._work, name=f"recon {number}", daemon=True).start()

    def before(self, patience: float) -> None:
        """Ask everything, and wait for the answers for some seconds; then go on by itself."""
        self._round("before", patience)
        self._begun = True
        threading.Thread(target=self._go_on, name="recon", daemon=True).start()

    def after(self, patience: float) -> None:
        """Stop, and ask everything once more."""
        self._ended.set()
        self._round("after", patience)

    def servers(self) -> tuple[Server, ...]:
        """Return what is known by now."""
        with self._changed:
            return tuple(server.record() for server in self._servers)

    def _go_on(self) -> None:
        while not self._ended.wait(self.interval):
            self._round("during", 0.0)

    def _round(self, phase: str, patience: float) -> None:
        """Have each server asked, but for those that have not answered the last question yet."""
        with self._changed:
            for server in self._servers:
                if phase != "during" or not server.busy:
                    server.busy += 1
                    self._jobs.put((server, phase))
            if not patience:
                return
            self._changed.wait_for(lambda: not any(server.busy for server in self._servers), patience)
            for server in self._servers:
                if server.busy:
                    server.asked += 1
                    server.unanswered += 1
                    server.failure = server.failure or f"no whole answer in {patience:g} s"

    def _work(self) -> None:
        while True:
            server, phase = self._jobs.get()
            failure = None
            try:
                answered = self._ask(server, everything=phase != "during")
            except _NoAnswerError as error:
                answered, failure = None, str(error)
            with self._changed:
                server.asked += 1
                if answered is None:
                    server.unanswered += 1
                    server.failure = server.failure or failure
                else:
                    self._keep(server, phase, answered)
                server.busy -= 1
                self._changed.notify_all()

    def _ask(self, server: _AskedServer, *, everything: bool) -> State:
        """Raise _NoAnswerError where the server does not answer; paths that it refuses are left out."""
        deadline = time.monotonic() + _ROUND_SECONDS
        if everything and not server.kind:
            with suppress(_RefusedError):
                name, _ = _get_answer(self._pool, "OPTIONS", f"{server.url}/", deadline)
                kind, found, _ = name.partition("-server/")
                server.kind = kind if found and kind in _SERVER_KINDS else ""
        answers: dict[str, bytes] = {}
        refused = None
        for path in (*EACH_ROUND_PATHS, *(BOTH_ENDS_PATHS if everything else ())):
            try:
                _, answers[path] = _get_answer(self._pool, "GET", f"{server.url}/recon/{path}", deadline)
            except _RefusedError as error:
                refused = error
        if refused is not None and not answers:
            raise _NoAnswerError(f"{refused}: is recon in its pipeline?")
        return parse_recon_state(answers, round(time.monotonic() - self._start, 3))

    def _keep(self, server: _AskedServer, phase: str, state: State) -> None:
        if phase == "after":
            server.after = state
        elif phase == "before" and not self._begun:
            server.before = state
        elif not self._ended.is_set():
            server.during.append(state)
            self._sampled += 1 + len(state.disks or ())
        if self._sampled > MAX_SAMPLED_DEVICES:
            self.interval *= 2
            for each in self._servers:
                each.during = each.during[::2]
            self._sampled = sum(1 + len(state.disks or ()) for each in self._servers for state in each.during)
