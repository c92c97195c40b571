"""What is said of findings, from facts that are made here."""

from __future__ import annotations

import pytest

from ssbench.cluster.attribution_records import LogFinding
from ssbench.cluster.finding_sentences import _describe_certainty, _describe_longer
from ssbench.cluster.rank_tests import PeerDifference
from ssbench.cluster.server_times import DifferenceCourse, Slice


def slow(median: float, mean: float, interval: tuple[float, float] | None = None) -> LogFinding:
    course = DifferenceCourse([Slice(0.0, 30.0, 9, median), Slice(30.0, 60.0, 9, median)], None, None)
    return LogFinding(
        "slow",
        "device",
        "d1 on n1",
        difference=PeerDifference(median, mean, 1.0),
        interval=interval,
        request=0.02,
        course=course,
    )


@pytest.mark.parametrize(("mean", "by_mean"), [(0.006, False), (0.008, False), (0.009, True)])
def test_what_is_twice_as_long_on_average_as_in_the_middle_is_said_of_the_mean(
    mean: float, by_mean: bool
) -> None:
    finding = slow(0.004, mean, (0.003, 0.005))
    if by_mean:
        assert _describe_longer(finding) == "9.00 ms longer (mean: not all of them)"
        assert (
            _describe_certainty(finding)
            == "In no part of the run more than in others (60 s); +45.0 % of a request."
        )
    else:
        assert _describe_longer(finding) == "4.00 ms longer"
        assert _describe_certainty(finding) == (
            "Throughout the run (60 s); +20.0 % of a request; 95%: 3.00 ms to 5.00 ms."
        )


def test_without_an_interval_none_is_said() -> None:
    nan = float("nan")
    for finding in (slow(0.004, 0.004), slow(0.004, 0.004, (nan, nan))):
        assert _describe_certainty(finding) == "Throughout the run (60 s); +20.0 % of a request."
