"""A storage URL, and the parts that requests to it are put together from.

The bytes of a request up to the object's name are kept for each container, those after it for each token:
making them anew took 4 of 20 µs.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from ssbench.base.errors import UsageError
from ssbench.base.version import __version__
from ssbench.scenario.names import OBJECT_NUMBER_FORMAT
from ssbench.scenario.operation import Header
from ssbench.store.contract import StoreRequest
from ssbench.store.http.http_response import OWNER_FIELD
from ssbench.store.http.pool import ConnectionPool

#: Kept prefixes of requests, some 150 bytes each.
_MAX_PREFIXES = 65536

#: Methods of which a server expects the length of a body, though it be 0.
_WITH_LENGTH = frozenset({"PUT", "POST", "COPY"})

_MATCH_UNQUOTED = re.compile(r"[A-Za-z0-9_.~/-]+").fullmatch

#: Names and values of header fields (RFC 9110, 5.5 and 5.6.2).
_MATCH_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_MATCH_FIELD_VALUE = re.compile(r"[^\x00-\x1f\x7f]*").fullmatch


def format_header_fields(headers: tuple[Header, ...]) -> bytes:
    """Return header fields as they are sent; raises UsageError for one that cannot be sent."""
    for name, value in headers:
        if not _MATCH_FIELD_NAME(name) or not _MATCH_FIELD_VALUE(value):
            raise UsageError(f"{name!r}: {value!r} is no header field that can be sent")
    return "".join([f"{name}: {value}\r\n" for name, value in headers]).encode()


def quote_name(name: str) -> str:
    """Return the name of an object, or of a container, as it is in a path."""
    return name if _MATCH_UNQUOTED(name) else quote(name, "/~")


class StorageTarget:
    """A storage URL: its pool, and what requests to it begin with."""

    __slots__ = ("_after", "_before", "_fields", "_owners", "_path", "pool")

    def __init__(self, pool: ConnectionPool, host: str, path: str, fields: str = "") -> None:
        self.pool = pool
        self._path = path
        self._fields = f" HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ssbench/{__version__}\r\n{fields}"
        self._before: dict[tuple[str, str], bytes] = {}
        self._after: dict[str | None, bytes] = {}
        self._owners: dict[str, bytes] = {}

    def head(self, request: StoreRequest, token: str | None) -> bytes:
        """Return a request up to the body that the client makes up; raises UsageError for a wrong field."""
        method = request.method
        if request.name and not request.path:
            container = request.container
            before = self._before.get((method, container)) or self._keep_before(method, container)
            path = quote_name(request.name).encode()
            if request.query:
                path += b"?" + request.query.encode()
        else:
            before, path = self._other_line(request), b""
        after = self._after.get(token) or self._keep_after(token)
        if request.headers:
            after += format_header_fields(request.headers)
        if request.part is not None:
            after += b"Range: bytes=%d-%d\r\n" % request.part
        if method not in _WITH_LENGTH:
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

    def _other_line(self, request: StoreRequest) -> bytes:
        """Return the beginning of the request line of what is no object of a container."""
        path = request.path or self._path + (f"/{quote(request.container, '')}" if request.container else "")
        query = f"?{request.query}" if request.query else ""
        return f"{request.method} {path}{query}".encode()

    def template(
        self,
        method: str,
        container: str,
        stem: str,
        token: str | None,
        delete_after: int | None,
        owner: str | None,
        headers: tuple[Header, ...] = (),
    ) -> bytes:
        """Return what makes a request of an object's number, of a PUT also of its size and its body.

        That is with the ``%`` operator. ``stem`` is what the name begins with; without one it takes the whole
        name, quoted, in place of a number. A request that it makes is the one that :meth:`head` begins.
        """
        request = StoreRequest(
            method=method,
            container=container,
            name=stem or "_",
            delete_after=delete_after,
            owner=owner,
            headers=headers,
        )
        head = self.head(request, token)
        name = quote(stem or "_", "/~").encode() + b" HTTP/1.1\r\n"
        before, found, after = head.replace(b"%", b"%%").partition(name.replace(b"%", b"%%"))
        if stem:
            template = before + found.replace(b" ", OBJECT_NUMBER_FORMAT.encode() + b" ", 1) + after
        else:
            template = before + found.replace(b"_", b"%b", 1) + after
        if method != "PUT":
            return template
        return template.replace(b"\r\nContent-Length: 0\r\n", b"\r\nContent-Length: %d\r\n", 1) + b"%b"

    def _keep_before(self, method: str, container: str) -> bytes:
        if len(self._before) >= _MAX_PREFIXES:
            self._before.clear()
        before = f"{method} {self._path}/{quote(container, '')}/".encode()
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
        if not (owner.isascii() and owner.isprintable()):
            raise UsageError("the owner holds characters that no header field may hold")
        field = self._owners[owner] = f"{OWNER_FIELD}: {owner}\r\n".encode()
        return field
