"""What is drawn of the runs that a comparison is of: rates over time, latency by percentile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from ssbench.document.colours import SLATE
from ssbench.document.elements import Chart, Curve
from ssbench.reports import curves
from ssbench.statistics.run_statistics import RunStatistics

#: Runs of a side that are drawn; the table is of all.
MAX_DRAWN_RUNS = 8


@dataclass(frozen=True, slots=True)
class RunCurves:
    """What is drawn of a run, which is small: its rate over time, and latency by percentile by operation."""

    rate: Curve | None
    latencies: Mapping[str, Curve]


def make_run_curves(statistics: RunStatistics, name: str) -> RunCurves:
    """Return the curves of a run whose statistics were counted with ``over_time``."""
    rate = None
    over_time = statistics.over_time
    if over_time is not None:
        seconds = np.maximum(over_time.seconds, 1e-9)
        rate = Curve(name, curves.bin_middles(over_time), over_time.operations[None].count / seconds, SLATE)
    return RunCurves(
        rate,
        {
            section.operation.name.upper(): curve
            for section in statistics.sections[1:]
            if section.operation
            and (
                curve := curves.make_percentile_curve(
                    name, section.lines[0].latency.measured, curves.curve_colour(section.operation.code)
                )
            )
        },
    )


def make_side_curves(statistics: RunStatistics) -> tuple[list[RunCurves], ...]:
    """Return the curves of each of the two sides of a run."""
    return tuple([make_run_curves(side.numbers, side.name)] for side in statistics.sides)


def draw_run_curves(before: Sequence[RunCurves], after: Sequence[RunCurves]) -> list[Chart]:
    """Return charts of the runs of two sides laid over each other; none where there are no curves.

    A colour is an operation; runs before are dashed.
    """
    sides = ((before[:MAX_DRAWN_RUNS], "dashed"), (after[:MAX_DRAWN_RUNS], "solid"))

    def drawn(curve: Curve, dash: str) -> Curve:
        return replace(curve, dash=dash, name=curve.name[:60])

    rates = [drawn(run.rate, look) for runs, look in sides for run in runs if run.rate is not None]
    operations = dict.fromkeys(name for runs, *_ in sides for run in runs for name in run.latencies)
    charts = [Chart("All operations", "ops/s", rates, digits=1)] if rates else []
    for name in operations:
        laid = [
            drawn(run.latencies[name], look) for runs, look in sides for run in runs if name in run.latencies
        ]
        charts.append(
            Chart(f"{name}: latency by percentile", "ms", laid, axis="percentile", log=True, digits=2)
        )
    return charts
