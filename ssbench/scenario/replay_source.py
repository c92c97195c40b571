"""A log whose requests a run makes, as records; :mod:`ssbench.scenario.replayed` is what does so.

The command line imports it for the types of options, so that it does without numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ssbench.base.record import Count, Moment, Seconds

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ssbench.scenario.model import Scenario


@dataclass(frozen=True, slots=True)
class LoggedOperation:
    """How long an operation took by the log, of those that succeeded there; None where it does not say."""

    operation: str  # as the replay calls it
    count: Count  # requests of the log
    p50: Seconds | None = None
    p95: Seconds | None = None
    p99: Seconds | None = None
    maximum: Seconds | None = None


@dataclass(frozen=True, slots=True)
class ReplaySource:
    """What is replayed, for reports."""

    title: str  # what the log is called
    began: Moment  # when its first request began
    seconds: Seconds  # from then to the beginning of the last one
    requests: Count  # of the log that are replayed
    objects: Count  # which they are for
    prepared: Count  # those that they need first
    containers: Count  # in which these are
    accounts: Count  # in which the containers are
    copies: Count  # how often each request is made, on other objects
    left_out: Count  # requests that no operation makes, or that were refused
    early_requests: Count | None  # that began in the log before a write of their object ended there
    operations: tuple[LoggedOperation, ...]
    doubts: tuple[str, ...] = ()  # what to know of how the log was read


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """The requests of a log, those of a place in the arrays below after the one before.

    Objects are numbered from 1, those that have to exist first before all others.
    """

    source: ReplaySource
    names: tuple[str, ...]  # of the operations
    moments: npt.NDArray[np.float64]  # when each request is due, in seconds from the first on
    operations: npt.NDArray[np.uint8]  # places in ``names``
    #: The number of the object; of an operation on a container that of the container.
    items: npt.NDArray[np.uint32]
    sizes: npt.NDArray[np.int64]  # bytes as in a Target
    statuses: npt.NDArray[np.uint16]  # in the log
    containers: npt.NDArray[np.uint32]  # of each object by its number
    accounts: npt.NDArray[np.uint32]  # of each container
    initial_sizes: npt.NDArray[np.int64]  # of each object that is prepared, by its number
    written: npt.NDArray[np.bool_]  # whether requests change such an object

    def __len__(self) -> int:
        return len(self.moments)

    @property
    def rate(self) -> float:
        """Requests a second on average, at the speed of the log."""
        return len(self) / self.source.seconds if self.source.seconds > 0 else float(len(self))

    def find_factor(self, rate: float) -> float:
        """Return how many times the traffic of the log so many requests a second are."""
        return rate / self.rate * self.source.copies

    def find_speed(self, scenario: Scenario) -> float:
        """Return how much faster than the log a scenario is."""
        return (scenario.rate or self.rate) / self.rate
