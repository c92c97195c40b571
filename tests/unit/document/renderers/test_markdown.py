"""The short report in Markdown, and the verdict at its head."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from full_run import write_full_run
from golden_words import GoldenWords
from old_formats import msgpack_file, success

from ssbench.cli.master import main
from ssbench.document.elements import Tone
from ssbench.document.units import format_number, format_share
from ssbench.reports.verdict_words import make_verdict_words
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.reading import open_results
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

KNOWN = Path(__file__).parents[3] / "data" / "version-1-known.stat.gz"


def old(folder: Path, *results: dict[str, object]) -> RunStatistics:
    path = folder / "old.stat"
    path.write_bytes(msgpack_file([list(results)] if results else []))
    return summarize(open_results(path))


def test_the_report_of_known_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-q", "report-scenario", "-s", str(KNOWN), "--ci", "md=-"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "### \u274c Known results: FAILED: 2.00 ops/s; 5 operations; 0.750 of 4 users; 4 of 1.5 s;"
        " CREATE 20.0 of 18.8 %; READ 60.0 of 43.8 %; UPDATE 0.00 of 18.8 %; DELETE 20.0 of 18.8 %; 2 errors;"
        " 37.5 % of requests retried"
    )
    assert lines[2].startswith("policy gold; 100 containers; 4 users; 2 workers; 4 s from 2001-09-09")
    (create,) = (line for line in lines if line.startswith("| CREATE | 1 | 20.0 | 0 | 1.00 | 0.00250 | "))
    assert create.endswith(" | - | - | - | - | 250.0 |")
    assert any(line.startswith("| **ALL** | 3 | 100.0 | 2 | 2.00 | 0.00500 | ") for line in lines)
    assert "- 2 of 5 operations failed (40.0 %): 1 x lost worker, 1 x short body." in lines
    assert "| short body | 1 | 20.0 | - | - |  | READ 1 | `tx3` |" in lines
    assert "- worker 1 was busy" in lines


def test_nothing_in_names_is_markup(tmp_path: Path) -> None:
    statistics = summarize(open_results(write_full_run(tmp_path / "run.stat.gz")))
    text = make_run_report("summary_md", statistics, ReportOptions())
    assert "Füll \\<b\\>\\&\\|:" in text
    assert "w \\</script\\> @\u2060all" in text
    tables = [
        {line.count("|") for line in table}
        for is_table, table in groupby(text.splitlines(), lambda line: line.startswith("|"))
        if is_table
    ]
    assert len(tables) > 3
    assert all(len(counts) == 1 for counts in tables)  # each row has as many columns as the head


def test_verdicts(tmp_path: Path, golden_words: GoldenWords) -> None:
    options = ReportOptions()
    good = make_verdict_words(
        old(tmp_path, *(success(completed=1e9 + number) for number in range(100))), options
    )
    assert good.tone is Tone.GOOD
    assert good.line == (
        "GOOD: 1.01 ops/s; 100 of 100 operations; up to 8 users; 99 s; CREATE 0.00 of 22.5 %; READ 100.0 of"
        " 56.2 %; UPDATE 0.00 of 12.5 %; DELETE 0.00 of 8.75 %; 0 errors"
    )
    assert good.sentences == ("All 100 operations succeeded.",)
    assert good.details == ["READ: half took at most 20.0 ms, 90 % at most 20.0 ms."]
    assert make_verdict_words(old(tmp_path), options).line == "FAILED: no result"
    interrupted = write_full_run(tmp_path / "run.stat.gz", interrupted=True)
    found = make_verdict_words(summarize(open_results(interrupted)), options)
    assert found.tone is Tone.BAD
    assert found.line.startswith("INTERRUPTED: ")
    golden_words(found.sentences[0])


def test_numbers() -> None:
    assert [format_number(value) for value in (0.5, 12.34, 1234.5, float("inf"))] == [
        "0.500",
        "12.3",
        "1,234",
        "inf",
    ]
    assert [format_share(*each) for each in ((0, 0), (1, 10**6), (1, 3), (0, 5))] == [
        "0.00 %",
        "<0.01 %",
        "33.3 %",
        "0.00 %",
    ]
