"""How a store ages: a sweep over objects, of a store that is slower from a known number of them on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from fault_server import Request
from processes import Fleet
from runs import store, write_scenario

COUNTS = [100, 200, 400, 800, 1600, 3200]


@pytest.mark.parametrize("bend", [None, 400])
def test_a_store_is_slower_from_so_many_objects_on(fleet: Fleet, tmp_path: Path, bend: int | None) -> None:
    with store() as (rule, options):

        def age(request: Request) -> None:
            over = 0.0 if bend is None else max(0.0, math.log2(max(len(rule.sizes), 1) / bend))
            rule.delay = 0.01 * (1 + 0.1 * over) if request.method == "GET" else 0.0

        rule.fault = age
        run = fleet.master(
            "run-scenario",
            *("-f", write_scenario(tmp_path, crud_profile=[0, 1, 0, 0], initial_files={"tiny": 4})),
            *("-s", tmp_path / "s", "-r", 12, "--workers", 1, "--json", tmp_path / "s.json"),
            *("--sweep", f"objects={','.join(map(str, COUNTS))}", *options),
        )
        assert run.end(180) == 0, run.err
    found = json.loads((tmp_path / "s.json").read_text())
    assert [step["value"] for step in found["steps"]] == COUNTS
    trend = found["trend"]
    if bend is None:
        assert trend["bend"] is None
        assert "No change of the rate" in found["headline"]
    else:
        assert trend["bend_low"] <= bend <= trend["bend_high"]
        assert trend["low"] < 1 / 1.3 - 1 < trend["high"]
