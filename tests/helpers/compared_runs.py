"""Figures of runs for tests of what compares them, and the ways to show what was compared."""

from __future__ import annotations

from typing import Any

from ssbench.comparison.run_comparison import Comparison, compare_runs
from ssbench.comparison.run_figures import FigureSample, RunFigures
from ssbench.document.figures import COMPARED_FIGURES
from ssbench.reports import products
from ssbench.reports.products import Product

P50, RATE, ERRORS = COMPARED_FIGURES["p50"], COMPARED_FIGURES["rate"], COMPARED_FIGURES["errors"]

text = products.find_writer(Product.COMPARISON, "text")
markdown = products.find_writer(Product.COMPARISON, "markdown")
many = products.find_writer(Product.CONFIGURATIONS, "text")


def run(name: str = "r", facts: Any = None, operation: str = "READ", **values: Any) -> RunFigures:
    samples = {
        figure: value if isinstance(value, FigureSample) else FigureSample(value)
        for figure, value in values.items()
    }
    return RunFigures(name, {(operation, None): samples, ("ALL", None): samples}, facts or {})


def samples(*values: float) -> list[FigureSample]:
    return [FigureSample(value) for value in values]


def repeated() -> Comparison:
    before = [
        run(f"b{index}", p50=0.010 + index * 1e-5, rate=500.0 + index, errors=0.0) for index in range(4)
    ]
    after = [
        run(f"a{index}", p50=0.012 + index * 1e-5, rate=500.0 - index, errors=0.001) for index in range(4)
    ]
    return compare_runs(before, after)


def group(*values: float, of: str = "READ", **more: Any) -> list[RunFigures]:
    return [run(operation=of, p50=value, rate=1 / value, **more) for value in values]
