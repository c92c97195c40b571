"""How times and latencies look in reports."""

from __future__ import annotations

from datetime import UTC, datetime


def utc(seconds: float | None) -> str:
    """Return seconds since 1970 as ``2013-06-07 17:23:16 UTC``; N/A for None and for no date."""
    if seconds is None:
        return "N/A"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "N/A"


def rank(percentile: float) -> str:
    """Return the rank of a percentile as people write it: 95, 99.9."""
    return f"{percentile:.10g}"
