"""Metrics on their way to a server that takes them: from a thread of its own, which nothing waits for.

A server that is slow or gone changes nothing of the run. What was not delivered is counted, and said at the
end of the program; the first failure is said at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Condition, Thread

from ssbench.base import interruption
from ssbench.base.printable import make_printable

_log = logging.getLogger(__name__)

#: Seconds that deliveries have at the end of the program, and those that they have after a line has said what
#: is waited for, unless they failed before.
_SAY_AFTER_SECONDS, _LAST_SECONDS = 2.0, 10.0

#: Seconds between two looks at whether to wait on.
_TICK_SECONDS = 0.1

#: Two deliveries that are asked for within so many seconds are one.
_MERGE_SECONDS = 1.0


class DeliveryError(Exception):
    """A server has not taken the metrics; the text says why."""


class MetricsSender:
    """A context manager that delivers metrics to ``url``; messages name the ``option`` that asked for it.

    ``deliver`` takes what is counted now and raises DeliveryError; it may take its time. ``give_up`` is
    called at the end where it takes too long. ``trouble`` returns why the delivery under way will probably
    fail, an empty text where that is not known. With ``every``, there is a delivery each so many seconds
    besides that at the end of each run. ``lost`` of the ``asked`` deliveries were not made, the last of them
    for this ``reason``.
    """

    def __init__(
        self,
        option: str,
        url: str,
        deliver: Callable[[], None],
        *,
        give_up: Callable[[], None] = lambda: None,
        trouble: Callable[[], str] = lambda: "",
        every: float | None = None,
    ) -> None:
        self.asked = self.lost = 0
        self.reason = ""
        self._option, self._url = option, url
        self._deliver, self._give_up, self._trouble = deliver, give_up, trouble
        self._every = every
        self._next = self._waits_since = 0.0
        self._has_changed = Condition()
        self._waiting = self._ending = self._failing = False
        self._under_way = self._said = False
        self._thread = Thread(target=self._work, name=option, daemon=True)
        self._thread.start()

    def __enter__(self) -> MetricsSender:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Wait for what is under way, for some seconds; then say what was not delivered."""
        with self._has_changed:
            self._ending = True
            self._has_changed.notify_all()
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            self._wait()
        if self._thread.is_alive():
            self._give_up()
        self._say()

    def counted(self, now: float) -> None:
        """Deliver where it is time to; ``now`` is the clock of the run."""
        if self._every is not None and now >= self._next:
            self._next = now + self._every
            self.send()

    def send(self) -> None:
        """Deliver what is counted now. Where a delivery still waits to be made, this one replaces it."""
        now = time.monotonic()
        with self._has_changed:
            if self._waiting and now - self._waits_since > _MERGE_SECONDS:
                self.lost += 1
                self.reason = "the server is too slow"
            if not self._waiting or now - self._waits_since > _MERGE_SECONDS:
                self.asked += 1
                self._waits_since = now
            self._waiting = True
            self._has_changed.notify_all()

    def _work(self) -> None:
        """Deliver; the main function of the thread."""
        while True:
            with self._has_changed:
                self._has_changed.wait_for(lambda: self._waiting or self._ending)
                if not self._waiting:
                    return
                self._waiting, self._under_way = False, True
            try:
                self._deliver()
                failure = ""
            except DeliveryError as error:
                failure = make_printable(str(error))
            except Exception as error:  # noqa: BLE001 - of a library; the run continues whatever it is
                failure = make_printable(f"{type(error).__name__}: {error}")
            with self._has_changed:
                self._under_way = False
                first = bool(failure) and not self.lost
                self._failing = bool(failure)
                if failure:
                    self.lost += 1
                    self.reason = failure
            if first and not self._ending:
                self._said = True
                again = f"; it is tried again every {self._every:g} s" if self._every else ""
                _log.warning("%s: %s: %s%s", self._option, self._url, failure, again)

    def _wait(self) -> None:
        self._join(_SAY_AFTER_SECONDS)
        if self._thread.is_alive() and not self._failing and not self._trouble():
            _log.info("Waiting for %s to take the metrics, for %g s at most", self._url, _LAST_SECONDS)
            self._join(_LAST_SECONDS)

    def _join(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self._thread.is_alive() and (left := end - time.monotonic()) > 0:
            interruption.raise_if_interrupted()
            self._thread.join(min(_TICK_SECONDS, left))

    def _say(self) -> None:
        with self._has_changed:
            open_ = self._waiting + self._under_way
            lost = self.lost + open_
            if not lost or (self._said and self.asked == 1):
                return
            reason = make_printable(self._trouble() or "no answer in time") if open_ else self.reason
            last = (
                "the last one too, so the server does not know how the run ended"
                if open_ or self._failing
                else "the last one was made, and has all counts"
            )
        _log.warning(
            "%s: %d of %d deliveries to %s were not made (%s); %s",
            *(self._option, lost, self.asked, self._url, reason, last),
        )
