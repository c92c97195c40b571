"""What ssbench expects of a store, and what a store returns.

A store has two sides. The master's (:class:`Store`) authenticates, says what the store can do and prepares
the places of a run. The workers' (:class:`StoreClient`) carries out requests, thousands a second. What passes
from one to the other is a :class:`StoreSession`: addresses, and credentials that nothing outside the store
looks into.

A request is a :class:`StoreRequest` for a target: an object, a container or the account. It says what is
wanted; the store decides how that is sent (headers, signatures, quoting). It ends as an
:class:`RequestOutcome`, a success or a failure. That is a :class:`JobResult`, one record from the client to
the master, in which few results have :class:`RareFields`.

How requests fail are short labels that reports count. An :class:`AttemptError`, which carries one, is raised
where an attempt fails and caught where the client of a store counts attempts; beyond that a failure is data.
How long requests may take, and the pauses between them, are here because a master, which has no gevent, uses
them too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Generic, Literal, Protocol, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import fields, replace

from ssbench.base.errors import SsbenchError
from ssbench.scenario.operations import MAX_STEPS, Header, OperationSettings
from ssbench.scenario.value_rules import PayloadMode

#: What messages of workers may hold: msgspec checks these bounds while it decodes them.
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Small = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Clock = Annotated[float, Meta(ge=-1e12, le=1e12)]
Text = Annotated[str, Meta(max_length=4096)]
Name = Annotated[str, Meta(max_length=64)]

#: More connections that failed are not reported with one result.
MAX_UNREACHED = 1000

#: What was spent on a request before its credentials were refused: (retries, when the first attempt began,
#: when the last one ended, whether it may have been done). Moments are of the monotonic clock, None where
#: they are not known.
PriorAttempts = tuple[int, float | None, float | None, bool]

NO_PRIOR_ATTEMPTS: PriorAttempts = (0, None, None, False)

#: From how much to how much is to be added to the clock here to have that of the store, in seconds.
ClockBounds = tuple[float, float]

#: Causes of failures that have names of their own, by the status of the answer.
CausesByStatus = Mapping[int, str]

_NO_CAUSES: CausesByStatus = {}


#: The name of an object, and the id of one of its versions; an empty id is the object as it is now.
ObjectVersion = tuple[str, str]


class Listing(Struct, frozen=True, gc=False, kw_only=True):
    """Which entries of a container, or of the account, a request asks for: one page of them."""

    limit: int  # the most entries that are wanted
    prefix: str = ""
    delimiter: str = ""  # names are rolled up after the prefix where they have it
    marker: str = ""  # names come after this one
    following: str = ""  # that of the page before, in place of a marker
    #: What is listed: objects as they are now, or with all versions, or uploads of parts that have not ended.
    of: Literal["objects", "versions", "uploads"] = "objects"


class MultipartUpload(Struct, frozen=True, gc=False):
    """A step of the upload of an object in parts: to begin it, to send a part, to end it, or to give it up.

    A part has its number in the request.
    """

    step: Literal["begin", "part", "end", "abort"]
    id: str = ""  # the store's name for it; empty where it begins
    etags: tuple[str, ...] = ()  # those of all parts in order, where it ends
    checksums: tuple[str, ...] = ()  # what answers said of them beside that; empty: nothing, for all parts


class BodyPiece(Struct, frozen=True, gc=False):
    """The part of an object's body, in one version, that a request carries: all of it or a segment.

    A large object and its segments can so be verified by one name.
    """

    path: str  # container and name of the object
    version: int  # below 2**64; that of all of its pieces
    first: int  # where in the large object it begins


class StoreRequest(Struct, frozen=True, gc=False, kw_only=True):
    """One request of an operation.

    The target is an object; without a ``name`` a container; without a ``container`` the account. The body is
    ``body``, or ``size`` bytes that the client makes up; not both. What is wanted is said by fields that each
    store has names of its own for; ``query`` and ``headers`` are sent as they are, and what they mean is
    known to one kind of store.
    """

    method: str
    container: str = ""
    name: str = ""
    path: str = ""  # That of a request for something else, from the root of the server on, as it is sent
    query: str = ""  # as it is sent, without the question mark
    headers: tuple[Header, ...] = ()  # come after those that the store sends by itself
    metadata: tuple[Header, ...] = ()  # items of an object that is written, or changed, by their own names
    copy_from: str = ""  # object of the same container of which the object becomes a copy
    listing: Listing | None = None
    part_number: int = 0  # of an object of several parts, the one that is asked for, or sent, from 1 on
    version: str = ""  # id of the version of the object that is meant; empty: the latest
    upload: MultipartUpload | None = None
    deletes: tuple[ObjectVersion, ...] = ()  # objects of the container that one request deletes
    body: bytes | None = None
    size: int = 0
    delete_after: int | None = None  # seconds after which an object that is written is to expire
    owner: str | None = None  # what an object that is written says of its owner
    success: frozenset[int] = frozenset()  # statuses that are successes; empty: 200 to 299
    causes: CausesByStatus = _NO_CAUSES  # names of failures
    missing_ok: bool = False  # 404 is a success too
    #: Statuses that are successes where an earlier attempt may have been carried out.
    done_before: frozenset[int] = frozenset()
    expected: int = 0  # bytes of body that a success has; 0: any number
    #: The first and the last byte of the object that are asked for, which sets the header for that.
    part: tuple[int, int] | None = None
    #: Name of the object whose content is returned, where that is another one. Empty: it is not that of one
    #: object, and is not checked.
    content: str | None = None
    keep: int = 0  # bytes of the answer's body that are kept, 0 for none: a longer one is a failure
    anonymous: bool = False  # without credentials
    #: What the store has made for reads without credentials, see :meth:`ReadSignatures.queries`.
    signature: str = ""
    #: Send the store the MD5 of the body that the client makes up; it is to refuse another one.
    etag: bool = False
    piece: BodyPiece | None = None  # what the body that the client makes up is a piece of
    least: int = 0  # the version that the object has at least, where bodies are verified
    own: bool = False  # the object has its name of this program, and so what its body says of that is true
    #: What the request says of its body over the S3 API; None: what the settings of the client say.
    payload: PayloadMode | None = None


class StoreReply(Struct, frozen=True, gc=False):
    """What an answer said: its header ``fields`` by their names in lower case, and the ``body``."""

    fields: dict[str, str]
    body: bytes


class ListingPage(Struct, frozen=True, gc=False):
    """A page of a listing: name and size of each entry, in ascending order by the bytes of their names.

    Sizes are 0 where they are not told.
    """

    rows: list[tuple[str, int]]
    following: str = ""  # what the next page begins after, as the store says; empty: it does not say
    ids: list[str] = []  # of each entry that of the version or of the upload; empty: there are none


class Adding(Enum):
    """How a field adds up over attempts and requests; of one that does not, the last one counts."""

    EFFORT = "effort"  # over all attempts of all requests
    ANSWERS = "answers"  # over all requests, of each of which the last attempt counts


class RareFields(Struct, array_like=True, gc=False):
    """What few results have: a result without it pays one byte for all of this.

    A counter that the worker knows is a field here. How it adds up, its place in messages and in the row of a
    result (:mod:`ssbench.results.result_fields`, under the same name) follow. Whoever makes an outcome may
    change it until then.
    """

    #: Seconds that went into new connections.
    connecting: Annotated[Seconds, Adding.EFFORT] = 0.0
    #: Seconds that went into our own pauses before retries.
    pausing: Annotated[Seconds, Adding.EFFORT] = 0.0
    #: Seconds of the last attempt, connecting aside; None: it was the only one, or of an operation of several
    #: requests.
    last_attempt: Seconds | None = None
    #: Seconds for which stalls kept the worker from reacting to an event.
    held: Seconds = 0.0
    entries: Count = 0  # entries of listings that came
    #: Seconds of each step of an operation of several requests.
    steps: Annotated[list[Seconds], Meta(max_length=MAX_STEPS)] = []
    left: Small = 0  # deletions that failed, of what an operation had made that went wrong
    address: Name = ""  # where the last request went, if its host has several addresses
    #: Addresses, of hosts with several, to which connections of the worker failed since its last such result.
    unreached: Annotated[list[Name], Meta(max_length=MAX_UNREACHED)] = []
    connections: Annotated[Small, Adding.EFFORT] = 0  # connections that were made for it
    resumed: Annotated[Small, Adding.EFFORT] = 0  # those of them that resumed a TLS session
    #: Answers without a checksum by which a body would have been checked.
    unchecked: Annotated[Small, Adding.ANSWERS] = 0
    #: Uploads that were sent again although they may have been carried out.
    repeated: Annotated[Small, Adding.ANSWERS] = 0
    #: Seconds from its beginning until its last request was sent whole; 0: at once, and there was one.
    sending: Seconds = 0.0

    def is_plain(self) -> bool:
        """Whether it has no seconds, which the master bounds, and nothing of which it keeps count.

        Of some stores each result has one, which tells the address that was used, or of no ETag.
        """
        return not (
            self.connecting
            or self.pausing
            or self.last_attempt is not None
            or self.held
            or self.sending
            or self.left
            or self.unreached
        )

    def least_seconds(self) -> float:
        """Return how many seconds its operation took at least, by the seconds that are here.

        Those that add up follow each other.
        """
        return max(self.connecting + self.pausing, self.last_attempt or 0.0, self.held, self.sending)


NO_RARE_FIELDS = RareFields()

#: What adds up over the attempts of a request, and over the requests of an operation.
ADDED_OVER_ATTEMPTS, ADDED_OVER_REQUESTS = (
    tuple(
        field.name
        for field in fields(RareFields)
        if not {*kinds}.isdisjoint(getattr(field.type, "__metadata__", ()))
    )
    for kinds in ([Adding.EFFORT], Adding)
)


def add_rare_fields(parts: Sequence[RareFields | None], added: Sequence[str]) -> RareFields:
    """Return the rare fields of several attempts or requests: sums of ``added``, the rest of the last."""
    sums = {name: sum(getattr(part, name) for part in parts if part is not None) for name in added}
    return replace(parts[-1] or NO_RARE_FIELDS, **sums)


class BriefResult(Struct, array_like=True, frozen=True, gc=False):
    """The beginning of a :class:`JobResult`, which is sent in its place where all else has its default.

    It takes less time to pack and to unpack.
    """

    job_id: Count  # 0: not known yet
    #: Seconds from the start of the first attempt, connecting included, to the first byte of the last answer;
    #: None for a failure, and for a PUT.
    first_byte: Seconds | None
    #: The same to the last byte, None for a failure; the time spent so far where ``unauthorized``.
    last_byte: Seconds | None
    completed: Clock  # when it ended, by the worker's monotonic clock


class JobResult(BriefResult, array_like=True, frozen=True, gc=False):
    """How a job ended: what is sent to the master."""

    #: Bytes of body that a success moved; of a HEAD those of the object. Of an initial object its size now.
    size: Count = 0
    retries: Small = 0  # all attempts but one
    trans_id: Text | None = None  # that of the last answer
    cause: Text | None = None  # None: it is a success
    #: One line for people. Of an initial object whose the one was that was there, if another scenario's.
    detail: Text = ""
    #: Causes of the attempts before the last, with counts.
    retried: Annotated[dict[Text, Small], Meta(max_length=1000)] | None = None
    #: A 401 for which new credentials may help: the master sends the job again with them.
    unauthorized: bool = False
    storage_url: Small = 0  # the place of the one that was used, in the list of the run or the account
    #: Of an initial object: the size of what was there under its name, None where nothing was.
    found: Count | None = None
    status: Annotated[int, Meta(ge=0, le=999)] = 0  # that of the last answer; 0: there was none
    #: Seconds that a failure took, from the first attempt on; None for a success, and where not known.
    spent: Seconds | None = None
    #: Requests that were sent again at once because a kept connection had gone stale at rest: no retries.
    resent: Annotated[int, Meta(ge=0, le=65535)] = 0
    rare: RareFields | None = None
    late: Seconds | None = None  # seconds after it was due that it began; None in a closed loop


ResultT = TypeVar("ResultT", bound=JobResult)


def change_rare_fields(result: ResultT, **changes: object) -> ResultT:
    """Return a result with other values of what few results have."""
    return replace(result, rare=replace(result.rare or NO_RARE_FIELDS, **changes))


class RequestOutcome(JobResult, array_like=True, frozen=True, gc=False):
    """How a request ended, or an operation of several: what there is to say of its job, and more."""

    owner: str | None = None  # the owner of the object that a HEAD found, as its metadata says
    unsized: bool = False  # the answer to a HEAD did not say how many bytes the object has, as HTTP allows
    #: Seconds that went into checksums of its body before it was sent, which are in none of its times.
    summing: float = 0.0
    #: What the answer to a request that keeps it said; without a body, that of a 2xx that has a cause.
    reply: StoreReply | None = None


class StoreClient(Protocol):
    """The workers' side: requests from any number of greenlets of one thread."""

    def perform(
        self,
        address: str,
        request: StoreRequest,
        credentials: str | None = None,
        prior: PriorAttempts = NO_PRIOR_ATTEMPTS,
    ) -> RequestOutcome:
        """Carry out a request at one of the addresses of a session, with its credentials.

        Whatever the store does is an outcome. A request that cannot be sent as it is raises UsageError.
        ``prior`` is what was spent on it before.
        """

    def close(self) -> None:
        """Close all connections; requests end at once as errors."""


class StoreSession(Protocol):
    """What requests need, made by :meth:`Store.authenticate`: addresses, and credentials for workers."""

    @property
    def storage_urls(self) -> tuple[str, ...]:
        """The addresses, each as good as the others."""

    @property
    def token(self) -> str | None:
        """The credentials: a text that only this store's clients look into, and that may expire."""


class Capabilities(Struct, frozen=True):
    """What a store can do: features, each with its limits. ``known`` is False where it does not tell."""

    features: Mapping[str, Mapping[str, object]] = {}
    known: bool = False
    expires: bool = True  # objects can be written that expire
    keeps_parts: bool = False  # those of an object that is written anew in parts stay, and cannot be found

    def lacks(self, feature: str) -> bool:
        """Whether it is known that the store does not have a feature."""
        return self.known and feature not in self.features


class ReadSignatures(Protocol):
    """Signatures for reads without credentials, see :meth:`Store.sign`."""

    def queries(
        self, containers: Iterable[str], features: Mapping[str, object], stop: Callable[[], bool]
    ) -> list[str]:
        """Return the signature of requests for objects of each container, when the store takes it.

        ``features`` is what the store says it can do there, ``stop`` whether to wait for it no longer.
        """

    def end(self) -> None:
        """Let the store take these signatures no more. Raises nothing."""


CredentialsT_contra = TypeVar("CredentialsT_contra", contravariant=True)
SessionT = TypeVar("SessionT", bound=StoreSession)


@dataclass(frozen=True, slots=True)
class StoreAccess(Generic[SessionT]):
    """How the master makes requests in an account."""

    session: SessionT
    timeouts: tuple[float, float] = (10.0, 20.0)  # of connecting and of each wait for an answer, in seconds
    #: Returns a session with new credentials after these were refused; None where there are no others.
    renew: Callable[[], SessionT] | None = None
    trans_id_extra: str | None = None  # what transaction ids are to end in


class Store(Protocol[CredentialsT_contra, SessionT]):
    """The master's side. Methods make requests and wait for them, and raise ClusterError where they fail.

    Objects are deleted by requests of the workers, as they are written.
    """

    def authenticate(self, credentials: CredentialsT_contra, timeout: float = 10.0) -> SessionT:
        """Return a session, or a later one with new credentials for workers.

        ``timeout`` bounds connecting and each wait for bytes, in seconds. Raises AuthenticationError, and
        UsageError for credentials that cannot be used.
        """

    def capabilities(self, access: StoreAccess[SessionT]) -> Capabilities:
        """Ask what the store can do; one that does not answer is not known. Raises nothing."""

    def clock(self, session: SessionT) -> ClockBounds | None:
        """Return how far the clock here is from the store's.

        None where it does not tell. Takes two seconds or less, and raises nothing.
        """

    def ask(
        self, access: StoreAccess[SessionT], request: StoreRequest, retry_seconds: float | None = None
    ) -> RequestOutcome:
        """Make one request with the first storage URL, and keep its answer.

        Attempts begin within so many seconds (None: the usual ones). Whatever the store does is an outcome.
        """

    def in_account(self, session: SessionT, name: str) -> SessionT:
        """Return the session of an administrator in another account; raises UsageError."""

    def find_containers(
        self, access: StoreAccess[SessionT], base: str, policy: str | None, *, longer: bool = False
    ) -> Iterable[tuple[str, int]]:
        """Return the name of each container of a base name, with about how many objects it has.

        With ``longer`` those of all base names that begin with it and a hyphen, too.
        """

    def container_base(self, session: SessionT, base: str) -> str:
        """Return the base name of containers to use in place of one; raises UsageError where none will do."""

    def explain_lack(self, session: SessionT, operation: OperationSettings) -> list[str]:
        """Say why an operation is known without asking not to be possible with its values; empty: it is.

        It may be ``segment_size``, for a size class in segments, whose keys are the values. What no value
        makes possible is in ``lacks`` of :class:`~ssbench.scenario.store_kinds.StoreKind`.
        """

    def renewal_seconds(self, session: SessionT) -> float:
        """Return after how long new credentials are to be got, before these end; inf: when one is refused."""

    def warn_of_route(self, credentials: CredentialsT_contra, session: SessionT) -> None:
        """Log warnings of how requests get there: by a proxy, which workers do not use, or without TLS."""

    def end(self) -> None:
        """Remove what authenticating has made. Raises nothing."""

    def prepare(
        self,
        access: StoreAccess[SessionT],
        containers: Iterable[str],
        policy: str | None,
        concurrency: int,
        advance: Callable[[], None],
        *,
        check: Callable[[], None],
        headers: Mapping[str, str],
    ) -> None:
        """Make sure that containers are there, ``concurrency`` at once.

        ``advance`` is called for each that is, ``check`` some times a second. ``headers`` are sent where a
        container is made.
        """

    def sign(self, access: StoreAccess[SessionT], until: int) -> ReadSignatures:
        """Begin to sign reads, which are good without credentials until a moment, in Unix time."""

    def objects(
        self, access: StoreAccess[SessionT], container: str, *, expect: Callable[[int], None]
    ) -> Iterable[tuple[str, int]]:
        """Return the name and the size of each object in a container.

        ``expect`` is called with about how many there are.
        """


# -- How requests fail -----------------------------------------------------------------------------


NAME_RESOLUTION = "name resolution"
CONNECT_REFUSED = "connect refused"
CONNECT_TIMEOUT = "connect timeout"
CONNECT_FAILED = "connect failed"
READ_TIMEOUT = "read timeout"  # no progress for --network-timeout
REQUEST_TIMEOUT = "request timeout"  # progress, but too slow
RESET = "reset"
CLOSED = "closed"  # by the server, before the whole head of a response was received
SHORT_BODY = "short body"
BAD_RESPONSE = "bad response"
WRONG_CONTENT = "wrong content"  # with --verify: a whole answer of other bytes than were written
OLDER_VERSION = "older version"  # with --verify: a whole body, which this run had replaced before it was read
WRONG_METADATA = "wrong metadata"  # with --verify: other X-Object-Meta-Ssbench-* than were written
WRONG_ETAG = "wrong ETag"  # the ETag is the MD5 of other bytes than were sent or received
WRONG_LISTING = "wrong listing"  # a whole answer, but no listing in order of what was asked for
WRONG_VERDICT = "wrong verdict"  # a success, but its body does not say that all was done
NOT_VERSIONED = "not versioned"  # a success, but the store has made no version
OF_ANOTHER_SCENARIO = "of another scenario"  # an object that was to be prepared for this one
WRONG_SIZE = "wrong size"  # a whole answer, but not of as many bytes as the object has
TLS_CERTIFICATE = "TLS certificate"
TLS_ERROR = "TLS error"

#: Statuses after which a request is retried: overload, time-out or rate limit (498 is Swift's own).
TRANSIENT_STATUSES = frozenset({408, 429, 498, 503})


def cause_of_status(status: int) -> str:
    """Return the cause of a status that is not 2xx, such as ``HTTP 503``."""
    return f"HTTP {status}"


NOT_FOUND = cause_of_status(404)
UNAUTHORIZED_CAUSE = cause_of_status(401)  # the token was refused

#: Causes after which a retry may succeed. A short body, one of a wrong size, a response that is not HTTP and
#: one that takes far too long are findings about the cluster that a retry would hide; a wrong certificate
#: stays wrong.
TRANSIENT_CAUSES = frozenset(
    {NAME_RESOLUTION, CONNECT_REFUSED, CONNECT_TIMEOUT, CONNECT_FAILED, READ_TIMEOUT, RESET, CLOSED}
) | {cause_of_status(status) for status in TRANSIENT_STATUSES}


#: How a request ends that the server may have carried out without our seeing its answer.
UNANSWERED_CAUSES = frozenset({CLOSED, RESET, READ_TIMEOUT})


class AttemptError(SsbenchError):
    """A failed attempt; ``cause`` is one of the labels above, the text is for the user.

    ``trans_id`` and ``status`` are those of the response, where there was one. ``reply`` is the head of a
    2xx that the request has a cause for, because it is no success.
    """

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause
        self.trans_id: str | None = None
        self.status = 0
        self.reply: StoreReply | None = None


def make_connect_error(error: OSError, where: str) -> AttemptError:
    """Return the failure for an error of connecting to ``where``."""
    cause = CONNECT_FAILED
    if isinstance(error, ConnectionRefusedError):
        cause = CONNECT_REFUSED
    elif isinstance(error, TimeoutError):
        cause = CONNECT_TIMEOUT
    return AttemptError(cause, f"{where}: {error.strerror or error}")


def make_transfer_error(error: OSError) -> AttemptError:
    """Return the failure for an error of an established connection."""
    import ssl  # noqa: PLC0415 - a no-op run does without, and masters read the labels above only

    if isinstance(error, ssl.SSLCertVerificationError):
        return AttemptError(TLS_CERTIFICATE, error.verify_message or str(error))
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return AttemptError(CLOSED, "the server closed the connection within TLS")
    if isinstance(error, ssl.SSLError):
        return AttemptError(TLS_ERROR, error.reason or str(error))
    if isinstance(error, TimeoutError):  # ETIMEDOUT: the kernel stopped resending
        return AttemptError(READ_TIMEOUT, error.strerror or str(error))
    return AttemptError(RESET, error.strerror or str(error))


#: The pause before the first retry; it doubles with each one, and half of it is drawn at random (seconds).
FIRST_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 2.0

#: A server that asks for a longer pause before a retry than this gets this one (seconds).
MAX_RETRY_AFTER_SECONDS = 10.0

#: The default of a request's time-out is this many times that of the network.
NETWORK_TIMEOUTS = 3

#: While a body moves at this many bytes a second or more, the time-out of its request does not run.
MIN_BYTES_A_SECOND = 10_000

#: A job's end may be noticed so much later than its time-outs say: a share, and seconds.
_LATE_FACTOR = 1.1
_LATE_SECONDS = 5.0


def longest_job_seconds(
    connect_timeout: float,
    network_timeout: float,
    request_timeout: float | None,
    retries: int,
    size: int,
    requests: int = 2,
) -> float:
    """Return the most seconds that a worker can take for a job, whatever the server does.

    The time-outs are seconds, as in :class:`~.http.client.ClientSettings`; ``retries`` is how often
    a request may be tried again for any reason, ``size`` the bytes of the largest body, ``requests`` how many
    a job is at most, one after the other: an initial upload may be HEAD and PUT.
    """
    # Connecting may take its time-out twice, the second time for TLS.
    attempt = (
        2 * connect_timeout
        + (request_timeout or NETWORK_TIMEOUTS * network_timeout)
        + size / MIN_BYTES_A_SECOND
    )
    request = (retries + 1) * attempt + retries * MAX_RETRY_AFTER_SECONDS
    return requests * request * _LATE_FACTOR + _LATE_SECONDS


def pause_before(retry: int, asked: str | None) -> float:
    """Return the seconds before a retry, 1 being the first; ``asked`` is the answer's Retry-After."""
    seconds: float = min(FIRST_PAUSE_SECONDS * 2 ** min(retry - 1, 16), MAX_PAUSE_SECONDS) * random.uniform(
        0.5, 1.0
    )
    if asked is not None:
        seconds = max(seconds, min(parse_retry_after(asked), MAX_RETRY_AFTER_SECONDS))
    return seconds


def parse_retry_after(value: str) -> float:
    """Return the seconds that a Retry-After (RFC 9110, 10.2.3) asks for; 0 for no number and no date."""
    if value.isdecimal():
        return float(value[:9])
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few stores send a date

    try:
        due = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return max(
        0.0, (due if due.tzinfo else due.replace(tzinfo=UTC)).timestamp() - datetime.now(UTC).timestamp()
    )
