"""What the users of one group do in a run: their workload, their objects, their jobs, and their load.

The load is a pace, and what came of that: its stages as they went.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ssbench.fleet.crew import GroupWorkers
from ssbench.fleet.pace import MAX_BATCH_JOBS, ClosedLoop, Pace, StagedPace
from ssbench.results.description import GroupFacts, StageFacts
from ssbench.run.options import RunSide
from ssbench.run.phases import Benchmark, InitialUploads
from ssbench.run.places import ContainerSet, container_set_of, container_sets_of
from ssbench.run.sides import halve_scenario, object_prefixes_of_sides
from ssbench.scenario.arrivals import Arrivals, count_due_by_stage, derive_group_seed
from ssbench.scenario.chosen import make_population
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario
from ssbench.scenario.names import object_prefix


class GroupRun:
    """The part of a run that one group of users has, its number; None: the whole of a run without groups.

    ``scenario`` is what the group does, ``seed`` what it draws by. Names of its objects begin with
    ``prefix``, they are in ``places``, one in each account. ``due_seed`` draws when its operations are due,
    where that is another seed. The jobs are those of ``crew``.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        batch_size: int | None,
        group: int | None = None,
        prefix: str = "",
        places: Sequence[ContainerSet] = (),
        due_seed: int | None = None,
        *,
        prepared: bool = False,
    ) -> None:
        self.group = group
        self.places = places or container_sets_of(scenario)
        self._prefix = prefix
        self.scenario = scenario
        self.seed = seed
        self.workload = Workload(scenario, seed, prepared=prepared)
        self.state = make_population(scenario, self.workload)
        closed = ClosedLoop(scenario.user_count, batch_size or MAX_BATCH_JOBS)
        self.load = BenchmarkLoad(scenario, seed if due_seed is None else due_seed, closed)
        self.uploads: InitialUploads | None = None
        self.benchmark: Benchmark | None = None
        self._crew: GroupWorkers | None = None

    @property
    def names(self) -> list[str]:
        """What the names of objects of each size class begin with; those of groups are apart."""
        return [object_prefix(self._prefix, each.name) for each in self.scenario.size_classes]

    @property
    def crew(self) -> GroupWorkers:
        """The workers, as the jobs of this group meet them."""
        if self._crew is None:
            raise RuntimeError("the fleet has not begun the run")
        return self._crew

    @crew.setter
    def crew(self, crew: GroupWorkers) -> None:
        self._crew = crew

    def facts(self, *, interrupted: bool) -> GroupFacts:
        """Return how it went, when its benchmark has ended."""
        if self.benchmark is None:
            return GroupFacts()
        return GroupFacts(
            self.load.stages(self.benchmark, interrupted=interrupted),
            tuple((*key, count) for key, count in sorted(self.state.not_sendable.items())),
            self.state.drawn,
            self.state.waits,
        )


def make_group_runs(
    scenario: Scenario,
    seed: int,
    batch_size: int | None,
    sides: Iterable[RunSide] = (),
    *,
    prepared: bool = False,
) -> list[GroupRun]:
    """Return a part for each group of a scenario, or each side, or the one that a run without consists of.

    ``prepared``: their initial objects are those of ``ssbench-master prepare``.
    """
    if sides := [*sides]:
        return [
            GroupRun(
                own := halve_scenario(scenario, number, side.policy),
                seed,
                batch_size,
                number,
                prefix,
                # Accounts are identified by their place among the credentials of the bench.
                [container_set_of(own, 0 if side.storage_url or side.policy else number, side.storage_url)],
                derive_group_seed(seed, prefix),
            )
            for number, (side, prefix) in enumerate(zip(sides, object_prefixes_of_sides(seed), strict=True))
        ]
    if not scenario.groups:
        return [GroupRun(scenario, seed, batch_size, prepared=prepared)]
    return [
        GroupRun(own, derive_group_seed(seed, group.name), batch_size, number, group.name, prepared=prepared)
        for number, (own, group) in enumerate(zip(scenario.parts, scenario.groups, strict=True))
    ]


class BenchmarkLoad:
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

    def begin(self, crew: GroupWorkers, benchmark: Benchmark) -> Pace:
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
        dues = count_due_by_stage(scenario.plan, scenario.arrivals, self._seed, until, most, scenario.phase)
        facts = []
        begins = start
        for place, (stage, due) in enumerate(zip(scenario.plan, dues, strict=True)):
            if place and begins >= sent_until:
                break
            ends = begins + stage.seconds
            facts.append(StageFacts(begins, min(ends, sent_until), due if stage.rate else None))
            begins = ends
        return tuple(facts)
