"""How much load a run puts on the store, and what came of that: its pace, its stages as they went."""

from __future__ import annotations

import math

from ssbench.fleet.crew import Crew
from ssbench.fleet.pace import Pace, StagedPace
from ssbench.results import StageFacts
from ssbench.run.phases import Benchmark
from ssbench.scenario.arrivals import Arrivals, due_by_stage
from ssbench.scenario.model import Scenario


class Load:
    """The load of one benchmark.

    ``closed`` is the pace of a run that has neither stages nor a rate, and of all other phases; ``seed``
    draws random arrivals.
    """

    def __init__(self, scenario: Scenario, seed: int, closed: Pace) -> None:
        self._scenario = scenario
        self._seed = seed
        self.closed = closed
        self._arrivals = Arrivals(scenario.plan, scenario.arrivals, seed, scenario.phase)

    def pace(self, start: float) -> Pace:
        """Return the pace of a benchmark whose stages begin at ``start`` (the master's monotonic clock)."""
        scenario = self._scenario
        if not scenario.stages and not scenario.is_open:
            return self.closed
        return StagedPace(scenario.plan, self._arrivals, start, self.closed.batch_size)

    def begin(self, crew: Crew, benchmark: Benchmark) -> Pace:
        """Let users think from now on, where they do, and return the pace of a benchmark."""
        if self._scenario.think_time:
            crew.change(think_time=self._scenario.think_time)
        return self.pace(benchmark.start)

    def stages(self, benchmark: Benchmark, *, interrupted: bool) -> tuple[StageFacts, ...]:
        """Return the stages that began, of a benchmark that has ended."""
        scenario = self._scenario
        start, sent_until = benchmark.epoch + benchmark.start, benchmark.sent_until
        # A run of so many operations ends before the last ones are due: they are handed out early.
        by_count = scenario.run_seconds is None
        until = math.inf if by_count and not interrupted else sent_until - start
        most = self._arrivals.taken if by_count else None
        dues = due_by_stage(scenario.plan, scenario.arrivals, self._seed, until, most, scenario.phase)
        facts = []
        begins = start
        for place, (stage, due) in enumerate(zip(scenario.plan, dues, strict=True)):
            if place and begins >= sent_until:
                break
            ends = begins + stage.seconds
            facts.append(StageFacts(begins, min(ends, sent_until), due if stage.rate else None))
            begins = ends
        return tuple(facts)
