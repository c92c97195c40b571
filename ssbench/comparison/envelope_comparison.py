"""Envelopes compared cell by cell, with one verdict on the highest rates of all.

One envelope a side has a verdict: its runs say how well each limit is known. Of :data:`MIN_ROUNDS` or more a
side each counts once, so that what differs from envelope to envelope is in the intervals too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from ssbench.base.errors import UsageError
from ssbench.base.untrusted import TooMuchError, read_small_file
from ssbench.comparison.change import NO_DRIFT, Drift, FigureDifference, measure_difference
from ssbench.comparison.envelope_report import EnvelopeReport
from ssbench.comparison.family import (
    MIN_ROUNDS,
    FamilyComparison,
    FamilyRow,
    RowRun,
    compare_table,
    judge_differences,
    list_row_figures,
)
from ssbench.comparison.run_comparison import Judged
from ssbench.comparison.run_figures import FigureSample
from ssbench.comparison.run_table import RunTable, make_run_table
from ssbench.comparison.store_limits import (
    EnvelopeCell,
    EnvelopeCondition,
    check_envelope_conditions,
    find_rate_error,
    judge_envelope_condition,
)
from ssbench.document.units import Unit
from ssbench.scenario.conditions import parse_conditions
from ssbench.statistics.confidence import t_quantile

#: How the JSON of an envelope begins.
_BEGINNING = re.compile(rb'\s*\{\s*"format"\s*:\s*"ssbench envelope"')
_MAX_BYTES = 10_000_000

#: An interval of 95 % has so many standard errors on either side.
_ERRORS_OF_HALF = t_quantile(0.975, math.inf)

_REMARK = "ops/s: the highest rates at which the conditions held; p50: that of one user."


def list_envelope_files(name: Path) -> list[Path]:
    """Return the JSON of envelopes that a file is, or that are in a folder; none of another one."""
    if not name.is_dir():
        return [name] if name.name.endswith(".json") and _is_envelope(name) else []
    if any(not each.name.startswith("envelope.") for each in name.glob("*.stat.gz")):
        return []  # of other runs
    return [each for each in sorted(name.glob("*.json")) if _is_envelope(each)]


def _is_envelope(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return _BEGINNING.match(opened.read(200)) is not None
    except OSError:  # which is said where it is read as something else
        return False


def read_envelope(file: Path) -> EnvelopeReport:
    """Return what ``envelope --json`` has written, of any version; raises UsageError."""
    try:
        found = msgspec.json.decode(read_small_file(file, _MAX_BYTES), type=dict[str, Any])
        if found.get("version") == 1:
            mixed = found.get("mixed")
            own = [] if mixed is None else [mixed] if isinstance(mixed, dict) else mixed
            found = {"stores": None, **found, "version": 2, "mixed": own}
        return msgspec.convert(found, EnvelopeReport)
    except (OSError, TooMuchError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: {getattr(error, 'strerror', None) or error}") from None


def compare_envelopes(
    before: tuple[str, Sequence[EnvelopeReport]], after: tuple[str, Sequence[EnvelopeReport]], noise: float
) -> FamilyComparison:
    """Compare two sides, given by name and envelopes; raises UsageError without a cell in common."""
    sides = before, after
    table = make_run_table(
        [name for name, _ in sides],
        (
            (cell.name, place, cell)
            for place, (_, reports) in enumerate(sides)
            for report in reports
            for cell in report.cells
        ),
    )
    warnings = [
        f"{what}: {first} before, {second} after"
        for what, first, second in (
            ("condition", *(_join(each.condition for each in own) for _, own in sides)),
            ("minutes", *(_join(f"{each.minutes:g}" for each in own) for _, own in sides)),
            ("mixed load lasted", *(_join(map(_spell_lasting, own)) for _, own in sides)),
        )
        if first != second
    ]
    return compare_cells(table, noise, warnings)


def judge_envelopes(
    reports: Sequence[EnvelopeReport], conditions: Sequence[EnvelopeCondition]
) -> tuple[Judged, ...]:
    """Judge conditions on the cells of each of some envelopes; raises UsageError where one has no such."""
    for each in reports:
        check_envelope_conditions(conditions, [cell.name for cell in each.cells])
    return tuple(judge_envelope_condition(each, report.cells) for report in reports for each in conditions)


def _join(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _spell_lasting(report: EnvelopeReport) -> str:
    return _join("yes" if each.lasted else "no" for each in report.mixed) or "not run"


def compare_cells(
    table: RunTable[EnvelopeCell], noise: float, warnings: Sequence[str] = (), *, in_turn: bool = False
) -> FamilyComparison:
    """Compare the cells of two sides; raises UsageError where they have none in common."""
    rows = {name: sides for name, sides in table.rows.items() if all(sides)}
    if not rows:
        raise UsageError(f"{' and '.join(table.sides)}: no sizes and operations in common")
    warnings = [
        *(
            f"only {side}: {', '.join(names)}"
            for side, other in (("before", 1), ("after", 0))
            if (names := table.list_rows_without(other))
        ),
        *warnings,
    ]
    if all(len(side) >= MIN_ROUNDS for sides in rows.values() for side in sides):
        reduced = table.reduced(_make_row_run)
        open_ends = [
            name
            for name in rows
            if any("rate" not in run.figures for side in reduced.rows[name] for run in side)
        ]
        made = compare_table(reduced, noise, [*warnings, *_warn_of_bounds(open_ends)])
        return replace(made, remarks=(_REMARK,))
    figures = list_row_figures()
    found: dict[tuple[int, str], FigureDifference] = {}
    open_ends = []
    for place, (name, (first, second)) in enumerate(rows.items()):
        if (measured := _measure_rates(first, second)) is not None:
            found[place, "rate"] = measured
        if measured is None or not measured.sure:
            open_ends.append(name)
        alone = [[*map(_make_row_run, side)] for side in (first, second)]
        one, two = ([each.figures["p50"] for each in side if "p50" in each.figures] for side in alone)
        found[place, "p50"] = replace(measure_difference(figures["p50"], one, two), sure=False)
    warnings += _warn_of_bounds(open_ends)
    return judge_differences(
        FamilyComparison(
            table.sides[0],
            table.sides[1],
            tuple(FamilyRow(name, (len(first), len(second)), {}) for name, (first, second) in rows.items()),
            noise,
            0,
            in_turn,
            tuple(warnings),
            remarks=(_REMARK,),
            why_not="No verdict: no limit is known on both sides.",
            missing=tuple(table.list_rows_without(1)),
        ),
        found,
    )


def _warn_of_bounds(names: Sequence[str]) -> list[str]:
    return [f"not judged, because a limit was not found: {', '.join(names)}"] if names else []


def _make_row_run(cell: EnvelopeCell) -> RowRun:
    """Return the figures of a cell as those of a run: its highest rate, and the latency of one user."""
    rate, alone = _find_rate(cell), cell.one_user.p50 if cell.one_user else None
    figures = {}
    if rate is not None and not (rate.is_least or rate.is_most):
        figures["rate"] = FigureSample(rate.value)
    if alone and alone > 0:  # neither null nor not a number, where all of its operations failed
        figures["p50"] = FigureSample(alone)
    return RowRun(figures)


@dataclass(frozen=True, slots=True)
class _HighestRate:
    """The highest rate of a cell."""

    value: float
    error: float  # standard error of its logarithm
    is_least: bool = False  # it may be any higher one
    is_most: bool = False  # it may be any lower one


def _find_rate(cell: EnvelopeCell) -> _HighestRate | None:
    """Return the highest rate of a cell; None where nothing is known of it."""
    # What JSON has as null is None here, whatever the type says.
    if cell.users and cell.rate and cell.rate_low:
        is_least = cell.at_least or not cell.rate_high or math.isinf(cell.rate_high)
        ends = [cell.rate / cell.rate_low, *([] if is_least else [cell.rate_high / cell.rate])]
        return _HighestRate(cell.rate, math.log(max(ends)) / _ERRORS_OF_HALF, is_least=is_least)
    one = cell.one_user
    if (
        cell.users is None and cell.runs > 1 and one is not None and (one.rate or 0) > 0
    ):  # it does not hold even there
        return _HighestRate(one.rate, find_rate_error([[one]]) / _ERRORS_OF_HALF, is_most=True)
    return None


def _measure_rates(before: Sequence[EnvelopeCell], after: Sequence[EnvelopeCell]) -> FigureDifference | None:
    """Return the difference of the highest rates; None where one is not known at all.

    It is not sure where one is only a bound, and both may be equal.
    """
    sides = [[each for cell in side if (each := _find_rate(cell))] for side in (before, after)]
    if [*map(len, sides)] != [len(before), len(after)]:
        return None
    first, second = (fmean(math.log(each.value) for each in side) for side in sides)
    middle = second - first
    may_be_less = any(each.is_least for each in sides[0]) or any(each.is_most for each in sides[1])
    may_be_more = any(each.is_most for each in sides[0]) or any(each.is_least for each in sides[1])
    drift = _find_drift(before, after)
    return FigureDifference(
        math.exp(first),
        math.exp(second),
        middle,
        math.hypot(*(each.error / len(side) for side in sides for each in side)),
        drift=Drift(math.inf if may_be_less else drift.up, math.inf if may_be_more else drift.down),
        sure=not (may_be_less and middle >= 0) and not (may_be_more and middle <= 0),
    )


def _find_drift(before: Sequence[EnvelopeCell], after: Sequence[EnvelopeCell]) -> Drift:
    """Return the difference of rates that other limits of latency explain.

    The milliseconds of a cell follow from its run of one user, so they differ by chance. So many more
    of them allow at most so many more users, which bring what they brought last.
    """
    limits = [[_list_latency_limits(cell) for cell in side] for side in (before, after)]
    named = [{*each} for side in limits for each in side]
    gain = max(_find_gain(cell) for cell in (*before, *after))
    return NO_DRIFT.joined(
        *(
            gain * (fmean(math.log(each[name]) for each in limits[1]) - fmean(own))
            for name in set.intersection(*named)
            if (own := [math.log(each[name]) for each in limits[0]])
        )
    )


def _list_latency_limits(cell: EnvelopeCell) -> dict[str, float]:
    """Return the limits of latencies in the condition of a cell, by what they are of."""
    found = {}
    with suppress(ValueError):  # it is the text of a file
        for each in parse_conditions(cell.condition, grouped=True):
            if each.unit is Unit.SECONDS and each.limit > 0:
                found[each.subject] = each.limit
    return found


def _find_gain(cell: EnvelopeCell) -> float:
    """Return how much the rate rises near the limit as users do, of logarithms: 0 not at all, 1 as much."""
    half, limit = cell.half, cell.limit
    if half is None or limit is None or half.users >= limit.users or not half.rate or not limit.rate:
        return 1.0
    return min(1.0, max(0.0, math.log(limit.rate / half.rate) / math.log(limit.users / half.users)))
