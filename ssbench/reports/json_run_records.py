"""The records of what was run, in the report as JSON."""

from __future__ import annotations

from typing import Any

from ssbench.reports.json_units import Bytes, Count, Moment, PerSecond, Record, Seconds


class SizeClass(Record, frozen=True, kw_only=True):
    """A size class of the scenario; ``weights`` are relative, by operation."""

    name: str
    size_min: Bytes
    size_max: Bytes
    initial_files: Count
    weights: dict[str, float]


class Stage(Record, frozen=True, kw_only=True):
    """A part of a run with a load of its own, which changes evenly from the first number to the second.

    ``users`` may be in flight at most. ``rate`` is operations a second, null in a closed loop. ``seconds`` is
    null in a run that ends with a number of operations.
    """

    seconds: Seconds | None
    users: tuple[int, int] | None
    rate: tuple[float, float] | None


class Scenario(Record, frozen=True, kw_only=True):
    """What the scenario asks for, with what the command line changed. ``file`` is the file's own content.

    ``rate`` is operations a second in an open loop, null in a closed one. ``plan`` has the stages, or one for
    the whole run.
    """

    name: str
    users: Count
    operation_count: Count | None
    run_seconds: Seconds | None
    rate: PerSecond | None
    arrivals: str
    warmup: Seconds
    think_time: Seconds
    plan: list[Stage]
    containers: Count
    container_base: str
    container_concurrency: Count
    delete_after: Seconds | None
    policy: str | None
    size_classes: list[SizeClass]
    file: dict[str, Any] | None


class Run(Record, frozen=True, kw_only=True):
    """What was run, where and how. ``run_id`` is a decimal number with up to 19 digits.

    ``complete`` is false where a run was killed before its end.
    """

    scenario: Scenario
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
