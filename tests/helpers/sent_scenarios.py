"""What workers are sent of a scenario, as tests need it: all of it has a default."""

from __future__ import annotations

from typing import Any

from ssbench.scenario.model import SentScenario


def make_sent(**settings: Any) -> SentScenario:
    """Return it; a type checker takes it for the scenario itself, which needs more."""
    return SentScenario(**settings)
