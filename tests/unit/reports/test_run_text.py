"""The report of a run as text: known results to the last space, and what is unusual in others."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from known_reports import FULL, LONG_SUMMARY, TABLE
from known_results import FAILURES, ROWS, SCENARIO, SUMMARY, write_known
from old_formats import failure, msgpack_file, success

from ssbench.reports import csv, run_text
from ssbench.reports.writing import ReportOptions, write_report
from ssbench.results.block import ResultRow
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunSummary
from ssbench.scenario.model import SizeClass
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

NEW_SECTIONS = FULL.removeprefix(TABLE).removesuffix("\n" + LONG_SUMMARY)


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return write_known(tmp_path / "known.stat.gz")


def numbers(path: Path) -> RunStatistics:
    return summarize(open_results(path))


def test_the_report_of_known_results(known: Path) -> None:
    assert run_text.make_sections_report(numbers(known), ReportOptions(95)) == TABLE + NEW_SECTIONS


def test_further_percentiles_stand_behind_what_one_percentile_gives(known: Path) -> None:
    found, options = numbers(known), ReportOptions(95, (50, 99.9))
    report, plain = (
        run_text.make_sections_report(found, options),
        run_text.make_sections_report(found, ReportOptions(95)),
    )
    before, title, further = report.partition("\nFurther percentiles\n")
    assert title
    assert plain.startswith(before)
    assert further.splitlines()[0].split() == ["Latency", "in", "ms", "n", "p50", "p99.9"]
    names, values = csv.make_run_csv(found, options).splitlines()
    plain_names, plain_values = csv.make_run_csv(found, ReportOptions(95)).splitlines()
    assert names.startswith(plain_names)
    assert values.startswith(plain_values)
    middle = found.total.lines[0].last_byte.percentile(50)
    new = dict(zip(names.split(","), values.split(","), strict=True))
    assert float(new['"total_last_all_50_pctile"']) == round(middle, 6)
    assert sum(name == '"total_last_all_50_pctile"' for name in names.split(",")) == 1


def test_a_run_with_nothing_new_has_just_the_table_and_figures(tmp_path: Path) -> None:
    plain = write_known(tmp_path / "plain.stat.gz", ROWS[:3], {}, RunSummary(ended=1e9))
    report = run_text.make_sections_report(numbers(plain), ReportOptions(95))
    behind = report.partition("stddev:   0.500)\n")[2]
    assert behind.startswith("\nRun\n")
    assert behind.endswith("  ALL last         3    -    -    -    -    -      -       -   1500\n")


def test_an_old_file_with_errors_has_just_the_table(tmp_path: Path) -> None:
    path = tmp_path / "old.stat"
    path.write_bytes(msgpack_file([[success(), failure()]]))
    assert (
        run_text.make_sections_report(numbers(path), ReportOptions(95))
        .splitlines()[-1]
        .startswith("Distribution of requests")
    )
    assert "lost" not in csv.make_run_csv(numbers(path), ReportOptions(95))


@pytest.mark.parametrize("percentile", [1, 5, 99.99, 100])
def test_any_percentile(known: Path, percentile: float) -> None:
    report = run_text.make_sections_report(numbers(known), ReportOptions(percentile))
    heads = [line for line in report.splitlines() if "std_dev" in line]
    assert f"{percentile}%-ile" in heads[0]
    usual = next(line for line in TABLE.splitlines() if "std_dev" in line)
    assert heads[0].index("Worst latency TX ID") == usual.index("Worst latency TX ID")


@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS[4:]], ids=["none", "one", "lost only"])
def test_few_results(tmp_path: Path, rows: list[ResultRow]) -> None:
    failures = {0: FAILURES[4]} if rows == ROWS[4:] else {}
    few = numbers(write_known(tmp_path / "few.stat.gz", rows, failures, RunSummary(ended=1e9)))
    report = run_text.make_sections_report(few, ReportOptions(100))
    assert "TOTAL\n" in report
    assert ("there is no result in this stat file" in report) == (not rows)
    assert csv.make_run_csv(few, ReportOptions(100)).count("\n") == 2


def test_no_time_passed_prints_inf(tmp_path: Path) -> None:
    rows: list[ResultRow] = [(1, 0, 1, 1, 1, 1, 0.0, 0.0, 1e9, 200)]
    instant = numbers(write_known(tmp_path / "inf.stat.gz", rows, {}, RunSummary(ended=1e9)))
    assert "Average requests per second:   inf\n" in run_text.make_sections_report(instant, ReportOptions(95))
    assert ",inf," in csv.make_run_csv(instant, ReportOptions(95))


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "  0  B"),
        (999, "999  B"),
        (1000, "  1 kB"),
        (1499, "  1 kB"),
        (1500, "  2 kB"),
        (2500, "  3 kB"),
        (999_499, "999 kB"),
        (999_500, "  1 MB"),  # as ssbench 0.3.9 had it
        (999_499_999, "999 MB"),
        (999_500_000, "  1 GB"),
        (5 * 10**9, "  5 GB"),
        (10**12, "  1 TB"),
        (10**15, "  1 PB"),
        (3 * 10**21, "3000 EB"),
    ],
)
def test_sizes(tmp_path: Path, size: int, shown: str) -> None:
    classes = (SizeClass("x", size, size, 1, (1.0, 0.0, 0.0, 0.0)),)
    path = write_known(tmp_path / "size.stat.gz", [], {}, SUMMARY, replace(SCENARIO, size_classes=classes))
    assert f"      {shown:15}  x\n" in run_text.make_sections_report(numbers(path), ReportOptions(95))


def test_names_cannot_break_the_report_or_the_terminal(tmp_path: Path) -> None:
    name = "políticas / テスト\x1b[2J\nTOTAL\u2028 🐌"
    path = write_known(tmp_path / "name.stat.gz", [], {}, SUMMARY, replace(SCENARIO, name=name))
    report = run_text.make_sections_report(numbers(path), ReportOptions(95))
    assert report.splitlines()[1].startswith("políticas / テスト\ufffd[2J\ufffdTOTAL\ufffd 🐌  (generated")
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write_report("both", numbers(path), ReportOptions(), out)
    out.seek(0)
    assert "pol?ticas / ???" in out.read()
