"""The stat files of several masters as one run: read in passing, or copied into one file.

:func:`check_masters` finds out whether they make one run. They do if they did the same, at the same time by
clocks that agree, and none of them is there twice. What is known of the whole run then follows from what is
known of the run of each.

Blocks of results are used in the order in which they began. A copy has them as they stand; only the columns
with numbers of workers, of masters and of storage URLs are written anew.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import combinations, zip_longest
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from ssbench.base.errors import StatFileError, UsageError
from ssbench.document.units import format_moment, format_seconds
from ssbench.results import current as results_current
from ssbench.results.block import ResultBlock
from ssbench.results.current import (
    FILE_PREAMBLE,
    ROWS_KIND,
    ChangeNumbers,
    ClosingRecord,
    CurrentResults,
    encode_closing,
    encode_cluster,
    encode_record,
    encode_run,
    list_file_warnings,
)
from ssbench.results.reading import DamageError, limit_memory, open_results
from ssbench.results.result_fields import NO_WORKER, UNKNOWN_NUMBER
from ssbench.results.run_description import (
    OBJECT_TAG_OPTION,
    PART_OPTION,
    STORE_CLOCK_OPTION,
    GroupFacts,
    LoadSample,
    MasterFacts,
    RunDescription,
    RunSummary,
    StageFacts,
    WorkerFacts,
)
from ssbench.results.writer import COMPRESSION_LEVEL, GZIP_WINDOW_BITS
from ssbench.scenario import master_shares

#: Options that may be others with each master: they name a run, or say how its master was started.
OWN_OPTIONS = {
    OBJECT_TAG_OPTION,
    PART_OPTION,
    STORE_CLOCK_OPTION,
    "label",
    "local_swift",
    "local_workers",
    "seed_of_parts",
    "sealed",
    "start_at",
    "trans_id_extra",
}

#: Runs of which all sent for less than this share of the time in which one of them did are no run together,
#: and those of less than that are remarkable.
_MIN_COMMON_SHARE = 0.5
_GOOD_COMMON_SHARE = 0.95

#: Clocks that are further apart (seconds) put results into wrong seconds, and stalls where there were none.
_MAX_CLOCK_DIFFERENCE = 0.5


@dataclass(frozen=True, slots=True)
class MasterRun:
    """What is known of the run of one master, from its stat file."""

    path: Path
    run: RunDescription
    summary: RunSummary
    results: int
    results_lost: int = 0

    @property
    def name(self) -> str:
        """What warnings call its master."""
        part = self.run.options.get(PART_OPTION)
        return f"{self.run.host or self.path.name}{f' (part {part})' if part else ''}"

    @property
    def window(self) -> tuple[float, float]:
        """When it began to send operations, and when it no longer did; seconds since 1970."""
        summary = self.summary
        stages = [each for each in (summary.stages, *(own.stages for own in summary.groups)) if each]
        begins = min((each[0].begins for each in stages), default=self.run.started or 0.0)
        return begins, summary.sent_until or summary.ended


def check_masters(masters: Sequence[MasterRun]) -> list[str]:
    """Return warnings; raises UsageError, which says what does not fit."""
    first = masters[0]
    for one, other in combinations(masters, 2):
        if set(one.run.run_ids) & set(other.run.run_ids) or _same_file(one.path, other.path):
            raise UsageError(f"{one.path} and {other.path} are of the same run")
    for other in masters[1:]:
        if found := master_shares.find_scenario_difference(first.run.scenario, other.run.scenario):
            raise UsageError(f"{_name_both(first, other)}: their scenarios differ in {found}")
        for name in ("sides", "side_policies"):
            if getattr(first.run, name) != getattr(other.run, name):
                raise UsageError(f"{_name_both(first, other)}: their sides differ")
        if first.run.accounts != other.run.accounts:
            raise UsageError(f"{_name_both(first, other)}: their accounts differ")
        _check_options(first, other)
    warnings = [*_check_parts(masters), *_check_clocks(masters), *_check_windows(masters)]
    versions = sorted({each.run.version for each in masters})
    if len(versions) > 1:
        warnings.append(f"the masters are of different versions of ssbench: {', '.join(versions)}")
    if sum(each.summary.cluster is not None for each in masters) > 1:
        warnings.append("several masters looked at the cluster; what the first of them saw is shown")
    return warnings


def _name_both(one: MasterRun, other: MasterRun) -> str:
    return f"{one.path} and {other.path} do not make one run"


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _check_options(first: MasterRun, other: MasterRun) -> None:
    ours, theirs = first.run.options, other.run.options
    for name in dict.fromkeys((*ours, *theirs)):
        if name not in OWN_OPTIONS and ours.get(name) != theirs.get(name):
            raise UsageError(
                f"{_name_both(first, other)}: {name} is {ours.get(name)!r} in one and {theirs.get(name)!r}"
                " in the other"
            )


def _check_parts(masters: Sequence[MasterRun]) -> Iterator[str]:
    """Check that parts (``--part 1/4``) are of the same number and differ; yield which are missing."""
    given = [(own, part) for own in masters for part in _read_part(own.run)]
    found: dict[object, MasterRun] = {}
    for own, part in given:
        if part is None:
            continue
        if part in found:
            raise UsageError(f"{found[part].path} and {own.path} are both part {part}")
        found[part] = own
    if not found:
        return
    if len(found) < len(given):
        lacking = next(own for own, part in given if part is None)
        raise UsageError(
            f"{_name_both(next(iter(found.values())), lacking)}: only one of them is a part (--part)"
        )
    try:
        known = [master_shares.parse_master_share(str(part)) for part in found]
    except ValueError as error:
        raise UsageError(f"{masters[0].path}: {error}") from None
    numbers = {each.of for each in known}
    if len(numbers) > 1:
        raise UsageError(f"{', '.join(map(str, known))}: these are parts of different numbers of masters")
    missing = sorted({*range(1, known[0].of + 1)} - {each.number for each in known})
    if missing:
        listed = ", ".join(f"{number}/{known[0].of}" for number in missing)
        yield f"not all parts are there: {listed} {'is' if len(missing) == 1 else 'are'} missing"


def _read_part(run: RunDescription) -> list[object]:
    return [each.options.get(PART_OPTION) for each in run.masters or (run,)]


def _check_clocks(masters: Sequence[MasterRun]) -> Iterator[str]:
    """Check that the masters' clocks agree, by that of the store or because they are one.

    Yields what is not known.
    """
    unknown = []
    for one, other in combinations(masters, 2):
        if one.run.host and one.run.host == other.run.host:
            continue
        ours, theirs = _store_clock(one.run), _store_clock(other.run)
        if ours is None or theirs is None:
            unknown.append(f"{one.name} and {other.name}")
            continue
        apart = max(ours[0] - theirs[1], theirs[0] - ours[1], 0.0)
        if apart > _MAX_CLOCK_DIFFERENCE:
            raise UsageError(
                f"{_name_both(one, other)}: the clocks of {one.name} and {other.name} are at least"
                f" {format_moment(apart)} s apart, by the time that the store told both; check NTP"
            )
    if unknown:
        more = f", and {len(unknown) - 1} more pair{'s' * (len(unknown) > 2)}" if len(unknown) > 1 else ""
        yield (
            f"whether the clocks of the masters agree is not known: {unknown[0]}{more} (--part 1/2@TIME finds"
            " it out)"
        )


def _store_clock(run: RunDescription) -> tuple[float, float] | None:
    """Return from how much to how much is to be added to the master's clock to have that of the store."""
    match run.options.get(STORE_CLOCK_OPTION):
        case [int() | float() as least, int() | float() as most]:
            return float(least), float(most)
    return None


def _check_windows(masters: Sequence[MasterRun]) -> Iterator[str]:
    """Check that the masters sent operations at the same time; yield where they nearly did."""
    begins, ends = zip(*(each.window for each in masters), strict=True)
    whole, shared = max(ends) - min(begins), min(ends) - max(begins)
    together = shared / whole if whole > 0 else 1.0
    written = format_moment if whole >= 1 else format_seconds  # tenths would be "0 of 0 s"
    times = f"{written(max(0.0, shared))} of {written(whole)} s"
    if together < _MIN_COMMON_SHARE:
        late, early = begins.index(max(begins)), ends.index(min(ends))
        raise UsageError(
            f"{_name_both(masters[late], masters[early])}: they sent operations at the same time for only"
            f" {times} (--part 1/2@TIME lets them begin together)"
        )
    if together < _GOOD_COMMON_SHARE:
        yield f"the masters sent operations at the same time for only {times}"


# -- What is known of the whole run ----------------------------------------------------------------


_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Renumbering:
    """How numbers in the results of one file become those of the whole run."""

    workers: int  # what is added to numbers of workers
    masters: int  # what is added to numbers of masters
    storage_urls: tuple[int, ...]  # the place of each storage URL of the file among those of all
    addresses: tuple[int, ...] = ()  # the place of each address of the file among those of all

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
    scenario = master_shares.combine_scenarios([run.scenario for run in runs])
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
        seed=seed if isinstance(seed, int) and seed >= 0 else None,
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
        events=tuple(event for each in summaries for event in each.events),
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


# -- The results of all masters --------------------------------------------------------------------


class MergedResults:
    """The results of several masters, as one run: readable as those of one file are.

    All files are read once when it is made, for what stands at their ends. Raises StatFileError where one
    cannot be read to its end, and UsageError where they do not make one run.
    """

    current: ClassVar[bool] = True
    #: Only whole files make one run.
    damaged: ClassVar[bool] = False

    def __init__(self, paths: Sequence[Path]) -> None:
        if len(paths) < 2:
            raise UsageError("two stat files or more are expected")
        self._paths = paths
        masters = [self._known(path) for path in paths]
        fits = check_masters(masters)
        self._numbers = plan_renumberings(masters)
        self.run: RunDescription = merge_descriptions(masters, self._numbers)
        self.summary: RunSummary | None = merge_summaries(masters, self._numbers, fits)
        self.size_classes = [each.name for each in self.run.scenario.size_classes]
        self.results_lost = sum(each.results_lost for each in masters)
        self.results = sum(each.results for each in masters)
        whole = ClosingRecord(self.results, self.results_lost, self.summary)
        self.warnings = [*list_file_warnings(whole, self.run, self.results)]

    @staticmethod
    def _known(path: Path) -> MasterRun:
        """Read a file to its end."""
        with closing(_open_member(path)) as results:
            count, size_classes = 0, len(results.size_classes)
            operations = results.run.scenario.operation_table
            try:
                # Decoded, because a copy must not hold what no report can show.
                for payload in results.payloads():
                    count += len(results_current.decode_rows(payload, size_classes, operations))
            except DamageError as error:
                raise StatFileError(f"{path}: {error}: only whole files can be merged") from None
            if results.summary is None:
                raise StatFileError(
                    f"{path}: its run is still under way, was killed, or its disk was full, so that its end"
                    " is missing: only whole files can be merged"
                )
            if results.followed:
                raise StatFileError(
                    f"{path}: another run follows its end; only files of one run can be merged"
                )
            return MasterRun(path, results.run, results.summary, count, results.results_lost)

    def again(self) -> MergedResults:
        """Return the same results, to be read from their beginning once more."""
        return MergedResults(self._paths)

    def close(self) -> None:
        """Do nothing: files are open only while they are read."""

    def blocks(self) -> Iterator[ResultBlock]:
        """Yield the results of all."""
        files = [_open_member(path) for path in self._paths]
        size_classes, operations, count = len(self.size_classes), self.run.scenario.operation_table, 0
        for place, payload in self._payloads(files):
            block = results_current.decode_rows(payload, size_classes, operations)
            count += len(block)
            yield block
            limit_memory(self._paths[place], count)

    def copy_to(self, out: BinaryIO) -> None:
        """Write a stat file of all."""
        files = [_open_member(path) for path in self._paths]
        out.write(_member(FILE_PREAMBLE + encode_run(self.run)))
        for _, payload in self._payloads(files):
            out.write(_member(encode_record(ROWS_KIND, payload)))
        summary = self.summary
        if summary is None:
            raise RuntimeError("a merged run has a summary")
        if summary.cluster is not None:
            out.write(_member(encode_cluster(summary.cluster)))
        out.write(_member(encode_closing(ClosingRecord(self.results, self.results_lost, summary))))

    def _payloads(self, files: Sequence[CurrentResults]) -> Iterator[tuple[int, bytes]]:
        """Yield (place of its file, payload with the numbers of the whole run), in order."""
        streams = [self._stream(place, results) for place, results in enumerate(files)]
        try:
            for _, place, payload in heapq.merge(*streams, key=lambda each: each[:2]):
                yield place, payload
        except DamageError as error:
            raise StatFileError(f"{error} (a stat file changed while it was read)") from None
        finally:
            for results in files:
                results.close()

    def _stream(self, place: int, results: CurrentResults) -> Iterator[tuple[int, int, bytes]]:
        changes = self._numbers[place].changes()
        for payload in results.payloads():
            yield (
                results_current.read_first_moment(payload),
                place,
                results_current.change_columns(payload, changes),
            )


def _open_member(path: Path) -> CurrentResults:
    results = open_results(path)
    if not isinstance(results, CurrentResults):
        results.close()
        raise StatFileError(f"{path}: written by ssbench 0.x; only files of ssbench 1 can be merged")
    return results


def _member(data: bytes) -> bytes:
    return bytes(isal_zlib.compress(data, COMPRESSION_LEVEL, GZIP_WINDOW_BITS))
