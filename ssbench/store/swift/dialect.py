"""The bytes of requests to a Swift, and what is in bodies of its answers.

Those up to the object's name are kept for each container, those after it for each token: making them anew
took 4 of 20 µs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from msgspec import MsgspecError, json, structs

from ssbench.base.errors import UsageError
from ssbench.scenario.names import OBJECT_NUMBER_FORMAT
from ssbench.scenario.operations import Header
from ssbench.scenario.value_rules import PayloadMode
from ssbench.store.contract import ListingPage, StoreRequest
from ssbench.store.http.bodies import OWNER_ITEM
from ssbench.store.http.dialect import (
    WITH_LENGTH_METHODS,
    DialectOpener,
    check_owner,
    format_header_fields,
    format_usual_fields,
    parse_storage_url,
    quote_name,
)
from ssbench.store.listing_pages import check_prefix

if TYPE_CHECKING:
    from ssbench.store.http.bodies import BodyFrames

#: What the names of an object's metadata begin with.
METADATA_PREFIX = "X-Object-Meta-"

#: Kept prefixes of requests, some 150 bytes each.
_MAX_PREFIXES = 65536


class SwiftDialect:
    """Requests to a storage URL. What they begin and end with is kept."""

    protects_full = True
    deletes_at_once = 1
    page_entries = 10_000
    uploads_parts = False
    part_checksum_field = ""
    wrong_digest_status = 422

    __slots__ = ("_after", "_before", "_fields", "_owners", "endpoint", "path")

    def __init__(
        self, storage_url: str, trans_id_extra: str | None = None, _payload: PayloadMode = "unsigned"
    ) -> None:
        self.endpoint, host, self.path = parse_storage_url(storage_url)
        self._fields = format_usual_fields(host, trans_id_extra)
        self._before: dict[tuple[str, str], bytes] = {}
        self._after: dict[str | None, bytes] = {}
        self._owners: dict[str, bytes] = {}

    def head(self, request: StoreRequest, credentials: str | None, digest: bytes | None = None) -> bytes:
        """Return a request up to the body that the client makes up; raises UsageError for a wrong field."""
        method = request.method
        if request.name and not request.path:
            container, name = request.container, request.copy_from or request.name
            before = self._before.get((method, container)) or self._keep_before(method, container)
            path = quote_name(name).encode()
            if query := _query_of(request):
                path += b"?" + query.encode()
        else:
            before, path = self._other_line(request), b""
        if request.signature:
            credentials = None
        after = self._after.get(credentials) or self._keep_after(credentials)
        if request.copy_from:
            after += b"Destination: %b/%b\r\n" % (
                quote_name(request.container).encode(),
                quote_name(request.name).encode(),
            )
        if request.headers:
            after += format_header_fields(request.headers)
        if request.metadata:
            after += format_header_fields(
                tuple((METADATA_PREFIX + name, value) for name, value in request.metadata)
            )
        if request.part is not None:
            after += b"Range: bytes=%d-%d\r\n" % request.part
        if method not in WITH_LENGTH_METHODS:
            return before + path + after + b"\r\n"
        if request.owner is not None:
            after += self._owners.get(request.owner) or self._keep_owner(request.owner)
        size = request.size if request.body is None else len(request.body)
        if request.delete_after is not None:
            ending = b"X-Delete-After: %d\r\n\r\n" % request.delete_after
        else:
            ending = b"\r\n"
        head = b"%b%b%bContent-Length: %d\r\n%b" % (before, path, after, size, ending)
        return head + request.body if request.body else head

    def choose_hash(self, request: StoreRequest, credentials: str | None) -> None:
        """Return None: only an ETag says something of a body."""

    def frame_body(self, request: StoreRequest, digest: bytes) -> BodyFrames:
        """Return a body as it is."""
        return [(b"", request.size)]

    def _other_line(self, request: StoreRequest) -> bytes:
        """Return the beginning of the request line of what is no object of a container."""
        path = request.path or self.path + (f"/{quote(request.container, '')}" if request.container else "")
        query = _query_of(request)
        return f"{request.method} {path}{f'?{query}' if query else ''}".encode()

    def pattern(self, request: StoreRequest, stem: str, credentials: str | None) -> bytes:
        """Return what makes a request of an object's number, of a PUT also of its size and its body.

        That is with the ``%`` operator. Without a ``stem``, which names begin with, it takes the whole name,
        quoted, in place of a number. A request that it makes is the one that :meth:`head` begins.
        """
        head = self.head(structs.replace(request, name=stem or "_"), credentials)
        name = quote(stem or "_", "/~").encode() + b" HTTP/1.1\r\n"
        before, found, after = head.replace(b"%", b"%%").partition(name.replace(b"%", b"%%"))
        if stem:
            template = before + found.replace(b" ", OBJECT_NUMBER_FORMAT.encode() + b" ", 1) + after
        else:
            template = before + found.replace(b"_", b"%b", 1) + after
        if request.method != "PUT":
            return template
        return template.replace(b"\r\nContent-Length: 0\r\n", b"\r\nContent-Length: %d\r\n", 1) + b"%b"

    def can_batch(self, name: str) -> bool:
        """Return false: each object is deleted by a request of its own."""
        return False

    def digest_field(self, digest: bytes) -> Header:
        """Return the field by which the MD5 of a body is announced."""
        return "ETag", digest.hex()

    def read_page(self, body: bytes, request: StoreRequest) -> ListingPage:
        """Return the entries of a listing in JSON; a page that is full may be followed by another."""
        limit = 0 if request.listing is None else request.listing.limit
        try:
            rows = json.decode(body, type=list[dict[str, Any]])
            found = [(str(row.get("name") or row["subdir"]), int(row.get("bytes") or 0)) for row in rows]
            for name, _ in found:
                name.encode()  # JSON may hold half a character, of which no request can be made
        except (MsgspecError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"no listing: {error}") from None
        if limit and len(found) > limit:
            raise ValueError(f"{len(found)} entries, where {limit} were asked for")
        check_prefix((name for name, _ in found), request.listing)
        following = found[-1][0] if limit and len(found) == limit else ""
        if not any("version_id" in row for row in rows):
            return ListingPage(found, following)
        # An object that is no version, of a time before they were kept, has the id "null".
        return ListingPage(found, following, [str(row.get("version_id") or "null") for row in rows])

    def read_upload(self, body: bytes) -> str:
        """Raise ValueError: large objects have manifests."""
        raise ValueError("no answer to the beginning of an upload")

    def read_failures(self, body: bytes, request: StoreRequest) -> list[tuple[str, str]]:
        """Raise ValueError: one request deletes one object."""
        raise ValueError("no answer to the deletion of several objects")

    def find_fault(self, request: StoreRequest, body: bytes) -> str | None:
        """Return None: the statuses of Swift say it."""
        return None

    def describe_error(self, body: bytes) -> str:
        """Return nothing: what Swift says is its status in other words."""
        return ""

    def _keep_before(self, method: str, container: str) -> bytes:
        if len(self._before) >= _MAX_PREFIXES:
            self._before.clear()
        before = f"{method} {self.path}/{quote(container, '')}/".encode()
        self._before[method, container] = before
        return before

    def _keep_after(self, token: str | None) -> bytes:
        if token is not None and not (token.isascii() and token.isprintable()):
            raise UsageError("the token holds characters that no header field may hold")
        if len(self._after) > 1:
            self._after.clear()  # an old token is of no more use; there may be requests without any, too
        after = f"{self._fields}X-Auth-Token: {token}\r\n" if token else self._fields
        self._after[token] = after.encode()
        return self._after[token]

    def _keep_owner(self, owner: str) -> bytes:
        field = self._owners[owner] = f"{METADATA_PREFIX}{OWNER_ITEM}: {check_owner(owner)}\r\n".encode()
        return field


def _query_of(request: StoreRequest) -> str:
    """Return the query of a request."""
    listing = request.listing
    if listing is None and not request.part_number and not request.version:
        return request.signature or request.query
    pairs: dict[str, object] = {}
    if request.part_number:
        pairs["part-number"] = request.part_number
    if request.version:
        pairs["version-id"] = request.version
    if listing is not None:
        if listing.of != "objects":
            pairs[listing.of] = None
        pairs |= {"prefix": listing.prefix, "delimiter": listing.delimiter}
        pairs |= {"marker": listing.following or listing.marker}
        pairs |= {"format": "json", "limit": listing.limit}
    query = "&".join(
        name if value is None else urlencode({name: value}) for name, value in pairs.items() if value != ""
    )
    return f"{request.query}&{query}" if request.query else query


DIALECT_CLASS: DialectOpener = SwiftDialect
