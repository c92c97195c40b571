"""The units of figures, and the one way in which a value of each is written."""

from __future__ import annotations

import math
from enum import Enum

#: What stands for a value that is not known, or that too few results support.
DASH = "-"

#: What precedes a value that is known only to be at least so.
AT_LEAST = ">"

_MEGABYTE = 1e6

#: Latencies from this on are written in seconds, and in hours.
_MIN_IN_SECONDS = 99_999.5e-3
_MIN_IN_HOURS = 9999.5

#: Numbers below a limit have this many decimals; those that are less than the least are only said to be so.
_DECIMALS = ((0.001, 6), (0.01, 5), (0.1, 4), (1, 3), (10, 2), (1000, 1))
_MIN_NUMBER = 1e-6

#: Runs that are shorter than this have no tenths of seconds to speak of.
_MIN_WITH_TENTHS = 0.05


class Unit(Enum):
    """What a value, or the limit of a condition, is a number of."""

    SECONDS = "s"
    SHARE = "%"  # of operations; 0.01 is 1 %
    COUNT = ""
    PER_SECOND = "/s"
    MEGABYTES_PER_SECOND = "MB/s"
    CHANGE = "change"  # relative: 0.1 is +10 %

    @property
    def shown(self) -> str:
        """The unit in which :meth:`text` writes values."""
        return "ms" if self is Unit.SECONDS else self.value

    def text(self, value: float | None) -> str:
        """Return a value as reports show it, without its unit; a dash for none."""
        if self is Unit.SECONDS:
            return format_milliseconds(value)
        if value is None or math.isnan(value):
            return DASH
        if self is Unit.COUNT:
            return format_count(round(value))
        if self is Unit.SHARE:
            return format_percent(value)
        return format_change(value) if self is Unit.CHANGE else format_number(value)

    def spell(self, value: float) -> str:
        """Return a value with its unit as conditions have it, in up to 6 digits."""
        if math.isinf(value):
            return "inf"
        if self is Unit.SECONDS:
            return f"{1000 * value:.6g}ms" if value < 1 else f"{value:.6g}s"
        if self in {Unit.SHARE, Unit.CHANGE}:
            return f"{100 * value:{'+' if self is Unit.CHANGE else ''}.4g}%"
        return f"{value:.6g}{self.value}" if self is not Unit.COUNT else f"{value:.10g}"


def format_milliseconds(seconds: float | None) -> str:
    """Return a time in milliseconds in 5 characters, with three digits or more; a dash for none.

    What is below 0.1 ms is written as .0634; what is longer than 99,999 ms has its own unit: 100s, 3h.
    """
    if seconds is None or not math.isfinite(seconds):
        return "inf" if seconds == math.inf else DASH
    if seconds < 0:  # a difference
        return f"-{format_milliseconds(-seconds)}"
    if seconds >= _MIN_IN_SECONDS:
        return f"{seconds:.0f}s" if seconds < _MIN_IN_HOURS else f"{seconds / 3600:.0f}h"
    value = seconds / 1e-3
    if 0 < value < 0.09995:
        return f"{value:.4f}"[1:]
    for limit, decimals in ((1, 3), (10, 2), (1000, 1)):
        if round(value, decimals) < limit:
            return f"{value:.{decimals}f}"
    return f"{value:.0f}"


def format_time_difference(seconds: float | None) -> str:
    """Return a difference of times in milliseconds, with its sign; a dash for none."""
    text = format_milliseconds(seconds)
    return text if text[0] == "-" else f"+{text}"  # none is a dash too


def format_latency(seconds: float | None) -> str:
    """Return a latency with its unit: ``6.34 ms``, ``100 s``, ``3 h``; a dash for none."""
    text = format_milliseconds(seconds)
    if text[-1] in "sh":
        return f"{text[:-1]} {text[-1]}"
    return text if text in {DASH, "inf"} else f"{text} ms"


def format_seconds(value: float | None) -> str:
    """Return a moment of a run, or how long something of it lasted, in seconds to the millisecond."""
    return DASH if value is None or math.isnan(value) else f"{value:.3f}"


def format_run_length(value: float) -> str:
    """Return how long a run lasted, in seconds; with tenths, so that whole seconds that are cut off agree."""
    return format_number(value) if 0 < value < _MIN_WITH_TENTHS else format_moment(value)


def format_moment(value: float) -> str:
    """Return a moment of a run, or a difference of clocks, in seconds to the tenth."""
    return f"{value:,.1f}".removesuffix(".0")


def format_number(value: float | None, columns: int = 99) -> str:
    """Return a rate or a mean in three significant digits or more, in this many columns; a dash for none.

    What is not zero never looks like it. From 1,000 on there are no decimals.
    """
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value < 0:  # a difference, or the end of an interval
        return f"-{format_number(-value, columns - 1)}"
    if 0 < value < _MIN_NUMBER:
        return f"<{_MIN_NUMBER:f}"
    for limit, decimals in _DECIMALS:
        if 0 < round(value, decimals) < limit:
            return f"{value:.{decimals}f}"
    return format_count(round(value), columns) if value else "0.00"


def format_megabytes(bytes_per_second: float | None, columns: int = 99) -> str:
    """Return bytes a second as megabytes a second, as :func:`format_number` does."""
    return format_number(None if bytes_per_second is None else bytes_per_second / _MEGABYTE, columns)


def format_count(number: int, columns: int = 99) -> str:
    """Return a whole number with commas; where that takes too many columns, in millions, and so on.

    What is less than ten millions is in thousands.
    """
    text = f"{number:,}"
    for power, unit in enumerate("kMGTPE", 1):
        if len(text) <= columns:
            break
        if unit != "k" or number < 9_500_000:
            text = f"{round(number / 1000**power):,}{unit}"
    return text


def format_percent(share: float | None) -> str:
    """Return a share of 1 in per cent, without the sign; one that is not zero never looks like it."""
    if share is None or math.isnan(share):
        return DASH
    value = 100 * share
    if 0 < value < 0.01:
        return "<0.01"
    return f"{value:.2f}" if round(value, 2) < 10 else f"{value:.1f}"


def format_share(part: float, whole: float = 1.0) -> str:
    """Return a part of a whole, or a share of 1, in per cent, with the sign."""
    return f"{format_percent(part / whole if whole else 0.0)} %"


def format_nearly_all(share: float) -> str:
    """Return a share of 1 in per cent, with the sign and three decimals: 99.996 % is not all."""
    return f"{share:.3%}"


def format_probability(value: float) -> str:
    """Return a probability, such as that of a test, to the thousandth."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def format_given_number(value: float) -> str:
    """Return a number as it was given or counted, with commas and in up to 10 digits."""
    return f"{value:,.10g}"


def format_change(share: float | None) -> str:
    """Return a relative change, or a difference of shares, in per cent: ``+5.0``, ``-0.04``, ``+1200``."""
    if share is None or math.isnan(share):
        return DASH
    sign = "-" if share < 0 else "+"
    return f"{sign}{format_change_size(abs(share))}"


def format_change_size(share: float) -> str:
    """Return in per cent how large a change is, or how far values are apart, whichever way."""
    value = 100 * share
    if 0 < value < 0.05:
        return f"{value:.1g}" if value >= 0.01 else "<0.01"
    return f"{value:.1f}" if value < 1000 else f"{value:.0f}"
