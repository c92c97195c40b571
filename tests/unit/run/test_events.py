"""Commands at moments of a run: when they run, what is kept of them, and that nothing waits for them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from golden_words import GoldenWords
from runs import alive, wait_until

from ssbench.results.run_description import EventFacts
from ssbench.run.events import RunEvents, describe_failed_events
from ssbench.scenario.value_rules import TimedCommand


def wait_for(path: Path, seconds: float = 20.0) -> str:
    """Return what a file says, once it says something."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.01)
    raise AssertionError(f"nothing in {path}")


def wait_for_end(pid: int) -> None:
    """Wait until a process that was killed has ended: a signal takes effect when the kernel comes to it."""
    wait_until(lambda: not alive(pid), f"the end of {pid}")


def run(tmp_path: Path, command: str, *, ready: str = "ready") -> EventFacts:
    """Run a command at once, until it has written a file, and end the run."""
    events = RunEvents([TimedCommand(0.0, command)])
    events.begin(time.monotonic(), time.time() - time.monotonic())
    wait_for(tmp_path / ready)
    (found,) = events.end()
    return found


def test_output_and_exit_code_are_kept(tmp_path: Path, golden_words: GoldenWords) -> None:
    events = RunEvents([TimedCommand(0.0, "echo out; echo err >&2; exit 3")])
    before = time.time()
    events.begin(time.monotonic(), time.time() - time.monotonic())
    assert events._running[0].exited.wait(20)
    (found,) = events.end()
    assert (found.output, found.exit_code, found.is_cut) == ("out\nerr\n", 3, False)
    assert found.began is not None
    assert found.ended is not None
    assert before - 0.1 < found.began <= found.ended < time.time() + 0.1
    golden_words(describe_failed_events([found]))


def test_much_output_holds_no_command_up(tmp_path: Path) -> None:
    found = run(tmp_path, f"head -c 1000000 /dev/zero | tr '\\0' x; echo 1 > {tmp_path}/ready; exec sleep 60")
    assert found.is_cut
    assert found.output == "x" * 4096


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    found = run(tmp_path, f"trap '' TERM; sleep 600 & echo $! > {tmp_path}/ready; wait; sleep 600")
    assert time.monotonic() - began < 15
    assert (found.exit_code, found.ended) == (None, None)
    wait_for_end(int((tmp_path / "ready").read_text()))
    (said,) = describe_failed_events([found])
    assert said.endswith("had not ended when the benchmark did, and was killed")


def test_what_a_command_left_behind_is_killed_too(tmp_path: Path) -> None:
    """Its group is not that of another process by then, as the shell has not been reaped."""
    events = RunEvents([TimedCommand(0.0, f"sleep 600 & echo $! > {tmp_path}/ready")])
    events.begin(time.monotonic(), 0.0)
    assert events._running[0].exited.wait(20)
    pid = int(wait_for(tmp_path / "ready"))
    assert alive(pid)
    (found,) = events.end()
    assert found.exit_code == 0
    wait_for_end(pid)
    assert describe_failed_events([found]) == []


def test_the_benchmark_may_end_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.chdir(tmp_path)
    events = RunEvents([TimedCommand(600.0, "touch there")])
    events.begin(time.monotonic(), 0.0)
    began = time.monotonic()
    (found,) = events.end()
    assert time.monotonic() - began < 5
    assert found.began is None
    assert not (tmp_path / "there").exists()
    golden_words(describe_failed_events([found])[0])


def test_a_run_that_never_began_ends_at_once() -> None:
    (found,) = RunEvents([TimedCommand(1.0, "true")]).end()
    assert found.began is None


def test_a_signal_is_a_negative_code(tmp_path: Path) -> None:
    events = RunEvents([TimedCommand(0.0, "kill -9 $$")])
    events.begin(time.monotonic(), 0.0)
    assert events._running[0].exited.wait(20)
    assert events.end()[0].exit_code == -9


def test_each_has_its_moment(tmp_path: Path) -> None:
    events = RunEvents([TimedCommand(0.3, f"echo 1 > {tmp_path}/ready"), TimedCommand(0.0, "true")])
    start = time.monotonic()
    events.begin(start, 0.0)
    wait_for(tmp_path / "ready")
    late, early = events.end()
    assert early.began is not None
    assert late.began is not None
    assert early.began < late.began
    assert start + 0.3 <= late.began < start + 5


def test_a_shell_has_no_input() -> None:
    events = RunEvents([TimedCommand(0.0, "cat; echo $?")])
    events.begin(time.monotonic(), 0.0)
    assert events._running[0].exited.wait(20)
    assert events.end()[0].output == "0\n"
    assert os.getpgid(0) == os.getpgrp()
