"""Tells the user what happens to workers: each by name while they are few, hundreds in one line.

Warnings are kept for the report.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from ssbench.fleet import events
from ssbench.fleet.events import Event
from ssbench.run import texts

_log = logging.getLogger(__name__)

#: Lines that name a single worker, at most this many within this many seconds; what exceeds that is gathered.
_NAMED = 4
_WINDOW_SECONDS = 1.0

#: Most warnings that are kept for the report; one more counts the others.
_MOST_WARNINGS = 200

#: Kinds of events that are no warnings.
_GOOD = (events.Joined, events.Back)
#: Kinds that the report tells at its end, with their counts.
_COUNTED = (events.Foreign, events.Invalid, events.InvalidMessage)


class Line(NamedTuple):
    """A line for the user; ``warning`` for the log, ``keep`` for the report too."""

    text: str
    warning: bool
    keep: bool


class News:
    """Turns events into lines, of which there are few however many events there are.

    ``warnings`` are those for the report. ``work_port`` is the number that workers know it by.
    """

    def __init__(self, work_port: int | None = None) -> None:
        self.warnings: list[str] = []
        self.work_port = texts.work_port_name(work_port)
        #: The place in them of the one that tells of those that are not kept, and how many these are.
        self._not_kept: tuple[int, int] | None = None
        self._held: list[Event] = []
        self._window_ends = 0.0
        self._names_left = 0

    def warn(self, text: str) -> None:
        """Log a warning and keep it for the report, which says how many more there were than are kept."""
        if self._not_kept is None and len(self.warnings) < _MOST_WARNINGS:
            self.warnings.append(text)
        else:
            self._note_not_kept()
        _log.warning("%s", text)

    def _note_not_kept(self) -> None:
        if self._not_kept is None:
            self._not_kept = len(self.warnings), 0
            self.warnings.append("")
        place, count = self._not_kept[0], self._not_kept[1] + 1
        self._not_kept = place, count
        self.warnings[place] = f"{count:,} more warning{'s' * (count > 1)} of the run are in its log alone"

    def tell(self, happened: Sequence[Event], now: float, *, all_of_it: bool = False) -> None:
        """Log what is to be said of events, now or within a second; with ``all_of_it`` now."""
        for line in self.lines(happened, now, all_of_it=all_of_it):
            if line.keep:
                self.warn(line.text)
            else:
                _log.log(logging.WARNING if line.warning else logging.INFO, "%s", line.text)

    def lines(self, happened: Sequence[Event], now: float, *, all_of_it: bool = False) -> list[Line]:
        """Receive events; return what is to be said now. Some may be held back for a second.

        With ``all_of_it`` nothing is held back.
        """
        held = self._held
        held += happened
        if not held:
            return []
        if now >= self._window_ends:
            self._window_ends = now + _WINDOW_SECONDS
            self._names_left = _NAMED
        elif len(held) > self._names_left and not all_of_it:
            return []
        self._held = []
        self._names_left -= len(held)
        return self._gather(held)

    def _gather(self, happened: Sequence[Event]) -> list[Line]:
        by_kind: dict[type[Event], list[events.WorkerEvent]] = {}
        for event in happened:
            if isinstance(event, events.WorkerEvent):
                by_kind.setdefault(type(event), []).append(event)
        lines: list[Line] = []
        for event in happened:
            alike = by_kind.get(type(event), [])
            if len(alike) <= _NAMED:
                text = texts.sentence(event, self.work_port)
            elif event is alike[0]:
                text = texts.sentence_about(alike, self.work_port)
            else:
                continue
            warning = not isinstance(event, _GOOD)
            lines.append(Line(text, warning, warning and not isinstance(event, _COUNTED)))
        return lines
