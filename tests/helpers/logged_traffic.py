"""Logs of Swift's proxies that tell of planted traffic: of a scenario as it is drawn, or of any uses."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ssbench.scenario.chosen_objects import make_population
from ssbench.scenario.draws import Arrivals, Workload
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import OPERATIONS

BEGAN = 1_795_300_000.0
#: A scenario for an exponent, with so many objects and seconds that chance hides no error: of two draws of it
#: size quantiles differ by some 1 %, dispersions by 5 %.
KNOWN_SCENARIO = """
name: known
sizes: [{name: one, size: {lognormal: {median: 20kB, sigma: 0.5}}}]
initial_files: {one: 20000}
profile: {read: 78, head: 10, list: 6, create: 2, update: 2, delete: 2}
popularity: {zipf: %s}
container_count: 5
stages: [{seconds: 600, rate: 60}, {seconds: 600, rate: 40}]
user_count: 16
arrivals: {burst: 4}
"""
#: Method, status, and whether the path has an object.
_REQUESTS = {
    "create": ("PUT", 201, True),
    "update": ("PUT", 201, True),
    "read": ("GET", 200, True),
    "head": ("HEAD", 200, True),
    "delete": ("DELETE", 204, True),
    "list": ("GET", 200, False),
}


def swift_line(
    began: float,
    method: str,
    path: str,
    status: int = 200,
    *,
    received: int = 0,
    sent: int = 0,
    seconds: float = 0.01,
) -> str:
    """Return an access line of a proxy; the path is encoded already."""
    ended = began + seconds
    date = time.strftime("%d/%b/%Y/%H/%M/%S", time.gmtime(ended))
    return (
        f"127.0.0.1 127.0.0.1 {date} {method} {path} HTTP/1.0 {status} - test -"
        f" {received or '-'} {sent or '-'} - tx2fb49ad9eae8482080275-006b021d3a - {seconds:.4f}"
        f" - - {began:.9f} {ended:.9f} 0 -\n"
    )


def write_scenario_log(path: Path, scenario: Scenario, seed: int) -> int:
    """Write the log of a run of a scenario, of which each operation succeeds at once; return its lines."""
    workload = Workload(scenario, seed)
    population = make_population(scenario, workload)
    sizes = {}
    for index, _, number, size in workload.initial_objects():
        population.add_initial(index, number, size)
        sizes[index, number] = size
    arrivals = Arrivals(scenario.plan, scenario.arrivals, seed)
    lines = 0
    with path.open("w") as log:
        while moments := arrivals.take(1):
            for code, index, container, number, size in population.next_jobs(1, moments[0]):
                name = OPERATIONS[code].name
                method, status, has_object = _REQUESTS[name]
                place = f"/v1/AUTH_test/c{container}" + f"/o{number:07d}" * has_object
                if method == "PUT":
                    sizes[index, number] = size
                whole = sizes.get((index, number), 0)
                moved = {"received": whole} if method == "PUT" else {"sent": whole} if name == "read" else {}
                log.write(swift_line(BEGAN + moments[0], method, place, status, **moved))
                population.finished(code, index, container, number, ok=True)
                lines += 1
    return lines


def write_uses_log(path: Path, names: Iterable[object], *, rate: float = 100.0, size: int = 1000) -> None:
    """Write a log of reads of such names, at an even rate."""
    path.write_text(
        "".join(
            swift_line(BEGAN + place / rate, "GET", f"/v1/AUTH_test/c/{name}", sent=size)
            for place, name in enumerate(names)
        )
    )


def write_minutes_log(path: Path, rates: Iterable[float]) -> None:
    """Write a trace of IBM COS: reads of fifty objects by independent users at a rate in each minute."""
    random = np.random.default_rng(11)
    moments = [
        60 * minute + 60 * random.random(random.poisson(60 * rate)) for minute, rate in enumerate(rates)
    ]
    path.write_text(
        "".join(
            f"{1000 * moment:.0f} REST.GET.OBJECT {number % 50:016x} 4096\n"
            for number, moment in enumerate(np.sort(np.concatenate(moments)))
        )
    )
