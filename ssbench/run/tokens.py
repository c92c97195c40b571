"""Renewing the token in the middle of a run, on a thread, so that the master's loop goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

#: Tokens are renewed at most this often (seconds); a Swift that refuses each is not stormed.
_INTERVAL = 1.0


class TokenRenewal:
    """Calls ``authenticate``, which returns a token or raises, at most once at a time.

    Without it (None) there is nothing to renew: the token was given by the user.
    """

    def __init__(self, authenticate: Callable[[], str] | None) -> None:
        self._authenticate = authenticate
        self._future: Future[str] | None = None
        self._finished_at = float("-inf")
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="renew-token")

    @property
    def possible(self) -> bool:
        """Whether there is any use in :meth:`start`."""
        return self._authenticate is not None

    @property
    def under_way(self) -> bool:
        """Whether a renewal was started and :meth:`finished` has not seen its end."""
        return self._future is not None

    def start(self, now: float) -> None:
        """Begin to authenticate."""
        if self._authenticate is not None and self._future is None:
            delay = max(0.0, self._finished_at + _INTERVAL - now)
            self._future = self._threads.submit(self._renew, self._authenticate, delay)

    def finished(self, now: float) -> str | None:
        """The new token, once; None while there is none. Raises what authentication raised."""
        if self._future is None or not self._future.done():
            return None
        future, self._future = self._future, None
        self._finished_at = now
        return future.result()

    @staticmethod
    def _renew(authenticate: Callable[[], str], delay: float) -> str:
        time.sleep(delay)
        return authenticate()

    def close(self) -> None:
        """Forget a renewal that has not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)
