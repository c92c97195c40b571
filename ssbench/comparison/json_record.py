"""A comparison as JSON: the comparison itself, with its verdict."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from ssbench import __version__, record
from ssbench.comparison.compare import Comparison
from ssbench.comparison.verdict import Verdict, verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Comparison):
    """A comparison of runs, with its verdict.

    ``changes`` are keyed by figure, as conditions (``--fail-if``) have it: ``rate`` is operations a second,
    ``mb_per_s`` megabytes a second; latencies are in seconds, ``errors`` is a share of 1.
    """

    format: Literal["ssbench comparison"] = "ssbench comparison"
    version: Literal[2] = 2
    made_by: str = __version__
    verdict: Verdict


def report(comparison: Comparison, *_: Any) -> str:
    """Return it as one JSON document."""
    own = {field.name: getattr(comparison, field.name) for field in fields(Comparison)}
    return record.text(Report(**own, verdict=verdict(comparison)))
