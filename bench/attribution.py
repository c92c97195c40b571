"""Does ``ssbench-master attribute`` name who is slow, and nobody else?

    python bench/attribution.py --simulated [--runs N]
    python bench/attribution.py --real [--runs N] [--cases NAME ...] [--limit]

``--simulated``: simulated clusters, for several scores of the rank test and, beside them, for the servers'
own times. ``--real``: runs of 300 operations against an embedded Swift (two proxies, three object servers,
four devices, three replicas) in which one thing is slow; in how many it is named, and in how many anybody
else, with the median latency. ``--limit``: the same for delays of a few ms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from attributed_runs import DEVICES, LAYOUT, attributed, broken, slow
from simulated_cluster import Cause, Shape, simulate

from ssbench.attribution import culprits, kinds, ranks
from ssbench.attribution.findings import attribute
from ssbench.local_swift import LocalSwift

SHAPES = (Shape(devices=4, nodes=3), Shape(devices=12, nodes=4), Shape(), Shape(requests=20_000))
SCORES: dict[str, ranks.Score] = {
    "ranks": ranks.wilcoxon,
    "Mantel-Haenszel": lambda places, sizes: (places > np.ceil(0.9 * sizes)).astype(float),
    "Savage": lambda places, sizes: -np.log1p(-(places - 0.5) / sizes),
}


def causes(devices: int) -> dict[str, Cause]:
    some = 7 % devices
    return {
        "nobody": Cause(),
        "hot object": Cause(hot=0.2),
        "30 ms": Cause(devices=(some,)),
        "30 ms, a third": Cause(devices=(some,), share=1 / 3),
        "10 ms": Cause(devices=(some,), seconds=0.01),
        "30 ms, writes": Cause(devices=(some,), only_writes=True),
        "30 ms, commit": Cause(devices=(some,), commit=True),
        "10 ms, commit": Cause(devices=(some,), commit=True, seconds=0.01),
        "two, commit": Cause(devices=(1, some), commit=True),
        "writes, early": Cause(devices=(some,), only_writes=True, logged=False),
        "two w., early": Cause(devices=(1, some), only_writes=True, logged=False),
        "two of 30 ms": Cause(devices=(1, some)),
        "proxy, 30 ms": Cause(proxy=1),
    }


def simulated(runs: int) -> None:
    print("named of all / somebody falsely named of all; early: before the server's clock starts")
    for shape in SHAPES:
        print(f"\n{shape.devices} devices, {shape.requests:,} requests")
        print(f"{'':16}" + "".join(f"{name:>18}" for name in ("the whole rule", *SCORES, "own times, peers")))
        for name, cause in causes(shape.devices).items():
            line = [_whole(runs, cause, shape)]
            line += [_simulated(runs, cause, shape, score) for score in SCORES.values()]
            line.append(_own_times(runs, cause, shape))
            print(f"{name:16}" + "".join(f"{found:>10} / {false:<5}" for found, false in line), flush=True)


def _simulated(runs: int, cause: Cause, shape: Shape, score: ranks.Score) -> tuple[int, int]:
    found = false = 0
    for seed in range(runs):
        joined = simulate(seed, cause, shape)
        complete = kinds.completeness(joined).complete
        if cause.proxy is not None:
            compared = kinds.compare(joined, complete, by_proxy=False)
            who = compared.pairs(np.arange(shape.requests), joined.proxy, shape.proxies)
            levels, guilty = [culprits.Level("proxy", who)], {(0, cause.proxy)}
        else:
            compared = kinds.compare(joined, complete, by_proxy=True)
            levels = kinds.levels(joined, compared)
            guilty = {(0, device) for device in cause.devices}
        verdict = culprits.judge(compared.units, levels, len(kinds.GROUPS), score=score)
        named = {(each.level, each.candidate) for each in verdict.accused}
        found += guilty <= named
        false += bool(named - guilty)
    return found, false


def _whole(runs: int, cause: Cause, shape: Shape) -> tuple[int, int]:
    found = false = 0
    guilty = {f"d{device}" for device in cause.devices} | ({f"p{cause.proxy}"} - {"pNone"})
    for seed in range(runs):
        slow = [each for each in attribute(simulate(seed, cause, shape)).findings if each.kind == "slow"]
        named = {name.split()[0] for each in slow for name in each.members or [each.name]}
        found += guilty <= named
        false += bool(named - guilty)
    return found, false


def _own_times(runs: int, cause: Cause, shape: Shape) -> tuple[int, int]:
    """What the servers' own times of reads say, tested once among peers."""
    found = false = 0
    for seed in range(runs):
        joined = simulate(seed, cause, shape)
        units, device, _ = kinds.compare_servers(joined, kinds.completeness(joined).complete)
        who = ranks.pairs(np.arange(len(units)), device, shape.devices)
        z = ranks.deviates(units, who, len(kinds.GROUPS)).z[-1]
        adjusted = ranks.holm(np.array([ranks.upper_tail(each) for each in z]))
        named = set(np.flatnonzero(adjusted < culprits.ALPHA).tolist())
        found += set(cause.devices) <= named
        false += bool(named - set(cause.devices))
    return found, false


#: What is done to the Swift, by a number that differs from run to run, and who is to be named.
Case = Callable[[LocalSwift, int], list[str]]


def _device(where: str, seconds: float = 0.03) -> Case:
    def begin(swift: LocalSwift, number: int) -> list[str]:
        name = DEVICES[number % 4]
        swift.slow(name, seconds, where=where)
        return ["d1", "d4"] if where == "block" and name in ("d1", "d4") else [name]

    return begin


def _two(swift: LocalSwift, number: int) -> list[str]:
    names = [DEVICES[number % 4], DEVICES[(number + 1) % 4]]
    for name in names:
        swift.slow(name, 0.03)
    return names


def _proxy(swift: LocalSwift, number: int) -> list[str]:
    name = f"proxy-{number % 2 + 1}"
    swift.slow(name, 0.03)
    return [name]


def _failed(swift: LocalSwift, number: int) -> list[str]:
    name = DEVICES[number % 4]
    swift.fail(name)
    return [name]


CASES: dict[str, Case] = {
    "nobody": lambda _swift, _number: [],
    "hot": lambda _swift, _number: [],
    "open": _device("open"),
    "request": _device("request"),
    "commit": _device("commit"),
    "block": _device("block"),
    "proxy": _proxy,
    "two": _two,
    "507": _failed,
}
LIMIT = {f"{where} {ms} ms": _device(where, ms / 1000) for where in ("open", "commit") for ms in (3, 6, 10)}


def real(runs: int, cases: dict[str, Case], first_seed: int) -> None:
    """Each case has a Swift of its own, and is the same whichever others are asked for."""
    print(f"{'':14}{'named':>6} {'others':>7} {'of':>4} {'median':>8} {'s a run':>8}", flush=True)
    for name, begin in cases.items():
        with LocalSwift(layout=LAYOUT) as swift, tempfile.TemporaryDirectory() as folder:
            found = false = 0
            medians = []
            began = time.monotonic()
            for number in range(runs):
                seed = first_seed + number + 1
                guilty = set(begin(swift, number))
                try:
                    answer = attributed(swift, Path(folder), seed, hot=name == "hot")
                finally:
                    for target in (*DEVICES, *swift.layout.proxy_names):
                        swift.repair(target)
                named = set(slow(answer)) | set(broken(answer))
                medians.append(answer["proxies"][0]["latency"][0])
                found += guilty <= named
                false += bool(named - guilty)
                if named != guilty:
                    print(f"  seed {seed}: {sorted(guilty)}: {answer['answer']}", flush=True)
            seconds = (time.monotonic() - began) / runs
            median = f"{np.median(medians) * 1e3:.0f} ms"
            print(f"{name:14}{found:6} {false:7} {runs:4} {median:>8} {seconds:8.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--limit", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seed", type=int, default=0, help="the first run's is one more")
    arguments = parser.parse_args()
    if arguments.simulated:
        simulated(arguments.runs)
    if arguments.real:
        real(arguments.runs, {name: CASES[name] for name in arguments.cases}, arguments.seed)
    if arguments.limit:
        real(arguments.runs, LIMIT, arguments.seed)


if __name__ == "__main__":
    main()
