"""The history of a job that is sent again, because its token was refused or its worker was lost."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ssbench.fleet.wire import JobResult, RareFields, Spent
from ssbench.store.causes import UNANSWERED_CAUSES


@dataclass(frozen=True, slots=True)
class History:
    """What happened to a task before it was sent again.

    ``began`` is when its first attempt began, ``ended`` when the last one ended (None: not known), ``due``
    when it was due (None in a closed loop), all by the master's monotonic clock. ``retries`` is the number
    of attempts that failed, ``retried`` their causes with counts. ``connecting`` and ``pausing`` are the
    seconds spent on that, ``connections`` and ``resumed`` are as in :class:`~ssbench.fleet.wire.RareFields`. A task
    that has not begun has a history only where it has a due time, or where that is in doubt, without
    retries.

    ``in_doubt``: it may have been done, because an attempt got no answer, or because the worker that had it
    was lost before it could say whether it had begun it.
    """

    retries: int
    began: float
    retried: dict[str, int]
    connecting: float = 0.0
    pausing: float = 0.0
    ended: float | None = None
    due: float | None = None
    in_doubt: bool = False
    connections: int = 0
    resumed: int = 0

    def add_to(self, result: JobResult) -> JobResult:
        """Return the result with the causes and the parts of earlier attempts added to its own.

        The worker knows from :data:`~ssbench.fleet.wire.Spent` how many retries there were, when the first
        attempt began and when the last one ended, so latency, retries and the pause since are its own.
        """
        if not self.retries:
            return result
        retried = dict(self.retried)
        for cause, count in (result.retried or {}).items():
            retried[cause] = retried.get(cause, 0) + count
        rare = result.rare or RareFields()
        rare = msgspec.structs.replace(
            rare,
            connecting=rare.connecting + self.connecting,
            pausing=rare.pausing + self.pausing,
            connections=rare.connections + self.connections,
            resumed=rare.resumed + self.resumed,
        )
        return msgspec.structs.replace(result, retried=retried, rare=rare)


def history_after_failure(result: JobResult, cause: str, history: History | None, ended: float) -> History:
    """Return the history of a task whose attempt ended with ``result``, because of ``cause``.

    ``ended`` is when that was, by the master's clock: not when the message came. ``result`` includes
    ``history``, the one before that attempt.
    """
    retried = dict(result.retried or {})
    retried[cause] = retried.get(cause, 0) + 1
    # One that only keeps the due time of a job that was handed back knows no beginning.
    began = ended - (result.last_byte or 0.0)
    if history is not None and history.retries:
        # What is known of a clock gets better, so that what ended may seem to precede what began before it.
        began = min(history.began, ended)
    rare = result.rare or RareFields()
    due = None if result.late is None else began - result.late
    in_doubt = result.resent > 0 or not UNANSWERED_CAUSES.isdisjoint(retried)
    if history is not None:
        due, in_doubt = history.due, in_doubt or history.in_doubt
    return History(
        result.retries + 1,
        began,
        retried,
        rare.connecting,
        rare.pausing,
        ended,
        due,
        in_doubt,
        rare.connections,
        rare.resumed,
    )


def was_tried(history: History | None) -> bool:
    """Return whether a task with that history has begun before."""
    return history is not None and history.retries > 0


def make_spent(history: History | None, to_master: float) -> Spent:
    """Return what is sent to a worker about a task: see :data:`~ssbench.fleet.wire.Spent`.

    ``to_master`` is what to add to its clock to have the master's. Where it had the earlier attempt too, that
    was added before, so the moments are exact by its own clock.
    """
    if history is None or not history.retries:
        return 0, None, None, history is not None and history.in_doubt
    ended = None if history.ended is None else history.ended - to_master
    return history.retries, history.began - to_master, ended, history.in_doubt
