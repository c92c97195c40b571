"""An attribution as people read it: the whole report of one whose numbers are known, and its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from known_attribution import COVERAGE, FOUND, NAN, SLOW, by, make_finding
from said import (
    EVIDENCE_TITLE,
    GENERATOR_OVERLOADED,
    NO_SLOW_SERVER,
    NOTHING_ENDED,
    OF_COMPARABLE,
    PARTITIONS_TITLE,
    PARTS_TITLE,
    SLOWEST_TITLE,
    TIME_GOES,
)

from ssbench.cluster.attribution_records import Attribution, ServerRow
from ssbench.cluster.attribution_report import (
    AttributedRun,
    make_attribution_document,
    make_attribution_sections,
    make_attribution_verdict,
    make_picture_sections,
)
from ssbench.cluster.finding_kinds import ClusterFinding
from ssbench.cluster.request_spans import TracedRequest
from ssbench.cluster.server_times import DifferenceCourse, Slice
from ssbench.document.elements import Bars, Cell, Document, Element, Section, Table, Tone, View
from ssbench.document.renderers import text
from ssbench.statistics.waits import Wait

#: What is said of the section of the suspects over time.
SLICES_TITLE = "The suspects, slice by slice"

EXPECTED = """\
What stands out
  Slow: d1 on n1 (8.00 ms longer; 25.0 % of all requests; from 30 s to 60 s of 90.5 s)
  d1 on n1 is slow: its reads take 8.00 ms longer by its own log, in 25.0 % of all requests. From 30
    s to 60 s of 90.5 s. Next: iostat -x on its node, the kernel's log, swift-drive-audit.

Coverage
  operations: 1,000, 0 failed
  successes with a proxy's line: 1,000 (100.0 %)
  successes with all object server lines: 995 (99.5 %)
  compared with each other: 980 (98.0 %)
  lines of the run: 4,000 of 9,000
  this is about a random sample of 1,000 of 2,000 results; only errors of proxies and lines of the
    run are counted in full (--sample all takes every result)
  1 operation without a transaction id: timed out or cut off, or not from Swift
  2 operations tried more than once: not compared
  3 operations delayed by a worker that stalled: not compared
  4 reads answered by several servers (concurrent_gets, or a first one that failed): not compared,
    slow ones among them
  6 lines cut or of an unknown layout: not used
  7 lines more than once: used once
  logs begin late

A typical and a slow request, part by part
              requests  client  to proxy  proxy  server  update   body  first
  read p50       1,000    20.0      1.00   2.00    3.00   0.000   14.0   15.0
  create p99        20    80.0      1.00   2.00    73.0    4.00  0.000      -

  Each row is an average over requests near that percentile, so that the parts add up: the way to
    the proxy, its own time, the slowest object server, the container server that it updated, the
    body after the first byte (for writes, part of the servers' time).

Own times against peers', by evidence
            times     ms            95 %                       p
  d1 on n1  1,200  +8.00  +7.00 to +9.00  █████████████  < 0.001
  proxy p1    300  -2.00               -                   0.250

  Times are those of an object server's reads and deletes, a container server's updates, a proxy's
    own part. Up to 20 are shown. p is of one test; 1,040 were made, and only what is said above
    stands out among so many. A few requests can show a large difference by chance.

Over the run
  d1 on n1: ▁█▁ (0 to 90.5 s; highest +8.00 ms longer)

  Each server over the run
            own times      ms  its writes     ms
  d1 on n1  ▅█          +8.00  █           +2.00
  proxy p1  █▁          +1.00                  -
  d2 on n2  ▁▁         +0.100                  -

  From 0 to 90.5 s, in 2 slices: the median in each slice of what own times took beyond those of all
    servers, and of what replicas of writes took beyond the slowest other replica. Bars of one kind
    have one scale. A slice of few requests can be long by chance.

Where the time goes (ms)
operation  requests  client   p99  to proxy   p99  proxy   p99  server  p99  more
READ            900    10.0  50.0      1.00  2.00   3.00  4.00       -    -     3

Proxies (ms)
    requests  longer  errors  own p50   p99  client p50   p99
p1     1,000   +1.00       1     3.00  4.00        20.0  30.0

Nodes (ms)
    requests  errors  own p50  p99  client p50  p99
n1     1,000       0        -    -           -    -

Devices (ms)
          requests  longer  errors  own p50   p99  client p50   p99
d1 on n1       500   +8.00       2     11.0  20.0        30.0  40.0
d2 on n2       400   -2.00       0     3.00  4.00        20.0  30.0

Partitions with most requests (ms)
              requests  errors  own p50   p99  client p50   p99
7 (d1 on n1)        12       0     3.00  4.00        20.0  30.0

Own: by its own log; client: operations that it took part in; longer: the median difference of these
  to operations of the same kind without it, and of two the slower one's to the other's, significant
  or not: only what is listed above stands out.

Where the time of the slowest operations went (ms)
operation transaction id
           client  to proxy  proxy  server  more  slowest device  its process  by proxy  named above
READ tx1    500.0     100.0  200.0   300.0     2  d1 on n1        n1:6200      p1        d1 on n1
CREATE      400.0         -      -       -     0  -               -            -         -

The slowest server of a write is often a healthy one, which waited for the others: the slow ones are
  named above, from all operations.

Errors in Swift's logs
error    where     times
timeout  d1 on n1  1,200

Errors beside the results (initial uploads, repeated attempts, clean-up)
error    where  times
refused  -          1
"""


def make(found: Attribution, *waits: Wait) -> Document:
    return make_attribution_document(AttributedRun(found, waits), View())


def tables(elements: Sequence[Element]) -> Iterator[Table]:
    for each in elements:
        if isinstance(each, Section):
            yield from tables(each.elements)
        elif isinstance(each, Table):
            yield each


def find_table(found: Attribution, title: str) -> Table:
    (table,) = (each for each in tables(make(found).elements) if each.title == title)
    return table


def find_section(found: Attribution, title: str) -> Sequence[Element]:
    (section,) = (each for each in make_attribution_sections(found) if each.title == title)
    return section.elements


def test_the_report_has_all_that_is_known_with_its_unit() -> None:
    assert text.render(make(FOUND), View(verbose=True, columns=100)) == EXPECTED


def test_waits_come_last() -> None:
    wait = Wait(1.0, "a retransmission", "the network", "read", False, 12, 1000)
    said = text.render(make(FOUND, wait), View(columns=100))
    assert said.startswith(text.render(make(FOUND), View(columns=100)).rstrip())
    assert "a retransmission" in said.splitlines()[-1]


def test_bars_are_shares_of_the_largest_difference_whichever_way_it_is() -> None:
    first, second = FOUND.standings
    less = replace(second, difference=by(-0.016))
    for standings, bars in (
        ([first, second], [1.0, 0.0]),
        ([first, less], [0.5, 0.0]),
        ([replace(first, difference=by(0.0))], [0.0]),
    ):
        sections = make_picture_sections(replace(FOUND, standings=standings))
        (table,) = tables([each for each in sections if each.title.startswith("Own times")])
        assert [cell.bar for row in table.rows if isinstance(cell := row[4], Cell)] == bars


def test_the_course_of_a_suspect_has_a_row_for_each_slice() -> None:
    (bars, table) = find_section(FOUND, SLICES_TITLE)
    assert isinstance(bars, Bars)
    assert isinstance(table, Table)
    assert [*bars.values] == [0.0, 0.008, 0.0]
    assert [[*row[:3]] for row in table.rows] == [
        ["0 to 30 s", "9", "-1.00"],
        ["30 to 60 s", "8", "+8.00"],
        ["60 to 90.5 s", "0", "-"],
    ]
    assert [row[3] for row in table.rows] == [Cell(bar=0.0), Cell(bar=1.0), Cell(bar=0.0)]


def draw_strips(found: Attribution) -> list[list[list[float]]]:
    (table,) = tables(find_section(found, "Which node was slow"))
    return [
        [[*map(float, cell.bars)] for cell in row if isinstance(cell, Cell) and cell.bars]
        for row in table.rows
    ]


def test_what_is_drawn_over_the_run_has_one_scale_for_all_times_of_a_kind() -> None:
    nothing = pytest.approx(NAN, nan_ok=True)
    assert draw_strips(FOUND) == [[[0.5, 1.0], [1.0, nothing]], [[1.0, 0.0]], [[pytest.approx(0.0125), 0.0]]]
    # For 8 ms nobody would be named whose requests take 0.32 s, so that these fill only half of the height.
    assert draw_strips(replace(FOUND, request=0.32)) == [
        [[0.25, 0.5], [0.125, nothing]],
        [[0.0625, 0.0]],
        [[pytest.approx(0.00625), 0.0]],
    ]
    # Where all times are equal, a slice without any is a gap all the same.
    equal = [replace(each, longer=[0.0, NAN]) for each in FOUND.timelines.servers if each.part == "own"]
    found = replace(FOUND, request=0.0, timelines=replace(FOUND.timelines, servers=equal))
    assert draw_strips(found) == [[[0.0, nothing]], [[0.0, nothing]]]


def test_a_run_without_writes_has_no_columns_of_writes() -> None:
    own = [each for each in FOUND.timelines.servers if each.part != "last"]
    found = replace(FOUND, timelines=replace(FOUND.timelines, servers=own))
    (table,) = tables(find_section(found, "Which node was slow"))
    assert len(table.columns) == 3
    assert [len(row) for row in table.rows] == [3, 3, 3]


@pytest.mark.parametrize(
    ("finding", "of_rows", "of_pictures"),
    [
        (SLOW, {"d1 on n1"}, {"d1 on n1"}),
        (replace(SLOW, level="node", name="n1", members=["d2 on n2"]), {"n1", "d2 on n2"}, {"d2 on n2"}),
        (make_finding("one of", vars(SLOW), same=["d2 on n2"]), set(), {"d1 on n1"}),
        (make_finding("unfelt", vars(SLOW)), set(), {"d1 on n1"}),
        (make_finding("late", vars(SLOW), seconds=0.1, probability=0.0), {"d1 on n1"}, set()),
        (make_finding("507", vars(SLOW), served=1), {"d1 on n1"}, set()),
        (make_finding("499", vars(SLOW)), set(), set()),
        (replace(SLOW, level="proxy", name="p1"), {"p1"}, {"proxy p1"}),
    ],
)
def test_suspects_are_highlighted(finding: ClusterFinding, of_rows: set[str], of_pictures: set[str]) -> None:
    found = replace(FOUND, findings=[finding])
    pictures = {id(table) for table in tables(make_picture_sections(found))}
    assert pictures
    shown = {"rows": set[str](), "pictures": set[str]()}
    drawn = [*tables(make_picture_sections(found))]
    titles = ("Proxies (ms)", "Nodes (ms)", "Devices (ms)", f"{PARTITIONS_TITLE} (ms)")
    listed = [table for table in tables(make(found).elements) if table.title in titles]
    for name, of in (("pictures", drawn), ("rows", listed)):
        for row in (row for table in of for row in table.rows):
            first = row[0]
            if isinstance(first, Cell) and first.tone is Tone.BAD:
                shown[name].add(first.text)
    assert shown == {"rows": of_rows, "pictures": of_pictures}


def test_a_share_of_nothing_is_not_known() -> None:
    (row,) = find_table(FOUND, "Proxies (ms)").rows
    assert row[2:4] == ["+1.00", "-"]  # without it requests take 0 s
    assert [row[2:4] for row in find_table(FOUND, "Devices (ms)").rows] == [
        ["+8.00", "+40.0"],
        ["-2.00", "-0.4"],
    ]


def test_columns_that_no_row_has_are_left_out() -> None:
    where = f"{TIME_GOES} (ms)"
    few = replace(FOUND, parts=[replace(each, extra=0) for each in FOUND.parts])
    assert find_table(FOUND, where).columns[-1].head == "more servers"
    assert find_table(few, where).columns[-1].head == "slowest server p99"
    both = replace(FOUND, parts=[*FOUND.parts, *few.parts])
    assert [row[-1] for row in find_table(both, where).rows] == ["3", "0"]
    rows = [ServerRow("n1", 1, 0, None, None), ServerRow("n2", 1, 0, None, None, by(0.001))]
    table = find_table(replace(FOUND, nodes=rows), "Nodes (ms)")
    assert [row[2:4] for row in table.rows] == [["-", "-"], ["+1.00", "+5.0"]]


def test_what_longer_means_is_said_where_there_is_a_server() -> None:
    for found, is_said in (
        (FOUND, True),
        (replace(FOUND, proxies=[]), True),
        (replace(FOUND, devices=[]), True),
        (replace(FOUND, proxies=[], devices=[]), False),
    ):
        assert ("Own: by its own log; client: operations" in text.render(make(found), View())) is is_said


def test_a_page_has_the_servers_open_and_all_else_folded() -> None:
    request = TracedRequest("tx1", "read", 1, ())
    assert [(each.title, each.is_folded) for each in make_attribution_sections(FOUND, [request] * 11)] == [
        ("Which node was slow", False),
        (SLICES_TITLE, True),
        (f"A {PARTS_TITLE}, part by part", True),
        (EVIDENCE_TITLE, True),
        ("Times in Swift's logs", True),
        (SLOWEST_TITLE, True),
        ("Coverage", True),
    ]
    sections = {each.title: each for each in make_attribution_sections(FOUND, [request] * 11)}
    assert len(sections[SLOWEST_TITLE].elements) == 10
    assert not any(each.is_folded for each in make(FOUND).elements if isinstance(each, Section))
    assert SLOWEST_TITLE not in {each.title for each in make_attribution_sections(FOUND)}
    assert not any(each.is_folded for each in make_picture_sections(FOUND))


def kind(
    name: str, who: str = "x", requests: int = 0, share: float | None = 0.5, **more: object
) -> ClusterFinding:
    facts = {"level": "device", "name": who, "requests": requests, "share": share}
    return make_finding(name, facts, **more)


COMPARED = ["980 of 1,000 operations compared"]
OF_SLOW = ["8.00 ms longer", "25.0 % of all requests", "from 30 s to 60 s of 90.5 s"]
LIMITS = "2.00 ms (reads and deletes), 3.00 ms (end of writes) or 4.00 ms (proxies)"
HALF = ["50.0 % of all requests"]


@pytest.mark.parametrize(
    ("findings", "tone", "title", "facts"),
    [
        ([SLOW], Tone.BAD, "Slow: d1 on n1", OF_SLOW),
        (
            [SLOW, kind("507", "d2 on n2", served=1)],
            Tone.BAD,
            "Slow: d1 on n1; Answered 507: d2 on n2",
            [f"d1 on n1: {', '.join(OF_SLOW)}", "d2 on n2: 50.0 % of all requests"],
        ),
        (
            [kind("507", f"d{number}", 1 + number, None, served=1) for number in range(1, 6)],
            Tone.BAD,
            "Answered 507: d1, d2, d3, d4 and d5",
            ["d1: 2 times", "d2: 3 times", "d3: 4 times"],
        ),
        (
            [kind("one of", "a", share=None, same=["b"]), kind("stall", "", share=None, seconds=0.5)],
            Tone.BAD,
            f"One of these is slow: a and b; {NOTHING_ENDED}",
            [],
        ),
        ([kind("late", seconds=0.1, probability=0.0)], Tone.BAD, "Late replicas: x", ["100.0 ms", *HALF]),
        ([kind("unfelt")], Tone.BAD, "Slow, not waited for: x", HALF),
        ([kind("update")], Tone.BAD, "Did not take container updates: x", ["50.0 % of writes"]),
        (
            [kind("called slow", seconds=0.5)],
            Tone.BAD,
            "Slow requests by its own log: x",
            ["500.0 ms", *HALF],
        ),
        ([kind("memcached")], Tone.BAD, "No answer of memcached: x", HALF),
        ([kind("missing", "")], Tone.BAD, "A server without a line is slow", HALF),
        ([kind("stall", "", seconds=0.0)], Tone.BAD, NOTHING_ENDED, ["0 s", *HALF]),
        ([kind("499")], Tone.DOUBTFUL, "Errors in the logs", COMPARED),
        ([kind("error", detail="one"), kind("inconclusive")], Tone.DOUBTFUL, "Errors in the logs", COMPARED),
        ([kind("handoff")], Tone.DOUBTFUL, "Errors in the logs", COMPARED),
        (
            [kind("inconclusive")],
            Tone.DOUBTFUL,
            f"{NO_SLOW_SERVER} in all its requests{OF_COMPARABLE} by more than {LIMITS}",
            COMPARED,
        ),
        (
            [],
            Tone.GOOD,
            f"{NO_SLOW_SERVER} in all its requests by more than {LIMITS}",
            COMPARED,
        ),
    ],
)
def test_the_verdict_names_who_is_slow_or_broken(
    findings: list[ClusterFinding], tone: Tone, title: str, facts: list[str]
) -> None:
    verdict = make_attribution_verdict(replace(FOUND, findings=findings))
    assert (verdict.tone, verdict.title, [*verdict.facts]) == (tone, title, facts)


@pytest.mark.parametrize(
    ("found", "tone", "title"),
    [
        (replace(FOUND, overload=["CPU"]), Tone.BAD, f"Slow: d1 on n1; {GENERATOR_OVERLOADED}"),
        (
            replace(FOUND, overload=["CPU"], findings=[replace(SLOW, part="total")]),
            Tone.DOUBTFUL,
            f"Inconclusive: {GENERATOR_OVERLOADED}; Slow: d1 on n1",
        ),
        (
            replace(
                FOUND,
                overload=["CPU"],
                findings=[make_finding("late", vars(SLOW), seconds=0.1, probability=0.0)],
            ),
            Tone.DOUBTFUL,
            f"Inconclusive: {GENERATOR_OVERLOADED}; Late replicas: d1 on n1",
        ),
        (
            replace(FOUND, overload=["CPU"], findings=[]),
            Tone.DOUBTFUL,
            f"Inconclusive: {GENERATOR_OVERLOADED}",
        ),
        (
            replace(FOUND, coverage=replace(COVERAGE, compared=0), findings=[]),
            Tone.DOUBTFUL,
            "Inconclusive: these logs do not tell",
        ),
        (replace(FOUND, detectable=None, findings=[]), Tone.DOUBTFUL, "Inconclusive"),
    ],
)
def test_the_verdict_doubts_what_an_overloaded_generator_or_a_lack_of_logs_may_have_caused(
    found: Attribution, tone: Tone, title: str
) -> None:
    verdict = make_attribution_verdict(found)
    assert (verdict.tone, verdict.title) == (tone, title)


def test_a_course_in_which_nothing_took_longer_has_no_bars() -> None:
    course = DifferenceCourse([Slice(0.0, 30.0, 9, -0.001), Slice(30.0, 60.0, 0, None)])
    found = replace(FOUND, findings=[replace(SLOW, course=course)])
    (bars, table) = find_section(found, SLICES_TITLE)
    assert isinstance(bars, Bars)
    assert isinstance(table, Table)
    assert [*bars.values] == [0.0, 0.0]
    assert [row[3] for row in table.rows] == [Cell(bar=0.0), Cell(bar=0.0)]
