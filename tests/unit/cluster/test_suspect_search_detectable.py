"""The least delay that would have been found, where only some kinds of requests were made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from golden_words import GoldenWords
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import finding_sentences, suspect_search
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.rank_tests import Units, make_pairs, upper_tail
from ssbench.cluster.suspect_search import (
    ALPHA,
    DELAY_STEPS,
    CandidateLevel,
    Measure,
    SearchStage,
    find_detectable_delay,
)
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


@pytest.mark.long
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


def test_of_few_writes_it_is_said_that_they_tell_nothing(golden_words: GoldenWords) -> None:
    reads = make_attribution(simulate(1, Cause(), SMALL))
    assert reads.detectable_at_end is None
    assert "end of writes" not in finding_sentences.describe_attribution(reads)[0]
    few = make_attribution(simulate(1, Cause(), replace(SMALL, writes=0.01)))
    assert few.detectable_at_end is None
    golden_words(finding_sentences.describe_attribution(few)[0])


@pytest.mark.parametrize("requests", [10, 40])
def test_nothing_would_have_been_found_in_too_few(requests: int) -> None:
    assert least(Shape(devices=4, nodes=3, requests=requests, writes=0.0)) is None


def reads_of(devices: list[int], request: float = 0.1) -> Measure:
    """So many reads of each device, one after another, with latencies that are alike for all."""
    who = np.repeat(np.arange(len(devices)), devices)
    who = who[np.random.default_rng(1).permutation(len(who))]
    units = Units(
        np.random.default_rng(2).lognormal(np.log(request), 0.2, len(who)),
        np.zeros(len(who), np.int64),
        np.zeros(1, np.int64),
    )
    every = np.arange(len(who))
    level = CandidateLevel("device", make_pairs(every, who, len(devices)))
    return Measure("own", units, every, [level], ("reads",), SearchStage.OWN, request)


def test_the_least_delay_is_the_first_step_that_the_device_with_fewest_is_found_with() -> None:
    measure = reads_of([40, 30, 50, 0])
    counts = {"devices": 3, "proxies": 2, "replicas": 0}
    found = find_detectable_delay([replace(measure, divided="time"), measure], "own", counts)
    steps = [each * 0.1 for each in DELAY_STEPS if each >= 0.075]

    def chance(seconds: float) -> float:
        # In 9 of 10 runs the deviate is no more than 1.28 below what it is on average.
        slow = measure.shift(1, seconds)
        return 3 * 2 * upper_tail(slow.deviate(slow.levels[0], 0, 1) - 1.28)

    expected = next(each for each in steps if chance(each) <= ALPHA)
    assert steps[0] < expected < steps[-1]
    assert found == pytest.approx(expected)
    assert find_detectable_delay([measure], "updates", counts) is None
    assert find_detectable_delay([measure], "own", {**counts, "devices": 0}) is None
    assert find_detectable_delay([reads_of([40, 6])], "own", counts) is None
    assert find_detectable_delay([reads_of([40])], "own", counts) is None


def test_a_long_run_is_thinned_to_every_so_manieth_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = replace(reads_of([400, 300, 500]), operation=np.arange(1200) * 7)
    thinned = measure.thin(3)
    assert thinned.units.seconds.tolist() == measure.units.seconds[::3].tolist()
    assert thinned.operation.tolist() == measure.operation[::3].tolist()
    assert [each.name for each in thinned.levels] == ["device"]
    for device in range(3):
        mask = measure.mask(measure.levels[0], device)[::3]
        assert thinned.mask(thinned.levels[0], device).tolist() == mask.tolist()
        z = thinned.deviate(thinned.levels[0], 0, device)
        for by in (1, 3):  # of all units it is larger by the root of that
            assert thinned.is_found(device, by**0.5 * z - 0.01, by)
            assert not thinned.is_found(device, by**0.5 * z + 0.01, by)
    assert measure.thin(1) is measure
    counts = {"devices": 3}
    whole = find_detectable_delay([measure], "own", counts)
    monkeypatch.setattr(suspect_search, "_MAX_UNITS", 400)
    assert find_detectable_delay([measure], "own", counts) == pytest.approx(whole, rel=0.5)
