"""Who is accused: on genuine runs of a real Swift, and on simulated ones of sixty devices."""

import numpy as np
import pytest
from genuine_runs import genuine
from simulated_cluster import Cause, Shape, simulate

from ssbench.attribution import ranks, texts
from ssbench.attribution.findings import Attribution, attribute


def accused(found: Attribution) -> list[str]:
    return [each.name for each in found.findings if each.kind == "slow"]


@pytest.mark.parametrize(
    ("run", "names"),
    [
        ("base", []),
        ("open3", ["d3 on o3"]),
        ("fsync3", ["d3 on o3"]),
        ("filter3", ["d3 on o3"]),
        ("block1", ["object server 1 on o1", "d1 on o1"]),
        ("conc3", ["d3 on o3"]),
    ],
)
def test_genuine_runs(run: str, names: list[str]) -> None:
    found = attribute(genuine(run))
    assert accused(found) == names


def test_words_of_genuine_runs() -> None:
    assert texts.answer(attribute(genuine("base"))) == [
        "Nothing: no proxy, node, process or device makes requests take longer."
    ]
    (open3,) = texts.answer(attribute(genuine("open3")))
    assert open3.startswith("d3 on o3: requests with it take 29.6 ms longer (median, +63%), p < 0.001")
    assert open3.endswith("its own log shows +30.5 ms")
    (filter3,) = texts.answer(attribute(genuine("filter3")))
    assert "its own log does not show it" in filter3
    block = texts.answer(attribute(genuine("block1")))
    assert block[0].startswith("process object server 1 on o1 (d4 on o1 and d1 on o1): ")


@pytest.mark.parametrize(
    ("cause", "shape", "names"),
    [
        (Cause(devices=(7,)), Shape(), ["d7"]),
        (Cause(devices=(7,), share=0.33), Shape(requests=6000), ["d7"]),
        (Cause(devices=(3,), only_writes=True), Shape(devices=4, nodes=3), ["d3"]),
        (Cause(devices=(1, 3)), Shape(), ["d1", "d3"]),
        (Cause(devices=(1, 3)), Shape(devices=4, nodes=4), ["d1", "d3"]),
        (Cause(proxy=1), Shape(), ["p1"]),
        (Cause(proxy=0, devices=(9,)), Shape(), ["d9", "p0"]),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_who_is_slow_is_named_and_nobody_else(
    seed: int, cause: Cause, shape: Shape, names: list[str]
) -> None:
    found = accused(attribute(simulate(seed, cause, shape)))
    assert sorted(name.split()[0] for name in found) == names


def test_a_node_is_named_where_all_its_devices_are_slow() -> None:
    slow = tuple(range(2, 60, 5))
    found = attribute(simulate(1, Cause(devices=slow, seconds=0.02), Shape()))
    assert found.findings[0].level in ("node", "process")
    assert len(found.findings[0].members) == len(slow)
    assert accused(found)[1:] == []


@pytest.mark.parametrize("shape", [Shape(), Shape(devices=4, nodes=3)])
@pytest.mark.parametrize("hot", [0.0, 0.2])
def test_nobody_is_named_where_nobody_is_slow(shape: Shape, hot: float) -> None:
    false = [seed for seed in range(6) if accused(attribute(simulate(seed, Cause(hot=hot), shape)))]
    assert false == []


def test_a_device_in_every_request_cannot_be_told() -> None:
    found = attribute(simulate(1, Cause(devices=(1,)), Shape(devices=3, nodes=3, writes=1.0)))
    assert accused(found) == []
    assert any("cannot be told: each is in every request" in line for line in texts.answer(found))


def test_the_deviate_is_that_of_the_wilcoxon_test() -> None:
    # Without ties and in one stratum: (U - E U) / sd U, from its textbook formula.
    random = np.random.default_rng(1)
    seconds = random.random(50)
    taken = np.arange(50) < 20
    units = ranks.Units(seconds, np.zeros(50, np.int64), np.zeros(1, np.int64))
    found = ranks.deviates(units, ranks.pairs(np.flatnonzero(taken), np.zeros(20, np.int64), 1), 1)
    wins = (seconds[taken][:, None] > seconds[~taken]).sum()
    assert found.z[0, 0] == pytest.approx((wins - 300) / np.sqrt(20 * 30 * 51 / 12))


def test_no_false_alarms_by_the_test_itself() -> None:
    # Mixed strata, many ties: the deviates of those who do not matter are standard normal.
    random = np.random.default_rng(2)
    z = []
    for _ in range(300):
        stratum = np.sort(random.integers(0, 12, 400))
        units = ranks.Units(
            np.round(random.lognormal(size=400) + stratum, 1), stratum, np.zeros(12, np.int64)
        )
        who = ranks.pairs(random.choice(400, 60, replace=False), np.zeros(60, np.int64), 1)
        z.append(ranks.deviates(units, who, 1).z[0, 0])
    assert abs(np.mean(z)) < 0.2
    assert 0.88 < np.std(z) < 1.12


def test_holm() -> None:
    adjusted = ranks.holm(np.array([0.01, np.nan, 0.04, 0.03]))
    assert adjusted == pytest.approx([0.03, np.nan, 0.06, 0.06], nan_ok=True)
