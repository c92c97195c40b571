"""How times, latencies and texts look in reports."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from ssbench.figures.units import AT_LEAST, milliseconds
from ssbench.operation import On
from ssbench.operations import OPERATIONS
from ssbench.results import RunDescription
from ssbench.statistics import Section, Slowest
from ssbench.statistics.due import Censored


def utc(seconds: float | None) -> str:
    """Return seconds since 1970 as ``2013-06-07 17:23:16 UTC``; N/A for None and for no date."""
    if seconds is None:
        return "N/A"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "N/A"


def name_of(section: Section) -> str:
    """Return what reports call the operation of a section, or all of them."""
    return section.operation.name.upper() if section.operation else "ALL"


def bounded(latencies: Censored, rank: float) -> str:
    """Return a percentile in milliseconds, with ``>`` before a lower bound; a dash for none."""
    value = latencies.supported_percentile(rank)
    at_least = value is not None and latencies.most(rank) > value
    return (AT_LEAST if at_least else "") + milliseconds(value)


def object_path(run: RunDescription, slowest: Slowest) -> str:
    """Return container and object of an operation, as in ``ssbench_000017/tiny_000112``.

    The account is before them where there are several.
    """
    if 0 <= slowest.account < len(run.accounts):
        own = replace(slowest, account=-1)
        return f"{run.accounts[slowest.account]}/{object_path(run, own)}"
    scenario, container, name = run.scenario, slowest.container, slowest.object
    operation = OPERATIONS.get(slowest.operation)
    if operation is not None and not operation.has_object and isinstance(container, int):
        return "" if operation.on is On.ACCOUNT else run.container(container, slowest.group, slowest.master)
    if isinstance(container, int):
        container = run.container(container, slowest.group, slowest.master)
    if isinstance(name, int):
        classes = scenario.size_classes
        known = slowest.size_class < len(classes)
        name = run.name_object(
            classes[slowest.size_class].name if known else "?", name, slowest.group, slowest.master
        )
    return f"{container or '?'}/{name or '?'}"


def rank(percentile: float) -> str:
    """Return the rank of a percentile as people write it: 95, 99.9."""
    return f"{percentile:.10g}"
