"""A limit that is set in the local Swift is named where a run met it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from msgspec import structs
from planted_load import play

from ssbench.results.run_description import SIDE_SWIFTS_OPTION, SWIFT_SETTINGS_OPTION
from ssbench.scenario.model import Stage
from ssbench.scenario.operations import CREATE
from ssbench.statistics.run_statistics import RunPart, RunStatistics
from ssbench.statistics.run_verdict import Kind, Outcome, verdict_of
from ssbench.statistics.set_limits import describe_met_limits


def written(rate: float, containers: int) -> RunStatistics:
    """Return a run of ten users whose writes take so long that there are ``rate`` of them a second."""
    return as_writes(play(lambda sent: sent + 10 / rate, [Stage(12, (10, 10))]), containers)


def as_writes(numbers: RunStatistics, containers: int) -> RunStatistics:
    """Return a run as if its operations had been uploads."""
    scenario = replace(numbers.run.scenario, container_count=containers)
    sections = [
        structs.replace(each, operation=CREATE) if each.operation else each for each in numbers.sections
    ]
    return replace(numbers, run=replace(numbers.run, scenario=scenario), sections=sections, warnings=())


def with_options(numbers: RunStatistics, **options: object) -> RunStatistics:
    return replace(numbers, run=replace(numbers.run, options={**numbers.run.options, **options}))


@pytest.mark.parametrize(
    ("settings", "containers", "rate", "met"),
    [
        ({"ratelimit.container_ratelimit_0": "5"}, 1, 4.8, "5.00 writes a second (container_ratelimit_0)"),
        ({"ratelimit.container_ratelimit_0": "5"}, 4, 19.3, "and after 5 s 20.0/s went to 4 containers"),
        ({"ratelimit.container_ratelimit_0": "5"}, 4, 10.0, None),  # the servers, or the users, are slower
        ({"ratelimit.container_ratelimit_0": "5"}, 1, 10.0, None),  # it does not hold
        (
            {"ratelimit.container_ratelimit_0": "9", "ratelimit.container_ratelimit_100": "3"},
            1,
            5.0,
            "5.34 to 9.00",  # with the 61 objects that there are at the end
        ),
        # So many objects as these limits are for there are not.
        ({"ratelimit.container_ratelimit_1000": "5"}, 1, 5.0, None),
        ({"ratelimit.container_ratelimit_0": "9", "ratelimit.container_ratelimit_100000": "3"}, 1, 5.0, None),
        ({"ratelimit.account_ratelimit": "5"}, 1, 5.0, None),
        ({"ratelimit.container_ratelimit_0": "none"}, 1, 5.0, None),
        ({"filter ratelimit": "added"}, 1, 5.0, None),
    ],
)
def test_it_is_named_where_writes_are_as_fast_as_it_allows(
    settings: dict[str, str], containers: int, rate: float, met: str | None
) -> None:
    numbers = with_options(written(rate, containers), **{SWIFT_SETTINGS_OPTION: settings})
    verdict = verdict_of(numbers)
    found = [each.text for each in verdict.reasons if each.kind is Kind.LIMIT]
    assert len(found) == (met is not None)
    if met is not None:
        assert met in found[0]
        assert verdict.outcome is Outcome.WARNED


def one_by_one(*rates: float) -> Callable[[float], float]:
    """Return a store that takes so many writes a second, one after the other, by turns of seconds."""
    free = 0.0

    def answer(sent: float) -> float:
        nonlocal free
        free = max(sent, free)
        free += 1 / rates[int(free) % len(rates)]
        return free

    return answer


@pytest.mark.parametrize(("rates", "found"), [((5,), "was met"), ((8, 6, 3, 3), "was perhaps met")])
def test_a_store_that_is_about_as_fast_may_not_have_met_it(rates: Sequence[float], found: str) -> None:
    numbers = play(one_by_one(*rates), [Stage(40, (10, 10))])
    settings = {"ratelimit.container_ratelimit_0": "5"}
    [text] = describe_met_limits(with_options(as_writes(numbers, 1), **{SWIFT_SETTINGS_OPTION: settings}))
    assert text.startswith(f"the limit that is set {found}: ")


def test_each_side_has_a_limit_of_its_own() -> None:
    one, two = written(5.0, 1), written(30.0, 1)
    run = with_options(one, **{SIDE_SWIFTS_OPTION: [{"ratelimit.container_ratelimit_0": "5"}, {"a": "b"}]})
    sides = tuple(RunPart(name, (), side) for name, side in (("old", one), ("new", two)))
    run = replace(run, run=replace(run.run, sides=("old", "new")), sides=sides)
    [text] = describe_met_limits(run)
    assert "ratelimit of side old lets each container take 5.00 writes" in text
    assert [*describe_met_limits(replace(one, run=replace(one.run, options={})))] == []


@pytest.mark.parametrize(("rate", "is_met"), [(4.5, False), (9.0, True)])
def test_a_rate_that_was_delivered_met_none(rate: float, is_met: bool) -> None:
    numbers = play(one_by_one(5), [Stage(12, rate=(rate, rate))])
    limited = as_writes(numbers, 1)
    found = with_options(limited, **{SWIFT_SETTINGS_OPTION: {"ratelimit.container_ratelimit_0": "5"}})
    assert len([*describe_met_limits(found)]) == is_met
