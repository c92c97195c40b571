"""An attribution as pictures: devices by evidence, and the course of what is slow over the run."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ssbench.cluster.culprits import MIN_DELAY_SHARE
from ssbench.cluster.records import Attribution, LogFinding
from ssbench.cluster.standings import MAX_STANDINGS, OWN_TIME_LEVELS, Standing
from ssbench.cluster.timelines import ServerTimeline
from ssbench.document.elements import Bars, Cell, Column, Detail, Element, Note, Row, Section, Table, Tone
from ssbench.document.units import (
    DASH,
    format_milliseconds,
    format_moment,
    format_probability,
    format_time_difference,
)


def make_picture_sections(attribution: Attribution) -> list[Section]:
    """Return the sections that have something to show."""
    found = []
    if attribution.time_shares:
        found.append(Section("A typical and a slow request, part by part", [*_draw_time_shares(attribution)]))
    if attribution.standings:
        found.append(Section("Own times against peers', by evidence", [*_draw_standings(attribution)]))
    courses = [each for each in attribution.findings if each.course is not None]
    over = [each for one in courses for each in _draw_course(one)] + [*_draw_timelines(attribution)]
    if over:
        found.append(Section("Over the run", over))
    return found


def _draw_time_shares(attribution: Attribution) -> Iterator[Element]:
    columns = (
        Column("", is_number=False, is_whole=True),
        Column("requests", detail=Detail.VERBOSE),
        Column("client ms", short="client"),
        Column("to proxy"),
        Column("proxy"),
        Column("server"),
        Column("update"),
        Column("body"),
        Column("first byte", short="first"),
    )
    rows: list[Row] = [
        [
            f"{each.operation} {each.rank}",
            f"{each.requests:,}",
            *map(
                format_milliseconds,
                (each.latency, each.way, each.proxy, each.server, each.update, each.body, each.first_byte),
            ),
        ]
        for each in attribution.time_shares
    ]
    yield Table(columns, rows)
    yield Note(
        "Each row is an average over requests near that percentile, so that the parts add up: the way to the"
        " proxy, its own time, the slowest object server, the container server that it updated, the body"
        " after the first byte (of writes, the servers' time has it)."
    )


def _draw_standings(attribution: Attribution) -> Iterator[Element]:
    suspects = _suspect_names(attribution)
    most = max(abs(each.difference.median) for each in attribution.standings)
    columns = (
        Column("", is_number=False),
        Column("times", detail=Detail.VERBOSE),
        Column("longer ms", short="ms"),
        Column("95 %"),
        Column("", is_number=False),
        Column("p"),
    )
    rows: list[Row] = [
        [
            Cell(_format_server_name(each), tone=Tone.BAD if each.name in suspects else None),
            f"{each.requests:,}",
            format_time_difference(each.difference.median),
            _format_interval(each),
            Cell(bar=max(each.difference.median, 0.0) / most if most else 0.0),
            format_probability(each.probability),
        ]
        for each in attribution.standings
    ]
    yield Table(columns, rows)
    yield Note(
        "Times are those of an object server's reads and deletes, a container server's updates, a proxy's own"
        f" part. Up to {MAX_STANDINGS} are shown. p is of one test; {attribution.comparisons:,} were made, and only"
        " what is said above stands out among so many. A few requests can show a large difference by chance."
    )


def _draw_course(finding: LogFinding) -> Iterator[Element]:
    course = finding.course
    if course is None:
        return
    longest = max((each.longer or 0.0 for each in course.slices), default=0.0)
    length = course.slices[-1].ends
    values = [max(each.longer or 0.0, 0.0) for each in course.slices]
    name = finding.name or "servers without a log"
    yield Bars(
        name, values, f"0 to {format_moment(length)} s; highest {format_time_difference(longest)} ms longer"
    )
    rows: list[Row] = [
        [
            f"{format_moment(each.begins)} to {format_moment(each.ends)} s",
            f"{each.requests:,}",
            DASH if each.longer is None else format_time_difference(each.longer),
            Cell(bar=value / longest if longest > 0 else 0.0),
        ]
        for each, value in zip(course.slices, values, strict=True)
    ]
    columns = (
        Column("of the run", is_number=False),
        Column("requests"),
        Column("longer ms"),
        Column("", is_number=False),
    )
    yield Table(columns, rows, title=name, detail=Detail.PAGE)


def _draw_timelines(attribution: Attribution) -> Iterator[Element]:
    """Yield a row for each server, the one with the longest times first: its own times, and its writes."""
    found = attribution.timelines
    if not found.servers:
        return
    # Less than what would be named is not drawn as if it were much.
    least = MIN_DELAY_SHARE * (attribution.request or 0.0)
    longest = dict.fromkeys((*OWN_TIME_LEVELS, "last"), least)
    suspects = _suspect_names(attribution)
    of: dict[str, dict[bool, ServerTimeline]] = {}
    for each in found.servers:
        longest[each.part] = max(longest[each.part], each.longest)
        of.setdefault(_format_server_name(each), {})[each.part == "last"] = each
    rows: list[Row] = [
        [
            Cell(name, tone=Tone.BAD if any(each.name in suspects for each in own.values()) else None),
            *(
                cell
                for part in (False, True)
                for cell in _draw_strip(own.get(part), longest[own[part].part] if part in own else 0.0)
            ),
        ]
        for name, own in sorted(of.items(), key=lambda each: -max(one.longest for one in each[1].values()))
    ]
    columns = (
        Column("", is_number=False),
        Column("own times", is_number=False, is_whole=True),
        Column("longest ms", short="ms"),
        Column("its writes", is_number=False, is_whole=True),
        Column("longest ms", short="ms"),
    )
    yield Table(columns, rows, title="Each server over the run", most=MAX_STANDINGS)
    yield Note(
        f"From 0 to {format_moment(found.edges[-1])} s, in {len(found.edges) - 1} slices: the median in each slice"
        " of what own times took beyond those of all servers, and of what replicas of writes took beyond the"
        " slowest other replica. Bars of one kind have one scale. A slice of few requests can be"
        " long by chance."
    )


def _draw_strip(timeline: ServerTimeline | None, longest: float) -> tuple[Cell, str]:
    if timeline is None:
        return Cell(), DASH
    shares = [max(each, 0.0) / longest if longest > 0 else 0.0 for each in timeline.longer]
    return Cell(bars=shares), format_time_difference(timeline.longest)


def _suspect_names(attribution: Attribution) -> set[str]:
    return {
        name
        for each in attribution.findings
        if each.kind in ("slow", "one of", "unfelt")
        for name in (each.name, *each.members)
    }


def _format_server_name(standing: Standing | ServerTimeline) -> str:
    return f"proxy {standing.name}" if standing.part == "own part" else standing.name


def _format_interval(standing: Standing) -> str:
    low, high = standing.interval
    return DASH if math.isnan(low) else f"{format_time_difference(low)} to {format_time_difference(high)}"
