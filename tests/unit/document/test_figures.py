"""The table of figures: how they are found, what they need, and their values."""

from __future__ import annotations

import pytest
from counted import SCENARIO, WHOLE_NUMBER_PERCENTILES
from result_rows import block, row

from ssbench.document import figures
from ssbench.document.figures import COMPARED_FIGURES, FIGURES, LIKELY_KEYS, count_needed_results
from ssbench.document.units import Unit
from ssbench.results.block import Failure
from ssbench.results.run_description import RunDescription
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import make_statistics


class Facts:
    """What statistics need to know of a run that is only in memory."""

    run = RunDescription(SCENARIO)
    size_classes = tuple(each.name for each in SCENARIO.size_classes)
    summary = None
    warnings = ()
    current = True


def run_of(successes: int, failures: int = 0) -> RunStatistics:
    """Return a run whose latencies are 1 ms, 2 ms and so on, one after another in time."""
    rows = [
        row(first_byte=0.0005, last_byte=(place + 1) / 1000, completed=1e9 + place, size=1000, retries=1)
        for place in range(successes + failures)
    ]
    failed = {place: Failure("HTTP 503", "", {}) for place in range(successes, successes + failures)}
    collector = Collector()
    # Attempts are one, retries, and requests that were sent again.
    collector.add(block(rows, failures=failed, rare={"attempts": {0: 4, 1: 3}}))
    return make_statistics(collector, Facts())


@pytest.mark.parametrize("key", LIKELY_KEYS)
def test_a_figure_is_found_by_its_key(key: str) -> None:
    found = figures.find_figure(key)
    assert found is not None
    assert found.key == key
    assert found.head
    assert figures.find_figure(key.upper()) is None


@pytest.mark.parametrize(
    "key", ["", "p", "p0", "p101", "p99.1234567", "rates", "first_", "first_rate", "P50"]
)
def test_what_is_no_figure(key: str) -> None:
    assert figures.find_figure(key) is None


def test_values_are_those_of_the_statistics() -> None:
    run = run_of(40, failures=10)
    line = run.total.lines[0]
    assert FIGURES["count"].value(line, run) == 40
    assert FIGURES["errors"].value(line, run) == 10
    assert FIGURES["errors"].share(line, run) == pytest.approx(0.2)
    assert FIGURES["retries"].share(line, run) == pytest.approx(50 / 40)
    assert FIGURES["resent"].share(line, run) == pytest.approx(3 / 50)
    assert FIGURES["rate"].value(line, run) == line.requests_per_second
    assert FIGURES["mb_per_s"].value(line, run) == pytest.approx(line.moved_per_second / 1e6)
    assert FIGURES["p50"].value(line, run) == pytest.approx(0.0205)
    assert FIGURES["max"].value(line, run) == pytest.approx(0.040)
    assert FIGURES["mean"].value(line, run) == pytest.approx(0.0205)
    assert figures.find_figure("first_mean").value(line, run) == pytest.approx(0.0005)
    assert figures.find_figure("response_mean").value(line, run) is None


@pytest.mark.parametrize(("rank", "needs"), [(50, 20), (95, 200), (99, 1000), (99.9, 10_000), (1, 11)])
def test_a_percentile_needs_ten_results_beyond_it(rank: float, needs: int) -> None:
    found = figures.percentile_figure(rank)
    assert found.needs == count_needed_results(rank) == needs
    enough, few = run_of(needs), run_of(needs - 1)
    assert found.value(enough.total.lines[0], enough) is not None
    assert found.value(few.total.lines[0], few) is None
    assert found.interval(few.total.lines[0], few) is None
    assert found.text(few.total.lines[0], few) == "-"
    assert found.measured(few.total.lines[0], few) is not None


@pytest.mark.parametrize(("count", "rank", "expected"), WHOLE_NUMBER_PERCENTILES)
def test_a_percentile_is_the_smallest_of_its_place_or_between_two(
    count: int, rank: float, expected: float
) -> None:
    assert figures.percentile_by_rule(count, rank, float) == expected


def test_a_percentile_of_values_is_known_where_enough_support_it() -> None:
    assert figures.percentile_of(range(1, 20), 50) is None
    assert figures.percentile_of(range(1, 21), 50) == 10.5
    assert figures.percentile_of(range(1, 3), 100) == 2
    assert figures.percentile_of((), 100) is None


def test_the_table_needs_as_many_as_the_latencies_say() -> None:
    """What supports a percentile is counted in one way, whoever asks."""
    for count in (19, 20, 199, 200, 999, 1000):
        run = run_of(count)
        line = run.total.lines[0]
        for rank in (50, 95, 99):
            assert figures.percentile_figure(rank).is_supported(line, run) is line.last_byte.supports(rank)


def test_without_any_result_there_is_no_latency() -> None:
    run = run_of(0, failures=3)
    line = run.total.lines[0]
    for key in ("mean", "max", "p50", "first_p99"):
        assert figures.find_figure(key).value(line, run) is None
    assert FIGURES["rate"].value(line, run) == 0
    assert FIGURES["retries"].share(line, run) is None


def test_what_is_compared_says_which_way_is_better() -> None:
    of_servers = ["proxy_cpu", "listings_cpu", "object_cpu"]
    assert [*COMPARED_FIGURES] == ["rate", "mb_per_s", "p50", "p95", "p99", "errors", *of_servers]
    for each in COMPARED_FIGURES.values():
        assert each.more_is_better is not None
        assert each.words[0] != each.words[1]
    assert COMPARED_FIGURES["errors"].compared_in is Unit.SHARE
