"""Workers on the master's host: how they are ended, and started again."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator

import pytest
from awake import awake
from golden_words import GoldenWords

from ssbench.base import own_processes
from ssbench.base.errors import UsageError
from ssbench.run.run_workers import LocalWorkers

#: In place of a worker: it ends with its standard input.
STAND_IN = "import sys; sys.stdin.read()"


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalWorkers]:
    """Three stand-ins."""
    monkeypatch.setattr(
        own_processes, "make_python_command", lambda _module: [sys.executable, "-c", STAND_IN]
    )
    made = LocalWorkers(3, [])
    yield made
    made.kill()
    for worker in made.workers:
        worker.process.communicate()


def test_those_that_hang_are_killed_together(local: LocalWorkers) -> None:
    for worker in local.workers:
        os.kill(worker.process.pid, signal.SIGSTOP)
    began = time.monotonic()
    with awake() as clock:
        local.stop(timeout=1.0)
        assert clock() < 2.5
    assert time.monotonic() - began >= 1.0
    assert [worker.process.returncode for worker in local.workers] == [-signal.SIGKILL] * 3


def test_all_end_after_one_could_not_be_started_again(
    local: LocalWorkers, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    ended = local.workers[0].process
    ended.kill()
    ended.wait()

    def full(_module: str) -> list[str]:
        raise UsageError("cannot start a local worker")

    monkeypatch.setattr(own_processes, "make_python_command", full)
    with golden_words.raises(UsageError):
        local.start_ended()
    local.stop(timeout=60)  # they end once they have started, which takes a busy machine a while
    assert [worker.process.returncode for worker in local.workers] == [-signal.SIGKILL, 0, 0]
