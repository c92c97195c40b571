"""How far a clock here is from that of a store, from the ``Date`` of its answers, which has whole seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from email.utils import parsedate_to_datetime

import requests

from ssbench.store.contract import ClockBounds

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
    with requests.Session() as session:
        for number in range(_MAX_SAMPLES):
            if number:
                time.sleep(_SAMPLE_DISTANCE)
            sent = now()
            try:
                answer = session.head(url, timeout=_CLOCK_TIMEOUTS, verify=verify, allow_redirects=False)
                date = parsedate_to_datetime(answer.headers["Date"]).timestamp()
            except (requests.RequestException, OSError, KeyError, ValueError, OverflowError):
                return
            yield sent, now(), date
