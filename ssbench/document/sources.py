"""What figures are taken from: the shapes of the numbers that :mod:`ssbench.statistics` computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class IntervalSource(Protocol):
    """A 95 % interval."""

    @property
    def low(self) -> float: ...  # noqa: D102
    @property
    def high(self) -> float: ...  # noqa: D102


class LatencySource(Protocol):
    """Some latencies, in seconds; their mean and maximum are NaN without any."""

    @property
    def count(self) -> int: ...  # noqa: D102
    @property
    def mean(self) -> float: ...  # noqa: D102

    def percentile(self, rank: float) -> float: ...  # noqa: D102
    def most(self, rank: float | None) -> float: ...  # noqa: D102
    def share_within(self, limit: float) -> float: ...  # noqa: D102
    def interval(self, rank: float) -> IntervalSource | None: ...  # noqa: D102


class OrderedValues(Protocol):
    """Values in ascending order."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int, /) -> float: ...


class DueSource(Protocol):
    """What is known of operations that were due."""

    @property
    def since_due(self) -> LatencySource: ...  # noqa: D102


class OperationSource(Protocol):
    """The numbers of an operation, a size class, or of all operations."""

    @property
    def count(self) -> int: ...  # noqa: D102
    @property
    def failed(self) -> int: ...  # noqa: D102
    @property
    def counted(self) -> Mapping[str, int]: ...  # noqa: D102
    @property
    def requests_per_second(self) -> float: ...  # noqa: D102
    @property
    def moved(self) -> int: ...  # noqa: D102
    @property
    def moved_per_second(self) -> float: ...  # noqa: D102
    @property
    def rate_interval(self) -> IntervalSource | None: ...  # noqa: D102
    @property
    def moved_interval(self) -> IntervalSource | None: ...  # noqa: D102
    @property
    def latency(self) -> LatencySource: ...  # noqa: D102
    @property
    def first_byte(self) -> LatencySource: ...  # noqa: D102
    @property
    def last_byte(self) -> LatencySource: ...  # noqa: D102
    @property
    def due(self) -> DueSource: ...  # noqa: D102


class RunSource(Protocol):
    """The run that a line belongs to."""

    @property
    def due(self) -> int | None: ...  # noqa: D102
    @property
    def not_begun(self) -> int | None: ...  # noqa: D102
