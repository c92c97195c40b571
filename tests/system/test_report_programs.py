"""report-scenario and export as programs: what standard output and a terminal are connected to."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest
from processes import Program

from ssbench.cli.master import main

GENUINE = Path(__file__).parents[1] / "data" / "version-1-known.stat.gz"


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return Path(shutil.copy(GENUINE, tmp_path / "known.stat.gz"))


def write_report_file(known: Path, path: Path, *options: str) -> str:
    assert main(["-q", "report-scenario", "-s", str(known), "-f", str(path), *options]) == 0
    return path.read_text()


@pytest.fixture
def report(known: Path, tmp_path: Path) -> str:
    """The table of the file, as it stands in another file."""
    return write_report_file(known, tmp_path / "report.txt")


def command(known: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "ssbench.cli.master", "-q", *words, "-s", str(known)]


@pytest.mark.parametrize("redirection", ["| cat", "> out", ">> out"])
def test_a_report_into_dev_stdout(known: Path, report: str, tmp_path: Path, redirection: str) -> None:
    (tmp_path / "out").write_text("")
    words = command(known, "report-scenario", "-f", "/dev/stdout")
    run = subprocess.run(
        f"{shlex.join(words)} {redirection}",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stdout + (tmp_path / "out").read_text() == report, run.stderr


@pytest.mark.parametrize(
    ("options", "variables", "expected"),
    [
        ([], {}, "summary"),
        ([], {"SSBENCH_REPORT": "table"}, "table"),
        (["--pctile", "95"], {}, "both"),
        (["--pctile", "95", "--report", "summary"], {}, "summary"),
    ],
)
def test_the_report_on_a_terminal(
    known: Path, tmp_path: Path, options: list[str], variables: dict[str, str], expected: str
) -> None:
    """A person reads the summary alone; a percentile, an option of ssbench 0.x, is one of the table."""
    as_file = write_report_file(known, tmp_path / "as_file", "--report", expected)
    # What a file has too.
    assert show_report(known, options, variables, rows=200) == as_file


def show_report(known: Path, options: Sequence[str], variables: dict[str, str], rows: int) -> str:
    """Return the report on a terminal of 80 columns and so many rows."""
    controller, terminal = pty.openpty()
    words = ["-q", "report-scenario", "-s", known, *options]
    try:
        termios.tcsetwinsize(terminal, (rows, 80))
        environment = {"NO_COLOR": "1", **variables}
        with Program("ssbench.cli.master", words, environment, stdout=terminal) as program:
            os.close(terminal)
            shown = read_terminal(controller)
            assert program.end() == 0
    finally:
        os.close(controller)
    return shown.replace("\r\n", "\n")


def test_a_report_that_is_longer_than_the_terminal_ends_with_its_verdict(known: Path) -> None:
    """At 80x24 it had scrolled away."""
    whole = show_report(known, [], {}, rows=200)
    lines = whole.count("\n")
    begun = re.search(r"^[A-Z ]+: .* ops/s; .*", whole, re.MULTILINE)
    assert begun
    verdict = whole[begun.start() :]
    assert show_report(known, [], {}, rows=lines + 1) == whole  # the prompt has a row, too
    for rows in (lines, 24):
        shown = show_report(known, [], {}, rows)
        again = shown.removeprefix(whole).strip("\n")
        assert again
        assert verdict.startswith(again)
        assert "ops/s" in again
    table = show_report(known, ["--report", "table"], {}, rows=200)
    assert show_report(known, ["--report", "table"], {}, rows=10) == table  # it has no verdict


def read_terminal(controller: int) -> str:
    """Return what is written to a terminal until nobody has it open any more."""
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other side is closed
        while data := os.read(controller, 65536):
            shown += data
    return shown.decode()


FULL = (">/dev/full", "ERROR:standard output: cannot be written: No space left on device\n")
CLOSED = (">&-", "ERROR:standard output is closed\n")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["report-scenario"], FULL),
        (["report-scenario"], CLOSED),
        (["export"], CLOSED),
        (["export", "-f", "parquet"], FULL),
    ],
)
def test_standard_output_that_takes_nothing(known: Path, words: list[str], fault: tuple[str, str]) -> None:
    redirection, message = fault
    run = subprocess.run(
        f"{shlex.join(command(known, *words))} {redirection}",
        shell=True,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr.splitlines(keepends=True)[-1]) == (2, message)
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("words", [["report-scenario"], ["export", "-f", "jsonl"]])
def test_a_reader_of_standard_output_that_has_seen_enough(known: Path, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run(
        command(known, *words), stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(writing)
    assert run.returncode == 0
    assert run.stderr.count("\n") <= 1  # the warning that is in the file


@pytest.mark.parametrize(
    "words",
    [
        ["report-scenario", "last", "--fail-if", "read.p99 > 1ms"],
        ["report-scenario", "last", "--json", "-", "--fail-if", "read.p99 > 1ms"],
        ["compare", "last", "last", "--fail-if", "read.p99 > 1ms", "--undecided", "fail"],
    ],
)
def test_a_condition_fails_whoever_reads_no_more(known: Path, words: list[str]) -> None:
    """``report-scenario --fail-if ... | head -3`` in a shell that looks at all exit codes."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-m",
        "ssbench.cli.master",
        "-q",
        *(str(known) if w == "last" else w for w in words),
    ]
    run = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(writing)
    assert run.returncode == 5, run.stderr
    assert "Traceback" not in run.stderr


PATIENT = """
import sys
from ssbench.cli import master
from ssbench.run import bars
bars._READING_SECONDS = 0.0
sys.exit(master.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("quiet", [False, True])
def test_reading_that_takes_long_shows_a_bar_on_a_terminal(
    known: Path, report: str, tmp_path: Path, quiet: bool
) -> None:
    """The report goes to a file: behind a pipe may be a pager, which has the terminal."""
    terminal, stderr = pty.openpty()
    file = tmp_path / "report.txt"
    words = [sys.executable, "-c", PATIENT, *(["-q"] if quiet else []), "report-scenario", "-s", str(known)]
    environment = {**os.environ, "TERM": "xterm"}
    try:
        with file.open("wb") as out:
            subprocess.run(words, stdout=out, stderr=stderr, env=environment, timeout=60, check=True)
        os.write(stderr, b"end of it")
        shown = b""
        while b"end of it" not in shown:
            shown += os.read(terminal, 4096)
    finally:
        os.close(terminal)
        os.close(stderr)
    assert file.read_text().endswith(report)
    assert (b"Reading known.stat.gz" in shown) is not quiet


def test_a_condition_is_said_once_where_report_and_messages_go_to_one_place(known: Path) -> None:
    words = [*command(known, "report-scenario"), "--fail-if", "read.p99 > 1ms"]
    run = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
    )
    assert run.returncode == 5
    assert run.stdout.count("fail-if read.p99 > 1ms") == 1
    assert run.stdout.count("worker 1 was busy") == 1
    apart = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert "ERROR:fail-if read.p99 > 1ms" in apart.stderr
