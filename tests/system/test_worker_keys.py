"""A key for each worker: one is revoked, and one replaced, while a run is in progress."""

from __future__ import annotations

import signal
from pathlib import Path

from processes import Fleet
from runs import outcome, store, write_scenario
from said import NO_WORKER_READY, REFUSED_WORKER

from ssbench.base.errors import ExitCode


def test_keys_are_revoked_and_replaced_while_a_run_goes_on(fleet: Fleet, tmp_path: Path) -> None:
    key = tmp_path / "fleet.key"
    assert fleet.master("keygen", key).end() == ExitCode.OK
    for name in ("old", "kept"):
        assert fleet.master("keygen", key, "--worker", name).end() == ExitCode.OK
    with store(0.01) as (_, options):
        run = fleet.run(
            write_scenario(tmp_path, crud_profile=[0, 1, 0, 0]),
            *("-r", 600, "--zmq-key", key, "--expect-workers", 2, *options),
        )
        old = fleet.worker(1, "-c", 4, "--zmq-key", tmp_path / "old.key")
        fleet.worker(2, "-c", 4, "--zmq-key", tmp_path / "kept.key")
        run.wait_for("Starting the benchmark")
        # A worker whose key the master does not know yet waits, and says why.
        assert fleet.master("keygen", key, "--worker", "new").end() == ExitCode.OK
        new = fleet.worker(3, "-c", 4, "--zmq-key", tmp_path / "new.key")
        new.wait_for("does not accept the key of this worker: it is not in the master's list")
        assert fleet.master("keygen", key, "--revoke", "old").end() == ExitCode.OK
        run.signal(signal.SIGHUP)
        run.wait_for("Keys read again: added new; revoked old")
        run.wait_for("orker 3 on .* joined")
        # What the revoked one sends is dropped; it is told, and ends.
        run.wait_for("orker 1 on .* has a key that was revoked")
        assert old.end() == ExitCode.USAGE
        assert f"{REFUSED_WORKER}: it has a key that was revoked" in old.err
        # Without the list the key that all share would be accepted, which the old one may have.
        listed = tmp_path / "fleet.key.allowed"
        kept = listed.rename(tmp_path / "kept")
        run.signal(signal.SIGHUP)
        run.wait_for("The keys stay as they were: the list of allowed keys is gone")
        kept.rename(listed)
        # A list that is wrong changes nothing.
        (tmp_path / "fleet.key.allowed").write_text("nonsense\n")
        run.signal(signal.SIGHUP)
        run.wait_for("The keys stay as they were: .*:1: expected a name and a public key")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    # The revoked one may not have had its first answers yet.
    assert {2, 3} <= set(found.workers) <= {1, 2, 3}
    assert set(found.causes) <= {None, "lost worker"}


def test_a_master_that_waits_says_that_keys_are_refused(fleet: Fleet, tmp_path: Path) -> None:
    key, other = tmp_path / "fleet.key", tmp_path / "other"
    other.mkdir()
    assert fleet.master("keygen", key).end() == ExitCode.OK
    assert fleet.master("keygen", key, "--worker", "one").end() == ExitCode.OK
    # Waiting from before the master is there, which does so for a few seconds only.
    fleet.worker(1, "-c", 1, "--zmq-key", tmp_path / "one.key").wait_for("waiting for a master")
    assert fleet.master("keygen", key, "--revoke", "one").end() == ExitCode.OK
    with store(0.01) as (_, options):
        run = fleet.run(
            write_scenario(tmp_path, crud_profile=[0, 1, 0, 0]),
            *("-o", 1, "--zmq-key", key, "--expect-workers", "1@10", *options),
        )
        assert run.end() == ExitCode.WORKERS
    assert f"{NO_WORKER_READY} 10 s. refused 1 key of workers: not in the list of keys" in run.err
