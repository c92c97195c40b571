"""Asks servers how they are, from threads of its own, so that none that is silent holds up many others."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue

import urllib3

from ssbench.cluster import recon
from ssbench.results.observation import MAX_SAMPLED_DEVICES, Proxy, Server, State

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
    return recon.parse_proxy_info(url, body)


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
        for path in (*recon.EACH_ROUND_PATHS, *(recon.BOTH_ENDS_PATHS if everything else ())):
            try:
                _, answers[path] = _get_answer(self._pool, "GET", f"{server.url}/recon/{path}", deadline)
            except _RefusedError as error:
                refused = error
        if refused is not None and not answers:
            raise _NoAnswerError(f"{refused}: is recon in its pipeline?")
        return recon.parse_recon_state(answers, round(time.monotonic() - self._start, 3))

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
