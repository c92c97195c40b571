"""The report as JSON: every number of a run under a name that stays.

The records are first: their names and units are what other programs rely on. ``doc/json-report.rst`` says how
to read them, and their schema is ``doc/report-schema.json``. Fields are added without a change of the
version; it rises when one is renamed, removed or changes its meaning. What is not known, not defined or
infinite is null, and so is a field that may be missing in a run, or in a stat file of an older version. Parts
that are records of the statistics, of the scenario, of the verdict or of the stat file are these records
themselves. A field that is given no value is that of the same name in what its record is made of
(:func:`ssbench.base.record.make_record_from`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

from msgspec import Meta, defstruct, structs

from ssbench.base import record
from ssbench.base.errors import GateResult
from ssbench.base.record import (
    Bytes,
    Count,
    JsonRecord,
    Moment,
    Offset,
    Percent,
    PerhapsBytesPerSecond,
    PerhapsMoment,
    PerhapsNumber,
    PerhapsPerSecond,
    PerhapsSeconds,
    Seconds,
    Share,
    make_record_from,
)
from ssbench.base.version import __version__
from ssbench.document.figures import COUNTED_FIGURES, JSON_RANKS
from ssbench.reports import run_tables
from ssbench.reports.key_figures import format_rank
from ssbench.reports.part_changes import ChangesByPart
from ssbench.reports.verdict_words import judge_for_reports
from ssbench.reports.writing import ReportOptions
from ssbench.results.cluster_observation import Observation
from ssbench.results.result_fields import NO_WORKER
from ssbench.results.run_description import (
    Gap,
    HostFacts,
    LoadSample,
    MasterFacts,
    PrecisionFacts,
    ReplayFacts,
    WorkerFacts,
)
from ssbench.scenario import model
from ssbench.scenario.forecast import Forecast, forecast_scenario
from ssbench.scenario.model import SCENARIO_KEYS, KeyTopic, ScenarioKey, Stage
from ssbench.scenario.operations import OperationTable, remove_secrets
from ssbench.statistics.collector import Cause, MemberCounts
from ssbench.statistics.confidence import Interval
from ssbench.statistics.counted_figures import (
    CountedFigures,
    Groups,
    drop_seconds,
    estimate_rate_intervals,
    measure_rates,
)
from ssbench.statistics.latencies import Latencies, SlowResult
from ssbench.statistics.latency_parts import CensoredLatencies, Part
from ssbench.statistics.over_time import BinsOverTime, EventEffect
from ssbench.statistics.run_statistics import RunPart, RunStatistics, Spread
from ssbench.statistics.run_verdict import Load, Outcome, Reason, RunVerdict
from ssbench.statistics.server_cpu import ServerCpu
from ssbench.statistics.steadiness import Course
from ssbench.statistics.timeline import WindowTotals
from ssbench.statistics.waits import Wait

if TYPE_CHECKING:
    _Counters = JsonRecord
else:
    _Counters = defstruct(
        "_Counters",
        [
            (each.key, Annotated[int, Meta(description=each.meaning, ge=0)])
            for each in COUNTED_FIGURES.values()
        ],
        bases=(JsonRecord,),
        frozen=True,
        kw_only=True,
    )


class SizeClassRecord(JsonRecord, frozen=True, kw_only=True):
    """A size class of the scenario."""

    name: str  # that of the class
    size_min: Bytes  # the smallest size
    size_max: Bytes  # the largest size
    size_mean: float  # mean of the distribution of sizes, in bytes
    distribution: str  # the distribution of sizes, in words
    segments: str  # how objects are divided, in words; empty: they are in one piece
    initial_files: Count  # objects that there are at first
    weights: dict[str, float]  # relative weights by operation


_SCENARIO_MEANING = """\
    What the scenario asks for, with what the command line changed. ``file`` is the file's own content.

    ``containers`` are those in each of ``accounts``. ``popularity`` is how objects are chosen, ``reuse`` how
    many reads are repeated, ``body`` what is in bodies, ``metadata`` what uploads have besides (null: none),
    ``connections`` those of requests, in words. ``object_names`` is the template of names of objects.
    ``rate`` is operations a second in an open loop, null in a closed one. ``plan`` has the stages, or one for
    the whole run. ``groups`` are what each group of users does, by its name; operations are weighted there,
    and have no weights in the whole.
    """


def _find_json_fields(*topics: KeyTopic) -> list[tuple[str, Any]]:
    """Return the fields of the keys that JSON has as they are, or in words."""
    keys = [key for topic in topics for key in SCENARIO_KEYS if key.topic is topic and key.json is not None]
    return [(name, key.json) for key in keys for name in key.fields]


if TYPE_CHECKING:
    ScenarioRecord = JsonRecord
else:
    ScenarioRecord = defstruct(
        "ScenarioRecord",
        [
            ("name", str),
            ("users", Count),
            ("operation_count", Count | None),
            ("run_seconds", Seconds | None),
            *_find_json_fields(KeyTopic.LOAD, KeyTopic.REQUESTS),
            ("plan", tuple[model.Stage, ...]),
            ("accounts", Count),
            ("containers", Count),
            *_find_json_fields(KeyTopic.PLACES),
            ("size_classes", list[SizeClassRecord]),
            ("groups", "dict[str, ScenarioRecord]"),
            ("file", dict[str, Any] | None),
        ],
        bases=(JsonRecord,),
        namespace={"__doc__": _SCENARIO_MEANING},
        module=__name__,
        frozen=True,
        kw_only=True,
    )


class RunRecord(JsonRecord, frozen=True, kw_only=True):
    """What was run, where and how."""

    scenario: ScenarioRecord  # what it asks for
    ssbench_version: str  # that of the master
    run_id: str | None  # a decimal number with up to 19 digits
    seed: int | None  # of all that was drawn
    host: str | None  # that of the master
    started: Moment | None  # when the command began the run
    interrupted: bool  # by a signal
    complete: bool  # False where the run was killed before its end
    first_sent: Moment | None  # when the first request was sent
    last_ended: Moment | None  # when the last operation ended
    seconds: Seconds  # from the one to the other
    noop: bool  # nothing was sent to Swift
    options: dict[str, Any]  # those of the command, by their names
    storage_urls: list[str]  # those that requests went to
    stages: list[str]  # their names


def make_run_record(statistics: RunStatistics) -> RunRecord:
    """Return what was run."""
    run = statistics.run
    return record.make_record_from(
        RunRecord,
        run,
        scenario=make_scenario_record(run.scenario),
        ssbench_version=run.version,
        run_id=None if run.run_id is None else str(run.run_id),
        host=run.host or None,
        interrupted=statistics.interrupted,
        complete=statistics.complete,
        first_sent=statistics.start,
        last_ended=statistics.end,
        seconds=statistics.duration,
        noop=bool(run.options.get("noop")),
    )


def make_scenario_record(scenario: model.Scenario) -> ScenarioRecord:
    """Return what a scenario asks for."""
    return record.make_record_from(
        ScenarioRecord,
        scenario,
        users=scenario.user_count,
        containers=scenario.container_count,
        size_classes=[
            record.make_record_from(
                SizeClassRecord,
                each,
                size_mean=each.mean_size,
                distribution="uniform" if each.shape is None else str(each.shape),
                segments=each.segments_words,
                weights={} if scenario.groups else each.weights,
            )
            for each in scenario.size_classes
        ],
        groups={
            group.name: structs.replace(make_scenario_record(part), file=None)
            for group, part in zip(scenario.groups, scenario.parts, strict=False)
        },
        file=remove_secrets(scenario.data),
        **{
            name: _make_json_value(key, getattr(scenario, name))
            for key in SCENARIO_KEYS
            if key.json is not None
            for name in key.fields
        },
    )


def _make_json_value(key: ScenarioKey, value: object) -> object:
    """Return a number or a text as it is, what else there is in words."""
    if value is None:
        return key.default or None
    return value if isinstance(value, int | float | str) else str(value)


class OutlookRecord(record.JsonHead, frozen=True, kw_only=True):
    """What a scenario asks for, and what it would do. ``fail_if`` are the conditions under which it fails."""

    format: Literal["ssbench scenario"] = "ssbench scenario"
    version: Literal[1] = 1
    scenario: ScenarioRecord
    forecast: Forecast
    fail_if: tuple[str, ...]


def make_outlook_json(scenario: model.Scenario, *_: Any) -> str:
    """Return what a scenario would do as one JSON document."""
    return record.format_json(
        OutlookRecord(
            scenario=make_scenario_record(scenario),
            forecast=forecast_scenario(scenario),
            fail_if=scenario.fail_if,
        )
    )


# -- What was measured -----------------------------------------------------------------------------


#: The version of the format.
REPORT_FORMAT_VERSION = 1


class Latency(JsonRecord, frozen=True, kw_only=True, rename={"minimum": "min", "maximum": "max"}):
    """Latencies of successes."""

    count: Count  # how many there are
    minimum: PerhapsSeconds  # the shortest
    maximum: PerhapsSeconds  # the longest
    mean: PerhapsSeconds  # their mean
    deviation: PerhapsSeconds  # their standard deviation
    #: Exact ones by their ranks ("99.9"); null where fewer than ten latencies lie beyond.
    percentiles: dict[str, Seconds | None]
    intervals: dict[str, Interval]  # by ranks, where known; empty in runs that were too short to tell
    supported: Percent | None  # the highest rank beyond which ten latencies lie; null: there is none
    slowest: SlowestRecord | None  # the operation that took longest


class SinceDue(JsonRecord, frozen=True, kw_only=True):
    """Latencies since operations of an open loop were due, with those that never began.

    These count with what they had waited by the end.
    """

    count: Count  # how many there are
    never_begun: Count  # those of them that never began
    percentiles: dict[str, Seconds]  # by their ranks
    at_least: list[str]  # ranks of those that are lower bounds, because of operations that never began


_SLOWEST_NAMES = {"latency": "seconds", "completed": "ended", "worker": "worker_id"}


class SlowestRecord(JsonRecord, frozen=True, kw_only=True, rename=_SLOWEST_NAMES):
    """The slowest operation of some."""

    latency: Seconds  # how long it took
    completed: Moment  # when it ended
    operation: str | None  # its name
    size_class: str | None  # that of the object
    worker: int | None  # the id of the worker that had it
    container: str | None  # the number in its name; in files of ssbench 0.x the name
    object: str | None  # the same of the object
    trans_id: str | None  # transaction id of the last answer
    group: str | None  # the group of users that it is of; null: there are no groups


_FIGURE_NAMES = {"failed": "errors", "moved": "bytes", "window_totals": "window"}


class FiguresRecord(_Counters, frozen=True, kw_only=True, rename=_FIGURE_NAMES):
    """What is counted of some operations."""

    count: Count  # successes
    failed: Count  # all others
    lost: Count  # those of them whose worker was lost
    moved: Bytes  # what successes moved
    ops_per_second: PerhapsPerSecond  # rate of successes
    bytes_per_second: PerhapsBytesPerSecond | None  # throughput of successes
    ops_interval: Interval | None  # that of the rate
    bytes_interval: Interval | None  # that of the throughput
    window_totals: WindowTotals  # what ended in the window of the run
    first_byte: Latency  # to the first byte
    last_byte: Latency  # to the last byte
    connecting: Part  # part of the latencies that went into new connections
    pausing: Part  # part of them that went into our own pauses between attempts
    response: Latency  # of successes from when they were due; of open loops only
    since_due: SinceDue | None  # the same with operations that never began
    lateness: Latency  # of all until they began; of open loops only
    late: Count  # how many began over 1 ms late
    held_up: Count  # successes that are in no latency, because their worker stalled
    last_attempt: Latency  # what last attempts took, without connecting, of all that are in ``last_byte``
    connecting_times: Latency  # what connecting took, of operations that connected
    on_kept: Count  # operations that used connections that were there
    entries_per_second: PerhapsPerSecond | None  # rate of entries of listings


class ClassFigures(JsonRecord, frozen=True, kw_only=True):
    """The figures of a size class."""

    size_class: str
    figures: FiguresRecord


class OperationRecord(JsonRecord, frozen=True, kw_only=True):
    """The figures of an operation, or of all together."""

    operation: str  # its name, or ``all``
    figures: FiguresRecord  # of all sizes
    size_classes: list[ClassFigures]  # of each size class
    steps: dict[str, Latency]  # times of its steps by their names, in order, where it has some


class WorkerRecord(JsonRecord, frozen=True, kw_only=True):
    """A worker; null is what is not known."""

    worker_id: int | None  # null for operations of which it is not known
    host: str | None  # that it was on
    version: str | None  # its version of ssbench
    cpu_share: Share | None  # of one core
    lag_p50: Seconds | None  # how late its event loop was, by half of the ticks
    lag_p99: Seconds | None  # by 99 % of them
    lag_max: Seconds | None  # at most
    clock_offset: Seconds | None  # what is added to its monotonic clock to have the master's
    clock_slope: Share | None  # how much of that in each second, at least; 0: the clocks may run alike
    wall_offset: Seconds | None  # what is added to its time of day
    figures: FiguresRecord | None  # of more than 100 workers without intervals and ``slowest``
    label: str | None  # what an engine called it
    site: str | None  # where it was


class SiteRecord(JsonRecord, frozen=True, kw_only=True):
    """The figures of the workers at one site (``ssbench-worker --site``)."""

    site: str  # its name
    workers: Count  # those that were there
    figures: FiguresRecord  # of all of them together


class StorageUrl(JsonRecord, frozen=True, kw_only=True):
    """The figures of a storage URL."""

    url: str | None  # null: it is not known
    figures: FiguresRecord  # of the operations that it had


class MemberRecord(JsonRecord, frozen=True, kw_only=True):
    """The figures of one of several accounts or addresses."""

    name: str | None  # null: it is not known
    figures: FiguresRecord  # of the operations that it had
    errors: dict[str, Count]  # its errors by cause


class SlowOperationRecord(JsonRecord, frozen=True, kw_only=True):
    """A slow operation with what finds it in logs."""

    slowest: SlowestRecord  # the operation
    first_byte: PerhapsSeconds  # latency to the first byte
    started: PerhapsMoment  # when its first attempt was sent
    bytes: Bytes | None  # what it moved
    retries: Count  # attempts after the first one
    storage_url: str | None  # where it was sent
    account: str | None  # whose object it was for, of several


class SeriesOverTime(JsonRecord, frozen=True, kw_only=True, rename={"moved": "bytes", "maximum": "max"}):
    """A number for each bin, of one operation or all.

    Percentiles are within 1.6 % of the exact ones, and null where a bin has too few results for them.
    """

    operation: str  # its name, or ``all``
    count: list[Count]  # successes
    failed: list[Count]  # failures
    moved: list[Bytes]  # bytes that successes moved
    p50: list[PerhapsSeconds]  # half took so long at most
    p99: list[PerhapsSeconds]  # 99 % took so long at most
    maximum: list[PerhapsSeconds]  # the longest


class OverTimeRecord(JsonRecord, frozen=True, kw_only=True):
    """What ended in each bin, of which there are 1024 at most."""

    starts: list[Offset]  # where they begin
    seconds: list[Seconds]  # how long they are
    operations: list[SeriesOverTime]  # all together, and each operation


class SideRecord(JsonRecord, frozen=True, kw_only=True):
    """The figures of one side of a run with two (--ab)."""

    side: str  # its name
    operations: list[OperationRecord]  # all together first
    server_cpu: dict[str, ServerCpu]  # as that of the run, where each side has a Swift of its own


class ErrorCause(
    JsonRecord, frozen=True, kw_only=True, rename={"trans_id": "first_trans_id", "times": "time_to_fail"}
):
    """Failures with one cause."""

    cause: str  # a few words
    count: Count  # how many there were
    trans_id: str | None  # transaction id of the first one
    operations: dict[str, int]  # how many by operation
    statuses: dict[str, int]  # how many by HTTP status; "none": there was no answer
    times: Latency  # what they took


class RetryCause(JsonRecord, frozen=True, kw_only=True):
    """Retries with one cause."""

    cause: str  # a few words
    count: Count  # how many there were


class NotSendable(JsonRecord, frozen=True, kw_only=True):
    """Operations that were drawn while no object existed for them."""

    operation: str  # the name of the operation
    size_class: str  # that of the objects
    count: Count  # how many there were


class StageFigures(JsonRecord, frozen=True, kw_only=True):
    """A stage by itself."""

    name: str  # its number and its load in words
    load: Stage  # what was asked for
    begins: Moment | None  # when it began; null: the run was killed
    ends: Moment | None  # when it ended; null: the run was killed
    due: Count | None  # operations that were due; null: a closed loop, or the run was killed
    not_begun: Count | None  # those of them that had not begun by its end
    warmed_up: Count  # results of the warm-up, which are in no other figure
    operations: list[OperationRecord]  # all together first
    course: Course | None  # how it went over time


class GroupFigures(JsonRecord, frozen=True, kw_only=True):
    """A group of users by itself."""

    group: str  # its name
    asked: Load  # its load as it was asked for
    delivered: Load  # its load as it was
    due: Count | None  # operations that were due; null: a closed loop
    not_begun: Count | None  # those of them that had not begun by the end; null: a closed loop
    warmed_up: Count  # results of the warm-up, which are in no other figure
    operations: list[OperationRecord]  # all together first
    stages: list[StageFigures]  # its stages, where it has some
    course: Course | None  # how it went over time
    #: What happened to it around the moments at which other groups began, and around commands.
    events: tuple[EventEffect, ...]


class Threshold(JsonRecord, frozen=True, kw_only=True):
    """A condition under which the run fails, and what came."""

    condition: str  # as it was given
    limit: float  # beyond which it fails, in its unit; a share is a part of 1
    unit: str  # that of limit and value
    value: PerhapsNumber | None  # what came; null: it was not measured, which fails too
    at_least: bool  # the value is a lower bound
    #: "undecided" where the interval of the value contains the limit, or a lower bound does not tell.
    result: Literal["ok", "failed", "undecided"]
    failed: bool  # the result is "failed"
    #: The longest stall, which the value, a percentile of a closed loop, does not show; null: there is none.
    hidden_stall: Seconds | None


class VerdictRecord(JsonRecord, frozen=True, kw_only=True):
    """The verdict on the run."""

    outcome: Outcome  # how the run was
    exit_code: int  # that of ``run-scenario``
    reasons: tuple[Reason, ...]  # the worst first
    asked: Load  # the load that was asked for
    delivered: Load  # the load as it was: operations that ended, those of the warm-up and failed ones too


class Second(JsonRecord, frozen=True, kw_only=True):
    """Successes in a second."""

    second: int  # the first is 1
    count: Count  # how many ended in it
    partial: bool | None  # it reaches beyond the window; null: not known


class RunReportRecord(JsonRecord, frozen=True, kw_only=True):
    """A report of ssbench on one run. Times are in seconds, sizes in bytes; see doc/json-report.rst."""

    format: Literal["ssbench report"] = "ssbench report"  # what this is
    version: Annotated[
        int, Meta(description="version of the format", ge=REPORT_FORMAT_VERSION, le=REPORT_FORMAT_VERSION)
    ] = REPORT_FORMAT_VERSION
    made_by: Annotated[str, Meta(description="version of ssbench that made this report")]
    #: False for stat files of ssbench 0.x, whose rates have a window of their own for each operation.
    current: bool
    verdict: VerdictRecord  # on the run as a whole
    run: RunRecord  # what was run
    operations: list[OperationRecord]  # all together first
    course: Course | None  # how the run went over time
    requests_by_second: Sequence[Second]  # successes in each second
    over_time: OverTimeRecord | None  # what ended in each bin
    slowest: list[SlowOperationRecord]  # the slowest first
    warmed_up: Count  # results of the warm-up, which are in no other figure
    warmed_up_failed: Count  # those of them that failed
    due: Count | None  # operations that were due in an open loop; null in a closed one
    not_begun: Count | None  # those of them that had not begun by the end
    stages: list[StageFigures]  # each stage by itself, where there are several
    master: MasterFacts | None  # what the master used
    gaps: tuple[Gap, ...]  # when workers and master stalled
    generator_load: tuple[LoadSample, ...]  # how busy the load generator was over time
    hosts: tuple[HostFacts, ...]  # its machines
    #: CPU for each operation by kind of server (proxy, listings, object), of a Swift on this machine.
    server_cpu: dict[str, ServerCpu]
    workers: list[WorkerRecord]  # each worker by itself
    worker_count: Count  # workers of which there are results
    spread_over_workers: Spread  # how unevenly operations were spread over workers
    storage_urls: list[StorageUrl]  # each storage URL by itself, of several
    accounts: list[MemberRecord]  # each account by itself, of several
    addresses: list[MemberRecord]  # each address by itself, of hosts with several
    sites: list[SiteRecord]  # each site by itself, where workers have one
    events: tuple[EventEffect, ...]  # commands that were run at moments of the run, and what happened around
    replay: ReplayFacts | None  # how the replay of a log went; null: it was none
    sides: list[SideRecord]  # each side by itself, of a run with two
    #: By which part these differ, where each had a Swift whose logs were at hand; null otherwise.
    by_part: ChangesByPart | None
    groups: list[GroupFigures]  # each group of users by itself
    errors: list[ErrorCause]  # why operations failed
    retries: list[RetryCause]  # why requests were tried again
    thresholds: list[Threshold]  # the conditions under which the run fails
    not_sendable: list[NotSendable]  # operations for which there was no object
    counters: dict[str, float]  # what else the run counted
    until: tuple[PrecisionFacts, ...]  # the figures that --until asked for, and how precisely they are known
    warnings: tuple[str, ...]  # what to know before relying on figures
    waits: tuple[Wait, ...]  # waits that are as long as a timeout of some system
    cluster: Observation | None  # what Swift's servers said beside the run


# -- What they are filled with ---------------------------------------------------------------------


def make_over_time_record(
    over_time: BinsOverTime | None, operations: OperationTable
) -> OverTimeRecord | None:
    """Return the bins of the page's curves."""
    if over_time is None:
        return None
    return make_record_from(
        OverTimeRecord,
        over_time,
        operations=[
            make_record_from(SeriesOverTime, each, operation=operation.name if operation else "all")
            for code, each in over_time.operations.items()
            if (operation := None if code is None else operations.get(code)) or code is None
        ],
    )


class SecondRecords(Sequence[Second]):
    """The successes of each second; each is made when it is asked for, because there may be millions."""

    def __init__(self, statistics: RunStatistics) -> None:
        self._seconds = statistics.requests_by_second
        self._whole = int(statistics.course.window.seconds) if statistics.course else None

    def __len__(self) -> int:
        return len(self._seconds)

    @overload
    def __getitem__(self, place: int) -> Second: ...

    @overload
    def __getitem__(self, place: slice) -> list[Second]: ...

    def __getitem__(self, place: int | slice) -> Second | list[Second]:
        if isinstance(place, slice):
            return [self._second(*each) for each in self._seconds[place]]
        return self._second(*self._seconds[place])

    def _second(self, second: int, count: int) -> Second:
        partial = None if self._whole is None else second > self._whole
        return Second(second=second, count=count, partial=partial)


# -- The whole report ------------------------------------------------------------------------------


#: Where there are more workers, latencies of each have neither intervals nor a slowest operation: these take
#: nine tenths of the time, a second for each thousand workers.
_MAX_WORKERS_IN_FULL = 100


def make_run_json(statistics: RunStatistics, options: ReportOptions) -> Iterator[str]:
    """Yield the parts of the report as one JSON document, indented, with a line feed at its end."""
    return record.iterate_json(make_run_report_record(statistics, options))


def make_run_report_record(statistics: RunStatistics, options: ReportOptions) -> RunReportRecord:
    """Return the records of the report."""
    maker = _FiguresMaker(statistics, options)
    found = judge_for_reports(statistics, options)
    compare = options.compare_sides if statistics.sides else None
    return record.make_record_from(
        RunReportRecord,
        statistics,
        made_by=__version__,
        verdict=record.make_record_from(VerdictRecord, found),
        run=make_run_record(statistics),
        operations=list(maker.operations()),
        requests_by_second=SecondRecords(statistics),
        over_time=make_over_time_record(statistics.over_time, statistics.run.scenario.operation_table),
        slowest=[maker.slow(each) for each in statistics.slowest],
        stages=[_stage(stage, options) for stage in statistics.stages],
        workers=list(maker.workers()),
        spread_over_workers=statistics.workers,
        master=statistics.generator.master,
        gaps=statistics.generator.gaps,
        generator_load=statistics.generator.load,
        hosts=statistics.generator.hosts,
        server_cpu=dict(statistics.server_cpu),
        storage_urls=list(maker.storage_urls()),
        accounts=list(maker.members(statistics.accounts, statistics.run.accounts)),
        addresses=list(maker.members(statistics.addresses, statistics.address_names)),
        sites=list(maker.sites()),
        sides=[
            SideRecord(
                side=side.name,
                operations=list(_FiguresMaker(side.numbers, options).operations()),
                server_cpu=dict(side.numbers.server_cpu),
            )
            for side in statistics.sides
        ],
        by_part=compare(statistics).by_part if compare is not None else None,
        groups=list(_groups(statistics, found, options)),
        errors=[maker.error(name, cause) for name, cause in statistics.errors.items()],
        retries=[RetryCause(cause=name, count=count) for name, count in statistics.retries.items()],
        thresholds=list(_thresholds(found)),
        not_sendable=[
            NotSendable(operation=operation.name, size_class=size_class, count=count)
            for operation, size_class, count in statistics.not_sendable
        ],
    )


_RESULT_NAMES: dict[GateResult, Literal["ok", "failed", "undecided"]] = {
    GateResult.PASSED: "ok",
    GateResult.FAILED: "failed",
    GateResult.UNDECIDED: "undecided",
}


def _thresholds(found: RunVerdict) -> Iterator[Threshold]:
    for judgment in found.judgments:
        condition = judgment.condition
        yield record.make_record_from(
            Threshold,
            judgment,
            condition=condition.text,
            limit=condition.limit,
            unit=condition.unit.value,
            result=_RESULT_NAMES[judgment.result],
        )


def _stage(stage: RunPart, options: ReportOptions) -> StageFigures:
    return record.make_record_from(
        StageFigures,
        stage.numbers,
        name=stage.name,
        load=stage.plan[0],
        begins=stage.facts.begins if stage.facts else None,
        ends=stage.facts.ends if stage.facts else None,
        operations=list(_FiguresMaker(stage.numbers, options).operations()),
    )


def _groups(statistics: RunStatistics, found: RunVerdict, options: ReportOptions) -> Iterator[GroupFigures]:
    for group, loads in zip(statistics.by_group, found.groups, strict=True):
        numbers = group.numbers
        yield record.make_record_from(
            GroupFigures,
            numbers,
            group=group.name,
            asked=loads.asked,
            delivered=loads.delivered,
            operations=list(_FiguresMaker(numbers, options).operations()),
            stages=[_stage(stage, options) for stage in numbers.stages],
        )


class _FiguresMaker:
    """Makes what needs percentiles and the window of the run."""

    def __init__(self, statistics: RunStatistics, options: ReportOptions) -> None:
        self._statistics = statistics
        self._ranks = sorted({*JSON_RANKS, options.percentile, *options.more} - {100.0})
        self._window = statistics.course.window if statistics.course else None
        names = [str(line.size_class) for line in statistics.total.lines[1:]]
        codes = [code for (code,) in statistics.groups.by("size_class")]
        self._class_names = dict(zip(codes, names, strict=True))
        self._operations = statistics.run.scenario.operation_table

    def operations(self) -> Iterator[OperationRecord]:
        for section in self._statistics.sections:
            yield OperationRecord(
                operation=section.operation.name if section.operation else "all",
                figures=self._figures(section),
                size_classes=[
                    ClassFigures(size_class=str(line.size_class), figures=self._figures(line))
                    for line in section.lines[1:]
                ],
                steps={
                    name: self._latency(each)
                    for name, each in run_tables.latencies_by_step(section, self._statistics).items()
                },
            )

    def workers(self) -> Iterator[WorkerRecord]:
        facts = {each.worker_id: each for each in self._statistics.fleet}
        found = _figures_by_field(self._statistics.groups, "worker")
        numbers = sorted({*facts, *found})
        brief = len(numbers) > _MAX_WORKERS_IN_FULL
        for worker_id in numbers:
            each = facts.get(worker_id, WorkerFacts(worker_id))
            figures = found.get(worker_id)
            yield record.make_record_from(
                WorkerRecord,
                each,
                worker_id=None if worker_id == NO_WORKER else worker_id,
                host=each.host or None,
                version=each.version or None,
                figures=self._figures(figures, brief=brief) if figures else None,
                label=each.label or None,
                site=each.site or None,
            )

    def sites(self) -> Iterator[SiteRecord]:
        groups = self._statistics.groups
        if "worker" not in groups.keys:
            return
        names = {each.worker_id: each.site for each in self._statistics.fleet}
        for name, figures in groups.merged("worker", names).items():
            workers = sum(site == name for site in names.values())
            yield SiteRecord(site=name, workers=workers, figures=self._figures(figures))

    def storage_urls(self) -> Iterator[StorageUrl]:
        urls = self._statistics.run.storage_urls
        for place, figures in _figures_by_field(self._statistics.groups, "storage_url").items():
            yield StorageUrl(
                url=urls[place] if 0 <= place < len(urls) else None, figures=self._figures(figures)
            )

    def members(self, found: Iterable[MemberCounts], names: Sequence[str]) -> Iterator[MemberRecord]:
        for each in found:
            name = names[each.number] if 0 <= each.number < len(names) else None
            yield MemberRecord(name=name, figures=self._figures(each.figures), errors=dict(each.errors))

    def error(self, name: str, cause: Cause) -> ErrorCause:
        return record.make_record_from(
            ErrorCause,
            cause,
            cause=name,
            operations={
                operation.name: count
                for code, count in sorted(cause.operations.items())
                if (operation := self._operations.get(code))
            },
            statuses={
                str(status) if status > 0 else "none": count
                for status, count in sorted(cause.statuses.items())
            },
            times=self._latency(cause.times),
        )

    def _figures(self, figures: CountedFigures, *, brief: bool = False) -> FiguresRecord:
        latency = partial(self._latency, brief=brief)
        operations, moved = measure_rates(figures, self._window)
        ops_interval, bytes_interval = (
            (None, None) if brief else estimate_rate_intervals(figures, self._window)
        )
        entries = figures.counted["entries"]
        if self._statistics.pooled:
            figures, ops_interval, bytes_interval = drop_seconds(figures), None, None
        return record.make_record_from(
            FiguresRecord,
            figures,
            ops_per_second=operations,
            bytes_per_second=moved if figures.moved else None,
            ops_interval=ops_interval,
            bytes_interval=bytes_interval,
            first_byte=latency(figures.first_byte),
            last_byte=latency(figures.last_byte),
            connecting=figures.parts.connecting,
            pausing=figures.parts.pausing,
            response=latency(figures.due.response),
            since_due=self._since_due(figures.due.since_due),
            lateness=latency(figures.due.lateness),
            late=figures.due.late,
            held_up=figures.delayed.count,
            last_attempt=latency(figures.last_attempt),
            connecting_times=latency(figures.connecting),
            on_kept=figures.count + figures.failed - figures.counted["on_new"],
            entries_per_second=operations * entries / figures.count if entries else None,
            **figures.counted,
        )

    def slow(self, each: SlowResult) -> SlowOperationRecord:
        urls, accounts = self._statistics.run.storage_urls, self._statistics.run.accounts
        return record.make_record_from(
            SlowOperationRecord,
            each,
            slowest=self._slowest(each),
            bytes=each.size if each.size >= 0 else None,
            storage_url=urls[each.storage_url] if 0 <= each.storage_url < len(urls) else None,
            account=accounts[each.account] if each.account < len(accounts) else None,
        )

    def _slowest(self, slowest: SlowResult) -> SlowestRecord:
        operation, names = self._operations.get(slowest.operation), self._class_names
        groups = self._statistics.run.scenario.groups
        return record.make_record_from(
            SlowestRecord,
            slowest,
            operation=operation.name if operation else None,
            size_class=names.get(slowest.size_class),
            worker=None if slowest.worker == NO_WORKER else slowest.worker,
            container=_number_or_name(slowest.container),
            object=_number_or_name(slowest.object),
            group=groups[slowest.group].name if slowest.group < len(groups) else None,
        )

    def _since_due(self, latencies: CensoredLatencies) -> SinceDue | None:
        if not latencies.count:
            return None
        found = {
            format_rank(each): (latencies.percentile(each), latencies.most(each)) for each in self._ranks
        }
        return SinceDue(
            count=latencies.count,
            never_begun=latencies.waited.count,
            percentiles={name: low for name, (low, _) in found.items()},
            at_least=[name for name, (low, most) in found.items() if most > low],
        )

    def _latency(self, latencies: Latencies, *, brief: bool = False) -> Latency:
        supported = [each for each in self._ranks if latencies.supports(each)]
        found = {} if brief else {format_rank(each): latencies.interval(each) for each in supported}
        slowest = None if brief else latencies.slowest
        return record.make_record_from(
            Latency,
            latencies,
            percentiles={
                **dict.fromkeys(map(format_rank, self._ranks if latencies.count else ())),
                **dict(zip(map(format_rank, supported), latencies.percentiles(supported), strict=True)),
            },
            intervals={name: interval for name, interval in found.items() if interval},
            supported=max(supported, default=None),
            slowest=self._slowest(slowest) if slowest else None,
        )


def _figures_by_field(groups: Groups, key: str) -> dict[int, CountedFigures]:
    """Return figures by the value of one field; none where results were not kept apart by it."""
    return {value: figures for (value,), figures in groups.by(key).items()} if key in groups.keys else {}


def _number_or_name(value: int | str | None) -> str | None:
    return None if value is None else str(value)
