"""Requests for objects, fast: the client that the worker's greenlets share.

::

    client = Client(ClientSettings(max_connections=64))
    outcome = client.request("http://swift:8080/v1/AUTH_test", "PUT", "ssbench_000001", "tiny_000001",
                             token, size=4096)

A request makes attempts until one succeeds or fails for good, and always ends as an
:class:`~ssbench.store.swift.answers.Outcome`. The bytes of requests are put together in
:mod:`ssbench.store.swift.target`.

All times are of ``time.monotonic``, which on Linux is one clock for all processes of a host.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable
from copy import copy
from time import monotonic

import gevent

from ssbench.scenario.body_files import BodyFiles, load_body_files
from ssbench.scenario.operation import Header
from ssbench.store.causes import (
    CLOSED,
    NOT_FOUND,
    RESET,
    TRANSIENT_CAUSES,
    UNANSWERED_CAUSES,
    AttemptError,
)
from ssbench.store.contract import NO_PRIOR_ATTEMPTS, PriorAttempts, RequestOutcome, StoreRequest
from ssbench.store.http.connection import HttpConnection
from ssbench.store.http.etags import ReceivedDigest, RegularSample
from ssbench.store.http.http_response import HttpResponse, KeptBody
from ssbench.store.http.metadata import MetadataShape
from ssbench.store.http.payload import BodySource, FileBodySource
from ssbench.store.http.pool import ConnectionPool, ServerEndpoint, TimeoutSweeper, parse_storage_url
from ssbench.store.http.shared import SharedState, discarding_flags
from ssbench.store.http.tls import make_tls_context
from ssbench.store.http.verify import BodyVerifier
from ssbench.store.request_options import RequestOptions, parse_addresses
from ssbench.store.swift import answers
from ssbench.store.swift.answers import AttemptTotals
from ssbench.store.swift.target import StorageTarget, quote_name
from ssbench.store.timing import MIN_BYTES_A_SECOND, NETWORK_TIMEOUTS, pause_before

#: These look for an object that should exist; in a store that lags it may exist soon.
_RETRIED_404_METHODS = frozenset({"GET", "DELETE"})

#: How a server ends a connection that it had kept open long enough.
_STALE_CAUSES = frozenset({CLOSED, RESET})

#: Methods of requests that write; the first byte of the answer says nothing beside the last one.
_WRITING_METHODS = frozenset({"PUT", "POST"})

#: The most bytes of what a server says of a request that does not read an object.
_MOST_SAID = 16 * 1024 * 1024


class ClientSettings(RequestOptions, frozen=True, kw_only=True):
    """How a client makes requests and connects.

    ``max_connections`` is the limit for each server. ``trans_id_extra`` is what Swift is asked to let its
    transaction ids end in. With ``verify_seed`` bodies follow from the names of their objects, and those of
    reads are checked. With ``every_etag`` so is the ETag of each read, not only of a sample.
    A share of bodies is ``zeros``, or all are the bytes of ``files``. With ``verify_seed`` the metadata of
    what is read has to have one of ``shapes``, where there are some. With ``tls_resume`` new connections
    continue earlier TLS sessions.
    """

    max_connections: int = 64
    insecure: bool = False
    ca_certificates: str | None = None
    trans_id_extra: str | None = None
    verify_seed: int | None = None
    every_etag: bool = False
    zeros: float = 0.0
    files: BodyFiles | None = None
    shapes: frozenset[MetadataShape] = frozenset()
    tls_resume: bool = False


class SwiftClient:
    """Requests to any number of storage URLs, from any number of greenlets of one thread.

    Raises UsageError where the files of bodies are not those of the settings.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        request_timeout = settings.request_timeout or NETWORK_TIMEOUTS * settings.network_timeout
        shortest = min(settings.connect_timeout, settings.network_timeout, request_timeout)
        interval = min(max(shortest / 20, 0.01), 0.5)
        seed = settings.verify_seed
        files = settings.files
        payload = (
            BodySource(seed, settings.zeros) if files is None else FileBodySource(load_body_files(files))
        )
        self._shared = SharedState(
            hub=gevent.get_hub(),
            payload=payload,
            block_size=settings.block_size,
            connect_ticks=math.ceil(settings.connect_timeout / interval) + 1,
            network_ticks=math.ceil(settings.network_timeout / interval) + 1,
            request_ticks=math.ceil(request_timeout / interval) + 1,
            ticks_per_byte=1 / (MIN_BYTES_A_SECOND * interval),
            sink_flags=discarding_flags(),
            verifier=None if seed is None else BodyVerifier(payload, seed),
        )
        #: Chooses the reads whose ETag is checked.
        self.sample = RegularSample(1) if settings.every_etag else RegularSample()
        self._sweeper = TimeoutSweeper(self._shared, interval)
        self._tls: ssl.SSLContext | None = None
        self._pools: dict[tuple[ServerEndpoint, bool], ConnectionPool] = {}
        #: Whether connections are kept for later requests.
        self._keeps = True
        self._targets: dict[str, StorageTarget] = {}

    def without_keeping(self) -> SwiftClient:
        """Return a client that makes a connection for each request, and closes it after the answer.

        It has all else in common with this one, and is closed with it.
        """
        other = copy(self)
        other._keeps, other._targets = False, {}
        return other

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
        expected: int = 0,
        owner: str | None = None,
        prior: PriorAttempts = NO_PRIOR_ATTEMPTS,
        begun: HttpConnection | None = None,
    ) -> RequestOutcome:
        """Do one request for an object, see :meth:`perform`."""
        return self.perform(
            storage_url,
            StoreRequest(
                method=method,
                container=container,
                name=name,
                size=size,
                delete_after=delete_after,
                missing_ok=missing_ok,
                expected=expected,
                owner=owner,
            ),
            token,
            prior,
            begun,
        )

    def perform(
        self,
        storage_url: str,
        request: StoreRequest,
        token: str | None = None,
        prior: PriorAttempts = NO_PRIOR_ATTEMPTS,
        begun: HttpConnection | None = None,
    ) -> RequestOutcome:
        """Do one request; see :class:`~ssbench.store.contract.StoreClient`.

        A 404 is a success too for a DELETE of which an earlier attempt was sent and not answered, because
        that one may have deleted the object. ``begun`` is a connection on which this very request was sent,
        and is to be resumed. A storage URL, a token or a field that cannot be used raises UsageError.
        """
        target = self._targets.get(storage_url) or self._open_target(storage_url)
        method, size = request.method, request.size
        head = target.head(request, None if request.anonymous else token)
        effort = AttemptTotals.after(prior)
        effort.longest = request.keep or request.expected or (0 if method == "GET" else _MOST_SAID)
        self._choose_check(request, effort, begun)
        while True:
            asked = None
            try:
                if begun is None:
                    answer = self._attempt(target.pool, head, method, size, effort)
                else:
                    connection, begun = begun, None
                    answer = self._resume(connection, target.pool, head, method, size, effort)
            except AttemptError as error:
                fault = error.with_traceback(None)  # else a cycle: it refers to this frame
            else:
                status = answer.status
                if not answers.is_success_status(status, request) and not answers.is_already_done(
                    status, request, effort.unanswered, prior[-1]
                ):
                    fault, asked = answers.make_refusal_error(answer, request), answer.retry_after
                elif (wrong := answers.find_body_error(answer, request, effort.check)) is not None or (
                    self.settings.shapes and (wrong := self._wrong_metadata(answer, request)) is not None
                ):
                    fault = wrong
                else:
                    outcome = effort.success(answer, size if method in _WRITING_METHODS else None)
                    return outcome if not request.keep else answers.add_reply(outcome, answer, effort.check)
            if not self._worth_a_retry(method, fault.cause, effort) or self._pause(effort, asked):
                return effort.failure(fault)
            effort.retries += 1
            effort.retried = effort.retried or {}
            effort.retried[fault.cause] = effort.retried.get(fault.cause, 0) + 1

    def _choose_check(
        self, request: StoreRequest, effort: AttemptTotals, begun: HttpConnection | None
    ) -> None:
        """Decide how the body of the answer is looked at, and whether that of the request has an ETag."""
        effort.etag = request.etag
        if request.keep:
            effort.keeps = request.keep
        elif request.content == "":
            pass
        elif request.part is not None:
            effort.checked, effort.first = self._shared.verifier is not None, request.part[0]
        elif (
            request.method == "GET"
            and request.name
            and not request.path
            and (request.content or not request.query)
        ):
            effort.checked = self._shared.verifier is not None or (begun is None and self.sample())
        if self._shared.verifier is not None and request.name:
            effort.name = f"{request.container}/{request.content or request.name}".encode()

    def _wrong_metadata(self, answer: HttpResponse, request: StoreRequest) -> AttemptError | None:
        settings = self.settings
        return answers.find_metadata_error(answer, request, settings.verify_seed or 0, settings.shapes)

    def template(
        self,
        storage_url: str,
        method: str,
        container: str,
        stem: str,
        token: str | None,
        delete_after: int | None = None,
        owner: str | None = None,
        headers: tuple[Header, ...] = (),
    ) -> tuple[bytes, ConnectionPool]:
        """Return what makes requests for objects whose names differ in their numbers, and where they go.

        See :meth:`StorageTarget.template`. Raises UsageError, as :meth:`request` does.
        """
        target = self._targets.get(storage_url) or self._open_target(storage_url)
        return target.template(method, container, stem, token, delete_after, owner, headers), target.pool

    def path(self, storage_url: str) -> str:
        """Return the path of a storage URL, as requests have it."""
        return parse_storage_url(storage_url)[2]

    quoted = staticmethod(quote_name)

    def take_failed(self) -> tuple[str, ...]:
        """Return the address of each connection that failed since, to hosts with several addresses."""
        failed = self._shared.failed
        found = tuple(failed)
        failed.clear()
        return found

    @property
    def payload(self) -> BodySource:
        """Where the bodies of uploads come from."""
        return self._shared.payload

    def _worth_a_retry(self, method: str, cause: str, effort: AttemptTotals) -> bool:
        if cause == NOT_FOUND and method in _RETRIED_404_METHODS:
            return (effort.retried or {}).get(cause, 0) < self.settings.retry_404
        return cause in TRANSIENT_CAUSES and effort.retries < self.settings.retries

    def _pause(self, effort: AttemptTotals, asked: str | None) -> bool:
        """Wait before the next attempt; return whether the client was closed meanwhile."""
        began = monotonic()
        closed: bool = self._shared.closing.wait(pause_before(effort.retries + 1, asked))
        effort.pausing += monotonic() - began
        return closed

    def close(self) -> None:
        """Close all connections; requests end at once as errors, whatever they wait for."""
        self._shared.closing.set()
        self._sweeper.close()
        for pool in self._pools.values():
            pool.close()
        for connection in list(self._shared.connections):
            connection.cancel()
        self._shared.payload.close()

    def _attempt(
        self, pool: ConnectionPool, head: bytes, method: str, size: int, effort: AttemptTotals
    ) -> HttpResponse:
        """Send the request once, or again at once where only a connection at rest had gone stale."""
        pool.places.acquire()
        try:
            if not pool.idle:
                return self._exchange_anew(pool, head, method, size, effort)
            connection = pool.idle.pop()
            connection.claim()
            self._begin_check(connection, effort)
            answer = _unless_stale(connection, effort, lambda: connection.exchange(head, method, size))
            return answer or self._exchange_anew(pool, head, method, size, effort)
        finally:
            pool.places.release()

    def _resume(
        self,
        connection: HttpConnection,
        pool: ConnectionPool,
        head: bytes,
        method: str,
        size: int,
        effort: AttemptTotals,
    ) -> HttpResponse:
        """Do what :meth:`_attempt` does after a request was sent on a kept connection."""
        effort.address, connection.longest = connection.address, effort.longest
        # First, and without a wait: the bytes that came are where those of others will be.
        answer = _unless_stale(connection, effort, lambda: connection.resume(method))
        if answer is not None:
            return answer
        with pool.places:
            return self._exchange_anew(pool, head, method, size, effort)

    def _exchange_anew(
        self, pool: ConnectionPool, head: bytes, method: str, size: int, effort: AttemptTotals
    ) -> HttpResponse:
        """Send the request on a new connection."""
        began = monotonic()
        if effort.began is None:
            effort.began = began
        try:
            connection = pool.connect()
        finally:
            effort.connecting += monotonic() - began
        effort.connections += 1
        effort.resumed += connection.resumed
        self._begin_check(connection, effort)
        try:
            return connection.exchange(head, method, size)
        except AttemptError as fault:
            effort.unanswered |= fault.cause in UNANSWERED_CAUSES
            raise
        finally:
            if not self._keeps:
                pool.close_idle()

    def _begin_check(self, connection: HttpConnection, effort: AttemptTotals) -> None:
        connection.name, connection.etag, connection.longest = effort.name, effort.etag, effort.longest
        if connection.address:
            effort.address = connection.address
        if effort.keeps:
            effort.check = KeptBody(effort.keeps)
        elif effort.checked:
            verifier = self._shared.verifier
            if verifier is None:
                effort.check = ReceivedDigest()
            else:
                effort.check = (
                    verifier.check(effort.name)
                    if effort.first is None
                    else verifier.check_part(effort.name, effort.first)
                )
        connection.check = effort.check

    def _open_target(self, storage_url: str) -> StorageTarget:
        endpoint, host, path = parse_storage_url(storage_url)
        pool = self._pools.get((endpoint, self._keeps))
        if pool is None:
            settings = self.settings
            if endpoint.scheme == "https" and self._tls is None:
                self._tls = make_tls_context(settings.insecure, settings.ca_certificates)
            pool = self._pools[endpoint, self._keeps] = ConnectionPool(
                endpoint,
                self._shared,
                settings.max_connections,
                settings.connect_timeout,
                self._tls if endpoint.scheme == "https" else None,
                parse_addresses(settings.resolve).get(endpoint.host, ()) if settings.resolve else (),
                resumes=settings.tls_resume,
            )
        extra = self.settings.trans_id_extra
        fields = f"X-Trans-Id-Extra: {extra}\r\n" if extra else ""
        target = self._targets[storage_url] = StorageTarget(pool, host, path, fields)
        return target


def _unless_stale(
    connection: HttpConnection, effort: AttemptTotals, exchange: Callable[[], HttpResponse]
) -> HttpResponse | None:
    """Return the answer of an exchange on a kept connection; None where the server had closed that."""
    try:
        return exchange()
    except AttemptError as fault:
        effort.unanswered |= fault.cause in UNANSWERED_CAUSES
        if connection.answered or fault.cause not in _STALE_CAUSES:
            raise
    finally:
        if effort.began is None:
            effort.began = connection.sent_at
    effort.resent += 1
    return None
