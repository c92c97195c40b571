"""How many equal runs are made, and how long each is."""

from __future__ import annotations

import pytest

from ssbench.base.errors import UsageError
from ssbench.plans.noise_work import choose_equal_runs
from ssbench.scenario.consistency import override
from ssbench.scenario.scenario_reading import read_scenario


def choose(
    minutes: float = 15.0,
    pause: float = 0.0,
    seconds: float | None = None,
    given: float | None = None,
    *,
    ends_early: bool = False,
) -> tuple[float | None, int]:
    scenario = override(read_scenario("very_small"), run_seconds=seconds)
    return choose_equal_runs(scenario, minutes, pause, given, ends_early=ends_early)


def test_how_many_runs_are_made() -> None:
    assert choose() == (20, 21)  # 15 minutes, 21 s a run
    assert choose(60) == (20, 85)
    assert choose(60, seconds=60) == (60, 29)
    assert choose(seconds=600) == (44, 10)  # shorter, so that there are enough
    assert choose(given=120) == (120, 3)
    assert choose(2) == (10, 5)
    assert choose(pause=9) == (20, 15)
    # Runs with --until may last an hour, if as many as are needed fit.
    assert choose(seconds=3600, ends_early=True) == (149, 3)
    assert choose(minutes=600, seconds=3600, ends_early=True) == (3600, 4)
    with pytest.raises(UsageError, match="give more minutes"):
        choose(1)
