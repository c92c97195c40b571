"""The section "Figures" of the text report: rates, seconds, stalls, percentiles, failures.

It comes after the old table and is at most 100 columns wide. ``doc/numbers.rst`` defines each figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ssbench.figures.units import milliseconds
from ssbench.reports import generator
from ssbench.results import Gap
from ssbench.statistics import Cause, Course, EachSecond, Latencies, Line, RunStatistics, Section, Stall

#: The percentiles of each latency; 100 is the maximum.
RANKS = (50, 75, 90, 95, 99, 99.9, 99.99, 100)

#: Users that are busy for less than this share of the window wait for something other than the store.
_BUSY_ENOUGH = 0.95

#: More stalls than this are counted, and the longest are shown.
_STALLS_SHOWN = 5

#: An operation has a line for a part of its latencies that is at least this share of them.
_MUCH = 0.01

_INDENT = " " * 7
_MEGABYTE = 1e6


def section(statistics: RunStatistics) -> Iterator[str]:
    """Yield the lines of the section; none where no operation is known to have been sent."""
    course = statistics.course
    if course is None:
        return
    total = statistics.total
    lines = [
        *_window(statistics, course),
        *_rates(statistics, course),
        *_seconds(course),
        *_stalls(course, statistics.generator.gaps),
    ]
    lines += _once_more(total)
    lines += latency_table(statistics)
    lines += _held_up(total)
    lines += _parts(statistics)
    lines += generator.lines(statistics.generator)
    lines += _failures(statistics)
    yield from ("", "Figures", *((_INDENT + line).rstrip() for line in lines))


def _window(statistics: RunStatistics, course: Course) -> Iterator[str]:
    total, window = statistics.total, course.window
    if window.whole:
        yield (
            f"Window: {window.seconds:.3f} s from the first send to the last completion:"
            " all was sent before anything ended"
        )
    else:
        done = total.count - total.within.count
        failed = total.failed - total.within.failed
        yield f"Window: {window.seconds:.3f} s from the first send to the last moment of sending"
        yield f"Drain: {course.drain:.3f} s after it (succeeded: {done}, failed: {failed})"
    if statistics.warmed_up:
        yield f"Warm-up: its results are left out ({statistics.warmed_up})"
    if not course.busy:  # a no-op run
        return
    scenario = statistics.run.scenario
    # In an open loop, and where users think, they are meant to be idle.
    expected = course.busy >= _BUSY_ENOUGH or scenario.is_open or scenario.think_time
    idle = "" if expected else f" (under {_BUSY_ENOUGH:.0%}: they were idle otherwise)"
    most = "at most " if scenario.stages else ""
    yield f"Users: {most}{scenario.user_count}, busy {course.busy:.1%} of the window{idle}"


def _rates(statistics: RunStatistics, course: Course) -> Iterator[str]:
    yield ""
    heads = f"{'ops':>10}{'ops/s':>11}{'MB/s':>11}{'failed':>9}{'in %':>8}{'failed/s':>10}"
    yield f"{'Within the window':<18}{heads}"
    for each in (*statistics.sections[1:], statistics.total):
        within, per_second = each.within, course.window.per_second
        ended = within.count + within.failed
        yield (
            f"{_name(each):<18}{within.count:>10}{per_second(within.count):>11.2f}"
            f"{per_second(within.moved / _MEGABYTE):>11.3f}{within.failed:>9}"
            f"{100 * within.failed / ended if ended else 0:>8.2f}{per_second(within.failed):>10.2f}"
        )


def _seconds(course: Course) -> Iterator[str]:
    if course.operations is None or course.moved is None:
        return
    yield ""
    whole = int(course.window.seconds)
    yield f"{f'Whole seconds: {whole}':<18}{'median':>10}{'slowest':>11}{'at s':>8}{'fastest':>11}{'at s':>8}"
    yield _each_second("ops", course.operations, 1, 1)
    yield _each_second("MB", course.moved, _MEGABYTE, 3)


def _each_second(name: str, each: EachSecond, unit: float, decimals: int) -> str:
    median, slowest, fastest = (
        f"{value / unit:.{decimals}f}" for value in (each.median, each.slowest, each.fastest)
    )
    return f"{name:<18}{median:>10}{slowest:>11}{each.slowest_at:>8}{fastest:>11}{each.fastest_at:>8}"


def _stalls(course: Course, gaps: Sequence[Gap]) -> Iterator[str]:
    stalls = course.stalls
    if not stalls:
        return
    longest = sorted(sorted(stalls, key=lambda stall: -stall.seconds)[:_STALLS_SHOWN], key=lambda s: s.start)
    yield ""
    yield f"Stalls: {len(stalls)}, {sum(stall.seconds for stall in stalls):.3f} s without a completion" + (
        f"; the {_STALLS_SHOWN} longest:" if len(stalls) > _STALLS_SHOWN else ":"
    )
    for stall in longest:
        own_part = _stood_still(stall, course.window.start, gaps)
        yield f"  {stall.seconds:.3f} s from {stall.start:.3f} s on{own_part}"


def _stood_still(stall: Stall, start: float, gaps: Sequence[Gap]) -> str:
    """Return who of the load generator stalled during a stall, for its line; nothing where nobody did."""
    begin, end = start + stall.start, start + stall.start + stall.seconds
    parts: dict[str, float] = {}
    for gap in gaps:
        seconds = min(end, gap.start + gap.seconds) - max(begin, gap.start)
        if seconds > 0:
            who = "the master" if gap.worker_id is None else f"worker {gap.worker_id}"
            parts[who] = parts.get(who, 0.0) + seconds
    return "".join(f"; {who} stalled for {seconds:.3f} s of it" for who, seconds in parts.items())


def _once_more(total: Section) -> Iterator[str]:
    if total.resent or total.parts.vanished:
        yield ""
    if total.resent:
        yield f"Sent again because a kept connection had gone stale (reconnect): {total.resent}"
    if total.parts.vanished:
        found = total.parts.vanished
        yield f"Deletes that found nothing after an answer or a worker was lost (successes): {found}"


def percentiles(statistics: RunStatistics, ranks: Sequence[float]) -> Iterator[str]:
    """Yield the lines of a section with further percentiles; none where none are asked for."""
    if ranks:
        table = [*latency_table(statistics, ranks)][1:] or ["nothing was measured"]
        yield from ("", "Further percentiles", *(_INDENT + line for line in table))


def latency_table(statistics: RunStatistics, ranks: Sequence[float] = RANKS) -> Iterator[str]:
    """Yield an empty line and a table of percentiles; nothing where nothing was measured."""
    if not any(line.first_byte.count or line.last_byte.count for line in statistics.total.lines):
        return  # a no-op run
    yield ""
    yield f"{'Latency in ms':<25}{'n':>9}{heads(ranks)}"
    total = statistics.total
    for each in (*statistics.sections[1:], total):
        # With one class its figures are those of all. Operations together have no classes of interest.
        lines = each.lines[:1] if len(each.lines) == 2 or each is total else each.lines
        for line in lines:
            times = {"first": line.first_byte, "last": line.last_byte, "resp": line.due.response}
            for which, latencies in times.items():
                if latencies.count:
                    yield _latency(each, line, which, latencies, ranks)


def _latency(each: Section, line: Line, which: str, latencies: Latencies, ranks: Sequence[float]) -> str:
    figures = values(latencies, ranks)
    return f"{_name(each):<8}{which:<6}{line.size_class or '':<10.10} {latencies.count:>9}{figures}"


def heads(ranks: Sequence[float]) -> str:
    """Return the heads of columns of percentiles."""
    return "".join(f" {_rank(rank):>6}" for rank in ranks)


def values(latencies: Latencies, ranks: Sequence[float]) -> str:
    """Return columns of percentiles in milliseconds; - where too few latencies lie beyond."""
    return "".join(f" {milliseconds(latencies.supported_percentile(rank)):>6}" for rank in ranks)


def _held_up(total: Section) -> Iterator[str]:
    held_up = total.held_up
    if held_up.count:
        median = milliseconds(held_up.supported_percentile(50))
        yield (
            f"Left out, because a worker stalled: {held_up.count}"
            f" (median {median} ms, max {milliseconds(held_up.maximum)} ms)"
        )


def _parts(statistics: RunStatistics) -> Iterator[str]:
    """Yield what latencies contain besides the last attempt: of all, and of operations with much of it."""
    total = statistics.total
    if not (total.parts.connecting.count or total.parts.pausing.count):
        return
    yield ""
    yield f"{'Part of latencies':<25}{'n':>9}{'% of ops':>10}{'% of time':>11}{'mean ms':>10}{'max ms':>9}"
    for each in (*statistics.sections[1:], total):
        latencies = each.lines[0].last_byte
        whole = latencies.mean * latencies.count if latencies.count else math.inf
        for name, part in (("connecting", each.parts.connecting), ("pauses", each.parts.pausing)):
            if part.count and (each is total or part.seconds >= _MUCH * whole):
                share = part.count / max(1, latencies.count)
                yield (
                    f"{_name(each):<8}{name:<17}{part.count:>9}{100 * share:>10.2f}"
                    f"{100 * part.seconds / whole:>11.2f}{milliseconds(part.seconds / part.count):>10}"
                    f"{milliseconds(part.longest):>9}"
                )


def _failures(statistics: RunStatistics) -> Iterator[str]:
    if not statistics.errors:
        return
    yield ""
    yield f"{'Failures':<24}{'n':>9}{'% of all':>10}   {'ms to fail: median':>18}{'max':>9}  HTTP status"
    total = statistics.total
    everything = total.count + total.failed
    for name, cause in statistics.errors.items():
        yield (
            f"{name:<24.24}{cause.count:>9}{100 * cause.count / everything:>10.2f}   "
            f"{milliseconds(cause.times.supported_percentile(50)):>18}{milliseconds(cause.times.maximum):>9}"
            f"  {_statuses(cause)}"
        )


def _statuses(cause: Cause) -> str:
    known = sorted((status, times) for status, times in cause.statuses.items() if status > 0)
    return ", ".join(
        f"{status}" if times == cause.count else f"{status} x {times}" for status, times in known[:3]
    )


def _name(section_: Section) -> str:
    return section_.operation.name.upper() if section_.operation else "ALL"


def _rank(rank: float) -> str:
    return "max" if rank == 100 else f"p{rank:g}"
