"""From the results of a run to its numbers: the warm-up that is found, what is kept apart."""

from __future__ import annotations

import numpy as np
from counted import SCENARIO, Memory, row
from result_rows import block

from ssbench.results.block import ResultBlock
from ssbench.results.run_description import RunDescription
from ssbench.statistics.summary import summarize


def seconds(rates: list[int], seed: int = 1) -> list[ResultBlock]:
    """Return a block for each second with so many operations, which are slower where there are fewer."""
    random, made = np.random.default_rng(seed), []
    for second, rate in enumerate(rates):
        ended = np.sort(random.uniform(0, 1, rate + int(random.integers(-3, 4))))
        rows = [row(last=1.0 / rate, completed=1000.0 + second + at, worker=1 + second % 2) for at in ended]
        made.append(block(rows))
    return made


def automatic(rates: list[int]) -> Memory:
    return Memory(*seconds(rates), run=RunDescription(SCENARIO, options={"warmup": "auto"}))


def test_a_slow_beginning_is_left_out_where_that_is_asked_for() -> None:
    rates = [10] * 10 + [40] * 110
    numbers = summarize(automatic(rates))
    assert 80 <= numbers.warmed_up <= 140
    assert numbers.total.last_byte.maximum == 1 / 40
    everything = summarize(Memory(*seconds(rates)))
    assert everything.warmed_up == 0
    assert everything.total.count == numbers.total.count + numbers.warmed_up
    assert everything.total.last_byte.maximum == 1 / 10


def test_a_warning_says_so_where_none_was_found() -> None:
    for rates in ([40] * 120, [10] * 10 + [40] * 20):  # steady from the beginning; too short
        numbers = summarize(automatic(rates))
        assert numbers.warmed_up == 0
        assert any("--warmup auto excluded nothing" in each for each in numbers.warnings)


def test_results_are_kept_apart_by_what_is_asked_for() -> None:
    numbers = summarize(Memory(*seconds([20] * 10)), ("worker",))
    found = numbers.groups.by("worker")
    assert set(found) == {(1,), (2,)}
    assert sum(each.count for each in found.values()) == numbers.total.count
    assert "worker" not in summarize(Memory(*seconds([20] * 10))).groups.keys


def test_curves_and_the_slowest_are_there_only_where_they_are_asked_for() -> None:
    run = Memory(*seconds([20] * 10))
    plain, more = summarize(run), summarize(run, over_time=True)
    assert (plain.over_time, plain.slowest) == (None, ())
    assert more.over_time is not None
    assert int(more.over_time.operations[None].count.sum()) == more.total.count
    assert more.slowest[0].latency == more.total.last_byte.maximum
