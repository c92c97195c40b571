"""Units: how a value of each is written, in how many columns, and that none looks like another."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.document import units
from ssbench.document.units import Unit


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


@given(st.integers(0, 10**18), st.integers(5, 12))
def test_counts_have_room(number: int, room: int) -> None:
    text = units.format_count(number, room)
    assert len(text) <= max(room, 8)


@given(st.floats(0, 1e7))
def test_latencies_have_room(seconds: float) -> None:
    assert len(units.format_milliseconds(seconds)) <= 5
