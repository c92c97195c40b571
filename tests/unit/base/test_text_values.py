"""Times and sizes with units."""

from __future__ import annotations

import contextlib
import math

import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base import text_values
from ssbench.base.text_values import is_reference


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("30", 30), ("0.5", 0.5), ("1e3", 1000), ("200ms", 0.2), ("250us", 0.00025), ("5s", 5)],
        *[
            ("1m", 60),
            ("2min", 120),
            ("1.5h", 5400),
            ("1d", 86400),
            ("1m30s", 90),
            ("1h 2m 3s", 3723),
            ("0s", 0),
        ],
    ],
)
def test_times(text, value):
    assert text_values.parse_seconds(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("4K", 4096),
            ("4k", 4096),
            ("4KiB", 4096),
            ("4Ki", 4096),
            ("1e6", 1_000_000),
            ("1.5e3kB", 1_500_000),
            ("1E", 2**60),
        ],
        *[
            ("4kB", 4000),
            ("4KB", 4000),
            ("1 MB", 10**6),
            ("1.5MiB", 1572864),
            ("5GB", 5 * 10**9),
            ("1T", 2**40),
        ],
    ],
)
def test_sizes(text, value):
    assert text_values.parse_size(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            "s",
            "ms",
            "1 2",
            "-5s",
            "nan",
            "inf",
            "1e999",
            "5 parsecs",
            "1m30",
            "5S",
            "٣s",
            "1..5s",
            "9" * 400 + "s",
        ]
    ],
)
def test_what_is_no_time(text):
    with pytest.raises(ValueError, match=r"is not a (time|unit of time)"):
        text_values.parse_seconds(text)


@pytest.mark.parametrize(
    "text", ["", "K", "-1", "1.5", "0.3B", "1e-6", "4KiBB", "4 K B", "4Q", "٤K", "9" * 400]
)
def test_what_is_no_size(text, golden_words: GoldenWords):
    with golden_words.raises(ValueError):
        text_values.parse_size(text)


@given(st.floats(0, 1e15, allow_subnormal=False))
def test_plain_numbers_mean_what_they_meant(value):
    assert text_values.parse_seconds(repr(value)) == value
    assert text_values.parse_size(str(int(value))) == int(value)


@given(st.integers(0, 10**6), st.sampled_from([*zip("KMGTPE", range(1, 7), strict=True)]))
def test_units_of_a_size_are_powers(number, prefix):
    letter, power = prefix
    assert (
        text_values.parse_size(f"{number}{letter}")
        == text_values.parse_size(f"{number}{letter}iB")
        == number * 1024**power
    )
    assert text_values.parse_size(f"{number}{letter}B") == number * 1000**power


@given(st.integers(0, 1000), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_parts_of_a_time_add_up(hours, minutes, seconds, milliseconds):
    text = f"{hours}h{minutes}m{seconds}s{milliseconds}ms"
    assert text_values.parse_seconds(text) == pytest.approx(
        3600 * hours + 60 * minutes + seconds + milliseconds / 1000
    )


@given(st.text(max_size=12) | st.from_regex(r"[0-9.]{0,5}[a-zA-Z]{0,3}", fullmatch=True))
def test_any_text_is_a_number_or_one_error(text):
    for parse in (text_values.parse_seconds, text_values.parse_size):
        with contextlib.suppress(ValueError):
            assert math.isfinite(parse(text))


def test_what_is_a_reference(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "@there").touch()
    assert [is_reference(text) for text in ("last", "last-12", "@x")] == [True] * 3
    assert [is_reference(text) for text in ("@there", "lasts", "last-", "a.stat.gz")] == [False] * 4
