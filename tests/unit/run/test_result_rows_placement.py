"""Which stage a result belongs to."""

from __future__ import annotations

import math

from result_rows import block

from ssbench.results.block import ResultBlock, ResultRow
from ssbench.results.result_fields import NOT_MEASURED, ResultMark
from ssbench.run.result_rows import StagePlacement
from ssbench.scenario.model import Stage

START = 1e9


def results(
    sent: list[float], due: dict[int, float] | None = None, marks: dict[int, float] | None = None
) -> ResultBlock:
    """Successes of half a second that were sent at these moments after the start."""
    rows: list[ResultRow] = [
        (
            1,
            0,
            1,
            0,
            1,
            1,
            0.1,
            NOT_MEASURED if math.isnan(each) else 0.5,
            START + (3.2 if math.isnan(each) else each + 0.5),
            200,
            0,
        )
        for each in sent
    ]
    rare: dict[str, dict[int, float]] = {}
    if due is not None:
        rare["due"] = {row: START + each for row, each in due.items()}
    if marks is not None:
        rare["marks"] = marks
    return block(rows, ["tx"] * len(rows), rare=rare)


PLAN = (Stage(1, (1, 1)), Stage(2, (1, 1)), Stage(3, (1, 1)))


def test_a_result_belongs_to_the_stage_in_which_it_was_sent() -> None:
    placed = StagePlacement(PLAN, START).place(results([-0.1, 0, 0.99, 1.0, 2.9, 3.0, 5.9, 7.0]))
    assert placed.stage.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert "marks" not in placed.given
    assert len(placed) == 8


def test_or_in_which_it_was_due() -> None:
    placed = StagePlacement(PLAN, START).place(
        results([1.5, 3.1, 3.2, 3.2], due={0: 0.9, 1: 2.99, 2: 2.9998})
    )
    assert placed.stage.tolist() == [0, 1, 2, 2]  # the clocks are not known any better


def test_one_that_was_lost_belongs_to_the_stage_in_which_that_was_noticed() -> None:
    assert StagePlacement(PLAN, START).place(results([math.nan])).stage.tolist() == [2]


def test_the_warm_up_is_marked_and_other_marks_stay() -> None:
    placement = StagePlacement(PLAN[:1], START, warmup=0.5)
    assert placement.needed
    placed = placement.place(results([0.0, 0.6, 0.7, 0.49], due={1: 0.4}, marks={0: 4, 2: 4}))
    assert placed.marks.tolist() == [4 | ResultMark.WARM_UP, ResultMark.WARM_UP, 4, ResultMark.WARM_UP]
    assert "stage" not in placed.given


def test_nothing_is_to_be_done_in_a_run_without_stages_and_warm_up() -> None:
    assert not StagePlacement(PLAN[:1], START).needed
    assert not StagePlacement((), START).needed
    assert StagePlacement(PLAN, START).needed
