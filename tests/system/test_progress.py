"""Progress of a run on a terminal, and without one."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import termios
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path

import pytest
from processes import Fleet
from runs import store, write_scenario
from screen import Screen

from ssbench.base.errors import ExitCode

COLUMNS = 72

#: The first message behind what is redrawn.
INTERRUPTED = "\x1b[33mWARNING\x1b[0m:Interrupted: "

#: What a screen that is redrawn begins with.
FRAME = r"\r\x1b\[\d+A"


def read_until(descriptor: int, count: int, pattern: str) -> str:
    """Read until the pattern has come so many times, however long the run that shows it has to wait."""
    text = ""
    while len(re.findall(pattern, text)) < count:
        assert select.select([descriptor], [], [], 60)[0], text
        text += os.read(descriptor, 65536).decode(errors="replace")
    return text


def read_all(descriptor: int) -> str:
    data = b""
    with suppress(OSError):  # EIO: nobody has the other end any more
        while part := os.read(descriptor, 65536):
            data += part
    return data.decode()


def test_a_line_is_redrawn_on_a_terminal_and_fits_it(fleet: Fleet, tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    with store(0.01) as (_, options):
        run = fleet.run(
            write_scenario(tmp_path),
            *("-r", 600, "--workers", 1, "--progress", "line", *options),
            environment={"TERM": "xterm"},
            stderr=terminal,
        )
        os.close(terminal)
        line = r"\r(\[?[#.]*\]?\s*\d+ %[^\r\n]*)\x1b\[K"
        text = read_until(controller, 4, line)
        run.signal(signal.SIGINT)
        text += read_all(controller)
        os.close(controller)
        assert run.end() == ExitCode.INTERRUPTED, text
    lines = re.findall(line, text)
    assert max(map(len, lines)) < COLUMNS
    # p99 is there where enough operations have ended to know it.
    shape = r"\d+:\d\d left  [\d,.]+(/s| ops/s)  \d.*MB/s  p50 [\d.]+ p99 ([\d.]+|-) ms"
    assert any(re.search(shape, line) for line in lines)
    # The report and the messages behind it begin on a line of their own.
    assert f"\x1b[K\r\x1b[K{INTERRUPTED}" in text


def test_a_small_screen_is_redrawn_and_makes_room_for_messages(fleet: Fleet, tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    run = fleet.run(
        write_scenario(tmp_path),
        *("--noop", "-r", 600, "--workers", 2, "--progress", "live"),
        environment={"TERM": "xterm"},
        stderr=terminal,
    )
    os.close(terminal)
    text = read_until(controller, 4, FRAME)
    run.signal(signal.SIGINT)
    text += read_all(controller)
    os.close(controller)
    assert run.end() == ExitCode.INTERRUPTED, text
    *frames, last = re.split(FRAME, text)
    # A message may stand where the screen was about to be drawn.
    drawn = [lines for frame in frames if len(lines := re.split(r"\x1b\[K\r*\n?", frame)) > 1]
    lines = [drawn[-1][0].rpartition("\r")[2], *drawn[-1][1:-1]]
    assert lines[0] == "fleet"
    assert max(map(len, lines)) < COLUMNS
    assert any(re.match(r"READ +[\d,.]+ +[\d.]+ \| ", line) for line in lines)
    of_workers = re.compile(r" +(\d+) +[\d.,]+ +[\d,]+ \| +(?:[\d.]+|-) +(?:[\d.]+ m?s|-)  ")
    assert [found[1] for line in lines if (found := of_workers.match(line))] == ["0", "1"], lines
    # What follows stands where the screen was.
    assert f"\x1b[J{INTERRUPTED}" in text
    assert "\nINFO:Results saved to" in last
    # The screen remains, between them.
    remains = Screen(COLUMNS).write(text).lines
    order = [remains.index("fleet"), next(n for n, line in enumerate(remains) if "Results saved" in line)]
    assert order == sorted(order)


def run_on_terminal(fleet: Fleet, tmp_path: Path, columns: int, *more: object) -> str:
    """Return what a short run writes to a terminal of so many columns."""
    controller, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with store(0.001) as (_, options):
        run = fleet.master(
            "run-scenario",
            *("-f", write_scenario(tmp_path), "-o", 50, "--workers", 1, "-s", tmp_path / "x"),
            *("--ci", tmp_path / "j.xml", *options, *more),
            environment={"TERM": "xterm"},
            stdout=terminal,
            stderr=terminal,
        )
        os.close(terminal)
        text = read_all(controller)
        os.close(controller)
        assert run.end() == 0, text
    return text


@pytest.mark.parametrize("columns", [80, 160])
def test_the_summary_is_the_last_on_a_terminal(fleet: Fleet, tmp_path: Path, columns: int) -> None:
    """The messages of the clean-up disappear."""
    text = run_on_terminal(fleet, tmp_path, columns)
    assert "INFO:Deleting the" in text  # it is seen while it happens
    lines = Screen(columns).write(text).lines
    assert lines[-1] == ""
    begins = max(place for place, line in enumerate(lines) if line.rstrip() == "fleet")
    summary = lines[begins:]
    assert not [line for line in summary if re.match("(INFO|WARNING|ERROR):", line)]
    said = "\n".join(lines[:begins])
    assert f"INFO:Wrote {tmp_path}"[:60] in said.replace("\n", "")
    assert "INFO:Results saved to" in said
    assert not any(line.startswith("Worker count:") for line in lines)


def test_the_command_that_deletes_what_is_kept_remains_on_a_terminal(fleet: Fleet, tmp_path: Path) -> None:
    text = run_on_terminal(fleet, tmp_path, 80, "-k")
    below = "".join(Screen(80).write(text).lines).rpartition("INFO:Keeping the ")[2]
    assert "ssbench-master cleanup-containers --container-base fleet" in below


@pytest.mark.parametrize("progress", ["line", "none"])
def test_a_short_run_without_a_terminal_shows_neither_lines_nor_characters(
    fleet: Fleet, tmp_path: Path, progress: str
) -> None:
    run = fleet.run(write_scenario(tmp_path), "--noop", "--workers", 1, "--progress", progress)
    assert run.end() == 0
    assert "Benchmark run:" not in run.err
    assert all(re.match("(INFO|WARNING):|/", line) for line in run.err.splitlines()), run.err
