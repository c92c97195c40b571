"""When in a run a difference was, from what requests took beyond others."""

from __future__ import annotations

import numpy as np
import pytest

from ssbench.cluster.server_times import _find_slow_part, measure_course


def found(count: int, first: int, end: int, *, before: float = 0.0) -> tuple[int, int] | None:
    """Look at requests of which some, one after another, took a second more."""
    random = np.random.default_rng(1)
    beyond = random.uniform(0.0, 0.01, count) + before
    beyond[first:end] += 1.0
    return _find_slow_part(np.arange(count), beyond)


@pytest.mark.parametrize(("first", "end"), [(0, 200), (300, 500), (800, 1000)])
def test_a_stretch_of_slow_requests_is_found_wherever_it_is(first: int, end: int) -> None:
    near = found(1000, first, end)
    assert near is not None
    assert abs(near[0] - first) <= 10
    assert abs(near[1] - end) <= 10


def test_the_order_is_that_of_time() -> None:
    order = np.random.default_rng(2).permutation(1000)
    beyond = np.random.default_rng(1).uniform(0.0, 0.01, 1000)
    beyond[order[300:500]] += 1.0
    near = _find_slow_part(order, beyond)
    assert near is not None
    assert abs(near[0] - 300) <= 10
    assert abs(near[1] - 500) <= 10


def test_none_is_named_where_all_are_slow_or_too_few_are_or_none() -> None:
    assert found(1000, 0, 0) is None
    assert found(1000, 0, 1000) is None
    assert found(1000, 10, 995) is None
    assert found(1000, 500, 503) is None


def test_what_others_have_too_does_not_stand_out() -> None:
    assert found(1000, 300, 500, before=0.9) is None


def test_a_request_counts_in_the_part_of_the_run_in_which_it_ended() -> None:
    moments = 100.0 + np.linspace(0.0, 60.0, 600)
    beyond = np.where(moments - 100 < 15, 1.0, 0.0)
    found = measure_course(moments, beyond, (100.0, 160.0))
    assert found is not None
    assert sum(each.requests for each in found.slices) == 600
    for each in found.slices:
        assert each.requests == pytest.approx(600 / len(found.slices), abs=2)
        if each.ends <= 14.5 or each.begins >= 15.5:
            assert each.longer == (1.0 if each.ends <= 15 else 0.0)
    assert (found.begins, found.ends) == (pytest.approx(0.0, abs=1), pytest.approx(15.0, abs=1))
