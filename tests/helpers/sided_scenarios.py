"""A scenario whose load two sides share, and such sides."""

from __future__ import annotations

from typing import Any

from ssbench.run.bench_options import RunSide
from ssbench.scenario.model import Scenario, SizeClass


def scenario(**changes: Any) -> Scenario:
    changes.setdefault("operation_count", 9)
    return Scenario(
        "s",
        (SizeClass("small", 1, 1, 5, (1, 1, 1, 1)), SizeClass("big", 9, 9, 1, (1, 0, 0, 0))),
        **{"user_count": 4, **changes},
    )


POLICIES = RunSide("x", policy="p"), RunSide("y", policy="q")
