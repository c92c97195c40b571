"""Each server's own times over the run: where they are long, and that all servers are there."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import attribution_report
from ssbench.cluster.attribution_report import AttributedRun, make_attribution_json, make_picture_sections
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.server_times import OwnTimes, ServerTimeline, Timelines, make_timelines
from ssbench.document.elements import Cell, Column, Document, Table, View
from ssbench.document.renderers import html, markdown, text

SMALL = Shape(devices=4, nodes=3, requests=800)


def long_in(timeline: ServerTimeline, least: float) -> set[int]:
    return {place for place, value in enumerate(timeline.longer) if value > least}


@pytest.mark.parametrize(("where", "part"), [("open", "own"), ("commit", "last")])
def test_a_device_is_long_in_the_slices_in_which_it_was_slow(where: str, part: str) -> None:
    cause = Cause(devices=(1,), seconds=0.06, part=(0.25, 0.5), where=where)
    found = make_attribution(simulate(1, cause, SMALL)).timelines
    assert len(found.edges) == 17
    assert found.edges[0] == 0
    assert found.edges[-1] == pytest.approx(800 / SMALL.rate, rel=0.01)
    of = {each.name: each for each in found.servers if each.part == part}
    assert [*of] == ["d0 on n0", "d1 on n1", "d2 on n2", "d3 on n0"]
    assert long_in(of["d1 on n1"], 0.04) == {4, 5, 6, 7}
    assert all(not long_in(each, 0.04) for name, each in of.items() if name != "d1 on n1")


def test_nobody_is_left_out_though_nobody_is_suspected() -> None:
    found = make_attribution(simulate(1, Cause(), replace(SMALL, requests=1200)))
    assert not [each for each in found.findings if each.kind == "slow"]
    assert [(each.name, each.part) for each in found.timelines.servers] == [
        *((f"d{place} on n{place % 3}", "own") for place in range(4)),
        *((f"container server's c{place} on n{place}", "updates") for place in range(3)),
        ("p0", "own part"),
        ("p1", "own part"),
        *((f"d{place} on n{place % 3}", "last") for place in range(4)),
    ]
    own = [each for each in found.timelines.servers if each.part == "own part"]
    assert sum(sum(each.times) for each in own) == 1200
    over = next(each for each in make_picture_sections(found) if each.title == "Over the run")
    (table,) = (each for each in over.elements if isinstance(each, Table))
    assert len(table.rows) == 4 + 3 + 2


def test_what_is_too_little_to_be_named_is_not_drawn_as_if_it_were_much() -> None:
    found = make_attribution(simulate(1, Cause(), SMALL))
    assert found.request
    slices = [0.01 * found.request, -0.01 * found.request]
    little = Timelines([0.0, 1.0, 2.0], [ServerTimeline("d1", "own", [9, 9], slices)])
    (over,) = (
        each
        for each in make_picture_sections(replace(found, timelines=little))
        if each.title == "Over the run"
    )
    (row,) = (row for each in over.elements if isinstance(each, Table) for row in each.rows)
    assert isinstance(row[1], Cell)
    assert [*row[1].bars] == pytest.approx([0.01 / 0.05, 0.0])


def own_times(moments: list[float], beyond: list[float], part: str = "own") -> OwnTimes:
    return OwnTimes(part, np.zeros(len(moments), np.int64), np.array(moments), np.array(beyond))


def name(level: str, place: int) -> str:
    return f"{level} {place}"


def test_a_slice_without_a_time_has_none() -> None:
    moments = [100.0, 100.5, 101.0, 101.5, 102.0, 108.0, 108.5, 109.0, 109.5, 110.0, math.nan]
    beyond = [1.0, 3.0, 2.0, 9.0, 9.0, 4.0, 5.0, 6.0, 7.0, 8.0, 50.0]
    found = make_timelines([own_times(moments, beyond)], (100.0, 110.0), name)
    assert found == Timelines([0.0, 5.0, 10.0], [ServerTimeline("device 0", "own", [5, 5], [3.0, 6.0])])
    late = make_timelines([own_times(moments[:5] * 3, beyond[:5] * 3)], (100.0, 110.0), name)
    (only,) = late.servers
    assert only.times == [15, 0, 0]
    assert math.isnan(only.longer[1])
    assert only.longest == 3.0
    assert '"longer": [\n     3.0,\n     null' in make_attribution_json(
        AttributedRun(replace(make_attribution(simulate(1, Cause(), SMALL)), timelines=late))
    )


def test_too_few_times_or_none_at_known_moments_are_no_timeline() -> None:
    nothing = Timelines([], [])
    assert make_timelines([own_times([100.0] * 9, [1.0] * 9)], (100.0, 110.0), name) == nothing
    assert make_timelines([own_times([math.nan] * 90, [1.0] * 90)], (math.nan, math.nan), name) == nothing
    assert make_timelines([own_times([100.0] * 90, [1.0] * 90)], (100.0, 100.0), name) == nothing
    few = make_attribution(simulate(1, Cause(), Shape(devices=4, nodes=3, requests=10)))
    assert few.timelines == nothing


def test_sixty_devices_are_a_table_of_which_text_shows_a_part() -> None:
    shape = Shape(devices=60, nodes=5, requests=6000, ring="fresh")
    found = make_attribution(simulate(1, Cause(devices=(7,), seconds=0.06, part=(0.5, 0.75)), shape))
    own = attribution_report.make_attribution_document(AttributedRun(found), View())
    shown = text.render(own, View()).partition("Each server over the run")[2].partition("\n\n")[0]
    assert "and 45 more" in shown
    first = shown.splitlines()[2]
    assert first.split()[:3] == ["d7", "on", "n2"]
    assert "▁▁▁▁▁▁▁▁████▁▁▁▁" in first
    bare = replace(found, timelines=Timelines([], []))
    without = Document("", [*attribution_report.make_attribution_sections(bare)])
    page = html.render(Document("", [*attribution_report.make_attribution_sections(found)]), View())
    assert len(re.findall('<svg class="bars', page)) == 65 + 60
    assert len(page) - len(html.render(without, View())) < 60_000
    record = json.loads(make_attribution_json(AttributedRun(found)))["timelines"]
    assert len(record["servers"]) == 65 + 60
    assert len(json.dumps(record)) < 100_000


def test_bars_of_a_cell_are_drawn_by_all_renderers() -> None:
    columns = [Column("", is_number=False), Column("bars", is_number=False)]
    cell = Cell(bars=[0.0, 0.5, math.nan, 1.0])
    found = Document("title", [Table(columns, [["name", cell]])])
    assert "name  _= #" in text.render(found, View(encoding="ascii"))
    assert "| name | ▁▅ █ |" in markdown.render(found, View())
    assert '<path d="M1 10v-5h1v5M3 10v-10h1v10"/>' in html.render(found, View())
