"""Replays with real processes and sockets: what a stall costs, the rate, and the documented commands."""

from __future__ import annotations

import json
import re
import shlex
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from fault_server import FaultServer, Reply, Request
from logged_traffic import BEGAN, swift_line
from processes import Fleet, run_master
from runs import TOKEN, Store, is_object

from ssbench.base.errors import ExitCode
from ssbench.results.reading import open_results
from ssbench.traffic.replayed_log import find_moment

DOCUMENT = Path(__file__).parents[2] / "doc" / "own-traffic.rst"
#: When the store stalls after the first read, and for how long.
STALL_AT, STALL_SECONDS = 2.0, 1.5


class StallingStore(Store):
    """A store that answers no request for an object for a while, some time after the first read."""

    def __init__(self) -> None:
        super().__init__()
        self.first_read: float | None = None
        self._never = threading.Event()

    def __call__(self, request: Request) -> Reply:
        now = time.monotonic()
        if is_object(request) and request.method == "GET":
            self.first_read = self.first_read or now
            begins = self.first_read + STALL_AT
            if begins <= now < begins + STALL_SECONDS:
                self._never.wait(begins + STALL_SECONDS - now)
        return super().__call__(request)


def write_reads(path: Path, moments: np.ndarray, began: float = BEGAN) -> Path:
    """Write a log of reads of ten objects at some moments."""
    lines = (
        swift_line(began + moment, "GET", f"/v1/AUTH_a/c/o{place % 10}", sent=2000)
        for place, moment in enumerate(moments)
    )
    path.write_text("".join(lines))
    return path


def draw_moments(rate: float, seconds: float) -> np.ndarray:
    moments = np.sort(np.random.default_rng(5).random(round(rate * seconds))) * seconds
    return moments - moments[0]


def test_response_times_of_a_stall_follow_from_the_schedule(fleet: Fleet, tmp_path: Path) -> None:
    dues = draw_moments(100, 6)
    log = write_reads(tmp_path / "proxy.log", dues)
    with FaultServer(rule=StallingStore()) as server:
        access = ("-S", server.url, "-T", TOKEN)
        run = fleet.master(
            *("run-scenario", "--replay", log, "--workers", 1, "-u", 1000, "-s", fleet.stats, *access)
        )
        assert run.end() == ExitCode.OK, run.err
    ended, due = [], []
    for block in open_results(fleet.stats).blocks():
        ended.append(block.completed)
        due.append(block.due)
    responses = np.concatenate(ended) - np.concatenate(due)
    stalled = (dues >= STALL_AT) & (dues < STALL_AT + STALL_SECONDS)
    wanted = np.where(stalled, STALL_AT + STALL_SECONDS - dues, 0.0)
    # The quarter that is in the stall waits for its end.
    for rank in (85, 90, 95, 99):
        assert np.percentile(responses, rank) == pytest.approx(np.percentile(wanted, rank), rel=0.05)


def test_the_rate_is_that_of_the_log_at_2000_requests_a_second(tmp_path: Path) -> None:
    log, out = write_reads(tmp_path / "proxy.log", draw_moments(2000, 20)), tmp_path / "run.json"
    done = run_master(
        *("run-scenario", "--replay", log, "--noop", "--workers", 1, "--json", out, "-s"),
        *(tmp_path / "run.stat.gz", "--undecided", "report"),
        patience=120,
    )
    found = json.loads(out.read_text())
    delivered, source = found["verdict"]["delivered"], found["replay"]["source"]
    made = delivered["operations"] / delivered["seconds"]
    assert made == pytest.approx(source["requests"] / source["seconds"], rel=0.01), done.stderr


@pytest.mark.timeout(600)
def test_the_documented_commands_replay_a_log(tmp_path: Path) -> None:
    written = re.findall(r"^   \$ ssbench-master (run-scenario --replay .*)$", DOCUMENT.read_text(), re.M)
    assert len(written) == 3
    ten = find_moment("2026-11-29T10:00", 0.0)
    write_reads(tmp_path / "proxy.log", draw_moments(10, 12), ten - 4)
    made, codes = [], []
    for number, command in enumerate(written):
        words = shlex.split(command.replace("proxy.log", str(tmp_path / "proxy.log")))
        out = tmp_path / f"{number}.json"
        more = ["--local-swift"] * ("--local-swift" not in words)
        files = ("--json", out, "-s", tmp_path / f"{number}.stat.gz")
        done = run_master(*words, *more, *files, patience=250)
        assert out.exists(), done.stderr
        made.append(json.loads(out.read_text()))
        codes.append(done.returncode)
    assert codes[:2] == [ExitCode.OK] * 2
    *runs, found = made
    requests = []
    for number, run in enumerate(runs):
        replay = run["replay"]
        requests.append(replay["source"]["requests"])
        assert replay["speed"] == pytest.approx(number + 1)
        assert all(each["logged"] == each["status"] for each in replay["statuses"])
    assert requests[0] == 120
    assert 60 < requests[1] < 100
    if codes[2] == ExitCode.OK:  # on a busy machine there may be no answer
        assert re.search(r"That is \d\.\d\d times the traffic of proxy\.log \(", found["conclusion"])
    assert max(each["value"] for each in found["steps"]) <= 60  # a step is 2 s or more
