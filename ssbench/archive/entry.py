"""What the index knows of a run."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from ssbench.comparison.facts import facts_of
from ssbench.figures import needed
from ssbench.statistics import RunStatistics, judge_run


@dataclass(frozen=True, slots=True)
class Entry:
    """A run in the index. ``started`` is seconds since 1970, ``rate`` operations a second, ``p99`` seconds.

    ``file`` is the name of its stat file in the folder; ``size`` and ``changed`` (nanoseconds) tell whether
    that is still the same. ``facts`` is JSON: what it should have in common with runs that it is compared
    with, by name.
    """

    file: str
    size: int
    changed: int
    started: float
    scenario: str
    label: str | None
    users: int
    rate: float | None
    p99: float | None
    verdict: str
    facts: str = "{}"


#: What - means in the column of p99; no-op runs have no latencies.
NO_P99 = f"-: not measured, or too few operations (p99 needs {needed(99):,})"


#: The last second of the year 5000; a file may claim what no clock shows.
_LATEST = 95_649_119_999.0


def entry_of(statistics: RunStatistics, file: str, size: int, changed: int) -> Entry:
    """Return the entry of a run."""
    run, total = statistics.run, statistics.total
    label = run.options.get("label")
    rate = total.requests_per_second
    return Entry(
        file=file,
        size=size,
        changed=changed,
        started=min(max(run.started or statistics.start or 0.0, 0.0), _LATEST),
        scenario=run.scenario.name,
        label=label if isinstance(label, str) else None,
        users=min(run.scenario.user_count, 2**63 - 1),
        rate=rate if math.isfinite(rate) else None,
        p99=total.lines[0].last_byte.supported_percentile(99),
        verdict=_verdict(statistics),
        facts=json.dumps(facts_of(statistics)),
    )


def _verdict(statistics: RunStatistics) -> str:
    """Say in two words how the run went."""
    if not statistics.complete:
        return "incomplete"
    if statistics.interrupted:
        return "interrupted"
    judgments = judge_run(statistics)
    if any(judgment.failed for judgment in judgments):
        return "fail-if"
    if statistics.total.failed and not judgments:
        return f"{statistics.total.failed} errors"
    return "ok"
