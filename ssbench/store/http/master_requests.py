"""Requests of the master, which has no gevent: asked, made on threads, and why they failed.

They are few: marks of runs, containers, listings, and what a store says of itself. :func:`ask_over_http`
makes them one after the other, each on a connection of its own. The bytes are those that a worker would send,
of the same dialect. They go through the proxies of the environment, as those of python-swiftclient do.
"""

from __future__ import annotations

import http
import http.client
import json
import logging
import queue
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from http.client import HTTPException

import keystoneauth1.exceptions
import requests
import swiftclient
import urllib3
import urllib3.exceptions

from ssbench.base.errors import ContainersError
from ssbench.base.text_values import format_duration
from ssbench.store import contract
from ssbench.store.contract import (
    BAD_RESPONSE,
    TRANSIENT_STATUSES,
    WRONG_LISTING,
    WRONG_VERDICT,
    RequestOutcome,
    StoreAccess,
    StoreReply,
    StoreRequest,
    cause_of_status,
)
from ssbench.store.credentials import Session
from ssbench.store.http.dialect import HttpDialect, is_success_status
from ssbench.store.http.redirects import FixedSession, RedirectRefusedError, describe_redirect
from ssbench.store.listing_pages import WrongPageError

#: The exceptions of python-swiftclient and keystoneauth for failed requests.
CLIENT_ERRORS = (
    swiftclient.ClientException,
    keystoneauth1.exceptions.ClientException,
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    json.JSONDecodeError,
    UnicodeDecodeError,
    RecursionError,  # of JSON that is nested deeply
    OSError,
)


def status_of_error(error: BaseException) -> int | None:
    """Return the HTTP status of the response, None when there was no response."""
    for refused in _find_refused_redirects(error):
        return refused.status_code
    for name in ("http_status", "status_code"):
        code = getattr(error, name, None)
        if isinstance(code, int) and code:
            return code
    return None


def field_of_error(error: BaseException, name: str) -> str | None:
    """Return a field of the response, by its name in lower case; None when it has none."""
    response = getattr(error, "response", None)
    fields = getattr(error, "http_response_headers", None) or getattr(response, "headers", None) or {}
    return next((value for each, value in dict(fields).items() if each.lower() == name), None)


def describe_client_error(error: BaseException) -> str:
    """Describe in a few words why a request failed, by the labels of :mod:`ssbench.store.contract`.

    python-swiftclient and keystoneauth wrap the exceptions of requests and urllib3, and some of their texts
    contain what was sent, such as a malformed header with the password in it. The words come from the
    innermost cause and contain nothing that was sent.
    """
    code = status_of_error(error)
    if code is not None:
        status = f"HTTP {code} {_phrase_of(code)}".strip()
        location = _find_location(error) if 300 <= code < 400 else None
        return status if location is None else f"{status}, {describe_redirect(location)}"
    chain = list(_error_chain(error))
    for kinds, cause in _CAUSES_OF_ERRORS:
        for inner in chain:
            if isinstance(inner, kinds):
                return cause + _error_detail(inner)
    # An error of the kernel; exceptions of requests are OSErrors too, but have no number.
    for inner in chain:
        if isinstance(inner, OSError) and inner.errno and inner.strerror:
            return f"{contract.CONNECT_FAILED}: {inner.strerror}"
    return type(chain[-1]).__name__


def _find_refused_redirects(error: BaseException) -> Iterator[RedirectRefusedError]:
    return (each for each in _error_chain(error) if isinstance(each, RedirectRefusedError))


def _find_location(error: BaseException) -> str | None:
    """Return the target of a redirect; None for other answers."""
    for refused in _find_refused_redirects(error):
        return refused.location
    return field_of_error(error, "location")


#: The first match counts: an exception wraps others, which are more or less specific.
_CAUSES_OF_ERRORS: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLCertVerificationError, contract.TLS_CERTIFICATE),
    (ssl.SSLError, contract.TLS_ERROR),
    (socket.gaierror, contract.NAME_RESOLUTION),
    (ConnectionRefusedError, contract.CONNECT_REFUSED),
    (http.client.RemoteDisconnected, contract.CLOSED),
    (ConnectionResetError, contract.RESET),
    (BrokenPipeError, contract.RESET),
    (http.client.HTTPException, contract.BAD_RESPONSE),
    (keystoneauth1.exceptions.InvalidResponse, contract.BAD_RESPONSE),
    (json.JSONDecodeError, contract.BAD_RESPONSE),
    (UnicodeDecodeError, contract.BAD_RESPONSE),
    (RecursionError, contract.BAD_RESPONSE),
    (requests.exceptions.InvalidJSONError, contract.BAD_RESPONSE),
    (requests.TooManyRedirects, "too many redirects"),
    (requests.ReadTimeout, contract.READ_TIMEOUT),
    (urllib3.exceptions.ReadTimeoutError, contract.READ_TIMEOUT),
    (requests.ConnectTimeout, contract.CONNECT_TIMEOUT),
    (keystoneauth1.exceptions.ConnectTimeout, contract.CONNECT_TIMEOUT),
)


def _error_detail(error: BaseException) -> str:
    # Errors that the ssl module did not raise itself lack some of these.
    if isinstance(error, ssl.SSLError):
        said = getattr(error, "verify_message", "") or getattr(error, "reason", "") or error.strerror
    elif isinstance(error, socket.gaierror):
        said = error.strerror
    else:
        return ""
    return f": {said}{_tls_advice(error)}" if said else ""


#: Codes of OpenSSL for a certificate that is good, but for another host, e-mail or address.
_OTHER_NAME_CODES = frozenset({62, 63, 64})


def _tls_advice(error: BaseException) -> str:
    """Return advice for a TLS error, by its text."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _OTHER_NAME_CODES:
            return "; use the name that the certificate has in the URL; --insecure does not look"
        return "; --os-cacert FILE trusts it, --insecure does not look"
    if getattr(error, "reason", None) in _NO_TLS_REASONS:
        return "; does the server speak TLS there? http:// is without"
    return ""


#: What OpenSSL says of an answer that is none of TLS; the second one since 3.2.
_NO_TLS_REASONS = frozenset({"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"})


def _error_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and all exceptions that it wraps, outermost first."""
    seen: set[int] = set()
    waiting: deque[object] = deque([error])
    while waiting:
        inner = waiting.popleft()
        if isinstance(inner, BaseException) and id(inner) not in seen:
            seen.add(id(inner))
            yield inner
            waiting.extend((inner.__cause__, inner.__context__, getattr(inner, "reason", None), *inner.args))


# -- Containers on threads -------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: Seconds between two messages on what it waits for.
_SAY_SECONDS = 5.0

#: Seconds between two looks at whether to wait on.
_TICK_SECONDS = 0.1

#: How many failures an error's text has in full.
_MAX_FULL_FAILURES = 3

#: Makes a container; returns where that is, and why it failed, None where it did not.
ContainerMaker = Callable[[str], tuple[str, str | None]]


def make_containers(
    open_maker: Callable[[int], AbstractContextManager[ContainerMaker]],
    names: Iterable[str],
    concurrency: int,
    advance: Callable[[], None],
    check: Callable[[], None],
    longest: float,
) -> None:
    """Make containers, ``concurrency`` at once, each in at most so many seconds.

    ``open_maker`` gets the number of a thread, and returns what makes them there. ``advance`` is called in
    this thread for each that is there, ``check`` some times a second; what they raise ends it at once. Raises
    ContainersError, which names the containers that could not be made (after the first one no further one is
    begun), and what a maker raises.

    The threads are daemons, so a server that does not answer delays neither Ctrl-C nor the end of the
    program. Those of :mod:`concurrent.futures` would: the interpreter waits for them.
    """
    makers = _MakerThreads(open_maker, names, longest)
    try:
        makers.start(concurrency)
        failures = makers.wait(advance, check)
    finally:
        makers.stop.set()
    if failures:
        raise ContainersError(describe_failed_containers(failures))


class _MakerThreads:
    """The threads that make containers, and what the caller's thread knows of them."""

    def __init__(
        self,
        open_maker: Callable[[int], AbstractContextManager[ContainerMaker]],
        names: Iterable[str],
        longest: float,
    ) -> None:
        self.stop = threading.Event()
        self._open_maker = open_maker
        self._longest = longest
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._total = 0
        for name in names:
            self._waiting.put(name)
            self._total += 1
        self._running = 0
        # What is being made now, and since when.
        self._since: dict[str, float] = {}
        # A container and why it failed, if it did; or the end of a thread, and what ended it if that
        # was no failure of a request.
        self._ended: queue.SimpleQueue[tuple[str, str | None] | BaseException | None] = queue.SimpleQueue()

    def start(self, concurrency: int) -> None:
        self._running = min(concurrency, self._total)
        for index in range(self._running):
            threading.Thread(
                target=self._work, args=(index,), name=f"containers-{index}", daemon=True
            ).start()

    def wait(self, advance: Callable[[], None], check: Callable[[], None]) -> list[tuple[str, str]]:
        """Return containers that failed, and why, once all threads have ended, or one took too long."""
        failures: list[tuple[str, str]] = []
        most = self._longest
        ended_at = said_at = time.monotonic()
        made = 0
        while self._running:
            check()
            now = time.monotonic()
            if late := [name for name, since in list(self._since.items()) if now - since > most]:
                return [*failures, *((name, f"not made within {format_duration(most)}") for name in late)]
            if now - max(ended_at, said_at) >= _SAY_SECONDS:
                said_at = now
                self._say(made, now - ended_at)
            try:
                news = self._ended.get(timeout=_TICK_SECONDS)
            except queue.Empty:
                continue
            ended_at = time.monotonic()
            if isinstance(news, BaseException):
                raise news
            if news is None:
                self._running -= 1
            else:
                place, cause = news
                if cause is None:
                    made += 1
                    advance()
                else:
                    failures.append((place, cause))
        return failures

    def _say(self, made: int, seconds: float) -> None:
        names = list(self._since)
        more = f" and {len(names) - _MAX_FULL_FAILURES} more" if len(names) > _MAX_FULL_FAILURES else ""
        _log.info(
            "Waiting for containers: %d of %d are there, none has come for %.0f s; under way: %s%s",
            made,
            self._total,
            seconds,
            ", ".join(names[:_MAX_FULL_FAILURES]),
            more,
        )

    # -- in the threads -----------------------------------------------------------------------

    def _work(self, index: int) -> None:
        fault = None
        try:
            with self._open_maker(index) as make:
                while not self.stop.is_set():
                    name = self._waiting.get_nowait()
                    self._since[name] = time.monotonic()
                    place, failure = make(name)
                    self._since.pop(name, None)
                    if failure is not None:
                        self.stop.set()
                    self._ended.put((place, failure))
        except queue.Empty:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            fault = error
        self._ended.put(fault)


def describe_failed_containers(failures: Iterable[tuple[str, str]]) -> str:
    """Return why containers failed, with one of them for each reason."""
    places: dict[str, list[str]] = {}
    for place, cause in failures:
        places.setdefault(cause, []).append(place)
    shown = [
        f"{first}{f' and {len(others)} more' if others else ''}: {cause}"
        for cause, (first, *others) in list(places.items())[:_MAX_FULL_FAILURES]
    ]
    more = (
        f"; and {len(places) - _MAX_FULL_FAILURES} other reasons" if len(places) > _MAX_FULL_FAILURES else ""
    )
    return f"containers could not be made: {'; '.join(shown)}{more}"


# -- Requests --------------------------------------------------------------------------------------


#: The most bytes of an answer: twice those of 10,000 names of 1,024 bytes, each of which JSON writes as six.
_MOST_BYTES = 128 * 1024 * 1024
#: Bytes of an answer that are read at once.
_PIECE = 64 * 1024

#: Pauses before the second and later attempts, in seconds.
_RETRY_PAUSES = (0.2, 0.5, 1.0, 2.0)

#: Seconds after the first attempt in which further ones may begin.
_RETRY_SECONDS = 8.0

#: What may be a page of a proxy in front of the store.
_PASSING_CAUSES = frozenset({BAD_RESPONSE})

_ID_FIELDS = ("x-trans-id", "x-openstack-request-id", "x-amz-request-id")


def ask_over_http(
    dialect: HttpDialect,
    access: StoreAccess[Session],
    request: StoreRequest,
    retry_seconds: float | None = None,
    passing: frozenset[int] = TRANSIENT_STATUSES,
) -> RequestOutcome:
    """Make a request, some more times where its failure may be gone by then; return how it ended.

    The fields and the body of the answer are in the outcome whatever its status is; of a listing the body is
    one. Attempts begin within ``retry_seconds`` (None: the usual ones); a status leads to another one if it
    is in ``passing``. A request that cannot be sent raises UsageError.
    """
    if access.session.insecure:
        # Which was asked for; urllib3 would say so again with each connection.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    began = time.monotonic()
    limit = _RETRY_SECONDS if retry_seconds is None else retry_seconds
    for pause in _RETRY_PAUSES:
        outcome = _ask_once(dialect, access, request)
        passes = outcome.status in passing or outcome.cause in _PASSING_CAUSES
        passes |= outcome.cause is not None and not outcome.status
        if not passes or time.monotonic() - began + pause > limit:
            return outcome
        time.sleep(pause)
    return _ask_once(dialect, access, request)


def _ask_once(dialect: HttpDialect, access: StoreAccess[Session], request: StoreRequest) -> RequestOutcome:
    session = access.session
    head, _, body = dialect.head(request, session.token).partition(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    fields = {name: value.strip() for name, _, value in (each.partition(":") for each in lines)}
    began = time.monotonic()
    try:
        with FixedSession() as sender:
            sender.headers.clear()
            sender.auth = _leave_unchanged  # else requests looks for a password in ~/.netrc
            with sender.request(
                method,
                f"{dialect.endpoint.scheme}://{fields['Host']}{target}",
                headers={name: value.encode("latin-1") for name, value in fields.items()},
                data=body or None,
                timeout=access.timeouts,
                verify=False if session.insecure else (session.ca_file or True),
                stream=True,
            ) as answer:
                content = _read_body(answer)
    except CLIENT_ERRORS as error:
        return RequestOutcome(0, None, None, time.monotonic(), cause=describe_client_error(error))
    except ValueError as error:  # a chunk of a size below 0
        return RequestOutcome(0, None, None, time.monotonic(), cause=f"{BAD_RESPONSE}: {error}")
    took = time.monotonic() - began
    found = {name.lower(): value for name, value in answer.headers.items()}
    status = answer.status_code
    cause, detail = None, ""
    missing = request.missing_ok and status == http.HTTPStatus.NOT_FOUND
    if not is_success_status(status, request) and not missing:
        cause, detail = cause_of_status(status), dialect.describe_error(content) or _phrase_of(status)
        if 300 <= status < 400 and "location" in found:
            detail += f", {describe_redirect(found['location'])}"
    elif fault := dialect.find_fault(request, content):
        cause, detail = WRONG_VERDICT, fault
    elif request.listing is not None and not missing and status != http.HTTPStatus.NO_CONTENT:
        try:
            dialect.read_page(content, request)
        except ValueError as error:
            # A store that ignores the request does so again.
            lasting = isinstance(error, WrongPageError)
            cause, detail = (WRONG_LISTING, f"{error}") if lasting else (BAD_RESPONSE, f"listing: {error}")
    return RequestOutcome(
        0,
        took if cause is None else None,
        took if cause is None else None,
        time.monotonic(),
        size=len(content),
        trans_id=next((found[name] for name in _ID_FIELDS if name in found), None),
        cause=cause,
        detail=detail,
        unauthorized=status == http.HTTPStatus.UNAUTHORIZED,
        status=status,
        reply=StoreReply(found, content),
    )


def _leave_unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _read_body(answer: requests.Response) -> bytes:
    """Return the body of an answer, which need not have an end."""
    pieces, left = [], _MOST_BYTES
    for piece in answer.iter_content(_PIECE):
        left -= len(piece)
        if left < 0:
            reason = HTTPException(f"more than {_MOST_BYTES} bytes")
            raise urllib3.exceptions.ProtocolError(str(reason), reason)
        pieces.append(piece)
    return b"".join(pieces)


def _phrase_of(status: int) -> str:
    return http.HTTPStatus(status).phrase if status in http.HTTPStatus.__members__.values() else ""
