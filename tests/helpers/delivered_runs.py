"""Runs that delivered their load, or did not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from planted_load import play

from ssbench.scenario.model import Stage
from ssbench.statistics.run_statistics import RunStatistics

MS = 1e-3


@cache
def overloaded() -> RunStatistics:
    """The store does 263 operations a second for 3 users, and is asked for 2,000."""
    return play(lambda sent: sent + 11.4 * MS, [Stage(5.0, (3, 3), (2000.0, 2000.0))])


def kept(**changes: Any) -> RunStatistics:
    numbers = play(lambda sent: sent + 11.4 * MS, [Stage(20.0, (30, 30), (200.0, 200.0))])
    return replace(numbers, **{"warnings": (), **changes})


def closed(**changes: Any) -> RunStatistics:
    return replace(_closed(), **{"warnings": (), **changes})


@cache
def _closed() -> RunStatistics:
    return play(lambda sent: sent + 10 * MS, [Stage(12, (4, 4))])
