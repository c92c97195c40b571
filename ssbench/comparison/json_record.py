"""A comparison as JSON: the comparison itself, with its verdict; and a table of many runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from ssbench import __version__, record
from ssbench.comparison.compare import Comparison
from ssbench.comparison.figures import RunFigures, Sample
from ssbench.comparison.verdict import Verdict, verdict
from ssbench.measures import Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Comparison):
    """A comparison of runs, with its verdict.

    ``changes`` are keyed by figure, as conditions (``--fail-if``) have it: ``rate`` is operations a second,
    ``mb_per_s`` megabytes a second; latencies are in seconds, ``errors`` is a share of 1.
    """

    format: Literal["ssbench comparison"] = "ssbench comparison"
    version: Literal[2] = 2
    made_by: str = __version__
    verdict: Verdict


def report(comparison: Comparison, *_: Any) -> str:
    """Return it as one JSON document."""
    own = {field.name: getattr(comparison, field.name) for field in fields(Comparison)}
    return record.text(Report(**own, verdict=verdict(comparison)))


class Place(record.Record, frozen=True, kw_only=True):
    """The figures of an operation, or ``ALL``, and a size class (null: all of them), by their keys."""

    operation: str
    size_class: str | None
    figures: dict[str, Sample]


class Run(record.Record, frozen=True, kw_only=True):
    """The figures of a run, and the facts that it should share with runs that it is compared with."""

    name: str
    label: str | None
    started: Moment | None
    facts: dict[str, str]
    places: tuple[Place, ...]
    warnings: tuple[str, ...]


class Table(record.Head, frozen=True, kw_only=True):
    """The figures of many runs."""

    format: Literal["ssbench table"] = "ssbench table"
    version: Literal[1] = 1
    runs: tuple[Run, ...]


def table(runs: Sequence[RunFigures], *_: Any) -> str:
    """Return the figures of many runs as one JSON document."""
    return record.text(Table(runs=tuple(map(_run, runs))))


def _run(run: RunFigures) -> Run:
    places = (
        Place(operation=operation, size_class=size_class, figures=dict(figures))
        for (operation, size_class), figures in run.rows.items()
    )
    return Run(
        name=run.name,
        label=run.label or None,
        started=run.started,
        facts=dict(run.facts),
        places=tuple(places),
        warnings=run.warnings,
    )
