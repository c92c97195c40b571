"""Sweeps and searches of real runs; what is decided, and when, is tested on simulated stores."""

from __future__ import annotations

import csv
import io
import itertools
import re
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request
from json_records import valid
from processes import Fleet
from runs import TOKEN, Store, outcome, store, wait_until, write_scenario
from said import NEAR_LIMIT, STILL_THERE

from ssbench.base.errors import ExitCode
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.scenario.scenario_reading import read_scenario

READS = {"crud_profile": [0, 1, 0, 0], "initial_files": {"tiny": 4}, "container_count": 1}


def test_a_sweep_has_a_run_for_each_value(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.001) as (rule, options):
        run = fleet.master(
            *("run-scenario", "-f", write_scenario(tmp_path, **READS), "-s", tmp_path / "s"),
            *("-o", 40, "--workers", 1, "--sweep", "users=1..4", "--json", tmp_path / "s.json", "--csv"),
            *options,
        )
        assert run.end() == 0, run.err
        assert rule.counts["PUT"] == 1 + 4  # a container and the initial objects, once
    rows = list(csv.DictReader(io.StringIO(run.out)))
    assert [row["users"] for row in rows] == ["1", "2", "4"]
    steps = valid((tmp_path / "s.json").read_text(), "capacity")["steps"]
    for step, row in zip(steps, rows, strict=True):
        assert step["count"] == 40 == outcome(Path(row["stat_file"])).count
        assert row["stat_file"].endswith(f".users-{row['users']}.stat.gz")
    assert "joined (4 jobs at once)" in run.err
    assert "are started again" not in run.err
    # What a run says of its phases is said of the first step; then there is a line for each.
    assert run.err.count("Starting the benchmark") == 1
    assert [int(number) for number in re.findall(r"^INFO:Step (\d): \d user", run.err, re.M)] == [1, 2, 3]
    assert f"Results saved to {tmp_path / 's.users-*.stat.gz'}" in run.err


def test_a_sweep_in_which_no_operation_succeeds_has_failed(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        rule.fault = lambda request: Reply(503) if request.method == "GET" else None
        run = fleet.master(
            *("run-scenario", "-f", write_scenario(tmp_path, **READS), "-s", tmp_path / "s"),
            *("-o", 8, "--retries", 0, "--workers", 1, "--sweep", "users=1,2", *options),
        )
        assert run.end() == ExitCode.FAILED, run.err
    assert "8 operations failed at 1 user" in run.out


def test_ctrl_c_in_a_sweep_reports_what_there_is(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.01) as (rule, options):
        run = fleet.master(
            *("run-scenario", "-f", write_scenario(tmp_path, **READS), "-s", tmp_path / "s"),
            *("-o", 1_000_000, "--workers", 1, "--sweep", "size=4K,8K", *options),
        )
        run.wait_for("Starting the benchmark")
        wait_until(lambda: rule.counts["GET"] > 8, "more reads than there are users: some have ended")
        run.signal(signal.SIGINT)
        assert run.end() == 130, run.err
    assert "The sweep ended early: interrupted." in run.out
    assert "4096" in run.out
    assert "8192" not in run.out


def test_a_step_whose_clean_up_fails_in_part_makes_the_exit_code_1(fleet: Fleet, tmp_path: Path) -> None:
    creates = {**READS, "crud_profile": [1, 0, 0, 0]}
    with store() as (rule, options):
        refused = itertools.count()  # by the clean-up of the first step: nothing else deletes
        rule.fault = lambda request: Reply(403) if request.method == "DELETE" and next(refused) < 3 else None
        run = fleet.master(
            *("run-scenario", "-f", write_scenario(tmp_path, **creates), "-s", tmp_path / "s"),
            *("-o", 20, "--workers", 1, "--sweep", "users=1,2", "--json", tmp_path / "s.json", *options),
        )
        assert run.end() == 1, run.err
    assert f"WARNING:3 of the 20 {STILL_THERE} (3 x HTTP 403" in run.err
    # The other step is carried out all the same.
    found = valid((tmp_path / "s.json").read_text(), "capacity")
    assert (len(found["steps"]), found["exit_code"]) == (2, 1)


class Queue(Store):
    """Serves one request after another, so that users wait for each other: ``each`` seconds a user."""

    def __init__(self, each: float) -> None:
        super().__init__()
        self._each = each
        self._free = 0.0
        self._turn = threading.Lock()

    def answer(self, request: Request) -> Reply:
        answered = super().answer(request)
        if request.method != "GET":
            return answered
        with self._turn:
            now = time.monotonic()
            self._free = max(now, self._free) + self._each
            return Reply(answered.status, body=answered.body, delay=self._free - now)


@pytest.mark.long
def test_a_search_finds_how_many_users_a_store_bears(fleet: Fleet, tmp_path: Path) -> None:
    """80 ms for each user: 120 ms are enough for one of them, for none on a machine that is busy."""
    with FaultServer(rule=Queue(0.08)) as server:
        run = fleet.master(
            *("run-scenario", "-f", write_scenario(tmp_path, **READS), "-s", tmp_path / "s", "-u", 1),
            *("-r", 1, "--workers", 1, "--find", "read.p70 <= 120ms", "-S", server.url, "-T", TOKEN),
        )
        code = run.end(100)
    words = " ".join(run.out.split())
    if code == 0:
        assert "read.p70 <= 120ms: holds up to 1 user (95 % sure: " in words
    else:
        assert code in {1, 6}
        assert re.search(
            r"read.p70 <= 120ms: (fails even at 1 user|undecided (between|from)"
            r"|holds up to 1 user|the search ended early)",
            words,
        )
    assert re.search(
        rf"INFO:Search: some 5 to 15 {NEAR_LIMIT} as long: about 10 s to 1 min",
        run.err,
    )


def test_more_objects_are_in_further_containers(fleet: Fleet, tmp_path: Path) -> None:
    """All of them were in as many as the objects of the file need."""
    with store() as (rule, options):
        run = fleet.master(
            *("run-scenario", "-f", write_scenario(tmp_path, **READS), "-s", tmp_path / "s", "-o", 8),
            *("--workers", 1, "--sweep", "objects=3,5,14", "--set", "objects_per_container=5", *options),
        )
        assert run.end() == 0, run.err
        objects = Counter(path.rpartition("/")[0] for path in rule.sizes if "/tiny_" in path)
        assert sorted(objects.values()) == [4, 5, 5]
    assert re.findall(r"Initial objects: (\d+) uploaded, 0 replaced, (\d+) reused", run.err) == [
        ("3", "0"),
        ("2", "3"),
        ("9", "5"),
    ]


def test_the_number_of_local_workers_can_change(tmp_path: Path) -> None:
    scenario = read_scenario(str(write_scenario(tmp_path)))
    with Bench(BenchOptions(workers=1)) as bench:
        for count in (1, 2):
            bench.use_local_workers(count)
            done = bench.run(scenario, RunOptions(noop=True, stats_file=tmp_path / f"{count}.stat.gz"))
            assert done.summary is not None
            assert len(done.summary.workers) == count
        assert bench.capacity() >= scenario.user_count


def test_a_run_that_ends_before_a_figure_is_known_says_so(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (_, options):
        run = fleet.master(
            *("run-scenario", "-f", write_scenario(tmp_path, **READS), "-s", tmp_path / "s.stat.gz"),
            *("-o", 40, "--workers", 1, "--until", "read.p99 5% and rate 5%", "--json", tmp_path / "s.json"),
            *options,
        )
        run.end()
    assert "The run was too short for --until: it takes 1 min 3 s or more" in run.err
    found = valid((tmp_path / "s.json").read_text(), "report")["until"]
    assert [(each["figure"], each["asked"], each["width"]) for each in found] == [
        ("read.p99", 0.05, None),
        ("rate", 0.05, None),
    ]
