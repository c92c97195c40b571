"""How requests fail: the short labels that reports count, the exception that carries one, and the times.

An :class:`AttemptError` is raised where an attempt fails and caught where the client of a store counts
attempts; beyond that a failure is data. How long requests may take, and the pauses between them, are here
because a master, which has no gevent, uses them too.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime

from ssbench.base.errors import SsbenchError

NAME_RESOLUTION = "name resolution"
CONNECT_REFUSED = "connect refused"
CONNECT_TIMEOUT = "connect timeout"
CONNECT_FAILED = "connect failed"
READ_TIMEOUT = "read timeout"  # no progress for --network-timeout
REQUEST_TIMEOUT = "request timeout"  # progress, but too slow for --request-timeout
RESET = "reset"
CLOSED = "closed"  # by the server, before the whole head of a response was received
SHORT_BODY = "short body"
BAD_RESPONSE = "bad response"
WRONG_CONTENT = "wrong content"  # with --verify: a whole answer of other bytes than were written
WRONG_METADATA = "wrong metadata"  # with --verify: other X-Object-Meta-Ssbench-* than were written
WRONG_ETAG = "wrong ETag"  # the ETag is the MD5 of other bytes than were sent or received
WRONG_LISTING = "wrong listing"  # a whole answer, but no listing in order, or of too many entries
WRONG_VERDICT = "wrong verdict"  # a success, but its body does not say that all was done
NOT_VERSIONED = "not versioned"  # a success, but the store has made no version
OF_ANOTHER_SCENARIO = "of another scenario"  # an object that was to be prepared for this one
WRONG_SIZE = "wrong size"  # a whole answer, but not of as many bytes as the object has
TLS_CERTIFICATE = "TLS certificate"
TLS_ERROR = "TLS error"

#: Statuses after which a request is retried: overload, time-out or rate limit (498 is Swift's own).
TRANSIENT_STATUSES = frozenset({408, 429, 498, 503})


def cause_of_status(status: int) -> str:
    """Return the cause of a status that is not 2xx, such as ``HTTP 503``."""
    return f"HTTP {status}"


NOT_FOUND = cause_of_status(404)

#: Causes after which a retry may succeed. A short body, one of a wrong size, a response that is not HTTP and
#: one that takes far too long are findings about the cluster that a retry would hide; a wrong certificate
#: stays wrong.
TRANSIENT_CAUSES = frozenset(
    {NAME_RESOLUTION, CONNECT_REFUSED, CONNECT_TIMEOUT, CONNECT_FAILED, READ_TIMEOUT, RESET, CLOSED}
) | {cause_of_status(status) for status in TRANSIENT_STATUSES}


#: How a request ends that the server may have carried out without our seeing its answer.
UNANSWERED_CAUSES = frozenset({CLOSED, RESET, READ_TIMEOUT})


class AttemptError(SsbenchError):
    """A failed attempt; ``cause`` is one of the labels above, the text is for the user.

    ``trans_id`` and ``status`` are those of the response, where there was one.
    """

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause
        self.trans_id: str | None = None
        self.status = 0


def make_connect_error(error: OSError, where: str) -> AttemptError:
    """Return the failure for an error of connecting to ``where``."""
    cause = CONNECT_FAILED
    if isinstance(error, ConnectionRefusedError):
        cause = CONNECT_REFUSED
    elif isinstance(error, TimeoutError):
        cause = CONNECT_TIMEOUT
    return AttemptError(cause, f"{where}: {error.strerror or error}")


def make_transfer_error(error: OSError) -> AttemptError:
    """Return the failure for an error of an established connection."""
    import ssl  # noqa: PLC0415 - a no-op run does without, and masters read the labels above only

    if isinstance(error, ssl.SSLCertVerificationError):
        return AttemptError(TLS_CERTIFICATE, error.verify_message or str(error))
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return AttemptError(CLOSED, "the server closed the connection within TLS")
    if isinstance(error, ssl.SSLError):
        return AttemptError(TLS_ERROR, error.reason or str(error))
    if isinstance(error, TimeoutError):  # ETIMEDOUT: the kernel stopped resending
        return AttemptError(READ_TIMEOUT, error.strerror or str(error))
    return AttemptError(RESET, error.strerror or str(error))


#: The pause before the first retry; it doubles with each one, and half of it is drawn at random (seconds).
FIRST_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 2.0

#: A server that asks for a longer pause before a retry than this gets this one (seconds).
MAX_RETRY_AFTER_SECONDS = 10.0

#: The default of a request's time-out is this many times that of the network.
NETWORK_TIMEOUTS = 3

#: While a body moves at this many bytes a second or more, the time-out of its request does not run.
MIN_BYTES_A_SECOND = 10_000

#: A job's end may be noticed so much later than its time-outs say: a share, and seconds.
_LATE_FACTOR = 1.1
_LATE_SECONDS = 5.0


def longest_job_seconds(
    connect_timeout: float,
    network_timeout: float,
    request_timeout: float | None,
    retries: int,
    size: int,
    requests: int = 2,
) -> float:
    """Return the most seconds that a worker can take for a job, whatever the server does.

    The time-outs are seconds, as in :class:`~.http.client.ClientSettings`; ``retries`` is how often
    a request may be tried again for any reason, ``size`` the bytes of the largest body, ``requests`` how many
    a job is at most, one after the other: an initial upload may be HEAD and PUT.
    """
    # Connecting may take its time-out twice, the second time for TLS.
    attempt = (
        2 * connect_timeout
        + (request_timeout or NETWORK_TIMEOUTS * network_timeout)
        + size / MIN_BYTES_A_SECOND
    )
    request = (retries + 1) * attempt + retries * MAX_RETRY_AFTER_SECONDS
    return requests * request * _LATE_FACTOR + _LATE_SECONDS


def pause_before(retry: int, asked: str | None) -> float:
    """Return the seconds before a retry, 1 being the first; ``asked`` is the answer's Retry-After."""
    seconds: float = min(FIRST_PAUSE_SECONDS * 2 ** min(retry - 1, 16), MAX_PAUSE_SECONDS) * random.uniform(
        0.5, 1.0
    )
    if asked is not None:
        seconds = max(seconds, min(_retry_after(asked), MAX_RETRY_AFTER_SECONDS))
    return seconds


def _retry_after(value: str) -> float:
    """Seconds that a Retry-After (RFC 9110, 10.2.3) asks for; 0 if it is neither number nor date."""
    if value.isdecimal():
        return float(value[:9])
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few stores send a date

    try:
        due = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return max(
        0.0, (due if due.tzinfo else due.replace(tzinfo=UTC)).timestamp() - datetime.now(UTC).timestamp()
    )
