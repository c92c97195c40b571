"""Heartbeats as a worker sends them that has nothing to say."""

from __future__ import annotations

from typing import Any

from ssbench.fleet.wire import LAG_BUCKETS, PROTOCOL, Heartbeat


def make_heartbeat(instance: int, **fields: Any) -> Heartbeat:
    """Return one of a worker that is in no run and holds nothing, but for some ``fields``."""
    usual: dict[str, Any] = {
        "protocol": PROTOCOL,
        "worker_id": instance,
        "instance": instance,
        "run_id": 0,
        "clock": 0.0,
        "capacity": 10,
        "held": [],
        "cpu": 0.0,
        "lag": [0] * LAG_BUCKETS,
        "host": "h",
        "pid": instance,
        "version": "1",
    }
    return Heartbeat(**{**usual, **fields})
