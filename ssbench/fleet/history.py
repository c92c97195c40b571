"""The history of a job that is sent again, because its token was refused or its worker was lost."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ssbench.fleet.wire import Rare, Result, Spent
from ssbench.swift.causes import UNANSWERED


@dataclass(frozen=True, slots=True)
class History:
    """What happened to a task before it was sent again.

    ``began`` is the master's monotonic clock at the start of its first attempt, ``retries`` the number
    of attempts that failed, ``retried`` their causes with counts. ``connecting`` and ``pausing`` are the
    seconds spent on that; ``ended`` is when the last of those attempts did, None where nobody knows.
    ``due`` is when it was due, by the master's monotonic clock, None in a closed loop. A task that has not
    begun has a history only where it has a due time, or where that is in doubt, without retries.

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

    def add_to(self, result: Result, sent_at: float) -> Result:
        """Return the result with the causes of earlier attempts and the pauses since added to its own.

        ``sent_at`` is when the job was sent again: what it waited for a token is a pause. The worker was told
        the number of retries and the time spent, so these are included already.
        """
        if not self.retries:
            return result
        retried = dict(self.retried)
        for cause, count in (result.retried or {}).items():
            retried[cause] = retried.get(cause, 0) + count
        rare = result.rare or Rare()
        waited = 0.0 if self.ended is None else max(0.0, sent_at - self.ended)
        rare = msgspec.structs.replace(
            rare,
            connecting=rare.connecting + self.connecting,
            pausing=rare.pausing + self.pausing + waited,
        )
        return msgspec.structs.replace(result, retried=retried, rare=rare)


def after_failure(result: Result, cause: str, history: History | None, now: float) -> History:
    """Return the history of a task whose attempt ended now with ``result``, because of ``cause``.

    ``result`` includes ``history``, the one before that attempt.
    """
    retried = dict(result.retried or {})
    retried[cause] = retried.get(cause, 0) + 1
    # One that only keeps the due time of a job that was handed back knows no beginning.
    began = history.began if history is not None and history.retries else now - (result.last_byte or 0.0)
    rare = result.rare or Rare()
    due = None if result.late is None else began - result.late
    in_doubt = result.resent > 0 or not UNANSWERED.isdisjoint(retried)
    if history is not None:
        due, in_doubt = history.due, in_doubt or history.in_doubt
    return History(result.retries + 1, began, retried, rare.connecting, rare.pausing, now, due, in_doubt)


def tried(history: History | None) -> bool:
    """Return whether a task with that history has begun before."""
    return history is not None and history.retries > 0


def spent(history: History | None, now: float) -> Spent:
    """Return what a worker is told of a task that is sent now: see :data:`~ssbench.fleet.wire.Spent`."""
    if history is None or not history.retries:
        return 0, 0.0, history is not None and history.in_doubt
    return history.retries, max(0.0, now - history.began), history.in_doubt
