"""What statistics are made of: the results of a run, and what is known of it besides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from ssbench.results.block import ResultBlock
from ssbench.results.description import RunDescription, RunSummary


class RunContext(Protocol):
    """What statistics need to know of a run besides its results.

    ``size_classes`` holds names that results index. ``current`` is False for the formats of ssbench
    0.x, of which only the old table is printed. ``summary`` is None where a run did not end.
    """

    @property
    def run(self) -> RunDescription: ...  # noqa: D102
    @property
    def size_classes(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def summary(self) -> RunSummary | None: ...  # noqa: D102
    @property
    def warnings(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def current(self) -> bool: ...  # noqa: D102


class PartContext(msgspec.Struct, frozen=True):
    """What is known of a part of a run, a stage or a group of users, as if it were a run."""

    run: RunDescription
    size_classes: Sequence[str]
    summary: RunSummary | None
    warnings: Sequence[str] = ()
    current: bool = True


class ReadableResults(RunContext, Protocol):
    """The results of a run, and what is known of it once they have been read.

    ``damaged`` is whether not all of them could be.
    """

    @property
    def damaged(self) -> bool: ...  # noqa: D102

    def blocks(self) -> Iterable[ResultBlock]:
        """Yield the results in order of arrival."""

    def again(self) -> ReadableResults:
        """Return the same results, to be read from their beginning once more."""

    def close(self) -> None:
        """Read no more of them."""
