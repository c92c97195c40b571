"""Who is accused: on genuine runs of a real Swift, and on simulated ones of sixty devices."""

from dataclasses import replace

import numpy as np
import pytest
from genuine_runs import genuine
from simulated_cluster import Cause, Shape, simulate

from ssbench.attribution import kinds, ranks, tables, texts
from ssbench.attribution.findings import Attribution, attribute
from ssbench.attribution.tables import Row


def accused(found: Attribution) -> list[str]:
    return [each.name for each in found.findings if each.kind == "slow"]


def named(found: Attribution) -> list[str]:
    """Who is accused, without nodes and each once."""
    return sorted({name.split()[0] for name in accused(found)})


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


@pytest.mark.parametrize("run", ["base", "open3", "block1"])
def test_of_two_proxies_one_at_most_is_slower(run: str) -> None:
    proxies = attribute(genuine(run)).proxies
    assert len(proxies) == 2
    assert sum(row.longer is not None for row in proxies) <= 1
    assert all(row.longer is None or row.longer.median > 0 for row in proxies)


def test_which_of_two_is_slower() -> None:
    def row(name: str, median: float) -> Row:
        return Row(name, 1, 0, None, None, ranks.Difference(median, 0.0, 1.0))

    # The means may say so while both medians are above 0.
    first, second = tables.of_two([row("a", 0.000935), row("b", 0.00198)])
    assert first.longer is None
    assert second.longer is not None
    assert [each.longer for each in tables.of_two([row("a", -0.1), row("b", -0.2)])] == [None, None]
    three = [row("a", 0.1), row("b", 0.2), row("c", -0.1)]
    assert tables.of_two(three) == three


#: As the embedded Swift of ``bench/attribution.py``: two of the four devices share a server.
SMALL = Shape(devices=4, nodes=3, requests=400)


@pytest.mark.parametrize(
    ("cause", "names"),
    [
        (Cause(devices=(3,)), ["d3"]),
        (Cause(devices=(0,), logged=False), ["d0"]),
        (Cause(devices=(2,), commit=True), ["d2"]),
        (Cause(devices=(1, 3)), ["d1", "d3"]),
        (Cause(proxy=1), ["p1"]),
    ],
    ids=["open", "before the clock", "commit", "two", "proxy"],
)
def test_who_is_slow_is_named_in_20_of_20_small_runs(cause: Cause, names: list[str]) -> None:
    for seed in range(20):
        assert named(attribute(simulate(seed, cause, SMALL))) == names


@pytest.mark.parametrize(
    ("cause", "shape", "names"),
    [
        (Cause(devices=(7,)), Shape(), ["d7"]),
        (Cause(devices=(7,), share=0.33), Shape(requests=6000), ["d7"]),
        (Cause(devices=(7,), commit=True, seconds=0.02), Shape(), ["d7"]),
        (Cause(devices=(3,), only_writes=True), Shape(devices=4, nodes=3), ["d3"]),
        (Cause(devices=(1, 3)), Shape(), ["d1", "d3"]),
        (Cause(devices=(1, 3), commit=True), Shape(), ["d1", "d3"]),
        (Cause(proxy=0, devices=(9,)), Shape(), ["d9", "p0"]),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_who_is_slow_is_named_and_nobody_else(
    seed: int, cause: Cause, shape: Shape, names: list[str]
) -> None:
    assert named(attribute(simulate(seed, cause, shape))) == names


def test_words_of_a_device_that_is_slow_at_commit() -> None:
    (sentence,) = texts.answer(attribute(simulate(1, Cause(devices=(2,), commit=True), SMALL)))
    assert sentence.startswith("d2 on n2: writes with it take ")
    assert sentence.endswith(" ms beside the others of the same write")
    # So little is not seen in the client's time.
    cause = Cause(devices=(2,), commit=True, seconds=0.012)
    (sentence,) = texts.answer(attribute(simulate(1, cause, SMALL)))
    assert sentence.startswith("d2 on n2: writes wait for it: its replica takes ")
    assert "ms longer (median, +" in sentence
    assert sentence.endswith(") than the others of the same write by their own logs, p < 0.001")


@pytest.mark.parametrize("slow", [(3,), (1, 3)])
def test_devices_that_wait_for_a_slow_one_are_not_taken_for_slow(slow: tuple[int, ...]) -> None:
    # The delay passes before the slow server's clock starts, so that the times of the others are longer.
    # Without reads nothing but the times of writes can tell. Of two slow ones of four, a third device is last
    # in every write with both.
    cause = Cause(devices=slow, logged=False)
    shape = Shape(devices=4, nodes=4, requests=300, writes=1.0)
    accused = [set(named(attribute(simulate(seed, cause, shape)))) for seed in range(20)]
    assert len([names for names in accused if names - {f"d{place}" for place in slow}]) < len(slow)


def test_what_only_the_servers_log_shows_accuses_nobody() -> None:
    joined = simulate(1, Cause(), SMALL)
    lines = joined.lines
    slower = (lines.device == 1) & kinds.READS[joined.operations.code[lines.operation]]
    found = attribute(replace(joined, lines=replace(lines, seconds=lines.seconds + 0.02 * slower)))
    assert [(each.kind, each.name) for each in found.findings] == [("unfelt", "d1 on n1")]
    assert "but nobody waited as far as this run can tell" in texts.answer(found)[1]


def test_a_late_replica_is_told() -> None:
    joined = simulate(1, Cause(), SMALL)
    lines = joined.lines
    is_late = (lines.device == 3) & ~kinds.READS[joined.operations.code[lines.operation]]
    seconds = np.where(is_late, joined.proxy_seconds[lines.operation] + 0.5, lines.seconds)
    found = attribute(replace(joined, lines=replace(lines, seconds=seconds)))
    (late,) = (each for each in found.findings if each.kind == "late")
    assert (late.name, late.requests) == ("d3 on n0", is_late.sum())
    assert named(found) == []


def test_a_node_is_named_where_all_its_devices_are_slow() -> None:
    slow = tuple(range(2, 60, 5))
    found = attribute(simulate(1, Cause(devices=slow, seconds=0.02), Shape()))
    assert found.findings[0].level in ("node", "process")
    assert len(found.findings[0].members) == len(slow)
    assert accused(found)[1:] == []


@pytest.mark.parametrize("shape", [Shape(requests=1000), SMALL], ids=["60 devices", "4 devices"])
@pytest.mark.parametrize("hot", [0.0, 0.2])
def test_nobody_is_named_where_nobody_is_slow(shape: Shape, hot: float) -> None:
    false = [seed for seed in range(20) if accused(attribute(simulate(seed, Cause(hot=hot), shape)))]
    assert len(false) <= 1


def test_a_device_in_every_request_cannot_be_told() -> None:
    found = attribute(simulate(1, Cause(devices=(1,)), Shape(devices=3, nodes=3, writes=1.0)))
    assert accused(found) == []
    first, *others = texts.answer(found)
    assert first.startswith("Nothing: of those that can be compared, no proxy, ")
    assert any("cannot be told: each is in every request" in line for line in others)
    assert texts.nobody(found) == "Nobody of those that can be compared makes requests slow"


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


def test_what_comes_and_goes_is_no_difference() -> None:
    # In each slice of the run a proxy is slower or faster than the other, at random; on the whole it is not.
    random = np.random.default_rng(3)
    count, slices = 400, np.arange(400) // 20
    plain, allowed = [], []
    for _ in range(200):
        taken = random.random(count) < 0.5
        seconds = random.lognormal(size=count) * np.exp(taken * random.normal(size=20)[slices])
        who = ranks.pairs(np.flatnonzero(taken), np.zeros(taken.sum(), np.int64), 1)
        units = ranks.Units(seconds, np.zeros(count, np.int64), np.zeros(1, np.int64))
        plain.append(ranks.deviates(units, who, 1).z[0, 0])
        units = ranks.Units(units.seconds, units.stratum, units.group, slices)
        allowed.append(ranks.deviates(units, who, 1).z[0, 0])
    # 2.33 is exceeded by 1 in 100.
    assert np.mean(np.array(plain) > 2.33) > 0.05
    assert np.mean(np.array(allowed) > 2.33) < 0.03


def test_holm() -> None:
    adjusted = ranks.holm(np.array([0.01, np.nan, 0.04, 0.03]))
    assert adjusted == pytest.approx([0.03, np.nan, 0.06, 0.06], nan_ok=True)
