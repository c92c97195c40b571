"""Whose the objects of a run are: what their metadata says, and which runs may share them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from golden_words import GoldenWords

from ssbench.run.ownership import digest_of_shared_reads
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass, explain_replacement, make_owner, parse_owner_name
from ssbench.scenario.population import Population

TINY = SizeClass("tiny", 100, 200, 3, (0, 1, 0, 0))
SCENARIO = Scenario("Läufe / 1", (TINY,), 4, 10, container_count=2)


def test_the_owner_follows_the_scenario_and_its_sizes_only() -> None:
    owner = make_owner(SCENARIO, TINY)
    assert owner.isascii()
    assert parse_owner_name(owner) == "Läufe / 1"
    others = [replace(TINY, name="small"), replace(TINY, size_min=99), replace(TINY, size_max=201)]
    owners = {owner, *(make_owner(SCENARIO, each) for each in others)}
    owners.add(make_owner(replace(SCENARIO, name="Läufe / 2"), TINY))
    assert len(owners) == 5
    assert make_owner(replace(SCENARIO, user_count=9), replace(TINY, initial_files=9)) == owner


@pytest.mark.parametrize("name", ["x" * 1000, "ü" * 300, "a\r\nX-Evil: 1", "\ud800", ""])
def test_an_owner_fits_into_a_header_whatever_the_scenario_is_called(name: str) -> None:
    owner = make_owner(replace(SCENARIO, name=name), TINY)
    assert len(owner) <= 200
    assert owner.isascii()
    assert owner.isprintable()
    assert len(parse_owner_name(owner)) <= 200


@pytest.mark.parametrize("text", ["", "0123abcd", "0123abcd %ff%C3", "no digest at all"])
def test_metadata_of_any_kind_gives_a_name(text: str) -> None:
    assert isinstance(parse_owner_name(text), str)


@pytest.mark.parametrize(
    ("replaced", "of_others", "verified"),
    [
        (0, 0, False),
        (2, 0, True),
        (2, 0, False),
        (2, 2, False),
        (3, 2, False),
    ],
)
def test_why_objects_are_uploaded_again(
    replaced: int, of_others: int, verified: bool, golden_words: GoldenWords
) -> None:
    golden_words(explain_replacement(replaced, of_others, verified=verified))


def test_prepared_objects_have_one_size_each_and_not_a_range(golden_words: GoldenWords) -> None:
    assert explain_replacement(26, 0, exact=True) == "size not the one to prepare"
    golden_words(explain_replacement(3, 2, exact=True))


@pytest.mark.parametrize("profile", [(1, 1, 0, 0), (0, 1, 1, 0), (0, 1, 0, 1), {"read": 1, "delete": 1}])
def test_a_scenario_that_writes_shares_nothing(profile: tuple[int, int, int, int]) -> None:
    assert digest_of_shared_reads(SCENARIO)
    assert digest_of_shared_reads(SCENARIO) != digest_of_shared_reads(replace(SCENARIO, container_count=3))
    assert not digest_of_shared_reads(replace(SCENARIO, size_classes=(replace(TINY, crud_profile=profile),)))


def test_the_initial_objects_of_names_that_are_apart_go_with_the_run() -> None:
    state = Population(SCENARIO, Workload(SCENARIO, 1))
    assert list(state.leftovers()) == []
    state.owns_initial = True
    assert [number for _, _, number in state.leftovers()] == [1, 2, 3]
