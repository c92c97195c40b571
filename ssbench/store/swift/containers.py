"""The containers of an account: making those of a run, listing what is there, comparing clocks.

A container is looked at with HEAD, and one that is missing is made by PUT with X-Storage-Policy. This takes
place on threads (:mod:`ssbench.store.http.master_requests`) over python-swiftclient.

Listings of an account or a container are read page after page (:class:`ContainerListing`). How far a clock
here is from that of the store follows from the ``Date`` of its answers, which has whole seconds
(:func:`measure_clock_difference`).
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from email.utils import parsedate_to_datetime
from typing import Any

import requests
import swiftclient
import urllib3.exceptions
from swiftclient.requests_compat import SwiftClientRequestsSession

from ssbench.base.errors import ClusterError
from ssbench.scenario.names import container_pattern, container_stem, longer_base_pattern
from ssbench.store.contract import TRANSIENT_STATUSES, ClockBounds, StoreAccess
from ssbench.store.credentials import Session, SessionInUse
from ssbench.store.http.master_requests import (
    CLIENT_ERRORS,
    ContainerMaker,
    describe_client_error,
    make_containers,
    status_of_error,
)
from ssbench.store.http.redirects import FixedSession, NoRedirects, RedirectsWithinOrigin
from ssbench.store.listing_pages import PageOrder, WrongPageError

_log = logging.getLogger(__name__)

#: Pauses before the second and later attempts, in seconds.
_RETRY_PAUSES = (0.2, 0.5, 1.0, 2.0)

#: Seconds after the first attempt in which further ones may begin. After one time-out there is none.
_RETRY_SECONDS = 8.0

#: Statuses of a PUT of a container that may be gone later. 404: the account was new, and the account server
#: that was asked did not have it yet, because two of three are enough for the proxy that made it.
_TRANSIENT_FOR_PUT = TRANSIENT_STATUSES | {404}

#: The most bytes of an answer: twice those of 10,000 names of 1,024 bytes, each of which JSON writes as six.
_MOST_BYTES = 128 * 1024 * 1024
#: Bytes of an answer that are read at once.
_PIECE = 64 * 1024


class _FixedSession(NoRedirects, SwiftClientRequestsSession):  # type: ignore[misc]
    pass


class _OriginSession(RedirectsWithinOrigin, SwiftClientRequestsSession):  # type: ignore[misc]
    pass


class SwiftConnection(swiftclient.client.HTTPConnection):  # type: ignore[misc]
    """One of python-swiftclient whose answers take a bounded amount of memory.

    It follows no redirect, or with ``within_origin`` those that lead nowhere else.

    python-swiftclient reads each answer to its end, in one piece, and a body need not have an end. A length
    beyond that of any memory, which would raise OverflowError, is not asked for either.
    """

    def __init__(self, url: str, *, within_origin: bool = False, **options: Any) -> None:
        super().__init__(url, **options)
        self.request_session: Any = _OriginSession() if within_origin else _FixedSession()
        self.request_session.headers = None  # as python-swiftclient has it: no defaults of requests

    def getresponse(self) -> Any:
        """Return the answer to the last request; reading it raises ProtocolError where it is too large."""
        response = super().getresponse()
        read_piece = response.read

        def read() -> bytes:
            pieces = []
            left = _MOST_BYTES
            while piece := read_piece(_PIECE):
                left -= len(piece)
                if left < 0:
                    response.close()
                    reason = http.client.HTTPException(f"more than {_MOST_BYTES} bytes")
                    raise urllib3.exceptions.ProtocolError(str(reason), reason)
                pieces.append(piece)
            return b"".join(pieces)

        response.read = read
        return response


def open_swift_connection(access: StoreAccess[Session], index: int) -> Any:
    """Open a keep-alive connection of python-swiftclient, to one of the storage URLs by turns."""
    session = access.session
    return SwiftConnection(
        session.storage_urls[index % len(session.storage_urls)],
        insecure=session.insecure,
        cacert=session.ca_file,
        timeout=access.timeouts,
    )


def call_persistently(
    call: Callable[[], Any],
    on_retry: Callable[[Exception], None] = lambda error: None,
    passing: Set[int] = TRANSIENT_STATUSES,
    seconds: float | None = None,
) -> Any:
    """Return what ``call`` does, after some more attempts where the failure may be gone by then.

    ``on_retry`` is called with each failure that leads to another attempt; an HTTP status does if it is in
    ``passing``. Attempts begin within so many ``seconds`` (None: the usual ones). Raises what the last
    attempt raised.
    """
    began = time.monotonic()
    for pause in _RETRY_PAUSES:
        try:
            return _call_swift_client(call)
        except CLIENT_ERRORS as error:
            code = status_of_error(error)
            if code is not None and code not in passing:
                raise
            if time.monotonic() - began + pause > (_RETRY_SECONDS if seconds is None else seconds):
                raise
            on_retry(error)
        time.sleep(pause)
    return _call_swift_client(call)


def _call_swift_client(call: Callable[[], Any]) -> Any:
    """Return what ``call`` does; raises one of CLIENT_ERRORS.

    python-swiftclient trusts an answer: a charset that Python does not know, a number of very many digits and
    a chunk of a size below 0 raise something else there.
    """
    try:
        return call()
    except CLIENT_ERRORS:
        raise
    except (ValueError, LookupError) as error:
        raise _make_malformed_error(f"{error}") from error


def ensure_containers(
    access: StoreAccess[Session],
    names: Iterable[str],
    policy: str | None = None,
    concurrency: int = 10,
    advance: Callable[[], None] = lambda: None,
    *,
    check: Callable[[], None] = lambda: None,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Make sure that the containers are there, ``concurrency`` at once.

    ``advance`` is called in this thread for each that is, ``check`` some times a second; what they raise
    ends it at once. ``headers`` are sent where a container is made. One container takes at most twice as long
    as both timeouts together and 16 s more. Raises ClusterError, which names the containers that could not be
    made or that exist with another policy (after the first one no further one is begun), and what renewing
    raises.
    """
    extra = {"X-Trans-Id-Extra": access.trans_id_extra} if access.trans_id_extra else {}
    retried: Counter[str] = Counter()
    lock = threading.Lock()
    in_use = SessionInUse(access.session, access.renew, threading.Lock())
    longest = 2 * (_RETRY_SECONDS + sum(access.timeouts))

    def note_retry(error: Exception) -> None:
        with lock:
            retried[describe_client_error(error)] += 1

    @contextlib.contextmanager
    def open_maker(index: int) -> Iterator[ContainerMaker]:
        with contextlib.closing(open_swift_connection(access, index)) as connection:

            def make(name: str) -> tuple[str, str | None]:
                both = extra, {**(headers or {}), **extra}
                return f"{connection.url}/{name}", _make(connection, in_use, name, policy, both, note_retry)

            yield make

    try:
        make_containers(open_maker, names, concurrency, advance, check, longest)
    finally:
        if retried:
            causes = ", ".join(f"{count} x {cause}" for cause, count in retried.most_common())
            _log.warning("Requests for containers that were tried again: %s", causes)


_EXAMPLE_URLS = "http://HOST:8080/v1/AUTH_test (for the S3 API: s3+http://HOST:8080)"


def _make(
    connection: Any,
    in_use: SessionInUse,
    name: str,
    policy: str | None,
    headers: tuple[dict[str, str], dict[str, str]],
    note_retry: Callable[[Exception], None],
) -> str | None:
    """Make one container; return why that failed. ``headers`` are those of every request, and of a PUT."""
    refusals = 0
    while True:
        session = in_use.session
        try:
            return _ensure_container(connection, session.token, name, policy, headers, note_retry)
        except CLIENT_ERRORS as error:
            code = status_of_error(error)
            refusals += code == 401
            if code == 401 and in_use.renew(session, refusals):
                continue
            if policy and code == 400:
                return f"HTTP 400 Bad Request: is there no storage policy {policy!r}?"
            if code == 412:  # Swift's answer to a path that is none of an account
                return (
                    f"{describe_client_error(error)}: is this the storage URL of an account, such as"
                    f" {_EXAMPLE_URLS}?"
                )
            return describe_client_error(error)


def _ensure_container(
    connection: Any,
    token: str | None,
    name: str,
    policy: str | None,
    headers: tuple[dict[str, str], dict[str, str]],
    on_retry: Callable[[Exception], None],
) -> str | None:
    """Make one container; return why it will not do, or raise what is in CLIENT_ERRORS."""
    url, place = connection.url, (connection.parsed_url, connection)

    def head() -> dict[str, str] | None:
        try:
            found: dict[str, str] = swiftclient.head_container(
                url, token, name, http_conn=place, headers=headers[0]
            )
            return found
        except swiftclient.ClientException as error:
            if error.http_status == 404:
                return None
            raise

    new = headers[1] | ({"X-Storage-Policy": policy} if policy else {})

    def put() -> None:
        swiftclient.put_container(url, token, name, headers=new, http_conn=place)

    found = call_persistently(head, on_retry)
    if found is None:
        call_persistently(put, on_retry, _TRANSIENT_FOR_PUT)
        return None
    actual = found.get("x-storage-policy")
    if policy and actual and not _is_same_policy(policy, actual, connection):
        return f"exists with the storage policy {actual!r}, not {policy!r}"
    return None


def _is_same_policy(asked: str, actual: str, connection: Any) -> bool:
    """Whether two names are of one policy: names know no case, and a policy may have aliases."""
    if asked.casefold() == actual.casefold():
        return True
    try:
        known = swiftclient.get_capabilities((connection.parsed_url._replace(path="/info"), connection))
        policies = known["swift"]["policies"]
        names = [
            {name.strip().casefold() for name in [one["name"], *one.get("aliases", "").split(",")]}
            for one in policies
        ]
    except (*CLIENT_ERRORS, LookupError, TypeError, ValueError, AttributeError):
        return False  # a cluster that does not tell
    return any({asked.casefold(), actual.casefold()} <= each for each in names)


# -- The clock of the store ------------------------------------------------------------------------


#: Samples are taken at this distance (seconds), which shows where the seconds of the store begin, until
#: the difference is known this well, or there are so many.
_SAMPLE_DISTANCE = 0.09
_ENOUGH_SECONDS = 0.15
_MAX_SAMPLES = 14

#: Time-outs of a request; the run waits for it. A store that is paused for a second has a clock all the same.
_CLOCK_TIMEOUTS = (5.0, 5.0)

#: When a request was sent, when its answer came, both by the clock here; the seconds of its Date.
ClockSample = tuple[float, float, float]


def bound_clock(samples: Iterable[ClockSample]) -> ClockBounds | None:
    """Return what is known of the difference; None where samples contradict each other, or are none.

    They contradict each other where several servers answer whose clocks differ.
    """
    least, most = float("-inf"), float("inf")
    for sent, received, date in samples:
        least, most = max(least, date - received), min(most, date + 1.0 - sent)
    return (least, most) if least <= most < float("inf") else None


def measure_clock_difference(
    url: str, verify: str | bool, *, now: Callable[[], float] = time.time
) -> ClockBounds | None:
    """Ask a server some times within two seconds; None where it does not tell."""
    samples: list[ClockSample] = []
    for sample in _take_samples(url, verify, now):
        samples.append(sample)
        found = bound_clock(samples)
        if found is None:
            return None
        if found[1] - found[0] <= _ENOUGH_SECONDS:
            break
    return bound_clock(samples)


def _take_samples(url: str, verify: str | bool, now: Callable[[], float]) -> Iterator[ClockSample]:
    with FixedSession() as session:
        for number in range(_MAX_SAMPLES):
            if number:
                time.sleep(_SAMPLE_DISTANCE)
            sent = now()
            try:
                answer = session.head(url, timeout=_CLOCK_TIMEOUTS, verify=verify)
                date = parsedate_to_datetime(answer.headers["Date"]).timestamp()
            except (requests.RequestException, OSError, KeyError, ValueError, OverflowError):
                return
            yield sent, now(), date


# -- Listings --------------------------------------------------------------------------------------


#: Rows of a page, which is also the maximum that Swift returns by default.
_PAGE_ROWS = 10_000

#: No object and no container has as many bytes or objects.
_MAX_NUMBER = 2**62

_NOT_FOUND_STATUS = 404
_UNAUTHORIZED_STATUS = 401


class ContainerListing:
    """Reads the listing of a container."""

    def __init__(self, access: StoreAccess[Session], container: str) -> None:
        self._container = container
        self._in_use = SessionInUse(access.session, access.renew, threading.Lock())
        self._connection = open_swift_connection(access, 0)
        self._place = self._connection.parsed_url, self._connection

    def objects(self, expect: Callable[[int], None]) -> Iterator[tuple[str, int]]:
        """Yield the name and the size of each object, in order; ``expect`` is called with their number first.

        Pages are as long as the cluster makes them, and end with an empty one. Raises ClusterError.
        """
        where = f"container {self._container!r}"
        try:
            yield from self._objects(expect)
        except WrongPageError as error:
            raise ClusterError(f"{where} cannot be listed: {error}") from None
        except (KeyError, TypeError, ValueError):
            raise ClusterError(f"{where}: its listing is no listing of objects") from None
        except CLIENT_ERRORS as error:
            if status_of_error(error) == _NOT_FOUND_STATUS:
                raise ClusterError(f"{self._connection.url}: there is no {where} in this account") from None
            raise ClusterError(f"{where} cannot be listed: {describe_client_error(error)}") from None
        finally:
            self._connection.close()

    def _objects(self, expect: Callable[[int], None]) -> Iterator[tuple[str, int]]:
        head = self._ask(swiftclient.head_container)
        expect(int(head.get("x-container-object-count", 0)))
        marker, order = "", PageOrder()
        while sizes := _numbers_by_name(self._ask(swiftclient.get_container, marker=marker)[1], "bytes"):
            order.take([name for name, _ in sizes])
            yield from sizes
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
    access: StoreAccess[Session], base: str, policy: str | None, *, longer: bool = False
) -> Iterator[tuple[str, int]]:
    """Yield the name and the approximate number of objects of each container that matches.

    With ``longer`` also those of base names that begin with this one and a hyphen.
    Raises ClusterError when the account cannot be listed.
    """
    patterns, prefix = [container_pattern(base, policy)], container_stem(base)
    if longer:
        patterns.append(longer_base_pattern(base, policy))
        prefix = base.rstrip("-")
    session = access.session
    connection = open_swift_connection(access, 0)
    place = (connection.parsed_url, connection)
    marker, order = "", PageOrder()

    def page() -> dict[str, int]:
        _, rows = swiftclient.get_account(
            connection.url, session.token, marker, _PAGE_ROWS, prefix, http_conn=place
        )
        return parse_listing(rows)

    try:
        while rows := call_persistently(page):
            order.take(list(rows))
            for name, count in rows.items():
                if any(pattern.match(name) for pattern in patterns):
                    yield name, count
            marker = max(rows)
    except WrongPageError as error:
        raise ClusterError(f"{session.storage_url}: containers cannot be listed: {error}") from None
    except CLIENT_ERRORS as error:
        raise ClusterError(
            f"{session.storage_url}: containers cannot be listed: {describe_client_error(error)}"
        ) from None
    finally:
        connection.close()


def parse_listing(rows: object) -> dict[str, int]:
    """Return names and their numbers of objects (0 for objects), or raise one of CLIENT_ERRORS."""
    try:
        return dict(_numbers_by_name(rows, "count", 0))
    except (TypeError, KeyError, ValueError):
        raise _make_malformed_error("listing: not a list of names") from None


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
    return requests.exceptions.InvalidJSONError(reason)
