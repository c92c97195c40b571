"""What goes along with runs for others: it watches the cluster, or takes the results while they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol

from ssbench.results.observation import ClusterObserver
from ssbench.results.sink import Sink
from ssbench.run.bench import Bench
from ssbench.scenario.model import Scenario


class Companion(Protocol):
    """What an option of run-scenario asks for; it lasts for all runs of a program."""

    @property
    def observer(self) -> ClusterObserver | None:
        """What watches the cluster; None where it does not."""

    def open_sinks(self, scenario: Scenario, bench: Bench) -> AbstractContextManager[list[Sink]]:
        """Return a context for one run, or for several of one scenario: the sinks of their results.

        Entering raises UsageError where one cannot be made.
        """


class Companions:
    """Several companions as one."""

    def __init__(self, companions: Sequence[Companion]) -> None:
        self._companions = companions
        #: What watches the cluster.
        self.observer = next((each.observer for each in companions if each.observer is not None), None)

    @contextmanager
    def open_sinks(self, scenario: Scenario, bench: Bench) -> Iterator[list[Sink]]:
        """Yield the sinks of all; raises UsageError where one cannot be made."""
        with ExitStack() as stack:
            yield [
                sink
                for each in self._companions
                for sink in stack.enter_context(each.open_sinks(scenario, bench))
            ]
