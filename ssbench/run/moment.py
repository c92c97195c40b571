"""A moment at which a run is to begin, as people write it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from ssbench.base.errors import UsageError
from ssbench.base.quantities import format_duration

#: A time of day that is further back than this is that of tomorrow.
_PAST_TOLERANCE = timedelta(hours=12)

_EXPECTED_MOMENT = (
    "expected a time such as 14:30:00, 2026-01-31T14:30:00Z or @1800000000 (seconds since 1970)"
)


def parse_start_moment(text: str, now: Callable[[], float] = time.time) -> float:
    """Return a moment in seconds since 1970; raises ValueError."""
    try:
        found = _moment_seconds(text, now)
        format_start_moment(found)  # some have no date, and a run that waits for one has to name it
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{text!r}: {_EXPECTED_MOMENT}") from None
    return found


def _moment_seconds(text: str, now: Callable[[], float]) -> float:
    if re.fullmatch(r"@[0-9]{1,12}(\.[0-9]{1,6})?", text):
        return float(text[1:])
    if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", text):
        return _moment_of_day([int(each) for each in text.split(":")], datetime.fromtimestamp(now()))
    if "-" not in text:
        raise ValueError("no date")
    return datetime.fromisoformat(text).timestamp()


def _moment_of_day(parts: list[int], now: datetime) -> float:
    """Return a time of this day, or of the next one where it is over long ago."""
    moment = now.replace(hour=parts[0], minute=parts[1], second=sum(parts[2:]), microsecond=0)
    return (moment + timedelta(days=1) if now - moment > _PAST_TOLERANCE else moment).timestamp()


def refuse_past_moment(moment: float, now: float) -> None:
    """Raise UsageError where the moment is over."""
    if moment <= now:
        raise UsageError(
            f"--start-at {format_start_moment(moment)}: that was {format_duration(now - moment)} ago"
        )


def format_start_moment(moment: float) -> str:
    """Return a moment as people write it, in this time zone."""
    return datetime.fromtimestamp(moment).astimezone().isoformat(sep=" ", timespec="seconds")
