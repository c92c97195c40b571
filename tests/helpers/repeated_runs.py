"""Figures of runs that are repeated."""

from __future__ import annotations

from ssbench.comparison.run_figures import FigureSample, RunFigures


def run(
    name: str, rate: float = 500.0, p50: float = 0.01, half: float = 0.01, warnings: tuple[str, ...] = ()
) -> RunFigures:
    row = {"rate": FigureSample(rate, half), "p50": FigureSample(p50), "errors": FigureSample(0.0)}
    return RunFigures(name, {("READ", None): row, ("ALL", None): row}, {}, warnings)
