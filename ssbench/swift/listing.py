"""What is in a container of Swift: its listing, page after page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import swiftclient

from ssbench.errors import ClusterError
from ssbench.swift.client_errors import CLIENT_ERRORS, status, why
from ssbench.swift.containers import connect, persistently
from ssbench.swift.credentials import Session
from ssbench.swift.renewal import SessionInUse

_NOT_FOUND = 404
_UNAUTHORIZED = 401


class Listing:
    """Reads the listing of a container. ``renew`` returns a session with a new token, None where none can."""

    def __init__(
        self,
        session: Session,
        container: str,
        timeouts: tuple[float, float],
        renew: Callable[[], Session] | None,
    ) -> None:
        self._container = container
        self._in_use = SessionInUse(session, renew, threading.Lock())
        self._connection = connect(session, 0, timeouts)
        self._place = self._connection.parsed_url, self._connection

    def objects(self, expect: Callable[[int], None]) -> Iterator[tuple[str, int]]:
        """Yield the name and the size of each object, in order; ``expect`` is called with their number first.

        Pages are as long as the cluster makes them, and end with an empty one. Raises ClusterError.
        """
        where = f"container {self._container!r}"
        try:
            yield from self._objects(expect)
        except (KeyError, TypeError, ValueError):
            raise ClusterError(f"{where}: its listing is no listing of objects in order") from None
        except CLIENT_ERRORS as error:
            if status(error) == _NOT_FOUND:
                raise ClusterError(f"{self._connection.url}: there is no {where} in this account") from None
            raise ClusterError(f"{where} cannot be listed: {why(error)}") from None
        finally:
            self._connection.close()

    def _objects(self, expect: Callable[[int], None]) -> Iterator[tuple[str, int]]:
        head = self._ask(swiftclient.head_container)
        expect(int(head.get("x-container-object-count", 0)))
        marker = ""
        while rows := self._ask(swiftclient.get_container, marker=marker)[1]:
            for row in rows:
                yield row["name"], int(row["bytes"])
            if rows[-1]["name"] == marker:
                raise ValueError("a page that ends where it begins would come again and again")
            marker = rows[-1]["name"]

    def _ask(self, request: Callable[..., Any], **options: Any) -> Any:
        refusals = 0
        while True:
            used = self._in_use.session
            try:
                return persistently(lambda: self._request(request, options))
            except CLIENT_ERRORS as error:
                refusals += 1
                if status(error) != _UNAUTHORIZED or not self._in_use.renew(used, refusals):
                    raise

    def _request(self, request: Callable[..., Any], options: dict[str, Any]) -> Any:
        token = self._in_use.session.token
        return request(self._connection.url, token, self._container, http_conn=self._place, **options)
