"""How measured values are shown: the median, and the least and the largest in brackets."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def spread(values: Sequence[float], scale: float = 1.0, *, middle: str = ".3g", ends: str = ".3g") -> str:
    """Return them as text, each times ``scale``; ``middle`` and ``ends`` are formats of numbers."""
    low, median, high = (scale * each for each in (min(values), statistics.median(values), max(values)))
    return f"{median:{middle}} ({low:{ends}}-{high:{ends}})"
