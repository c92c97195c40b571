"""The one verdict on a comparison, which text, Markdown, pages, JSON and JUnit show alike.

Conditions on a comparison are on changes (``read.p99 > +10%``), or on figures of the second side. A condition
fails only where the whole interval of the figure is beyond its limit, and passes only where none of it is.
Otherwise it is undecided, and what would decide it is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from ssbench.base import record
from ssbench.base.errors import ExitCode, GateResult, choose_exit_code
from ssbench.comparison.change import (
    FAILURES_FIGURE,
    MIN_RUNS_FOR_WORD,
    SHARE_NOISE_FACTOR,
    FigureChange,
    format_detectable,
    format_signed_change,
    is_measured,
)
from ssbench.comparison.run_comparison import Comparison, ComparisonRow, Judged
from ssbench.comparison.run_figures import make_operation_key
from ssbench.document.columns import format_plural
from ssbench.document.elements import Tone, Verdict
from ssbench.document.figures import COMPARED_FIGURES, COMPARED_RANKS, CPU_KEYS, Figure
from ssbench.document.units import Unit, format_change, format_change_size, format_count, format_percent
from ssbench.reports.verdict_words import tone_of_outcome
from ssbench.scenario.conditions import Condition
from ssbench.statistics.run_verdict import Outcome

#: Where smaller changes than this could not have been shown, "no difference shown" is no good news.
FINE_ENOUGH_CHANGE = 0.10

#: Where this share of the operations is of another kind on the other side, figures of all say nothing.
_MAX_OTHER_MIX_SHARE = 0.1

#: Where more operations than this failed, latencies and rates of the others are no good news.
_FEW_FAILED_SHARE = 0.01


class Word(StrEnum):
    """What a comparison says, in a word; "worse" and "better" where only shares (errors) changed that way."""

    FAILED = "failed"
    SLOWER = "slower"
    FASTER = "faster"
    MIXED = "slower and faster"
    WORSE = "worse"
    BETTER = "better"
    WORSE_AND_BETTER = "worse and better"
    SAME = "no difference shown"
    UNDECIDED = "undecided"
    PASSED = "passed"  # of runs that are not compared


class TableVerdict(record.JsonRecord, frozen=True, kw_only=True):
    """The verdict on several runs, whatever table they are.

    ``headline`` is one clause, which begins with the ``word`` where runs are compared and has the largest
    changes; ``reasons`` are sentences, and ``findings`` those of them that say what was found, not how it was
    judged.
    """

    word: Word
    outcome: Outcome  # how good that is
    headline: str
    reasons: tuple[str, ...]
    exit_code: ExitCode = ExitCode.OK  # of the command, by conditions and by how runs ended
    findings: tuple[str, ...] = ()

    @property
    def tone(self) -> Tone:
        """Its colour on a page."""
        return tone_of_outcome(self.outcome)

    @property
    def element(self) -> Verdict:
        """What a document begins with."""
        return Verdict(self.tone, self.headline, self.reasons)


def judge_comparison(comparison: Comparison) -> TableVerdict:
    """Judge a comparison by its conditions, its two head figures, and what else is shown."""
    results = [each.result for each in comparison.conditions]
    shown = [each for each in comparison.changes() if each[2].differs]
    coarse = _is_coarse(comparison)
    failing = _unjudged_errors(comparison)
    found = Word.UNDECIDED if failing and _beyond(failing, comparison) else _choose_word(comparison, shown)
    other_mix = find_other_mix(comparison)
    if other_mix and found not in {Word.WORSE, Word.WORSE_AND_BETTER}:
        found = Word.UNDECIDED
    outcome = OUTCOMES[found]
    if (results and outcome is Outcome.FAILED) or (found is Word.SAME and coarse):
        # It is worse, but within what its conditions allow; or no change could have been shown.
        outcome = Outcome.WARNED
    elif outcome is Outcome.GOOD and (
        comparison.doubt or _failing_share(comparison) or (failing and (failing.change or 0.0) > 0)
    ):
        outcome = Outcome.WARNED
    word, outcome = judge_conditions_first(found, outcome, results)
    parts = [_headline_of_conditions(results)] if word in {Word.FAILED, Word.UNDECIDED} and results else []
    parts.append(_headline_of_changes(comparison, found, shown))
    if (share := _failing_share(comparison)) and "failed" not in parts[-1]:
        parts.append(f"{format_percent(share)} % of operations failed after")
    reasons = [*_make_reasons(comparison, coarse and found is Word.SAME, failing)]
    return TableVerdict(
        word=word,
        outcome=outcome,
        headline="; ".join(part for part in parts if part),
        reasons=tuple(text for text, _ in reasons),
        exit_code=choose_exit_code(results, comparison.undecided),
        findings=tuple(text for text, is_finding in reasons if is_finding),
    )


def judge_conditions_first(
    word: Word, outcome: Outcome, results: Sequence[GateResult]
) -> tuple[Word, Outcome]:
    """Return what conditions say of which one failed or is undecided; without such a one what was found."""
    if GateResult.FAILED in results:
        return Word.FAILED, Outcome.FAILED
    if GateResult.UNDECIDED in results:
        return Word.UNDECIDED, Outcome.UNDECIDED
    return word, outcome


#: How good it is what a word of a comparison says.
OUTCOMES = {
    Word.SLOWER: Outcome.FAILED,
    Word.MIXED: Outcome.FAILED,
    Word.WORSE: Outcome.FAILED,
    Word.WORSE_AND_BETTER: Outcome.FAILED,
    Word.FASTER: Outcome.GOOD,
    Word.BETTER: Outcome.GOOD,
    Word.SAME: Outcome.GOOD,
    Word.UNDECIDED: Outcome.UNDECIDED,
}


def _choose_word(comparison: Comparison, shown: Sequence[tuple[ComparisonRow, str, FigureChange]]) -> Word:
    if not comparison.repeated:
        return Word.UNDECIDED
    return choose_change_word([(COMPARED_FIGURES[figure], change) for _, figure, change in shown])


def choose_change_word(shown: Sequence[tuple[Figure, FigureChange]]) -> Word:
    """Return the word for all changes that are shown; that there is no difference without any."""
    better = {change.better for _, change in shown}
    if not better:
        return Word.SAME
    speeds = {change.better for figure, change in shown if not figure.is_share}
    worse, both, good = (
        (Word.SLOWER, Word.MIXED, Word.FASTER)
        if speeds == better
        else (Word.WORSE, Word.WORSE_AND_BETTER, Word.BETTER)
    )
    return both if len(better) > 1 else good if better.pop() else worse


def _headline_of_conditions(results: Sequence[GateResult]) -> str:
    failed, undecided = results.count(GateResult.FAILED), results.count(GateResult.UNDECIDED)
    counts = [f"{failed} failed"] if failed else []
    counts += [f"{undecided} undecided"] if undecided else []
    word = Word.FAILED if failed else Word.UNDECIDED
    return f"{word}: of {format_plural(len(results), 'condition')} {', '.join(counts)}"


def _headline_of_changes(
    comparison: Comparison, word: Word, shown: Sequence[tuple[ComparisonRow, str, FigureChange]]
) -> str:
    """Return the word with the head figures, and the largest of the other changes."""
    if word is Word.UNDECIDED:
        failing = _unjudged_errors(comparison)
        why = _headline_of_errors(failing) if failing and _beyond(failing, comparison) else ""
        why = why or find_other_mix(comparison)
        return f"no verdict: {why}" if why else "no verdict"
    heads = comparison.heads()
    if word is Word.SAME:
        detectable = " or ".join(_detectable_in_words(comparison))
        return f"{word}{f' (detectable: {detectable} or more)' if detectable else ''}"
    of_heads = [each for each in heads if each[2].differs]
    others = sorted(
        (each for each in shown if each not in of_heads),
        key=lambda each: _change_size(*each[1:]),
        reverse=True,
    )
    mixed = word in {Word.MIXED, Word.WORSE_AND_BETTER}
    parts = [_spell_change(*each, with_word=mixed) for each in of_heads]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        largest = _spell_change(*others[0], with_word=mixed)
        parts.append(f"{'most: ' if of_heads else ''}{largest}{more}")
    speeds = [each for each in heads if not COMPARED_FIGURES[each[1]].is_share]
    if speeds and not any(each in of_heads for each in speeds):
        parts.append(f"not shown of {' and '.join(_name_figure(row, figure) for row, figure, _ in speeds)}")
    if comparison.doubt:
        parts.append(comparison.doubt)
    return f"{word}: {'; '.join(parts)}"


def _change_size(figure: str, change: FigureChange) -> float:
    """Return how large a change is, alike for more and for less."""
    value = change.change or 0.0
    return abs(value) if COMPARED_FIGURES[figure].is_share else abs(math.log1p(max(value, -0.999999)))


def _spell_change(row: ComparisonRow, figure: str, change: FigureChange, *, with_word: bool) -> str:
    if COMPARED_FIGURES[figure].is_share:
        return f"{row.name} {change.word} ({format_signed_change(COMPARED_FIGURES[figure], change)} points)"
    word = f" {change.word}" if with_word else ""
    return f"{_name_figure(row, figure)}{word} ({format_signed_change(COMPARED_FIGURES[figure], change)})"


def _name_figure(row: ComparisonRow, figure: str) -> str:
    return f"{row.name} {COMPARED_FIGURES[figure].title}"


def _count_figures(number: int, kind: str = "") -> str:
    return f"{kind}figure has" if number == 1 else f"{number} {kind}figures share"


def _detectable(comparison: Comparison, *, of_shares: bool) -> float | None:
    """Return the change that all head figures would have shown, or the one of shares.

    None where that is not known.
    """
    found = [
        change.detectable
        for _, figure, change in comparison.heads()
        if change.detectable is not None and COMPARED_FIGURES[figure].is_share is of_shares
    ]
    return max(found, default=None)


def _detectable_in_words(comparison: Comparison) -> Iterator[str]:
    ratio, share = (_detectable(comparison, of_shares=each) for each in (False, True))
    if ratio is not None:
        yield format_detectable(ratio)
    if share is not None:
        yield f"{format_change_size(share)} points of errors"


def _is_coarse(comparison: Comparison) -> bool:
    ratio, share = (_detectable(comparison, of_shares=each) for each in (False, True))
    return (
        ratio is None
        or ratio > FINE_ENOUGH_CHANGE
        or (share or 0.0) > SHARE_NOISE_FACTOR * FINE_ENOUGH_CHANGE
    )


def _unjudged_errors(comparison: Comparison) -> FigureChange | None:
    """Return the change of the share of operations that failed, where no word judges it.

    Single runs do not tell how much of it differs from run to run.
    """
    found = comparison.find(None, None, FAILURES_FIGURE)
    if found is None or found.change is None or found.word is not None:
        return None
    return found if abs(found.change) > SHARE_NOISE_FACTOR * comparison.noise else None


def find_other_mix(comparison: Comparison) -> str:
    """Say that other operations were sent after than before; empty where they were not, or it is not known.

    With more reads and fewer writes a store looks faster, though both may be slower.
    """
    attempts: dict[str, list[float]] = {}
    for row in comparison.rows:
        rate, failed = row.changes.get("rate"), row.changes.get(FAILURES_FIGURE)
        if row.size_class is None and "." not in row.operation and rate is not None:
            failing = (failed.before, failed.after) if failed else (None, None)
            values = zip((rate.before, rate.after), failing, strict=True)
            attempts[row.operation] = [
                (value or 0.0) / (1 - (share or 0.0) or 1.0) for value, share in values
            ]
    if "ALL" not in attempts or len(attempts) < 3:
        return ""
    del attempts["ALL"]
    sums = [sum(each) for each in zip(*attempts.values(), strict=True)]
    if not all(sums):
        return ""
    shares = {
        name: [each / whole for each, whole in zip(own, sums, strict=True)] for name, own in attempts.items()
    }
    if sum(abs(after - before) for before, after in shares.values()) / 2 <= _MAX_OTHER_MIX_SHARE:
        return ""
    most, (before, after) = max(shares.items(), key=lambda each: abs(each[1][1] - each[1][0]))
    return f"the mix differs: {format_percent(before)} % {most} before, {format_percent(after)} % after"


def _failing_share(comparison: Comparison) -> float:
    """Return the share of all operations that failed after, where these are known; 0 where few did."""
    of_all = comparison.find(None, None, FAILURES_FIGURE)
    known = [change for _, name, change in comparison.changes() if name == FAILURES_FIGURE]
    share = max((each.after or 0.0 for each in ([of_all] if of_all else known)), default=0.0)
    return share if share > _FEW_FAILED_SHARE else 0.0


def _beyond(failing: FigureChange, comparison: Comparison) -> bool:
    """Whether the shares of two single runs differ by more than chance within these runs."""
    noise = SHARE_NOISE_FACTOR * comparison.noise
    return (failing.low or 0.0) > noise or (failing.high or 0.0) < -noise


def _headline_of_errors(failing: FigureChange) -> str:
    more = "more" if (failing.change or 0.0) > 0 else "fewer"
    before, after = format_percent(failing.before), format_percent(failing.after)
    return f"{more} operations failed: {before} % of all before, {after} % after"


def _make_reasons(
    comparison: Comparison, coarse: bool, failing: FigureChange | None
) -> Iterator[tuple[str, bool]]:
    """Yield sentences, each with whether it says what was found, and not how it was judged."""
    yield from ((sentence, True) for sentence in _describe_cost_of_groups(comparison))
    yield f"{comparison.judgment[:1].upper()}{comparison.judgment[1:]}.", not comparison.repeated
    judged = [
        (figure, change)
        for _, figure, change in comparison.changes()
        if change.word is not None and is_measured(change)
    ]
    changes = [change for _, change in judged]
    if comparison.repeated and changes:
        heads = [
            _name_figure(row, figure) for row, figure, change in comparison.heads() if change.word is not None
        ]
        of_cpu = sum(figure in CPU_KEYS for figure, _ in judged)
        others = len(changes) - len(heads) - of_cpu
        groups = [f"the{' other' * bool(heads)} {_count_figures(others)} 5 % (Holm)"] if others else []
        groups += [f"the {_count_figures(of_cpu, 'CPU ')} 5 % (Holm)"] if of_cpu else []
        level = f"{5 / max(1, len(heads)):g} %"
        stands = f"The verdict stands on {' and '.join(heads)}" + (
            f", each at {level}" if len(heads) > 1 else f" at {level}"
        )
        yield (
            (stands if heads else "No figure is of all operations")
            + "".join(f"; {each}" for each in groups)
            + f". Changes within {100 * comparison.noise:g} % are noise."
            " 'detects': the change that 9 of 10 such comparisons show.",
            False,
        )
        alone = sum(not change.differs and (change.p or 1.0) <= 0.05 for change in changes)
        if alone:
            yield (
                f"{alone} of {len(changes)} figures {'differs' if alone == 1 else 'differ'} by"
                f" {'its' if alone == 1 else 'their'} own interval; among so many, that is expected"
                " by chance.",
                True,
            )
        detectable = " or ".join(_detectable_in_words(comparison))
        if coarse and detectable:
            yield (
                f"Only changes of {detectable} or more of {' or '.join(heads)} would have been shown; more or"
                " longer runs show smaller ones.",
                True,
            )
    if comparison.repeated and failing and ((failing.change or 0.0) > 0 or _beyond(failing, comparison)):
        words = _headline_of_errors(failing)
        yield (
            f"{words[:1].upper()}{words[1:]}. Latencies are of successes; whether errors differ from run to"
            f" run needs {MIN_RUNS_FOR_WORD} runs a side.",
            True,
        )
    if comparison.drifts:
        drifts = ", ".join(
            f"{COMPARED_FIGURES[name].title} {format_change(value)} %"
            for name, value in comparison.drifts.items()
        )
        yield f"Drift from the first run to the last, besides the change: {drifts}.", False


def _describe_cost_of_groups(comparison: Comparison) -> Iterator[str]:
    """Say of each group of users what it was to it that a side had another group besides."""
    before, after = ((", ".join(f"`{name}`" for name in names)) for names in comparison.groups_apart)
    if not comparison.repeated or not (before or after):
        return
    how = f"With {after}" + (f" in place of {before}" if before else "") if after else f"Without {before}"
    for group in comparison.groups():
        parts = []
        for row in comparison.rows:
            name, operation = row.operation.split(".")
            if name == group and operation != make_operation_key(None) and row.size_class is None:
                # The highest one that changed.
                known = [each for each in reversed(COMPARED_RANKS) if _is_judged(row, each)]
                said = next((each for each in known if row.changes[each].differs), next(iter(known), None))
                if said is not None:
                    parts.append(_spell_cost(f"`{group}`'s {operation} operations", said, row.changes[said]))
            elif name == group and row.size_class is None:
                whose = "its" if parts else f"`{group}`'s"
                parts += [
                    _spell_cost(
                        f"{whose} {'rate' if figure == 'rate' else 'operations'}", figure, row.changes[figure]
                    )
                    for figure in ("rate", FAILURES_FIGURE)
                    if _is_judged(row, figure)
                ]
        if parts:
            yield f"{how}, {'; '.join(parts)}."


def _is_judged(row: ComparisonRow, figure: str) -> bool:
    change = row.changes.get(figure)
    return change is not None and change.word is not None and is_measured(change)


def _spell_cost(what: str, figure: str, change: FigureChange) -> str:
    """Say what became of a figure: ``its rate is 4 % lower (2 to 6)``."""
    value = change.change or 0.0
    if not change.differs:
        place = {"rate": "", FAILURES_FIGURE: " that fail"}.get(
            figure, f" at {COMPARED_FIGURES[figure].title}"
        )
        detectable = (
            "" if change.detectable is None else f" (detectable: {format_detectable(change.detectable)})"
        )
        return f"no difference of {what}{place} is shown{detectable}"
    ends = sorted(abs(each) for each in (change.low, change.high) if each is not None)
    interval = f" ({' to '.join(map(format_change_size, ends))})" if ends else ""
    size, more = format_change_size(abs(value)), value > 0
    if figure == "rate":
        return f"{what} is {size} % {'higher' if more else 'lower'}{interval}"
    if figure == FAILURES_FIGURE:
        return f"{size} points {'more' if more else 'fewer'} of {what} fail{interval}"
    return (
        f"{what} take {size} % {'longer' if more else 'less'} at {COMPARED_FIGURES[figure].title}{interval}"
    )


# -- Conditions ------------------------------------------------------------------------------------


#: Standard errors between the change and the limit that decide nine times of ten: 1.96 + 1.28.
_DECIDING_ERRORS = 3.24

#: More runs a side, or more seconds, are not suggested.
_MAX_RUNS = 200
_MAX_SECONDS = 86_400


def check_change_condition(condition: Condition) -> None:
    """Raise ValueError where a condition is about a figure that is not compared."""
    if condition.figure not in COMPARED_FIGURES:
        raise ValueError(f"{condition.text!r}: only {', '.join(COMPARED_FIGURES)} are compared")
    if COMPARED_FIGURES[condition.figure].is_share and condition.unit not in {Unit.SHARE, Unit.CHANGE}:
        raise ValueError(f"{condition.text!r}: {condition.figure} are compared as a share, such as 0.1%")


def judge_change_condition(comparison: Comparison, condition: Condition) -> Judged:
    """Judge one condition; it fails too where nothing was measured that it is about."""
    found = comparison.find(condition.operation, condition.size_class, condition.figure, condition.group)
    value = None if found is None else found.change if condition.relative else found.after
    if found is None or value is None:
        return _without_value(comparison, condition)
    if not condition.relative:
        return _judge_after(condition, found, value)
    if not (condition.operation or condition.group or condition.row.is_share) and (
        other_mix := find_other_mix(comparison)
    ):
        needs = "one mix on both sides, or conditions on operations (read.p50 > +10%)"
        return Judged(condition.text, other_mix, GateResult.UNDECIDED, needs)
    came = f"{format_change(value)} %"
    if found.low is not None and found.high is not None:
        came += f" ({format_change(found.low)} to {format_change(found.high)})"
    if found.low is None or found.high is None or not found.between_runs:
        return Judged(condition.text, came, GateResult.UNDECIDED, _NOT_REPEATED_TEXT)
    needs = _needs(comparison, condition, found)
    return judge_interval(condition.holds, (found.low, found.high), condition.text, came, needs)


def judge_interval(
    holds: Callable[[float], bool], ends: Iterable[float], name: str, came: str, needs: str
) -> Judged:
    """Judge a condition by the ends of an interval: ``holds`` says whether it is true of a value.

    ``came`` says what the interval is, ``needs`` what would decide.
    """
    held = {*map(holds, ends)}
    if len(held) > 1:
        return Judged(name, came, GateResult.UNDECIDED, needs)
    return Judged(name, came, GateResult.FAILED if held.pop() else GateResult.PASSED)


def _without_value(comparison: Comparison, condition: Condition) -> Judged:
    """Judge where a side has no such figure: there were too few operations for it, or none of them."""
    needs = condition.row.needs
    if needs > 1 and comparison.has(condition.operation, condition.size_class, condition.group):
        wanted = f"more operations ({condition.figure} needs {needs:,} a side)"
        return Judged(condition.text, "too few on one side at least", GateResult.UNDECIDED, wanted)
    return Judged(condition.text, "was not measured on both sides", GateResult.FAILED)


def _judge_after(condition: Condition, found: FigureChange, value: float) -> Judged:
    """Judge a condition on what came after: by the interval of the mean of its runs, or by a single run."""
    came = condition.spell_measured(value)
    if found.after_low is None or found.after_high is None:
        return judge_interval(condition.holds, (value,), condition.text, came, "")
    ends = found.after_low, found.after_high
    came += f" ({' to '.join(map(condition.spell_measured, ends))})"
    return judge_interval(condition.holds, ends, condition.text, came, "more runs, or longer ones")


_NOT_REPEATED_TEXT = (
    f"at least {MIN_RUNS_FOR_WORD} runs a side, as of run-scenario --repeat, or earlier equal"
    f" runs in --results-dir"
)


def _needs(comparison: Comparison, condition: Condition, found: FigureChange) -> str:
    """Say how many runs, or how long a run, would decide a condition if the change stays as it is."""
    if found.error is None or found.change is None:
        return ""
    is_share = COMPARED_FIGURES[condition.figure].is_share
    away = found.change - condition.limit
    if not is_share:
        away = math.log1p(found.change) - math.log1p(max(condition.limit, -0.999999))
    if not away:
        return "a change that is not at its limit"
    # Errors shrink with the square root of what is measured.
    times = (_DECIDING_ERRORS * found.error / away) ** 2
    if comparison.seconds:
        seconds = times * comparison.seconds
        if seconds > _MAX_SECONDS:
            return "a change that is further from its limit"
        return f"about {format_count(round(max(seconds, comparison.seconds)))} s (-r), if the change stays"
    runs = math.ceil(max(times * max(comparison.runs), max(comparison.runs) + 1, MIN_RUNS_FOR_WORD))
    if runs > _MAX_RUNS:
        return "a change that is further from its limit"
    return f"about {runs} runs a side, if the change stays"
