"""The report as JSON: every number of a run under a name that stays.

:mod:`ssbench.reports.json_records` has the names, ``doc/json-report.rst`` says how to read them, and their
schema is ``doc/report-schema.json``. Fields are added without a change of the version; it rises when one is
renamed, removed or changes its meaning. What is not known, not defined or infinite is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Literal, overload

from ssbench.base import record
from ssbench.base.record import make_record_from
from ssbench.base.version import __version__
from ssbench.document.figures import JSON_RANKS
from ssbench.document.gates import GateResult
from ssbench.reports import json_records as records
from ssbench.reports import run_tables
from ssbench.reports.json_records import make_run_record
from ssbench.reports.key_figures import format_rank
from ssbench.reports.run_verdict import judge_for_reports
from ssbench.reports.writing import ReportOptions
from ssbench.results.result_fields import NO_WORKER
from ssbench.results.run_description import WorkerFacts
from ssbench.scenario.operations import OPERATIONS
from ssbench.statistics.collector import Cause, MemberCounts
from ssbench.statistics.figures import (
    CountedFigures,
    Groups,
    drop_seconds,
    estimate_rate_intervals,
    measure_rates,
)
from ssbench.statistics.latencies import Latencies, SlowResult
from ssbench.statistics.latency_parts import CensoredLatencies
from ssbench.statistics.over_time import BinsOverTime
from ssbench.statistics.run_statistics import RunPart, RunStatistics
from ssbench.statistics.run_verdict import RunVerdict


def make_over_time_record(over_time: BinsOverTime | None) -> records.OverTimeRecord | None:
    """Return the bins of the page's curves."""
    if over_time is None:
        return None
    return make_record_from(
        records.OverTimeRecord,
        over_time,
        operations=[
            make_record_from(records.SeriesOverTime, each, operation=operation.name if operation else "all")
            for code, each in over_time.operations.items()
            if (operation := None if code is None else OPERATIONS.get(code)) or code is None
        ],
    )


class SecondRecords(Sequence[records.Second]):
    """The successes of each second; each is made when it is asked for, because there may be millions."""

    def __init__(self, statistics: RunStatistics) -> None:
        self._seconds = statistics.requests_by_second
        self._whole = int(statistics.course.window.seconds) if statistics.course else None

    def __len__(self) -> int:
        return len(self._seconds)

    @overload
    def __getitem__(self, place: int) -> records.Second: ...

    @overload
    def __getitem__(self, place: slice) -> list[records.Second]: ...

    def __getitem__(self, place: int | slice) -> records.Second | list[records.Second]:
        if isinstance(place, slice):
            return [self._second(*each) for each in self._seconds[place]]
        return self._second(*self._seconds[place])

    def _second(self, second: int, count: int) -> records.Second:
        partial = None if self._whole is None else second > self._whole
        return records.Second(second=second, count=count, partial=partial)


# -- The whole report ------------------------------------------------------------------------------


#: Where there are more workers, latencies of each have neither intervals nor a slowest operation: these take
#: nine tenths of the time, a second for each thousand workers.
_MAX_WORKERS_IN_FULL = 100


def make_run_json(statistics: RunStatistics, options: ReportOptions) -> Iterator[str]:
    """Yield the parts of the report as one JSON document, indented, with a line feed at its end."""
    return record.iterate_json(make_run_report_record(statistics, options))


def make_run_report_record(statistics: RunStatistics, options: ReportOptions) -> records.RunReportRecord:
    """Return the records of the report."""
    maker = _FiguresMaker(statistics, options)
    found = judge_for_reports(statistics, options)
    return record.make_record_from(
        records.RunReportRecord,
        statistics,
        made_by=__version__,
        verdict=record.make_record_from(records.VerdictRecord, found),
        run=make_run_record(statistics),
        operations=list(maker.operations()),
        requests_by_second=SecondRecords(statistics),
        over_time=make_over_time_record(statistics.over_time),
        slowest=[maker.slow(each) for each in statistics.slowest],
        stages=[_stage(stage, options) for stage in statistics.stages],
        workers=list(maker.workers()),
        spread_over_workers=statistics.workers,
        master=statistics.generator.master,
        gaps=statistics.generator.gaps,
        generator_load=statistics.generator.load,
        hosts=statistics.generator.hosts,
        storage_urls=list(maker.storage_urls()),
        accounts=list(maker.members(statistics.accounts, statistics.run.accounts)),
        addresses=list(maker.members(statistics.addresses, statistics.address_names)),
        sites=list(maker.sites()),
        sides=[
            records.SideRecord(
                side=side.name, operations=list(_FiguresMaker(side.numbers, options).operations())
            )
            for side in statistics.sides
        ],
        groups=list(_groups(statistics, found, options)),
        errors=[maker.error(name, cause) for name, cause in statistics.errors.items()],
        retries=[records.RetryCause(cause=name, count=count) for name, count in statistics.retries.items()],
        thresholds=list(_thresholds(found)),
        not_sendable=[
            records.NotSendable(operation=operation.name, size_class=size_class, count=count)
            for operation, size_class, count in statistics.not_sendable
        ],
    )


_RESULT_NAMES: dict[GateResult, Literal["ok", "failed", "undecided"]] = {
    GateResult.PASSED: "ok",
    GateResult.FAILED: "failed",
    GateResult.UNDECIDED: "undecided",
}


def _thresholds(found: RunVerdict) -> Iterator[records.Threshold]:
    for judgment in found.judgments:
        condition = judgment.condition
        yield record.make_record_from(
            records.Threshold,
            judgment,
            condition=condition.text,
            limit=condition.limit,
            unit=condition.unit.value,
            result=_RESULT_NAMES[judgment.result],
        )


def _stage(stage: RunPart, options: ReportOptions) -> records.StageFigures:
    return record.make_record_from(
        records.StageFigures,
        stage.numbers,
        name=stage.name,
        load=stage.plan[0],
        begins=stage.facts.begins if stage.facts else None,
        ends=stage.facts.ends if stage.facts else None,
        operations=list(_FiguresMaker(stage.numbers, options).operations()),
    )


def _groups(
    statistics: RunStatistics, found: RunVerdict, options: ReportOptions
) -> Iterator[records.GroupFigures]:
    for group, loads in zip(statistics.by_group, found.groups, strict=True):
        numbers = group.numbers
        yield record.make_record_from(
            records.GroupFigures,
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

    def operations(self) -> Iterator[records.OperationRecord]:
        for section in self._statistics.sections:
            yield records.OperationRecord(
                operation=section.operation.name if section.operation else "all",
                figures=self._figures(section),
                size_classes=[
                    records.ClassFigures(size_class=str(line.size_class), figures=self._figures(line))
                    for line in section.lines[1:]
                ],
                steps={
                    name: self._latency(each)
                    for name, each in run_tables.latencies_by_step(section, self._statistics).items()
                },
            )

    def workers(self) -> Iterator[records.WorkerRecord]:
        facts = {each.worker_id: each for each in self._statistics.fleet}
        found = _figures_by_field(self._statistics.groups, "worker")
        numbers = sorted({*facts, *found})
        brief = len(numbers) > _MAX_WORKERS_IN_FULL
        for worker_id in numbers:
            each = facts.get(worker_id, WorkerFacts(worker_id))
            figures = found.get(worker_id)
            yield record.make_record_from(
                records.WorkerRecord,
                each,
                worker_id=None if worker_id == NO_WORKER else worker_id,
                host=each.host or None,
                version=each.version or None,
                figures=self._figures(figures, brief=brief) if figures else None,
                label=each.label or None,
                site=each.site or None,
            )

    def sites(self) -> Iterator[records.SiteRecord]:
        groups = self._statistics.groups
        if "worker" not in groups.keys:
            return
        names = {each.worker_id: each.site for each in self._statistics.fleet}
        for name, figures in groups.merged("worker", names).items():
            workers = sum(site == name for site in names.values())
            yield records.SiteRecord(site=name, workers=workers, figures=self._figures(figures))

    def storage_urls(self) -> Iterator[records.StorageUrl]:
        urls = self._statistics.run.storage_urls
        for place, figures in _figures_by_field(self._statistics.groups, "storage_url").items():
            yield records.StorageUrl(
                url=urls[place] if 0 <= place < len(urls) else None, figures=self._figures(figures)
            )

    def members(self, found: Iterable[MemberCounts], names: Sequence[str]) -> Iterator[records.MemberRecord]:
        for each in found:
            name = names[each.number] if 0 <= each.number < len(names) else None
            yield records.MemberRecord(
                name=name, figures=self._figures(each.figures), errors=dict(each.errors)
            )

    def error(self, name: str, cause: Cause) -> records.ErrorCause:
        return record.make_record_from(
            records.ErrorCause,
            cause,
            cause=name,
            operations={
                operation.name: count
                for code, count in sorted(cause.operations.items())
                if (operation := OPERATIONS.get(code))
            },
            statuses={
                str(status) if status > 0 else "none": count
                for status, count in sorted(cause.statuses.items())
            },
            times=self._latency(cause.times),
        )

    def _figures(self, figures: CountedFigures, *, brief: bool = False) -> records.FiguresRecord:
        latency = partial(self._latency, brief=brief)
        operations, moved = measure_rates(figures, self._window)
        ops_interval, bytes_interval = (
            (None, None) if brief else estimate_rate_intervals(figures, self._window)
        )
        entries = figures.counted["entries"]
        if self._statistics.pooled:
            figures, ops_interval, bytes_interval = drop_seconds(figures), None, None
        return record.make_record_from(
            records.FiguresRecord,
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

    def slow(self, each: SlowResult) -> records.SlowOperationRecord:
        urls, accounts = self._statistics.run.storage_urls, self._statistics.run.accounts
        return record.make_record_from(
            records.SlowOperationRecord,
            each,
            slowest=self._slowest(each),
            bytes=each.size if each.size >= 0 else None,
            storage_url=urls[each.storage_url] if 0 <= each.storage_url < len(urls) else None,
            account=accounts[each.account] if each.account < len(accounts) else None,
        )

    def _slowest(self, slowest: SlowResult) -> records.SlowestRecord:
        operation, names = OPERATIONS.get(slowest.operation), self._class_names
        groups = self._statistics.run.scenario.groups
        return record.make_record_from(
            records.SlowestRecord,
            slowest,
            operation=operation.name if operation else None,
            size_class=names.get(slowest.size_class),
            worker=None if slowest.worker == NO_WORKER else slowest.worker,
            container=_number_or_name(slowest.container),
            object=_number_or_name(slowest.object),
            group=groups[slowest.group].name if slowest.group < len(groups) else None,
        )

    def _since_due(self, latencies: CensoredLatencies) -> records.SinceDue | None:
        if not latencies.count:
            return None
        found = {
            format_rank(each): (latencies.percentile(each), latencies.most(each)) for each in self._ranks
        }
        return records.SinceDue(
            count=latencies.count,
            never_begun=latencies.waited.count,
            percentiles={name: low for name, (low, _) in found.items()},
            at_least=[name for name, (low, most) in found.items() if most > low],
        )

    def _latency(self, latencies: Latencies, *, brief: bool = False) -> records.Latency:
        supported = [each for each in self._ranks if latencies.supports(each)]
        found = {} if brief else {format_rank(each): latencies.interval(each) for each in supported}
        slowest = None if brief else latencies.slowest
        return record.make_record_from(
            records.Latency,
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
