"""Which runs have a figure, and the width of its interval."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import capacity_runs
import numpy as np
import pytest

from ssbench.comparison.run_figures import (
    ALL_KEY,
    FigureSample,
    RunFigures,
    _sample,
    failure_interval,
    make_run_figures,
    runs_with_figure,
)
from ssbench.document.figures import COMPARED_FIGURES, Range
from ssbench.results.run_description import ServerCpuSample
from ssbench.statistics.by_second import BySecond
from ssbench.statistics.confidence import Interval
from ssbench.statistics.server_cpu import ServerCpu

KEY = ("READ", None)
RANKED = next(key for key, figure in COMPARED_FIGURES.items() if figure.rank is not None)
OTHER = next(key for key, figure in COMPARED_FIGURES.items() if figure.rank is None)


def run(name: str, *keys: str) -> RunFigures:
    return RunFigures(name, {KEY: dict.fromkeys(keys, FigureSample(1.0))})


def test_a_percentile_is_compared_only_where_every_run_has_it() -> None:
    fast, slow, empty = run("fast", RANKED, OTHER), run("slow", OTHER), RunFigures("empty", {})
    assert runs_with_figure([fast, slow], KEY, COMPARED_FIGURES[RANKED]) == []
    assert runs_with_figure([fast, fast], KEY, COMPARED_FIGURES[RANKED]) == [fast, fast]
    assert runs_with_figure([fast, slow, empty], KEY, COMPARED_FIGURES[OTHER]) == [fast, slow]
    assert runs_with_figure([fast, slow], ("READ", "tiny"), COMPARED_FIGURES[OTHER]) == []


def test_the_cpu_of_servers_is_of_all_operations_together(tmp_path: Path) -> None:
    cpu = ServerCpu(0.002, Interval(0.001, 0.003, 9.0), 400)
    statistics = replace(capacity_runs.run(tmp_path, np.full(400, 0.01)), server_cpu={"proxy": cpu})
    rows = make_run_figures(statistics, "a").rows
    assert len(rows) > 1
    assert rows[ALL_KEY]["proxy_cpu"] == FigureSample(0.002, pytest.approx(math.log(2.0)))
    assert "object_cpu" not in rows[ALL_KEY]
    assert [key for key, row in rows.items() if "proxy_cpu" in row] == [ALL_KEY]


def test_where_a_local_swift_listened_is_known_though_it_is_no_fact(tmp_path: Path) -> None:
    """Its servers are the same in several runs, or others."""
    there = capacity_runs.run(tmp_path, np.full(400, 0.01))
    run = replace(there.run, storage_urls=("http://h:1",), options={"swift_settings": {"version": "2.38.3"}})
    found = make_run_figures(replace(there, run=run), "a")
    assert found.facts["storage URL"] == "a local Swift"
    assert found.local_swift == ("http://h:1",)
    elsewhere = replace(there, run=replace(run, options={}))
    assert make_run_figures(elsewhere, "a").local_swift == ()
    sample = ServerCpuSample(1.0, 1.0, 10, {"proxy": 0.1})
    assert make_run_figures(replace(elsewhere, cpu_samples=(sample,)), "a").local_swift == ("http://h:1",)


def test_half_of_an_interval_is_its_longer_side_by_the_logarithm() -> None:
    assert _sample(2.0, Range(1.0, 3.0)) == FigureSample(2.0, pytest.approx(math.log(2.0)))
    assert _sample(2.0, Range(1.9, 4.0)) == FigureSample(2.0, pytest.approx(math.log(2.0)))


@pytest.mark.parametrize("interval", [None, Range(0.0, 3.0), Range(-1.0, 3.0), Range(1.0, math.inf)])
def test_an_interval_without_an_end_is_none(interval: Range | None) -> None:
    assert _sample(2.0, interval) == FigureSample(2.0)


def test_failures_of_a_single_second_have_the_interval_of_independent_ones() -> None:
    figures: Any = SimpleNamespace(
        count=9, failed=1, by_second=BySecond(Counter({5: 9}), Counter(), Counter({5: 1}))
    )
    low, high = failure_interval(figures)
    assert 0 < low < 0.1 < high < 0.5
