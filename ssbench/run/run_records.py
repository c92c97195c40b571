"""The first and the last document of a stat file: how a run was set up, and how it went.

What a run adds to them is written here, not in :mod:`ssbench.run.benchmark_run`.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from ssbench.base.errors import SsbenchError
from ssbench.base.version import __version__
from ssbench.fleet.dispatcher import JobCounts
from ssbench.fleet.fleet import Fleet
from ssbench.fleet.worker_state import WorkerState
from ssbench.results.run_description import (
    EventFacts,
    Gap,
    HostFacts,
    MasterFacts,
    PrecisionFacts,
    RunDescription,
    RunSummary,
    WorkerFacts,
)
from ssbench.run import terminal
from ssbench.run.bench_options import RunSide
from ssbench.run.cpu_sampler import ServerCpuSampler
from ssbench.run.group_run import GroupRun, merge_side_stages, object_prefixes_of_sides
from ssbench.run.load_samples import LoadSampler, MasterLoad
from ssbench.scenario.model import Scenario

if TYPE_CHECKING:
    from ssbench.results.cluster_observation import Observation


def make_run_description(
    run_id: int,
    scenario: Scenario,
    seed: int,
    fleet: Fleet,
    options: dict[str, object],
    *,
    sides: Sequence[RunSide] = (),
    accounts: Sequence[str] = (),
) -> RunDescription:
    """Return the first document, of a run whose benchmark begins now.

    ``options`` are those that are kept (:func:`~.bench_options.recorded_options`). ``accounts`` are the names
    of those that it uses, where there are several. ``run_id`` is that of the whole run: the fleet's own
    changes when jobs are abandoned.
    """
    return RunDescription(
        scenario=scenario,
        version=__version__,
        seed=seed,
        options=options,
        host=socket.gethostname(),
        run_id=run_id,
        started=time.time(),
        workers=tuple(
            WorkerFacts(worker.worker_id, worker.host, worker.version, label=worker.label, site=worker.site)
            for worker in fleet.roster.living()
        ),
        storage_urls=tuple(fleet.storage_urls),
        sides=tuple(side.name for side in sides),
        side_policies=tuple(side.policy for side in sides if side.policy),
        side_prefixes=object_prefixes_of_sides(seed) if sides else (),
        stages=scenario.stage_names,
        accounts=tuple(accounts),
    )


def find_late_warnings(of_cluster: Iterable[str]) -> list[str]:
    """Return the warnings that only the report has; on the screen they would repeat what is there."""
    loss = terminal.describe_output_loss()
    return [*([] if loss is None else [loss]), *of_cluster]


def make_summary_so_far(
    fleet: Fleet, epoch: float, own: MasterLoad, course: LoadSampler, warnings: Iterable[str]
) -> RunSummary:
    """Return what is known of a benchmark in progress: of its workers, of the master, and its warnings."""
    used = own.used(time.monotonic(), terminal.seconds_unread())
    return RunSummary(
        ended=time.time(),
        warnings=tuple(warnings),
        workers=tuple(
            _worker_facts(worker, epoch) for worker in fleet.roster.workers.values() if worker.presence.used
        ),
        master=MasterFacts(used.cpu_share, own.longest, used.unread),
        gaps=tuple(_generator_gaps(own, fleet.roster.workers.values(), epoch)),
        generator_load=course.samples(epoch),
    )


def make_run_summary(
    scenario: Scenario,
    fleet: Fleet,
    parts: Sequence[GroupRun],
    observation: Observation | None,
    own: MasterLoad,
    course: LoadSampler,
    *,
    warnings: Iterable[str],
    interrupted: bool,
    error: SsbenchError | None,
    trouble: bool,
    until: tuple[PrecisionFacts, ...],
    counted: Mapping[str, float],
    addresses: tuple[str, ...] = (),
    hosts: tuple[HostFacts, ...] = (),
    events: tuple[EventFacts, ...] = (),
    server_cpu: Sequence[ServerCpuSampler] = (),
) -> RunSummary:
    """Return the last document, of a run whose benchmark has ended, from its parts.

    ``until`` is as in :class:`RunSummary`, ``counted`` is what was counted before the benchmark,
    ``addresses`` are those of hosts with several, ``hosts`` the machines of the load generator, ``events``
    the commands that were run meanwhile, ``server_cpu`` has what the servers of a Swift here used.
    """
    ledgers = [group.ledger for group in fleet.groups]
    benchmarks = [part.benchmark for part in parts if part.benchmark is not None]
    epoch = benchmarks[0].epoch
    facts = [part.facts(interrupted=interrupted) for part in parts]
    states = [part.state for part in parts]
    missing: Counter[tuple[int, int]] = Counter()
    for state in states:
        missing.update(state.not_sendable)
    return replace(
        make_summary_so_far(fleet, epoch, own, course, warnings),
        not_sendable=tuple((*key, count) for key, count in sorted(missing.items())),
        lost_jobs=sum(benchmark.lost_jobs for benchmark in benchmarks),
        interrupted=interrupted,
        counters={
            **{
                each.name: sum(getattr(ledger, each.name) for ledger in ledgers) for each in fields(JobCounts)
            },
            "taken_back": sum(benchmark.taken_back for benchmark in benchmarks),
            "in_doubt": sum(benchmark.in_doubt for benchmark in benchmarks),
            "drawn": sum(state.drawn for state in states),
            "capacity": fleet.capacity,
            "waited": sum(state.waits for state in states),
            "not_begun": sum(state.waiting for state in states),
            "expired": sum(state.expired for state in states),
            **sum((Counter(state.counts()) for state in states), Counter[str]()),
            **counted,
        },
        sent_until=max(benchmark.sent_until for benchmark in benchmarks),
        cluster=observation,
        ended_early=None if error is None else str(error),
        error_code=0 if error is None else int(error.exit_code),
        until=until,
        trouble=trouble,
        stages=() if scenario.groups else merge_side_stages(each.stages for each in facts),
        groups=tuple(facts) if scenario.groups else (),
        addresses=addresses,
        hosts=hosts,
        events=events,
        server_cpu=tuple(sample for each in server_cpu for sample in each.samples()),
        replay=next((each for part in parts if (each := part.replay_facts()) is not None), None),
    )


def _worker_facts(worker: WorkerState, epoch: float) -> WorkerFacts:
    return WorkerFacts(
        worker_id=worker.worker_id,
        host=worker.host,
        version=worker.version,
        cpu_share=worker.load.cpu_share,
        lag_p99=worker.load.lag_percentile(99),
        clock_offset=worker.clock.offset.seconds + epoch,
        lag_p50=worker.load.lag_percentile(50),
        lag_max=worker.load.lag_max,
        clock_slope=worker.clock.course.slope,
        wall_offset=worker.clock.course.wall_offset,
        label=worker.label,
        site=worker.site,
    )


def _generator_gaps(own: MasterLoad, workers: Iterable[WorkerState], epoch: float) -> Iterator[Gap]:
    """Yield the times in which the master or a worker stalled, in order."""
    of: list[tuple[int | None, list[tuple[float, float]]]] = [(None, own.gaps)]
    of += [(worker.worker_id, worker.load.gaps) for worker in workers if worker.presence.used]
    gaps = [Gap(who, begin + epoch, end - begin) for who, each in of for begin, end in each]
    yield from sorted(gaps, key=lambda gap: gap.start)
