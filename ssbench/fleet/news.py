"""What the user is told of workers: each by name while they are few, hundreds of them in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ssbench.fleet.dispatch import Event
from ssbench.fleet.worker_state import WorkerState

#: Lines that name a single worker, at most so many within so many seconds; what exceeds that is gathered.
_NAMED = 4
_WINDOW_SECONDS = 1.0

#: Most ranges of worker ids, and most workers, that a line lists.
_MOST_RANGES = 12
_MOST_NAMED = 3

#: Kinds of events that are no warnings.
_GOOD = frozenset({"joined", "back"})
#: Kinds that the report tells at its end, with their counts.
_COUNTED = frozenset({"foreign", "invalid"})

_GATHERED = {
    "joined": "joined",
    "back": "are back and are used again",
    "left": "have ended",
    "lost": "have not been heard of any more and count as lost",
    "cut off": "cannot be reached on the work port, although their heartbeats arrive, and count as lost",
    "unreachable": "send heartbeats but cannot be reached on the work port",
    "jobs lost": "have lost jobs because they were held up or their connections broke",
}


class Line(NamedTuple):
    """A line for the user; ``warning`` for the log, ``keep`` for the report too."""

    text: str
    warning: bool
    keep: bool


class News:
    """Turns events into lines, of which there are few however many events there are."""

    def __init__(self) -> None:
        self._held: list[Event] = []
        self._window_ends = 0.0
        self._names_left = 0

    def lines(self, events: Sequence[Event], now: float, *, all_of_it: bool = False) -> list[Line]:
        """Take in events; return what is to be said now. Some may be held back for a second.

        With ``all_of_it`` nothing is held back.
        """
        held = self._held
        held += events
        if not held:
            return []
        if now >= self._window_ends:
            self._window_ends = now + _WINDOW_SECONDS
            self._names_left = _NAMED
        elif len(held) > self._names_left and not all_of_it:
            return []
        self._held = []
        self._names_left -= len(held)
        return _gather(held)


def _gather(events: Sequence[Event]) -> list[Line]:
    by_kind: dict[str, list[Event]] = {}
    for event in events:
        by_kind.setdefault(event.kind, []).append(event)
    lines: list[Line] = []
    for event in events:
        alike = by_kind.get(event.kind)
        if alike is None:
            continue
        text = _together(by_kind.pop(event.kind)) if len(alike) > _NAMED else event.text
        lines.append(Line(text, event.kind not in _GOOD, event.kind not in _GOOD | _COUNTED))
    return lines


def _together(events: Sequence[Event]) -> str:
    kind = events[0].kind
    hosts = {event.worker.host for event in events}
    where = f"{len(hosts)} hosts" if len(hosts) > 1 else f"host {next(iter(hosts))}"
    ids = id_ranges(event.worker.worker_id for event in events)
    jobs = sum(event.jobs for event in events)
    text = f"{len(events):,} workers on {where} (ids {ids}) {_GATHERED.get(kind, kind)}"
    if jobs:
        text += f", with {jobs:,} jobs"
    return text if kind in _GATHERED else f"{text}; the first: {events[0].text}"


def id_ranges(ids: Iterable[int]) -> str:
    """Name numbers as ranges, ``0-7, 9``; a long list is cut."""
    ranges: list[list[int]] = []
    for number in sorted(set(ids)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    told = [f"{low}-{high}" if high > low else str(low) for low, high in ranges[:_MOST_RANGES]]
    return ", ".join(told) + (", ..." if len(ranges) > _MOST_RANGES else "")


def strange_results(workers: Iterable[WorkerState]) -> list[str]:
    """For the report: how many results were ignored or refused, and whose they were."""
    workers = list(workers)
    lines = []
    for counts, text in (
        (
            [(worker, worker.foreign_results) for worker in workers if worker.foreign_results],
            "named jobs that other workers had and were ignored",
        ),
        (
            [(worker, worker.invalid_results) for worker in workers if worker.invalid_results],
            "had figures that cannot be and count as errors",
        ),
    ):
        if counts:
            names = [
                f"{count:,} of worker {worker.worker_id} on {worker.host} (pid {worker.pid})"
                for worker, count in counts[:_MOST_NAMED]
            ]
            more = f" and {len(counts) - _MOST_NAMED} more workers" if len(counts) > _MOST_NAMED else ""
            total = sum(count for _, count in counts)
            lines.append(f"{total:,} result{'s' * (total > 1)} {text}: {', '.join(names)}{more}")
    return lines
