"""How much longer than its constant a wait may be to be named by it."""

from __future__ import annotations

import numpy as np
import pytest
from said import LOST_SYN, NAGLE

from ssbench.statistics.latencies import merge_latencies, select_latencies
from ssbench.statistics.waits import WAIT_LENGTHS, find_latency_waits


def named(operation: int, seconds: float) -> list[str]:
    """Return what is named where a tenth of the operations wait for so long."""
    usual = np.random.default_rng(1).lognormal(np.log(0.0002), 0.2, 300)
    waited = select_latencies(np.concatenate([usual, np.full(30, seconds)]))
    return [
        each.name
        for each in find_latency_waits(WAIT_LENGTHS, {(operation, 0): (waited, merge_latencies(()))})
    ]


@pytest.mark.parametrize(
    ("seconds", "jitter", "name", "operation"),
    [
        (0.04, 0.009, NAGLE, 0),  # two jiffies of 4 ms
        (0.2, 0.025, "a TCP retransmission", 0),
        (0.5, 0.015, "post_quorum_timeout or conn_timeout", 0),
        (0.5, 0.015, "conn_timeout or concurrency_timeout", 1),
        (1.0, 0.03, "container_update_timeout", 0),
        # The kernel's timers are late by 64 ms of a second.
        (1.0, 0.065, f"{LOST_SYN} between the first server and the next", 1),
        (10.0, 0.1, "node_timeout", 1),
        (60.0, 0.3, "client_timeout", 0),
    ],
)
def test_a_wait_is_longer_than_its_constant_by_no_more_than_its_jitter(
    seconds: float, jitter: float, name: str, operation: int
) -> None:
    assert named(operation, seconds) == [name]
    assert named(operation, seconds + 0.95 * jitter) == [name]
    assert named(operation, seconds + 1.1 * jitter) == []
    assert named(operation, 0.97 * seconds) == []
