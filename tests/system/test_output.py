"""Output that cannot be written, or that nobody reads: the run and its exit code stay what they are."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from processes import Fleet, Program
from runs import INITIAL, outcome, store, wait_until, write_scenario

NOOP = ("--noop", "--workers", 1)


@contextmanager
def pipe() -> Iterator[tuple[FileIO, FileIO]]:
    """A pipe of our own: the end to read, the end to write."""
    reading, writing = os.pipe()
    with FileIO(reading, "r") as read_end, FileIO(writing, "w") as write_end:
        yield read_end, write_end


@contextmanager
def reader(*command: str, group: int = 0, **outputs: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that reads what a run writes."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, process_group=group, **outputs) as process:
        yield process
        process.kill()


def why_not_printed(run: Program, path: Path) -> str:
    """The reason in the one line that tells of a report that was not printed."""
    (line,) = [line for line in run.err.splitlines() if "was not printed" in line]
    told = re.fullmatch(
        r"WARNING:The report was not printed \(standard output: (.*)\)\. Print it with: (.*)", line
    )
    assert told
    assert told[2].endswith(f"report-scenario {path}")
    return told[1]


def lost_output(path: Path) -> str:
    """The warning of a stat file that tells of output that was not written."""
    (warning,) = [text for text in outcome(path).warnings if text.startswith("Output")]
    assert re.match(r"Output: [\d,]+ bytes for standard error were not written: ", warning)
    return warning.rpartition(": ")[2]


def test_ctrl_c_that_kills_the_reader_too_cleans_up_and_keeps_the_exit_code(
    fleet: Fleet, tmp_path: Path
) -> None:
    """``run-scenario | tee report``, and Ctrl-C to the foreground group."""
    with store(0.01) as (rule, options), reader("tee", str(tmp_path / "report")) as tee:
        run = fleet.run(
            write_scenario(tmp_path, crud_profile=[1, 0, 0, 0]),
            *("-r", 600, "--workers", 2, *options),
            stdout=tee.stdin.fileno(),
        )
        tee.stdin.close()
        wait_until(lambda: len(rule.objects()) > INITIAL + 20, "created objects")
        os.killpg(tee.pid, signal.SIGINT)
        tee.wait(60)
        os.killpg(run.process.pid, signal.SIGINT)
        assert run.end() == 130, run.err
        assert len(rule.objects()) == INITIAL
    assert why_not_printed(run, fleet.stats) == "Broken pipe"
    assert "Traceback" not in run.err
    assert outcome(fleet.stats).summary.interrupted


def test_a_reader_of_both_outputs_that_dies_changes_nothing(fleet: Fleet, tmp_path: Path) -> None:
    """``run-scenario 2>&1 | head -1``; the run goes on without its reader, as workers come only then."""
    with reader("head", "-1", stdout=subprocess.PIPE) as head:
        run = fleet.run(
            write_scenario(tmp_path, operation_count=2_000),
            *("--noop", "--expect-workers", 1),
            stdout=head.stdin.fileno(),
            stderr=head.stdin.fileno(),
        )
        head.stdin.close()
        assert len(head.stdout.read().splitlines()) == 1
        head.wait(60)
        fleet.worker(1)
        assert run.end() == 0
    found = outcome(fleet.stats)
    assert found.count + sum(times for *_, times in found.summary.not_sendable) == 2_000
    assert lost_output(fleet.stats) == "Broken pipe"


def test_ctrl_c_without_a_reader_of_standard_error_ends_the_run_as_ever(fleet: Fleet, tmp_path: Path) -> None:
    """``run-scenario 2>&1 | tee log``, and Ctrl-C."""
    with store(0.01) as (rule, options), pipe() as (reading, writing):
        run = fleet.run(
            write_scenario(tmp_path, crud_profile=[1, 0, 0, 0]),
            *("-r", 600, "--workers", 1, *options),
            stdout=writing.fileno(),
            stderr=writing.fileno(),
        )
        writing.close()
        wait_until(lambda: len(rule.objects()) > INITIAL + 20, "created objects")
        reading.close()
        run.signal(signal.SIGINT)
        assert run.end() == 130
        assert len(rule.objects()) == INITIAL
    assert outcome(fleet.stats).summary.interrupted


@pytest.mark.parametrize(
    ("redirect", "reason"),
    [
        ("2>/dev/full", "No space left on device"),
        ("2>&-", "it is closed"),
        ("<&- >&- 2>&-", "it is closed"),
    ],
)
def test_standard_error_that_takes_nothing(fleet: Fleet, tmp_path: Path, redirect: str, reason: str) -> None:
    run = fleet.run(
        write_scenario(tmp_path, crud_profile=[0, 1, 0, 0], operation_count=5_000), *NOOP, redirect=redirect
    )
    assert run.end() == 0
    assert run.err == ""
    found = outcome(fleet.stats)
    assert found.count == 5_000
    assert lost_output(fleet.stats) == reason
    assert ("Count:  5000" in run.out) == (">&- 2" not in redirect)


def test_standard_error_that_nobody_reads_holds_up_nothing(fleet: Fleet, tmp_path: Path) -> None:
    operations = 20_000
    scenario = write_scenario(tmp_path, crud_profile=[0, 1, 0, 0], operation_count=operations, user_count=64)
    with pipe() as (_, writing):
        # Full: whatever the run says waits, however short the run is.
        writing.write(bytes(65_536))
        run = fleet.run(scenario, *NOOP, stderr=writing.fileno())
        assert run.end() == 0
    assert f"Count: {operations} (    0 error" in run.out
    assert lost_output(fleet.stats) == "it has no reader"


def test_a_report_that_nobody_reads_keeps_the_run_from_nothing(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options), pipe() as (_, writing):
        writing.write(bytes(65_536))
        run = fleet.run(
            write_scenario(tmp_path, crud_profile=[1, 0, 0, 0]),
            "--workers",
            1,
            *options,
            stdout=writing.fileno(),
        )
        assert run.end() == 0
        assert len(rule.objects()) == INITIAL
    assert why_not_printed(run, fleet.stats) == "it has no reader"


@pytest.mark.parametrize(
    ("redirect", "reason", "code"),
    [(">/dev/full", "No space left on device", 1), (">&-", "it is closed", 0)],
)
def test_standard_output_that_takes_no_report(
    fleet: Fleet, tmp_path: Path, redirect: str, reason: str, code: int
) -> None:
    with store() as (rule, options):
        run = fleet.run(
            write_scenario(tmp_path, crud_profile=[1, 0, 0, 0]),
            "--workers",
            1,
            "-q",
            *options,
            redirect=redirect,
        )
        assert run.end() == code
        assert len(rule.objects()) == INITIAL
    assert why_not_printed(run, fleet.stats) == reason
    assert run.err.count("\n") == 1
    assert outcome(fleet.stats).summary is not None
