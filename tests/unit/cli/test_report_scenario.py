"""The sub-command report-scenario: which report, of which file, and what is said of broken ones."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from golden_words import GoldenWords
from known_reports import FULL, LONG_SUMMARY, SECONDS, SUMMARY_TEXT, TABLE
from known_results import SCENARIO, SUMMARY, write_known
from old_formats import msgpack_file, success
from said import STAT_FILE_ITSELF, WORKER_DISTRIBUTION

from ssbench.base.errors import ExitCode
from ssbench.cli.master import main
from ssbench.reports import csv
from ssbench.reports.writing import ReportOptions, write_report
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return write_known(tmp_path / "known.stat.gz")


def numbers(path: Path) -> RunStatistics:
    return summarize(open_results(path))


def test_percentiles_of_the_command_line(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report-scenario", "-s", str(known), "--pctile", "99,50", "--pctile", "50"]) == 0
    expected = io.StringIO()
    write_report("both", numbers(known), ReportOptions(99, (50,)), expected)
    assert capsys.readouterr().out == expected.getvalue()


def test_report_scenario(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report-scenario", "-s", str(known), "-r", "-"]) == 0
    out, err = capsys.readouterr()
    assert out == SUMMARY_TEXT + TABLE + SECONDS
    assert err == f"WARNING:{known}: worker 1 was busy\n"


def test_the_report_of_an_old_file_has_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "old.stat"
    old.write_bytes(msgpack_file([[success(), success()]]))
    assert main(["report-scenario", "-s", str(old)]) == 0
    summary, _, table = capsys.readouterr().out.partition("Worker count:")
    assert "ALL " in summary
    assert WORKER_DISTRIBUTION in table


@pytest.mark.parametrize(
    ("options", "expected"),
    [([], TABLE), (["--report", "summary"], SUMMARY_TEXT), (["-v"], FULL)],
    ids=["no option", "summary", "v"],
)
def test_a_file_for_the_report_gets_the_table_that_scripts_look_for(
    known: Path, tmp_path: Path, options: list[str], expected: str
) -> None:
    path = tmp_path / "report"
    assert main(["report-scenario", "-s", str(known), "-f", str(path), *options]) == 0
    assert path.read_text() == expected


def test_a_variable_chooses_the_report_of_a_file(
    known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSBENCH_REPORT", "summary")
    path = tmp_path / "report"
    assert main(["report-scenario", "-s", str(known), "-f", str(path)]) == 0
    assert path.read_text() == SUMMARY_TEXT


def test_a_variable_chooses_the_report(
    known: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SSBENCH_REPORT", "table")
    assert main(["report-scenario", "-q", str(known)]) == 0
    assert capsys.readouterr().out == TABLE


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], SUMMARY_TEXT + TABLE),
        (["--report", "both"], SUMMARY_TEXT + TABLE),
        (["--report", "table"], TABLE),
        (["--report", "summary"], SUMMARY_TEXT),
        (["--report", "full"], FULL),
        (["-v"], FULL),
        (["-v", "--report", "summary"], LONG_SUMMARY),
    ],
    ids=["no option", "both", "table", "summary", "full", "v", "v summary"],
)
def test_the_parts_of_a_report(
    known: Path, options: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report-scenario", "-s", str(known), *options]) == 0
    assert capsys.readouterr().out == expected


def test_report_scenario_into_files(known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, seconds = tmp_path / "report", tmp_path / "seconds"
    command = [
        "report-scenario",
        "-s",
        str(known),
        "-f",
        str(report),
        "--rps_histogram",
        str(seconds),
        "--csv",
    ]
    assert main([*command, "--pctile", "99.9"]) == 0
    assert capsys.readouterr().out == ""
    assert report.read_text() == csv.make_run_csv(numbers(known), ReportOptions(99.9))
    assert seconds.read_text().count("\n") == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "/nonexistent"], "ERROR:/nonexistent: cannot be read: No such file or directory\n"),
        (["-s", "/"], "ERROR:/: not a file\n"),
        (["-s", "KNOWN", "-f", "/nonexistent/report"], "ERROR:/nonexistent/report: cannot be written: "),
        (["-s", "KNOWN", "-f", "KNOWN"], f"ERROR:KNOWN: {STAT_FILE_ITSELF}\n"),
        (["-s", "KNOWN", "-r", "KNOWN"], f"ERROR:KNOWN: {STAT_FILE_ITSELF}\n"),
    ],
)
def test_report_scenario_says_in_one_line_what_is_wrong(
    known: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = known.read_bytes()
    assert main(["report-scenario", *(word.replace("KNOWN", str(known)) for word in arguments)]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines(keepends=True) if line.startswith("ERROR")]
    assert len(errors) == 1
    assert errors[0].startswith(message.replace("KNOWN", str(known)))
    assert known.read_bytes() == before


@pytest.mark.parametrize("percentile", ["0", "-1", "100.5", "nan", "many"])
def test_a_percentile_that_is_none(
    known: Path, percentile: str, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["report-scenario", "-s", str(known), f"--pctile={percentile}"])
    assert caught.value.code == 2
    golden_words(capsys.readouterr().err)


def test_report_scenario_says_where_a_damaged_file_breaks_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.stat"
    path.write_bytes(msgpack_file([[success()] * 30])[:-40])
    assert main(["report-scenario", "-s", str(path)]) == ExitCode.FAILED
    out, err = capsys.readouterr()
    warning = "the file is cut off: this is about the 29 results before that"
    assert f"\n! {warning}\n\n" in out
    assert err == f"WARNING:{path}: {warning}\n"
    assert main(["export", "-s", str(path), "-o", str(tmp_path / "cut.csv")]) == ExitCode.FAILED
    assert warning in capsys.readouterr().err


def test_a_run_that_did_not_end_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    """Its report said FAILED, with exit code 0."""
    path = tmp_path / "under_way.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO, version="1.0"))
    try:
        assert main(["report-scenario", "-s", str(path)]) == ExitCode.FAILED
    finally:
        writer.end(SUMMARY)
    golden_words(capsys.readouterr().err)
    assert main(["report-scenario", "-s", str(path)]) == 0


def test_a_warning_of_a_file_cannot_move_the_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_known(
        tmp_path / "evil.stat.gz", summary=RunSummary(ended=1e9, warnings=("\x1b[2J\r\x9bhello",))
    )
    assert main(["report-scenario", "-s", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == f"WARNING:{path}: \ufffd[2J\ufffd\ufffdhello\n"
    assert "\ufffd[2J\ufffd\ufffdhello\n" in out


def test_the_name_that_a_run_was_given_is_found_with_the_ending_that_it_added(
    known: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-q", "report-scenario", "-s", str(known).removesuffix(".gz"), "--report", "table"]) == 0
    assert capsys.readouterr().out == TABLE
    assert main(["-q", "report-scenario", str(known.with_name("other"))]) == 2
    assert "other.gz" not in capsys.readouterr().err
