"""The report on equal runs: what naive rules make of them, what is detectable, and what a change costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from ssbench.base import record
from ssbench.base.errors import ExitCode
from ssbench.base.text_values import format_duration
from ssbench.comparison.change import MIN_RUNS_FOR_WORD
from ssbench.comparison.comparison_verdict import TableVerdict, Word
from ssbench.comparison.equal_runs import (
    BUDGETS_SECONDS,
    LONG_RUN_SECONDS,
    MAX_PAIRS,
    MIN_EQUAL_RUNS,
    NAIVE_CHANGE,
    Detection,
    FigureNoise,
    NoiseFindings,
    Price,
    RedShare,
)
from ssbench.document.columns import format_plural
from ssbench.document.elements import (
    CURVE_COLOURS,
    Chart,
    Curve,
    Document,
    Element,
    Note,
    Table,
    Verdict,
    View,
    Warnings,
    make_columns,
)
from ssbench.document.figures import COMPARED_FIGURES
from ssbench.document.units import DASH, format_change_size, format_share
from ssbench.reports.csv import format_csv
from ssbench.statistics.run_verdict import Outcome

#: The times whose detectable changes are drawn.
_DRAWN_MINUTES = (3.0, 5.0, 8.0, 15.0, 30.0, 60.0, 120.0, 240.0)

_NAIVE_TITLE = f"a change of {100 * NAIVE_CHANGE:g} %"

_DEVIATIONS_NOTE = (
    "Standard deviations: of any runs, and of neighbours; the part that is seen within a run, and falls with"
    " its length, and the part that stays between runs. Red: which share of all pairs of these runs"
    f" {_NAIVE_TITLE} would call different, which share is to be expected, and that of runs of"
    f" {LONG_RUN_SECONDS:g} s."
)


class FigureNoiseRecord(record.JsonRecord, frozen=True, kw_only=True):
    """How a figure of all operations differs between equal runs; deviations are of its logarithm."""

    figure: str  # its key
    mean: float  # over the runs, in its unit
    is_head: bool  # the verdict of compare stands on it
    deviation: float  # from run to run
    deviation_in_turn: float  # from a run to its neighbour, as pairs have it
    within: float | None  # the part that is seen within runs, which falls with their length; null: not known
    between: float | None  # the part that stays however long runs are; null: not known
    freedom: float  # degrees of freedom of ``deviation_in_turn``
    by_change: RedShare  # a rule that calls a change of 5 % of the point estimate a difference
    detections: tuple[Detection, ...]  # the smallest change that 5, 15 and 60 minutes show in nine of ten
    price: Price | None  # the cheapest plan that shows the wanted change; null: not known, or too dear


class NoiseVerdict(record.JsonRecord, frozen=True, kw_only=True):
    """``headline`` names the price, or says that it is undecided; ``reasons`` are sentences."""

    decided: bool
    headline: str
    reasons: tuple[str, ...]


class NoiseReport(record.JsonHead, frozen=True, kw_only=True):
    """What equal runs say of comparisons."""

    format: Literal["ssbench noise"] = "ssbench noise"
    version: Literal[1] = 1
    runs: int  # how many there were
    run_seconds: float | None  # the length of each; null: not known
    detect: float  # the change that is asked for, as a share
    price: Price | None  # the cheapest plan that shows it of all head figures; null: undecided
    by_seconds: RedShare | None  # a t-test on the rates of the seconds of single runs; null: not known
    figures: tuple[FigureNoiseRecord, ...]
    verdict: NoiseVerdict
    warnings: tuple[str, ...]


def judge_noise(found: NoiseFindings) -> TableVerdict:
    """Return the conclusion, whose headline names the price, or says that it is undecided."""
    price = found.price(found.heads) if found.is_decided else None
    change = f"{100 * found.wanted:.3g} %"
    what = " and ".join(COMPARED_FIGURES[each.key].title for each in found.heads)
    if not found.is_decided:
        many = format_plural(len(found.runs), "equal run")
        do = "does" if len(found.runs) == 1 else "do"
        title = f"undecided: {many} {do} not tell how much runs differ; {MIN_EQUAL_RUNS} or more do"
        if len(found.runs) >= MIN_EQUAL_RUNS:
            title = f"undecided: too few of these runs follow each other, or have the figures ({many})"
    elif price is None:
        title = f"undecided: {change} of {what} needs more than {MAX_PAIRS} pairs"
    else:
        title = f"{spell_price(price)} show a change of {change} of {what} in 9 of 10"
    return TableVerdict(
        word=Word.UNDECIDED if price is None else Word.PASSED,
        outcome=Outcome.UNDECIDED if price is None else Outcome.GOOD,
        headline=title,
        reasons=tuple(_make_reasons(found, price)),
        exit_code=ExitCode.UNDECIDED if price is None else ExitCode.OK,
    )


def spell_price(price: Price) -> str:
    """Return a plan in words."""
    length = "" if price.seconds is None else f" of {price.seconds:g} s"
    total = "" if price.total is None else f" ({format_duration(price.total)})"
    return f"{price.pairs} pairs of runs{length} in turn{total}"


def _make_reasons(found: NoiseFindings, price: Price | None) -> Iterator[str]:
    for figure in found.heads:
        yield (
            f"Equal runs differ by {_spell(figure.total)} % of {COMPARED_FIGURES[figure.key].title} (standard"
            f" deviation): {_NAIVE_TITLE} between two of them would be called in"
            f" {_spell_red(found.red_by_change(figure))}."
        )
    by_seconds = found.red_by_seconds()
    if by_seconds is not None:
        longer = (
            ""
            if by_seconds.share_long is None
            else f", of runs of {LONG_RUN_SECONDS:g} s in some {round(100 * by_seconds.share_long)} %"
        )
        yield (
            "A t-test on the seconds of two runs would call them different in"
            f" {_spell_red(by_seconds)}{longer}."
        )
    rate = next((each for each in found.heads if each.between is not None), None)
    if rate is not None and rate.between is not None and rate.within is not None:
        yield (
            f"Of {COMPARED_FIGURES[rate.key].title}, {_spell(rate.within)} % are seen within a run, and fall"
            f" with its length; between runs {_spell(rate.between)} % are left, however long they are."
        )
    if any(each.in_turn < each.total / 2 for each in found.heads if each.is_known):
        yield "Runs drift: neighbours differ much less than others, so measure in turn."
    if price is not None and price.seconds is not None:
        yield (
            f"Measure it with: ssbench-master run-scenario -f FILE -r {price.seconds:g} --repeat "
            f"{price.pairs} --pause 0 --versus=OPTIONS."
        )


def _spell(of_run: float) -> str:
    """Return a variance as a deviation in per cent, without the sign."""
    return format_change_size(math.expm1(math.sqrt(of_run)))


def _spell_red(red: RedShare) -> str:
    expected = "" if red.share is None else f" (expected: {round(100 * red.share)} %)"
    return f"{red.red} of {format_plural(red.pairs, 'pair')} of these runs{expected}"


def make_noise_document(found: NoiseFindings, _view: View | None = None) -> Document:
    """Return the document."""
    verdict = judge_noise(found)
    length = "" if found.seconds is None else f" of {found.seconds:.4g} s"
    elements: list[Element] = [_make_noise_table(found), Note(_DEVIATIONS_NOTE)]
    if any(each.is_known for each in found.figures):
        elements += [_make_price_table(found), Note(_explain_detection(found)), *_make_charts(found)]
    elements += [Note(note) for note in found.notes]
    if found.warnings:
        elements.append(Warnings(found.warnings))
    facts = [found.took] if found.took else []
    return Document(
        f"Noise: {format_plural(len(found.runs), 'equal run')}{length}",
        elements,
        Verdict(verdict.tone, verdict.headline, verdict.reasons, (), facts),
    )


def _make_noise_table(found: NoiseFindings) -> Table:
    rows = []
    for figure in found.figures:
        row = COMPARED_FIGURES[figure.key]
        red = found.red_by_change(figure)
        parts = [DASH if each is None else _spell(each) for each in (figure.within, figure.between)]
        rows.append(
            (
                row.compared_head,
                row.compared_in.text(figure.mean),
                _spell(figure.total),
                _spell(figure.in_turn),
                *parts,
                format_share(red.red, red.pairs),
                DASH if red.share is None else format_share(red.share),
                DASH if red.share_long is None else format_share(red.share_long),
            )
        )
    heads = ("figure", "mean", "runs", "neighbours", "within", "between")
    red_heads = (f"{100 * NAIVE_CHANGE:g} % red", "expected", f"at {LONG_RUN_SECONDS:g} s")
    return Table(
        make_columns(*heads, *red_heads), rows, title="Equal runs, and by how many per cent they differ"
    )


def _make_price_table(found: NoiseFindings) -> Table:
    rows = []
    for figure in found.figures:
        price = found.price([figure]) if figure.is_known else None
        changes = [found.detection(figure, budget).change for budget in BUDGETS_SECONDS]
        rows.append(
            (
                COMPARED_FIGURES[figure.key].compared_head,
                *(DASH if each is None else f"{format_change_size(each)} %" for each in changes),
                *_spell_cells(price),
            )
        )
    columns = make_columns(
        "figure",
        *(f"in {budget / 60:g} min" for budget in BUDGETS_SECONDS),
        f"pairs for {100 * found.wanted:.3g} %",
        "of s",
        "in all",
    )
    return Table(columns, rows, title="What is shown in 9 of 10")


def _spell_cells(price: Price | None) -> Sequence[str]:
    if price is None:
        return (DASH, DASH, DASH)
    return (
        str(price.pairs),
        DASH if price.seconds is None else f"{price.seconds:g}",
        DASH if price.total is None else format_duration(price.total),
    )


def _make_charts(found: NoiseFindings) -> Iterator[Chart]:
    """Yield the chart of what is shown in how much time."""
    curves = []
    for place, figure in enumerate(found.heads):
        shown = [found.detection(figure, 60 * minutes) for minutes in _DRAWN_MINUTES]
        known = [(each.minutes, 100 * each.change) for each in shown if each.change is not None]
        if len(known) > 1:
            x, y = np.array(known).T
            title = COMPARED_FIGURES[figure.key].title
            curves.append(Curve(title, x, y, CURVE_COLOURS[place], pointed=True))
    if curves:
        yield Chart(
            "The smallest change that is shown in 9 of 10", "%, by minutes", curves, axis="min", log=True
        )


def _explain_detection(found: NoiseFindings) -> str:
    heads = " and ".join(COMPARED_FIGURES[each.key].title for each in found.heads)
    return (
        "Shown is what 'compare' would call different, of runs in turn (--versus) with one error rate of 5 %:"
        f" the verdict stands on {heads}, all other figures share the level. At least {MIN_RUNS_FOR_WORD}"
        f" pairs, at most {MAX_PAIRS}; times are without initial uploads. The few runs that were made are"
        " allowed for: more of them make plans cheaper. What differs from day to day is in none of this"
        " unless the runs are of several days."
    )


def make_noise_json(found: NoiseFindings, *_: object) -> str:
    """Return the findings as one JSON document."""
    verdict = judge_noise(found)
    return record.format_json(
        NoiseReport(
            exit_code=verdict.exit_code,
            runs=len(found.runs),
            run_seconds=found.seconds,
            detect=found.wanted,
            price=found.price(found.heads) if found.is_decided else None,
            by_seconds=found.red_by_seconds(),
            figures=tuple(_make_record(found, figure) for figure in found.figures),
            verdict=record.make_record_from(NoiseVerdict, verdict, decided=verdict.word is Word.PASSED),
            warnings=found.warnings,
        )
    )


def make_noise_csv(found: NoiseFindings, *_: object) -> str:
    """Return a line for each figure: deviations of its logarithm, shares, and what a change costs."""
    minutes = [f"{budget / 60:g}" for budget in BUDGETS_SECONDS]
    names = ["figure", "mean", "is_head", "deviation", "deviation_in_turn", "within", "between", "freedom"]
    lines: list[list[object]] = [
        [
            *names,
            *("red", "pairs", "red_expected", "red_expected_long"),
            *(f"detectable_{each}_min" for each in minutes),
            *("price_pairs", "price_run_seconds", "price_seconds"),
        ]
    ]
    for figure in found.figures:
        made = _make_record(found, figure)
        red, price = made.by_change, made.price
        lines.append(
            [
                *(getattr(made, name) for name in names),
                *(red.red, red.pairs, red.share, red.share_long),
                *(each.change for each in made.detections),
                *((price.pairs, price.seconds, price.total) if price else (None,) * 3),
            ]
        )
    return format_csv(lines)


def _make_record(found: NoiseFindings, figure: FigureNoise) -> FigureNoiseRecord:
    return record.make_record_from(
        FigureNoiseRecord,
        figure,
        figure=figure.key,
        deviation=math.sqrt(figure.total),
        deviation_in_turn=math.sqrt(figure.in_turn),
        within=None if figure.within is None else math.sqrt(figure.within),
        between=None if figure.between is None else math.sqrt(figure.between),
        by_change=found.red_by_change(figure),
        detections=tuple(found.detection(figure, budget) for budget in BUDGETS_SECONDS),
        price=found.price([figure]) if figure.is_known else None,
    )
