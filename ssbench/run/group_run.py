"""What each group of users does in a run: its containers, its parameters for workers, and its load.

A :class:`GroupRun` has the workload, the objects and the jobs of one group; a :class:`BenchmarkLoad` has its
pace, and how its stages went. Users of the same containers share a :class:`ContainerSet`, which is made once.

A run with ``--ab`` has two sides: a group of users each, with half of the load. Both draw the same
operations, at the same time, on objects of their own. In an open loop their operations are due by turns, so
that those of both together are due when they would be without sides.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ssbench.base.errors import UsageError
from ssbench.fleet.fleet import GroupWorkers
from ssbench.fleet.phase import CHUNK_SECONDS, LEAD_SECONDS, ClosedLoop, Pace, StagedPace
from ssbench.fleet.wire import AccountAccess, RunParameters
from ssbench.results.run_description import GroupFacts, ReplayFacts, StageFacts, StatusCount
from ssbench.run.bench_options import RunOptions, RunSide
from ssbench.run.phases import Benchmark, InitialUploads
from ssbench.run.tokens import TokenRenewal, TokenSource
from ssbench.scenario.chosen_objects import make_population
from ssbench.scenario.draws import Arrivals, Workload, count_due_by_stage, derive_group_seed
from ssbench.scenario.model import (
    BENCHMARK_FIELDS,
    Scenario,
    SizeClass,
    Stage,
    make_owner,
    make_sent_scenario,
)
from ssbench.scenario.names import container_name, object_prefix
from ssbench.scenario.operations import OperationSettings
from ssbench.scenario.population import Population
from ssbench.scenario.replay_source import Replay
from ssbench.scenario.replayed import ReplayArrivals, ReplayPopulation, ReplayWorkload, find_peak_rate
from ssbench.store.contract import StoreAccess
from ssbench.store.stores import Session

if TYPE_CHECKING:
    from ssbench.store.stores import Session


@dataclass(frozen=True, slots=True)
class ContainerSet:
    """Containers of one account that have a policy and a beginning of their names in common."""

    container_base: str  # what their names begin with
    policy: str | None
    container_count: int
    account: int = 0  # number of the account among those of the bench
    storage_url: str | None = None  # the one to reach the account by; None: any that it has

    def __contains__(self, other: ContainerSet) -> bool:
        """Whether the containers of another place are among its own."""
        return replace(other, container_count=self.container_count) == self

    @property
    def containers(self) -> list[str]:
        """Their names."""
        return [
            container_name(self.container_base, number, self.policy) for number in range(self.container_count)
        ]

    def session(self, sessions: Sequence[Session]) -> Session:
        """Return the session of its account, with its storage URL."""
        found = sessions[self.account]
        return found if self.storage_url is None else replace(found, storage_urls=(self.storage_url,))

    def access(
        self, tokens: TokenSource, timeouts: tuple[float, float], trans_id_extra: str | None = None
    ) -> StoreAccess[Session]:
        """Return how the master makes requests in its account."""
        return StoreAccess(self.session(tokens.sessions), timeouts, self.renewing(tokens), trans_id_extra)

    def renewing(self, tokens: TokenSource) -> Callable[[], Session] | None:
        """Return what renews the token of its account; None where there is no other."""
        renew = tokens.renewing(self.account)
        if renew is None:
            return None

        def renewed() -> Session:
            renew()
            return self.session(tokens.sessions)

        return renewed


def container_set_of(scenario: Scenario, account: int = 0, storage_url: str | None = None) -> ContainerSet:
    """Return the place of the containers of a scenario without groups, in one of its accounts."""
    return ContainerSet(
        scenario.container_base, scenario.policy, scenario.container_count, account, storage_url
    )


def merge_container_sets(places: Iterable[ContainerSet]) -> list[ContainerSet]:
    """Return the places that differ; of those that differ in their number of containers, the largest."""
    found: dict[ContainerSet, ContainerSet] = {}
    for place in places:
        key = replace(place, container_count=0)
        count = max(place.container_count, found[key].container_count if key in found else 0)
        found[key] = replace(place, container_count=count)
    return [*found.values()]


def renewals_of_container_sets(
    places: Iterable[ContainerSet], renewals: Sequence[TokenRenewal]
) -> list[TokenRenewal]:
    """Return what renews the tokens of the accounts of some places: one for each, or one for all of them."""
    if not renewals:
        return [TokenRenewal(None)]
    return [*dict.fromkeys(renewals[place.account % len(renewals)] for place in places)]


# -- The two sides of --ab -------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: What the names of objects begin with, of the one set of them and of the other.
_SIDE_PREFIXES = ("a", "b")


def refuse_sides(scenario: Scenario) -> None:
    """Raise UsageError for a scenario that cannot be that of two sides."""
    if scenario.groups:
        raise UsageError("--ab: not possible with a scenario that has groups of users")
    for row in scenario.operation_table.drawn:
        if row.one_side and row.name in scenario.operation_names:
            raise UsageError(f"{row.name}: not possible in a run of two sides (--ab)")


def make_users_even(scenario: Scenario) -> Scenario:
    """Return a scenario whose users can be halved: with one more where their number is odd."""
    stages = tuple(
        stage
        if stage.users is None
        else replace(stage, users=(_next_even(stage.users[0]), _next_even(stage.users[1])))
        for stage in scenario.stages
    )
    found = replace(scenario, user_count=_next_even(scenario.user_count), stages=stages)
    if found != scenario:
        _log.info("--ab: each side has half of the users, %d", found.user_count // 2)
    return found


def halve_scenario(scenario: Scenario, side: int, policy: str | None) -> Scenario:
    """Return what a side (0 or 1) does of an even scenario, with the containers of a policy.

    It has half of the objects, at least one of a class that has some.
    """
    count, per_container = scenario.operation_count, scenario.objects_per_container
    return replace(
        scenario,
        objects_per_container=per_container and (per_container + 1) // 2,
        user_count=scenario.user_count // 2,
        operation_count=None if count is None else (count + 1 - side) // 2,
        rate=None if scenario.rate is None else scenario.rate / 2,
        stages=tuple(map(_half_of_stage, scenario.stages)),
        size_classes=tuple(map(_half_of_class, scenario.size_classes)),
        policy=policy or scenario.policy,
        phase=(scenario.phase + side) / 2,
    )


def object_prefixes_of_sides(seed: int) -> tuple[str, str]:
    """Return what the names of objects of each side begin with, in a run with a seed.

    Where objects lie follows from their names. So that this is no difference of the sides on average, they
    swap their names from one seed to the next.
    """
    first = seed % 2
    return _SIDE_PREFIXES[first], _SIDE_PREFIXES[1 - first]


def merge_side_stages(parts: Iterable[tuple[StageFacts, ...]]) -> tuple[StageFacts, ...]:
    """Return how the stages went that several parts of a run went through at the same time."""
    return tuple(
        StageFacts(
            min(each.begins for each in stage),
            max(each.ends for each in stage),
            sum(each.due or 0 for each in stage) if any(each.due is not None for each in stage) else None,
        )
        for stage in zip(*parts, strict=False)
    )


def _next_even(count: int) -> int:
    return count + count % 2


def _half_of_stage(stage: Stage) -> Stage:
    users, rate = stage.users, stage.rate
    return replace(
        stage,
        users=None if users is None else (users[0] // 2, users[1] // 2),
        rate=None if rate is None else (rate[0] / 2, rate[1] / 2),
    )


def _half_of_class(size_class: SizeClass) -> SizeClass:
    # Its share of the operations stays, also where half of an odd number of objects is more than half.
    return replace(
        size_class, initial_files=(size_class.initial_files + 1) // 2, weight=float(size_class.share)
    )


# -- Parameters for workers ------------------------------------------------------------------------


def make_run_parameters(
    run_id: int,
    mark: str | None,
    scenario: Scenario,
    options: RunOptions,
    sessions: Sequence[Session],
    group: int = 0,
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> RunParameters:
    """Return the parameters of a run, or of one ``group`` of users in it.

    ``seed`` is what the group draws by. ``names`` are what the names of objects begin with, where those are
    not the names of size classes. ``sessions`` are those of its accounts; there are none in a no-op run.
    """
    session = sessions[0] if sessions else None
    return RunParameters(
        run_id=run_id,
        token=session.token if session else None,
        storage_urls=list(session.storage_urls) if session else [],
        requests=options.requests,
        trans_id_extra=mark,
        noop=options.noop,
        scenario=make_sent_scenario(scenario),
        size_classes=list(names or [each.name for each in scenario.size_classes]),
        size_ranges=[(each.size_min, each.size_max) for each in scenario.size_classes],
        segments=[(each.segment_size, each.segments == "dynamic") for each in scenario.size_classes]
        if scenario.has_segments
        else [],
        insecure=session.insecure if session else False,
        ca_certificates=session.ca_certificates if session else None,
        owners=[make_owner(scenario, each) for each in scenario.size_classes],
        verify_seed=run_id if options.verify and session and not options.existing else None,
        seed=seed % 2**63,
        every_etag=options.verify and options.existing is not None,
        group=group,
        most_requests=_max_requests(scenario),
        accounts=accounts_of_sessions(sessions),
    )


def accounts_of_sessions(sessions: Sequence[Session]) -> list[AccountAccess]:
    """Return what workers get of accounts, where there are several; the token once where it is the same."""
    if len(sessions) < 2:
        return []
    same = len({session.token for session in sessions}) == 1
    return [(list(session.storage_urls), None if same else session.token) for session in sessions]


#: Requests for an object in segments, without those for the segments.
_MANIFEST_REQUESTS = 8


def _max_requests(scenario: Scenario) -> int:
    """Return how many requests an operation of a scenario is at most; an initial upload may be two."""
    settings = {each.name: each for each in scenario.operations}
    names = {name for each in scenario.size_classes for name, weight in each.weights.items() if weight}
    own = [settings.get(name, OperationSettings(name)) for name in names]
    operations = scenario.operation_table
    most = max([2, *(operations.of(each).most_requests(each, scenario.operations) for each in own)])
    segments = max(each.most_segments for each in scenario.size_classes)
    # Each may be replaced, and deleted where it is not, by each of the requests of a sequence.
    return most * (3 * segments + _MANIFEST_REQUESTS) if segments else most


# -- The part of each group, and its load ----------------------------------------------------------


class GroupRun:
    """The part of a run that one group of users has, its number; None: the whole of a run without groups.

    ``scenario`` is what the group does, ``seed`` what it draws by. Names of its objects begin with
    ``prefix``, they are in ``places``, one in each account. ``due_seed`` draws when its operations are due,
    where that is another seed. The jobs are those of ``workers``.
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
        verify: bool = False,
        replay: Replay | None = None,
    ) -> None:
        self.group = group
        self.places = places or [container_set_of(scenario, each) for each in range(scenario.accounts)]
        self._prefix = prefix
        self.scenario = scenario
        self.seed = seed
        self._replay = replay
        self.workload: Workload
        self.state: Population
        if replay is None:
            self.workload = Workload(scenario, seed, prepared=prepared)
            self.state = make_population(scenario, self.workload, verify=verify)
        else:
            self.workload = replayed = ReplayWorkload(scenario, seed, replay)
            self.state = ReplayPopulation(scenario, replayed, replay)
        closed = ClosedLoop(scenario.user_count, batch_size or 1)
        self.load = BenchmarkLoad(scenario, seed if due_seed is None else due_seed, closed, replay)
        self.uploads: InitialUploads | None = None
        self.benchmark: Benchmark | None = None
        self._workers: GroupWorkers | None = None

    @property
    def names(self) -> list[str]:
        """What the names of objects of each size class begin with; those of groups are apart."""
        return [object_prefix(self._prefix, each.name) for each in self.scenario.size_classes]

    @property
    def workers(self) -> GroupWorkers:
        """The workers, as the jobs of this group meet them."""
        if self._workers is None:
            raise RuntimeError("the fleet has not begun the run")
        return self._workers

    @workers.setter
    def workers(self, workers: GroupWorkers) -> None:
        self._workers = workers

    def replay_facts(self) -> ReplayFacts | None:
        """Return how the replay of a log went; None of anything else."""
        if self._replay is None or not isinstance(self.state, ReplayPopulation):
            return None
        names = {row.code: row.name for row in self.scenario.operation_table}
        return ReplayFacts(
            self._replay.source,
            self._replay.find_speed(self.scenario),
            self.state.early_requests,
            tuple(
                StatusCount(names[code], logged, status, count)
                for (code, logged, status), count in sorted(self.state.statuses.items())
            ),
        )

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
    verify: bool = False,
    replay: Replay | None = None,
) -> list[GroupRun]:
    """Return a part for each group of a scenario, or each side, or the one that a run without consists of.

    ``prepared``: their initial objects are those of ``ssbench-master prepare``. ``verify``: bodies are
    verified. A run of a ``replay`` has neither groups nor sides.
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
                [container_set_of(own, number if side.has_account else 0, side.storage_url)],
                derive_group_seed(seed, prefix),
                verify=verify,
            )
            for number, (side, prefix) in enumerate(zip(sides, object_prefixes_of_sides(seed), strict=True))
        ]
    if not scenario.groups:
        return [GroupRun(scenario, seed, batch_size, prepared=prepared, verify=verify, replay=replay)]
    return [
        GroupRun(
            own,
            derive_group_seed(seed, group.name),
            batch_size,
            number,
            group.name,
            prepared=prepared,
            verify=verify,
        )
        for number, (own, group) in enumerate(zip(scenario.parts, scenario.groups, strict=True))
    ]


class BenchmarkLoad:
    """The load of one benchmark.

    ``closed`` is the pace of a run that has neither stages nor a rate, and of all other phases; ``seed``
    draws random arrivals.
    """

    def __init__(self, scenario: Scenario, seed: int, closed: Pace, replay: Replay | None = None) -> None:
        self._scenario = scenario
        self._seed = seed
        self.closed = closed
        self._replay = replay
        self._arrivals = (
            Arrivals(scenario.plan, scenario.arrivals, seed, scenario.phase)
            if replay is None
            else ReplayArrivals(replay, replay.find_speed(scenario))
        )

    def pace(self, start: float) -> Pace:
        """Return the pace of a benchmark whose stages begin at ``start`` (the master's monotonic clock)."""
        scenario = self._scenario
        if not scenario.stages and not scenario.is_open:
            return self.closed
        plan = scenario.plan
        if self._replay is not None:
            # So that no burst of the log waits for others to end.
            speed = self._replay.find_speed(scenario)
            peak = speed * find_peak_rate(self._replay, speed * (LEAD_SECONDS + CHUNK_SECONDS))
            plan = tuple(replace(stage, rate=(peak, peak)) for stage in plan)
        return StagedPace(plan, self._arrivals, start, self.closed.batch_size)

    def begin(self, workers: GroupWorkers, benchmark: Benchmark) -> Pace:
        """Tell workers what holds in the benchmark alone (how long users think), and return its pace."""
        changes = {name: getattr(self._scenario, name) for name in BENCHMARK_FIELDS}
        if changes != BENCHMARK_FIELDS:
            workers.change(**changes)
        return self.pace(benchmark.start)

    def stages(self, benchmark: Benchmark, *, interrupted: bool) -> tuple[StageFacts, ...]:
        """Return the stages that began, of a benchmark that has ended."""
        scenario = self._scenario
        start, sent_until = benchmark.epoch + benchmark.start, benchmark.sent_until
        # A run of so many operations ends before the last ones are due: they are handed out early.
        by_count = scenario.run_seconds is None
        until = math.inf if by_count and not interrupted else sent_until - start
        most = self._arrivals.taken if by_count else None
        dues = (
            [self._arrivals.count_due(until, most)]
            if isinstance(self._arrivals, ReplayArrivals)
            else count_due_by_stage(scenario.plan, scenario.arrivals, self._seed, until, most, scenario.phase)
        )
        facts = []
        begins = start
        for place, (stage, due) in enumerate(zip(scenario.plan, dues, strict=True)):
            if place and begins >= sent_until:
                break
            ends = begins + stage.seconds
            facts.append(StageFacts(begins, min(ends, sent_until), due if stage.rate else None))
            begins = ends
        return tuple(facts)
