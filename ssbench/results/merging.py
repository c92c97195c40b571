"""What is known of one run that several masters made, from what is known of the run of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from ssbench.base.errors import UsageError
from ssbench.results.columns import ChangeNumbers
from ssbench.results.description import (
    GroupFacts,
    LoadSample,
    MasterFacts,
    RunDescription,
    RunSummary,
    StageFacts,
    WorkerFacts,
)
from ssbench.results.fitting import OWN_OPTIONS, MasterRun
from ssbench.results.schema import NO_WORKER, UNKNOWN_NUMBER
from ssbench.scenario import portions

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Renumbering:
    """What is added to the numbers of workers and of masters in the results of one file.

    ``storage_urls`` has the place of each of its storage URLs among those of all, ``addresses`` that of each
    address.
    """

    workers: int
    masters: int
    storage_urls: tuple[int, ...]
    addresses: tuple[int, ...] = ()

    def changes(self) -> Mapping[str, ChangeNumbers]:
        """Return what changes the columns of its results."""
        found: dict[str, ChangeNumbers] = {"master": lambda numbers: numbers + self.masters}
        if self.workers:
            found["worker"] = self._workers
        for name in ("storage_url", "address"):
            own: tuple[int, ...] = self.addresses if name == "address" else self.storage_urls
            if own != tuple(range(len(own))):
                found[name] = partial(_look_up_places, np.array([*own, UNKNOWN_NUMBER]))
        return found

    def _workers(self, numbers: _Numbers) -> _Numbers:
        return np.where(numbers == NO_WORKER, NO_WORKER, numbers + self.workers)

    def worker(self, facts: WorkerFacts) -> WorkerFacts:
        """Return a worker with its number among those of all."""
        return replace(facts, worker_id=facts.worker_id + self.workers)


def _look_up_places(places: _Numbers, numbers: _Numbers) -> _Numbers:
    """Return other places for places; the last one is that of what is not known."""
    return np.asarray(places[np.clip(numbers, -1, len(places) - 1)])


def plan_renumberings(masters: Sequence[MasterRun]) -> list[Renumbering]:
    """Return how the results of each file are renumbered; raises UsageError where there is no room."""
    ids = [{worker.worker_id for worker in (*each.summary.workers, *each.run.workers)} for each in masters]
    distinct = len(set().union(*ids)) == sum(map(len, ids))
    step = 0 if distinct else 10 ** max(3, len(str(max(max(own, default=0) for own in ids))))
    if step * len(masters) > NO_WORKER // 2:
        raise UsageError("the numbers of the workers are too large to be made different")
    urls, addresses = _storage_urls(masters), _addresses(masters)
    before, found = 0, []
    for number, each in enumerate(masters):
        places = tuple(urls.index(url) for url in each.run.storage_urls)
        own = tuple(addresses.index(address) for address in each.summary.addresses)
        found.append(Renumbering(number * step, before, places, own))
        before += len(each.run.masters) or 1
    return found


def _addresses(masters: Sequence[MasterRun]) -> list[str]:
    return [*dict.fromkeys(address for each in masters for address in each.summary.addresses)]


def _storage_urls(masters: Sequence[MasterRun]) -> list[str]:
    return [*dict.fromkeys(url for each in masters for url in each.run.storage_urls)]


def merge_descriptions(masters: Sequence[MasterRun], numbers: Sequence[Renumbering]) -> RunDescription:
    """Return the description of the run that they make together."""
    runs = [each.run for each in masters]
    scenario = portions.combine_scenarios([run.scenario for run in runs])
    seeds = {run.options.get("seed_of_parts", run.seed) for run in runs}
    seed = seeds.pop() if len(seeds) == 1 else None
    options = {name: value for name, value in runs[0].options.items() if name not in OWN_OPTIONS}
    started = [run.started for run in runs if run.started is not None]
    marks = sorted(run_id for run in runs for run_id in run.run_ids)
    digest = blake2b(repr(marks).encode(), digest_size=8).digest()
    return replace(
        runs[0],
        scenario=scenario,
        version=", ".join(dict.fromkeys(run.version for run in runs)),
        seed=seed if isinstance(seed, int) else None,
        options=options | {"label": _common_value([run.options.get("label") for run in runs])},
        host=", ".join(dict.fromkeys(run.host for run in runs if run.host)),
        run_id=int.from_bytes(digest) >> 2,
        started=min(started, default=None),
        workers=tuple(
            own.worker(worker) for run, own in zip(runs, numbers, strict=True) for worker in run.workers
        ),
        storage_urls=tuple(_storage_urls(masters)),
        stages=scenario.stage_names,
        masters=tuple(each for run in runs for each in run.masters or (run,)),
    )


def _common_value(values: Sequence[object]) -> object:
    """Return what all have in common; None where they differ."""
    return values[0] if all(value == values[0] for value in values) else None


def merge_summaries(
    masters: Sequence[MasterRun], numbers: Sequence[Renumbering], warnings: Sequence[str]
) -> RunSummary:
    """Return the summary of the run that they make together; ``warnings`` are of how they fit."""
    summaries = [each.summary for each in masters]
    counters: Counter[str] = Counter()
    for summary in summaries:
        counters.update(summary.counters)
    gaps = [
        gap if gap.worker_id is None else replace(gap, worker_id=gap.worker_id + own.workers)
        for summary, own in zip(summaries, numbers, strict=True)
        for gap in summary.gaps
    ]
    sent = [each.sent_until for each in summaries if each.sent_until is not None]
    return RunSummary(
        ended=max(each.ended for each in summaries),
        not_sendable=_sum_counts([each.not_sendable for each in summaries]),
        lost_jobs=sum(each.lost_jobs for each in summaries),
        warnings=(*warnings, *_merge_warnings(masters)),
        interrupted=any(each.interrupted for each in summaries),
        workers=tuple(
            own.worker(worker)
            for summary, own in zip(summaries, numbers, strict=True)
            for worker in summary.workers
        ),
        counters=dict(counters),
        sent_until=max(sent, default=None),
        master=_merge_loads([each.master for each in summaries]),
        gaps=tuple(sorted(gaps, key=lambda gap: gap.start)),
        cluster=next((each.cluster for each in summaries if each.cluster is not None), None),
        generator_load=tuple(_merge_load_samples([each.generator_load for each in summaries])),
        stages=_merge_stages([each.stages for each in summaries]),
        ended_early=next((each.ended_early for each in summaries if each.ended_early), None),
        error_code=next((each.error_code for each in summaries if each.ended_early), 0),
        trouble=any(each.trouble for each in summaries),
        addresses=tuple(_addresses(masters)),
        hosts=tuple(host for each in summaries for host in each.hosts),
        groups=tuple(
            GroupFacts(
                _merge_stages([own.stages for own in same]),
                _sum_counts([own.not_sendable for own in same]),
                sum(own.drawn for own in same),
                sum(own.waited for own in same),
            )
            for same in zip(*(each.groups for each in summaries), strict=False)
        ),
    )


def _sum_counts(several: Sequence[Sequence[tuple[int, int, int]]]) -> tuple[tuple[int, int, int], ...]:
    counts: Counter[tuple[int, int]] = Counter()
    for each in several:
        for code, size_class, times in each:
            counts[code, size_class] += times
    return tuple((*key, times) for key, times in sorted(counts.items()))


def _merge_stages(several: Sequence[Sequence[StageFacts]]) -> tuple[StageFacts, ...]:
    """Return stages from when the first master began them until the last one ended them."""
    found = []
    for same in zip_longest(*several):
        known = [stage for stage in same if stage is not None]
        due = [stage.due for stage in known if stage.due is not None]
        found.append(
            StageFacts(
                min(stage.begins for stage in known),
                max(stage.ends for stage in known),
                sum(due) if due else None,
            )
        )
    return tuple(found)


def _merge_loads(several: Sequence[MasterFacts | None]) -> MasterFacts | None:
    """Return the most that any of the masters used and was late."""
    known = [each for each in several if each is not None]
    if not known:
        return None
    return MasterFacts(
        _largest_value(each.cpu_share for each in known),
        _largest_value(each.lag_max for each in known),
        max(each.unread for each in known),
    )


def _merge_load_samples(several: Sequence[Sequence[LoadSample]]) -> Iterator[LoadSample]:
    """Yield the samples of the one who has most of them, each with the most that anyone had in that time."""
    for sample in max(several, key=len, default=()):
        begun = sample.until - sample.seconds
        same = [each for samples in several for each in samples if begun < each.until <= sample.until]
        yield LoadSample(
            sample.until,
            sample.seconds,
            _largest_value(each.worker_cpu for each in same),
            _largest_value(each.worker_lag for each in same),
            _largest_value(each.master_cpu for each in same),
            _largest_value(each.master_lag for each in same),
        )


def _largest_value(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _merge_warnings(masters: Sequence[MasterRun]) -> list[str]:
    """Return the warnings of all, with the name of the master where not all have it."""
    counts = Counter(text for each in masters for text in dict.fromkeys(each.summary.warnings))
    found = [
        text if counts[text] == len(masters) else f"{each.name}: {text}"
        for each in masters
        for text in each.summary.warnings
    ]
    return [*dict.fromkeys(found)]
