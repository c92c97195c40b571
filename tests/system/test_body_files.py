"""A worker that finds other files than the master has, or that may not read them, says so and ends."""

from __future__ import annotations

import re
from pathlib import Path

from processes import Fleet
from runs import outcome, store, wait_for_results_of, write_scenario
from said import OTHER_FILES

from ssbench.base.errors import ExitCode


def test_a_worker_with_other_files_ends_and_the_run_goes_on(fleet: Fleet, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "one").write_bytes(b"one photo")
    scenario = write_scenario(tmp_path, crud_profile=[1, 1, 0, 0], body={"files": "photos"})
    # Held requests wait for two more workers to start, which takes long on a busy machine.
    patient = ("--network-timeout", 300)
    with store(0.02) as (rule, options):
        rule.hold(150)
        run = fleet.run(scenario, "-o", 300, "--expect-workers", 1, *patient, *options)
        allowed = ("-c", 4, "--allow", tmp_path)
        fleet.worker(1, *allowed)
        wait_for_results_of(1, 3, fleet.stats)
        (folder / "one").write_bytes(b"another photo")
        strict = fleet.worker(3, "-c", 4, "--allow", tmp_path / "elsewhere")
        assert strict.end() == ExitCode.USAGE, strict.err
        assert f"body: {folder} is not in {tmp_path}/elsewhere, or hidden; --allow DIR" in strict.err
        other = fleet.worker(2, *allowed)
        assert other.end() == ExitCode.USAGE, other.err
        said = re.findall(f"{OTHER_FILES}.*", other.err)
        assert len(said) == 1
        assert f"here 1 file of {folder} (13 bytes" in said[0]
        assert f"there 1 file of {folder} (9 bytes" in said[0]
        assert "Traceback" not in other.err
        run.wait_for(f"orker 2 on .* has ended: {OTHER_FILES}")
        rule.release()
        assert run.end() == ExitCode.OK, run.err
    found = outcome(fleet.stats)
    assert (set(found.workers), found.count) == ({1}, 300)
    assert set(found.causes) == {None}
