"""Progress of what can be counted, with and without a terminal to draw a bar on."""

from __future__ import annotations

import logging
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from fcntl import ioctl

import pytest

from ssbench.run import bars
from ssbench.run.bars import ProgressBar


@pytest.mark.parametrize(
    ("total", "line"),
    [(2500, r"Cleaning up: 10 of 2500, [\d,.]+/s, \d+ s left"), (None, r"Cleaning up: 10, [\d,]+/s")],
)
def test_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, total: int | None, line: str
) -> None:
    caplog.set_level(logging.INFO)
    with ProgressBar("Cleaning up", total) as bar:
        bar.advance(9)
        assert not caplog.messages
        monkeypatch.setattr(bars, "_LINE_SECONDS", 0.0)
        bar.advance()
    (said,) = caplog.messages
    assert re.fullmatch(line, said)


#: Shows a bar, and writes a message above it.
PROGRAM = """
import sys
from ssbench.run.bars import RichBar

bar = RichBar("Deleted", 9, counts=True)
bar.show(1)
print(sys.argv[1], file=sys.stderr)
bar.stop()
"""


def test_a_message_above_a_bar_is_not_broken_into_lines() -> None:
    command = "2 objects are still there; this deletes them: ssbench-master cleanup-containers -b ssbench"
    controller, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, command], stderr=terminal, env={**os.environ, "TERM": "xterm"}
    ) as program:
        os.close(terminal)
        text = b""
        with suppress(OSError):  # EIO: the program has ended
            while part := os.read(controller, 65536):
                text += part
        os.close(controller)
    assert program.returncode == 0
    assert command in text.decode()


def test_no_bar_of_reading_is_drawn_over_a_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(bars, "_READING_SECONDS", 0.0)
    monkeypatch.setattr(bars, "_draw", lambda what, *_arguments, **_options: drawn.append(what))
    read, written = os.pipe()
    try:
        with os.fdopen(written, "w") as pipe:
            monkeypatch.setattr(sys, "stdout", pipe)
            bars.ReadingBar("x")(1, 2)
            assert drawn == []
            with open(os.devnull, "w") as file:  # noqa: PTH123 - as a shell does
                monkeypatch.setattr(sys, "stdout", file)
                bars.ReadingBar("x")(1, 2)
    finally:
        os.close(read)
    assert drawn == ["Reading x"]
