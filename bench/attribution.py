"""Does ``ssbench-master attribute`` name who is slow, and nobody else?

    python bench/attribution.py --simulated [--runs N]
    python bench/attribution.py --real [--runs N] [--cases NAME ...] [--limit]
    python bench/attribution.py --scale [--results N]

``--simulated``: simulated clusters, for several scores of the rank test and, beside them, for the servers'
own times. ``--real``: runs of 600 operations against an embedded Swift (two proxies, three object servers,
four devices, three replicas) in which one thing is slow; how often it is named, and anybody else.
``--limit``: by how few ms a device may be slow. ``--scale``: time and memory of a million results with ten
million lines.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from attributed_runs import DEVICES, LAYOUT, attributed, slow
from simulated_cluster import Cause, Shape, simulate

from ssbench.attribution import culprits, kinds, ranks
from ssbench.cli.master import main as master
from ssbench.local_swift import LocalSwift
from ssbench.results import ResultBlock, RunDescription, RunSummary, TextColumn
from ssbench.run_results import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass

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
        "two of 30 ms": Cause(devices=(1, some)),
        "proxy, 30 ms": Cause(proxy=1),
    }


def simulated(runs: int) -> None:
    print("named of all / somebody falsely named of all")
    for shape in SHAPES:
        print(f"\n{shape.devices} devices, {shape.requests:,} requests")
        print(f"{'':16}" + "".join(f"{name:>18}" for name in (*SCORES, "own times, peers")))
        for name, cause in causes(shape.devices).items():
            line = [_simulated(runs, cause, shape, score) for score in SCORES.values()]
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
LIMIT = {f"{ms} ms": _device("open", ms / 1000) for ms in (2, 5, 10, 15, 20)}


def real(runs: int, cases: dict[str, Case], first_seed: int) -> None:
    print("named of all / somebody else named of all")
    seed = first_seed
    with LocalSwift(layout=LAYOUT) as swift, tempfile.TemporaryDirectory() as folder:
        for name, begin in cases.items():
            found = false = 0
            began = time.monotonic()
            for number in range(runs):
                seed += 1
                guilty = set(begin(swift, number))
                try:
                    answer = attributed(swift, Path(folder), seed, hot=name == "hot")
                finally:
                    for target in (*DEVICES, *swift.layout.proxy_names):
                        swift.repair(target)
                named = set(slow(answer))
                if name == "507":
                    named = {each["name"].split()[0] for each in answer["findings"] if each["kind"] == "507"}
                found += guilty <= named
                false += bool(named - guilty)
                if named != guilty:
                    print(f"  seed {seed}: {sorted(guilty)}: {answer['answer']}", flush=True)
            seconds = (time.monotonic() - began) / runs
            print(f"{name:10} {found:3} / {false:<3} of {runs}, {seconds:.0f} s a run", flush=True)


def scale(results: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stat_file, logs = Path(folder) / "run.stat.gz", Path(folder) / "logs"
        logs.mkdir()
        lines = _write(results, stat_file, logs)
        size = sum(path.stat().st_size for path in logs.iterdir())
        began, cpu = time.monotonic(), time.process_time()
        code = master(["-q", "attribute", "-s", str(stat_file), "--swift-logs", str(logs)])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{results:,} results, {lines:,} lines ({size / 1e9:.1f} GB): {time.monotonic() - began:.0f} s,"
            f" {time.process_time() - cpu:.0f} s of CPU, {memory:.0f} MB; exit code {code}"
        )


def _write(results: int, stat_file: Path, logs: Path) -> int:
    """Write a run of half writes and half reads, and a little over half of its lines are of others."""
    random = np.random.default_rng(1)
    sizes = SizeClass("tiny", 1000, 100_000, 10, (1, 1, 0, 0))
    scenario = Scenario("scale", (sizes,), user_count=100, operation_count=results)
    writer = RunResultsWriter(stat_file, RunDescription(scenario, run_id=1))
    total = 0
    proxies = [(logs / f"proxy-{place}.log").open("w") for place in range(2)]
    nodes = [(logs / f"node-{place}.log").open("w") for place in range(10)]
    for first in range(0, results, 50_000):
        block, text = _draw(random, first, min(50_000, results - first))
        writer.add(block)
        writer.tick(time.monotonic())
        for kind, place, line in text:
            (proxies if kind else nodes)[place].write(line)
            total += 1
    for file in (*proxies, *nodes):
        file.close()
    writer.end(RunSummary(ended=1.8e9))
    return total


def _draw(
    random: np.random.Generator, first: int, count: int
) -> tuple[ResultBlock, Iterator[tuple[bool, int, str]]]:
    ids = [f"tx{value:021x}-6b021e1d" for value in random.integers(0, 2**62, 2 * count).tolist()]
    ids = [text.replace("-6b", "-006b") + "-ssb-00000001" for text in ids]
    write = np.arange(count) % 2
    seconds = random.lognormal(-4, 0.5, count)
    size = random.integers(1000, 100_000, count)
    block = ResultBlock(
        count,
        {
            "operation": np.where(write, 0, 1).astype(np.uint8),
            "object": np.where(write, first + np.arange(count), random.integers(0, 10_000, count)),
            "size": size,
            "last_byte": seconds,
            "completed": 1.8e9 + (first + np.arange(count)) / 1000,
            "trans_id": TextColumn.of(ids[:count]),
        },
    )
    return block, _lines(ids, np.tile(write, 2), np.tile(seconds, 2), random.integers(0, 60, 2 * count))


def _lines(
    ids: list[str], write: np.ndarray, seconds: np.ndarray, device: np.ndarray
) -> Iterator[tuple[bool, int, str]]:
    rows = zip(ids, write.tolist(), seconds.tolist(), device.tolist(), strict=True)
    prefix, told = "2026-11-21T22:41:33.787123+00:00", "10.0.0.1 - - [21/Nov/2026:22:41:33 +0000]"
    for number, (trans_id, writes, took, one) in enumerate(rows):
        method, status = ("PUT", 201) if writes else ("GET", 200)
        path = f"AUTH_test/ssbench_000001/tiny_{number:06}"
        yield (
            True,
            number % 2,
            f"{prefix} proxy{number % 2} proxy-server: 10.0.0.9 10.0.0.9 21/Nov/2026/22/41/33 {method}"
            f" /v1/{path} HTTP/1.0 {status} - ssbench/1.0 AUTH_tk8e8317d9b... 8192 - - {trans_id} -"
            f" {took * 0.9:.4f} - - 1795300893.775906086 1795300893.785770178 0 test:tester\n",
        )
        for place in range(3 if writes else 1):
            each = (one + 7 * place) % 60
            where = f"{prefix} node{each // 6}"
            yield (
                False,
                each // 6,
                f'{where} object-server: {told} "{method} /d{each}/{number % 1024}/{path}" {status} 8192'
                f' "{method} http://10.0.0.1:8080/v1/{path}" "{trans_id}" "proxy-server 5216"'
                f' {took * 0.7:.4f} "-" 5198 0\n',
            )
            if writes:
                yield (
                    False,
                    each // 6,
                    f'{where} container-server: {told} "PUT /c{each}/7/{path}" 201 -'
                    f' "PUT http://10.0.0.1:8080/d{each}/7/{path}" "{trans_id}" "object-server 3974" 0.0006'
                    ' "-" 39 0\n',
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--limit", action="store_true")
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seed", type=int, default=0, help="the first run's is one more")
    parser.add_argument("--results", type=int, default=1_000_000)
    arguments = parser.parse_args()
    if arguments.simulated:
        simulated(arguments.runs)
    if arguments.real:
        real(arguments.runs, {name: CASES[name] for name in arguments.cases}, arguments.seed)
    if arguments.limit:
        real(arguments.runs, LIMIT, arguments.seed)
    if arguments.scale:
        scale(arguments.results)


if __name__ == "__main__":
    main()
