"""What a store that speaks HTTP has of its own: a dialect, and what dialects have in common.

A dialect (:class:`HttpDialect`) says in bytes what a :class:`~ssbench.store.contract.StoreRequest` wants, and
reads what is in bodies of answers. It makes no requests and knows no connections, so that the master, which
has no gevent, uses the same one as workers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import quote

from ssbench.base.errors import UsageError
from ssbench.base.text_values import parse_http_url, redact_url, refuse_user_info
from ssbench.base.version import __version__
from ssbench.scenario.operations import Header
from ssbench.scenario.value_rules import PayloadMode
from ssbench.store.contract import ListingPage, StoreRequest

if TYPE_CHECKING:
    from ssbench.store.http.bodies import BodyFrames, BodyHash

#: Methods of which a server expects the length of a body, though it be 0.
WITH_LENGTH_METHODS = frozenset({"PUT", "POST", "COPY"})

_MATCH_UNQUOTED = re.compile(r"[A-Za-z0-9_.~/-]+").fullmatch

#: Names and values of header fields (RFC 9110, 5.5 and 5.6.2).
_MATCH_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_MATCH_FIELD_VALUE = re.compile(r"[^\x00-\x1f\x7f]*").fullmatch


class ServerEndpoint(NamedTuple):
    """Where requests go."""

    scheme: str
    host: str
    port: int


class RequestPattern(Protocol):
    """Makes whole requests of what differs between them, as a pattern of bytes does with ``%``.

    That is the name of the object, quoted, or its number; of an upload also its size and its body.
    """

    def __mod__(self, values: object, /) -> bytes:
        """Return a request."""


class HashedPattern(ABC):
    """A :class:`RequestPattern` of uploads that say something of their bodies."""

    @abstractmethod
    def __mod__(self, values: object, /) -> bytes:
        """Return a request of a name, a size, the first bytes of a body, and its digest."""

    @property
    @abstractmethod
    def make_hash(self) -> Callable[[bytes], BodyHash]:
        """What makes that of the digest, of the first bytes of a body."""

    @abstractmethod
    def ending(self, digest: bytes) -> bytes:
        """Return what comes after a body of at most PIECE_BYTES with this digest."""


class HttpDialect(Protocol):
    """How one address of a store is spoken to; ``credentials`` are those of a session, None for none."""

    @property
    def endpoint(self) -> ServerEndpoint:
        """The server."""

    @property
    def path(self) -> str:
        """The path of the account, without a slash at its end; empty where the server has only one."""

    @property
    def protects_full(self) -> bool:
        """Whether no store that speaks it deletes a container that has objects in it."""

    @property
    def page_entries(self) -> int:
        """How many entries a page of a listing has at most, unless a store is configured otherwise."""

    @property
    def deletes_at_once(self) -> int:
        """How many objects one request may delete; 1: there is no such request that every store has."""

    def can_batch(self, name: str) -> bool:
        """Whether an object can be one of several that a request deletes: not one of any name."""

    def head(self, request: StoreRequest, credentials: str | None, digest: bytes | None = None) -> bytes:
        """Return a request up to the body that the client makes up.

        ``digest`` is that of this body, where :meth:`choose_hash` asks for one. Raises UsageError where
        something in it cannot be sent.
        """

    def choose_hash(
        self, request: StoreRequest, credentials: str | None
    ) -> Callable[[bytes], BodyHash] | None:
        """Return what a request says of the body that the client makes up; None: it says nothing."""

    def frame_body(self, request: StoreRequest, digest: bytes) -> BodyFrames:
        """Return the body that the client makes up, of that digest, as it is sent: with what is around it."""

    def pattern(self, request: StoreRequest, stem: str, credentials: str | None) -> RequestPattern:
        """Return what makes requests like this one for objects whose names begin with ``stem``.

        The number of an object is the rest of its name; without a ``stem`` the whole name is given, quoted.
        A request that it makes is the one that :meth:`head` begins. For uploads whose bodies have a hash it
        is a :class:`HashedPattern`. Raises UsageError as :meth:`head` does.
        """

    @property
    def wrong_digest_status(self) -> int:
        """The status of the answer to a body of another MD5 than was announced."""

    def digest_field(self, digest: bytes) -> Header:
        """Return the field by which the MD5 of a body is announced, which the store is to check."""

    def read_page(self, body: bytes, request: StoreRequest) -> ListingPage:
        """Return the entries of a listing that a request asked for; raises ValueError for what is none."""

    @property
    def uploads_parts(self) -> bool:
        """Whether a large object is an upload of parts; else a manifest names objects as its segments."""

    @property
    def part_checksum_field(self) -> str:
        """The field of an answer to a part that the end of the upload says again; empty: there is none."""

    def read_upload(self, body: bytes) -> str:
        """Return the id of an upload of parts that was begun; raises ValueError for no such answer."""

    def read_failures(self, body: bytes, request: StoreRequest) -> list[tuple[str, str]]:
        """Return the names of objects that were not deleted, where one request was for several, and why.

        A name is there for each of its versions. Raises ValueError for what is no such answer.
        """

    def find_fault(self, request: StoreRequest, body: bytes) -> str | None:
        """Say what the body of an answer says went wrong, although its status is that of a success."""

    def describe_error(self, body: bytes) -> str:
        """Return what the body of an error says, in one line; empty where it says nothing of use."""


#: What opens the dialect of an address: a storage URL, what transaction ids end in, what is said of bodies.
DialectOpener = Callable[[str, str | None, PayloadMode], HttpDialect]


def parse_storage_url(url: str) -> tuple[ServerEndpoint, str, str]:
    """Return server, ``Host`` field and path of a storage URL; raises UsageError."""
    refuse_user_info(url, "storage URL")
    parts = parse_http_url(url)
    if parts is None or not parts.hostname or not url.isascii() or parts.query or parts.fragment:
        raise UsageError(f"storage URL {redact_url(url)}: expected http://HOST[:PORT]/PATH or https://...")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return ServerEndpoint(parts.scheme, parts.hostname, port), parts.netloc, parts.path.rstrip("/")


def format_header_fields(headers: tuple[Header, ...]) -> bytes:
    """Return header fields as they are sent; raises UsageError for one that cannot be sent."""
    for name, value in headers:
        if not _MATCH_FIELD_NAME(name) or not _MATCH_FIELD_VALUE(value):
            raise UsageError(f"{name!r}: {value!r} is no header field that can be sent")
    return "".join([f"{name}: {value}\r\n" for name, value in headers]).encode()


def format_usual_fields(host: str, trans_id_extra: str | None) -> str:
    """Return the end of a request line, and the fields that every request has."""
    extra = f"X-Trans-Id-Extra: {trans_id_extra}\r\n" if trans_id_extra else ""
    return f" HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ssbench/{__version__}\r\n{extra}"


def quote_name(name: str) -> str:
    """Return the name of an object, or of a container, as it is in a path."""
    return name if _MATCH_UNQUOTED(name) else quote(name, "/~")


def check_owner(owner: str) -> str:
    """Return what an object is to say of its owner; raises UsageError where no header field can hold it."""
    if not (owner.isascii() and owner.isprintable()):
        raise UsageError("the owner holds characters that no header field may hold")
    return owner


def is_success_status(status: int, request: StoreRequest) -> bool:
    """Whether a status is that of a success."""
    if request.success:
        return status in request.success
    if request.part is not None:
        return status == 206
    # The only success of a read: a part of an object (206) was not asked for.
    whole = request.method == "GET" and request.name and not request.path
    return 200 <= status < 300 and (status == 200 or not whole)
