"""The operations of a log as those of a run, in place of drawn ones.

A :class:`~.replay_source.Replay` has the requests of a log in the order in which they began, in some 23 bytes
each: what to do when, to which object of our own, and how it ended in the log. :class:`ReplayPopulation`
hands them out at the moments of :class:`ReplayArrivals`. Nothing is held back: a read that is due before a
write of its object has ended is counted, because the log had the same race.

The rate of the scenario is the mean of a replay, so its speed is that rate over the log's.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from ssbench.scenario.draws import Arrivals, Target, Workload
from ssbench.scenario.key_rules import REPLAY_WORD
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import CREATE, UPLOAD_IF_MISSING, Effect
from ssbench.scenario.population import OperationResult, Population
from ssbench.scenario.replay_source import Replay

#: Requests that are looked at together: a replay may be longer than memory has room for.
_ROWS_AT_ONCE = 1 << 14
_STATUSES = 1000  # all are below
_WRITES = {Effect.ADDS, Effect.REWRITES, Effect.COPIES, Effect.REMOVES}


def count_replay_containers(replay: Replay, accounts: int) -> int:
    """Return how many containers a replay has in each of so many accounts."""
    return int(np.bincount(replay.accounts % accounts).max())


def _number_containers(replay: Replay, accounts: int) -> npt.NDArray[np.int64]:
    """Return the number of each container of the log, whose accounts go to ours in turn.

    See :func:`~ssbench.scenario.names.split_container_number`.
    """
    own = replay.accounts.astype(np.int64) % accounts
    within = np.empty(len(own), np.int64)
    for account in range(accounts):
        mine = np.flatnonzero(own == account)
        within[mine] = np.arange(len(mine))
    return within * accounts + own


def find_peak_rate(replay: Replay, seconds: float) -> float:
    """Return the most requests a second that are due within so many seconds, at the speed of the log."""
    most = 0
    for first in range(0, len(replay), _ROWS_AT_ONCE):
        moments = replay.moments[first : first + _ROWS_AT_ONCE]
        ends = replay.moments.searchsorted(moments + seconds, "right")
        most = max(most, int((ends - np.arange(first, first + len(moments))).max()))
    return most / seconds


class ReplayArrivals(Arrivals):
    """The moments of a replay, at a speed."""

    def __init__(self, replay: Replay, speed: float) -> None:
        self.taken = self.skipped = 0
        self._logged, self._speed = replay.moments, speed
        self._made = 0
        self._moments, self._first = np.empty(0), 0
        self._complete = False

    def _make(self) -> npt.NDArray[np.float64]:
        moments: npt.NDArray[np.float64] = self._logged[self._made : self._made + _ROWS_AT_ONCE] / self._speed
        self._made += len(moments)
        self._complete = self._made >= len(self._logged)
        return moments

    def count_due(self, until: float, most: int | None) -> int:
        """Return how many of all were due up to a moment, of the first ``most`` of them."""
        due = int(self._logged.searchsorted(until * self._speed, "right"))
        return due if most is None else min(due, most)


class ReplayWorkload(Workload):
    """The initial objects of a replay."""

    def __init__(self, scenario: Scenario, seed: int, replay: Replay) -> None:
        super().__init__(scenario, seed)
        self._replay = replay
        #: The container of each object, by its number.
        self.containers = _number_containers(replay, scenario.accounts)[replay.containers]

    def initial_containers(self, size_class: int) -> npt.NDArray[np.uint32]:
        """Return the container of each object that is prepared, that of object number 1 first."""
        return self.containers[1 : len(self._replay.initial_sizes)].astype(np.uint32)

    def initial_uploads(self) -> Iterator[Target]:
        """Yield the uploads of these objects; those that the log changes are always written anew."""
        replay = self._replay
        for number in range(1, len(replay.initial_sizes)):
            code = (CREATE if replay.written[number] else UPLOAD_IF_MISSING).code
            yield code, 0, int(self.containers[number]), number, int(replay.initial_sizes[number])


class _ReplayedResult(OperationResult, Protocol):
    """How an operation of a replay ended, as results say."""

    @property
    def status(self) -> int:
        """The status of the answer; 0: there was none."""

    @property
    def last_byte(self) -> float | None:
        """Seconds that it took; None of a failure."""

    @property
    def late(self) -> float | None:
        """Seconds after it was due that it began."""


def _find_usual_statuses(replay: Replay) -> npt.NDArray[np.int64]:
    """Return the status that each operation has most in the log."""
    counts = np.zeros((len(replay.names), _STATUSES), np.int64)
    for first in range(0, len(replay), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        pairs = replay.operations[rows].astype(np.int64) * _STATUSES + replay.statuses[rows]
        counts += np.bincount(pairs, minlength=counts.size).reshape(counts.shape)
    usual: npt.NDArray[np.int64] = counts.argmax(axis=1)
    return usual


class ReplayPopulation(Population):
    """Hands out the requests of a log, each when its turn comes.

    ``statuses`` counts by (operation code, status in the log, status now); the latter is 0 where there was no
    answer. ``early_requests`` counts requests for objects that were due before a write of theirs had ended.
    """

    def __init__(self, scenario: Scenario, workload: ReplayWorkload, replay: Replay) -> None:
        super().__init__(scenario, workload)
        self.statuses: Counter[tuple[int, int, int]] = Counter()
        self.early_requests = 0
        self._replay = replay
        self._speed = replay.find_speed(scenario)
        self._handed_out = 0
        rows = [scenario.operation_table.named(name) for name in replay.names]
        codes = [row.code for row in rows]
        self._codes, self._has_object = np.array(codes), np.array([row.has_object for row in rows])
        self._makes = {row.code for row in rows if row.effect in _WRITES and row.effect is not Effect.REMOVES}
        self._removes = {row.code for row in rows if row.effect is Effect.REMOVES}
        self._writes = self._makes | self._removes
        #: The status that each operation has most in the log; requests with others are noted in flight.
        self._usual = _find_usual_statuses(replay)
        self._usual_of = dict(zip(codes, self._usual.tolist(), strict=True))
        self._unusual: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        #: When the writes in flight of each object were due, and requests for it that came after them.
        self._writing: dict[int, list[float]] = {}
        self._racing: dict[int, list[float]] = {}
        self._places = workload.containers
        self._numbers = _number_containers(replay, scenario.accounts)
        known, sizes = self._containers[0], self._sizes[0]
        missing = len(replay.containers) - len(known)
        known.extend(array(known.typecode, [0]) * missing)
        sizes.extend(array(sizes.typecode, [0]) * missing)
        for number in range(len(known) - missing, len(known)):
            self._objects.gone(0, number)

    def next_jobs(self, count: int, now: float = 0.0, most_draws: int | None = None) -> list[Target]:
        """Return the next requests, at most ``count``."""
        replay, first = self._replay, self._handed_out
        end = min(first + count, first + count if most_draws is None else first + most_draws, len(replay))
        if end <= first:
            return []
        self._handed_out = end
        self.drawn += end - first
        places, items = replay.operations[first:end], replay.items[first:end].astype(np.int64)
        of_objects = self._has_object[places]
        containers = np.where(
            of_objects,
            self._places[np.where(of_objects, items, 0)],
            self._numbers[np.where(of_objects, 0, items)],
        )
        codes = self._codes[places].tolist()
        numbers = np.where(of_objects, items, np.arange(first, end) + len(self._places)).tolist()
        jobs = [
            *zip(
                codes,
                [0] * len(codes),
                containers.tolist(),
                numbers,
                replay.sizes[first:end].tolist(),
                strict=True,
            )
        ]
        for place in np.flatnonzero(replay.statuses[first:end] != self._usual[places]).tolist():
            self._unusual[codes[place], numbers[place]].append(int(replay.statuses[first + place]))
        self._note_races(jobs, replay.moments[first:end] / self._speed)
        return jobs

    def _note_races(self, jobs: list[Target], moments: npt.NDArray[np.float64]) -> None:
        writing, writes = self._writing, self._writes
        for (code, _, container, number, _), due in zip(jobs, moments.tolist(), strict=True):
            if number in writing:
                self._racing.setdefault(number, []).append(due)
            if code in writes:
                writing.setdefault(number, []).append(due)
                if code in self._makes:
                    self._containers[0][number] = container

    def ended(self, ended: Iterable[tuple[Target, OperationResult]]) -> None:
        """Note that requests have ended."""
        usual, unusual, statuses, writes = self._usual_of, self._unusual, self.statuses, self._writes
        for (code, _, _, number, _), result in cast(Iterable[tuple[Target, _ReplayedResult]], ended):
            logged = self._take_unusual(code, number) if unusual else None
            statuses[code, usual[code] if logged is None else logged, result.status] += 1
            if code in writes:
                took = None if result.last_byte is None else (result.late or 0.0) + result.last_byte
                self._end_write(code, number, took, ok=result.cause is None)

    def _take_unusual(self, code: int, number: int) -> int | None:
        """Return the status that a request has in the log, where that is not the usual one."""
        found = self._unusual.get((code, number))
        if found is None:
            return None
        status = found.pop(0)
        if not found:
            del self._unusual[code, number]
        return status

    def _end_write(self, code: int, number: int, took: float | None, *, ok: bool) -> None:
        """Note that a write has ended, so many seconds after it was due; None: that is not known."""
        dues = self._writing[number]
        due = dues.pop(0)
        if took is not None and (racing := self._racing.get(number)):
            later = [each for each in racing if not due < each < due + took]
            self.early_requests += len(racing) - len(later)
            self._racing[number] = later
        if not dues:
            del self._writing[number]
            self._racing.pop(number, None)
            if ok and code in self._removes:
                self._objects.gone(0, number)

    def finished(self, operation: int, size_class: int, container: int, number: int, ok: bool) -> None:
        """Note that a request has ended of which there is no result."""
        self._take_unusual(operation, number)
        if operation in self._writes:
            self._end_write(operation, number, None, ok=ok)

    def take_back(
        self, operation: int, size_class: int, container: int, number: int, *, in_doubt: bool = False
    ) -> None:
        """Undo a request that will not be made."""
        self.drawn -= 1
        self.finished(operation, size_class, container, number, ok=False)

    def add_initial(self, size_class: int, number: int, size: int) -> None:
        """Note that an object was uploaded, or existed already."""
        self._sizes[size_class][number] = size


def fit_to_replay(scenario: Scenario, replay: Replay) -> Scenario:
    """Return a scenario whose operations are those of a replay, with the containers that it needs."""
    return replace(
        scenario, arrivals=REPLAY_WORD, container_count=count_replay_containers(replay, scenario.accounts)
    )
