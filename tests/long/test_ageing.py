"""How a store ages: a sweep over objects, of a store that is slower from a known number of them on."""

from __future__ import annotations

import json
import math
import random
import signal
from pathlib import Path

import pytest
import swiftclient
from fault_server import Request
from json_records import valid
from processes import Fleet, Program
from runs import store, wait_until, write_scenario

from ssbench.base.errors import ExitCode
from ssbench.local_swift import LocalSwift

#: Three more than are needed: on a loaded machine the rate of a step may be too uneven to count.
COUNTS = [100, 200, 400, 600, 800, 1200, 1600, 2400, 3200]

#: Seconds that an answer takes at least: long, so that other programs on the machine change little of it.
DELAY = 0.3


@pytest.mark.timeout(300)
@pytest.mark.parametrize("bend", [None, 400])
def test_a_store_is_slower_from_so_many_objects_on(fleet: Fleet, tmp_path: Path, bend: int | None) -> None:
    with store() as (rule, options):

        def age(request: Request) -> None:
            over = 0.0 if bend is None else max(0.0, math.log2(max(len(rule.sizes), 1) / bend))
            rule.delay = DELAY * (1 + 0.1 * over) if request.method == "GET" else 0.0

        rule.fault = age
        run = fleet.master(
            "run-scenario",
            *(
                "-f",
                write_scenario(tmp_path, crud_profile=[0, 1, 0, 0], initial_files={"tiny": 4}, user_count=32),
            ),
            *("-s", tmp_path / "s", "-r", 14, "--workers", 1, "--json", tmp_path / "s.json"),
            *("--sweep", f"objects={','.join(map(str, COUNTS))}", *options),
        )
        assert run.end(240) == 0, run.err
    found = json.loads((tmp_path / "s.json").read_text())
    assert [step["value"] for step in found["steps"]] == COUNTS
    trend = found["trend"]
    if bend is None:
        assert trend["bend"] is None
        assert "No change of the rate" in found["headline"]
    else:
        assert trend["bend_low"] <= bend <= trend["bend_high"]
        fastest = found["steps"][0]["mean"]
        slowest = fastest + 0.1 * math.log2(COUNTS[-1] / bend) * DELAY
        assert trend["low"] < fastest / slowest - 1 < trend["high"]


@pytest.mark.timeout(300)
def test_a_fill_that_is_interrupted_five_times_is_whole(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, container_base: str
) -> None:
    """Some calls are killed and some get Ctrl-C, when the container has drawn numbers of objects."""
    counts, container = (60, 120, 180, 240, 300, 400), f"{container_base}_000000"
    environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    moments = sorted(random.sample(range(1, counts[-1] - 40), 5))

    def count() -> int:
        try:
            return int(account.head_container(container)["x-container-object-count"])
        except swiftclient.ClientException:
            return 0

    def age(*more: object) -> Program:
        return fleet.master(
            *(
                "age",
                "--objects",
                ",".join(map(str, counts)),
                "--object-size",
                "100",
                "-r",
                1,
                "--workers",
                1,
            ),
            *("--results-dir", tmp_path, "--set", f"container_base={container_base}"),
            *("--resume", *more),
            environment=environment,
        )

    for place, moment in enumerate(moments):
        run = age()

        def has_come(moment: int = moment, run: Program = run) -> bool:
            return count() >= moment or run.process.poll() is not None

        wait_until(has_come, f"{moment} objects ({moments})")
        assert run.process.poll() is None, run.err
        run.signal(signal.SIGINT if place % 2 else signal.SIGKILL)
        run.end(60)
    run = age("--json", tmp_path / "age.json")
    assert run.end(120) == ExitCode.OK, run.err
    # A container has no name twice; there are no others.
    rows = account.get_container(container, full_listing=True)[1]
    names = [row["name"] for row in rows if not row["name"].startswith("ssbench-")]
    assert names == [f"100_{number:06d}" for number in range(1, counts[-1] + 1)], moments
    assert {row["bytes"] for row in rows if row["name"] in names} == {100}
    found = valid((tmp_path / "age.json").read_text(), "phases")
    for operation in ("update", "read", "list"):
        steps = found["phases"][operation]["steps"]
        assert [step["value"] for step in steps] == [*counts]
        assert all(step["errors"] == 0 for step in steps)
    # What the last calls uploaded is a result; what the others did is in no stat file.
    filled = found["phases"]["fill"]["steps"]
    assert sum(step["count"] for step in filled) <= counts[-1]
    assert all(step["ops_per_second"] == pytest.approx(step["count"] / step["seconds"]) for step in filled)
