"""What ssbench expects of a store, and what a store returns.

A store has two sides. The master's (:class:`Store`) authenticates, says what the store can do and prepares
the places of a run. The workers' (:class:`StoreClient`) carries out requests, thousands a second. What passes
from one to the other is a :class:`StoreSession`: addresses, and credentials that nothing outside the store
looks into.

A request is a :class:`StoreRequest` for a target: an object, a container or the account. It says what is
wanted; the store decides how that is sent (headers, signatures, quoting). It ends as an
:class:`RequestOutcome`, a success or a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from msgspec import Struct

from ssbench.scenario.operations import Header

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


class StoreRequest(Struct, frozen=True, gc=False, kw_only=True):
    """One request of an operation.

    The target is an object; without a ``name`` a container; without a ``container`` the account. ``path`` is
    the path of a request for something else, from the root of the server on, as it is sent.
    ``query`` is as it is sent, without the question mark. ``headers`` come after those that the store sends
    by itself.

    The body is ``body``, or ``size`` bytes that the client makes up; not both. ``delete_after`` is in how
    many seconds an object that is written is to expire, ``owner`` what it says of whose it is.

    A status from 200 to 299 is a success, unless ``success`` says which are. With ``missing_ok`` 404 is one
    too, and each of ``done_before`` where an earlier attempt may have been carried out. ``causes`` names
    failures. ``expected`` is how many bytes of body a success has, 0 for any number. ``part`` is the first
    and the last byte of the object that are asked for, which sets the header for that. ``content`` is the
    name of the object whose content is returned, where that is another one; empty where it is not that of one
    object, and is not checked. ``keep`` is how many bytes of the answer's body are kept, 0 for none: a longer
    one is a failure. ``anonymous``: without credentials. ``etag``: the store is sent the MD5 of the body that
    the client makes up, and is to refuse another one.
    """

    method: str
    container: str = ""
    name: str = ""
    path: str = ""
    query: str = ""
    headers: tuple[Header, ...] = ()
    body: bytes | None = None
    size: int = 0
    delete_after: int | None = None
    owner: str | None = None
    success: frozenset[int] = frozenset()
    causes: CausesByStatus = _NO_CAUSES
    missing_ok: bool = False
    done_before: frozenset[int] = frozenset()
    expected: int = 0
    part: tuple[int, int] | None = None
    content: str | None = None
    keep: int = 0
    anonymous: bool = False
    etag: bool = False


class StoreReply(Struct, frozen=True, gc=False):
    """What an answer said: its header ``fields`` by their names in lower case, and the ``body``."""

    fields: dict[str, str]
    body: bytes


class RequestOutcome(Struct, frozen=True, gc=False):
    """How a request ended, or an operation of several.

    ``first_byte`` and ``last_byte`` are seconds from the start of the first attempt, connecting included, to
    the first and the last byte of the last answer; None for a failure, and first_byte None for a PUT.
    ``completed`` is when it ended. ``size``: bytes of body moved by a success, of a HEAD the object's.
    ``retries`` counts all attempts but one, ``retried`` the causes of those before the last. ``cause`` is
    None for a success, ``detail`` one line for people. ``unauthorized``: a 401 for which new credentials may
    help; then ``last_byte`` is the time spent so far. ``found``: of an initial object, the size of what was
    there under its name, None where nothing was. ``status`` is that of the last answer, 0 where there was
    none; ``spent`` what a failure took, in seconds from the first attempt on; ``resent`` counts requests
    that were sent again at once because a kept connection had gone stale, which are no retries.
    ``connecting`` and ``pausing`` are how many of the seconds went into new connections and into our own
    pauses before retries; ``last_attempt`` is what the last attempt took, connecting aside, None where it
    was the only one. ``owner`` is whose the object is that a HEAD found, as its metadata says. ``reply`` is
    what the answer to a request that keeps it said, ``entries`` how many entries of listings came, ``steps``
    the seconds of each step of an operation of several requests. ``left`` is how many deletions failed of
    what an operation had made that went wrong. ``address`` is where the last request went, if its host has
    several addresses; ``unreached`` are those of such hosts to which connections failed meanwhile.
    ``connections`` is how many connections were made for it, of which so many ``resumed`` a TLS session.
    ``unchecked`` is how many answers had no checksum by which a body would have been checked.
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
    connecting: float = 0.0
    pausing: float = 0.0
    last_attempt: float | None = None
    owner: str | None = None
    reply: StoreReply | None = None
    entries: int = 0
    steps: tuple[float, ...] = ()
    left: int = 0
    address: str = ""
    unreached: tuple[str, ...] = ()
    connections: int = 0
    resumed: int = 0
    unchecked: int = 0


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

    def lacks(self, feature: str) -> bool:
        """Whether it is known that the store does not have a feature."""
        return self.known and feature not in self.features


class ReadSignatures(Protocol):
    """Signatures for reads without credentials, see :meth:`Store.sign`."""

    def queries(
        self, containers: Iterable[str], features: Mapping[str, object], stop: Callable[[], bool]
    ) -> list[str]:
        """Return the query of requests for objects of each container, when the store takes it.

        ``features`` is what the store says it can do there, ``stop`` whether to wait for it no longer.
        """

    def end(self) -> None:
        """Let the store take these signatures no more. Raises nothing."""


CredentialsT_contra = TypeVar("CredentialsT_contra", contravariant=True)
SessionT = TypeVar("SessionT", bound=StoreSession)


class Store(Protocol[CredentialsT_contra, SessionT]):
    """The master's side. Methods make requests and wait for them, and raise ClusterError where they fail.

    ``timeouts`` are those of connecting and of each wait for an answer, in seconds. Objects are deleted by
    requests of the workers, as they are written.
    """

    def authenticate(self, credentials: CredentialsT_contra) -> SessionT:
        """Return a session, or a later one with new credentials for workers.

        Raises AuthenticationError, and UsageError for credentials that cannot be used.
        """

    def capabilities(self, session: SessionT, timeouts: tuple[float, float]) -> Capabilities:
        """Ask what the store can do; one that does not answer is not known. Raises nothing."""

    def clock(self, session: SessionT) -> ClockBounds | None:
        """Return how far the clock here is from the store's.

        None where it does not tell. Takes two seconds or less, and raises nothing.
        """

    def prepare(
        self,
        session: SessionT,
        containers: Iterable[str],
        policy: str | None,
        concurrency: int,
        advance: Callable[[], None],
        *,
        timeouts: tuple[float, float],
        check: Callable[[], None],
        renew: Callable[[], SessionT] | None,
        trans_id_extra: str | None,
        headers: Mapping[str, str],
    ) -> None:
        """Make sure that containers are there, ``concurrency`` at once.

        ``advance`` is called for each that is, ``check`` some times a second. ``renew`` returns a session
        with new credentials. ``headers`` are sent where a container is made.
        """

    def sign(
        self,
        session: SessionT,
        renew: Callable[[], SessionT] | None,
        until: int,
        timeouts: tuple[float, float],
    ) -> ReadSignatures:
        """Begin to sign reads, which are good without credentials until a moment, in Unix time."""

    def objects(
        self,
        session: SessionT,
        container: str,
        *,
        timeouts: tuple[float, float],
        renew: Callable[[], SessionT] | None,
        expect: Callable[[int], None],
    ) -> Iterable[tuple[str, int]]:
        """Return the name and the size of each object in a container.

        ``expect`` is called with about how many there are; ``renew`` as in :meth:`prepare`.
        """
