"""Whether an objective holds of a run: certainly, certainly not, or not decided yet.

A percentile within a limit is judged by the share of operations within that limit, errors counting as
outside, with Wilson's interval (95 %) of as many operations as the run is worth: what a store does in one
second is much like what it did in the second before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ssbench.comparison.limit import FAILS_EVIDENCE, HOLDS_EVIDENCE, TrialEvidence
from ssbench.document.gates import GateResult
from ssbench.document.units import Unit, format_count, format_nearly_all
from ssbench.scenario.conditions import Condition, find_unknown_subject, parse_condition
from ssbench.scenario.model import Scenario
from ssbench.statistics.confidence import wilson_interval
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.sections import SectionLine
from ssbench.statistics.thresholds import figure_value, find_condition_line


def resolve_objective(
    conditions: Iterable[Condition], scenario: Scenario, *, noop: bool
) -> tuple[Condition, ...]:
    """Return conditions as they are read where it is known which operations the scenario defines.

    Raises ValueError for one that no search can judge in runs of the scenario.
    """
    found = tuple(parse_condition(each.text, grouped=True) for each in conditions)
    for condition in found:
        text, latency = condition.text, condition.unit is Unit.SECONDS
        if condition.row.more_is_better is not False:
            raise ValueError(
                f"{text!r}: --find needs a limit of a latency or of errors, such as 'read.p99 <= 50ms' or"
                " 'errors <= 0.1%'"
            )
        if condition.relation not in {"<", "<="}:
            raise ValueError(
                f"{text!r}: --find looks for the most load at which a condition holds: use <= or <, as in"
                f" '{text.replace(condition.relation, '<=')}'"
            )
        if wrong := find_unknown_subject(condition, [each.name for each in scenario.size_classes]):
            raise ValueError(wrong)
        if condition.kind == "response" and not scenario.is_open:
            raise ValueError(f"{text!r}: only runs with a rate have response times")
        if latency and noop:
            raise ValueError(f"{text!r}: no-op runs have no latencies")
        classes = [each for each in scenario.size_classes if condition.size_class in {None, each.name}]
        if condition.operation and not any(each.weights.get(condition.operation) for each in classes):
            raise ValueError(f"{text!r}: the scenario has no such operation")
    return found


@dataclass(frozen=True, slots=True)
class ObjectiveFinding:
    """The judgment of one condition, with what it rests on in words.

    ``value`` is the figure that the condition is about, in its unit; None where it was not measured. With
    ``at_least`` it is a lower bound, because operations that were due never began.
    ``evidence`` is what a search for the limit uses; it is of size 0 where nothing was measured.
    """

    condition: Condition
    verdict: GateResult
    text: str
    value: float | None = None
    evidence: TrialEvidence = HOLDS_EVIDENCE
    at_least: bool = False


def judge_objective(statistics: RunStatistics, conditions: Iterable[Condition]) -> list[ObjectiveFinding]:
    """Judge each condition."""
    return [_finding(statistics, condition) for condition in conditions]


def _finding(statistics: RunStatistics, condition: Condition) -> ObjectiveFinding:
    line = find_condition_line(statistics, condition)
    came = figure_value(statistics, condition)
    if line is None or came is None:
        # Where all failed there is no latency either; where there were none, a longer run may have some.
        nothing = line is None or not line.count + line.failed
        if nothing:
            return ObjectiveFinding(
                condition, GateResult.UNDECIDED, "not measured", None, TrialEvidence(1.0, 0.0, 0.5)
            )
        return ObjectiveFinding(condition, GateResult.FAILED, "not measured", None, FAILS_EVIDENCE)
    words = f"{condition.subject} {condition.spell_measured(came)}"
    if condition.figure == "errors" and condition.unit is Unit.SHARE:
        return _judge_error_share(condition, statistics, line, came)
    if condition.rank is not None and condition.rank < 100:
        return _judge_percentile(condition, statistics, line, came)
    if condition.figure == "errors":
        missed = _not_begun(statistics, line)
        words += _never_begun(missed)
        holds = condition.holds(came + missed)
    else:
        holds = condition.holds(came)
    verdict, evidence = (GateResult.PASSED, HOLDS_EVIDENCE) if holds else (GateResult.FAILED, FAILS_EVIDENCE)
    return ObjectiveFinding(condition, verdict, words, came, evidence)


def _judge_percentile(
    condition: Condition, statistics: RunStatistics, line: SectionLine, came: float
) -> ObjectiveFinding:
    """Judge a percentile by the share of operations within its limit."""
    at_least = (condition.row.most(line, statistics) or came) > came
    words = f"{condition.subject} {'at least ' * at_least}{condition.spell_measured(came)}"
    latencies = {
        "first": line.first_byte,
        "service": line.last_byte,
        "response": line.due.response,
    }.get(condition.kind, line.latency.measured)
    wanted = (condition.rank or 0.0) / 100
    everything = latencies.count + line.failed + _not_begun(statistics, line)
    share = latencies.share_within(condition.limit) * latencies.count / everything
    size = everything * _independent_share(latencies, share, wanted)
    low, high = wilson_interval(share, size)
    verdict = _verdict(low > wanted, high >= wanted)
    return ObjectiveFinding(
        condition,
        verdict,
        f"{words}, {format_nearly_all(share)} within {condition.spell(condition.limit)}{_sure(low, high)}",
        came,
        TrialEvidence(share, size, wanted),
        at_least,
    )


def _judge_error_share(
    condition: Condition, statistics: RunStatistics, line: SectionLine, came: float
) -> ObjectiveFinding:
    """Judge the share of errors; what was due and never begun is an error too."""
    missed = _not_begun(statistics, line)
    everything = line.count + line.failed + missed
    share = (line.failed + missed) / everything
    low, high = wilson_interval(share, everything)
    words = f"{condition.subject} {condition.spell_measured(came)}{_never_begun(missed)}{_sure(low, high)}"
    evidence = TrialEvidence(1 - share, everything, 1 - condition.limit)
    return ObjectiveFinding(
        condition, _verdict(condition.holds(low), condition.holds(high)), words, came, evidence
    )


def _never_begun(missed: float) -> str:
    return f", {format_count(round(missed))} never begun" if missed >= 0.5 else ""


def _not_begun(statistics: RunStatistics, line: SectionLine) -> float:
    """Return how many operations of these were due and never begun, as far as that is known."""
    everything = statistics.total.count + statistics.total.failed
    return (statistics.not_begun or 0) * (line.count + line.failed) / everything if everything else 0.0


def _sure(low: float, high: float) -> str:
    return f" (95 % sure: {format_nearly_all(low)} to {format_nearly_all(high)})"


def _verdict(low_holds: bool, high_holds: bool) -> GateResult:
    if low_holds and high_holds:
        return GateResult.PASSED
    return GateResult.UNDECIDED if low_holds or high_holds else GateResult.FAILED


def _independent_share(latencies: Latencies, share: float, wanted: float) -> float:
    """Return how many independent operations one of these is worth, up to 1."""
    # Where all or none are within the limit, what can be seen is how the wanted share came and went.
    ranks = latencies.by_second.ranks(share if 0 < share < 1 else wanted)
    if ranks is None:
        return 1.0
    return min(1.0, ranks.effective_size / latencies.count)
