"""Preparing initial objects once, after a kill too, and a run that trusts them; on a real Swift."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import swiftclient
import yaml
from processes import Fleet

from ssbench.base.errors import ExitCode
from ssbench.local_swift import LocalSwift

COUNT = 60


def test_prepare_goes_on_after_a_kill_and_runs_trust_it(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, container_base: str
) -> None:
    scenario = {
        "name": "prepared",
        "sizes": [{"name": "tiny", "size": "1..2000"}],
        "initial_files": {"tiny": COUNT},
        "profile": {"read": 1},
        "user_count": 4,
        "container_base": container_base,
        "container_count": 2,
    }
    path = tmp_path / "prepared.yaml"
    path.write_text(yaml.safe_dump(scenario))
    environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}

    def listed() -> dict[str, int]:
        return {
            row["name"]: row["bytes"]
            for number in range(2)
            for row in account.get_container(f"{container_base}_{number:06d}", full_listing=True)[1]
        }

    killed = fleet.master("prepare", path, "--workers", 1, environment=environment)
    killed.wait_for("Uploading initial objects")
    killed.signal(signal.SIGKILL)
    killed.end()
    run = fleet.master("prepare", path, "--workers", 1, environment=environment)
    assert run.end() == ExitCode.OK, run.err
    said = re.search(r"Initial objects: (\d+) uploaded, 0 replaced, (\d+) reused", run.err)
    assert said is not None, run.err
    assert int(said[1]) + int(said[2]) == COUNT
    assert "All initial objects are there, after" in run.err
    sizes = listed()
    assert sizes.keys() == {f"tiny_{number:06d}" for number in range(1, COUNT + 1)}

    # What another program deleted, or wrote in another size, is uploaded; a run trusts what a sample is like.
    account.delete_object(f"{container_base}_000000", "tiny_000001")
    account.put_object(f"{container_base}_000001", "tiny_000002", b"x" * (sizes["tiny_000002"] + 1))
    run = fleet.run(path, "--workers", 1, "-o", 20, "--prepared", environment=environment)
    assert run.end() == ExitCode.CLUSTER, run.err
    assert f"2 of {COUNT} initial objects in a sample are not there as prepared" in run.err
    assert "1 x not found" in run.err.lower() or "1 x HTTP 404" in run.err
    assert not fleet.stats.exists()
    run = fleet.master("prepare", path, "--workers", 1, environment=environment)
    assert run.end() == ExitCode.OK, run.err
    replaced = "1 replaced (size not the one to prepare)"
    assert f"Initial objects: 1 uploaded, {replaced}, {COUNT - 2} reused" in run.err
    assert listed() == sizes
    run = fleet.run(path, "--workers", 1, "-o", 20, "--prepared", "--report", "full", environment=environment)
    assert run.end() == ExitCode.OK, run.err + run.out
    assert f"initial objects: as prepared; {COUNT} of them, drawn at random, looked at" in run.out
    assert "Uploading" not in run.err
    assert listed() == sizes
