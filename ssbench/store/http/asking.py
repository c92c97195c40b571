"""Requests of the master, which has no gevent: one after the other, each on a connection of its own.

They are few: marks of runs, containers, listings, and what a store says of itself. The bytes are those that a
worker would send, of the same dialect. They go through the proxies of the environment, as those of
python-swiftclient do.
"""

from __future__ import annotations

import http
import time
from http.client import HTTPException

import requests
import urllib3.exceptions

from ssbench.store.contract import RequestOutcome, StoreReply, StoreRequest
from ssbench.store.credentials import Session
from ssbench.store.failures import BAD_RESPONSE, TRANSIENT_STATUSES, WRONG_VERDICT, cause_of_status
from ssbench.store.http.client_errors import CLIENT_ERRORS, describe_client_error
from ssbench.store.http.dialect import HttpDialect, is_success_status

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
    session: Session,
    request: StoreRequest,
    timeouts: tuple[float, float],
    retry_seconds: float | None = None,
    passing: frozenset[int] = TRANSIENT_STATUSES,
) -> RequestOutcome:
    """Make a request, some more times where its failure may be gone by then; return how it ended.

    The fields and the body of the answer are in the outcome whatever its status is; of a listing the body is
    one. ``timeouts`` are those of
    connecting and of each wait for bytes, in seconds. Attempts begin within ``retry_seconds`` (None: the
    usual ones); a status leads to another one if it is in ``passing``. A request that cannot be sent raises
    UsageError.
    """
    began = time.monotonic()
    limit = _RETRY_SECONDS if retry_seconds is None else retry_seconds
    for pause in _RETRY_PAUSES:
        outcome = _ask_once(dialect, session, request, timeouts)
        passes = outcome.status in passing or outcome.cause in _PASSING_CAUSES
        passes |= outcome.cause is not None and not outcome.status
        if not passes or time.monotonic() - began + pause > limit:
            return outcome
        time.sleep(pause)
    return _ask_once(dialect, session, request, timeouts)


def _ask_once(
    dialect: HttpDialect, session: Session, request: StoreRequest, timeouts: tuple[float, float]
) -> RequestOutcome:
    head, _, body = dialect.head(request, session.token).partition(b"\r\n\r\n")
    line, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    fields = {name: value.strip() for name, _, value in (each.partition(":") for each in lines)}
    began = time.monotonic()
    try:
        with requests.Session() as sender:
            sender.headers.clear()
            sender.auth = _leave_unchanged  # else requests looks for a password in ~/.netrc
            with sender.request(
                method,
                f"{dialect.endpoint.scheme}://{fields['Host']}{target}",
                headers={name: value.encode("latin-1") for name, value in fields.items()},
                data=body or None,
                timeout=timeouts,
                verify=False if session.insecure else (session.ca_file or True),
                allow_redirects=False,
                stream=True,
            ) as answer:
                content = _read_body(answer)
    except CLIENT_ERRORS as error:
        return RequestOutcome(0, None, None, time.monotonic(), cause=describe_client_error(error))
    took = time.monotonic() - began
    found = {name.lower(): value for name, value in answer.headers.items()}
    status = answer.status_code
    cause, detail = None, ""
    missing = request.missing_ok and status == http.HTTPStatus.NOT_FOUND
    if not is_success_status(status, request) and not missing:
        cause, detail = cause_of_status(status), dialect.describe_error(content) or _phrase_of(status)
    elif fault := dialect.find_fault(request, content):
        cause, detail = WRONG_VERDICT, fault
    elif request.listing is not None and not missing and status != http.HTTPStatus.NO_CONTENT:
        try:
            dialect.read_page(content, request)
        except ValueError as error:
            cause, detail = BAD_RESPONSE, f"listing: {error}"
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
