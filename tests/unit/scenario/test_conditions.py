"""Conditions: what is read, what is refused, and how they are spelled."""

from __future__ import annotations

import math
import re

import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st
from judged_runs import scenario

from ssbench.base.errors import ScenarioError, UsageError
from ssbench.document.units import Unit
from ssbench.scenario import conditions
from ssbench.scenario.conditions import (
    find_unknown_subject,
    parse_condition,
    parse_conditions,
    parse_precisions,
)
from ssbench.scenario.consistency import override


@pytest.mark.parametrize(
    ("text", "subject", "figure", "relation", "limit", "unit"),
    [
        ("read.p99 > 200ms", ("read", None), "p99", ">", 0.2, Unit.SECONDS),
        ("READ.P99>=1m30s", ("read", None), "p99", ">=", 90.0, Unit.SECONDS),
        (" total.rate<500 ", (None, None), "rate", "<", 500.0, Unit.PER_SECOND),
        ("rate < 500/s", (None, None), "rate", "<", 500.0, Unit.PER_SECOND),
        ("errors > 0.1%", (None, None), "errors", ">", 0.001, Unit.SHARE),
        ("all.errors > 3", (None, None), "errors", ">", 3.0, Unit.COUNT),
        (
            "create.mb_per_s <= 100.5MB/s",
            ("create", None),
            "mb_per_s",
            "<=",
            100.5,
            Unit.MEGABYTES_PER_SECOND,
        ),
        ("read.small.p99.9 > 2 s", ("read", "small"), "p99.9", ">", 2.0, Unit.SECONDS),
        ("read.big.one.max > 2s", ("read", "big.one"), "max", ">", 2.0, Unit.SECONDS),
        ("first_p50 > 3ms", (None, None), "first_p50", ">", 0.003, Unit.SECONDS),
        ("delete.retries > 5 %", ("delete", None), "retries", ">", 0.05, Unit.SHARE),
        ("p100 > 1s", (None, None), "p100", ">", 1.0, Unit.SECONDS),
        ("read.response_p99.9 > 1s", ("read", None), "response_p99.9", ">", 1.0, Unit.SECONDS),
    ],
)
def test_what_is_read(text, subject, figure, relation, limit, unit):
    found = parse_condition(text)
    assert (found.operation, found.size_class) == subject
    assert (found.figure, found.relation, found.unit) == (figure, relation, unit)
    assert found.limit == pytest.approx(limit)
    assert parse_condition(found.text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "read.p99",
        "p99 = 3s",
        "p99>200ms and errors>1%",
        "reed.p99 > 1s",
        "read.p9x > 1s",
        "read.rat < 5",
        "p0 > 1s",
        "p101 > 1s",
        "p99 > 200",
        "p99 > 1e3",
        "p99 > 5x",
        "p99 > 5%",
        "rate > 5%",
        "rate > -5",
        "errors > 101%",
        "total.small.p99 > 1s",
        "read.small.retries > 1",
        "read.p99 > +10%",
        "x" * 500 + " > 1s",
    ],
)
def test_what_is_refused_is_told_in_one_line(text, golden_words: GoldenWords):
    with pytest.raises(ValueError, match=r".") as error:
        parse_condition(text)
    golden_words(str(error.value))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_a_change_where_there_are_two_runs():
    found = parse_condition("read.p99 > +10%", relative=True)
    assert found.relative
    assert found.limit == pytest.approx(0.1)
    assert found.holds(0.11)
    assert not found.holds(0.09)
    assert parse_condition("rate < -5%", relative=True).holds(-0.06)
    assert parse_condition("rate < 5", relative=True).unit is Unit.PER_SECOND


def test_several_with_and():
    assert [each.text for each in parse_conditions("read.p99 <= 50ms and errors <= 0.1%")] == [
        "read.p99 <= 50ms",
        "errors <= 0.1%",
    ]


@given(
    st.text(max_size=40)
    | st.from_regex(r"[a-z]{0,6}\.?[a-z_p0-9.]{1,8} ?[<>]=? ?[+-]?[0-9.]{1,5}[a-z%/]{0,3}")
)
def test_any_text_is_a_condition_or_a_line_that_says_why_not(text):
    try:
        found = parse_condition(text, relative=True)
    except ValueError:
        return
    assert parse_condition(found.text, relative=True) == found
    assert found.spell(found.limit)
    assert found.rank is None or 0 < found.rank <= 100


def test_a_scenario_has_conditions_and_the_command_line_adds_to_them(tmp_path, golden_words: GoldenWords):
    assert scenario(tmp_path, "errors > 1%").fail_if == ("errors > 1%",)
    found = scenario(tmp_path, "[READ.p99 >2s, read.small.max > 5s]")
    assert found.fail_if == ("read.p99 > 2s", "read.small.max > 5s")
    assert override(found, fail_if=["read.p99 > 2s", "rate < 1"]).fail_if == (*found.fail_if, "rate < 1")
    assert scenario(tmp_path, "").fail_if == ()
    with golden_words.raises(UsageError):
        override(found, fail_if=["read.x.p99 > 2s"])


@pytest.mark.parametrize(
    "fail_if",
    [
        "[p99 > 200]",
        "3",
        "[3]",
        "[read.big.p99 > 1s]",
    ],
)
def test_a_wrong_condition_in_a_scenario_has_its_line(tmp_path, fail_if, golden_words: GoldenWords):
    with pytest.raises(ScenarioError) as error:
        scenario(tmp_path, fail_if)
    golden_words(str(error.value))


def test_all_examples_are_conditions():
    for text in conditions.CONDITION_EXAMPLES.split("'")[1::2]:
        assert parse_condition(text)


def test_measured_values_have_three_digits_or_what_tells_them_from_the_limit():
    near = parse_condition("read.p99 > 200ms")
    assert near.spell_measured(0.0143544) == "14.4ms"
    assert near.spell_measured(0.2) == "200ms"
    assert near.spell_measured(0.2000123) == "200.01ms"
    assert near.spell_measured(math.inf) == "inf"
    assert parse_condition("rate < 500").spell_measured(12345.67) == "12346/s"
    assert parse_condition("errors > 3").spell_measured(1234567) == "1234567"
    assert parse_condition("errors > 0.1%").spell_measured(0.00123456) == "0.123%"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("2%", ["rate 2%"]),
        ("2.5", ["rate 2.5%"]),
        ("read.p99 5%", ["read.p99 5%"]),
        ("READ.tiny.p99.9 +-5 %", ["read.tiny.p99.9 5%"]),
        ("rate 2% and web.create.first_p50 3%", ["rate 2%", "web.create.first_p50 3%"]),
        ("mean 1% and errors 10% and mb_per_s 1%", ["mean 1%", "errors 10%", "mb_per_s 1%"]),
    ],
)
def test_precisions(text: str, plain: list[str]) -> None:
    found = parse_precisions(text)
    assert [each.text for each in found] == plain
    assert parse_precisions(" and ".join(plain)) == found
    assert all(0.009 < each.share < 0.11 for each in found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (each, "is not a precision above 0 and below 100 %, such as 'read.p99 5%' or 2%")
            for each in ("", "0", "100%", "%", "-1", "nan")
        ),
        ("2%%", "is not a precision"),
        ("p99 > 5ms", "is not a precision"),
        ("max 5%", "max has no interval that a run could wait for; rate, mb_per_s, errors, percentiles"),
        ("p100 5%", "p100 has no interval"),
        ("retries 5%", "retries has no interval"),
        ("read.pp 5%", "'pp' is not a figure"),
    ],
)
def test_what_is_no_precision(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_precisions(text)


@pytest.mark.parametrize("text", ["mine.tiny.p99 < 1s", "mine.tiny.first_p99.9 < 1s"])
def test_an_operation_that_a_scenario_defines_may_have_a_size_class_before_it_is_read(text: str) -> None:
    condition = parse_condition(text, grouped=True)
    assert parse_condition(condition.text, ["mine"], grouped=True).size_class == "tiny"
    assert find_unknown_subject(parse_condition(text, ["mine"], grouped=True), ["tiny"], (), ["mine"]) is None
    for groups, wrong in (((), "mine"), (("mine",), "tiny")):  # no such operation; a group of that name
        told = find_unknown_subject(condition, ["tiny"], groups)
        assert told is not None
        assert f"{wrong!r} is not an operation" in told
    assert [each.size_class for each in parse_precisions("mine.tiny.p99 5%")] == ["tiny"]


@pytest.mark.parametrize("text", ["a.b.c.p99 < 1s", "mine.tiny.retries < 1", "a.b.proxy.cpu < 1ms"])
def test_what_cannot_be_of_an_operation_and_a_size_class(text: str) -> None:
    with pytest.raises(ValueError, match="is not an operation"):
        parse_condition(text, grouped=True)
