"""How a run goes: in one line, and on the small screen of ``--live``, as wide as the terminal.

A wide terminal has beside each line a small picture of how it went, second by second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ssbench.base.colour import Toned
from ssbench.document.columns import bars
from ssbench.document.limits import BUSY_CPU
from ssbench.document.units import duration, megabytes, milliseconds, number, percent

#: Narrower bars than this say nothing; wider ones than this say no more.
_LEAST_BAR, _MOST_BAR = 10, 32

#: What is shortened or left out, one step after the other, until the line fits: with a bar, or without.
_STEPS_WITH_BAR = ("rate", "workers")
_STEPS = ("errors", "latency", "left", "errors", "moved", "latency")

#: Columns of the lines themselves; with so many more there is room for pictures, of a second in a column.
_COLUMNS = 80
_LEAST_PICTURE = 20
HISTORY_SECONDS = 60

_HEAD = "ops/s in each of the last seconds"

#: The tones of what the user should look at.
_WARNED, _FAILED = "doubtful", "bad"


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
        "workers": _in_use(figures),
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


def _in_use(figures: Figures) -> list[str]:
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
class View:
    """All that is shown. ``rates`` are the operations a second of each worker id.

    ``of_workers`` and ``of_causes`` are successes, and failures, in each of the last seconds.
    """

    title: str
    figures: Figures
    operations: Sequence[OperationView]
    workers: Sequence[WorkerView]
    rates: dict[int, float]
    of_workers: Mapping[int, Sequence[float]] = field(default_factory=dict)
    of_causes: Mapping[str, Sequence[float]] = field(default_factory=dict)


class _Line(NamedTuple):
    """A line: its text, its tone where it has one, and what is drawn beside it or written above that."""

    text: str
    tone: str = ""
    history: Sequence[float] = ()
    head: str = ""


def frame(view: View, width: int, height: int, encoding: str = "ascii") -> list[str]:
    """Return the lines, at most ``height`` of at most ``width`` characters, all of them printable.

    They are ASCII but for pictures, which an ``encoding`` may have better characters for.
    """
    lines = [_Line(view.title), _Line(compose(view.figures, width))]
    lines += [_Line(""), *_operations(view.operations)]
    room = height - len(lines) - 2
    if room > 1:
        lines += [_Line(""), *_workers(view, room - 1)]
    causes = sorted(view.figures.causes.items(), key=lambda item: -item[1])
    lines += [
        _Line(f"{times:>9,} x {cause}", _FAILED, view.of_causes.get(cause, ()), "errors a second")
        for cause, times in causes[: max(height - len(lines), 0)]
    ]
    return [_fit(line, width, encoding) for line in lines[:height]]


def _fit(line: _Line, width: int, encoding: str) -> str:
    """Return a line that is not wider than the terminal, with its picture where there is room."""
    text = "".join(char if " " <= char <= "~" else "?" for char in line.text)
    room = min(width - _COLUMNS - len("  "), HISTORY_SECONDS)
    if room >= _LEAST_PICTURE and len(text) <= _COLUMNS and (line.history or line.head):
        beside = bars(line.history[-room:], encoding) if line.history else line.head[:room]
        text = f"{text[:_COLUMNS]:<{_COLUMNS}}  {beside}"
    return Toned.of(text[:width], line.tone) if line.tone else text[:width]


def _operations(operations: Sequence[OperationView]) -> Iterator[_Line]:
    head = f"{'':<10}{'ops/s':>10}{'MB/s':>10} |{'ms: p50':>9}{'p95':>8}{'p99':>8}{'max':>8}{'failed':>9}"
    yield _Line(head, head=_HEAD)
    for each in operations:
        times = [milliseconds(seconds) for seconds in (each.p50, each.p95, each.p99, each.longest)]
        text = (
            f"{each.name.upper():<10.10}{number(each.rate):>10}{megabytes(each.moved):>10} |"
            f"{times[0]:>9}{times[1]:>8}{times[2]:>8}{times[3]:>8}{each.failed:>9,}"
        )
        yield _Line(text, _FAILED if each.failed else "", each.history)


def _workers(view: View, room: int) -> Iterator[_Line]:
    """Yield the workers by their ids; where there is little room, those that get no jobs and the busiest."""
    workers = sorted(view.workers, key=lambda worker: (worker.ready, -(worker.cpu_share or 0.0)))
    if len(workers) > room - 1:
        workers = workers[: max(room - 2, 0)]
    workers.sort()
    head = f"{'worker':>10}{'ops/s':>10}{'jobs':>10} |{'CPU %':>9}{'lag p99':>10}  host"
    yield _Line(head, head=_HEAD)
    for worker in workers:
        cpu = percent(worker.cpu_share)
        lag = duration(worker.lag_p99)
        remark = _remark(worker)
        text = (
            f"{worker.worker_id:>10}{number(view.rates.get(worker.worker_id, 0.0)):>10}{worker.jobs:>10,} |"
            f"{cpu:>9}{lag:>10}  {worker.host}{remark}"
        )
        yield _Line(text, _WARNED if remark else "", view.of_workers.get(worker.worker_id, ()))
    if len(workers) < len(view.workers):
        yield _Line(f"{'':>10} and {len(view.workers) - len(workers):,} less busy workers")


def _remark(worker: WorkerView) -> str:
    if not worker.ready:
        return "  ! gets no jobs"
    if (worker.cpu_share or 0.0) > BUSY_CPU:
        return "  ! its core is the limit: start more workers"
    return ""
