"""What was asked for beside what was done: load, seed, capacity, mix. It comes before the figures."""

from __future__ import annotations

from collections.abc import Iterator

from ssbench.operations import OPERATIONS
from ssbench.reports import load
from ssbench.scenario.model import Scenario
from ssbench.statistics import RunStatistics

_INDENT = " " * 7


def section(statistics: RunStatistics) -> Iterator[str]:
    """Yield the lines of the section."""
    lines = [*_ending(statistics), *_load(statistics), *_mix(statistics)]
    yield from ("", "Run", *(_INDENT + line for line in lines))


def _ending(statistics: RunStatistics) -> Iterator[str]:
    if statistics.interrupted:
        yield f"Interrupted after {statistics.duration:.0f} s: figures are of what was done until then"


def _load(statistics: RunStatistics) -> Iterator[str]:
    run = statistics.run
    kind = "open loop" if run.scenario.is_open else "closed loop"
    kind = "both" if run.scenario.is_mixed and run.scenario.groups else kind
    capacity = statistics.counters.get("capacity")
    more = f"; the workers run {capacity:.0f} operations at once" if capacity else ""
    yield f"Load: {kind}, {load.words(run.scenario)}{more}"
    if run.seed is not None:
        yield f"Seed: {run.seed}"


def _mix(statistics: RunStatistics) -> Iterator[str]:
    """Yield what share of the operations each was to be, and was; failures count as done."""
    if statistics.by_group:
        return
    asked = _asked(statistics.run.scenario)
    done = {
        section_.operation.name: section_.count + section_.failed
        for section_ in statistics.sections
        if section_.operation
    }
    everything = sum(done.values())
    if not everything:
        return
    names = [each.name for each in OPERATIONS.drawn if asked.get(each.name) or done.get(each.name)]
    share = {name: 100 * count / everything for name, count in done.items()}
    shares = (f"{name.upper()} {asked.get(name, 0.0):.1f}/{share.get(name, 0.0):.1f}" for name in names)
    yield f"Mix in %, asked for/done: {', '.join(shares)}"


def _asked(scenario: Scenario) -> dict[str, float]:
    """Return the percentage of each operation that the scenario asks for."""
    whole = sum(each.share for each in scenario.size_classes)
    shares: dict[str, float] = {}
    for each in scenario.size_classes:
        total = sum(each.weights.values())
        for name, weight in each.weights.items():
            if whole and total:
                shares[name] = shares.get(name, 0.0) + 100 * each.share / whole * weight / total
    return shares
