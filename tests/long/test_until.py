"""Whole runs that end when something is known."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from fault_server import Reply
from json_records import valid
from processes import Fleet
from runs import store, write_scenario
from said import UNTIL_ENDED

READS = {"crud_profile": [0, 1, 0, 0], "initial_files": {"tiny": 4}, "container_count": 1}


@pytest.mark.timeout(300)
def test_a_run_ends_when_its_share_of_errors_is_known(fleet: Fleet, tmp_path: Path) -> None:
    """Each tenth read fails, however fast the machine is at the moment."""
    with store(0.01) as (rule, options):
        reads = itertools.count(1)
        rule.fault = lambda request: Reply(404) if request.method == "GET" and next(reads) % 10 == 0 else None
        run = fleet.master(
            *("run-scenario", "-f", write_scenario(tmp_path, **READS), "-s", tmp_path / "s.stat.gz"),
            *("-r", 240, "-u", 2, "--workers", 1, "--retries", 0, "--until", "read.errors 20%"),
            *("--json", tmp_path / "s.json", "--report", "summary", *options),
        )
        run.end(280)
    said = f"{UNTIL_ENDED} 60 s: read.errors is known to +-20 % (estimate: "
    assert said in run.err
    assert said in " ".join(run.out.split())
    found = valid((tmp_path / "s.json").read_text(), "report")
    (facts,) = found["until"]
    assert (facts["figure"], facts["asked"], facts["reached"], facts["needed"]) == (
        "read.errors",
        0.2,
        True,
        None,
    )
    assert facts["width"] < 0.2
    assert facts["seconds"] == 60
