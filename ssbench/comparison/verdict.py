"""The one verdict on a comparison, which text, Markdown, pages, JSON and JUnit show alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ssbench.comparison.change import ENOUGH_RUNS, OF_SHARES, Change
from ssbench.comparison.compare import Comparison, Row
from ssbench.comparison.figures import FIGURES
from ssbench.comparison.texts import signed
from ssbench.document import Tone
from ssbench.document.columns import plural
from ssbench.errors import ExitCode
from ssbench.figures.units import change as in_percent
from ssbench.figures.units import extent, percent
from ssbench.gates import Result, exit_code
from ssbench.reports.verdict import tone_of
from ssbench.verdict import Outcome

#: Where smaller changes than this could not have been shown, "no difference shown" is no good news.
FINE_ENOUGH = 0.10


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """``headline`` begins with the ``word`` and has the largest changes; ``reasons`` are sentences.

    ``outcome`` is how good that is, ``exit_code`` that of ``compare``, which its conditions decide.
    """

    word: Word
    outcome: Outcome
    headline: str
    reasons: tuple[str, ...]
    exit_code: ExitCode = ExitCode.OK

    @property
    def tone(self) -> Tone:
        """Its colour on a page."""
        return tone_of(self.outcome)


def verdict(comparison: Comparison) -> Verdict:
    """Judge a comparison by its conditions, its two head figures, and what else is shown."""
    results = [each.result for each in comparison.conditions]
    shown = [each for each in comparison.changes() if each[2].differs]
    coarse = _coarse(comparison)
    failing = _more_errors(comparison)
    found = _word(comparison, shown)
    word, outcome = found, _OUTCOMES[found]
    if Result.FAILED in results:
        word, outcome = Word.FAILED, Outcome.FAILED
    elif Result.UNDECIDED in results:
        word, outcome = Word.UNDECIDED, Outcome.UNDECIDED
    elif (results and outcome is Outcome.FAILED) or (found is Word.SAME and coarse):
        # It is worse, but within what its conditions allow; or no change could have been shown.
        outcome = Outcome.WARNED
    elif failing and outcome is Outcome.GOOD:
        outcome = Outcome.WARNED
    parts = [_of_conditions(results)] if word in {Word.FAILED, Word.UNDECIDED} and results else []
    parts.append(_of_changes(comparison, found, shown))
    return Verdict(
        word,
        outcome,
        "; ".join(part for part in parts if part),
        tuple(_reasons(comparison, coarse and found is Word.SAME, failing)),
        exit_code(results, comparison.undecided),
    )


_OUTCOMES = {
    Word.SLOWER: Outcome.FAILED,
    Word.MIXED: Outcome.FAILED,
    Word.WORSE: Outcome.FAILED,
    Word.WORSE_AND_BETTER: Outcome.FAILED,
    Word.FASTER: Outcome.GOOD,
    Word.BETTER: Outcome.GOOD,
    Word.SAME: Outcome.GOOD,
    Word.UNDECIDED: Outcome.UNDECIDED,
}


def _word(comparison: Comparison, shown: Sequence[tuple[Row, str, Change]]) -> Word:
    if not comparison.repeated:
        return Word.UNDECIDED
    better = {change.better for *_, change in shown}
    if not better:
        return Word.SAME
    speeds = {change.better for _, figure, change in shown if not FIGURES[figure].is_share}
    worse, both, good = (
        (Word.SLOWER, Word.MIXED, Word.FASTER)
        if speeds == better
        else (Word.WORSE, Word.WORSE_AND_BETTER, Word.BETTER)
    )
    return both if len(better) > 1 else good if better.pop() else worse


def _of_conditions(results: Sequence[Result]) -> str:
    failed, undecided = results.count(Result.FAILED), results.count(Result.UNDECIDED)
    counts = [f"{failed} failed"] if failed else []
    counts += [f"{undecided} undecided"] if undecided else []
    word = Word.FAILED if failed else Word.UNDECIDED
    return f"{word}: of {plural(len(results), 'condition')} {', '.join(counts)}"


def _of_changes(comparison: Comparison, word: Word, shown: Sequence[tuple[Row, str, Change]]) -> str:
    """Return the word with the head figures, and the largest of the other changes."""
    if word is Word.UNDECIDED:
        return "no verdict"
    heads = comparison.heads()
    if word is Word.SAME:
        detectable = _detectable(comparison)
        limit = "" if detectable is None else f" (detectable: {extent(detectable)} % or more)"
        return f"{word}{limit}"
    of_heads = [each for each in heads if each[2].differs]
    others = sorted(
        (each for each in shown if each not in of_heads), key=lambda each: _size(*each[1:]), reverse=True
    )
    mixed = word in {Word.MIXED, Word.WORSE_AND_BETTER}
    parts = [_spell(*each, with_word=mixed) for each in of_heads]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        largest = _spell(*others[0], with_word=mixed)
        parts.append(f"{'most: ' if of_heads else ''}{largest}{more}")
    if not of_heads and heads:
        parts.append(f"not shown of {' and '.join(_name(row, figure) for row, figure, _ in heads)}")
    return f"{word}: {'; '.join(parts)}"


def _size(figure: str, change: Change) -> float:
    """Return how large a change is, alike for more and for less."""
    value = change.change or 0.0
    return abs(value) if FIGURES[figure].is_share else abs(math.log1p(max(value, -0.999999)))


def _spell(row: Row, figure: str, change: Change, *, with_word: bool) -> str:
    word = f" {change.word}" if with_word or FIGURES[figure].is_share else ""
    points = " points" if FIGURES[figure].is_share else ""
    return f"{_name(row, figure)}{word} ({signed(FIGURES[figure], change)}{points})"


def _name(row: Row, figure: str) -> str:
    return f"{row.name} {FIGURES[figure].title}"


def _figures(number: int) -> str:
    return "figure has" if number == 1 else f"{number} figures share"


def _detectable(comparison: Comparison) -> float | None:
    """Return the change that all head figures would have shown; None where that is not known."""
    found = [change.detectable for *_, change in comparison.heads() if change.detectable is not None]
    return max(found, default=None)


def _coarse(comparison: Comparison) -> bool:
    detectable = _detectable(comparison)
    return detectable is None or detectable > FINE_ENOUGH


def _more_errors(comparison: Comparison) -> Change | None:
    """Return the change of the share of operations that failed, where more did and no word judges that.

    Single runs and the two sides of one run do not tell how much of it is chance.
    """
    found = comparison.find(None, None, "errors")
    if found is None or found.change is None or found.word is not None:
        return None
    return found if found.change > OF_SHARES * comparison.noise else None


def _reasons(comparison: Comparison, coarse: bool, failing: Change | None) -> Iterator[str]:
    yield f"{comparison.judgment[:1].upper()}{comparison.judgment[1:]}."
    changes = [change for *_, change in comparison.changes() if change.word is not None]
    if comparison.repeated and changes:
        heads = [_name(row, figure) for row, figure, change in comparison.heads() if change.word is not None]
        others = len(changes) - len(heads)
        level = f"{5 / max(1, len(heads)):g} %"
        yield (
            f"The verdict stands on {' and '.join(heads) or 'no head figure'}"
            + (f", each at {level}" if len(heads) > 1 else f" at {level}")
            + (f"; the other {_figures(others)} 5 % (Holm)" if others else "")
            + f". Changes within {100 * comparison.noise:g} % are noise."
            " 'detects': the change that 9 of 10 such comparisons show."
        )
        alone = sum(not change.differs and (change.p or 1.0) <= 0.05 for change in changes)
        if alone:
            yield (
                f"{plural(alone, 'interval')} alone {'is' if alone == 1 else 'are'} beyond the noise, which"
                f" among {len(changes)} figures is no proof."
            )
        detectable = _detectable(comparison)
        if coarse and detectable is not None:
            yield (
                f"This comparison is too coarse to be good news: only changes of {extent(detectable)} % or"
                f" more of {' or '.join(heads)} would have been shown. More or longer runs show smaller ones."
            )
    if comparison.repeated and failing:
        yield (
            f"More operations failed: {percent(failing.before)} % of all before, {percent(failing.after)} %"
            " after. Latencies are of successes; whether errors differ by chance needs"
            f" {ENOUGH_RUNS} runs a side."
        )
    if comparison.drifts:
        drifts = ", ".join(
            f"{FIGURES[name].title} {in_percent(value)} %" for name, value in comparison.drifts.items()
        )
        yield f"Drift from the first run to the last, besides the change: {drifts}."
