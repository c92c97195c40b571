"""The verdict on a run in words, for the head of reports that people look at; it is made elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from ssbench.document.columns import format_plural
from ssbench.document.elements import Tone, Verdict
from ssbench.document.figures import UPPER_RANKS
from ssbench.document.units import (
    AT_LEAST,
    format_count,
    format_latency,
    format_megabytes,
    format_number,
    format_percent,
    format_run_length,
    format_share,
)
from ssbench.reports.writing import ReportOptions
from ssbench.statistics import run_verdict as verdicts
from ssbench.statistics.latency_parts import CensoredLatencies
from ssbench.statistics.run_statistics import FiguresSection, RunStatistics
from ssbench.statistics.run_verdict import Load, Outcome, count_retried

#: An operation whose share of all is this near to what was asked for is as asked.
_SAME_MIX_SHARE = 0.02


#: What an outcome is called at the head of a report, and its tone.
_OUTCOME_WORDS = {
    Outcome.GOOD: ("GOOD", Tone.GOOD),
    Outcome.WARNED: ("WARNED", Tone.DOUBTFUL),
    Outcome.UNDECIDED: ("UNDECIDED", Tone.DOUBTFUL),
    Outcome.NOT_DELIVERED: ("NOT DELIVERED", Tone.BAD),
    Outcome.FAILED: ("FAILED", Tone.BAD),
    Outcome.INTERRUPTED: ("INTERRUPTED", Tone.BAD),
}


def tone_of_outcome(outcome: Outcome) -> Tone:
    """Return the tone of an outcome."""
    return _OUTCOME_WORDS[outcome][1]


def judge_for_reports(statistics: RunStatistics, options: ReportOptions) -> verdicts.RunVerdict:
    """Return the verdict that all reports with these options show."""
    return verdicts.verdict_of(statistics, options.fail_if, options.undecided)


def make_verdict_words(statistics: RunStatistics, options: ReportOptions) -> Verdict:
    """Return the verdict in words."""
    found = judge_for_reports(statistics, options)
    total = statistics.total
    reasons = [_sentence(reason.text) for reason in found.reasons]
    met = [f"fail-if {each.text}." for each in found.judgments if not each.failed and not each.undecided]
    begun = " that began" if statistics.not_begun else ""
    good = (
        ()
        if total.failed or not total.count
        else (f"All {format_count(total.count)} operations{begun} succeeded.",)
    )
    word, tone = _OUTCOME_WORDS[found.outcome]
    return Verdict(
        tone,
        word,
        (*reasons, *good, *_sides(statistics), *met),
        [*_list_facts(found, statistics)],
        [*_latencies(statistics)],
    )


def make_verdict_so_far(statistics: RunStatistics, options: ReportOptions) -> Verdict:
    """Return what there is to say of a run that is running: nothing is judged before its end."""
    found = judge_for_reports(statistics, options)
    conditions = [f"So far, fail-if {each.text}." for each in found.judgments]
    return Verdict(Tone.OPEN, "RUNNING", conditions, [*_list_facts(found, statistics)])


def make_verdict_title(found: verdicts.RunVerdict, statistics: RunStatistics) -> str:
    """Return the first line: the outcome, and what was delivered of what was asked for."""
    return f"{_OUTCOME_WORDS[found.outcome][0]}: {'; '.join(_list_facts(found, statistics))}"


def _list_facts(found: verdicts.RunVerdict, statistics: RunStatistics) -> Iterator[str]:
    if statistics.start is None:
        yield "no result"
    else:
        yield from format_delivered_load(found.asked, found.delivered, statistics)


def format_delivered_load(asked: Load, done: Load, statistics: RunStatistics) -> Iterator[str]:
    """Yield each figure of a load as it was, beside what was asked for; then errors and retries."""
    total = statistics.total
    kept = (total.count + total.failed, _seconds(statistics)) if statistics.warmed_up else None
    yield from _figures_beside(asked, done, kept)
    failed = statistics.warmed_up_failed
    yield format_plural(total.failed, "error") + (
        f" and {format_count(failed)} in the warm-up" if failed else ""
    )
    again, requests = count_retried(statistics)
    if again:
        yield f"{format_share(again, requests)} of requests retried"


def _seconds(statistics: RunStatistics) -> float:
    """Return the length of what figures are of: the window, without the warm-up."""
    return statistics.course.window.seconds if statistics.course else statistics.duration


def _figures_beside(asked: Load, delivered: Load, kept: tuple[int, float] | None = None) -> Iterator[str]:
    """Yield figures; ``kept`` are operations and seconds of the table, where a warm-up was left out."""
    operations_kept = f" ({format_count(kept[0])} without the warm-up)" if kept else ""
    seconds_kept = f" ({format_run_length(kept[1])} without the warm-up)" if kept else ""
    if delivered.rate is not None:
        yield f"{_format_of(format_number(delivered.rate), asked.rate and format_number(asked.rate))} ops/s"
    operations = format_count(delivered.operations or 0)
    if asked.operations is not None:
        yield f"{operations} of {format_plural(asked.operations, 'operation')}{operations_kept}"
    else:
        yield format_plural(delivered.operations or 0, "operation") + operations_kept
    if asked.users is not None:
        users = f"{asked.users:g} user{'' if asked.users == 1 else 's'}"
        yield f"{format_number(delivered.users)} of {users}" if delivered.users else f"up to {users}"
    if delivered.seconds is not None:
        seconds = _format_of(
            format_run_length(delivered.seconds), asked.seconds and format_run_length(asked.seconds)
        )
        yield f"{seconds} s{seconds_kept}"
    if delivered.mix and asked.mix:
        yield from _mix(asked, delivered)


def _format_of(came: str, wanted: str | float | None) -> str:
    return f"{came} of {wanted}" if wanted else came


def _mix(asked: Load, delivered: Load) -> Iterator[str]:
    names = list(dict.fromkeys((*asked.mix, *delivered.mix)))
    shares = [(name, delivered.mix.get(name, 0.0), asked.mix.get(name, 0.0)) for name in names]
    if all(abs(came - wanted) <= _SAME_MIX_SHARE for _, came, wanted in shares):
        yield "mix as asked"
    else:
        for name, came, wanted in shares:
            yield f"{name.upper()} {format_percent(came)} of {format_percent(wanted)} %"


def _sentence(text: str) -> str:
    return f"{text if text.startswith('fail-if') else text[:1].upper() + text[1:]}."


def format_section_rates(section: FiguresSection) -> str:
    """Return operations and megabytes a second, with units."""
    return (
        f"{format_number(section.requests_per_second)} ops/s,"
        f" {format_megabytes(section.moved_per_second)} MB/s"
    )


def _sides(statistics: RunStatistics) -> Iterator[str]:
    if statistics.run.sides:
        yield f"These figures are of both sides together, {' and '.join(statistics.run.sides)}."


def _latencies(statistics: RunStatistics) -> Iterator[str]:
    for section in statistics.sections[1:]:
        latencies = section.lines[0].latency
        if section.operation and latencies.count:
            since = " since they were due" if section.due.since_due.count else ""
            yield f"{section.operation.name.upper()}: {_typical(latencies)}{since}."


def _typical(latencies: CensoredLatencies) -> str:
    if not latencies.supports(50):
        return f"the slowest took {_longest(latencies, 100)}"
    text = f"half took {_bound(latencies, 50)}"
    for rank in UPPER_RANKS:
        if latencies.supports(rank):
            share = 100 - rank if _is_least(latencies, rank) else rank
            return f"{text}, {share} % {_bound(latencies, rank)}"
    return f"{text}, the slowest {_longest(latencies, 100)}"


def _bound(latencies: CensoredLatencies, rank: float) -> str:
    """Return what the fastest took at most; where only the least of that is known, what the others took."""
    if _is_least(latencies, rank):
        return f"{format_latency(latencies.percentile(rank))} or more"
    return f"at most {format_latency(latencies.percentile(rank))}"


def _is_least(latencies: CensoredLatencies, rank: float) -> bool:
    """Whether a percentile may be higher, because operations that were due never began."""
    return latencies.most(rank) > latencies.percentile(rank)


def _longest(latencies: CensoredLatencies, rank: float) -> str:
    least = AT_LEAST if _is_least(latencies, rank) else ""
    return f"{least}{format_latency(latencies.percentile(rank))}"
