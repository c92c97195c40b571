"""When a token that Swift refuses is renewed, and how often a request is sent again with a new one.

One policy for all that send requests: the loop of a run asks on a thread (:mod:`ssbench.run.tokens`), those
that make and delete containers wait with :class:`SessionInUse`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from ssbench.base.errors import SsbenchError
from ssbench.store.swift.credentials import Session

_log = logging.getLogger(__name__)

#: A request fails when its token was refused more often than this.
_MAX_REFUSALS = 10

#: Tokens are renewed at most this often (seconds): a Swift that refuses each one gets no storm of requests.
RENEWAL_INTERVAL = 1.0

#: The longest pause between two attempts (seconds); the first is :data:`RENEWAL_INTERVAL`, then it doubles.
_MAX_PAUSE_SECONDS = 10.0


def is_sent_again(refusals: int) -> bool:
    """Return whether a request whose token was refused so often is sent again with a new one."""
    return refusals <= _MAX_REFUSALS


def pause_after_failures(failures: int) -> float:
    """Return the seconds before the next attempt at a new token, after this many failures in a row."""
    return min(RENEWAL_INTERVAL * 2.0 ** (failures - 1), _MAX_PAUSE_SECONDS)


class SessionInUse:
    """The session of several concurrent requests; the first one whose token is refused renews it.

    ``renew`` returns a new session or raises SsbenchError; None where there is no way to a new token.
    ``exclusive`` is a lock, and ``sleep`` waits, for the kind of concurrency: threads or greenlets.
    """

    def __init__(
        self,
        session: Session,
        renew: Callable[[], Session] | None,
        exclusive: AbstractContextManager[object],
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session = session
        self._renew = renew
        self._exclusive = exclusive
        self._sleep = sleep
        self._clock = clock
        self._failures = 0
        self._next_at = float("-inf")

    def renew(self, refused: Session, refusals: int) -> bool:
        """Make sure that there is another session than the one refused; return whether to send again.

        ``refusals`` is how many tokens of this request were refused. Waits where the token was renewed just
        now. While the service that issues tokens fails, there are pauses between attempts, in which requests
        fail. Raises what ``renew`` raises.
        """
        if not is_sent_again(refusals):
            return False
        with self._exclusive:
            if self.session is not refused:
                return True
            wait = self._next_at - self._clock()
            if self._renew is None or (wait > 0 and self._failures):
                return False
            if wait > 0:
                self._sleep(wait)
            _log.info("Swift no longer takes the token; authenticating again")
            try:
                self.session = self._renew()
            except SsbenchError:
                self._failures += 1
                self._next_at = self._clock() + pause_after_failures(self._failures)
                raise
            self._failures = 0
            self._next_at = self._clock() + RENEWAL_INTERVAL
            return True
