"""What the index knows of a run."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import msgspec

from ssbench.comparison.facts import collect_run_facts
from ssbench.comparison.figures import COMPARABLE_FIGURES, make_run_figures
from ssbench.comparison.floor import EarlierRun, is_ratio
from ssbench.comparison.sides import measure_side_differences
from ssbench.document.figures import count_needed_results
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.verdict import verdict_of


@dataclass(frozen=True, slots=True)
class ArchiveEntry:
    """A run in the index. ``started`` is seconds since 1970, ``rate`` operations a second, ``p99`` seconds.

    The latter is None where it is only a lower bound too.
    ``file`` is the name of its stat file in the folder; ``size`` and ``changed`` (nanoseconds) tell whether
    that is still the same. ``facts`` is JSON: what it should have in common with runs that it is compared
    with, by name; and ``figures`` are what :func:`make_earlier_run` reads: operation, size class, figure, logarithm.
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
    figures: str = "{}"


#: What - means in the column of p99; no-op runs have no latencies.
NO_P99_NOTE = (
    f"-: not measured, too few operations (p99 needs {count_needed_results(99):,}), or only a lower bound"
)


#: The last second of the year 5000; a file may claim what no clock shows.
_LATEST_SECOND = 95_649_119_999.0


def make_entry(statistics: RunStatistics, file: str, size: int, changed: int) -> ArchiveEntry:
    """Return the entry of a run."""
    run, total = statistics.run, statistics.total
    label = run.options.get("label")
    rate, latency = total.requests_per_second, total.lines[0].latency
    p99 = latency.supported_percentile(99)
    return ArchiveEntry(
        file=file,
        size=size,
        changed=changed,
        started=min(max(run.started or statistics.start or 0.0, 0.0), _LATEST_SECOND),
        scenario=run.scenario.name,
        label=label if isinstance(label, str) else None,
        users=min(run.scenario.user_count, 2**63 - 1),
        rate=rate if math.isfinite(rate) else None,
        p99=None if p99 is None or latency.most(99) > p99 else p99,
        # A run in progress is incomplete too, which is no verdict yet.
        verdict=verdict_of(statistics).outcome.value if statistics.complete else "incomplete",
        facts=json.dumps(collect_run_facts(statistics)),
        figures=json.dumps(_figures(statistics)),
    )


def _figures(statistics: RunStatistics) -> dict[str, list[tuple[str, str | None, str, float]]]:
    """Return the logarithms of figures, and of the ratios of both sides, with their places."""
    found = {
        "runs": [
            (*key, name, math.log(sample.value))
            for key, row in make_run_figures(statistics, "").rows.items()
            for name, sample in row.items()
            if is_ratio((key, name)) and sample.value > 0
        ]
    }
    if statistics.sides:
        found["sides"] = [
            (*key, name, each.middle)
            for (key, name), each in measure_side_differences(statistics).items()
            if is_ratio((key, name)) and each.middle is not None
        ]
    return found


def make_earlier_run(entry: ArchiveEntry) -> EarlierRun:
    """Return what an entry says of the figures of its run; nothing where it has none."""
    try:
        found = _figures_decoder.decode(entry.figures)
    except msgspec.MsgspecError:
        found = {}
    figures, sides = (
        {
            ((operation, size_class), name): value
            for operation, size_class, name, value in found.get(kind, ())
            if abs(value) < _MAX_LOGARITHM and name in COMPARABLE_FIGURES
        }
        for kind in ("runs", "sides")
    )
    return EarlierRun(entry.started, figures, sides)


#: No figure has a logarithm that is further from 0; others are damage.
_MAX_LOGARITHM = 1000.0
_figures_decoder = msgspec.json.Decoder(dict[str, list[tuple[str, str | None, str, float]]])
