"""What a scenario would do, in numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ssbench.scenario.forecast import BYTES_PER_SECOND, SECONDS_PER_REQUEST, forecast_scenario
from ssbench.scenario.model import Scenario, SizeClass

SCENARIO = Scenario(
    "s",
    (
        SizeClass("small", 100, 300, 30, {"create": 1, "read": 1}),
        SizeClass("big", 10_000, 10_000, 10, {"read": 3, "delete": 1}),
    ),
    user_count=4,
    operation_count=800,
    container_count=3,
    policy="gold",
)


def test_shares_are_those_of_classes_by_their_weights() -> None:
    found = forecast_scenario(SCENARIO)
    assert found.mix == pytest.approx({"create": 0.375, "read": 0.375 + 0.1875, "delete": 0.0625})
    assert (found.uploads, found.upload_bytes) == (40, 30 * 200 + 10 * 10_000)
    assert found.sent_bytes == pytest.approx(0.375 * 200)
    assert found.received_bytes == pytest.approx(0.375 * 200 + 0.1875 * 10_000)
    assert (found.first_container, found.last_container) == ("ssbench_000000_gold", "ssbench_000002_gold")


def test_the_time_is_that_of_requests_or_of_bytes() -> None:
    found = forecast_scenario(SCENARIO)
    assert found.upload_seconds == pytest.approx(40 * SECONDS_PER_REQUEST / 4)
    assert found.operation_seconds == pytest.approx(800 * SECONDS_PER_REQUEST / 4)
    large = replace(SCENARIO, size_classes=(SizeClass("l", 10**9, 10**9, 10, {"read": 1}),))
    assert forecast_scenario(large).operation_seconds == pytest.approx(800 * 1e9 / BYTES_PER_SECOND)


def test_a_rate_and_pauses_make_it_longer_and_a_given_time_is_the_time() -> None:
    assert forecast_scenario(replace(SCENARIO, rate=10.0)).operation_seconds == pytest.approx(80.0)
    assert forecast_scenario(replace(SCENARIO, think_time=1.0)).operation_seconds == pytest.approx(
        4.0 + 200.0
    )
    timed = replace(SCENARIO, operation_count=None, run_seconds=77.0)
    assert forecast_scenario(timed).operation_seconds == 77.0


def test_a_class_that_is_only_deleted_runs_out() -> None:
    (found,) = forecast_scenario(SCENARIO).runs_out
    assert (found.size_class, found.certain) == ("big", True)
    assert found.operations == pytest.approx(10 / 0.0625, rel=0.05)
