"""Requests for objects, fast: the client that the worker's greenlets share.

::

    client = make_store_client(ClientSettings(max_connections=64))
    outcome = client.request("http://swift:8080/v1/AUTH_test", "PUT", "ssbench_000001", "tiny_000001",
                             token, size=4096)

A request makes attempts until one succeeds or fails for good, and always ends as a
:class:`~ssbench.store.contract.RequestOutcome`. :class:`AttemptTotals` adds up its attempts; functions decide
which answers are successes, and what is wrong with others. The bytes of requests are those of the dialect of
an address (:mod:`ssbench.store.http.dialect`), which :func:`ssbench.store.stores.open_dialect` chooses.

All times are of ``time.monotonic``, which on Linux is one clock for all processes of a host.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable, Collection, Sequence
from copy import copy
from time import monotonic
from typing import NamedTuple

import gevent
from msgspec import Struct, field, structs

from ssbench.scenario.model import DEFAULT_SENT_SCENARIO, SentScenario
from ssbench.scenario.structured_values import load_body_files
from ssbench.store.contract import (
    CLOSED,
    MIN_BYTES_A_SECOND,
    NETWORK_TIMEOUTS,
    NO_PRIOR_ATTEMPTS,
    NOT_FOUND,
    OLDER_VERSION,
    RESET,
    TRANSIENT_CAUSES,
    UNANSWERED_CAUSES,
    UNAUTHORIZED_CAUSE,
    WRONG_CONTENT,
    WRONG_ETAG,
    WRONG_METADATA,
    WRONG_SIZE,
    WRONG_VERDICT,
    AttemptError,
    BodyPiece,
    PriorAttempts,
    RareFields,
    RequestOutcome,
    StoreReply,
    StoreRequest,
    cause_of_status,
    pause_before,
)
from ssbench.store.http.bodies import (
    PIECE_BYTES,
    BodyComparison,
    BodyFrames,
    BodyHash,
    BodySource,
    BodyVerifier,
    ChosenBody,
    FileBodySource,
    MetadataShape,
    ReceivedDigest,
    RegularSample,
    describe_wrong_metadata,
    has_item,
    start_md5,
)
from ssbench.store.http.connection import HttpConnection, SharedState, discarding_flags
from ssbench.store.http.dialect import (
    DialectOpener,
    HttpDialect,
    RequestPattern,
    ServerEndpoint,
    is_success_status,
    quote_name,
)
from ssbench.store.http.http_response import (
    BodyCheck,
    HttpResponse,
    KeptBody,
    find_field,
    parse_fields,
)
from ssbench.store.http.pool import (
    ConnectionPool,
    TimeoutSweeper,
    make_tls_context,
)
from ssbench.store.request_options import RequestOptions, parse_addresses

_MISSING_STATUS = 404

#: Methods of requests whose answers have the metadata of the object.
_READING_METHODS = frozenset({"GET", "HEAD"})


class AttemptTotals(Struct, gc=False):
    """Running totals of the attempts of a request; without a comment, as in :class:`RequestOutcome`."""

    retries: int
    began: float | None = None  # when the first attempt began; None before
    retried: dict[str, int] | None = None
    resent: int = 0
    rare: RareFields = field(default_factory=RareFields)
    unanswered: bool = False  # a request was sent and had no answer, so that it may have been carried out
    in_doubt: bool = False  # so may one that another worker had, or this one before
    name: bytes = b""  # that of the object, where bodies are verified
    checked: bool = False  # the body of a read is to be checked
    first: int | None = None  # where in the object a part begins
    keeps: int = 0  # bytes of the body that are kept
    longest: int = 0  # bytes that a body that is right has at most; 0: any number
    piece: BodyPiece | None = None  # as in the request
    least: int = 0  # as in the request
    body: tuple[ChosenBody, BodyFrames] | None = None  # that of the next attempt, where it is chosen before
    #: Seconds that went into checksums of the body, before anything was sent: no part of any latency.
    summing: float = 0.0
    check: BodyCheck | None = None  # that of the last answer

    @classmethod
    def after(cls, prior: PriorAttempts) -> AttemptTotals:
        """Return the totals of a request that begins now, after what was spent on it before.

        What it waited since then, for a token and for its turn, is a pause. Clocks of two hosts err, so
        neither moment can be later than now.
        """
        retries, began, ended, in_doubt = prior
        effort = cls(retries, in_doubt=in_doubt)
        if began is not None:
            now = monotonic()
            effort.began = min(began, now)
            effort.rare.pausing = 0.0 if ended is None else max(0.0, now - ended)
        return effort

    def since(self, now: float) -> float:
        """Return the seconds from the first attempt until now."""
        return now - (now if self.began is None else self.began)

    def success(self, answer: HttpResponse, sent: int | None) -> RequestOutcome:
        """Return the outcome of a request with this answer; ``sent`` is the size of a PUT's body.

        Of a body that the answer did not wait for only what was sent is counted, at least a byte: 0 stands
        for the whole of it.
        """
        began = answer.sent_at if self.began is None else self.began
        if self.retries or self.resent:
            self.rare.last_attempt = answer.last_byte_at - answer.sent_at
        self.rare.unchecked = int(answer.unchecked)
        repeated = self.in_doubt or not UNANSWERED_CAUSES.isdisjoint(self.retried or ())
        self.rare.repeated = int(sent is not None and repeated)
        # The kernel may say that the answer came before the worker knew that all was sent.
        self.rare.sending = min(answer.sent_at + answer.sending, answer.last_byte_at) - began
        return RequestOutcome(
            job_id=0,
            first_byte=answer.first_byte_at - began if sent is None else None,
            last_byte=answer.last_byte_at - began,
            completed=answer.last_byte_at,
            size=answer.size if sent is None else max(min(sent, 1), sent - answer.unsent),
            retries=self.retries,
            trans_id=answer.trans_id,
            retried=self.retried,
            status=answer.status,
            resent=self.resent,
            rare=self.rare,
            owner=answer.owner,
            unsized=answer.unsized,
            summing=self.summing,
        )

    def failure(self, fault: AttemptError) -> RequestOutcome:
        """Return the outcome of a request that ended with this fault."""
        now = monotonic()
        spent = self.since(now)
        unauthorized = fault.cause == UNAUTHORIZED_CAUSE
        return RequestOutcome(
            job_id=0,
            first_byte=None,
            last_byte=spent if unauthorized else None,
            completed=now,
            retries=self.retries,
            trans_id=fault.trans_id,
            cause=fault.cause,
            detail=str(fault),
            retried=self.retried,
            unauthorized=unauthorized,
            status=fault.status,
            spent=None if self.began is None else spent,
            resent=self.resent,
            rare=self.rare,
            summing=self.summing,
            reply=fault.reply,
        )


def is_already_done(status: int, request: StoreRequest, unanswered: bool, in_doubt: bool) -> bool:
    """Whether a status other than that of a success says that there is nothing more to do."""
    if status == _MISSING_STATUS and (request.missing_ok or (request.method == "DELETE" and unanswered)):
        return True
    return status in request.done_before and (unanswered or in_doubt)


def make_refusal_error(answer: HttpResponse, request: StoreRequest) -> AttemptError:
    """Return the fault of an answer whose status is no success."""
    status = answer.status
    detail = answer.detail or (
        f"{status}, which is no whole object" if request.part is None else f"{status}, which is no part"
    )
    fault = _make_error(request.causes.get(status) or cause_of_status(status), detail, answer)
    if answer.head and status in request.causes:
        fault.reply = StoreReply(parse_fields(answer.head), b"")
    return fault


def find_body_error(
    answer: HttpResponse, request: StoreRequest, check: BodyCheck | None
) -> AttemptError | None:
    """Return the fault of an answer of which the body or the ETag is not that of the object; else None."""
    expected = request.expected
    if expected and answer.size != expected:
        return _make_error(WRONG_SIZE, f"{answer.size} bytes of an object of {expected}", answer)
    if request.part is not None and (wrong := _describe_other_part(answer, request.part)):
        return _make_error(WRONG_CONTENT, wrong, answer)
    if check is not None and check.wrong is not None:
        what = f"other bytes than were written from byte {check.wrong} on"
        if request.keep:
            return _make_error(WRONG_SIZE, f"more than {request.keep} bytes", answer)
        return _make_error(WRONG_CONTENT, what, answer)
    if isinstance(check, BodyComparison) and check.older:
        return _make_error(OLDER_VERSION, "a version that had been replaced before it was asked for", answer)
    return _find_etag_error(answer, request, check)


def _find_etag_error(
    answer: HttpResponse, request: StoreRequest, check: BodyCheck | None
) -> AttemptError | None:
    """Return the fault of a body whose MD5 differs from its ETag, or that belongs to another object."""
    if answer.wrong_etag is not None:
        return _make_error(WRONG_ETAG, answer.wrong_etag, answer)
    path = f"{request.container}/{request.content or request.name}"
    if request.own and isinstance(check, ReceivedDigest) and check.is_of_another(path):
        return _make_error(WRONG_CONTENT, "the body of another object, with the ETag of that", answer)
    return None


def find_metadata_error(
    answer: HttpResponse, request: StoreRequest, seed: int, shapes: Collection[MetadataShape]
) -> AttemptError | None:
    """Return the fault of an answer that has other metadata than the object was written with; else None.

    These follow from a ``seed`` and have one of ``shapes``. Swift hides them from reads by temporary URL;
    which ones a version or a part has is not known.
    """
    if (
        request.method not in _READING_METHODS
        or not 200 <= answer.status < 300
        or not request.name
        or request.path
        or request.query
        or request.signature
        or request.version
        or request.part_number
        or request.content == ""
    ):
        return None
    path = f"{request.container}/{request.content or request.name}"
    wrong = describe_wrong_metadata(seed, path, answer.head, shapes)
    return None if wrong is None else _make_error(WRONG_METADATA, wrong, answer)


def _describe_other_part(answer: HttpResponse, part: tuple[int, int]) -> str | None:
    """Say that an answer is of another part of the object; a part may end earlier, with the object."""
    said = find_field(answer.head, b"content-range") or "no range"
    first, last = part
    if answer.size <= last - first + 1 and said.startswith(f"bytes {first}-{first + answer.size - 1}/"):
        return None
    return f"{said} of {answer.size} bytes, where bytes {first}-{last} were asked for"


def add_reply(outcome: RequestOutcome, answer: HttpResponse, check: BodyCheck | None) -> RequestOutcome:
    """Return the outcome with the fields of the answer, and the body that was kept."""
    body = bytes(check.body) if isinstance(check, KeptBody) else b""
    return structs.replace(outcome, reply=StoreReply(parse_fields(answer.head), body))


def _make_error(cause: str, detail: str, answer: HttpResponse) -> AttemptError:
    fault = AttemptError(cause, detail)
    fault.status, fault.trans_id = answer.status, answer.trans_id
    return fault


# -- The client ------------------------------------------------------------------------------------


#: These look for an object that should exist; in a store that lags it may exist soon.
_RETRIED_404_METHODS = frozenset({"GET", "DELETE"})

#: How a server ends a connection that it had kept open long enough.
_STALE_CAUSES = frozenset({CLOSED, RESET})

#: No server ends a connection that was at rest for less than this (seconds) because of its time-out: common
#: ones are from 1 s (HAProxy) and 2 s (gunicorn) to 60 s (Swift) and 75 s (nginx).
_LEAST_IDLE_SECONDS = 1.0

#: It takes a round trip to hear of that, or two where a segment was lost. A server that keeps a request for
#: longer than this (seconds) and then closes had begun with it.
_STALE_SECONDS = 1.0

#: Methods of requests that write; the first byte of the answer says nothing beside the last one.
_WRITING_METHODS = frozenset({"PUT", "POST"})

#: The most bytes of what a server says of a request that does not read an object.
_MOST_SAID = 16 * 1024 * 1024


class ClientSettings(RequestOptions, frozen=True, kw_only=True):
    """How a client makes requests and connects.

    ``max_connections`` is the limit for each server. ``trans_id_extra`` is what Swift is asked to let its
    transaction ids end in. With ``verify_seed`` bodies follow from the names of their objects, and those of
    reads are checked. With ``every_etag`` so is the ETag of each read, not only of a sample.
    ``scenario`` says what is in bodies, and on which connections requests are. With ``verify_seed`` the
    metadata of what is read has to have one of ``shapes``, where there are some.
    """

    max_connections: int = 64
    insecure: bool = False
    ca_certificates: str | None = None
    trans_id_extra: str | None = None
    verify_seed: int | None = None
    every_etag: bool = False
    scenario: SentScenario = DEFAULT_SENT_SCENARIO
    shapes: frozenset[MetadataShape] = frozenset()


class ClientTarget(NamedTuple):
    """A storage URL: how it is spoken to, and the connections to it."""

    dialect: HttpDialect
    pool: ConnectionPool


class HttpClient:
    """Requests to any number of storage URLs, from any number of greenlets of one thread.

    ``open_dialect`` returns how a storage URL is spoken to. Raises UsageError where the files of bodies are
    not those of the settings.
    """

    def __init__(self, settings: ClientSettings, open_dialect: DialectOpener) -> None:
        self.settings = settings
        self._open_dialect = open_dialect
        request_timeout = settings.request_timeout or NETWORK_TIMEOUTS * settings.network_timeout
        shortest = min(settings.connect_timeout, settings.network_timeout, request_timeout)
        interval = min(max(shortest / 20, 0.01), 0.5)
        seed = settings.verify_seed
        body = settings.scenario.body
        if body is None or body.files is None:
            payload = BodySource(seed, body.zeros if body else 0.0)
        else:
            payload = FileBodySource(load_body_files(body.files))
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
        self.sample = RegularSample(1, 1) if settings.every_etag else RegularSample()
        self._sweeper = TimeoutSweeper(self._shared, interval)
        self._tls: ssl.SSLContext | None = None
        self._pools: dict[tuple[ServerEndpoint, bool], ConnectionPool] = {}
        #: Whether connections are kept for later requests.
        self._keeps = True
        self._targets: dict[str, ClientTarget] = {}

    def without_keeping(self) -> HttpClient:
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
        dialect, pool = target.dialect, target.pool
        method, size = request.method, request.size
        effort = AttemptTotals.after(prior)
        effort.longest = request.keep or request.expected or (0 if method == "GET" else _MOST_SAID)
        self._choose_check(request, effort, begun)

        def make_head() -> bytes:
            return self._make_head(dialect, request, None if request.anonymous else token, effort)

        while True:
            asked = None
            try:
                if begun is None:
                    # A signature does not last, so that each attempt has its own.
                    answer = self._attempt(pool, make_head(), method, size, effort)
                else:
                    connection, begun = begun, None
                    answer = self._resume(connection, pool, make_head, method, size, effort)
            except AttemptError as error:
                fault = error.with_traceback(None)  # else a cycle: it refers to this frame
            else:
                status = answer.status
                if not is_success_status(status, request) and not is_already_done(
                    status, request, effort.unanswered, prior[-1]
                ):
                    fault, asked = make_refusal_error(answer, request), answer.retry_after
                elif (wrong := find_body_error(answer, request, effort.check)) is not None or (
                    self.settings.shapes and (wrong := self._wrong_metadata(answer, request)) is not None
                ):
                    fault = wrong
                else:
                    outcome = effort.success(answer, size if method in _WRITING_METHODS else None)
                    if not request.keep:
                        return outcome
                    outcome = add_reply(outcome, answer, effort.check)
                    # What was done before has an answer that says so.
                    said = self._find_fault(dialect, request, outcome) if status < 300 else None
                    if said is None:
                        return outcome
                    fault = _make_error(WRONG_VERDICT, said, answer)
            if not self._worth_a_retry(method, fault.cause, effort) or self._pause(effort, asked):
                return effort.failure(fault)
            effort.retries += 1
            effort.retried = effort.retried or {}
            effort.retried[fault.cause] = effort.retried.get(fault.cause, 0) + 1

    def _make_head(
        self, dialect: HttpDialect, request: StoreRequest, token: str | None, effort: AttemptTotals
    ) -> bytes:
        """Return a request up to its body, which is chosen here where it says something of that."""
        size = request.size
        make_hash = dialect.choose_hash(request, token)
        if not size or request.body is not None or (make_hash is None and not request.etag):
            effort.body = None
            return dialect.head(request, token)
        body = self._shared.choose_body(size, effort.name, request.piece)
        first, _, md5 = body
        found = None if make_hash is None else make_hash(first)
        own = (start_md5(first) if md5 is None else md5.copy()) if request.etag else None
        seconds = self._sum_up([each for each in (found, own) if each is not None], body, size)
        if effort.began is None:
            effort.summing = seconds
        else:
            effort.rare.pausing += seconds
        if own is not None:
            field = dialect.digest_field(own.digest())
            request = structs.replace(request, headers=(*request.headers, field))
        digest = None if found is None else found.digest()
        effort.body = body, [(b"", size)] if digest is None else dialect.frame_body(request, digest)
        return dialect.head(request, token, digest)

    def _sum_up(self, hashes: Sequence[BodyHash], body: ChosenBody, size: int) -> float:
        """Add the rest of a body to hashes of its first bytes; return the seconds that this took.

        Other greenlets have their turn after each piece.
        """
        payload, (first, offset, _) = self._shared.payload, body
        left, spent = size - len(first), 0.0
        while left:
            count = min(left, PIECE_BYTES)
            began = monotonic()
            for each in hashes:
                payload.add_to(each, offset, count)
            spent += monotonic() - began
            left -= count
            offset = (offset + count) % payload.block_bytes
            if left:
                gevent.sleep(0)
        return spent

    @staticmethod
    def _find_fault(dialect: HttpDialect, request: StoreRequest, outcome: RequestOutcome) -> str | None:
        return None if outcome.reply is None else dialect.find_fault(request, outcome.reply.body)

    def _choose_check(
        self, request: StoreRequest, effort: AttemptTotals, begun: HttpConnection | None
    ) -> None:
        """Decide how the body of the answer is looked at, and what that of the request is."""
        effort.piece, effort.least = request.piece, request.least
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
            effort.checked = self._shared.verifier is not None or (
                self.sample(request.expected) if begun is None else begun.sampled
            )
        if self._shared.verifier is not None and request.name:
            effort.name = f"{request.container}/{request.content or request.name}".encode()

    def _wrong_metadata(self, answer: HttpResponse, request: StoreRequest) -> AttemptError | None:
        settings = self.settings
        return find_metadata_error(answer, request, settings.verify_seed or 0, settings.shapes)

    def has_right_metadata(self, path: bytes, head: bytes) -> bool:
        """Whether the head of an answer has metadata that the object at a path was written with."""
        shapes = self.settings.shapes
        if (0, 0) in shapes and not has_item(head):
            return True
        seed = self.settings.verify_seed or 0
        return not shapes or describe_wrong_metadata(seed, path.decode(), head, shapes) is None

    def pattern(
        self, storage_url: str, request: StoreRequest, stem: str, token: str | None
    ) -> tuple[RequestPattern, ConnectionPool]:
        """Return what makes requests for objects whose names differ in their numbers, and where they go.

        See :meth:`HttpDialect.pattern`. Raises UsageError, as :meth:`request` does.
        """
        target = self._targets.get(storage_url) or self._open_target(storage_url)
        return target.dialect.pattern(request, stem, token), target.pool

    def dialect(self, storage_url: str) -> HttpDialect:
        """Return how a storage URL is spoken to; raises UsageError for one that cannot be used."""
        return (self._targets.get(storage_url) or self._open_target(storage_url)).dialect

    def path(self, storage_url: str) -> str:
        """Return the path of a storage URL, as requests have it."""
        return self.dialect(storage_url).path

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

    @property
    def verifier(self) -> BodyVerifier | None:
        """What makes and checks bodies where they are verified."""
        return self._shared.verifier

    def _worth_a_retry(self, method: str, cause: str, effort: AttemptTotals) -> bool:
        if cause == NOT_FOUND and method in _RETRIED_404_METHODS:
            return (effort.retried or {}).get(cause, 0) < self.settings.retry_404
        return cause in TRANSIENT_CAUSES and effort.retries < self.settings.retries

    def _pause(self, effort: AttemptTotals, asked: str | None) -> bool:
        """Wait before the next attempt; return whether the client was closed meanwhile."""
        began = monotonic()
        closed: bool = self._shared.closing.wait(pause_before(effort.retries + 1, asked))
        effort.rare.pausing += monotonic() - began
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
            answer = self._unless_stale(connection, effort, lambda: connection.exchange(head, method, size))
            return answer or self._exchange_anew(pool, head, method, size, effort)
        finally:
            pool.places.release()

    def _resume(
        self,
        connection: HttpConnection,
        pool: ConnectionPool,
        make_head: Callable[[], bytes],
        method: str,
        size: int,
        effort: AttemptTotals,
    ) -> HttpResponse:
        """Do what :meth:`_attempt` does after a request was sent on a kept connection."""
        self._begin_check(connection, effort)
        # First, and without a wait: the bytes that came are where those of others will be.
        answer = self._unless_stale(connection, effort, lambda: connection.resume(method))
        if answer is not None:
            return answer
        head = make_head()
        with pool.places:
            return self._exchange_anew(pool, head, method, size, effort)

    def _unless_stale(
        self, connection: HttpConnection, effort: AttemptTotals, exchange: Callable[[], HttpResponse]
    ) -> HttpResponse | None:
        """Return the answer of an exchange on a kept connection; None where the server had closed that.

        That can be where the connection was at rest for so long that a time-out of the server may have ended
        it. Where the server's end says that it had the request, or the connection was just used, the server
        dropped the request, which is a failure.
        """
        try:
            return exchange()
        except AttemptError as fault:
            effort.unanswered |= fault.cause in UNANSWERED_CAUSES
            if connection.answered or fault.cause not in _STALE_CAUSES:
                raise
            at_rest = connection.sent_at - connection.received_at
            if connection.acknowledged or at_rest < _LEAST_IDLE_SECONDS:
                raise
            # Not by when the end was read: the worker may have been stopped, or starved, since it came.
            if self._sweeper.ran_since(connection.sent_at) > _STALE_SECONDS:
                raise
        finally:
            if effort.began is None:
                effort.began = connection.sent_at
        effort.resent += 1
        return None

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
            effort.rare.connecting += monotonic() - began
        effort.rare.connections += 1
        effort.rare.resumed += connection.resumed
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
        connection.name, connection.longest = effort.name, effort.longest
        connection.body, connection.piece = effort.body, effort.piece
        if connection.address:
            effort.rare.address = connection.address
        if effort.keeps:
            effort.check = KeptBody(effort.keeps)
        elif effort.checked:
            verifier = self._shared.verifier
            if verifier is None:
                effort.check = ReceivedDigest()
            else:
                effort.check = (
                    verifier.check(effort.name, effort.least)
                    if effort.first is None
                    else verifier.check_part(effort.name, effort.first)
                )
        connection.check = effort.check

    def _open_target(self, storage_url: str) -> ClientTarget:
        settings = self.settings
        dialect = self._open_dialect(storage_url, settings.trans_id_extra, settings.scenario.s3_payload)
        endpoint = dialect.endpoint
        pool = self._pools.get((endpoint, self._keeps))
        if pool is None:
            connections = settings.scenario.connections
            if endpoint.scheme == "https" and self._tls is None:
                self._tls = make_tls_context(settings.insecure, settings.ca_certificates)
            pool = self._pools[endpoint, self._keeps] = ConnectionPool(
                endpoint,
                self._shared,
                settings.max_connections,
                settings.connect_timeout,
                self._tls if endpoint.scheme == "https" else None,
                parse_addresses(settings.resolve).get(endpoint.host, ()) if settings.resolve else (),
                resumes=connections is not None and connections.tls_resume,
            )
        target = self._targets[storage_url] = ClientTarget(dialect, pool)
        return target
