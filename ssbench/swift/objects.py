"""Requests for objects, fast: the client that the worker's greenlets share.

::

    client = Client(ClientSettings(max_connections=64))
    outcome = client.request("http://swift:8080/v1/AUTH_test", "PUT", "ssbench_000001", "tiny_000001",
                             token, size=4096)

A request makes attempts until one succeeds or fails for good, and always ends as an
:class:`Outcome`. What costs most here is paid once: the bytes of a request up to the object's name
are kept for each container, those after it for each token (making them anew took 4 of 20 µs).

All times are of ``time.monotonic``, which on Linux is one clock for all processes of a host.
"""

from __future__ import annotations

import math
import random
import re
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic
from urllib.parse import quote

import gevent
from msgspec import Struct, structs

from ssbench import __version__
from ssbench.errors import UsageError
from ssbench.swift.causes import (
    CLOSED,
    NOT_FOUND,
    RESET,
    TRANSIENT,
    AttemptError,
    status_cause,
)
from ssbench.swift.http_response import Answer
from ssbench.swift.payload import Payload
from ssbench.swift.pool import Endpoint, Pool, Sweeper, parse_storage_url
from ssbench.swift.shared import Shared, discarding_flags
from ssbench.swift.timing import LONGEST_RETRY_AFTER, NETWORK_TIMEOUTS, SLOW_RATE
from ssbench.swift.tls import tls_context

#: The pause before the first retry; it doubles with each one, and half of it is drawn at random.
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0

#: Kept prefixes of requests, some 150 bytes each.
_MAX_PREFIXES = 65536

#: These look for an object that should be there; in a store that is behind it may be so soon.
_RETRIES_404 = frozenset({"GET", "DELETE"})

#: How a server ends a connection that it had kept open long enough.
_STALE = frozenset({CLOSED, RESET})

_UNQUOTED = re.compile(r"[A-Za-z0-9_.~/-]+").fullmatch


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How a client connects. Time-outs are seconds; they end up to a twentieth late.

    ``connect_timeout`` is for all addresses of a name together, and once more for the TLS handshake;
    ``network_timeout`` for each wait for progress. ``request_timeout`` (None: three times
    ``network_timeout``) is for a whole attempt once it is connected, but does not run while a body moves
    at :data:`~ssbench.swift.timing.SLOW_RATE` or faster, so that a long body that flows never times out.
    ``block_size``: bytes sent or received at once where they are copied at all.
    ``max_connections`` is the limit for each server, ``retries`` that for each request. ``retry_404``
    is how often, apart from those, a GET or DELETE is tried again that finds no object.
    ``trans_id_extra`` is what Swift is asked to let its transaction ids end in.
    """

    connect_timeout: float = 10.0
    network_timeout: float = 20.0
    request_timeout: float | None = None
    block_size: int = 65536
    max_connections: int = 64
    retries: int = 10
    retry_404: int = 0
    insecure: bool = False
    ca_certificates: str | None = None
    trans_id_extra: str | None = None


class Outcome(Struct, frozen=True, gc=False):
    """How a request ended.

    ``first_byte`` and ``last_byte`` are seconds from the first attempt's first byte sent to the
    first and the last byte of the last answer; None for a failure, and first_byte None for a PUT.
    ``completed`` is when it ended. ``size``: bytes of body moved by a success, of a HEAD the object's.
    ``retries`` counts all attempts but one, ``retried`` the causes of those before the last. ``cause`` is
    None for a success, ``detail`` one line for people. ``unauthorized``: a 401 for which a new token may
    help; then ``last_byte`` is the time spent so far. ``found``: of an initial object, the size of what was
    there under its name, None where nothing was. ``status`` is that of the last answer, 0 where there was
    none; ``spent`` what a failure took, in seconds from the first attempt on; ``resent`` counts requests
    that were sent again at once because a kept connection had gone stale, which are no retries.
    """

    first_byte: float | None
    last_byte: float | None
    completed: float
    size: int
    retries: int
    trans_id: str | None
    cause: str | None = None
    detail: str = ""
    retried: dict[str, int] | None = None
    unauthorized: bool = False
    found: int | None = None
    status: int = 0
    spent: float | None = None
    resent: int = 0


class Client:
    """Requests to any number of storage URLs, from any number of greenlets of one thread."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        request_timeout = settings.request_timeout or NETWORK_TIMEOUTS * settings.network_timeout
        shortest = min(settings.connect_timeout, settings.network_timeout, request_timeout)
        interval = min(max(shortest / 20, 0.01), 0.5)
        self._shared = Shared(
            hub=gevent.get_hub(),
            payload=Payload(),
            block_size=settings.block_size,
            connect_ticks=math.ceil(settings.connect_timeout / interval) + 1,
            network_ticks=math.ceil(settings.network_timeout / interval) + 1,
            request_ticks=math.ceil(request_timeout / interval) + 1,
            ticks_per_byte=1 / (SLOW_RATE * interval),
            sink_flags=discarding_flags(),
        )
        self._sweeper = Sweeper(self._shared, interval)
        self._tls: ssl.SSLContext | None = None
        self._pools: dict[Endpoint, Pool] = {}
        self._targets: dict[str, _Target] = {}

    def request(
        self,
        storage_url: str,
        method: str,
        container: str,
        name: str,
        token: str | None = None,
        size: int = 0,
        *,
        delete_after: int | None = None,
        missing_ok: bool = False,
        prior_retries: int = 0,
        prior_seconds: float = 0.0,
    ) -> Outcome:
        """Do one request: ``method`` is GET, PUT, DELETE or HEAD; ``size`` the bytes to PUT.

        With ``missing_ok`` a 404 is a success. ``prior_retries`` and ``prior_seconds`` are what
        was spent on it before its token was refused. A wrong storage URL or token raises UsageError.
        """
        target = self._targets.get(storage_url) or self._open_target(storage_url)
        head = target.head(method, container, name, token, size=size, delete_after=delete_after)
        retries = prior_retries
        retried: dict[str, int] | None = None
        began = -prior_seconds  # until the first attempt tells when it began
        first, resent = True, 0
        while True:
            try:
                answer = self._attempt(target.pool, head, method, size)
            except AttemptError as fault:
                began += fault.began if first else 0.0
                unauthorized, trans_id, asked = False, fault.trans_id, None
                cause, detail, status = fault.cause, str(fault), fault.status
                resent += fault.resent
            else:
                began += answer.sent_at if first else 0.0
                status, trans_id = answer.status, answer.trans_id
                resent += answer.resent
                if 200 <= status < 300 or (missing_ok and status == 404):
                    return _success(
                        answer, size if method == "PUT" else None, began, retries, retried, resent
                    )
                cause, detail, asked = status_cause(status), answer.detail, answer.retry_after
                unauthorized = status == 401
            first = False
            again = self._worth_a_retry(method, cause, retries, retried)
            if not again or self._shared.closing.wait(_pause(retries + 1, asked)):
                now = monotonic()
                return Outcome(
                    None,
                    now - began if unauthorized else None,
                    now,
                    0,
                    retries,
                    trans_id,
                    cause,
                    detail,
                    retried,
                    unauthorized,
                    status=status,
                    spent=now - began if began > 0 else None,  # where the attempt knows when it began
                    resent=resent,
                )
            retries += 1
            retried = retried or {}
            retried[cause] = retried.get(cause, 0) + 1

    def _worth_a_retry(self, method: str, cause: str, retries: int, retried: dict[str, int] | None) -> bool:
        if cause == NOT_FOUND and method in _RETRIES_404:
            return (retried or {}).get(cause, 0) < self.settings.retry_404
        return cause in TRANSIENT and retries < self.settings.retries

    def close(self) -> None:
        """Close all connections; requests end at once as errors, whatever they wait for."""
        self._shared.closing.set()
        self._sweeper.close()
        for pool in self._pools.values():
            pool.close()
        for connection in list(self._shared.connections):
            connection.cancel()
        self._shared.payload.close()

    def _attempt(self, pool: Pool, head: bytes, method: str, size: int) -> Answer:
        """Send the request once, or again at once where only a connection at rest had gone stale."""
        pool.places.acquire()
        try:
            if not pool.idle:
                return pool.connect().exchange(head, method, size)
            connection = pool.idle.pop()
            connection.claim()
            try:
                return connection.exchange(head, method, size)
            except AttemptError as fault:
                if connection.answered or fault.cause not in _STALE:
                    raise
            try:
                answer = pool.connect().exchange(head, method, size)
                return structs.replace(answer, sent_at=connection.sent_at, resent=True)
            except AttemptError as fault:
                fault.began, fault.resent = connection.sent_at, True
                raise
        finally:
            pool.places.release()

    def _open_target(self, storage_url: str) -> _Target:
        endpoint, host, path = parse_storage_url(storage_url)
        pool = self._pools.get(endpoint)
        if pool is None:
            settings = self.settings
            if endpoint.scheme == "https" and self._tls is None:
                self._tls = tls_context(settings.insecure, settings.ca_certificates)
            pool = self._pools[endpoint] = Pool(
                endpoint,
                self._shared,
                settings.max_connections,
                settings.connect_timeout,
                self._tls if endpoint.scheme == "https" else None,
            )
        extra = self.settings.trans_id_extra
        fields = f"X-Trans-Id-Extra: {extra}\r\n" if extra else ""
        target = self._targets[storage_url] = _Target(pool, host, path, fields)
        return target


class _Target:
    """A storage URL: its pool, and the parts that requests to it are put together from."""

    __slots__ = ("_after", "_before", "_fields", "_path", "pool")

    def __init__(self, pool: Pool, host: str, path: str, fields: str = "") -> None:
        self.pool = pool
        self._path = path
        self._fields = f" HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ssbench/{__version__}\r\n{fields}"
        self._before: dict[tuple[str, str], bytes] = {}
        self._after: dict[str | None, bytes] = {}

    def head(
        self,
        method: str,
        container: str,
        name: str,
        token: str | None,
        *,
        size: int,
        delete_after: int | None,
    ) -> bytes:
        before = self._before.get((method, container)) or self._keep_before(method, container)
        after = self._after.get(token) or self._keep_after(token)
        quoted = (name if _UNQUOTED(name) else quote(name, "/~")).encode()
        if method != "PUT":
            return before + quoted + after + b"\r\n"
        if delete_after is None:
            return b"%b%b%bContent-Length: %d\r\n\r\n" % (before, quoted, after, size)
        return b"%b%b%bContent-Length: %d\r\nX-Delete-After: %d\r\n\r\n" % (
            before,
            quoted,
            after,
            size,
            delete_after,
        )

    def _keep_before(self, method: str, container: str) -> bytes:
        if len(self._before) >= _MAX_PREFIXES:
            self._before.clear()
        before = f"{method} {self._path}/{quote(container, '')}/".encode()
        self._before[method, container] = before
        return before

    def _keep_after(self, token: str | None) -> bytes:
        if token is not None and not (token.isascii() and token.isprintable()):
            raise UsageError("the token holds characters that no header field may hold")
        self._after.clear()  # an old token is of no more use
        after = f"{self._fields}X-Auth-Token: {token}\r\n" if token else self._fields
        self._after[token] = after.encode()
        return self._after[token]


def _success(
    answer: Answer, sent: int | None, began: float, retries: int, retried: dict[str, int] | None, resent: int
) -> Outcome:
    """Return the outcome of a request that began at ``began``; ``sent`` is the size of a PUT's body."""
    return Outcome(
        answer.first_byte_at - began if sent is None else None,
        answer.last_byte_at - began,
        answer.last_byte_at,
        answer.size if sent is None else sent,
        retries,
        answer.trans_id,
        None,
        "",
        retried,
        status=answer.status,
        resent=resent,
    )


def _pause(retry: int, asked: str | None) -> float:
    """Seconds before the given retry, 1 being the first; ``asked`` is the answer's Retry-After."""
    seconds: float = min(FIRST_PAUSE * 2 ** min(retry - 1, 16), LONGEST_PAUSE) * random.uniform(0.5, 1.0)
    if asked is not None:
        seconds = max(seconds, min(_retry_after(asked), LONGEST_RETRY_AFTER))
    return seconds


def _retry_after(value: str) -> float:
    """Seconds that a Retry-After (RFC 9110, 10.2.3) asks for; 0 if it is neither number nor date."""
    if value.isdecimal():
        return float(value[:9])
    try:
        due = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return 0.0
    return max(
        0.0, (due if due.tzinfo else due.replace(tzinfo=UTC)).timestamp() - datetime.now(UTC).timestamp()
    )
