"""Every output shows the same value, or the same dash, for each figure of the same run.

Each output is read as a person or a program would, into ``{(operation, figure): text}``, and held against
the table of figures. A run of 40 operations has too few for any percentile of one of them but the maximum.
The table and the CSV of ssbench 0.3.9 are as they were: they show percentiles of any number of results.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from result_rows import block, row

from ssbench.base.errors import GateResult
from ssbench.comparison import capacity_report as json_of_capacity
from ssbench.comparison import comparison_report as json_of_comparison
from ssbench.comparison import run_summaries
from ssbench.comparison import runs_list as list_runs
from ssbench.comparison.archive import make_entry
from ssbench.comparison.capacity_report import STEP_HEADS, Capacity, format_step_cells
from ssbench.comparison.run_comparison import compare_runs
from ssbench.comparison.run_figures import make_run_figures
from ssbench.comparison.search import judge_objective as judge_find
from ssbench.comparison.sweep import make_step
from ssbench.comparison.sweep_variables import Variable
from ssbench.document import figures
from ssbench.document.elements import Detail, Document, Table, View
from ssbench.document.units import Unit
from ssbench.monitoring.run_metrics import CountingSink, RunMonitor
from ssbench.reports import run_tables
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.block import Failure, ResultBlock
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.run import terminal
from ssbench.run.progress import LiveScreen, compose_live_screen, compose_progress_line
from ssbench.scenario import conditions
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import make_statistics
from ssbench.statistics.thresholds import judge_conditions

SCENARIO = Scenario(
    "same", (SizeClass("small", 1000, 9000, 1, (1, 1, 1, 1)),), user_count=4, run_seconds=60.0
)
OPERATION_NAMES = ("create", "read", "update", "delete")

#: What is shown of an operation: texts, numbers, None for null; keyed by operation and figure.
Shown = Mapping[tuple[str, str], object]


@dataclass(frozen=True)
class Made:
    """A run that is only in memory."""

    statistics: RunStatistics
    blocks: tuple[ResultBlock, ...]


@cache
def made(name: str) -> Made:
    """Return one of the runs that are looked at."""
    count = {"small": 40, "larger": 4800}[name]
    random = np.random.default_rng(1)
    latencies = random.lognormal(-4, 0.7, count)
    rows = [
        row(
            operation=place % 4,
            first_byte=0.6 * latencies[place] if place % 4 == 1 else math.nan,
            last_byte=latencies[place],
            completed=1e9 + place * 24 / count + latencies[place],
            size=0 if place % 4 == 3 else 100_000 + place % 8000,
            status=200,
            retries=place % 7 == 0,
        )
        for place in range(count)
    ]
    collector = Collector(by=("worker", "storage_url"))
    blocks = []
    for first in range(0, count, 100):
        part = range(first, min(first + 100, count))
        failed = {place - first: Failure("HTTP 503", "", {}) for place in part if place % 20 == 6}
        blocks.append(block([rows[place] for place in part], failures=failed))
        collector.add(blocks[-1])
    run = RunDescription(SCENARIO, "1.0")

    class Facts:
        size_classes = ("small",)
        summary = RunSummary(ended=1e9 + 25, sent_until=1e9 + 24)
        warnings = ()
        current = True

    Facts.run = run  # type: ignore[attr-defined]
    return Made(make_statistics(collector, Facts()), tuple(blocks))


def expected(run: RunStatistics, operation: str, key: str) -> tuple[float | None, str]:
    """Return the value of a figure in the unit in which it is shown, None for a dash; and its text."""
    section = next(
        each for each in run.sections if (each.operation.name if each.operation else "all") == operation
    )
    found = figures.find_figure(key)
    assert found is not None, key
    value = found.value(section.lines[0], run)
    scale = 1000 if found.unit is Unit.SECONDS else 1
    return None if value is None else value * scale, found.text(section.lines[0], run)


# -- how each output is read ----------------------------------------------------------------------


def _report(run: RunStatistics, name: str) -> str:
    return make_run_report(name, run, ReportOptions())


def _summary(it: Made) -> Shown:
    text = _report(it.statistics, "summary")
    keys = _find_keys(it, pages=False)
    return _rows(text, r"^(CREATE|READ|UPDATE|DELETE|ALL) +(.*)$", keys)


#: The keys of the figures that tables have, by the heads of their columns.
HEADS = {each.head: each.key for each in figures.FIGURES.values()} | {
    (found := figures.percentile_figure(rank)).head: found.key for rank in figures.TABLE_RANKS
}


def _find_keys(it: Made, *, pages: bool) -> tuple[str, ...]:
    """Return which figures the columns of operations are, on ``pages`` or in text; "%" for others."""
    columns = run_tables.make_operation_table(it.statistics).columns[1:]
    return tuple(HEADS.get(each.head, "%") for each in columns if pages or each.detail is not Detail.PAGE)


def _rows(text: str, pattern: str, keys: tuple[str, ...]) -> Shown:
    found = {}
    for name, rest in re.findall(pattern, text, re.MULTILINE):
        for key, cell in zip(keys, rest.split(), strict=True):
            if key not in {"%", "|"}:
                found[name.lower(), key] = cell
    return found


def _full(it: Made) -> Shown:
    keys = ("p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max")
    pattern = r"^ {2}(CREATE|READ|UPDATE|DELETE|ALL) last +\d+ +(.*)$"
    return _rows(_report(it.statistics, "full"), pattern, keys)


def _markdown(it: Made) -> Shown:
    keys = _find_keys(it, pages=False)
    text = _report(it.statistics, "summary_md").replace("**", "")
    rows = re.findall(r"^\| (CREATE|READ|UPDATE|DELETE|ALL) \| (.*) \|$", text, re.MULTILINE)
    return {
        (name.lower(), key): cell
        for name, rest in rows
        for key, cell in zip(keys, rest.split(" | "), strict=True)
        if key != "%"
    }


def _html(it: Made) -> Shown:
    keys = _find_keys(it, pages=True)
    found = {}
    pytest.importorskip("jinja2")
    from ssbench.document.renderers import html  # noqa: PLC0415 - not before Jinja2 was found

    page = html.render(Document("", [run_tables.make_operation_table(it.statistics)]), View())
    for line in page.partition("</table>")[0].split("<tr")[2:]:
        name, *rest = [
            re.sub("<[^>]*>", "", cell).lstrip(">").strip() for cell in re.split("<td[^>]*>", line)[1:]
        ]
        found |= {(name.lower(), key): cell for key, cell in zip(keys, rest, strict=False) if key != "%"}
    return {key: cell for key, cell in found.items() if key[0] in {*OPERATION_NAMES, "all"}}


def _json(it: Made) -> Shown:
    found: dict[tuple[str, str], object] = {}
    for each in json.loads(_report(it.statistics, "json"))["operations"]:
        name, own = each["operation"], each["figures"]
        found[name, "count"], found[name, "errors"] = own["count"], own["errors"]
        found[name, "retries"], found[name, "rate"] = own["retries"], own["ops_per_second"]
        found[name, "mb_per_s"] = None if own["bytes_per_second"] is None else own["bytes_per_second"] / 1e6
        for key, latency in (("", own["last_byte"]), ("first_", own["first_byte"])):
            for rank, seconds in latency["percentiles"].items():
                found[name, f"{key}p{rank}"] = None if seconds is None else 1000 * seconds
        found[name, "max"], found[name, "mean"] = (1000 * own["last_byte"][it] for it in ("max", "mean"))
    return found


def _csv(it: Made) -> Shown:
    head, data = csv.reader(io.StringIO(_report(it.statistics, "csv")))
    cells_ = dict(zip(head, data, strict=True))
    found: dict[tuple[str, str], object] = {}
    for name in (*OPERATION_NAMES, "total"):
        shown = "all" if name == "total" else name
        found[shown, "count"], found[shown, "errors"] = (
            float(cells_[f"{name}_{what}"]) for what in ("count", "errors")
        )
        found[shown, "retries"] = float(cells_[f"{name}_retries"])
        found[shown, "rate"] = float(cells_[f"{name}_avg_req_per_s"])
        if name != "delete":  # 0.0, as it was
            found[shown, "mb_per_s"] = float(cells_[f"{name}_bytes_per_s"]) / 1e6
        found[shown, "max"] = 1000 * float(cells_[f"{name}_last_all_max"])
    return found


def _compare(it: Made) -> Shown:
    runs = [make_run_figures(it.statistics, name) for name in ("a", "b")]
    comparison = compare_runs(runs[:1], runs[1:])
    data = json.loads(json_of_comparison.make_comparison_json(comparison))
    found: dict[tuple[str, str], object] = {}
    for each in data["rows"]:
        for key in figures.COMPARED_FIGURES:
            if key != "errors":  # compared as a share
                change = each["changes"].get(key)
                value = None if change is None else change["after"]
                scale = 1000 if key.startswith("p") else 1
                found[each["operation"].lower(), key] = None if value is None else value * scale
    return found


def _listing(it: Made) -> Shown:
    cells_ = _first_row(
        run_summaries.make_configurations_document([make_run_figures(it.statistics, "a")], View())
    )
    return {
        ("all", "rate"): cells_["all/s"],
        ("all", "p99"): cells_["p99 ms"],
        ("all", "mb_per_s"): cells_["MB/s"],
    }


def _first_row(document: Document) -> dict[str, object]:
    table = document.elements[0]
    assert isinstance(table, Table)
    row_ = table.rows[0]
    assert isinstance(row_, (tuple, list))
    return dict(zip((column.head for column in table.columns), row_, strict=True))


def _list(it: Made) -> Shown:
    entry = make_entry(it.statistics, "x.stat.gz", 1, 1)
    shown = _first_row(list_runs.make_runs_document([("last", entry)], View()))
    return {("all", "rate"): shown["ops/s"], ("all", "p99"): shown["p99 ms"]}


def _sweep(it: Made) -> Shown:
    keys = {"ops/s": "rate", "MB/s": "mb_per_s", "p50 ms": "p50", "p99 ms": "p99", "failed": "errors"}
    shown = dict(zip(STEP_HEADS, format_step_cells(make_step(4, it.statistics)), strict=True))
    return {("all", key): shown[head] for head, key in keys.items()}


def _sweep_json(it: Made) -> Shown:
    found = Capacity("t", Variable.USERS, (make_step(4, it.statistics),), (), "c", GateResult.PASSED)
    (step,) = json.loads(json_of_capacity.make_capacity_json(found))["steps"]
    scaled = ("p50", "p99", "mean")
    times = {("all", key): None if step[key] is None else 1000 * step[key] for key in scaled}
    return {**times, ("all", "rate"): step["ops_per_second"], ("all", "errors"): step["errors"]}


_CONDITIONS = (
    "count > 0",
    "errors > 0",
    "rate > 0",
    "mb_per_s > 0",
    "p50 > 0s",
    "p99 > 0s",
    "max > 0s",
    "mean > 0s",
)


def _conditions(it: Made) -> Shown:
    found: dict[tuple[str, str], object] = {}
    for name in (*OPERATION_NAMES, "all"):
        parsed = [conditions.parse_condition(f"{name}.{each}") for each in _CONDITIONS]
        for judgment in judge_conditions(it.statistics, parsed):
            if judgment.few or judgment.undecided:  # its text says of how many
                assert f"of {judgment.count:,} operations" in judgment.text
                continue
            scale = 1000 if judgment.condition.unit is Unit.SECONDS else 1
            found[name, judgment.condition.figure] = (
                None if judgment.value is None else judgment.value * scale
            )
    return found


def _progress(it: Made) -> Shown:
    screen = _fed(it)
    figures_ = screen.figures(_END)
    line = compose_progress_line(figures_, 200)
    found = re.search(r"p50 (\S+) p99 (\S+) ms", line)
    assert found
    return {("all", "p50"): found[1], ("all", "p99"): found[2]}


def _live(it: Made) -> Shown:
    lines = compose_live_screen(_fed(it).view(_END), 120, 40)
    keys = ("%", "%", "|", "p50", "p95", "p99", "max", "errors")
    return _rows("\n".join(lines), r"^(CREATE|READ|UPDATE|DELETE) +(.*)$", keys)


_END = 50.0


def _fed(it: Made) -> LiveScreen:
    """Return a screen that has seen the whole run within the seconds that it shows."""
    screen = LiveScreen(SCENARIO, lambda: (1, 1), lambda: ())
    screen._wanted = screen._drawn = True
    screen._draw = lambda _now, _width: None
    for place, each in enumerate(it.blocks):
        screen._gather_at = 0.0
        screen.add(each)
        screen.tick(_END - 1 + place / len(it.blocks))
    return screen


def _prometheus(it: Made) -> Shown:
    counting = CountingSink(SCENARIO, RunMonitor(lambda: (1, 1)))
    for each in it.blocks:
        counting.take(each)
    sums = counting.shown
    found: dict[tuple[str, str], object] = {}
    for name in OPERATION_NAMES:
        key = (name, "small")
        found[name, "count"] = int(sums.last_byte[key].counts.sum())
        assert sums.operations[key] == found[name, "count"]
        found[name, "errors"] = sums.errors[(*key, "HTTP 503")]
        found[name, "retries"] = sums.counted["retries"][key]
        found[name, "mean"] = 1000 * sums.last_byte[key].total / sums.operations[key]
    return found


OUTPUTS: dict[str, Callable[[Made], Shown]] = {
    "summary": _summary,
    "full": _full,
    "Markdown": _markdown,
    "HTML": _html,
    "JSON": _json,
    "CSV": _csv,
    "compare": _compare,
    "compare, many": _listing,
    "list": _list,
    "sweep": _sweep,
    "sweep, JSON": _sweep_json,
    "conditions": _conditions,
    "progress": _progress,
    "live": _live,
    "Prometheus": _prometheus,
}


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "shows_progress", lambda: True)


@pytest.mark.parametrize("name", ["small", "larger"])
@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_shows_the_same(output: str, name: str) -> None:
    run = made(name)
    shown = OUTPUTS[output](run)
    assert shown
    for (operation, key), cell in shown.items():
        value, text = expected(run.statistics, operation, key)
        where = f"{output}: {operation}.{key}"
        if value is None:
            assert cell in {None, "-"}, f"{where} is {cell}, for which there are too few results"
        elif isinstance(cell, str):
            assert cell == text, where
        else:
            assert cell == pytest.approx(value, abs=1e-3), where


def test_the_runs_have_figures_with_and_without_support() -> None:
    """The comparison above would say nothing of dashes, or of values, without both."""
    small, larger = made("small").statistics, made("larger").statistics
    assert expected(small, "create", "p50")[0] is None
    assert expected(small, "all", "p50")[0] is not None
    assert expected(small, "all", "p99")[0] is None
    assert expected(larger, "create", "p95")[0] is not None
    assert expected(larger, "all", "p99")[0] is not None
    assert expected(larger, "all", "p99.9")[0] is None
    assert {each.name for each in OPERATIONS.drawn} >= {*OPERATION_NAMES}


def test_what_a_search_judges_is_what_is_shown() -> None:
    for name in ("small", "larger"):
        run = made(name).statistics
        for text in ("read.p50 <= 1s", "errors <= 50%"):
            (found,) = judge_find(run, [conditions.parse_condition(text)])
            row_ = found.condition.row
            line = run.sections[2 if "read" in text else 0].lines[0]
            asked = row_.value(line, run) if row_.whole is None else row_.share(line, run)
            if asked is not None:
                assert found.value == pytest.approx(asked)
