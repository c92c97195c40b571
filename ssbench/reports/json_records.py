"""The records that make up a report in JSON. Their names and units are what other programs rely on.

A field that may be missing in a run, or in a stat file of an older version, is null then. Parts that are
records of the statistics, of the scenario, of the verdict or of the stat file are these records themselves. A
field that :mod:`.json` gives no value is that of the same name in what its record is made of
(:func:`ssbench.base.record.make_record_from`). What is here is made for the report: with percentiles of the
ranks that were asked for, with names instead of codes. A scenario has other names here than in
:mod:`ssbench.scenario.model`: these are public, and older.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, defstruct, structs

from ssbench.base import record
from ssbench.base.measures import (
    Bytes,
    Count,
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
)
from ssbench.base.record import JsonRecord
from ssbench.document.figures import COUNTED_FIGURES
from ssbench.results.cluster_observation import Observation
from ssbench.results.run_description import Gap, HostFacts, LoadSample, MasterFacts
from ssbench.scenario import model
from ssbench.scenario.forecast import Forecast, forecast_scenario
from ssbench.scenario.model import SCENARIO_KEYS, KeyTopic, ScenarioKey, Stage
from ssbench.scenario.operations import remove_secrets
from ssbench.statistics.confidence import Interval
from ssbench.statistics.latency_parts import Part
from ssbench.statistics.run_statistics import RunStatistics, Spread
from ssbench.statistics.run_verdict import Load, Outcome, Reason
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
    """A size class of the scenario; ``weights`` are relative, by operation.

    ``size_mean`` is the mean of the distribution of sizes, which ``distribution`` has in words.
    """

    name: str
    size_min: Bytes
    size_max: Bytes
    size_mean: float
    distribution: str
    initial_files: Count
    weights: dict[str, float]


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
    """What was run, where and how. ``run_id`` is a decimal number with up to 19 digits.

    ``complete`` is false where a run was killed before its end.
    """

    scenario: ScenarioRecord
    ssbench_version: str
    run_id: str | None
    seed: int | None
    host: str | None
    started: Moment | None
    interrupted: bool
    complete: bool
    first_sent: Moment | None
    last_ended: Moment | None
    seconds: Seconds
    noop: bool
    options: dict[str, Any]
    storage_urls: list[str]
    stages: list[str]


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
    """Latencies of successes. ``percentiles`` has ranks ("99.9") and seconds, exact ones.

    A percentile is null where fewer than ten latencies lie beyond it; ``supported`` is the highest rank of
    which that does not hold, null where it holds of all. ``intervals`` has the ranks whose interval is
    known; it is empty in runs that were too short to tell.
    """

    count: Count
    minimum: PerhapsSeconds
    maximum: PerhapsSeconds
    mean: PerhapsSeconds
    deviation: PerhapsSeconds
    percentiles: dict[str, Seconds | None]
    intervals: dict[str, Interval]
    supported: Percent | None
    slowest: SlowestRecord | None


class SinceDue(JsonRecord, frozen=True, kw_only=True):
    """Latencies since operations of an open loop were due, with those that never began.

    These are in ``count`` and ``percentiles`` with what they had waited by the end; the percentiles whose
    ranks are in ``at_least`` are therefore lower bounds.
    """

    count: Count
    never_begun: Count
    percentiles: dict[str, Seconds]
    at_least: list[str]


_SLOWEST_NAMES = {"latency": "seconds", "completed": "ended", "worker": "worker_id"}


class SlowestRecord(JsonRecord, frozen=True, kw_only=True, rename=_SLOWEST_NAMES):
    """The slowest operation of some. ``container`` and ``object`` are the numbers in their names.

    In files of ssbench 0.x they are the names. ``group`` is the group of users that it is of, null without
    groups.
    """

    latency: Seconds
    completed: Moment
    operation: str | None
    size_class: str | None
    worker: int | None
    container: str | None
    object: str | None
    trans_id: str | None
    group: str | None


_FIGURE_NAMES = {"failed": "errors", "moved": "bytes", "window_totals": "window"}


class FiguresRecord(_Counters, frozen=True, kw_only=True, rename=_FIGURE_NAMES):
    """What is counted of some operations. ``window`` is what ended in the window of the run.

    ``count`` is of successes, ``errors`` of all others; ``lost`` of these had a worker that was lost.
    ``connecting`` and ``pausing`` (between attempts) are parts of the latencies. ``response`` is the time of
    successes from when they were due, ``since_due`` the same with operations that never began,
    ``lateness`` the time of all until they began, ``late`` how many began over 1 ms late; of open loops only.
    ``held_up`` successes are in no latency, because their worker stalled. ``last_attempt`` is what last
    attempts took, without connecting, of all in ``last_byte``; ``connecting_times`` is of those that
    connected. ``on_kept`` operations used connections that were there.
    """

    count: Count
    failed: Count
    lost: Count
    moved: Bytes
    ops_per_second: PerhapsPerSecond
    bytes_per_second: PerhapsBytesPerSecond | None
    ops_interval: Interval | None
    bytes_interval: Interval | None
    window_totals: WindowTotals
    first_byte: Latency
    last_byte: Latency
    connecting: Part
    pausing: Part
    response: Latency
    since_due: SinceDue | None
    lateness: Latency
    late: Count
    held_up: Count
    last_attempt: Latency
    connecting_times: Latency
    on_kept: Count
    entries_per_second: PerhapsPerSecond | None


class ClassFigures(JsonRecord, frozen=True, kw_only=True):
    """The figures of a size class."""

    size_class: str
    figures: FiguresRecord


class OperationRecord(JsonRecord, frozen=True, kw_only=True):
    """The figures of an operation, or of ``all`` together.

    ``steps`` are the times of its steps by their names, in order, where it has some.
    """

    operation: str
    figures: FiguresRecord
    size_classes: list[ClassFigures]
    steps: dict[str, Latency]


class WorkerRecord(JsonRecord, frozen=True, kw_only=True):
    """A worker. ``worker_id`` is null for operations of which it is not known.

    ``cpu_share`` is of one core; ``lag_p50`` and so on how late its event loop was; ``clock_offset`` what is
    added to its monotonic clock, ``clock_slope`` how much of that in each second, at least (0 where the
    clocks may run alike), ``wall_offset`` what is added to its time of day. ``label`` is what an engine
    called it, ``site`` where it was; null where that is not known. Where there are more than 100 workers,
    their figures have no intervals and no ``slowest``.
    """

    worker_id: int | None
    host: str | None
    version: str | None
    cpu_share: Share | None
    lag_p50: Seconds | None
    lag_p99: Seconds | None
    lag_max: Seconds | None
    clock_offset: Seconds | None
    clock_slope: Share | None
    wall_offset: Seconds | None
    figures: FiguresRecord | None
    label: str | None
    site: str | None


class SiteRecord(JsonRecord, frozen=True, kw_only=True):
    """The figures of the workers at one site (``ssbench-worker --site``)."""

    site: str
    workers: Count
    figures: FiguresRecord


class StorageUrl(JsonRecord, frozen=True, kw_only=True):
    """The figures of a storage URL; ``url`` is null where it is not known."""

    url: str | None
    figures: FiguresRecord


class MemberRecord(JsonRecord, frozen=True, kw_only=True):
    """The figures of one of several accounts or addresses, and its errors by cause.

    ``name`` is null where it is not known.
    """

    name: str | None
    figures: FiguresRecord
    errors: dict[str, Count]


class SlowOperationRecord(JsonRecord, frozen=True, kw_only=True):
    """A slow operation with what finds it in logs."""

    slowest: SlowestRecord
    first_byte: PerhapsSeconds
    started: PerhapsMoment
    bytes: Bytes | None
    retries: Count
    storage_url: str | None
    account: str | None


class SeriesOverTime(JsonRecord, frozen=True, kw_only=True, rename={"moved": "bytes", "maximum": "max"}):
    """A number for each bin, of one operation or ``all``; percentiles are within 1.6 % of the exact ones.

    They are null where a bin has too few results for them.
    """

    operation: str
    count: list[Count]
    failed: list[Count]
    moved: list[Bytes]
    p50: list[PerhapsSeconds]
    p99: list[PerhapsSeconds]
    maximum: list[PerhapsSeconds]


class OverTimeRecord(JsonRecord, frozen=True, kw_only=True):
    """What ended in each bin: at most 1024, where they begin and how long they are."""

    starts: list[Offset]
    seconds: list[Seconds]
    operations: list[SeriesOverTime]


class SideRecord(JsonRecord, frozen=True, kw_only=True):
    """The figures of one side of a run with two (--ab), all operations first."""

    side: str
    operations: list[OperationRecord]


class ErrorCause(
    JsonRecord, frozen=True, kw_only=True, rename={"trans_id": "first_trans_id", "times": "time_to_fail"}
):
    """Failures with one cause, also by operation and by HTTP status ("none": there was no answer)."""

    cause: str
    count: Count
    trans_id: str | None
    operations: dict[str, int]
    statuses: dict[str, int]
    times: Latency


class RetryCause(JsonRecord, frozen=True, kw_only=True):
    """Retries with one cause."""

    cause: str
    count: Count


class NotSendable(JsonRecord, frozen=True, kw_only=True):
    """Operations that were drawn while no object existed for them."""

    operation: str
    size_class: str
    count: Count


class StageFigures(JsonRecord, frozen=True, kw_only=True):
    """A stage by itself; ``begins``, ``ends`` and ``due`` are null where the run was killed."""

    name: str
    load: Stage
    begins: Moment | None
    ends: Moment | None
    due: Count | None
    not_begun: Count | None
    warmed_up: Count
    operations: list[OperationRecord]
    course: Course | None


class GroupFigures(JsonRecord, frozen=True, kw_only=True):
    """A group of users by itself: its load, as it was asked for and as it was, and its figures.

    ``due`` and ``not_begun`` are null where its users made a closed loop.
    """

    group: str
    asked: Load
    delivered: Load
    due: Count | None
    not_begun: Count | None
    warmed_up: Count
    operations: list[OperationRecord]
    stages: list[StageFigures]
    course: Course | None


class Threshold(JsonRecord, frozen=True, kw_only=True):
    """A condition under which the run fails, and what came, in its unit (a share is a part of 1).

    ``value`` is null where it was not measured, which fails too; with ``at_least`` it is a lower bound.
    ``result`` is "undecided" where its interval contains the limit, or a lower bound does not tell.
    """

    condition: str
    limit: float
    unit: str
    value: PerhapsNumber | None
    at_least: bool
    result: Literal["ok", "failed", "undecided"]
    failed: bool


class VerdictRecord(JsonRecord, frozen=True, kw_only=True):
    """The verdict on the run, its reasons, the worst first, and the exit code of ``run-scenario``.

    ``delivered`` has operations that ended, those of the warm-up and failed ones too.
    """

    outcome: Outcome
    exit_code: int
    reasons: tuple[Reason, ...]
    asked: Load
    delivered: Load


class Second(JsonRecord, frozen=True, kw_only=True):
    """Successes in a second; the first is 1. ``partial``: it reaches beyond the window; null: unknown."""

    second: int
    count: Count
    partial: bool | None


class RunReportRecord(JsonRecord, frozen=True, kw_only=True):
    """A report of ssbench on one run. Times are in seconds, sizes in bytes; see doc/json-report.rst.

    ``warmed_up`` results were of the warm-up, of which ``warmed_up_failed`` failed; no other figure has them.
    ``current`` is false for stat files of ssbench 0.x, whose rates have a window of their own for each
    operation. ``due`` counts the operations that were due in an open loop, ``not_begun`` those of them that
    had not begun by the end; null in a closed loop. ``counters`` are what else the run counted.
    """

    format: Literal["ssbench report"] = "ssbench report"
    version: Annotated[
        int, Meta(description="version of the format", ge=REPORT_FORMAT_VERSION, le=REPORT_FORMAT_VERSION)
    ] = REPORT_FORMAT_VERSION
    made_by: Annotated[str, Meta(description="version of ssbench that made this report")]
    current: bool
    verdict: VerdictRecord
    run: RunRecord
    operations: list[OperationRecord]
    course: Course | None
    requests_by_second: Sequence[Second]
    over_time: OverTimeRecord | None
    slowest: list[SlowOperationRecord]
    warmed_up: Count
    warmed_up_failed: Count
    due: Count | None
    not_begun: Count | None
    stages: list[StageFigures]
    master: MasterFacts | None
    gaps: tuple[Gap, ...]
    generator_load: tuple[LoadSample, ...]
    hosts: tuple[HostFacts, ...]
    workers: list[WorkerRecord]
    worker_count: Count
    spread_over_workers: Spread
    storage_urls: list[StorageUrl]
    accounts: list[MemberRecord]
    addresses: list[MemberRecord]
    sites: list[SiteRecord]
    sides: list[SideRecord]
    groups: list[GroupFigures]
    errors: list[ErrorCause]
    retries: list[RetryCause]
    thresholds: list[Threshold]
    not_sendable: list[NotSendable]
    counters: dict[str, float]
    warnings: tuple[str, ...]
    waits: tuple[Wait, ...]
    cluster: Observation | None
