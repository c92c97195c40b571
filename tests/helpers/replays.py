"""Replays of logs that tests make up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.replay_source import Replay, ReplaySource
from ssbench.scenario.replayed import fit_to_replay

NAMES = ("create", "update", "read", "delete", "list")


def make_replay(
    rows: Sequence[tuple[float, str, int, int]],
    containers: Sequence[int] = (0, 0, 1),
    prepared: int = 1,
    statuses: Sequence[int] = (),
    **changes: Any,
) -> Replay:
    """Return a replay of requests: seconds, operation, object, bytes."""
    moments, names, items, sizes = zip(*rows, strict=True)
    source = ReplaySource("log", 1e9, moments[-1], len(rows), 2, prepared, 2, 1, 1, 0, None, ())
    usual = {"create": 201, "update": 201, "read": 200, "delete": 204, "list": 200}
    values: dict[str, Any] = {
        "source": source,
        "names": NAMES,
        "moments": np.array(moments, np.float64),
        "operations": np.array([NAMES.index(name) for name in names], np.uint8),
        "items": np.array(items, np.uint32),
        "sizes": np.array(sizes, np.int64),
        "statuses": np.array([*statuses, *(usual[name] for name in names[len(statuses) :])], np.uint16),
        "containers": np.array(containers, np.uint32),
        "accounts": np.zeros(2, np.uint32),
        "initial_sizes": np.array([0, *[70] * prepared]),
        "written": np.zeros(prepared + 1, np.bool_),
    }
    return Replay(**values | changes)


def make_scenario(replay: Replay, speed: float = 1.0, **changes: Any) -> Scenario:
    classes = (SizeClass("object", 0, 100, len(replay.initial_sizes) - 1, (1, 1, 1, 1)),)
    values: dict[str, Any] = {"user_count": 100, "operation_count": len(replay), "rate": replay.rate * speed}
    return fit_to_replay(Scenario("replay", classes, **values | changes), replay)
