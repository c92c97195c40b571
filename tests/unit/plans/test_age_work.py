"""How a store ages: which runs are made, in which order, and what is said of them."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.comparison.sweep_variables import parse_sweep
from ssbench.plans.age_work import make_age_work
from ssbench.run.bench_options import ObjectFill, RunOptions
from ssbench.scenario.ad_hoc import parse_phases

NUMBERS = (100, 200, 400, 800, 1600, 3200)


def make(
    operations: str = "update,read,list", *, objects: str = "100..3200", noop: bool = False, **more: object
) -> list[tuple[str, int, ObjectFill | None]]:
    """The labels of all runs, with their numbers of objects."""
    work = make_age_work(
        parse_sweep(f"objects={objects}"),
        RunOptions(noop=noop),
        size="4kB",
        operations=parse_phases(operations),
        values={"run_seconds": 60.0, "user_count": 8},
        **more,
    )
    found = []
    while (trial := work.rule.next([])) is not None:
        (one,) = trial.cell.scenario.size_classes
        found.append((trial.label, one.initial_files, trial.cell.fill))
        assert trial.cell.scenario.container_base == "ssbench_age_4kB"
        assert trial.cell.scenario.container_count == 1
    return found


def test_all_operations_are_measured_before_there_are_more_objects() -> None:
    assert make(fill_rate=500.0) == [
        (f"{operation}.objects-{count}", count, ObjectFill(500.0))
        for count in NUMBERS
        for operation in ("update", "read", "list")
    ]


def test_containers_may_follow_from_the_number_of_objects() -> None:
    """It was refused, because the one container was as given as the user's."""
    work = make_age_work(
        parse_sweep("objects=100..3200"),
        RunOptions(),
        size="4kB",
        operations=parse_phases("update"),
        values={"run_seconds": 60.0},
        changes=[("objects_per_container", 250)],
    )
    cells = work.rule.cells
    assert [each.scenario.container_count for each in cells] == [1, 13]


def test_nothing_is_filled_where_nothing_is_sent() -> None:
    assert {fill for _, _, fill in make(noop=True)} == {None}


@pytest.mark.parametrize("operation", ["create", "delete", "copy"])
def test_an_operation_that_would_leave_another_number_of_objects_is_refused(
    operation: str, golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        make(f"read,{operation}")


def test_too_few_numbers_to_tell_from_how_many_on_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^--objects 100,200: 6 numbers or more tell"):
        make(objects="100,200")
