"""How long a worker stays, and what it is called where it has no number of its own. Pure.

A master may do several runs (``--repeat``, a sweep); for its workers they are one, which is over when it is
gone.
"""

from __future__ import annotations

from collections.abc import Mapping

from ssbench.fleet.wire import LOST_AFTER

#: Variables in which an engine numbers the processes that it starts with one command, and what each is.
_LAUNCHER_VARIABLES = (("SLURM_PROCID", "task"), ("JOB_COMPLETION_INDEX", "index"))

_MAX_LABEL_CHARACTERS = 64


def launcher_label(environment: Mapping[str, str]) -> str:
    """Return what an engine calls this process, such as ``task 3``; empty where none started it."""
    for variable, what in _LAUNCHER_VARIABLES:
        if number := environment.get(variable):
            return f"{what} {number}"[:_MAX_LABEL_CHARACTERS]
    return ""


class ServedRuns:
    """Counts the runs that a worker has served. ``most``: after how many it is to exit, None: never.

    A run is over when another master comes, or when its connection has ended and its master has not been
    heard of for :data:`~ssbench.fleet.wire.LOST_AFTER` seconds. Times are of a monotonic clock.
    """

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.served = 0
        #: The master that it has had jobs of, 0 without; when the connection to it ended.
        self._master = 0
        self._ended: float | None = None

    def works_for(self, master: int) -> None:
        """Take note of jobs of a master."""
        self._master, self._ended = master, None

    def connection_ends(self, now: float) -> None:
        """Take note that the connection to the master has ended."""
        if self._master and self._ended is None:
            self._ended = now

    def hears(self, master: int) -> None:
        """Take note of a ping of a master."""
        if master == self._master:
            self._ended = None
        elif self._master:
            self._over()

    def tick(self, now: float) -> None:
        """Find that a run is over; call it every few seconds."""
        if self._ended is not None and now - self._ended > LOST_AFTER:
            self._over()

    def _over(self) -> None:
        self.served += 1
        self._master, self._ended = 0, None

    @property
    def enough(self) -> bool:
        """Whether the worker is to exit."""
        return self.most is not None and self.served >= self.most
