"""Why a request of python-swiftclient or keystoneauth failed, in a few words.

Both wrap the exceptions of requests and urllib3, and some of their texts contain what was sent, such as
a malformed header with the password in it. The words chosen here come from the innermost cause and
contain nothing that was sent.
"""

from __future__ import annotations

import http
import http.client
import json
import socket
import ssl
from collections import deque
from collections.abc import Iterator

import keystoneauth1.exceptions
import requests
import swiftclient
import urllib3.exceptions

from ssbench.store import failures

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
    for name in ("http_status", "status_code"):
        code = getattr(error, name, None)
        if isinstance(code, int) and code:
            return code
    return None


def describe_client_error(error: BaseException) -> str:
    """Describe in a few words why a request failed, by the labels of :mod:`ssbench.store.failures`."""
    code = status_of_error(error)
    if code is not None:
        known = code in http.HTTPStatus.__members__.values()
        return f"HTTP {code} {http.HTTPStatus(code).phrase}" if known else f"HTTP {code}"
    chain = list(_error_chain(error))
    for kinds, cause in _CAUSES_OF_ERRORS:
        for inner in chain:
            if isinstance(inner, kinds):
                return cause + _error_detail(inner)
    # An error of the kernel; exceptions of requests are OSErrors too, but have no number.
    for inner in chain:
        if isinstance(inner, OSError) and inner.errno and inner.strerror:
            return f"{failures.CONNECT_FAILED}: {inner.strerror}"
    return type(chain[-1]).__name__


#: The first match counts: an exception wraps others, which are more or less specific.
_CAUSES_OF_ERRORS: tuple[tuple[type[BaseException], str], ...] = (
    (ssl.SSLCertVerificationError, failures.TLS_CERTIFICATE),
    (ssl.SSLError, failures.TLS_ERROR),
    (socket.gaierror, failures.NAME_RESOLUTION),
    (ConnectionRefusedError, failures.CONNECT_REFUSED),
    (http.client.RemoteDisconnected, failures.CLOSED),
    (ConnectionResetError, failures.RESET),
    (BrokenPipeError, failures.RESET),
    (http.client.HTTPException, failures.BAD_RESPONSE),
    (keystoneauth1.exceptions.InvalidResponse, failures.BAD_RESPONSE),
    (json.JSONDecodeError, failures.BAD_RESPONSE),
    (UnicodeDecodeError, failures.BAD_RESPONSE),
    (RecursionError, failures.BAD_RESPONSE),
    (requests.exceptions.InvalidJSONError, failures.BAD_RESPONSE),
    (requests.ReadTimeout, failures.READ_TIMEOUT),
    (urllib3.exceptions.ReadTimeoutError, failures.READ_TIMEOUT),
    (requests.ConnectTimeout, failures.CONNECT_TIMEOUT),
    (keystoneauth1.exceptions.ConnectTimeout, failures.CONNECT_TIMEOUT),
)


def _error_detail(error: BaseException) -> str:
    # Errors that the ssl module did not raise itself lack some of these.
    if isinstance(error, ssl.SSLError):
        said = getattr(error, "verify_message", "") or getattr(error, "reason", "") or error.strerror
    elif isinstance(error, socket.gaierror):
        said = error.strerror
    else:
        return ""
    return f": {said}" if said else ""


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
