"""How a run goes: in one line, and on the small screen of ``--live``, as wide as the terminal.

A wide terminal has beside each line a small picture of how it went, second by second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ssbench.base.colour import TonedText
from ssbench.document.columns import draw_bars
from ssbench.document.limits import BUSY_CPU_SHARE
from ssbench.document.units import (
    format_latency,
    format_megabytes,
    format_milliseconds,
    format_number,
    format_percent,
)

#: Narrower bars than this say nothing; wider ones than this say no more.
_MIN_BAR_COLUMNS, _MAX_BAR_COLUMNS = 10, 32

#: What is shortened or left out, one step after the other, until the line fits: with a bar, or without.
_SHORTENING_STEPS_WITH_BAR = ("rate", "workers")
_SHORTENING_STEPS = ("errors", "latency", "left", "errors", "moved", "latency")

#: Columns of the lines themselves; with so many more there is room for pictures, of a second in a column.
_SCREEN_COLUMNS = 80
_MIN_PICTURE_COLUMNS = 20
HISTORY_SECONDS = 60

_RATES_HEAD = "ops/s in each of the last seconds"

#: The tones of what the user should look at.
_WARNED_TONE, _FAILED_TONE = "doubtful", "bad"


@dataclass(frozen=True, slots=True)
class ProgressFigures:
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


def compose_progress_line(figures: ProgressFigures, width: int) -> str:
    """Return the line, of ``width`` characters at most, all of them ASCII and printable."""
    done = min(max(figures.share, 0.0), 1.0)
    fields = {
        "percent": [f"{int(100 * done)} %"],
        "left": [""] if figures.left is None else [f"{_format_clock(figures.left)} left", ""],
        "rate": [f"{format_number(figures.rate)} ops/s", f"{format_number(figures.rate)}/s"],
        "moved": [f"{format_megabytes(figures.moved)} MB/s", ""],
        "latency": _latency_fields(figures),
        "errors": _error_fields(figures.causes),
        "workers": _usage_fields(figures),
    }
    _shorten(fields, _SHORTENING_STEPS_WITH_BAR, width - _MIN_BAR_COLUMNS - len("[]  "))
    line = _shorten(fields, _SHORTENING_STEPS, width)[:width]
    room = min(width - len(line) - len("[]  "), _MAX_BAR_COLUMNS)
    if room < _MIN_BAR_COLUMNS:
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


def _format_clock(seconds: float) -> str:
    minutes, seconds = divmod(int(min(seconds, 1e9) + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _latency_fields(figures: ProgressFigures) -> list[str]:
    if figures.p50 is None:
        return [""]
    p50, p99 = format_milliseconds(figures.p50), format_milliseconds(figures.p99)
    return [f"p50 {p50} p99 {p99} ms", f"p99 {p99} ms" if figures.p99 is not None else f"p50 {p50} ms", ""]


def _error_fields(causes: Mapping[str, int]) -> list[str]:
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


def _usage_fields(figures: ProgressFigures) -> list[str]:
    if figures.there < figures.expected:
        return [f"{figures.there} of {figures.expected} workers"]
    return [f"{figures.there} worker{'' if figures.there == 1 else 's'}", ""]


class WorkerView(NamedTuple):
    """A worker as it is now: can it get jobs, its share of a core, its lag (seconds), its jobs."""

    worker_id: int
    host: str
    ready: bool
    cpu_share: float | None
    lag_p99: float | None
    jobs: int


@dataclass(frozen=True, slots=True)
class OperationView:
    """What an operation did lately: rates a second, and latencies in seconds, None where too few were seen.

    ``failed`` is of the whole run, ``history`` its successes in each of the last seconds.
    """

    name: str
    rate: float
    moved: float
    p50: float | None
    p95: float | None
    p99: float | None
    longest: float | None
    failed: int
    history: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class LiveView:
    """All that is shown. ``rates`` are the operations a second of each worker id.

    ``of_workers`` and ``of_causes`` are successes, and failures, in each of the last seconds.
    """

    title: str
    figures: ProgressFigures
    operations: Sequence[OperationView]
    workers: Sequence[WorkerView]
    rates: dict[int, float]
    of_workers: Mapping[int, Sequence[float]] = field(default_factory=dict)
    of_causes: Mapping[str, Sequence[float]] = field(default_factory=dict)


class _ScreenLine(NamedTuple):
    """A line: its text, its tone where it has one, and what is drawn beside it or written above that."""

    text: str
    tone: str = ""
    history: Sequence[float] = ()
    head: str = ""


def compose_live_screen(view: LiveView, width: int, height: int, encoding: str = "ascii") -> list[str]:
    """Return the lines, at most ``height`` of at most ``width`` characters, all of them printable.

    They are ASCII but for pictures, which an ``encoding`` may have better characters for.
    """
    lines = [_ScreenLine(view.title), _ScreenLine(compose_progress_line(view.figures, width))]
    lines += [_ScreenLine(""), *_operation_lines(view.operations)]
    room = height - len(lines) - 2
    if room > 1:
        lines += [_ScreenLine(""), *_worker_lines(view, room - 1)]
    causes = sorted(view.figures.causes.items(), key=lambda item: -item[1])
    lines += [
        _ScreenLine(f"{times:>9,} x {cause}", _FAILED_TONE, view.of_causes.get(cause, ()), "errors a second")
        for cause, times in causes[: max(height - len(lines), 0)]
    ]
    return [_fit_line(line, width, encoding) for line in lines[:height]]


def _fit_line(line: _ScreenLine, width: int, encoding: str) -> str:
    """Return a line that is not wider than the terminal, with its picture where there is room."""
    text = "".join(char if " " <= char <= "~" else "?" for char in line.text)
    room = min(width - _SCREEN_COLUMNS - len("  "), HISTORY_SECONDS)
    if room >= _MIN_PICTURE_COLUMNS and len(text) <= _SCREEN_COLUMNS and (line.history or line.head):
        beside = draw_bars(line.history[-room:], encoding) if line.history else line.head[:room]
        text = f"{text[:_SCREEN_COLUMNS]:<{_SCREEN_COLUMNS}}  {beside}"
    return TonedText.of(text[:width], line.tone) if line.tone else text[:width]


def _operation_lines(operations: Sequence[OperationView]) -> Iterator[_ScreenLine]:
    head = f"{'':<10}{'ops/s':>10}{'MB/s':>10} |{'ms: p50':>9}{'p95':>8}{'p99':>8}{'max':>8}{'failed':>9}"
    yield _ScreenLine(head, head=_RATES_HEAD)
    for each in operations:
        times = [format_milliseconds(seconds) for seconds in (each.p50, each.p95, each.p99, each.longest)]
        text = (
            f"{each.name.upper():<10.10}{format_number(each.rate):>10}{format_megabytes(each.moved):>10} |"
            f"{times[0]:>9}{times[1]:>8}{times[2]:>8}{times[3]:>8}{each.failed:>9,}"
        )
        yield _ScreenLine(text, _FAILED_TONE if each.failed else "", each.history)


def _worker_lines(view: LiveView, room: int) -> Iterator[_ScreenLine]:
    """Yield the workers by their ids; where there is little room, those that get no jobs and the busiest."""
    workers = sorted(view.workers, key=lambda worker: (worker.ready, -(worker.cpu_share or 0.0)))
    if len(workers) > room - 1:
        workers = workers[: max(room - 2, 0)]
    workers.sort()
    head = f"{'worker':>10}{'ops/s':>10}{'jobs':>10} |{'CPU %':>9}{'lag p99':>10}  host"
    yield _ScreenLine(head, head=_RATES_HEAD)
    for worker in workers:
        cpu = format_percent(worker.cpu_share)
        lag = format_latency(worker.lag_p99)
        remark = _worker_remark(worker)
        text = (
            f"{worker.worker_id:>10}{format_number(view.rates.get(worker.worker_id, 0.0)):>10}{worker.jobs:>10,} |"
            f"{cpu:>9}{lag:>10}  {worker.host}{remark}"
        )
        yield _ScreenLine(text, _WARNED_TONE if remark else "", view.of_workers.get(worker.worker_id, ()))
    if len(workers) < len(view.workers):
        yield _ScreenLine(f"{'':>10} and {len(view.workers) - len(workers):,} less busy workers")


def _worker_remark(worker: WorkerView) -> str:
    if not worker.ready:
        return "  ! gets no jobs"
    if (worker.cpu_share or 0.0) > BUSY_CPU_SHARE:
        return "  ! its core is the limit: start more workers"
    return ""
