"""The table of figures and their units: how they are found, what they need, how a value is written."""

from __future__ import annotations

import math

import pytest
from counted import SCENARIO, WHOLE_NUMBER_PERCENTILES
from hypothesis import given
from hypothesis import strategies as st
from result_rows import block, row

from ssbench.document import figures, units
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
    assert [*COMPARED_FIGURES] == ["rate", "mb_per_s", "p50", "p95", "p99", "errors"]
    for each in COMPARED_FIGURES.values():
        assert each.more_is_better is not None
        assert each.words[0] != each.words[1]
    assert COMPARED_FIGURES["errors"].compared_in is Unit.SHARE


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (math.nan, "-"),
        (0.0000634, ".0634"),
        (0.00009996, "0.100"),
        (0.0, "0.000"),
        (0.0006344, "0.634"),
        (0.0009996, "1.00"),
        (0.0063404, "6.34"),
        (0.009996, "10.0"),
        (0.0634, "63.4"),
        (0.634, "634.0"),
        (0.99996, "1000"),
        (6.34, "6340"),
        (63.4, "63400"),
        (99.9999, "100s"),
        (9999, "9999s"),
        (36000, "10h"),
        (math.inf, "inf"),
    ],
)
def test_times_in_milliseconds(seconds: float | None, text: str) -> None:
    assert units.format_milliseconds(seconds) == text == Unit.SECONDS.text(seconds)


@given(st.floats(0, 9e6))
def test_times_fit_five_characters(seconds: float) -> None:
    assert len(units.format_milliseconds(seconds)) <= 5


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "-"),
        (math.nan, "-"),
        (math.inf, "inf"),
        (0, "0.00"),
        (7.14, "7.14"),
        (9.996, "10.0"),
        (263.44, "263.4"),
        (999.96, "1,000"),
        (1234.5, "1,234"),
        (1.5e6, "1,500,000"),
    ],
)
def test_rates(number: float | None, text: str) -> None:
    assert units.format_number(number) == text == Unit.PER_SECOND.text(number)
    assert units.format_megabytes(None if number is None else number * 1e6) == text


def test_rates_in_few_columns() -> None:
    assert units.format_number(123_456_789.0, 8) == "123M"
    assert units.format_count(1_234_567, 9) == "1,234,567"
    assert units.format_count(12_345_678, 9) == "12M"
    assert units.format_count(147_097, 6) == "147k"
    assert units.format_count(9_499_999, 6) == "9,500k"
    assert units.format_count(9_500_000, 6) == "10M"


@pytest.mark.parametrize(
    ("share", "text"),
    [(None, "-"), (0.0, "0.00"), (0.00001, "<0.01"), (0.0123, "1.23"), (0.25, "25.0"), (1.0, "100.0")],
)
def test_shares_in_per_cent(share: float | None, text: str) -> None:
    assert units.format_percent(share) == text == Unit.SHARE.text(share)


def test_other_units() -> None:
    assert Unit.COUNT.text(12345.0) == "12,345"
    assert Unit.CHANGE.text(-0.0123) == "-1.2"
    assert Unit.CHANGE.text(None) == "-"
    assert Unit.SECONDS.shown == "ms"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.500"),
        (0.0999, "0.0999"),
        (0.003, "0.00300"),
        (0.000_42, "0.000420"),
        (0.000_001, "0.000001"),
        (1e-9, "<0.000001"),
        (-0.003, "-0.00300"),
        (-math.inf, "-inf"),
    ],
)
def test_a_number_that_is_not_zero_does_not_look_like_it(value: float, text: str) -> None:
    assert units.format_number(value) == text
    assert float(text.lstrip("<")) == pytest.approx(value, rel=0.005, abs=1e-6)


@given(st.floats(1e-12, 1e12))
def test_three_digits_of_a_number_are_right(value: float) -> None:
    text = units.format_number(value).replace(",", "")
    assert text.startswith("<") == (value < 1e-6)
    if value >= 1e-4:  # below there are fewer digits
        assert float(text) == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.05, "+5.0"), (-0.00042, "-0.04"), (0.00001, "+<0.01"), (12.3, "+1230"), (0, "+0.0"), (None, "-")],
)
def test_changes_in_per_cent(share: float | None, text: str) -> None:
    assert units.format_change(share) == text == Unit.CHANGE.text(share)
    assert share is None or units.format_change_size(abs(share)) == text[1:]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0123, "+12.3"),
        (-0.1234, "-123.4"),
        (0.25, "+250.0"),
        (-2e-5, "-.0200"),
        (3.5, "+3500"),
        (math.inf, "+inf"),
        (math.nan, "-"),
        (None, "-"),
    ],
)
def test_differences_of_times_have_a_sign_and_no_exponent(seconds: float | None, text: str) -> None:
    """An interval from 120 to 250 ms was +1.2e+02 to +2.5e+02."""
    assert units.format_time_difference(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.00634, "6.34 ms"), (123.0, "123 s"), (36_000, "10 h"), (math.inf, "inf"), (None, "-")],
)
def test_latencies_with_their_units(seconds: float | None, text: str) -> None:
    assert units.format_latency(seconds) == text


def test_seconds_of_runs() -> None:
    assert [units.format_seconds(each) for each in (0, 1.0004, 1234.5, None, math.nan)] == [
        "0.000",
        "1.000",
        "1234.500",
        "-",
        "-",
    ]
    assert [units.format_run_length(each) for each in (0, 0.02, 0.5, 12.0, 12.34, 3600.06)] == [
        "0",
        "0.0200",
        "0.5",
        "12",
        "12.3",
        "3,600.1",
    ]
