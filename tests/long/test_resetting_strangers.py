"""Strangers that break off while the master reads nothing, 60 times a port: no run ends before its time.

The whole of a run's way: joining, initial uploads, the benchmark, the deletion of its objects.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zmq
from processes import Fleet
from runs import outcome, store, write_scenario
from zmtp_peer import ResettingStrangers

from ssbench.base.errors import ExitCode
from ssbench.fleet.keys import read_fleet_key

TIMES = 60


def flood_with_key(fleet: Fleet, path: Path, *, to_work: bool) -> None:
    """What a holder of the key can do by libzmq alone: many messages, PINGs among them, and an end.

    The answers to the PINGs are not read, so that a reset follows.
    """
    key = read_fleet_key(path)
    port = fleet.work_port if to_work else fleet.results_port
    for _ in range(TIMES):
        with zmq.Context() as context, context.socket(zmq.DEALER if to_work else zmq.PUSH) as peer:
            peer.linger, peer.sndhwm = 0, 0
            peer.heartbeat_ivl = 1
            peer.curve_serverkey, peer.curve_publickey = key.server_public, key.client_public
            peer.curve_secretkey = key.client_secret
            peer.connect(f"tcp://{fleet.ip}:{port}")
            monitor = peer.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
            for _ in range(20_000):
                peer.send(b"")
            assert monitor.poll(60_000)
            threading.Event().wait(0.02)
            peer.disable_monitor()
            monitor.close()


@contextmanager
def key_holders(fleet: Fleet, key: Path) -> Iterator[None]:
    threads = [
        threading.Thread(target=flood_with_key, args=(fleet, key), kwargs={"to_work": to_work})
        for to_work in (False, True)
    ]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("who", ["open", "without the key", "with the key"])
@pytest.mark.parametrize("local", [False, True], ids=["fleet", "one box"])
def test_no_connections_end_a_run(tmp_path: Path, local: bool, who: str) -> None:
    path = tmp_path / "key"
    key = [] if who == "open" else ["--zmq-key", path]
    with Fleet(tmp_path) as fleet, store(0.005) as (_, options):
        if key:
            assert fleet.master("keygen", path).end() == ExitCode.OK
        if not local:
            fleet.worker(1, "-c", 8, *key)
        run = fleet.run(
            write_scenario(tmp_path, user_count=8, crud_profile=[1, 50, 1, 0]),
            "-r",
            600,
            *(["--workers", 1] if local else []),
            *key,
            *options,
        )
        run.wait_for("Making sure that|Waiting for workers")
        if who == "with the key":
            with key_holders(fleet, path):
                pass
        else:
            with ResettingStrangers(fleet.ip, fleet.work_port, fleet.results_port, TIMES) as strangers:
                strangers.wait()
            assert key or min(strangers.flooded.values()) >= TIMES - 5, strangers.flooded
        run.wait_for(r"[._]{20}")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    assert "Traceback" not in run.err
    assert outcome(fleet.stats).settled(8) == {None}
    assert re.search(r"INFO:Deleted ([\d,]+) of \1\n", run.err), run.err
