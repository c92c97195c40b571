"""What is in an account or a container of Swift: listings, page after page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import requests
import swiftclient

from ssbench.base.errors import ClusterError
from ssbench.scenario.names import container_pattern
from ssbench.store.http.client_errors import CLIENT_ERRORS, describe_client_error, status_of_error
from ssbench.store.swift.containers import call_persistently, open_swift_connection
from ssbench.store.swift.credentials import Session
from ssbench.store.swift.renewal import SessionInUse

#: Rows of a page, which is also the maximum that Swift returns by default.
_PAGE_ROWS = 10_000

#: Seconds for connecting, and for an answer: a page of 10,000 rows takes Swift its time.
LISTING_TIMEOUTS = (10.0, 60.0)

#: The name of an object, and the id of one of its versions; empty where there are none.
ObjectVersion = tuple[str, str]

#: No object and no container has as many bytes or objects.
_MAX_NUMBER = 2**62

_NOT_FOUND_STATUS = 404
_UNAUTHORIZED_STATUS = 401


class ContainerListing:
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
        self._connection = open_swift_connection(session, 0, timeouts)
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
            if status_of_error(error) == _NOT_FOUND_STATUS:
                raise ClusterError(f"{self._connection.url}: there is no {where} in this account") from None
            raise ClusterError(f"{where} cannot be listed: {describe_client_error(error)}") from None
        finally:
            self._connection.close()

    def _objects(self, expect: Callable[[int], None]) -> Iterator[tuple[str, int]]:
        head = self._ask(swiftclient.head_container)
        expect(int(head.get("x-container-object-count", 0)))
        marker = ""
        while sizes := _numbers_by_name(self._ask(swiftclient.get_container, marker=marker)[1], "bytes"):
            yield from sizes
            if sizes[-1][0] == marker:
                raise ValueError("a page that ends where it begins would come again and again")
            marker = sizes[-1][0]

    def _ask(self, request: Callable[..., Any], **options: Any) -> Any:
        refusals = 0
        while True:
            used = self._in_use.session
            try:
                return call_persistently(lambda: self._request(request, options))
            except CLIENT_ERRORS as error:
                refusals += 1
                if status_of_error(error) != _UNAUTHORIZED_STATUS or not self._in_use.renew(used, refusals):
                    raise

    def _request(self, request: Callable[..., Any], options: dict[str, Any]) -> Any:
        token = self._in_use.session.token
        return request(self._connection.url, token, self._container, http_conn=self._place, **options)


def find_containers(
    session: Session, base: str, policy: str | None, timeouts: tuple[float, float] = LISTING_TIMEOUTS
) -> Iterator[tuple[str, int]]:
    """Yield the name and the approximate number of objects of each container that matches.

    ``timeouts`` are those of connecting and of an answer, in seconds. Raises ClusterError when the account
    cannot be listed.
    """
    pattern = container_pattern(base, policy)
    connection = open_swift_connection(session, 0, timeouts)
    place = (connection.parsed_url, connection)
    marker = ""

    def page() -> dict[str, int]:
        _, rows = swiftclient.get_account(
            connection.url, session.token, marker, _PAGE_ROWS, f"{base}_", http_conn=place
        )
        return parse_listing(rows)

    try:
        while rows := call_persistently(page):
            if min(rows) <= marker:
                raise _make_malformed_error("a page begins before its marker")
            for name, count in rows.items():
                if pattern.match(name):
                    yield name, count
            marker = max(rows)
    except CLIENT_ERRORS as error:
        raise ClusterError(
            f"{session.storage_url}: containers cannot be listed: {describe_client_error(error)}"
        ) from None
    finally:
        connection.close()


def list_first_versions(url: str, token: str | None, container: str, http_conn: Any) -> list[ObjectVersion]:
    """Return the first page of names, each with all versions where the container keeps some."""
    _, rows = swiftclient.get_container(
        url, token, container, limit=_PAGE_ROWS, query_string="versions", http_conn=http_conn
    )
    names = parse_listing(rows)
    if not any("version_id" in row for row in rows):
        return [(name, "") for name in names]
    # An object that is no version, of a time before they were kept, has the id "null".
    return [(str(row["name"]), str(row.get("version_id") or "null")) for row in rows]


def parse_listing(rows: object) -> dict[str, int]:
    """Return names and their numbers of objects (0 for objects), or raise one of CLIENT_ERRORS."""
    try:
        return dict(_numbers_by_name(rows, "count", 0))
    except (TypeError, KeyError, ValueError):
        raise _make_malformed_error("not a list of names") from None


def _numbers_by_name(rows: object, key: str, default: int | None = None) -> list[tuple[str, int]]:
    """Return the name of each row with a number of it; raises TypeError, KeyError or ValueError."""
    if not isinstance(rows, list):
        raise TypeError("not a list")
    found = []
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row["name"], str):
            raise TypeError("not a row with a name")
        number = row[key] if default is None else row.get(key, default)
        if not isinstance(number, int) or not 0 <= number < _MAX_NUMBER:
            raise ValueError("not a number")
        row["name"].encode()  # JSON may hold half a character, of which no request can be made
        found.append((row["name"], number))
    return found


def _make_malformed_error(reason: str) -> requests.RequestException:
    return requests.exceptions.InvalidJSONError(f"listing: {reason}")
