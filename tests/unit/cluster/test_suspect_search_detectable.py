"""The least delay that would have been found, where only some kinds of requests were made."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import finding_sentences
from ssbench.cluster.findings import make_attribution
from ssbench.document.units import format_latency

SMALL = Shape(devices=4, nodes=3, requests=600, writes=0.0)


def least(shape: Shape) -> float | None:
    return make_attribution(simulate(1, Cause(), shape)).detectable


def test_reads_alone_tell_what_would_have_been_found() -> None:
    found = least(SMALL)
    assert found is not None
    assert 0.0015 < found < 0.03  # of requests of 30 ms


def test_more_requests_would_show_less() -> None:
    few, many = least(Shape(devices=4, nodes=3, requests=150, writes=0.0)), least(SMALL)
    assert few is not None
    assert many is not None
    assert many < few


WRITES = Shape(devices=12, nodes=4, requests=800, ring="fresh", replicas=6, data=4)


@pytest.mark.parametrize("shape", [WRITES, Shape(devices=4, nodes=3, requests=600)])
def test_what_would_have_been_found_at_the_end_of_writes_is_found(shape: Shape) -> None:
    healthy = make_attribution(simulate(1, Cause(), shape))
    least = healthy.detectable_at_end
    assert least is not None
    assert least < 0.03
    assert f"{format_latency(least)} (end of writes)" in finding_sentences.describe_attribution(healthy)[0]
    found = 0
    for seed in range(10):
        slow = make_attribution(
            simulate(100 + seed, Cause(devices=(1,), seconds=least, where="commit"), shape)
        )
        found += [each.name for each in slow.findings if each.kind == "slow"] == ["d1 on n1"]
    assert found >= 8


def test_of_few_writes_it_is_said_that_they_tell_nothing() -> None:
    reads = make_attribution(simulate(1, Cause(), SMALL))
    assert reads.detectable_at_end is None
    assert "end of writes" not in finding_sentences.describe_attribution(reads)[0]
    few = make_attribution(simulate(1, Cause(), replace(SMALL, writes=0.01)))
    assert few.detectable_at_end is None
    assert (
        " What is slow only at the end of writes would not be found, of so few."
        in finding_sentences.describe_attribution(few)[0]
    )


@pytest.mark.parametrize("requests", [10, 40])
def test_nothing_would_have_been_found_in_too_few(requests: int) -> None:
    assert least(Shape(devices=4, nodes=3, requests=requests, writes=0.0)) is None
