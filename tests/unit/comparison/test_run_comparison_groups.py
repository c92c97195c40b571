"""Runs of which one side has a further group of users: only the groups of both are compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from queued_groups import compare_in_turn, play, wait_in_queue

from ssbench.comparison.change import HEADS
from ssbench.comparison.comparison_verdict import Word, judge_comparison
from ssbench.comparison.run_comparison import Comparison, compare_runs, find_heads
from ssbench.comparison.run_figures import FigureSample, RunFigures


@pytest.fixture(name="series", scope="module", params=[True, False], ids=["one queue", "a queue each"])
def _series(request: pytest.FixtureRequest) -> tuple[bool, list[Comparison]]:
    random = np.random.default_rng(53)
    return request.param, [compare_in_turn(random, one_queue=request.param) for _ in range(20)]


def test_a_group_that_costs_another_one_is_found_and_one_that_does_not_is_not(
    series: tuple[bool, list[Comparison]],
) -> None:
    hurts, found = series
    words = [judge_comparison(each).word for each in found]
    assert sum(word is (Word.SLOWER if hurts else Word.SAME) for word in words) >= 19


def test_the_sentence_says_by_how_much(series: tuple[bool, list[Comparison]]) -> None:
    hurts, found = series
    wanted = (
        "With `noisy`, `web`'s READ operations take " if hurts else "With `noisy`, no difference of `web`'s"
    )
    sentences = [judge_comparison(each).findings[0] for each in found]
    assert sum(each.startswith(wanted) for each in sentences) >= 19
    # The rate of web is what was asked for in all of them.
    assert sum("; no difference of its rate is shown (detectable: " in each for each in sentences) >= 18
    if hurts:  # the queue of M/D/1 by itself, at .3 and at .8 of what the store can do
        random = np.random.default_rng(1)
        alone, both = (
            np.percentile(wait_in_queue(np.sort(random.uniform(0, 2000, int(2000 * rate)))), 99)
            for rate in (150, 400)
        )
        changes = [each.find("read", None, "p99", "web") for each in found]
        known = [
            each for each in changes if each is not None and each.low is not None and each.high is not None
        ]
        assert len(known) == 20
        assert sum((each.low or 0) <= both / alone - 1 <= (each.high or 0) for each in known) >= 17


def test_what_differs_because_of_the_group_is_neither_compared_nor_warned_of() -> None:
    found = compare_in_turn(np.random.default_rng(1), one_queue=False, rounds=4)
    assert [row.operation for row in found.rows] == ["web.READ", "web.ALL"]
    assert found.groups_apart == ((), ("noisy",))
    assert found.warnings == ()
    # Where nothing is known of its operations the rate has nothing before it to refer to.
    of_all = replace(found, rows=found.rows[1:])
    assert judge_comparison(of_all).findings[0].startswith("With `noisy`, no difference of `web`'s rate is")
    assert {(row.operation, name) for row, name, _ in found.heads()} == {
        ("web.ALL", "p50"),
        ("web.ALL", "rate"),
    }


@pytest.mark.parametrize(
    ("before", "after", "begin"),
    [
        (["web"], ["web", "noisy"], "With `noisy`, "),
        (["web", "noisy"], ["web"], "Without `noisy`, "),
        (["web", "old"], ["web", "noisy"], "With `noisy` in place of `old`, "),
    ],
)
def test_the_sentence_says_which_side_has_the_group(before: list[str], after: list[str], begin: str) -> None:
    def make(groups: list[str], turn: int) -> RunFigures:
        value = {"p50": FigureSample(0.01 + turn * 1e-5), "rate": FigureSample(10.0)}
        return RunFigures("r", {(f"{name}.READ", None): value for name in groups}, started=float(turn))

    runs = [
        [make(groups, 2 * number + place) for number in range(4)]
        for place, groups in enumerate([before, after])
    ]
    assert judge_comparison(compare_runs(*runs)).findings[0].startswith(begin)


def test_runs_with_the_same_groups_or_with_none_in_common_are_compared_as_a_whole() -> None:
    random = np.random.default_rng(1)
    both, web, noisy = (
        [play(random, groups, one_queue=True, turn=turn) for turn in range(4)]
        for groups in (["web", "noisy"], ["web"], ["noisy"])
    )
    for sides in [(both, both), (web, noisy), (web, web)]:
        found = compare_runs(*sides)
        assert found.groups_apart == ((), ())
        assert found.has(None, None)
        assert not any("With" in each for each in judge_comparison(found).findings)


def test_a_verdict_stands_on_each_group_only_where_all_users_are_not_compared() -> None:
    assert find_heads([("web.ALL", None), ("ALL", None)]) == HEADS
    assert find_heads([("READ", None)]) == HEADS
    assert find_heads([("web.ALL", None), ("api.ALL", None), ("api.READ", None)]) == tuple(
        ((f"{group}.ALL", None), figure) for figure in ("errors", "p50", "rate") for group in ("web", "api")
    )
