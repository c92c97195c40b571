"""What was run in the report as JSON: the scenario, what the command line made of it, and when."""

from __future__ import annotations

from ssbench.reports import json_run_records as records
from ssbench.reports.json_course import number_of
from ssbench.scenario.model import Stage
from ssbench.statistics import RunStatistics


def run_of(statistics: RunStatistics) -> records.Run:
    """Return what was run."""
    run, scenario = statistics.run, statistics.run.scenario
    return records.Run(
        scenario=records.Scenario(
            name=scenario.name,
            users=scenario.user_count,
            operation_count=scenario.operation_count,
            run_seconds=scenario.run_seconds,
            rate=scenario.rate,
            arrivals=scenario.arrivals,
            warmup=scenario.warmup,
            think_time=scenario.think_time,
            plan=[load_of(each) for each in scenario.plan],
            containers=scenario.container_count,
            container_base=scenario.container_base,
            container_concurrency=scenario.container_concurrency,
            delete_after=scenario.delete_after,
            policy=scenario.policy,
            size_classes=[
                records.SizeClass(
                    name=each.name,
                    size_min=each.size_min,
                    size_max=each.size_max,
                    initial_files=each.initial_files,
                    weights=each.weights,
                )
                for each in scenario.size_classes
            ],
            file=scenario.data,
        ),
        ssbench_version=run.version,
        run_id=None if run.run_id is None else str(run.run_id),
        seed=run.seed,
        host=run.host or None,
        started=run.started,
        interrupted=statistics.interrupted,
        complete=statistics.complete,
        first_sent=statistics.start,
        last_ended=statistics.end,
        seconds=statistics.duration,
        noop=bool(run.options.get("noop")),
        options=run.options,
        storage_urls=list(run.storage_urls),
        stages=list(run.stages),
    )


def load_of(stage: Stage) -> records.Stage:
    """Return what the scenario asks for in a stage."""
    return records.Stage(seconds=number_of(stage.seconds), users=stage.users, rate=stage.rate)
