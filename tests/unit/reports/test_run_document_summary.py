"""The summary: no line of it is wider than 80 columns, whatever is in a stat file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden_words import GoldenWords
from hypothesis import given, settings
from hypothesis import strategies as st
from result_rows import block, many, row

from ssbench.base.errors import ExitCode
from ssbench.comparison.comparison_report import make_run_curves
from ssbench.document import columns
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.block import Failure
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary, WorkerFacts
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import find_ending_reasons
from ssbench.statistics.summary import make_statistics, summarize

DATA = Path(__file__).parents[2] / "data"
WEIGHTS = (1.0, 1.0, 1.0, 1.0)
START = 1_700_000_000.0


class Facts:
    """What the statistics are told of a run."""

    current = True

    def __init__(self, run: RunDescription, summary: RunSummary | None, warnings: list[str]) -> None:
        self.run, self.summary, self.warnings = run, summary, warnings
        self.size_classes = [each.name for each in run.scenario.size_classes]


def scenario(name: str = "Mixed", classes: tuple[str, ...] = ("tiny", "big"), **changes: object) -> Scenario:
    sizes = tuple(SizeClass(each, 1000, 1000, 1, WEIGHTS) for each in classes)
    made = Scenario(name, sizes, user_count=64, run_seconds=60.0)
    return replace(made, **changes)


def steady(seconds: int, rate: int, run: RunDescription | None = None, **facts: object) -> RunStatistics:
    """The statistics of so many reads a second, the first of each second 50 ms slow, the others 5 ms."""
    collector = Collector(("worker", "storage_url"))
    count = seconds * rate
    last = np.where(np.arange(count) % rate, 0.005, 0.05)
    completed = START + 0.05 + np.arange(count) / rate
    collector.add(
        many(range(count), operation=1, worker=3, size=1000, last_byte=last, completed=completed, status=200)
    )
    summary = facts.get("summary", RunSummary(ended=START + seconds))
    assert summary is None or isinstance(summary, RunSummary)
    warnings = facts.get("warnings", [])
    assert isinstance(warnings, list)
    return make_statistics(collector, Facts(run or RunDescription(scenario(), "1.0"), summary, warnings))


def summary(statistics: RunStatistics, **options: object) -> list[str]:
    return make_run_report("summary", statistics, ReportOptions(**options)).splitlines()


def test_what_a_person_looks_for_is_there() -> None:
    workers = tuple(WorkerFacts(number, f"host-{number % 2}", "1.0") for number in range(4))
    run = RunDescription(scenario(policy="gold"), "1.0", seed=4711, storage_urls=("http://proxy/v1/AUTH_b",))
    lines = summary(steady(20, 600, run, summary=RunSummary(ended=START + 20, workers=workers)))
    assert lines[0] == "Mixed"
    head = " ".join(lines[1:4])
    assert "http://proxy/v1/AUTH_b; policy gold; 100 containers; seed 4711; 64 users;" in head
    assert "4 workers on 2 hosts; 20 s from 2023-11-14 22:13:20 UTC; ssbench 1.0" in head
    read = next(line for line in lines if line.startswith("READ")).split()
    assert read[:4] == ["READ", "12,000", "100.0", "0"]
    assert [float(each) for each in read[-5:]] == [5.0, 5.0, 5.0, 50.0, 50.0]
    assert any(line.startswith("ops/s over time: ") and "median second 600" in line for line in lines)
    (slowest,) = [line for line in lines if line.startswith("slowest")]
    assert slowest == "slowest READ 50.0 ms: at 00:00, worker 3, ssbench_000000_gold/tiny_000000"
    assert not any(line.startswith("-: ") for line in lines)
    assert len(lines) <= 25


def test_latencies_by_size_and_curves_are_those_of_the_table_in_an_open_loop_too() -> None:
    """They were from when operations were sent; the table and -v have them from when they were due."""
    run = RunDescription(scenario(rate=4.0), "1.0")
    completed = START + np.arange(1, 81) / 4
    made = many(
        range(80), operation=1, size_class=np.arange(80) % 2, size=1000, last_byte=0.1, completed=completed
    )
    facts = Facts(run, RunSummary(ended=START + 20), [])
    collector = Collector()
    collector.add(made.having(due=completed - 0.5))
    numbers = make_statistics(collector, facts)
    (line,) = (line for line in summary(numbers) if line.startswith("by size: "))
    assert re.match(r"by size: tiny READ p50 500\.0 ms, .* \| big READ p50 500\.0 ms, ", line)
    drawn = make_run_curves(numbers, "r").latencies["READ"].y
    assert (drawn.min(), drawn.max()) == (pytest.approx(500.0), pytest.approx(500.0))


def test_what_stands_for_a_percentile_that_is_not_known_is_said() -> None:
    lines = summary(steady(6, 100))
    assert next(line for line in lines if line.startswith("ALL")).split()[-3:-1] == ["-", "-"]
    assert "-: too few operations (needed: p99 1,000, p99.9 10,000)" in lines


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (RunSummary(ended=START + 20, interrupted=True), "Mixed - INTERRUPTED after 20 s of 60 s"),
        (None, "Mixed - INCOMPLETE after 20 s of 60 s"),
    ],
)
def test_a_run_that_ended_early_says_so_at_the_head(ended: RunSummary | None, said: str) -> None:
    assert summary(steady(20, 10, summary=ended))[0].startswith(said)


def test_the_time_at_the_end_in_which_nothing_ended_is_of_the_run() -> None:
    """All that was sent in the first instant, and was never answered, took the time until the run gave up."""
    numbers = steady(1, 4, summary=RunSummary(ended=START + 64, ended_early=True, error_code=4))
    numbers = replace(numbers, end=START + 0.00005, start=START, sending=64.1)
    assert summary(numbers)[0] == "Mixed - ENDED EARLY after 64.1 s of 60 s"
    (reason,) = (each for each in find_ending_reasons(numbers) if each.exit_code == ExitCode.WORKERS)
    assert reason.text == "the run ended early, after 64.1 s; a warning says why"


def test_operations_that_were_not_done_are_counted_at_the_head() -> None:
    run = RunDescription(scenario(run_seconds=None, operation_count=1000), "1.0")
    ended = RunSummary(ended=START + 20, interrupted=True)
    lines = summary(steady(20, 10, run, summary=ended))
    assert lines[0].startswith("Mixed - INTERRUPTED after 20 s, 200 of 1,000 operations")


def test_bars_are_plain_where_the_encoding_has_no_others() -> None:
    statistics = steady(30, 10)
    assert "█" in "".join(summary(statistics))
    plain = "\n".join(summary(statistics, encoding="ascii"))
    assert plain.isascii()
    assert columns.draw_bars([0, 1, 2, 4], "latin-1") == "_:=#"
    assert columns.draw_bars([0, 1, 2, 4], "utf-8") == "▁▃▅█"
    assert columns.draw_bars([], "utf-8") == ""
    assert columns.draw_bars([0, 0], "no such encoding") == "__"


def test_a_second_without_operations_is_seen_in_a_long_run() -> None:
    collector = Collector()
    completed = np.concatenate([np.arange(0, 1000), np.arange(1500, 2000)]) + START + 0.5
    collector.add(many(range(1500), operation=1, size=10, last_byte=0.01, completed=completed, status=200))
    ended = RunSummary(ended=START + 2000)
    statistics = make_statistics(collector, Facts(RunDescription(scenario()), ended, []))
    (line,) = [line for line in summary(statistics, encoding="ascii") if line.startswith("ops/s over")]
    picture = line.removeprefix("ops/s over time: ").split(" ")[0]
    assert "_____" in picture
    assert picture.count("#") > len(picture) // 2


def test_many_warnings_are_counted(golden_words: GoldenWords) -> None:
    lines = summary(steady(3, 10, warnings=[f"warning {number}" for number in range(50)]))
    golden_words([line for line in lines if line.startswith("! ")][-1])
    assert len(lines) <= 25


@pytest.mark.parametrize("path", sorted(DATA.glob("*.stat.gz")), ids=lambda path: path.name)
def test_a_file_of_version_1_has_a_summary(path: Path) -> None:
    lines = summary(summarize(open_results(path)))
    assert any(line.endswith(("ssbench 1.0", "ssbench 1.0.0")) for line in lines[1:4])
    assert max(map(columns.measure_width, lines)) <= 80


_TEXTS = st.text(max_size=60)


@settings(max_examples=12, deadline=None)
@given(
    name=_TEXTS,
    classes=st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=9, unique=True),
    cause=st.text(min_size=1, max_size=200),
    urls=st.lists(st.text(min_size=1, max_size=200), max_size=3),
    warnings=st.lists(st.text(max_size=300), max_size=9),
    host=_TEXTS,
    size=st.integers(0, 2**40),
    seconds=st.floats(1e-6, 100),
    verbose=st.booleans(),
)
def test_no_line_is_wider_than_80_columns(
    name: str,
    classes: list[str],
    cause: str,
    urls: list[str],
    warnings: list[str],
    host: str,
    size: int,
    seconds: float,
    verbose: bool,
) -> None:
    collector = Collector(("worker", "storage_url"))
    rows = [
        row(
            operation=number % 4,
            size_class=number % len(classes),
            worker=number,
            last_byte=seconds,
            completed=START + number * seconds,
            size=size,
        )
        for number in range(40)
    ]
    ids = [f"tx{number}-ssb-01234567{cause}" for number in range(40)]
    collector.add(block(rows, ids, {5: Failure(cause, "", {cause: 3}), 6: Failure("HTTP 503", "", {})}))
    run = RunDescription(scenario(name, tuple(classes)), "1.0", storage_urls=tuple(urls))
    ended = RunSummary(ended=START, workers=tuple(WorkerFacts(number, host, "1.0") for number in range(40)))
    lines = summary(make_statistics(collector, Facts(run, ended, warnings)), verbose=verbose)
    assert max(map(columns.measure_width, lines)) <= 80


def test_the_length_of_a_run_agrees_with_the_whole_seconds_of_the_table() -> None:
    statistics = replace(steady(4, 600), end=START + 3.74)
    seconds = re.search(r"(\S+) s from 2023", " ".join(summary(statistics)[1:4]))
    assert seconds is not None
    (whole,) = re.findall(r"\((\d+)s\)$", make_run_report("table", statistics, ReportOptions()), re.M)
    assert "." in seconds[1]
    assert int(float(seconds[1])) == int(whole)
