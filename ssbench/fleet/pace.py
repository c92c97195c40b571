"""How many jobs may be sent now. Pure: a pace is told the time and the counts.

The loop (:mod:`ssbench.run.loop`) asks a :class:`Pace` each time it may send something; the pace alone
decides how much load there is: :class:`ClosedLoop` here, and :class:`~ssbench.fleet.stages.StagedPace`.

* *Stages* change :meth:`Pace.users` with the time.
* In an *open loop* of N operations a second :meth:`Pace.room` is the number of operations that are due
  shortly and were not sent, as far as users are free, :meth:`Pace.dues` says when each is due, and
  :meth:`Pace.wait` in how many seconds the next ones are to be sent.

Jobs that workers hold ahead of their users (:mod:`ssbench.fleet.ahead`) are not a pace's business: the loop
leaves out of ``in_flight`` as many as workers may hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

#: Most jobs of a message, which has to stay under :data:`ssbench.fleet.wire.MAX_MESSAGE_BYTES`.
MOST_IN_BATCH = 10_000


class Pace(Protocol):
    """Decides how many jobs may be sent. Times are seconds of the master's monotonic clock."""

    @property
    def batch_size(self) -> int:
        """Most jobs of a message."""

    def users(self, now: float) -> int:
        """How many operations may be under way at once; asked some times a second.

        The workers get equal shares of them, as far as each has room.
        """

    def room(self, now: float, sent: int, in_flight: int, capacity: int) -> int:
        """How many more jobs may be sent now; none if it is not positive.

        ``sent`` is how many new tasks the phase has sent so far, ``in_flight`` how many jobs are with workers
        beyond those that they may hold ahead; negative while they hold fewer. ``capacity`` is how many
        operations the workers that are there can run at once.
        """

    def wait(self, now: float, sent: int) -> float:
        """Seconds until there is room without any result; infinity if only results make room."""

    def in_hand(self, now: float) -> int | None:
        """How many jobs all workers together may have, with those ahead; None: as many as they need."""

    def dues(self, first: int, count: int) -> Sequence[float]:
        """When the new tasks from number ``first`` on are due, which are sent now; empty in a closed loop."""


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """A constant number of users, each of which begins its next operation when one has ended."""

    user_count: int
    batch_size: int = MOST_IN_BATCH

    def __post_init__(self) -> None:
        if self.batch_size > MOST_IN_BATCH:
            object.__setattr__(self, "batch_size", MOST_IN_BATCH)

    def users(self, now: float) -> int:  # noqa: D102 - see Pace
        return self.user_count

    def room(self, now: float, sent: int, in_flight: int, capacity: int) -> int:  # noqa: D102
        return (capacity if capacity < self.user_count else self.user_count) - in_flight

    def wait(self, now: float, sent: int) -> float:  # noqa: D102
        return math.inf

    def in_hand(self, now: float) -> int | None:  # noqa: D102
        return None

    def dues(self, first: int, count: int) -> Sequence[float]:  # noqa: D102
        return ()


def share_out(total: int, capacities: Sequence[int]) -> list[int]:
    """Divide ``total`` users among workers; returns the share of each.

    All get the same, give or take one, but no worker more than its capacity: what it has no room for goes
    to the others.
    """
    shares = [0] * len(capacities)
    left = total
    for place, worker in enumerate(sorted(range(len(capacities)), key=capacities.__getitem__)):
        shares[worker] = min(capacities[worker], -(-left // (len(capacities) - place)))
        left -= shares[worker]
    return shares
