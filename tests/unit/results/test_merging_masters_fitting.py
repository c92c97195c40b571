"""Whether the runs of several masters make one: what is refused, and what is only remarkable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from golden_words import GoldenWords
from said import SAME_TIME_ONLY

from ssbench.base.errors import UsageError
from ssbench.results.merging_masters import MasterRun, check_masters
from ssbench.results.run_description import (
    PART_OPTION,
    STORE_CLOCK_OPTION,
    RunDescription,
    RunSummary,
    StageFacts,
)
from ssbench.scenario.model import Scenario, SizeClass

SCENARIO = Scenario(
    name="one", size_classes=(SizeClass("tiny", 1, 1, 1, (1.0, 0.0, 0.0, 0.0)),), user_count=2, run_seconds=9
)


def master(number: int, **changes: Any) -> MasterRun:
    """A run of ten seconds, of which the store's clock is from 0 to 0.1 s ahead of its host's."""
    options = {STORE_CLOCK_OPTION: [0.0, 0.1], **changes.pop("options", {})}
    begins, ends = changes.pop("window", (100.0, 110.0))
    facts = {"host": f"h{number}", "run_id": number, "started": begins, "version": "1.0.0"} | changes
    run = RunDescription(SCENARIO, options=options, **facts)
    return MasterRun(Path(f"{number}.stat"), run, RunSummary(ends + 1.0, sent_until=ends), 5)


def both(one: dict[str, Any], other: dict[str, Any]) -> list[MasterRun]:
    return [master(1, **one), master(2, **other)]


def test_runs_that_fit_have_no_warning() -> None:
    assert check_masters(both({}, {})) == []
    assert check_masters([master(1)]) == []


@pytest.mark.parametrize(
    "masters",
    [
        both({"run_id": 7}, {"run_id": 7}),
        both({}, {"sides": ("old", "new")}),
        both({}, {"side_policies": ("gold", "silver")}),
        both({}, {"accounts": ("a", "b")}),
        both({"options": {"retries": 5}}, {}),
        both({"options": {PART_OPTION: "1/2"}}, {"options": {PART_OPTION: "1/2"}}),
        both({"options": {PART_OPTION: "1/2"}}, {}),
        both({"options": {PART_OPTION: "1/2"}}, {"options": {PART_OPTION: "2/3"}}),
        both({"options": {PART_OPTION: "1/x"}}, {"options": {PART_OPTION: "2/3"}}),
        both({"options": {STORE_CLOCK_OPTION: [0.61, 0.7]}}, {}),
        both({}, {"options": {STORE_CLOCK_OPTION: [-2.0, -1.0]}}),
        both({}, {"window": (106.0, 116.0)}),
        both({}, {"window": (111.0, 121.0)}),
    ],
)
def test_runs_that_do_not_fit(masters: Sequence[MasterRun], golden_words: GoldenWords) -> None:
    with golden_words.raises(UsageError):
        check_masters(masters)


def test_another_scenario_is_named_by_what_differs(golden_words: GoldenWords) -> None:
    one, other = both({}, {})
    run = replace(other.run, scenario=replace(SCENARIO, policy="gold"))
    with golden_words.raises(UsageError):
        check_masters([one, replace(other, run=run)])


@pytest.mark.parametrize(
    ("masters", "warnings"),
    [
        (both({"version": "1.0.1"}, {}), ["different versions of ssbench: 1.0.0, 1.0.1"]),
        (
            both({"options": {PART_OPTION: "1/4"}}, {"options": {PART_OPTION: "3/4"}}),
            ["2/4, 4/4 are missing"],
        ),
        (both({"options": {PART_OPTION: "1/3"}}, {"options": {PART_OPTION: "3/3"}}), ["2/3 is missing"]),
        (both({"options": {PART_OPTION: "1/2"}}, {"options": {PART_OPTION: "2/2"}}), []),
        (both({"options": {"label": "a"}}, {"options": {"label": "b"}}), []),
        (both({"options": {STORE_CLOCK_OPTION: [0.6, 0.7]}}, {}), []),
        (both({"options": {STORE_CLOCK_OPTION: None}}, {}), ["is not known: h1 and h2 (--part 1/2@TIME"]),
        (both({"options": {STORE_CLOCK_OPTION: ["x", 1]}}, {}), ["is not known: h1 and h2 (--part 1/2@TIME"]),
        (both({"options": {STORE_CLOCK_OPTION: None}, "host": "h"}, {"host": "h"}), []),
        (both({}, {"window": (101.0, 110.0)}), [f"{SAME_TIME_ONLY} 9"]),
        (both({}, {"window": (100.4, 110.0)}), []),
    ],
)
def test_what_is_remarkable(masters: Sequence[MasterRun], warnings: list[str]) -> None:
    found = check_masters(masters)
    assert len(found) == len(warnings)
    assert all(warning in each for warning, each in zip(warnings, found, strict=True))


def test_windows_of_less_than_a_second_are_not_zero() -> None:
    with pytest.raises(UsageError, match=r"for only 0\.002 of 0\.040 s \("):
        check_masters(both({"window": (100.0, 100.02)}, {"window": (100.018, 100.04)}))


def test_clocks_that_are_not_known_are_counted_by_pairs() -> None:
    unknown = {"options": {STORE_CLOCK_OPTION: None}}
    (three,) = check_masters([master(1, **unknown), master(2), master(3)])
    assert "h1 and h2, and 1 more pair (" in three
    (four,) = check_masters([master(number, **unknown) for number in (1, 2, 3)])
    assert "h1 and h2, and 2 more pairs (" in four


def test_the_window_begins_with_the_first_stage() -> None:
    one = master(1)
    stages = (StageFacts(begins=103.0, ends=105.0), StageFacts(begins=105.0, ends=109.0))
    assert one.window == (100.0, 110.0)
    assert replace(one, summary=replace(one.summary, stages=stages)).window == (103.0, 110.0)
    assert replace(one, summary=RunSummary(111.0)).window == (100.0, 111.0)
