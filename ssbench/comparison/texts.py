"""Values and changes as people read them."""

from __future__ import annotations

from ssbench.comparison.change import Change
from ssbench.document import units
from ssbench.document.figures import Figure, needed
from ssbench.document.units import DASH

#: What a dash in a table means.
NOT_KNOWN = (
    f"-: not measured, too few operations (p99 needs {needed(99):,}), or only a lower bound, because"
    " operations that were due never began; of intervals: too wide to say anything"
)

#: An interval from less than a tenth to far more, as three runs give, says nothing.
_SAYS_NOTHING = 0.9


def cells(figure: Figure, change: Change) -> list[str]:
    """Return before, after, change, interval, what is detectable, the word."""
    interval = ""
    if change.low is not None and change.high is not None:
        interval = f"{units.change(change.low)} to {units.change(change.high)}"
        if not figure.is_share and change.low < -_SAYS_NOTHING and change.high > _SAYS_NOTHING:
            interval = DASH
    return [
        _value(figure, change.before),
        _value(figure, change.after),
        signed(figure, change),
        interval,
        "" if change.detectable is None else f"{units.extent(change.detectable)} %",
        change.word or "",
    ]


def signed(figure: Figure, change: Change) -> str:
    """Return a change in per cent; of shares, in percentage points."""
    if change.change is None:
        return "-"
    return f"{units.change(change.change)}{'' if figure.is_share else ' %'}"


def _value(figure: Figure, value: float | None) -> str:
    return "-" if value is None else figure.compared_in.text(value)
