"""How long requests may take, and pauses between them. Pure: a master, which has no gevent, uses it too."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

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

    The time-outs are seconds, as in :class:`~.swift.objects.ClientSettings`; ``retries`` is how often
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
    try:
        due = parsedate_to_datetime(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return max(
        0.0, (due if due.tzinfo else due.replace(tzinfo=UTC)).timestamp() - datetime.now(UTC).timestamp()
    )
