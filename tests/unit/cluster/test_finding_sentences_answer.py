"""The answer as a whole: an all-clear and its limits, what logs lack, and doubts about the load generator."""

from __future__ import annotations

from dataclasses import replace

import pytest
from golden_words import GoldenWords
from known_attribution import COVERAGE, FOUND, SLOW, make_finding
from said import (
    LACK_LINES,
    NO_CONTAINER_LINES,
    NO_OUTLIER,
    NO_SLOW_SERVER,
    NOT_COMPARABLE,
    OF_COMPARABLE,
    TAKES_PART,
)

from ssbench.cluster.attribution_records import Attribution, Lead
from ssbench.cluster.finding_kinds import IncomparableServers, format_signed_duration, list_names
from ssbench.cluster.finding_sentences import (
    describe_attribution,
    list_coverage_facts,
    list_coverage_notes,
)
from ssbench.cluster.rank_tests import PeerDifference

#: What is said of who was next to be accused.
NEAREST_OUTLIER = " Nearest to being one: d1 on n1,"

CLEAR = replace(FOUND, findings=[], proxies=FOUND.proxies * 2)


def say_clear(
    limits: str = "2.00 ms (reads and deletes), 3.00 ms (end of writes) or 4.00 ms (proxies)",
    some: str = "",
    untold: str = "",
    lead: str = "",
) -> str:
    return (
        f"{NO_SLOW_SERVER} in all its requests{some} by more than {limits}: a"
        f" server that much slower is found in 9 of 10 such runs (1,040 comparisons).{untold} These"
        " limits do not hold for delays of few requests, of large objects or of one container alone."
        " Not detectable: bodies of reads; delays before a server's clock starts; causes that slow all"
        f" servers alike (memcached, network, all disks).{lead}"
    )


def lead(part: str, group: str | None, median: float, mean: float, *, is_of_few: bool = False) -> Attribution:
    difference = PeerDifference(median, mean, 0.02)
    return replace(CLEAR, lead=Lead("d1 on n1", part, group, difference, 0.1, is_of_few))


def covered(**numbers: int) -> Attribution:
    return replace(CLEAR, coverage=replace(COVERAGE, **numbers))


SOME = OF_COMPARABLE
TOO_FEW = f"{NO_OUTLIER} these are too few requests for a slow device to show."
LACKING = f"{NO_OUTLIER} logs are missing."
LACK_OF_SERVERS = (
    f"1.10 %{LACK_LINES}n object server: what is slow in a server without a log"
    " cannot be"
    " seen in its own times."
)


@pytest.mark.parametrize(
    ("found", "sentences"),
    [
        pytest.param(CLEAR, [say_clear()], id="all clear"),
        pytest.param(
            replace(CLEAR, detectable_at_end=None, detectable_of_proxies=None),
            [
                say_clear(
                    "2.00 ms (reads and deletes)",
                    untold=(
                        " Slowness only at the end of writes or in a proxy would not be found with so few"
                        " requests."
                    ),
                )
            ],
            id="too few to tell of some",
        ),
        pytest.param(
            replace(
                CLEAR,
                detectable_at_end=None,
                detectable_of_proxies=None,
                proxies=FOUND.proxies,
                in_writes=0.0,
            ),
            [say_clear("2.00 ms (reads and deletes)")],
            id="one proxy and no writes",
        ),
        pytest.param(
            replace(CLEAR, detectable_of_updates=0.005),
            [
                say_clear(
                    "2.00 ms (reads and deletes), 3.00 ms (end of writes), 5.00 ms (container updates) or"
                    " 4.00 ms (proxies)"
                )
            ],
            id="updates",
        ),
        pytest.param(
            lead("reads", None, 0.001, 0.0005),
            [say_clear(lead=f"{NEAREST_OUTLIER} +1.00 ms in reads; a longer run would tell.")],
            id="lead by its median",
        ),
        pytest.param(
            lead("total", "writes", 0.001, 0.0015),
            [say_clear(lead=(f"{NEAREST_OUTLIER} +1.50 ms in writes with it; a longer run would tell."))],
            id="lead by its mean",
        ),
        pytest.param(
            lead("total", None, -0.001, -0.0015),
            [say_clear(lead=(f"{NEAREST_OUTLIER} -1.00 ms in requests with it; a longer run would tell."))],
            id="lead that is faster",
        ),
        pytest.param(
            lead("own", None, 0.02, 0.02, is_of_few=True),
            [
                say_clear(
                    lead=f"{NEAREST_OUTLIER} +20.0 ms in a few reads and deletes; a longer run would tell."
                )
            ],
            id="lead in a few of its own times",
        ),
        pytest.param(
            lead("total", None, 0.02, 0.02, is_of_few=True),
            [
                say_clear(
                    lead=f"{NEAREST_OUTLIER} +20.0 ms in a few requests with it; a longer run would tell."
                )
            ],
            id="lead in a few requests",
        ),
        pytest.param(
            replace(
                CLEAR,
                findings=[
                    IncomparableServers("device", "d3"),
                    IncomparableServers("device", "d4", same=["d5"]),
                ],
            ),
            [
                say_clear(some=SOME),
                f"Not testable: d3, d4 and d5: each {NOT_COMPARABLE} compares",
            ],
            id="some not compared",
        ),
        pytest.param(
            covered(updates=0),
            [
                say_clear(some=SOME),
                f"No {NO_CONTAINER_LINES} tells of an object: one that makes writes slow cannot be seen.",
            ],
            id=f"no {NO_CONTAINER_LINES}",
        ),
        pytest.param(
            replace(covered(updates=0), in_writes=0.0), [say_clear()], id="no line and no need of one"
        ),
        pytest.param(
            replace(CLEAR, in_writes=0.51),
            [
                say_clear(),
                f"{TAKES_PART} 51.0 % of the writes: two devices slow only in writes would hide each other.",
            ],
            id="devices in most writes",
        ),
        pytest.param(replace(CLEAR, in_writes=0.5), [say_clear()], id="devices in half of the writes"),
        pytest.param(replace(CLEAR, detectable=None, in_writes=0.9), [TOO_FEW], id="nothing detectable"),
        pytest.param(replace(CLEAR, detectable=0.0201), [TOO_FEW], id="more than a request takes"),
        pytest.param(
            replace(CLEAR, detectable=0.02),
            [say_clear("20.0 ms (reads and deletes), 3.00 ms (end of writes) or 4.00 ms (proxies)")],
            id="as much as a request takes",
        ),
        pytest.param(replace(CLEAR, request=None), [TOO_FEW], id="no request"),
        pytest.param(covered(incomplete=11), [LACKING, LACK_OF_SERVERS], id="lines of servers lack"),
        pytest.param(
            replace(covered(incomplete=11), unlogged=["n4", "n5"]),
            [LACKING, f"{LACK_OF_SERVERS} No log is of n4 and n5."],
            id="lines of known servers lack",
        ),
        pytest.param(covered(incomplete=10, with_proxy=990), [say_clear()], id="few lines lack"),
        pytest.param(
            covered(with_proxy=989),
            [
                LACKING,
                f"1.10 %{LACK_LINES} proxy: what is slow in a proxy without a log,"
                " or on the"
                " way to it, cannot be told.",
            ],
            id="lines of a proxy lack",
        ),
        pytest.param(
            replace(CLEAR, overload=["The CPU was busy", "Second."]),
            [
                "Inconclusive: no slow server was found, but the load generator was too busy for a test:"
                " repeat with fewer users, or from an idle machine.",
                "The CPU was busy.",
                "Second.",
            ],
            id="overload",
        ),
        pytest.param(
            covered(compared=0),
            ["Inconclusive: no operation has all its object servers' lines."],
            id="nothing compared",
        ),
    ],
)
def test_an_all_clear_says_how_far_it_goes(found: Attribution, sentences: list[str]) -> None:
    assert describe_attribution(found) == sentences


@pytest.mark.parametrize(
    ("changed", "is_certain"),
    [
        ({"part": "reads"}, True),
        ({"part": "last"}, True),
        ({"part": "own part"}, True),
        ({"part": "told", "kind": "unfelt"}, True),
        ({"part": "total"}, False),
        ({"part": "way"}, False),
        ({"part": "reads", "kind": "one of"}, False),
        ({"part": "reads", "kind": "busy"}, False),
    ],
)
def test_what_a_servers_own_clock_shows_comes_before_the_doubt(
    changed: dict[str, str], is_certain: bool
) -> None:
    finding = make_finding(changed.get("kind", "slow"), {**vars(SLOW), **changed})
    found = replace(FOUND, overload=["The CPU was busy"], findings=[finding])
    doubt = "The CPU was busy. This affects the times of clients and servers: all below is doubtful."
    held = "The servers' own clocks show this, so it holds in spite of what follows."
    said = finding.describe()
    assert describe_attribution(found) == ([said, f"{held} {doubt}"] if is_certain else [doubt, said])
    assert describe_attribution(replace(found, overload=[])) == [said]


def test_a_device_in_most_writes_is_no_news_where_one_was_found() -> None:
    assert describe_attribution(replace(FOUND, in_writes=0.9)) == [SLOW.describe()]


def test_what_the_logs_cover_is_counted_beside_the_successes(golden_words: GoldenWords) -> None:
    golden_words(list_coverage_facts(COVERAGE))
    none = replace(COVERAGE, failed=1000, with_proxy=0)
    golden_words(list_coverage_facts(none)[1])


def test_that_it_is_a_sample_is_noted_first_and_what_the_logs_lack_last() -> None:
    said = [each.partition(" ")[0] for each in list_coverage_notes(COVERAGE)]
    assert said == ["this", "1", "2", "3", "4", "6", "7", "logs"]


def test_only_what_is_missing_is_noted(golden_words: GoldenWords) -> None:
    fine = dict.fromkeys(("without_id", "retried", "delayed", "concurrent", "cut", "duplicates"), 0)
    assert list_coverage_notes(replace(COVERAGE, results=1000, reasons=[], **fine)) == []
    golden_words(list_coverage_notes(replace(COVERAGE, results=1000, reasons=["r"], **fine | {"retried": 1})))


def test_many_names_are_cut_short() -> None:
    names = [f"d{number}" for number in range(1, 8)]
    assert [list_names(names[:count]) for count in (0, 1, 2, 3, 6, 7)] == [
        "",
        "d1",
        "d1 and d2",
        "d1, d2 and d3",
        "d1, d2, d3, d4, d5 and d6",
        "d1, d2, d3, d4, d5 and 2 more",
    ]


def test_durations_have_their_sign() -> None:
    assert [*map(format_signed_duration, (0.001, 0.0, -0.001))] == ["+1.00 ms", "+0.000 ms", "-1.00 ms"]
