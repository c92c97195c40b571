"""The least delay that would have been found, where only some kinds of requests were made."""

from __future__ import annotations

import pytest
from simulated_cluster import Cause, Shape, simulate

from ssbench.attribution.findings import attribute

SMALL = Shape(devices=4, nodes=3, requests=600, writes=0.0)


def least(shape: Shape) -> float | None:
    return attribute(simulate(1, Cause(), shape)).detectable


def test_reads_alone_tell_what_would_have_been_found() -> None:
    found = least(SMALL)
    assert found is not None
    assert 0.0015 < found < 0.03  # of requests of 30 ms


def test_more_requests_would_show_less() -> None:
    few, many = least(Shape(devices=4, nodes=3, requests=150, writes=0.0)), least(SMALL)
    assert few is not None
    assert many is not None
    assert many < few


@pytest.mark.parametrize("requests", [10, 40])
def test_nothing_would_have_been_found_in_too_few(requests: int) -> None:
    assert least(Shape(devices=4, nodes=3, requests=requests, writes=0.0)) is None
