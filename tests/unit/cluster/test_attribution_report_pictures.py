"""An attribution as pictures: bars are shares of the longest."""

from __future__ import annotations

from said import EVIDENCE_TITLE, PARTS_TITLE
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster.attribution_report import (
    AttributedRun,
    make_attribution_document,
    make_picture_sections,
)
from ssbench.cluster.findings import make_attribution
from ssbench.document.elements import Bars, Cell, Section, Table, View
from ssbench.document.units import format_change, format_time_difference

SMALL = Shape(devices=4, nodes=3, requests=400)


def bars(table: Table) -> list[float]:
    return [cell.bar for row in table.rows for cell in row if isinstance(cell, Cell) and cell.bar is not None]


def test_each_section_has_bars_up_to_its_longest() -> None:
    found = make_attribution(simulate(1, Cause(devices=(1,), seconds=0.06, part=(0.25, 0.75)), SMALL))
    sections: dict[str, Section] = {each.title: each for each in make_picture_sections(found)}
    assert [*sections] == [
        f"A {PARTS_TITLE}, part by part",
        EVIDENCE_TITLE,
        "Over the run",
    ]
    shares, own, over = sections.values()
    (table,) = (each for each in shares.elements if isinstance(each, Table))
    assert len(table.rows) == len(found.time_shares)
    (table,) = (each for each in own.elements if isinstance(each, Table))
    medians = [each.difference.median for each in found.standings]
    assert bars(table) == [max(each, 0.0) / max(map(abs, medians)) for each in medians]
    assert max(bars(table)) == 1.0
    course = found.findings[0].course
    assert course is not None
    longer = [max(each.longer or 0.0, 0.0) for each in course.slices]
    drawn = next(each for each in over.elements if isinstance(each, Bars))
    assert [*drawn.values] == longer
    table = next(each for each in over.elements if isinstance(each, Table))
    assert bars(table) == [each / max(longer) for each in longer]
    assert [row[2] for row in table.rows] == [format_time_difference(each.longer) for each in course.slices]


def test_what_a_device_adds_stands_beside_its_share_of_what_requests_take_without_it() -> None:
    found = make_attribution(simulate(1, Cause(devices=(1,), seconds=0.06), SMALL))
    document = make_attribution_document(AttributedRun(found, ()), View())
    (table,) = (
        each for each in document.elements if isinstance(each, Table) and each.title == "Devices (ms)"
    )
    longer = [each.longer for each in found.devices]
    assert [tuple(row[2:4]) for row in table.rows] == [
        ("-", "-")
        if each is None
        else (format_time_difference(each.median), format_change(each.median / each.base))
        for each in longer
    ]
    assert any(each and 0 < each.base < 1 for each in longer)


def test_nothing_is_shown_of_what_there_is_nothing() -> None:
    found = make_attribution(simulate(1, Cause(), Shape(devices=4, nodes=3, requests=10)))
    assert [each.title for each in make_picture_sections(found) if each.title == "Over the run"] == []
