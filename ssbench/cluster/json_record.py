"""What the logs say of a run as JSON: the attribution itself, with its answer in words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from ssbench.base import record
from ssbench.base.version import __version__
from ssbench.cluster import texts
from ssbench.cluster.records import Attribution
from ssbench.statistics.waits import Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionReport(Attribution):
    """Which node was slow: the findings, the tables that they rest on, and the ``answer`` in words.

    ``waits`` are those that are as long as a constant of the system.
    """

    format: Literal["ssbench attribution"] = "ssbench attribution"
    version: Literal[1] = 1
    made_by: str = __version__
    answer: list[str]
    waits: tuple[Wait, ...]


@dataclass(frozen=True, slots=True)
class AttributedRun:
    """What the logs say of a run, and the waits in its latencies that are as long as a constant."""

    found: Attribution
    waits: tuple[Wait, ...] = ()


def make_attribution_json(attributed: AttributedRun, *_: object) -> str:
    """Return it as one JSON document."""
    found = attributed.found
    own = {field.name: getattr(found, field.name) for field in fields(Attribution)}
    return record.format_json(
        AttributionReport(**own, answer=texts.describe_attribution(found), waits=attributed.waits)
    )
