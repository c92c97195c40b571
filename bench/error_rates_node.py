"""How often ``ssbench-master attribute`` names somebody healthy, or nobody, in simulated clusters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from attribution import list_named_devices
from error_rates import ErrorRate

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster.findings import make_attribution

#: What says that somebody is slow.
_SLOW = ("slow", "unfelt", "late")
#: Devices, nodes and requests: enough that each device has some fifty reads.
_SIZES = ((4, 3, 600), (6, 3, 400), (9, 3, 800), (12, 4, 1500))


def _shapes(*rings: str, replicas: int = 3, few: bool = False) -> Iterator[Shape]:
    for devices, nodes, requests in _SIZES:
        for ring in rings:
            yield Shape(
                devices=devices,
                nodes=nodes,
                replicas=replicas,
                requests=200 if few else requests,
                ring=ring,
                sigma=0.5,
            )


def _named(cause: Cause, shape: Shape, seed: int) -> set[str]:
    found = make_attribution(simulate(seed, cause, shape)).findings
    names = (name for each in found if each.kind in _SLOW for name in list_named_devices(each))
    return {name.rpartition("server's ")[2].split()[0] for name in names}


#: Counts wrong runs and all, of as many as are asked for in each shape.
Counter = Callable[[int], tuple[int, int]]
#: A cause that is planted in a shape by a seed, and those who are to be named.
Plant = Callable[[Shape, int], tuple[Cause, set[str]]]


def _wrong(
    runs: int, plant: Plant, rings: tuple[str, ...], replicas: int = 3, *, few: bool = False
) -> tuple[int, int]:
    """Count the runs in which somebody is named who is not slow."""
    wrong = made = 0
    for shape in _shapes(*rings, replicas=replicas, few=few):
        for seed in range(runs):
            cause, guilty = plant(shape, seed)
            wrong += bool(_named(cause, shape, 1000 + seed) - guilty)
            made += 1
    return wrong, made


def _missed(runs: int, plant: Plant, rings: tuple[str, ...]) -> tuple[int, int]:
    """Count the runs in which one who is slow is not named."""
    missed = made = 0
    for shape in _shapes(*rings):
        for seed in range(runs):
            cause, guilty = plant(shape, seed)
            missed += not guilty <= _named(cause, shape, 1000 + seed)
            made += 1
    return missed, made


def _nothing(_shape: Shape, _seed: int) -> tuple[Cause, set[str]]:
    return Cause(), set()


def _load(_shape: Shape, _seed: int) -> tuple[Cause, set[str]]:
    """Have a healthy device join when the load begins."""
    return Cause(load=(0.35, 1.6), away=(1, 0.0, 0.35)), set()


def _loaded(shape: Shape, seed: int) -> tuple[Cause, set[str]]:
    """Have one join that is slow, too."""
    cause, _ = _load(shape, seed)
    return replace(cause, devices=(1,)), {"d1"}


def _tie(shape: Shape, seed: int) -> tuple[Cause, set[str]]:
    """Slow a device that a fresh ring always puts together with two others, in a way none's log shows."""
    device = seed % shape.devices
    return Cause(devices=(device,), where="before", only="writes"), {f"d{device}"}


def _two(shape: Shape, seed: int) -> tuple[Cause, set[str]]:
    """Slow two devices, in writes only before their clocks in every third run."""
    both = seed % shape.devices, (seed + 1 + seed // shape.devices) % shape.devices
    cause = (Cause(), Cause(only="reads"), Cause(only="writes", where="before"))[seed % 3]
    return replace(cause, devices=both), {f"d{each}" for each in both}


def _two_of_a_node(shape: Shape, seed: int) -> tuple[Cause, set[str]]:
    """Slow two devices of one node in reads, of which the others must not be named with it."""
    first = seed % shape.nodes
    both = (first, (first + shape.nodes) % shape.devices)
    return Cause(devices=both, only="reads", hot=0.2), {f"d{each}" for each in both}


def _slow_proxy(_shape: Shape, _seed: int) -> tuple[Cause, set[str]]:
    return Cause(proxy=1, seconds=0.01), {"p1"}


def _container(_shape: Shape, _seed: int) -> tuple[Cause, set[str]]:
    """Slow a container server before its own clock starts, so that its log shows nothing."""
    return Cause(container=1, seconds=0.01, where="before"), {"c1"}


def _leaves(_shape: Shape, _seed: int) -> tuple[Cause, set[str]]:
    """Have a healthy device leave when the load ends."""
    return Cause(load=(0.65, 0.6), away=(1, 0.65, 1.0)), set()


_EVERY = ("fresh", "grown")


def _rate(count: Callable[..., tuple[int, int]], plant: Plant, *rings: str, **shape: Any) -> Counter:
    return partial(count, plant=plant, rings=rings or _EVERY, **shape)


ROWS = tuple(
    ErrorRate(name, count, limit)
    for name, count, limit in (
        ("nothing is slow, and somebody is named", _rate(_wrong, _nothing), 0.03),
        ("a healthy device joins as the load begins, and is named", _rate(_wrong, _load), 0.03),
        ("a healthy device leaves as the load ends, and is named", _rate(_wrong, _leaves), 0.03),
        ("one that is slow joins then, and is not named", _rate(_missed, _loaded), 0.05),
        (
            "a write fits three devices of a fresh ring, and a wrong one is named",
            _rate(_wrong, _tie, "fresh"),
            0.02,
        ),
        (
            "the same of two replicas, on rings fresh and grown",
            _rate(_wrong, _tie, replicas=2),
            0.02,
        ),
        ("two devices are slow, and a third is named", _rate(_wrong, _two, "grown"), 0.02),
        ("the same, with 200 requests", _rate(_wrong, _two, "grown", few=True), 0.02),
        ("two of a node are slow in reads, and all are named", _rate(_wrong, _two_of_a_node), 0.02),
        ("a container server is slow before its clock, and not named", _rate(_missed, _container), 0.05),
        ("a proxy is slow by 10 ms, and not named", _rate(_missed, _slow_proxy), 0.05),
    )
)
