"""The history of a job that is sent again because its token was refused."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ssbench.fleet.wire import Result


@dataclass(frozen=True, slots=True)
class History:
    """What happened to a task before it was sent again.

    ``began`` is the master's monotonic clock at the start of its first attempt, ``retries`` the number
    of attempts that failed, ``retried`` their causes with counts.
    """

    retries: int
    began: float
    retried: dict[str, int]

    def add_to(self, result: Result) -> Result:
        """Return the result with the causes of earlier attempts added to its own.

        The worker was told the number of retries and the time spent, so these are included already.
        """
        retried = dict(self.retried)
        for cause, count in (result.retried or {}).items():
            retried[cause] = retried.get(cause, 0) + count
        return msgspec.structs.replace(result, retried=retried)


def after_failure(result: Result, cause: str, history: History | None, now: float) -> History:
    """Return the history of a task whose attempt ended now with ``result``, because of ``cause``.

    ``result`` includes ``history``, the one before that attempt.
    """
    retried = dict(result.retried or {})
    retried[cause] = retried.get(cause, 0) + 1
    began = history.began if history else now - (result.last_byte or 0.0)
    return History(result.retries + 1, began, retried)
