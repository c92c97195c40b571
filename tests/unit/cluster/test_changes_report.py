"""What changed between two runs, as people read it: the whole report of changes that are known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from golden_words import GoldenWords

from ssbench.cluster.changes import (
    Changes,
    ComparedRun,
    _judge_changes,
    describe_changes,
    describe_parts,
    make_changes_by_part,
    make_changes_document,
)
from ssbench.comparison.change import FigureChange
from ssbench.document.elements import Tone, View
from ssbench.document.renderers import text
from ssbench.reports.part_changes import (
    LONGER,
    NO_CHANGE_SHOWN,
    SHORTER,
    SliceDifference,
    TimeChange,
)


def difference(seconds: float, probability: float) -> SliceDifference:
    return SliceDifference(seconds, seconds - 0.001, seconds + 0.001, probability)


def change(
    who: tuple[str, str, str],
    before: float,
    after: float,
    verdict: str = NO_CHANGE_SHOWN,
    probability: float = 0.5,
    beside: float | None = None,
) -> TimeChange:
    return TimeChange(
        *who,
        (1200, 1300),
        before,
        after,
        difference(after - before, probability),
        None if beside is None else difference(beside, probability),
        verdict,
    )


CHANGES = Changes(
    ComparedRun("a.stat.gz", operations=2000, failed=100, complete=1880, compared=1700),
    ComparedRun("b.stat.gz", operations=2000, failed=0, complete=1981, compared=1900),
    [
        change(("operation", "read", "client"), 0.01, 0.015, LONGER, 1e-6),
        change(("operation", "create", "client"), 0.02, 0.02),
        change(("operation", "read", "server"), 0.004, 0.009, LONGER, 1e-6),
        change(("operation", "create", "server"), 0.004, 0.004),
        change(("device", "d2 on n1", "own"), 0.003, 0.0031, beside=0.0),
        change(("device", "d1 on n1", "own"), 0.003, 0.012, LONGER, 1e-5, beside=0.008),
        change(("node", "n1", "own"), 0.003, 0.009, LONGER, 1e-7, beside=0.005),
        change(("proxy", "p1", "way"), 0.003, 0.001, SHORTER, 1e-3),
    ],
    comparisons=40,
    gone=["d3 on n2"],
    new=[],
    inconclusive=["d4 on n2"],
    warnings=["clocks"],
)

EXPECTED = """\
What changed between two runs, by Swift's logs
before: a.stat.gz: 2,000 operations, 100 failed, 1,700 compared;
  after: b.stat.gz: 2,000 operations, 1,900 compared
Shorter: p1 (way to it); Longer: d1 on n1 (reads, deletes) and n1 (reads,
  deletes); clients waited longer: read
! clocks
! before: 20 of 1,900 operations lack a line of an object server: is the log of
  every storage node given?

What clients waited, and its parts (ms)
operation part  before  after  change            95 %  shown
create client     20.0   20.0  +0.000  -1.00 to +1.00  -
  server          4.00   4.00  +0.000  -1.00 to +1.00  -
read client       10.0   15.0   +5.00  +4.00 to +6.00  longer
  server          4.00   9.00   +5.00  +4.00 to +6.00  longer

Own times of servers (ms)
server of                before  after  change  beside            95 %  shown
n1 reads, deletes          3.00   9.00   +6.00   +5.00  +4.00 to +6.00  longer
d1 on n1 reads, deletes    3.00   12.0   +9.00   +8.00  +7.00 to +9.00  longer
p1 way to it               3.00   1.00   -2.00       -  -3.00 to -1.00  shorter
d2 on n1 reads, deletes    3.00   3.10  +0.100  +0.000  -1.00 to +1.00  -

A time is compared with those of the same operation, policy, size and server in
  the other run; before and after are means of the medians of slices of a run,
  as if both had as many of each kind, and the change is their difference.
  Servers are judged by how much more they changed than their peers (beside), at
  p < 0.01 for all comparisons together and 5 % of the time. The time of a
  replica of a write is what it takes beyond the fastest other replica of the
  write.
A change that all servers share may be due to other work of the cluster; one run
  of each cannot tell. Repeat both, and see ssbench-master compare.

read: 5.00 ms more (+50.0 %, 95 %: +4.00 to +6.00 ms; median 10.0 ms before,
  15.0 ms after).
create: no difference shown (95 %: -1.00 to +1.00 ms).
Of that, server: read 5.00 ms more.
node n1: its reads and deletes take 5.00 ms more beside its peers (95 %: +4.00
  to +6.00 ms; median 3.00 ms before, 9.00 ms after).
d1 on n1: its reads and deletes take 8.00 ms more beside its peers (95 %: +7.00
  to +9.00 ms; median 3.00 ms before, 12.0 ms after).
proxy p1: the way to it takes 2.00 ms less (95 %: -3.00 to -1.00 ms; median 3.00
  ms before, 1.00 ms after).
Only before: d3 on n2. Servers whose names changed are not compared.
Too few times to compare: d4 on n2.
"""


def render(changes: Changes) -> str:
    return text.render(make_changes_document(changes, View()), View())


def test_the_report_says_who_changed_by_how_much_and_what_is_not_compared() -> None:
    assert render(CHANGES) == EXPECTED


def test_an_interval_without_zero_is_said_to_be_that_of_one_comparison_where_no_difference_is_shown() -> None:
    create = next(each for each in CHANGES.changes if each.name == "create" and each.part == "client")
    alone = replace(create, difference=replace(create.difference, low=0.001, high=0.03))
    said = " ".join(render(replace(CHANGES, changes=[alone])).split())
    assert (
        "create: no difference shown among so many comparisons (95 %: +1.00 to +30.0 ms, of this one alone)."
        in said
    )


def test_the_title_has_the_tone_of_the_servers_that_changed() -> None:
    for changes, tone in (
        (CHANGES.changes, Tone.DOUBTFUL),
        (CHANGES.changes[:-1], Tone.BAD),
        (CHANGES.changes[-1:], Tone.GOOD),
        (CHANGES.changes[:4], Tone.DOUBTFUL),  # clients alone differ from run to run
    ):
        verdict = make_changes_document(replace(CHANGES, changes=changes), View()).verdict
        assert verdict is not None
        assert verdict.tone is tone


def test_more_changes_than_are_said_are_counted(golden_words: GoldenWords) -> None:
    many = [
        change(("device", f"d{number}", "own"), 0.003, 0.012, LONGER, 1e-3 * number, beside=0.008)
        for number in range(1, 11)
    ]
    found = describe_changes(replace(CHANGES, changes=many, gone=[], new=["d9"], inconclusive=[]))
    golden_words(found[0])
    assert [sentence.split(":")[0] for sentence in found[1:9]] == [f"d{number}" for number in range(1, 9)]
    golden_words(found[9:])


def test_without_a_change_of_a_server_that_is_said(golden_words: GoldenWords) -> None:
    found = replace(CHANGES, changes=CHANGES.changes[4:5])
    golden_words(describe_changes(found))
    assert "No difference shown" in render(found)
    assert "No device" not in render(replace(CHANGES, changes=CHANGES.changes[:4]))


def judge(*changes: TimeChange) -> list[str]:
    return [each.verdict for each in _judge_changes([*changes])]


@pytest.mark.parametrize(
    ("before", "after", "beside", "verdict"),
    [
        (0.010, 0.011, None, LONGER),
        (0.010, 0.009, None, SHORTER),
        (0.010, 0.0104, None, NO_CHANGE_SHOWN),  # less than a twentieth of it
        (0.0104, 0.010, None, NO_CHANGE_SHOWN),
        (0.001, 0.00119, None, NO_CHANGE_SHOWN),  # less than two steps of the log
        (0.001, 0.00121, None, LONGER),
        (0.010, 0.012, 0.003, LONGER),
        (0.010, 0.012, 0.0041, NO_CHANGE_SHOWN),  # it is its peers who changed
        (0.010, 0.012, -0.002, NO_CHANGE_SHOWN),
        (0.010, 0.010, 0.002, NO_CHANGE_SHOWN),
    ],
)
def test_a_change_is_shown_that_is_large_enough_and_its_own(
    before: float, after: float, beside: float | None, verdict: str
) -> None:
    found = change(("device", "d1", "own"), before, after, probability=1e-6, beside=beside)
    assert judge(replace(found, beside=beside and difference(beside, 1e-6))) == [verdict]


def test_all_changes_together_are_wrong_once_in_a_hundred_runs() -> None:
    def changes(*probabilities: float) -> list[str]:
        return judge(*(change(("device", "d", "own"), 0.01, 0.02, "", each) for each in probabilities))

    assert changes(0.0099) == [LONGER]
    assert changes(0.0101) == [NO_CHANGE_SHOWN]
    assert changes(0.0051, 0.5) == [NO_CHANGE_SHOWN] * 2
    assert changes(0.0049, 0.5) == [LONGER, NO_CHANGE_SHOWN]
    assert changes(0.0049, 0.0099) == [LONGER, LONGER]  # Holm: the second is one of one


@pytest.mark.parametrize(
    ("level", "part", "least"), [("device", "writes", 1 / 3), ("node", "own", 3 / 4), ("device", "own", 0.1)]
)
def test_what_a_larger_change_of_the_same_part_explains_is_not_shown(
    level: str, part: str, least: float
) -> None:
    largest = change(("device", "d1", part), 0.01, 0.02, probability=1e-9)
    other = change(("device", "d1", "updates"), 0.01, 0.11, probability=1e-9)
    for share, verdict in ((least * 1.01, LONGER), (least * 0.99, NO_CHANGE_SHOWN)):
        mine = change((level, "x", part), 0.01, 0.01 * (1 + share), probability=1e-9)
        expected = LONGER if (level, part) == ("device", "own") else verdict
        assert judge(largest, other, mine) == [LONGER, LONGER, expected]


CPU = {"object": FigureChange(0.002, 0.0036), "proxy": FigureChange(0.001, 0.002)}


def test_one_sentence_says_in_which_part_two_sides_differ_and_whose_cpu_it_is(
    golden_words: GoldenWords,
) -> None:
    golden_words(describe_parts(CHANGES, {}))
    golden_words(describe_parts(CHANGES, CPU))
    equal = [replace(each, verdict=NO_CHANGE_SHOWN) for each in CHANGES.changes]
    alone = replace(CHANGES, changes=equal)
    golden_words(describe_parts(alone, CPU))
    hidden = replace(CHANGES, changes=[*equal[:2], CHANGES.changes[2]])
    golden_words(describe_parts(hidden, {}))
    golden_words(describe_parts(replace(CHANGES, changes=[]), CPU))
    whole = [each for each in CHANGES.changes if each.part == "client"]
    golden_words(describe_parts(replace(CHANGES, changes=whole), CPU))


def test_parts_of_sides_are_those_of_operations_with_what_is_missing() -> None:
    made = make_changes_by_part(CHANGES, CPU, is_shown=True)
    assert {each.level for each in made.operations} == {"operation"}
    assert made.answer == describe_parts(CHANGES, CPU)
    assert made.warnings[0] == "clocks"
    assert made.warnings[1].startswith("before: 20 of 1,900 operations lack a line")


def test_no_part_is_named_where_the_sides_are_not_shown_to_differ(golden_words: GoldenWords) -> None:
    made = make_changes_by_part(CHANGES, {}, is_shown=False)
    assert {each.verdict for each in made.operations} == {NO_CHANGE_SHOWN}
    assert [each.difference for each in made.operations] == [
        each.difference for each in CHANGES.changes if each.level == "operation"
    ]
    golden_words(made.answer)


def test_without_a_verdict_the_sentence_says_what_it_is_worth(golden_words: GoldenWords) -> None:
    golden_words(make_changes_by_part(CHANGES, {}, is_shown=None).answer)
    equal = [replace(each, verdict=NO_CHANGE_SHOWN) for each in CHANGES.changes]
    golden_words(make_changes_by_part(replace(CHANGES, changes=equal), {}, is_shown=None).answer)


def test_the_operation_of_which_a_part_changed_is_the_one_that_is_told_of() -> None:
    """The more frequent one has no change at all."""
    equal = [replace(each, verdict=NO_CHANGE_SHOWN) for each in CHANGES.changes]
    client = next(each for each in equal if each.part == "client")
    often = replace(client, name="often", times=(10_000, 10_000))
    part = next(each for each in CHANGES.changes if each.part == "server" and each.name == client.name)
    found = describe_parts(replace(CHANGES, changes=[often, client, part]), {})
    assert found.startswith(f"{client.name.upper()}: no difference shown: the object servers' part +")
