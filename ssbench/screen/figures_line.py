"""How far a run is and how it goes, in one line that fits a terminal of any width."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ssbench.figures.units import megabytes, milliseconds, number

#: Narrower bars than this say nothing; wider ones than this say no more.
_LEAST_BAR, _MOST_BAR = 10, 32

#: What is shortened or left out, one step after the other, until the line fits: with a bar, or without.
_STEPS_WITH_BAR = ("rate", "workers")
_STEPS = ("errors", "latency", "left", "errors", "moved", "latency")


@dataclass(frozen=True, slots=True)
class Figures:
    """What a line shows. ``share`` of the run is done, and ``left`` seconds remain; None is not known.

    ``rate`` is successful operations a second, ``moved`` bytes a second, ``p50`` and ``p99`` latencies in
    seconds (None: too few successes lately). ``causes`` counts the failures of the whole run. ``there`` of
    ``expected`` workers can get jobs.
    """

    share: float = 0.0
    left: float | None = None
    rate: float = 0.0
    moved: float = 0.0
    p50: float | None = None
    p99: float | None = None
    causes: Mapping[str, int] = field(default_factory=dict)
    there: int = 0
    expected: int = 0


def compose(figures: Figures, width: int) -> str:
    """Return the line, of ``width`` characters at most, all of them ASCII and printable."""
    done = min(max(figures.share, 0.0), 1.0)
    fields = {
        "percent": [f"{int(100 * done)} %"],
        "left": [""] if figures.left is None else [f"{_clock(figures.left)} left", ""],
        "rate": [f"{number(figures.rate)} ops/s", f"{number(figures.rate)}/s"],
        "moved": [f"{megabytes(figures.moved)} MB/s", ""],
        "latency": _latency(figures),
        "errors": _errors(figures.causes),
        "workers": _workers(figures),
    }
    _shorten(fields, _STEPS_WITH_BAR, width - _LEAST_BAR - len("[]  "))
    line = _shorten(fields, _STEPS, width)[:width]
    room = min(width - len(line) - len("[]  "), _MOST_BAR)
    if room < _LEAST_BAR:
        return line
    return f"[{'#' * int(room * done):.<{room}}]  {line}"


def _shorten(fields: dict[str, list[str]], steps: Iterable[str], width: int) -> str:
    """Return the fields in one line, after as many of the steps as it needs to fit."""
    left = iter(steps)
    while len(line := "  ".join(text[0] for text in fields.values() if text[0])) > width:
        step = next(left, None)
        if step is None:
            break
        if len(fields[step]) > 1:
            del fields[step][0]
    return line


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(min(seconds, 1e9) + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _latency(figures: Figures) -> list[str]:
    if figures.p50 is None:
        return [""]
    p50, p99 = milliseconds(figures.p50), milliseconds(figures.p99)
    return [f"p50 {p50} p99 {p99} ms", f"p99 {p99} ms" if figures.p99 is not None else f"p50 {p50} ms", ""]


def _errors(causes: Mapping[str, int]) -> list[str]:
    if not causes:
        return [""]
    # Causes come from workers.
    texts = [
        f"{times:,} {''.join(char if ' ' <= char <= '~' else '?' for char in cause)}"
        for cause, times in sorted(causes.items(), key=lambda item: -item[1])
    ]
    total = sum(causes.values())
    count = f"{total:,} error{'' if total == 1 else 's'}"
    if len(texts) == 1:
        return [f"errors: {texts[0]}", f"errors: {texts[0]}", count]
    return [f"errors: {', '.join(texts)}", f"errors: {texts[0]}, +{total - max(causes.values()):,}", count]


def _workers(figures: Figures) -> list[str]:
    if figures.there < figures.expected:
        return [f"{figures.there} of {figures.expected} workers"]
    return [f"{figures.there} worker{'' if figures.there == 1 else 's'}", ""]
