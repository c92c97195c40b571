"""A master that is stopped for longer than its workers wait for it goes on, and its run ends by itself."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest
from processes import CHARACTERS, Fleet
from runs import outcome, store, write_scenario

from ssbench.base.errors import ExitCode

OPERATIONS = 10_000


@pytest.mark.timeout(400)
@pytest.mark.parametrize("sealed", [False, True], ids=["open", "sealed"])
@pytest.mark.parametrize("seconds", [20, 28, 35, 60])
def test_a_stop_loses_nothing(tmp_path: Path, seconds: int, sealed: bool) -> None:
    key = ["--zmq-key", tmp_path / "key"] if sealed else []
    with Fleet(tmp_path) as fleet, store(0.01) as (_, options):
        if sealed:
            assert fleet.master("keygen", tmp_path / "key").end() == ExitCode.OK
        for number in (1, 2, 3):
            fleet.worker(number, "-c", 8, *key)
        run = fleet.run(
            write_scenario(tmp_path, operation_count=OPERATIONS, user_count=24),
            *("--expect-workers", 3, *CHARACTERS, *key, *options),
        )
        run.wait_for(r"[._]{200}")
        run.signal(signal.SIGSTOP)
        threading.Event().wait(seconds)
        run.signal(signal.SIGCONT)
        assert run.end(200) == ExitCode.OK, run.err
    assert outcome(fleet.stats).causes == {None: OPERATIONS}
