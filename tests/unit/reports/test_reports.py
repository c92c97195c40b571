"""Reports of known results, to the last space, and the sub-commands that print and export them."""

from __future__ import annotations

import csv as csv_module
import io
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import golden
import pytest
from known_results import FAILURES, ROWS, SCENARIO, SUMMARY, write_known
from old_formats import failure, msgpack_file, success

from ssbench.base.errors import ExitCode
from ssbench.cli.master import main
from ssbench.reports import csv, run_text
from ssbench.reports.writing import ReportOptions, write_report
from ssbench.reports.writing import make_run_report as make_report
from ssbench.results.block import LOST_CAUSE, ResultRow
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import SizeClass
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

TABLE = """
Known results  (generated with ssbench version 1.0)
Worker count:   2   Concurrency:   4  Ran 2001-09-09 01:46:40 UTC to 2001-09-09 01:46:44 UTC (4s)
Object expiration (X-Delete-After): 60 (sec)

% Ops    C   R   U   D       Size Range       Size Name
 75%   % 25  25  25  25        3 kB           tiny
 25%   %  0  100   0   0      999 GB -   1 TB  huge
---------------------------------------------------------------------
         19  44  19  19      CRUD weighted average

TOTAL
       Count:     3 (    2 error;     3 retries: 100.00%)  Average requests per second:   2.0
                            min       max      avg      std_dev  95%-ile                   Worst latency TX ID
       First-byte latency:  0.125 -   0.250    0.188  (  0.062)    0.250  (all obj sizes)  tx2
       Last-byte  latency:  0.250 -   1.500    0.750  (  0.540)    1.500  (all obj sizes)  tx2
       First-byte latency:  0.125 -   0.125    0.125  (  0.000)    0.125  (    tiny objs)  tx1
       Last-byte  latency:  0.250 -   0.500    0.375  (  0.125)    0.500  (    tiny objs)  tx1
       First-byte latency:  0.250 -   0.250    0.250  (  0.000)    0.250  (    huge objs)  tx2
       Last-byte  latency:  1.500 -   1.500    1.500  (  0.000)    1.500  (    huge objs)  tx2

CREATE
       Count:     1 (    0 error;     0 retries:  0.00%)  Average requests per second:   1.0
                            min       max      avg      std_dev  95%-ile                   Worst latency TX ID
       First-byte latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (all obj sizes)  \n\
       Last-byte  latency:  0.250 -   0.250    0.250  (  0.000)    0.250  (all obj sizes)  tx0
       First-byte latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (    tiny objs)  \n\
       Last-byte  latency:  0.250 -   0.250    0.250  (  0.000)    0.250  (    tiny objs)  tx0

READ
       Count:     2 (    1 error;     3 retries: 150.00%)  Average requests per second:   1.0
                            min       max      avg      std_dev  95%-ile                   Worst latency TX ID
       First-byte latency:  0.125 -   0.250    0.188  (  0.062)    0.250  (all obj sizes)  tx2
       Last-byte  latency:  0.500 -   1.500    1.000  (  0.500)    1.500  (all obj sizes)  tx2
       First-byte latency:  0.125 -   0.125    0.125  (  0.000)    0.125  (    tiny objs)  tx1
       Last-byte  latency:  0.500 -   0.500    0.500  (  0.000)    0.500  (    tiny objs)  tx1
       First-byte latency:  0.250 -   0.250    0.250  (  0.000)    0.250  (    huge objs)  tx2
       Last-byte  latency:  1.500 -   1.500    1.500  (  0.000)    1.500  (    huge objs)  tx2

DELETE
       Count:     0 (    1 error;     0 retries:  0.00%)  Average requests per second:   0.0
                            min       max      avg      std_dev  95%-ile                   Worst latency TX ID
       First-byte latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (all obj sizes)  \n\
       Last-byte  latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (all obj sizes)  \n\
       First-byte latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (    tiny objs)  \n\
       Last-byte  latency:  N/A   -   N/A      N/A    (  N/A  )    N/A    (    tiny objs)  \n\

Distribution of requests per worker-ID:  1.000 -   2.000 (avg:   1.500; stddev:   0.500)
"""
SECONDS = '"Seconds Since Start","Requests Completed","Partial"\n1,2,0\n2,0,1\n3,1,1\n'
SUMMARY_TEXT, LONG_SUMMARY, FULL = map(
    golden.kept_text, ("known-summary", "known-summary-verbose", "known-full")
)
NEW_SECTIONS = FULL.removeprefix(TABLE).removesuffix("\n" + LONG_SUMMARY)


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return write_known(tmp_path / "known.stat.gz")


def numbers(path: Path) -> RunStatistics:
    return summarize(open_results(path))


def test_the_report_of_known_results(known: Path) -> None:
    assert run_text.make_sections_report(numbers(known), ReportOptions(95)) == TABLE + NEW_SECTIONS


def test_each_output_counts_a_lost_operation_among_the_errors(known: Path) -> None:
    """The old table said 1 error, and the summary 2."""
    found = numbers(known)
    table = re.findall(r"Count: +\d+ \( *(\d+) error", run_text.make_table_report(found, ReportOptions(95)))
    rows = re.findall(
        r"^[A-Z]+ +\d+ +[\d.]+ +(\d+)", run_text.make_summary_report(found, ReportOptions(95)), re.MULTILINE
    )
    names, values = (line.split(",") for line in csv.make_run_csv(found, ReportOptions(95)).splitlines())
    columns = [value for name, value in zip(names, values, strict=True) if name.endswith('_errors"')]
    page = make_report("summary_md", found, ReportOptions(95)).partition("#### Operations\n\n")[2]
    marked = [line.split("|")[4].strip() for line in page.partition("\n\n")[0].splitlines()[2:]]
    assert table == columns == ["2", "0", "1", "1"]
    assert rows == marked == ["0", "1", "1", "2"]
    assert sum(cause.count for cause in found.errors.values()) == found.total.failed == 2


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


def test_percentiles_of_the_command_line(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report-scenario", "-s", str(known), "--pctile", "99,50", "--pctile", "50"]) == 0
    expected = io.StringIO()
    write_report("summary", numbers(known), ReportOptions(99, (50,)), expected)
    assert capsys.readouterr().out == expected.getvalue()


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


def test_the_csv_of_known_results(known: Path) -> None:
    report = csv.make_run_csv(numbers(known), ReportOptions(99.9))
    assert report.count("\n") == 2
    header, data = csv_module.reader(io.StringIO(report))
    columns = dict(zip(header, data, strict=True))
    assert header[:8] == [
        "scenario_name",
        "ssbench_version",
        "worker_count",
        "concurrency",
        "start_time",
        "stop_time",
        "duration",
        "delete_after",
    ]
    assert header[8:15] == [
        "total_count",
        "total_errors",
        "total_retries",
        "total_retry_rate",
        "total_avg_req_per_s",
        "total_first_all_min",
        "total_first_all_max",
    ]
    assert columns["duration"] == "4.0"
    assert columns["total_first_all_99.9_pctile"] == "0.25"
    assert columns["total_last_all_std_dev"] == "0.540062"
    assert columns["read_last_huge_worst_txid"] == "tx2"
    assert columns["create_first_all_min"].strip() == "N/A"
    new = header.index("total_lost")
    assert header[new : new + 5] == ["total_lost", "create_lost", "read_lost", "delete_lost", "not_sendable"]
    assert data[new : new + 5] == ["1", "0", "0", "1", "2"]
    assert header[new + 5 : new + 7] == ["total_bytes", "total_bytes_per_s"]
    assert data[new + 5 : new + 7] == [str(10**12 + 5000), "5000.0"]
    assert columns["read_last_tiny_50_pctile"] == "0.5"
    assert len(set(header)) == len(header)
    assert report.splitlines()[1].startswith('"Known results","1.0",2,4,"2001-09-09 01:46:40 UTC"')


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


def test_control_characters_of_a_transaction_id_reach_no_csv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "evil.stat"
    path.write_bytes(msgpack_file([[success(trans_id="tx\x1b[2J\r\n1")]]))
    assert (
        csv.make_run_csv(numbers(path), ReportOptions(95)).splitlines()[1].count('"tx\ufffd[2J\ufffd\ufffd1"')
        > 1
    )
    assert main(["-q", "export", "-s", str(path)]) == 0
    exported = capsys.readouterr().out
    assert "tx\ufffd[2J\ufffd\ufffd1" in exported
    assert not re.search("[\x00-\x09\x0b-\x1f]", exported)


# --- report-scenario ---


def test_report_scenario(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report-scenario", "-s", str(known), "-r", "-"]) == 0
    out, err = capsys.readouterr()
    assert out == SUMMARY_TEXT + SECONDS
    assert err == f"WARNING:{known}: worker 1 was busy\n"


def test_the_report_of_an_old_file_begins_with_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.stat"
    old.write_bytes(msgpack_file([[success(), success()]]))
    assert main(["report-scenario", "-s", str(old)]) == 0
    table, _, summary = capsys.readouterr().out.partition("Distribution of requests per worker-ID")
    assert "Worker count:" in table
    assert "ALL " in summary


def test_a_variable_chooses_the_report(
    known: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SSBENCH_REPORT", "table")
    assert main(["report-scenario", "-q", str(known)]) == 0
    assert capsys.readouterr().out == TABLE


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--report", "both"], TABLE + "\n" + SUMMARY_TEXT),
        (["--report", "table"], TABLE),
        (["--report", "summary"], SUMMARY_TEXT),
        (["--report", "full"], FULL),
        (["-v"], FULL),
        (["-v", "--report", "summary"], LONG_SUMMARY),
    ],
    ids=["both", "table", "summary", "full", "v", "v summary"],
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
        (["-s", "KNOWN", "-f", "KNOWN"], "ERROR:KNOWN: that is the stat file itself\n"),
        (["-s", "KNOWN", "-r", "KNOWN"], "ERROR:KNOWN: that is the stat file itself\n"),
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


def last_error(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("ERROR:")]
    return line.removeprefix("ERROR:")


OUTPUTS = [["report-scenario", "-f"], ["report-scenario", "-f", "-", "-r"], ["export", "-o"]]


@pytest.mark.parametrize("command", OUTPUTS)
def test_an_output_that_exists_is_overwritten_only_with_force(
    known: Path, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "my.yaml"
    mine.write_text("mine")
    arguments = [*command, str(mine), "-s", str(known)]
    assert main(arguments) == 2
    assert last_error(capsys) == f"{mine}: exists already; give another name, or --force to overwrite it"
    assert mine.read_text() == "mine"
    link = tmp_path / "link"
    link.symlink_to(mine)
    assert main([*command, str(link), "-s", str(known), "--force"]) == 0
    assert link.is_symlink()
    assert mine.read_text() not in {"mine", ""}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["known.stat.gz", "link", "my.yaml"]


@pytest.mark.parametrize("command", OUTPUTS)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("/tmp", "/tmp: is not a regular file"),
        ("x" * 300, "File name too long"),
        ("\ud800", "no file can have this name here"),
        ("/nonexistent/x", "/nonexistent/x: cannot be written: No such file or directory"),
    ],
)
def test_an_output_that_cannot_be(
    known: Path, command: list[str], name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, name, "-s", str(known)]) == 2
    assert message in last_error(capsys)


def test_two_outputs_need_two_files(known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert main(["report-scenario", "-s", str(known), "-f", out, "-r", out]) == 2
    assert last_error(capsys) == f"{out}: given for two outputs"


def test_an_export_that_fails_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cut.stat"
    path.write_bytes(msgpack_file([[success()]])[:-40])
    assert main(["export", "-s", str(path), "-o", str(tmp_path / "out.csv")]) == 2
    assert "no result stands before that" in last_error(capsys)
    assert [each.name for each in tmp_path.iterdir()] == ["cut.stat"]


def test_a_pipe_takes_a_report_when_somebody_reads_it(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert main(["report-scenario", "-s", str(known), "-f", str(pipe)]) == 2
    assert last_error(capsys).startswith(f"{pipe}: cannot be written: ")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main(["report-scenario", "-s", str(known), "-f", str(pipe)]) == 0
        assert os.read(reader, 65536).decode() == SUMMARY_TEXT
    finally:
        os.close(reader)


@pytest.mark.parametrize("percentile", ["0", "-1", "100.5", "nan", "many"])
def test_a_percentile_that_is_none(known: Path, percentile: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["report-scenario", "-s", str(known), f"--pctile={percentile}"])
    assert caught.value.code == 2
    assert "is not a percentile from 1 to 100" in capsys.readouterr().err


def test_report_scenario_says_where_a_damaged_file_breaks_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.stat"
    path.write_bytes(msgpack_file([[success()] * 30])[:-40])
    assert main(["report-scenario", "-s", str(path)]) == ExitCode.FAILED
    out, err = capsys.readouterr()
    warning = "the file is cut off: this is about the 29 results before that"
    assert out.endswith(f"\n! {warning}\n")
    assert err == f"WARNING:{path}: {warning}\n"
    assert main(["export", "-s", str(path), "-o", str(tmp_path / "cut.csv")]) == ExitCode.FAILED
    assert warning in capsys.readouterr().err


def test_a_run_that_did_not_end_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its report said FAILED, with exit code 0."""
    path = tmp_path / "under_way.stat.gz"
    writer = RunResultsWriter(path, RunDescription(SCENARIO, version="1.0"))
    try:
        assert main(["report-scenario", "-s", str(path)]) == ExitCode.FAILED
    finally:
        writer.end(SUMMARY)
    assert "the run is still under way, was killed, or its disk was full" in capsys.readouterr().err
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


def test_a_profile_says_where_it_is(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report-scenario", "-s", str(known), "--profile"]) == 0
    line = capsys.readouterr().err.splitlines()[-1]
    profile = Path(line.removeprefix("INFO:Profile written to "))
    assert profile.stat().st_size > 100
    profile.unlink()


# --- export ---

EXPECTED = [
    {
        "operation": "create",
        "size_class": "tiny",
        "worker_id": "1",
        "container": "ssbench_000000_gold",
        "object": "tiny_000007",
        "size": 2500,
        "first_byte_latency": None,
        "last_byte_latency": 0.25,
        "completed_at": 1_000_000_000.5,
        "retries": 0,
        "trans_id": "tx0",
        "error": None,
        "error_detail": None,
        "retried": None,
        "status": 201,
        "started_at": 1_000_000_000.25,
        "due_at": None,
        "attempts": 1,
        "storage_url": "http://a/v1/x",
        "stage": None,
        "expected_size": 2500,
        "marks": 0,
        "last_attempt": 0.25,
        "connections": 0,
        "group": None,
    },
    {
        "operation": "read",
        "size_class": "tiny",
        "worker_id": "2",
        "container": "ssbench_000003_gold",
        "object": "tiny_000002",
        "size": 0,
        "first_byte_latency": None,
        "last_byte_latency": None,
        "completed_at": 1_000_000_003.0,
        "retries": 1,
        "trans_id": "tx3",
        "error": "short body",
        "error_detail": "12 of 2500 bytes",
        "retried": "HTTP 408: 1",
        "status": 200,
        "started_at": None,
        "due_at": None,
        "attempts": 2,
        "storage_url": "http://a/v1/x",
        "stage": None,
        "expected_size": 0,
        "marks": 0,
        "last_attempt": None,
        "connections": 0,
        "group": None,
    },
]


def exported_rows(rows: list[dict[str, Any]], default: set[object]) -> list[dict[str, Any]]:
    """Return two rows of an export, without the columns of what they do not have."""
    found = [rows[0], rows[3]]
    assert {value for row in found for name, value in row.items() if name not in EXPECTED[0]} <= default
    return [{name: row[name] for name in EXPECTED[0]} for row in found]


def test_export_as_json_lines(known: Path, tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    assert main(["export", "-s", str(known), "-o", str(out)]) == 0
    exported = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(exported) == len(ROWS)
    assert exported_rows(exported, {0, None}) == EXPECTED
    assert (exported[4]["worker_id"], exported[4]["error"]) == (None, LOST_CAUSE)


def test_export_as_csv(known: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["export", "-s", str(known)]) == 0
    exported = list(csv_module.DictReader(io.StringIO(capfdbinary.readouterr().out.decode())))
    texts = [{name: "" if value is None else str(value) for name, value in row.items()} for row in EXPECTED]
    assert exported_rows(exported, {"0", "0.0", ""}) == texts


def test_export_as_parquet(known: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "results.parquet"
    assert main(["export", "-s", str(known), "-o", str(out)]) == 0
    exported = parquet.read_table(out).to_pylist()
    assert exported_rows(exported, {0, None}) == EXPECTED


def test_export_as_parquet_without_pyarrow(
    known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    before = list(tmp_path.iterdir())
    assert main(["export", "-s", str(known), "-o", str(tmp_path / "out.parquet")]) == 2
    assert capsys.readouterr().err == (
        "ERROR:Parquet needs pyarrow: pip install pyarrow (or '.[parquet]' in a clone of ssbench)\n"
    )
    assert list(tmp_path.iterdir()) == before


def test_export_of_an_old_file_has_its_names_and_no_secrets(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "old.stat"
    secrets = {"token": "AUTH_tk1", "storage_url": "http://host/v1/x", "auth_kwargs": {"key": "sesame"}}
    path.write_bytes(msgpack_file([[success(size_str="größer", **secrets), failure(**secrets)]]))
    assert main(["export", "-s", str(path), "-f", "jsonl"]) == 0
    out = capfdbinary.readouterr().out
    first, second = (json.loads(line) for line in out.splitlines())
    assert (first["container"], first["object"], first["size_class"]) == (
        "ssbench_000001",
        "tiny_000001",
        "größer",
    )
    assert second["error_detail"] == "error(111, 'Connection refused')"
    for secret in (b"AUTH_tk1", b"http://host", b"sesame"):
        assert secret not in out


@pytest.mark.parametrize("output", ["KNOWN", "/nonexistent/out", "/dev/full"])
def test_export_to_where_it_cannot_go(known: Path, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "-s", str(known), "-o", output.replace("KNOWN", str(known))]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("ERROR:")
    assert numbers(known).total.count == 3


def test_the_name_that_a_run_was_given_is_found_with_the_ending_that_it_added(
    known: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-q", "report-scenario", "-s", str(known).removesuffix(".gz"), "--report", "table"]) == 0
    assert capsys.readouterr().out == TABLE
    assert main(["-q", "report-scenario", str(known.with_name("other"))]) == 2
    assert "other.gz" not in capsys.readouterr().err
