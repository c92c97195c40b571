"""Trends of runs: their levels, and what changed where."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from archive_folders import history
from said import NOT_MEASURED

from ssbench.comparison.runs_list import find_level_changes
from ssbench.document.elements import View
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.statistics.run_verdict import Outcome

#: What is said of what a comparison of two runs cannot know.
RUN_TO_RUN = "differs from run to run"


def found(statistics):
    """A verdict on statistics whose operations are all that is judged."""
    outcome = Outcome.FAILED if statistics.total.failed else statistics.outcome
    return SimpleNamespace(outcome=outcome, judgments=())


def trends(entries, encoding="utf-8"):
    return products.find_writer(Product.TREND, "text")(entries, View(encoding=encoding))


def noisy(count, changes_at, by, seed):
    random = np.random.default_rng(seed)
    return np.exp(0.02 * random.standard_normal(count) + by * (np.arange(count) >= changes_at)).tolist()


def test_levels_are_found_and_not_invented():
    assert sum(bool(find_level_changes(noisy(20, 0, 0.0, seed))) for seed in range(20)) <= 1
    found = [find_level_changes(noisy(20, 12, 0.08, seed)) for seed in range(10)]
    assert sum(len(each) == 1 and abs(each[0] - 12) <= 1 for each in found) >= 9
    assert find_level_changes([1.0] * 4 + [2.0] * 5) == []  # too few runs
    assert find_level_changes([5.0] * 30) == []


def test_a_trend_tells_what_changed_where():
    rates = [100.0] * 5 + [101.0] * 3 + [50.0] * 6
    text = trends(
        history(rates, ssbench=["1.0"] * 8 + ["1.1"] * 6, seed=list(map(str, range(14))), master=["h"] * 14)
    )
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "s: 14 runs"
    assert lines[1].split() == ["begun", "(UTC)", "ops/s", "p99", "ms", "verdict"]
    assert lines[10:13] == [
        "! ssbench: 1.0 -> 1.1",
        "* ops/s 50.2 % lower from here on",
        "* p99 100.7 % higher from here on",
    ]
    assert [lines[place].split()[3] for place in (3, 8, 14)] == ["████████████▉", "█████████████", "██████▍"]
    assert f"{RUN_TO_RUN}: seed." in " ".join(lines)
    assert "master" not in text
    assert max(map(len, lines)) <= 80


def test_rows_of_a_suite_and_phases_are_series_of_their_own():
    """Rates of puts and of listings make no series: each run would be a change."""
    rates = [100.0, 900.0] * 12
    entries = [
        replace(each, scenario="objects", row=("put size=4KiB", "list")[number % 2])
        for number, each in enumerate(history(rates))
    ]
    text = trends(entries)
    assert [line for line in text.splitlines() if "12 runs" in line] == [
        "objects: put size=4KiB: 12 runs",
        "objects: list: 12 runs",
    ]
    assert "from here on" not in text
    found = json.loads(products.find_writer(Product.TREND, "json")(entries, View()))
    assert [(each["scenario"], each["row"], len(each["runs"])) for each in found["scenarios"]] == [
        ("objects", "put size=4KiB", 12),
        ("objects", "list", 12),
    ]


def test_a_level_is_not_compared_with_runs_that_are_not_looked_at(monkeypatch):
    monkeypatch.setattr("ssbench.comparison.runs_list.MAX_TREND_RUNS", 30)
    found = trends(history([1000.0] * 20 + [100.0] * 18 + [50.0] * 12))
    lines = [line.strip() for line in found.splitlines()]
    assert [line for line in lines if line.startswith("* ops/s")] == ["* ops/s 50.0 % lower from here on"]


def test_a_trend_of_few_runs_has_no_levels_and_leaves_out_what_was_cut_short():
    entries = [
        replace(entry, label=label) for entry, label in zip(history([9.0, 1.0, None]), "aab", strict=True)
    ]
    entries[1] = replace(entries[1], verdict="interrupted")
    text = trends([*entries, *(replace(entry, scenario="other\x1b") for entry in entries)], "ascii")
    assert text.startswith("s: 2 runs (1 left out: interrupted or incomplete)\n")
    assert "! label: a -> b" in text
    assert "   9.00  #############    1111  #############  ok\n" in text
    assert "      -                      - " in text
    assert "needs 10 runs)." in " ".join(text.split())
    assert "other?: 2 runs" in text
    assert f"{NOT_MEASURED} (p99 needs 1,000), or only a lower bound." in " ".join(text.split())
    assert RUN_TO_RUN not in text
    assert trends([]) == "no runs\n"


def test_a_label_that_few_runs_have_is_marked():
    entries = [
        replace(entry, label=label)
        for entry, label in zip(history([9.0] * 5), (None, "a", None, "b", None), strict=True)
    ]
    text = trends(entries)
    assert [line.strip() for line in text.splitlines() if line.startswith("  ! label")] == [
        *("! label: none -> a", "! label: a -> none", "! label: none -> b", "! label: b -> none")
    ]
    assert RUN_TO_RUN not in text
