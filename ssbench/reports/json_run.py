"""What was run in the report as JSON: the scenario, what the command line made of it, and when.

A scenario has other names here than in :mod:`ssbench.scenario.model`: these are public, and older.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import structs

from ssbench.base import record
from ssbench.base.measures import Bytes, Count, Moment, PerSecond, Seconds
from ssbench.base.record import JsonRecord
from ssbench.scenario import model
from ssbench.scenario.forecast import Forecast, forecast_scenario
from ssbench.scenario.object_names import DEFAULT_TEMPLATE
from ssbench.scenario.operation import remove_secrets
from ssbench.statistics.run_statistics import RunStatistics


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


class ScenarioRecord(JsonRecord, frozen=True, kw_only=True):
    """What the scenario asks for, with what the command line changed. ``file`` is the file's own content.

    ``containers`` are those in each of ``accounts``. ``popularity`` is how objects are chosen, ``reuse`` how
    many reads are repeated, ``body`` what is in bodies, ``metadata`` what uploads have besides (null: none),
    ``connections`` those of requests, in words. ``object_names`` is the template of names of objects.
    ``rate`` is operations a second in an open loop, null in a closed one. ``plan`` has the stages, or one for
    the whole run. ``groups`` are what each group of users does, by its name; operations are weighted there,
    and have no weights in the whole.
    """

    name: str
    users: Count
    operation_count: Count | None
    run_seconds: Seconds | None
    rate: PerSecond | None
    arrivals: str
    warmup: Seconds
    think_time: Seconds
    popularity: str
    reuse: str | None
    body: str
    metadata: str | None
    connections: str
    plan: tuple[model.Stage, ...]
    accounts: Count
    containers: Count
    container_base: str
    object_names: str
    container_concurrency: Count
    delete_after: Seconds | None
    delete_after_most: Seconds | None
    policy: str | None
    size_classes: list[SizeClassRecord]
    groups: dict[str, ScenarioRecord]
    file: dict[str, Any] | None


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
        popularity=str(scenario.popularity or "rotate"),
        body=str(scenario.body or "random"),
        metadata=None if scenario.metadata is None else str(scenario.metadata),
        connections=str(scenario.connections or "kept"),
        reuse=None if scenario.reuse is None else str(scenario.reuse),
        containers=scenario.container_count,
        object_names=scenario.object_names or DEFAULT_TEMPLATE,
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
    )


class OutlookRecord(record.JsonHead, frozen=True, kw_only=True):
    """What a scenario asks for, and what it would do. ``fail_if`` are the conditions under which it fails."""

    format: Literal["ssbench scenario"] = "ssbench scenario"
    version: Literal[1] = 1
    scenario: ScenarioRecord
    forecast: Forecast
    fail_if: tuple[str, ...]


def make_outlook_json(scenario: model.Scenario, *_: Any) -> str:
    """Return it as one JSON document."""
    return record.format_json(
        OutlookRecord(
            scenario=make_scenario_record(scenario),
            forecast=forecast_scenario(scenario),
            fail_if=scenario.fail_if,
        )
    )
