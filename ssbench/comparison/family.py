"""Which of many changes are shown, so that luck shows one in one of twenty comparisons, not in each.

Of 32 figures of a run in which nothing changed, one or two have an interval of 95 % without 0 in it. So the
verdict stands on two head figures, each at half the level; of all others those are shown that Holm's
procedure (1979) keeps: the least probable one at the level divided by their number, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ssbench.comparison.change import SIGNIFICANCE_LEVEL, FigureChange, FigureDifference, judge_change
from ssbench.comparison.figures import COMPARABLE_FIGURES, FigureKey

#: The figures on which the verdict stands, of all operations.
HEAD_FIGURES = ("p50", "rate")

#: A third one where operations failed: latencies and rates are of those that did not.
FAILURES_FIGURE = "errors"

FigurePlace = tuple[FigureKey, str]


def judge_changes(
    found: Mapping[FigurePlace, FigureDifference], noise: float
) -> dict[FigurePlace, FigureChange]:
    """Return the changes of all figures, in the same order."""
    sure = [place for place, each in found.items() if each.sure and is_measured(each)]
    heads = [
        place for place in sure if place[0] == ("ALL", None) and place[1] in {*HEAD_FIGURES, FAILURES_FIGURE}
    ]
    others = [place for place in sure if place not in heads]
    plain = {place: judge_change(COMPARABLE_FIGURES[place[1]], each, noise) for place, each in found.items()}
    shown = apply_holm([plain[place].p or 0.0 for place in others])
    changes = dict(plain)
    for place in heads:
        changes[place] = judge_change(
            COMPARABLE_FIGURES[place[1]], found[place], noise, SIGNIFICANCE_LEVEL / len(heads)
        )
    for place, is_shown in zip(others, shown, strict=True):
        changes[place] = judge_change(
            COMPARABLE_FIGURES[place[1]],
            found[place],
            noise,
            SIGNIFICANCE_LEVEL / len(others),
            shown=is_shown,
        )
    return changes


def is_measured(found: FigureDifference | FigureChange) -> bool:
    """Whether there is something that could differ: not where no operation failed on either side."""
    return bool(found.before or found.after)


def apply_holm(probabilities: Sequence[float], level: float = SIGNIFICANCE_LEVEL) -> list[bool]:
    """Return which are not by chance, of several probabilities, at a level for all of them together."""
    shown = [False] * len(probabilities)
    for rank, place in enumerate(sorted(range(len(shown)), key=lambda place: probabilities[place])):
        if probabilities[place] > level / (len(shown) - rank):
            break
        shown[place] = True
    return shown
