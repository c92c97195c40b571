"""Values and changes as people read them."""

from __future__ import annotations

from ssbench.comparison.change import FigureChange
from ssbench.document import units
from ssbench.document.figures import Figure, count_needed_results
from ssbench.document.units import DASH

#: What a dash in a table means.
NOT_KNOWN_NOTE = (
    f"-: not measured, too few operations (p99 needs {count_needed_results(99):,}), or only a lower bound, because"
    " operations that were due never began; of intervals: too wide to say anything"
)

#: An interval from less than a tenth to far more, as three runs give, says nothing.
_MAX_USEFUL_WIDTH = 0.9


def format_change_cells(figure: Figure, change: FigureChange) -> list[str]:
    """Return before, after, change, interval, what is detectable, the word."""
    interval = ""
    if change.low is not None and change.high is not None:
        interval = f"{units.format_change(change.low)} to {units.format_change(change.high)}"
        if not figure.is_share and change.low < -_MAX_USEFUL_WIDTH and change.high > _MAX_USEFUL_WIDTH:
            interval = DASH
    return [
        _format_value(figure, change.before),
        _format_value(figure, change.after),
        format_signed_change(figure, change),
        interval,
        "" if change.detectable is None else f"{units.format_change_size(change.detectable)} %",
        change.word or "",
    ]


def format_signed_change(figure: Figure, change: FigureChange) -> str:
    """Return a change in per cent; of shares, in percentage points."""
    if change.change is None:
        return "-"
    return f"{units.format_change(change.change)}{'' if figure.is_share else ' %'}"


def _format_value(figure: Figure, value: float | None) -> str:
    return "-" if value is None else figure.compared_in.text(value)
