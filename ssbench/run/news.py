"""Messages to the user about workers: each by name while they are few, hundreds in one line.

Warnings are kept for the report.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ssbench.fleet import events
from ssbench.fleet.events import Event
from ssbench.run import texts

_log = logging.getLogger(__name__)

#: Lines that name a single worker, at most this many within this many seconds; what exceeds that is gathered.
_MAX_NAMED_LINES = 4
_NEWS_WINDOW_SECONDS = 1.0

#: Most warnings that are kept for the report; one more counts the others.
_MAX_WARNINGS = 200

#: Kinds of events that are no warnings.
_GOOD_EVENTS = (events.WorkerJoined, events.Back)
#: Kinds that the report has at its end, with their counts.
_COUNTED_EVENTS = (events.Foreign, events.Invalid, events.InvalidMessage)


class NewsLine(NamedTuple):
    """A line for the user; ``warning`` for the log, ``keep`` for the report too."""

    text: str
    warning: bool
    keep: bool


class WorkerNews:
    """Turns events into lines, of which there are few however many events there are.

    ``work_port`` is the number that workers know it by.
    """

    def __init__(self, work_port: int | None = None) -> None:
        self.work_port = texts.format_work_port(work_port)
        self._logged: list[str] = []
        #: How many more were logged than are kept.
        self._not_kept = 0
        self._added: list[str] = []
        self._held: list[Event] = []
        self._window_ends = 0.0
        self._names_left = 0
        #: Kinds of events of which there was a line in this window: of another one the first is said at once.
        self._said: set[type[Event]] = set()

    def warn(self, text: str) -> None:
        """Log a warning and keep it for the report, which says how many more there were than are kept."""
        if len(self._logged) < _MAX_WARNINGS:
            self._logged.append(text)
        else:
            self._not_kept += 1
        _log.warning("%s", text)

    def add(self, texts: Iterable[str]) -> None:
        """Keep warnings that only the report has."""
        self._added += texts

    @property
    def warnings(self) -> list[str]:
        """The warnings for the report: those that were logged come first."""
        more = self._not_kept
        note = [f"{more:,} more warning{'s' * (more > 1)} of the run are in its log alone"] if more else []
        return [*self._logged, *note, *self._added]

    def tell(self, happened: Sequence[Event], now: float, *, all_of_it: bool = False) -> None:
        """Log what is to be said of events, now or within a second; with ``all_of_it`` now."""
        for line in self.lines(happened, now, all_of_it=all_of_it):
            if line.keep:
                self.warn(line.text)
            else:
                _log.log(logging.WARNING if line.warning else logging.INFO, "%s", line.text)

    def lines(self, happened: Sequence[Event], now: float, *, all_of_it: bool = False) -> list[NewsLine]:
        """Receive events; return what is to be said now.

        The first event of a kind is said at once; others may be held back for a second. With
        ``all_of_it`` nothing is.
        """
        held = self._held
        held += happened
        if not held:
            return []
        if now >= self._window_ends:
            self._window_ends = now + _NEWS_WINDOW_SECONDS
            self._names_left = _MAX_NAMED_LINES
            self._said.clear()
        elif len(held) > self._names_left and not all_of_it and self._said.issuperset(map(type, held)):
            return []
        self._said.update(map(type, held))
        self._held = []
        self._names_left -= len(held)
        return self._gather(held)

    def _gather(self, happened: Sequence[Event]) -> list[NewsLine]:
        by_kind: dict[type[Event], list[events.WorkerEvent]] = {}
        for event in happened:
            if isinstance(event, events.WorkerEvent):
                by_kind.setdefault(type(event), []).append(event)
        lines: list[NewsLine] = []
        for event in happened:
            alike = by_kind.get(type(event), [])
            if len(alike) <= _MAX_NAMED_LINES:
                text = texts.describe_event(event, self.work_port)
            elif event is alike[0]:
                text = texts.describe_events(alike, self.work_port)
            else:
                continue
            warning = not isinstance(event, _GOOD_EVENTS)
            lines.append(NewsLine(text, warning, warning and not isinstance(event, _COUNTED_EVENTS)))
        return lines
