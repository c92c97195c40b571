"""Impossible results: figures that contradict what the master itself knows of the job.

A worker that is broken, or a stranger that joined an open fleet, may send any number. What is checked
here costs no message: when the job was sent, how large its object is, how often it may be retried.
"""

from __future__ import annotations

from dataclasses import dataclass

from ssbench.document.units import format_seconds
from ssbench.fleet.wire import LOST_AFTER, JobResult, RareFields
from ssbench.fleet.worker_state import Task, TaskBatch
from ssbench.scenario.operation_table import OPERATIONS

#: A latency may exceed the age of its job by this many seconds and by this share: two clocks differ.
_LATENCY_TOLERANCE = 1.0
_LATENCY_FACTOR = 1.001

#: When a job was completed, by the master's clock, is an estimate. It errs most where a machine was suspended
#: and its clock stalled: not for as long as makes a worker lost.
_CLOCK_TOLERANCE = LOST_AFTER + 1.0

#: Most bytes of an answer that has no object in it, as that to a DELETE.
_MAX_ANSWER_BYTES = 65536

_NOT_FOUND_STATUS = 404

#: A store may answer a read with more bytes than were written; no network moves more than this a second.
_MAX_BYTES_A_SECOND = 100e9


@dataclass(frozen=True, slots=True)
class ResultBounds:
    """What bounds the results of a run.

    ``largest`` holds the bytes of the largest object of each size class, ``retries`` how often a
    request may be retried, for all reasons together. The history of a task comes on top.
    """

    largest: tuple[int, ...]
    retries: int

    def fault(  # noqa: PLR0911 - each rule in its own words; a call a rule would cost more than the rules
        self, batch: TaskBatch, result: JobResult, to_master: float, now: float
    ) -> str | None:
        """Say what is impossible in the result of a job of a batch; None if nothing is.

        ``to_master`` is what to add to the worker's clock to have the master's, ``now`` the arrival.
        """
        task, history = batch.task(result.job_id), batch.history(result.job_id)
        first, last = result.first_byte, result.last_byte
        age = now - (history.began if history is not None and history.retries else batch.sent_at)
        if last is None:
            if result.cause is None or first is not None:
                return "it has no last byte"
        elif last > age * _LATENCY_FACTOR + _LATENCY_TOLERANCE:
            return f"it took {format_seconds(last)} s and was sent {format_seconds(age)} s ago"
        elif first is not None and first > last:
            return f"the first byte came after {format_seconds(first)} s, the last one after {format_seconds(last)} s"
        if result.spent is not None and result.spent > age * _LATENCY_FACTOR + _LATENCY_TOLERANCE:
            return (
                f"it failed after {format_seconds(result.spent)} s and was sent {format_seconds(age)} s ago"
            )
        took = result.spent if last is None else last
        if result.rare is not None:
            whole = age * _LATENCY_FACTOR if took is None else took
            if _sum_of_parts(result.rare) > whole + _LATENCY_TOLERANCE:
                spent = format_seconds(_sum_of_parts(result.rare))
                return f"of {format_seconds(whole)} s it spent {spent} s with connecting and pauses"
        since = result.completed + to_master - now
        if since > _CLOCK_TOLERANCE or since < batch.sent_at - now - _CLOCK_TOLERANCE:
            return f"it ended {format_seconds(-since)} s ago and was sent {format_seconds(now - batch.sent_at)} s ago"
        if result.late is not None and (wrong := _late_fault(batch, result, now + since)):
            return wrong
        if result.retries > self.retries + (history.retries if history is not None else 0) or (
            result.retried and sum(result.retried.values()) > result.retries
        ):
            return f"{result.retries} retries, of which {sum((result.retried or {}).values())} have a cause"
        size = result.size
        if size > task[4] and size > self._largest(task, result.status, age):
            return (
                f"{size:,} bytes were moved, more than can be"
                if task[4] == 0
                else (f"{size:,} bytes were moved, where {task[4]:,} were asked for")
            )
        return None

    def _largest(self, task: Task, status: int, age: float) -> float:
        """Return the most bytes that a job of that age may move, if not those it was sent with.

        A ``status`` of 404 is a success of some deletions: its body may be a page of any proxy between.
        """
        operation, largest = OPERATIONS[task[0]], self.largest[task[1]]
        if operation.sends_body and operation.has_object:
            return largest if operation.returns_object else 0
        any_number = (
            operation.returns_object
            or operation.defined
            or not operation.has_object
            or status == _NOT_FOUND_STATUS
        )
        return max(largest, _MAX_ANSWER_BYTES, age * _MAX_BYTES_A_SECOND if any_number else 0)


def _late_fault(batch: TaskBatch, result: JobResult, completed: float) -> str | None:
    """Say what is impossible in how late a job began, which was completed then by the master's clock."""
    said, due = result.late or 0.0, batch.due(result.job_id)
    if due is None:
        return f"it began {format_seconds(said)} s late and was due at no time"
    took = result.last_byte if result.spent is None else result.spent
    late = max(0.0, completed - (took or 0.0) - due)
    if abs(said - late) <= _CLOCK_TOLERANCE:
        return None
    return f"it began {format_seconds(said)} s late, by its own account, and {format_seconds(late)} s by when it was completed"


def is_plain(rare: RareFields) -> bool:
    """Whether a record has neither seconds, which :meth:`ResultBounds.fault` bounds, nor what the master adds up.

    Of some stores each result has one, which tells the address that was used, or of no ETag.
    """
    return not (
        rare.connecting
        or rare.pausing
        or rare.last_attempt is not None
        or rare.held
        or rare.left
        or rare.unreached
    )


def _sum_of_parts(rare: RareFields) -> float:
    return max(rare.connecting + rare.pausing, rare.last_attempt or 0.0, rare.held)
