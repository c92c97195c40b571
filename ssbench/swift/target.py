"""A storage URL, and the parts that requests to it are put together from.

The bytes of a request up to the object's name are kept for each container, those after it for each token:
making them anew took 4 of 20 µs.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from ssbench import __version__
from ssbench.errors import UsageError
from ssbench.names import OBJECT_NUMBER
from ssbench.swift.http_response import OWNER_FIELD
from ssbench.swift.pool import Pool

#: Kept prefixes of requests, some 150 bytes each.
_MAX_PREFIXES = 65536

_UNQUOTED = re.compile(r"[A-Za-z0-9_.~/-]+").fullmatch


class Target:
    """A storage URL: its pool, and what requests to it begin with."""

    __slots__ = ("_after", "_before", "_fields", "_owners", "_path", "pool")

    def __init__(self, pool: Pool, host: str, path: str, fields: str = "") -> None:
        self.pool = pool
        self._path = path
        self._fields = f" HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ssbench/{__version__}\r\n{fields}"
        self._before: dict[tuple[str, str], bytes] = {}
        self._after: dict[str | None, bytes] = {}
        self._owners: dict[str, bytes] = {}

    def head(
        self,
        method: str,
        container: str,
        name: str,
        token: str | None,
        *,
        size: int,
        delete_after: int | None,
        owner: str | None,
    ) -> bytes:
        """Return what a request begins with, up to its body; raises UsageError where a field cannot be."""
        before = self._before.get((method, container)) or self._keep_before(method, container)
        after = self._after.get(token) or self._keep_after(token)
        quoted = (name if _UNQUOTED(name) else quote(name, "/~")).encode()
        if method != "PUT":
            return before + quoted + after + b"\r\n"
        if owner is not None:
            after += self._owners.get(owner) or self._keep_owner(owner)
        if delete_after is None:
            return b"%b%b%bContent-Length: %d\r\n\r\n" % (before, quoted, after, size)
        return b"%b%b%bContent-Length: %d\r\nX-Delete-After: %d\r\n\r\n" % (
            before,
            quoted,
            after,
            size,
            delete_after,
        )

    def template(
        self,
        method: str,
        container: str,
        stem: str,
        token: str | None,
        delete_after: int | None,
        owner: str | None,
    ) -> bytes:
        """Return what makes a request of an object's number, of a PUT also of its size and its body.

        That is with the ``%`` operator. ``stem`` is what the name begins with. A request that it makes is the
        one that :meth:`head` begins.
        """
        head = self.head(method, container, stem, token, size=0, delete_after=delete_after, owner=owner)
        name = quote(stem, "/~").encode() + b" HTTP/1.1\r\n"
        before, found, after = head.replace(b"%", b"%%").partition(name.replace(b"%", b"%%"))
        template = before + found.replace(b" ", OBJECT_NUMBER.encode() + b" ", 1) + after
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
        self._after.clear()  # an old token is of no more use
        after = f"{self._fields}X-Auth-Token: {token}\r\n" if token else self._fields
        self._after[token] = after.encode()
        return self._after[token]

    def _keep_owner(self, owner: str) -> bytes:
        if not (owner.isascii() and owner.isprintable()):
            raise UsageError("the owner holds characters that no header field may hold")
        field = self._owners[owner] = f"{OWNER_FIELD}: {owner}\r\n".encode()
        return field
