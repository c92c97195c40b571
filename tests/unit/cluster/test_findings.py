"""What several findings together say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from genuine_runs import genuine
from joined_runs import joined_run, object_lines, servers, successes
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster.findings import make_attribution
from ssbench.cluster.joined_run import OBJECT, Device
from ssbench.scenario.operations import READ


def test_a_process_is_named_where_all_its_devices_are_slow() -> None:
    found = make_attribution(genuine("block1")).findings
    slow = [each.name for each in found if each.kind == "slow"]
    (together,) = (each for each in found if each.kind == "together")
    assert (together.level, together.name) == ("process", "object server 1 on o1")
    assert together.members == sorted(slow) == ["d1 on o1", "d4 on o1"]
    assert [each for each in make_attribution(genuine("fsync3")).findings if each.kind == "together"] == []


def test_a_device_whose_replicas_end_last_has_the_share_of_its_writes() -> None:
    cause = Cause(devices=(2,), where="commit", seconds=0.006)
    joined = simulate(1, cause, Shape(devices=4, nodes=3, requests=400, deletes=0.0))
    lines = joined.lines
    (found,) = make_attribution(joined).findings
    assert (found.kind, found.level, found.name, found.part, found.group) == (
        "slow",
        "device",
        "d2 on n2",
        "last",
        "writes",
    )
    mine = np.unique(lines.operation[(lines.device == 2) & (lines.of == OBJECT)])
    writes = np.unique(lines.operation[(lines.device != 2) & (lines.of == OBJECT)])
    assert 0 < found.requests <= np.isin(mine, writes).sum() < 400
    assert found.share == found.requests / 400


def test_who_is_busy_by_several_of_its_times_is_told_once() -> None:
    devices = [Device(f"n{place}", "object", f"d{place}") for place in range(4)]
    count, every = 1000, np.arange(1000)
    device, turn = every % 5 % 4, every % 40
    # Forty come at once, and wait for those before them: sixteen at one device, eight at each other.
    before = np.where(device == 0, turn // 5 * 2 + (turn % 5 == 4), turn // 5)
    seconds = np.random.default_rng(1).lognormal(np.log(0.01), 0.1, count) * (1 + before)
    operations = successes(np.full(count, READ.code), np.full(count, 4096, np.int64), seconds, every)
    began = operations.ended[every - turn] + every * 1e-6
    zero = np.zeros(count, np.int64)
    joined = joined_run(
        replace(operations, ended=began + seconds),
        object_lines(devices, every, device, zero, seconds),
        devices,
        servers(devices),
        ["p"],
        zero,
        seconds,
    )
    (found,) = (each for each in make_attribution(joined).findings if each.kind == "busy")
    assert found.names == ["d0 on n0"]
