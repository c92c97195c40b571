"""Makes blocks of results from what workers report.

A :class:`RowMaker` makes a row of each task and its result. Two more classes compute fields of it.
:class:`StagePlacement` finds the stage that a result belongs to, and whether that is the warm-up.
:class:`ListingMinimums` knows how many names a listing must have at least, from the objects of its own part
of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter

import numpy as np

from ssbench.fleet.wire import worker_name
from ssbench.fleet.worker_state import Task, WorkerState
from ssbench.results.block import Failure, ResultBlock, ResultRow, RowCollector
from ssbench.results.result_fields import (
    FIELDS,
    NO_WORKER,
    NOT_MEASURED,
    STEP_FIELDS,
    UNKNOWN_NUMBER,
    ResultMark,
)
from ssbench.scenario.model import Scenario, Stage
from ssbench.scenario.names import split_container_number
from ssbench.scenario.operations import (
    DEFAULT_LISTING_LIMIT,
    HEAD,
    LIST,
    LIST_ACCOUNT,
    OPERATIONS,
    Effect,
    OperationTable,
    resolve_steps,
)
from ssbench.store.contract import (
    CONNECT_FAILED,
    CONNECT_REFUSED,
    CONNECT_TIMEOUT,
    NAME_RESOLUTION,
    JobResult,
    RareFields,
)

#: A DELETE that failed so has deleted nothing, if it was the only attempt: it was refused, or never sent.
#: 404 is not among them, since what is not there is not listed either.
_REFUSED_STATUSES = frozenset({400, 401, 403, 405, 411, 412, 413, 429, 498})
_UNSENT_CAUSES = frozenset({NAME_RESOLUTION, CONNECT_REFUSED, CONNECT_TIMEOUT, CONNECT_FAILED})

#: Settings with which a listing is of some of the names only.
_PARTIAL_LISTING_FIELDS = frozenset({"prefix", "delimiter", "marker"})


class ListingMinimums:
    """Counts the objects in each container that exist from before a listing is asked for until it has ended.

    ``objects`` is how many each container has at first, ``containers`` how many each account has. Stores
    may list what others wrote besides, so these numbers are the least that a listing has to have. Listings
    with a prefix, a delimiter or a marker have to have nothing.
    """

    def __init__(
        self,
        objects: Mapping[int, int],
        containers: int,
        most: Mapping[int, int],
        operations: OperationTable = OPERATIONS,
    ) -> None:
        """Take the most names of each listing that is judged, by the code of its operation."""
        self._most = most
        self._containers = containers
        self._adding = {row.code for row in operations if row.effect is Effect.ADDS}
        self._removing = {row.code for row in operations if row.effect is Effect.REMOVES}
        #: Those of one request, whose failure says whether it has deleted anything.
        self._removing_alone = {code for code in self._removing if not operations[code].steps}
        #: Objects that came to exist so far, and those that may have been deleted since a deletion was handed
        #: out, by container.
        self._made = Counter(objects)
        self._deleted: Counter[int] = Counter()
        #: How many had come to exist when a listing was handed out, by its number, until its end is known.
        self._before: dict[int, int] = {}

    @classmethod
    def of(cls, scenario: Scenario, objects: Mapping[int, int]) -> ListingMinimums | None:
        """Return those of a scenario, which has so many ``objects`` in each container; None without any."""
        most = {}
        for row in (LIST, LIST_ACCOUNT):
            values = next((each.values for each in scenario.operations if each.name == row.name), {})
            if row.name in scenario.operation_names and _PARTIAL_LISTING_FIELDS.isdisjoint(values):
                most[row.code] = values.get("limit", DEFAULT_LISTING_LIMIT) * values.get("pages", 1)
        # When the store deletes an object that expires is not known, nor when it comes back that a sequence
        # deletes and creates anew.
        if not most or scenario.delete_after is not None or _has_replacing_sequence(scenario):
            return None
        return cls(objects, scenario.container_count, most, scenario.operation_table)

    def handed_out(self, tasks: Sequence[Task]) -> None:
        """Note which operations are sent."""
        for code, _, container, number, _ in tasks:
            if code in self._removing:
                self._deleted[container] += 1
            elif code == LIST.code and code in self._most:
                self._before[number] = self._made[container]

    def ended(self, ended: Iterable[tuple[Task, JobResult]]) -> None:
        """Note which operations have ended."""
        for (code, _, container, number, _), result in ended:
            if result.cause is None:
                if code in self._adding:
                    self._made[container] += 1
            elif code == LIST.code:
                self._before.pop(number, None)
            elif code in self._removing_alone and _has_deleted_nothing(result):
                self._deleted[container] -= 1

    def without_result(self, tasks: Iterable[Task], *, begun: bool = True) -> None:
        """Note which operations will have no result: they were lost, or taken back.

        ``begun``: they may have been carried out.
        """
        for code, _, container, number, _ in tasks:
            if code == LIST.code:
                self._before.pop(number, None)
            elif code in self._removing and not begun:
                self._deleted[container] -= 1

    def least(self, task: Task) -> int:
        """Return how many names a listing that succeeded had to have at least; call this once for each."""
        code, _, container, number, _ = task
        most = self._most.get(code)
        if most is None:
            return 0
        there = self._containers
        if code == LIST.code:
            there = self._before.pop(number, 0) - self._deleted[container]
        return max(0, min(there, most))


def _has_replacing_sequence(scenario: Scenario) -> bool:
    steps = [
        step
        for each in scenario.operations
        if each.defined and each.name in scenario.operation_names
        for step in resolve_steps(each.values.get("steps", ()))
        if OPERATIONS.of(each).effect is Effect.REWRITES
    ]
    return any(step.row.effect is Effect.REMOVES for step in steps)


def _has_deleted_nothing(result: JobResult) -> bool:
    """Whether it is sure that a DELETE that failed has left its object there."""
    if result.retries or result.resent:
        return False
    return result.status in _REFUSED_STATUSES or result.cause in _UNSENT_CAUSES


# -- placement ---------------------------------------------------------------------------------


#: When an operation was due is known to this many seconds: the clocks of worker and master differ by a number
#: that is known better and better during the run. The first of a stage is due as that begins.
_CLOCK_TOLERANCE = 5e-4


class StagePlacement:
    """Places results by when their operation was due, in a closed loop by when it was sent.

    One of which neither is known, because its worker was lost, is placed by when that was noticed.
    ``start`` is when the first stage begins, in seconds since 1970; the first ``warmup`` seconds from then on
    are the warm-up.
    """

    def __init__(self, plan: Sequence[Stage], start: float, warmup: float = 0.0) -> None:
        #: When each stage but the first begins.
        self._begins = start + np.array([0.0, *accumulate(stage.seconds for stage in plan)])[1:-1]
        self._warm_until = start + warmup if warmup else None

    @property
    def needed(self) -> bool:
        """Whether there is more than one place."""
        return len(self._begins) > 0 or self._warm_until is not None

    def place(self, block: ResultBlock) -> ResultBlock:
        """Return the results with their stages and marks."""
        moments = np.where(np.isnan(block.due), block.started, block.due + _CLOCK_TOLERANCE)
        moments = np.where(np.isnan(moments), block.completed, moments)
        columns = {}
        if len(self._begins):
            columns["stage"] = self._begins.searchsorted(moments, "right")
        if self._warm_until is not None:
            columns["marks"] = block.marks | np.where(moments < self._warm_until, int(ResultMark.WARM_UP), 0)
        return block.having(**columns)


# -- Rows and blocks -------------------------------------------------------------------------------


#: Operations whose tasks have something else than bytes that are moved: the number of another object, or what
#: the answer to a HEAD has to say.
_UNMOVED_CODES = frozenset(row.code for row in OPERATIONS if row.effect is Effect.COPIES or row is HEAD)
#: Operations that send all of an object's body, of which an answer may come before.
_SENDING_CODES = frozenset(row.code for row in OPERATIONS if row.sends_body and row.has_object)

#: Operations whose answers have so many names at least.
_LISTING_CODES = frozenset({LIST.code, LIST_ACCOUNT.code})

#: Most addresses that results distinguish; no store has more.
_MAX_ADDRESSES = 1000


class ResultAddresses:
    """The addresses that the results of a run name, of hosts that have several."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, address: str) -> int:
        """Return the place of an address among :meth:`names`."""
        number = self._numbers.get(address)
        if number is None:
            if len(self._numbers) >= _MAX_ADDRESSES:
                return UNKNOWN_NUMBER
            number = self._numbers[address] = len(self._numbers)
        return number

    def names(self) -> tuple[str, ...]:
        """Return all of them."""
        return tuple(self._numbers)


#: What few results have that is a field of a row under its own name, and 0 there where it is not given.
_RARE_NAMES = tuple(
    name
    for name in RareFields.__struct_fields__
    if name in FIELDS and name not in {"address", "connections", "last_attempt"}
)
_get_rare_values = attrgetter(*_RARE_NAMES)

#: A result of whose time the worker stalled for this share or more is marked.
STALLED_SHARE = 0.1


class RowMaker:
    """Collects results until they are taken as a block.

    ``epoch`` is what turns the master's monotonic clock into seconds since 1970, ``storage_urls`` how
    many storage URLs the results choose from, the first of which has the place ``first_url`` in the run.
    With ``with_due`` results tell when their operation was due, where it was. All are of one
    ``group`` of users, where there are some; they are in as many ``accounts``. ``listings`` says how many
    names listings have at least. ``errors`` counts the failures
    so far, ``count`` the results since the last block.
    """

    def __init__(
        self,
        epoch: float,
        storage_urls: int,
        *,
        first_url: int = 0,
        with_due: bool = False,
        group: int | None = None,
        accounts: int = 1,
        addresses: ResultAddresses | None = None,
        listings: ListingMinimums | None = None,
    ) -> None:
        self.errors = 0
        self.count = 0
        self._epoch = epoch
        #: How many storage URLs results choose from; 0 where they do not.
        self._urls = storage_urls if storage_urls > 1 else 0
        self._first_url = first_url
        self._with_due = with_due
        self._accounts = accounts
        self._listings = listings
        self._addresses = ResultAddresses() if addresses is None else addresses
        self._rows = RowCollector(also=[*["storage_url"] * (self._urls > 0), *["due"] * with_due])
        if storage_urls == 1:
            self._rows.common["storage_url"] = first_url
        if group is not None:
            self._rows.common["group"] = group

    @property
    def have_failures(self) -> bool:
        """Whether any of those that were not taken failed."""
        return bool(self._rows.failures)

    def take(self) -> ResultBlock:
        """Return what was collected as a block, and begin anew."""
        self.count = 0
        block = self._rows.take()
        if self._accounts > 1:
            account, container = split_container_number(block.container, self._accounts)
            block = block.having(account=account, container=container)
        return block

    def add(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        """Collect results that came in one message."""
        rows = self._rows
        add, pack = rows.rows.append, rows.pack
        to_epoch = worker.clock.offset.seconds + self._epoch
        worker_id, more = worker.worker_id, self._urls or self._with_due
        if self._listings is not None:
            self._note_expected(ended, self._listings)
        self.count += len(ended)
        for (operation, size_class, container, number, size), result in ended:
            if result.cause is not None or result.retries or result.resent or result.rare is not None:
                self._note_trouble(result, 0 if operation in _UNMOVED_CODES else size, to_epoch)
            if result.cause is None:
                moved = result.size
                if moved != size:
                    if not moved:
                        moved = 0 if operation in _UNMOVED_CODES else size
                    elif moved < size and operation in _SENDING_CODES:
                        rows.note("expected_size", size)
                first, last = result.first_byte, result.last_byte
            else:
                moved, first, last = 0, None, None
            row = pack(
                operation,
                size_class,
                worker_id,
                container,
                number,
                moved,
                NOT_MEASURED if first is None else first,
                NOT_MEASURED if last is None else last,
                result.completed + to_epoch,
                result.status or UNKNOWN_NUMBER,
            )
            add(row + self._pack_also(result, to_epoch) if more else row)
        rows.trans_ids += [result.trans_id for _, result in ended]

    def _note_expected(self, ended: Sequence[tuple[Task, JobResult]], listings: ListingMinimums) -> None:
        """Keep how many names the listings among the next rows had to have at least."""
        for row, (task, result) in enumerate(ended, len(self._rows)):
            if task[0] in _LISTING_CODES and result.cause is None:
                self._rows.note("expected_entries", listings.least(task), row)

    def _pack_also(self, result: JobResult, to_epoch: float) -> bytes:
        """Return what not all runs have of a result."""
        values: ResultRow = ()
        if self._urls:
            values = (
                result.storage_url + self._first_url if result.storage_url < self._urls else UNKNOWN_NUMBER,
            )
        if self._with_due:
            values += (_due_time(result, to_epoch),)
        return self._rows.pack_also(*values)

    def _note_trouble(self, result: JobResult, size: int, to_epoch: float) -> None:
        """Keep what few results have: those that failed, and successes after several attempts."""
        rows = self._rows
        if result.retries or result.resent:
            rows.note("retries", result.retries)
            rows.note("attempts", result.retries + 1 + result.resent)
        if result.rare is not None:
            self._note_parts(result.rare, result.spent if result.last_byte is None else result.last_byte)
        if result.cause is not None:
            self.errors += 1
            rows.note("expected_size", size or UNKNOWN_NUMBER)
            if result.spent is not None:
                rows.note("started", result.completed - result.spent + to_epoch)
        if result.cause is not None or result.retried:
            rows.failures[len(rows)] = Failure(result.cause, result.detail, result.retried or {})

    def _note_parts(self, rare: RareFields, took: float | None) -> None:
        """Keep what few results have, and whether its worker stalled for long."""
        rows = self._rows
        for name, value in zip(_RARE_NAMES, _get_rare_values(rare), strict=True):
            if value:
                rows.note(name, value)
        if rare.connecting:
            # One that could not be made took time too.
            rows.note("connections", rare.connections)
        if rare.last_attempt is not None:
            rows.note("last_attempt", rare.last_attempt)
        if rare.address:
            rows.note("address", self._addresses.number(rare.address))
        if rare.steps:
            for name, seconds in zip(STEP_FIELDS, rare.steps, strict=False):
                rows.note(name, seconds)
        if rare.held and rare.held >= STALLED_SHARE * (took or 0.0):
            rows.note("marks", ResultMark.DELAYED)

    def add_lost(self, tasks: Sequence[Task], cause: str, worker: WorkerState | None, now: float) -> None:
        """Collect tasks of which no result came, because of ``cause``, as failures.

        ``worker`` is the one that had them, where that is known; ``now`` the master's monotonic clock.
        """
        rows = self._rows
        detail = (
            f"with {worker_name(worker.worker_id, worker.host, worker.pid, begins=False)}" if worker else ""
        )
        failure = Failure(cause, detail, {})
        worker_id = worker.worker_id if worker else NO_WORKER
        for operation, size_class, container, number, size in tasks:
            rows.failures[len(rows)] = failure
            rows.note(
                "expected_size", UNKNOWN_NUMBER if operation in _UNMOVED_CODES else size or UNKNOWN_NUMBER
            )
            row: ResultRow = (operation, size_class, worker_id, container, number)
            row += (UNKNOWN_NUMBER, NOT_MEASURED, NOT_MEASURED, now + self._epoch, UNKNOWN_NUMBER)
            also = (UNKNOWN_NUMBER,) * (self._urls > 0) + (NOT_MEASURED,) * self._with_due
            rows.rows.append(rows.pack(*row) + rows.pack_also(*also))
            rows.trans_ids.append(None)
        self.errors += len(tasks)
        self.count += len(tasks)


def _due_time(result: JobResult, to_epoch: float) -> float:
    """Return when an operation was due; NaN where it was not, or where it is not known when it was sent."""
    took = result.last_byte if result.cause is None else result.spent
    if result.late is None or took is None:
        return NOT_MEASURED
    return result.completed - took - result.late + to_epoch
