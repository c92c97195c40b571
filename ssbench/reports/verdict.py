"""What a run came to, in a few sentences: for the head of reports that people look at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from ssbench.conditions import Condition
from ssbench.reports.columns import plural
from ssbench.reports.figures import milliseconds
from ssbench.statistics import Latencies, RunStatistics, Section, judge_run

_MEGABYTE = 1e6


class Tone(Enum):
    """How good it is."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``title`` is a line without the scenario's name, ``sentences`` say more."""

    tone: Tone
    title: str
    sentences: tuple[str, ...]


def verdict(statistics: RunStatistics, conditions: Iterable[Condition] = ()) -> Verdict:
    """Judge a run by what its own statistics say, and by conditions besides those of its scenario."""
    total = statistics.total
    if statistics.start is None:
        return Verdict(Tone.BAD, "no result", ("There is no result in this stat file.",))
    judgments = judge_run(statistics, conditions)
    missed = [f"fail-if {judgment.text}." for judgment in judgments if judgment.failed]
    met = [f"fail-if {judgment.text}." for judgment in judgments if not judgment.failed]
    bad = [*missed, *_ends(statistics), *_failures(statistics)]
    doubts = list(_doubts(statistics))
    tone = Tone.BAD if bad else Tone.DOUBTFUL if doubts else Tone.GOOD
    title = f"{rates(total)}; {plural(total.failed, 'error')}"
    if statistics.interrupted:
        title = f"interrupted: {title}"
    if missed:
        title = f"{plural(len(missed), 'threshold')} missed: {title}"
    good = () if total.failed or not total.count else (f"All {total.count:,} operations succeeded.",)
    return Verdict(tone, title, (*bad, *good, *_sides(statistics), *met, *_latencies(statistics), *doubts))


def rates(section: Section) -> str:
    """Return operations and megabytes a second, with units."""
    return f"{rate(section.requests_per_second)} ops/s, {rate(section.moved_per_second / _MEGABYTE)} MB/s"


def rate(value: float) -> str:
    """Return a rate with three digits or more; infinite where no time passed."""
    if math.isinf(value):
        return "\u221e"
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def share(part: int, whole: int) -> str:
    """Return a share in per cent that never looks like none or all of it when it is not."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.01:
        return "under 0.01 %"
    return f"{percent:.2f} %" if percent < 10 else f"{percent:.1f} %"


def _ends(statistics: RunStatistics) -> Iterator[str]:
    if not statistics.complete:
        yield "The run was killed, or its disk was full: this is what it had written until then."
    elif statistics.interrupted:
        yield f"The run was interrupted after {statistics.duration:,.0f} s."
    elif statistics.ended_early:
        yield f"The run ended itself after {statistics.duration:,.0f} s, before its time; a warning says why."


def _failures(statistics: RunStatistics) -> Iterator[str]:
    total = statistics.total
    if total.failed:
        causes = [f"{cause.count:,} x {name}" for name, cause in statistics.errors.items()]
        named = ", ".join(causes[:3]) + (", ..." if len(causes) > 3 else "")
        everything = total.count + total.failed
        yield (
            f"{total.failed:,} of {plural(everything, 'operation')} failed"
            f" ({share(total.failed, everything)}): {named or 'causes unknown'}."
        )
    elif not total.count:
        yield "No operation succeeded."


def _sides(statistics: RunStatistics) -> Iterator[str]:
    if statistics.run.sides:
        yield f"These figures are of both sides together, {' and '.join(statistics.run.sides)}."


def _latencies(statistics: RunStatistics) -> Iterator[str]:
    for section in statistics.sections[1:]:
        latencies = section.lines[0].last_byte
        if section.operation and latencies.count:
            yield f"{section.operation.name.upper()}: {_typical(latencies)}."


def _typical(latencies: Latencies) -> str:
    text = f"half took at most {milliseconds(latencies.percentile(50))} ms"
    for rank in (99, 95, 90):
        if (value := latencies.supported_percentile(rank)) is not None:
            return f"{text}, {rank} % at most {milliseconds(value)} ms"
    return f"{text}, the slowest {milliseconds(latencies.maximum)} ms"


def _doubts(statistics: RunStatistics) -> Iterator[str]:
    if statistics.run.options.get("noop"):
        yield "This was a no-op run: nothing was sent to Swift."
    warnings = len(statistics.warnings)
    if warnings:
        yield f"There {'is' if warnings == 1 else 'are'} {plural(warnings, 'warning')}; see below."
