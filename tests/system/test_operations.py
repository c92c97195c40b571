"""An operation that only a row of the table makes known, from the scenario to every output."""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

from processes import Fleet
from runs import INITIAL, store, write_scenario

import ssbench

MORE_OPERATIONS = Path(__file__).parent.parent / "helpers" / "more_operations"
ROOT = Path(ssbench.__file__).parent.parent


def test_a_fifth_operation_from_scenario_to_report(fleet: Fleet, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": os.pathsep.join(map(str, (MORE_OPERATIONS, ROOT)))}
    count = 500
    scenario = write_scenario(tmp_path, crud_profile={"read": 3, "peek": 2}, operation_count=count)
    fleet.worker(1, environment=environment)
    fleet.worker(2, environment=environment)
    asked: list[str] = []
    with store() as (rule, options):
        rule.fault = lambda request: asked.append(request.method) if request.target.count("/") > 3 else None
        run = fleet.run(scenario, *options, "--seed", 1, "--expect-workers", 2, environment=environment)
        assert run.end() == 0, run.err
    heads = asked.count("HEAD") - INITIAL
    assert asked.count("GET") + heads == count
    assert 140 < heads < 260
    assert "first byte  (read, delete, peek)" in run.err
    assert "% Ops    C   R   U   D  PEEK       Size Range       Size Name" in run.out
    assert "100%   %  0  60   0   0    40      100  B - 200  B  tiny" in run.out
    assert f"PEEK\n       Count: {heads:5d} (    0 error" in run.out

    report = fleet.master("report-scenario", "-s", fleet.stats, "--csv", environment=environment)
    assert report.end() == 0, report.err
    header, values = csv.reader(report.out.splitlines())
    row = dict(zip(header, values, strict=True))
    assert (int(row["peek_count"]), int(row["read_count"])) == (heads, count - heads)
    assert float(row["peek_first_all_avg"]) > 0

    exported = tmp_path / "results.csv"
    assert fleet.master("export", "-s", fleet.stats, "-o", exported, environment=environment).end() == 0
    with exported.open() as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["operation"] for row in rows) == {"peek": heads, "read": count - heads}
    assert {row["size"] for row in rows if row["operation"] == "peek"} == {"0"}
    assert {row["error"] for row in rows} == {""}

    # Without the row, the same file is refused in one line.
    stranger = fleet.master("report-scenario", "-s", fleet.stats)
    stranger.end()
    assert "an operation that this version of ssbench does not know" in stranger.err + stranger.out
    assert "Traceback" not in stranger.err
