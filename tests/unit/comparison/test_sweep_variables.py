"""The values of a sweep: how they are written, and the scenario of each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from capacity_runs import SCENARIO
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.comparison.sweep import make_step_scenario
from ssbench.comparison.sweep_variables import Sweep, Variable, parse_sweep
from ssbench.run.group_run import halve_scenario
from ssbench.scenario.consistency import override
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, Stage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("users=4,8,16", Sweep(Variable.USERS, (4, 8, 16))),
        ("users=4..512", Sweep(Variable.USERS, (4, 8, 16, 32, 64, 128, 256, 512))),
        ("users=3..20", Sweep(Variable.USERS, (3, 6, 12, 20))),
        ("rate=500, 100", Sweep(Variable.RATE, (100, 500))),
        ("size=4K..16KiB", Sweep(Variable.SIZE, (4096, 8192, 16384))),
        ("objects=1e3, 1.5e3,2000", Sweep(Variable.OBJECTS, (1000, 1500, 2000))),
        ("objects=1000..8000/4", Sweep(Variable.OBJECTS, (1000, 2000, 4000, 8000))),
        ("workers=1..1", Sweep(Variable.WORKERS, (1,))),
    ],
)
def test_sweeps(text: str, expected: Sweep) -> None:
    assert parse_sweep(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user=4", "'user' is none of users, rate, size, objects, workers; did you mean users?"),
        ("users", "'users' is not a sweep, such as users=4,8,16"),
        ("users=", "is not a sweep"),
        ("users=0", "'0' is not a number from 1 to 10,000,000"),
        ("users=8..4", "4 is less than 8"),
        ("users=4..", "'' is not a number"),
        *(
            (f"users=1..9/{each}", "expected 2 to 64 steps from a lower")
            for each in ("", "1", "65", "x", "-3")
        ),
        ("users=9..9/4", "expected 2 to 64 steps"),
        ("users=1..5/12", "12 steps have 5 different values: write users=1,2,3,4,5"),
        ("users=+4", "'+4' is not a number"),
        ("size=4X", "'4X' is not a number"),
        *(
            (f"objects={each}", f"{each!r} is not a number from 1 to 1,000,000,000")
            for each in ("1.5", "1e999999999", "nan", "inf", "-1", "2e9")
        ),
        ("users=" + ",".join(map(str, range(1, 99))), "98 steps are more than 64"),
    ],
)
def test_wrong_sweeps(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"users|size|objects") as raised:
        parse_sweep(text)
    assert message in str(raised.value)


@given(st.text(max_size=30))
def test_any_text_is_a_sweep_or_wrong(text: str) -> None:
    for each in (text, f"users={text}", f"size={text}", f"objects={text}"):
        try:
            values = parse_sweep(each).values
        except ValueError:
            continue
        assert values == tuple(sorted(set(values)))


def test_scenarios_of_steps() -> None:
    assert make_step_scenario(SCENARIO, Variable.USERS, 32).user_count == 32
    longer = make_step_scenario(
        replace(SCENARIO, run_seconds=None, operation_count=5), Variable.RATE, 50, 7.0
    )
    assert (longer.rate, longer.run_seconds, longer.operation_count) == (50.0, 7.0, None)
    (size,) = make_step_scenario(SCENARIO, Variable.SIZE, 4096).size_classes
    assert (size.size_min, size.size_max) == (4096, 4096)
    assert make_step_scenario(SCENARIO, Variable.WORKERS, 3) == SCENARIO
    half = replace(SCENARIO.size_classes[0], initial_files=10)
    mixed = replace(SCENARIO, size_classes=(half, replace(half, name="b", initial_files=20)))
    classes = make_step_scenario(mixed, Variable.OBJECTS, 1000).size_classes
    assert [each.initial_files for each in classes] == [333, 667]
    empty = replace(SCENARIO, size_classes=(replace(half, initial_files=0),))
    for scenario, objects in ((mixed, 1), (replace(mixed, rate=5.0), 30), (empty, 30)):
        with pytest.raises(UsageError, match="--sweep objects: "):
            make_step_scenario(scenario, Variable.OBJECTS, objects)
    with pytest.raises(UsageError, match="stages"):
        make_step_scenario(replace(SCENARIO, stages=(Stage(1.0),)), Variable.USERS, 3)


def places_of_steps(scenario: Scenario, *counts: int) -> list[list[list[int]]]:
    """Return the containers of the initial objects of each size class, with each number of objects."""
    steps = [make_step_scenario(scenario, Variable.OBJECTS, count) for count in counts]
    classes = range(len(scenario.size_classes))
    return [[Workload(step, 1).initial_containers(place).tolist() for place in classes] for step in steps]


def test_the_containers_of_a_step_follow_from_its_objects_which_stay_where_they_are() -> None:
    """They had the number of containers of the file: all objects of a sweep were in one."""
    scenario = replace(
        SCENARIO,
        size_classes=(replace(SCENARIO.size_classes[0], initial_files=10),),
        objects_per_container=4,
        container_count=3,
    )
    counts = (3, 4, 5, 8, 21)
    steps = [make_step_scenario(scenario, Variable.OBJECTS, count) for count in counts]
    assert [step.container_count for step in steps] == [1, 1, 2, 2, 6]
    found = [places for (places,) in places_of_steps(scenario, *counts)]
    assert found[-1] == [place // 4 for place in range(21)]
    assert all(places == found[-1][: len(places)] for places in found)
    # -c says how many there are.
    own = make_step_scenario(override(scenario, container_count=2), Variable.OBJECTS, 21)
    assert own.container_count == 2
    half = halve_scenario(make_step_scenario(scenario, Variable.OBJECTS, 21), 0, None)
    assert max(Workload(half, 1).initial_containers(0)) < half.container_count


def test_objects_of_several_classes_stay_in_their_containers_too() -> None:
    one = replace(SCENARIO.size_classes[0], initial_files=10)
    mixed = replace(SCENARIO, size_classes=(one, replace(one, name="b", initial_files=20)), container_count=4)
    (few, of_b), (more, more_of_b) = places_of_steps(mixed, 33, 90)
    assert more[: len(few)] == few
    assert more_of_b[: len(of_b)] == of_b
    with pytest.raises(UsageError, match="objects_per_container needs one size class"):
        make_step_scenario(replace(mixed, objects_per_container=5), Variable.OBJECTS, 90)
