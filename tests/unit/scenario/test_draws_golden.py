"""What a scenario draws with a seed does not change: the digests are of a version with four operations."""

from __future__ import annotations

from hashlib import sha256
from itertools import islice

from ssbench.scenario.draws import Target, Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.population import Population

SCENARIO = Scenario(
    "golden",
    (
        SizeClass("tiny", 4, 8, 30, (3.0, 4.0, 2.0, 1.0)),
        SizeClass("big", 100, 5 * 10**9, 10, {"read": 9.0, "delete": 1.0}),
    ),
    user_count=4,
    operation_count=10,
    container_count=7,
)


def digest(data: object) -> str:
    return sha256(repr(data).encode()).hexdigest()[:16]


def test_the_same_operations_as_ever() -> None:
    draws = list(islice(Workload(SCENARIO, 5).draws(), 10_000))
    assert draws[:4] == [(1, 0, 0, 0), (1, 1, 4, 0), (0, 0, 6, 4), (0, 0, 4, 8)]
    assert digest(draws) == "08b7cb29e127fd64"


def test_the_same_initial_objects_as_ever() -> None:
    assert digest(list(Workload(SCENARIO, 5).initial_objects())) == "0392534a1b29f9ec"


def test_the_same_objects_for_them_as_ever() -> None:
    workload = Workload(SCENARIO, 5)
    population = Population(SCENARIO, workload)
    for size_class, _, number, size in workload.initial_objects():
        population.add_initial(size_class, number, size)
    jobs: list[Target] = []
    while len(jobs) < 5000:
        begun = population.next_jobs(7)
        jobs += begun
        for job in begun:
            population.finished(*job[:4], ok=True)
    assert digest(jobs) == "b747c110a0da1288"
