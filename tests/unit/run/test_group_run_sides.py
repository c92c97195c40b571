"""Runs with sides: their load, their objects, their places and sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from golden_words import GoldenWords
from sided_scenarios import POLICIES, scenario

from ssbench.base.errors import UsageError
from ssbench.run.bench_options import BenchOptions, RunOptions, RunSide, recorded_options
from ssbench.run.group_run import (
    ContainerSet,
    halve_scenario,
    make_group_runs,
    make_run_parameters,
    make_users_even,
    merge_container_sets,
    refuse_sides,
)
from ssbench.scenario.draws import Arrivals
from ssbench.scenario.model import SizeClass, Stage, UserGroup, make_owner
from ssbench.store.credentials import Session

URLS = RunSide("x", "http://a"), RunSide("y", "http://b")
ACCOUNTS = RunSide("x"), RunSide("y")


def test_each_side_has_half_of_the_load():
    stages = Stage(5, (4, 8)), Stage(5, None, (10.0, 20.0))
    whole = make_users_even(scenario(user_count=7, rate=5.0, stages=stages))
    assert (whole.user_count, whole.stages) == (8, stages)
    assert make_users_even(scenario(stages=(Stage(5, (1, 3)),))).stages == (Stage(5, (2, 4)),)
    assert make_users_even(scenario()) == scenario()
    halves = [halve_scenario(whole, side, policy) for side, policy in ((0, None), (1, "q"))]
    assert [each.operation_count for each in halves] == [5, 4]
    assert [each.policy for each in halves] == [None, "q"]
    for each in halves:
        assert (each.user_count, each.rate) == (4, 2.5)
        assert each.stages == (Stage(5, (2, 4)), Stage(5, None, (5.0, 10.0)))
        assert [(found.initial_files, found.share) for found in each.size_classes] == [(3, 5), (1, 1)]
        # so that the initial objects of either are not taken for those of another scenario
        assert [make_owner(each, found) for found in each.size_classes] == [
            make_owner(whole, found) for found in whole.size_classes
        ]


def test_what_is_not_possible_is_refused_at_once(golden_words: GoldenWords):
    def drawn(**weights):
        return replace(scenario(), size_classes=(SizeClass("small", 1, 1, 5, weights),))

    refuse_sides(drawn(copy=1))
    with pytest.raises(UsageError, match="tempurl: not possible in a run of two sides"):
        refuse_sides(drawn(tempurl=1))
    with golden_words.raises(UsageError):
        refuse_sides(replace(scenario(), groups=(UserGroup("web", scenario().size_classes, 1),)))


@pytest.mark.parametrize("kind", ["even", "poisson"])
def test_operations_of_both_sides_are_due_by_turns(kind):
    plan = Stage(10, None, (20.0, 60.0)), Stage(5, None, (60.0, 60.0))
    loads = [part.load for part in make_group_runs(scenario(stages=plan, arrivals=kind), 3, None, POLICIES)]
    due = [load._arrivals.take(10_000) for load in loads]
    whole = Arrivals(plan, kind, 3).take(10_000)
    if kind == "even":
        assert sorted(due[0] + due[1]) == pytest.approx(whole)
        assert due[0] == pytest.approx(whole[::2])
    else:
        assert not {*due[0]} & {*due[1]}
        assert len(due[0]) + len(due[1]) == pytest.approx(len(whole), abs=120)


def test_both_sides_draw_the_same_operations_on_objects_of_other_names():
    first, second = make_group_runs(scenario(), 6, None, POLICIES)
    assert [first.state.next_jobs(5, 0.0, None)] == [second.state.next_jobs(5, 0.0, None)]
    assert (first.names, second.names) == (["a-small", "a-big"], ["b-small", "b-big"])
    # What is particular to some names is on the other side with the next seed.
    first, second = make_group_runs(scenario(), 7, None, POLICIES)
    assert (first.names[0], second.names[0]) == ("b-small", "a-small")
    assert (first.group, second.group) == (0, 1)


def test_each_side_has_a_place():
    def places(sides):
        return [part.places[0] for part in make_group_runs(scenario(policy="tin"), 1, None, sides)]

    one = ContainerSet("ssbench", "tin", 100)
    assert places(()) == [one]
    assert places(POLICIES) == [replace(one, policy="p"), replace(one, policy="q")]
    assert places(URLS) == [replace(one, storage_url="http://a"), replace(one, storage_url="http://b")]
    assert places(ACCOUNTS) == [one, replace(one, account=1)]
    assert merge_container_sets([one, replace(one, container_count=7), replace(one, account=1)]) == [
        one,
        replace(one, account=1),
    ]


class Tokens:
    sessions = (Session(("http://a/v1/one",), "t"), Session(("http://a/v1/two",), "u"))

    def renewing(self, account):
        def renew():
            self.sessions = tuple(
                replace(each, token="new") if number == account else each
                for number, each in enumerate(self.sessions)
            )

        return renew


def test_a_place_has_the_session_of_its_account():
    tokens = Tokens()
    other, url = (
        ContainerSet("ssbench", None, 1, account=1),
        ContainerSet("ssbench", None, 1, storage_url="http://b"),
    )
    assert other.session(tokens.sessions) == Session(("http://a/v1/two",), "u")
    assert other.renewing(tokens)() == Session(("http://a/v1/two",), "new")
    assert url.session(tokens.sessions) == Session(("http://b",), "t")
    assert url.renewing(tokens)() == Session(("http://b",), "new")
    tokens.renewing = lambda _account: None
    assert url.renewing(tokens) is None


def test_the_parameters_of_a_session():
    session = Session(("http://a", "http://b"), "t")
    found = make_run_parameters(1, None, scenario(), RunOptions(), [session], 1)
    assert (found.storage_urls, found.token, found.group) == (["http://a", "http://b"], "t", 1)
    assert make_run_parameters(1, None, scenario(), RunOptions(noop=True), []).token is None
    assert recorded_options(BenchOptions(workers=1), RunOptions(sides=ACCOUNTS), None)["sides"] == [
        "x=account",
        "y=account",
    ]
