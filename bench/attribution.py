"""Does ``ssbench-master attribute`` name what is slow, and nothing else?

    python bench/attribution.py --simulated [--runs N] [--cases NAME ...] [--noisy] [--perseus node|all]
    python bench/attribution.py --real [--runs N] [--cases NAME ...] [--devices N] [--limit] [--record FILE]

``--simulated``: simulated clusters on rings of swift-ring-builder, fresh and grown, with one thing wrong: in
how many runs it is named, in how many it is one of several that the ring puts together, in how many
anybody healthy is named, and in how many nothing is said to be wrong (with a device slow in all requests
only if it is said that so much would have been found).
``--noisy`` has the servers' own times as noisy
and long as on a loaded machine. ``--perseus`` has Perseus (:mod:`perseus`) judge the same runs instead, with
the devices of a node or all as peers. ``--real``: runs of 300 operations against an embedded Swift (two
proxies, three object servers, three replicas) in which one thing is slow or failed: in how many it is named
(right), a part of it (half), nobody certainly (open), nobody and all said to be well (all-clear), or anybody
healthy (wrong), with the median latency. ``--limit``: the same for delays of a few ms. ``--record`` adds a
line of JSON for each run to a file: what was planted, who was named, and the first sentence.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
import perseus
from attributed_runs import LAYOUT, attributed
from simulated_cluster import Cause, Shape, simulate

from ssbench.base.errors import ClusterError
from ssbench.cluster import finding_sentences
from ssbench.cluster.finding_kinds import ClusterFinding, SlowServer, UnfeltServer
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.joined_run import JoinedLines, JoinedRun
from ssbench.local_swift import LocalSwift

#: Requests enough that each device has some fifty reads.
SHAPES = {
    f"{devices} {ring}": Shape(devices=devices, nodes=nodes, requests=requests, ring=ring, sigma=0.5)
    for devices, nodes, requests in ((4, 3, 600), (12, 4, 1500), (60, 5, 6000))
    for ring in ("fresh", "grown")
}


@dataclass(frozen=True)
class Planted:
    """What is wrong, who is to be named, and what is changed of the shape and of the columns."""

    cause: Cause
    guilty: tuple[str, ...] = ()
    shape: dict[str, Any] = field(default_factory=dict)
    change: Callable[[JoinedRun], JoinedRun] | None = None


def _without_log(joined: JoinedRun) -> JoinedRun:
    """Leave out the lines of the node of device 1."""
    lines = joined.lines
    lost = np.array([device.node == "n1" for device in joined.devices])
    kept = ~lost[lines.device]
    return replace(
        joined, lines=JoinedLines(**{name: getattr(lines, name)[kept] for name in JoinedLines.__slots__})
    )


def _answers_507(joined: JoinedRun) -> JoinedRun:
    """Have device 1 answer 507 to its first requests, and others take its place from then on."""
    lines = joined.lines
    its = np.flatnonzero(lines.device == 1)
    status = lines.status.copy()
    status[its[:10]] = 507
    kept = np.ones(len(lines), np.bool_)
    kept[its[10:]] = False
    columns = {name: getattr(lines, name)[kept] for name in JoinedLines.__slots__}
    return replace(joined, lines=JoinedLines(**(columns | {"status": status[kept]})))


def _device(seconds: float, **options: Any) -> Planted:
    return Planted(Cause(devices=(1,), seconds=seconds, **options), ("d1",))


PLANTED = {
    "nothing": Planted(Cause()),
    "hot object": Planted(Cause(hot=0.2)),
    "open 5 ms": _device(0.005),
    "reads 5 ms": _device(0.005, only="reads"),
    "writes 10 ms": _device(0.01, only="writes"),
    "commit 10 ms": _device(0.01, where="commit"),
    "a third 10 ms": _device(0.01, share=1 / 3),
    "before 10 ms": _device(0.01, where="before"),
    "w. before 30 ms": _device(0.03, where="before", only="writes"),
    "body 10 ms": _device(0.01, where="body"),
    "60 ms, a quarter": _device(0.06, part=(0.3, 0.55)),
    "proxy 10 ms": Planted(Cause(proxy=1, seconds=0.01), ("p1",)),
    "way 10 ms": Planted(Cause(proxy=1, seconds=0.01, where="before"), ("p1",)),
    "container 10 ms": Planted(Cause(container=1, seconds=0.01), ("c1",)),
    "c. before 50 ms": Planted(Cause(container=1, seconds=0.05, where="before"), ("c1",)),
    "two 30 ms": Planted(Cause(devices=(1, 3)), ("d1", "d3")),
    "two commit 30 ms": Planted(Cause(devices=(1, 3), where="commit"), ("d1", "d3")),
    "two w. before": Planted(Cause(devices=(1, 3), where="before", only="writes"), ("d1", "d3")),
    "507": Planted(Cause(), ("d1",), change=_answers_507),
    "EC 4+2, 10 ms": replace(_device(0.01), shape={"replicas": 6, "data": 4}),
    "no log, 30 ms": Planted(_device(0.03).cause, ("a server without a log",), change=_without_log),
    "no log, nothing": Planted(Cause(), change=_without_log),
}


#: By changes of the columns, or of parties, of which Perseus says nothing.
NOT_OF_DEVICES = (
    "proxy 10 ms",
    "way 10 ms",
    "container 10 ms",
    "c. before 50 ms",
    "507",
    "no log, 30 ms",
    "no log, nothing",
)


def simulated(runs: int, cases: Sequence[str], peers: str | None, *, noisy: bool) -> None:
    print("named / one of several / somebody healthy / all-clear, of", runs)
    shapes = {name: replace(each, own=0.33, sigma=0.9) if noisy else each for name, each in SHAPES.items()}
    print(f"{'':18}" + "".join(f"{name:>18}" for name in shapes), flush=True)
    for name in cases:
        print(f"{name:18}", end="")
        for shape in shapes.values():
            planted = PLANTED[name]
            if planted.shape and shape.devices != 12:
                print(f"{'-':>18}", end="")
                continue
            counts = np.sum([_outcome(planted, shape, seed, peers) for seed in range(runs)], axis=0)
            print(f"{' / '.join(map(str, counts)):>18}", end="", flush=True)
        print(flush=True)


def _outcome(planted: Planted, shape: Shape, seed: int, peers: str | None) -> tuple[bool, bool, bool, bool]:
    joined = simulate(1000 + seed, planted.cause, replace(shape, **planted.shape))
    if peers:
        by_it = {_short(name) for name in perseus.named(joined, by_node=peers == "node")}
        guilty = set(planted.guilty)
        return guilty <= by_it, False, bool(by_it - guilty), not by_it
    found = make_attribution(planted.change(joined) if planted.change else joined)
    named: set[str] = set()
    perhaps: set[str] = set()
    wrong = False
    guilty = set(planted.guilty)
    for each in found.findings:
        if each.kind in ("slow", "unfelt", "late", "507"):
            named.update(map(_short, list_named_devices(each)))
        elif each.kind == "one of":
            group = set(map(_short, each.candidates))
            perhaps |= group
            wrong |= not group & guilty
        elif each.kind == "missing":
            named.add("a server without a log")
    wrong |= bool(named - guilty)
    clear = finding_sentences.describe_attribution(found)[0].startswith(finding_sentences.ALL_CLEAR)
    cause = planted.cause
    if clear and guilty and cause.where in ("open", "body") and not cause.only:
        # It says which delay of reads and deletes would have been found.
        clear = cause.seconds * cause.share >= (found.detectable or 0)
    return guilty <= named, bool(guilty & perhaps - named), wrong, clear


def list_named_devices(finding: ClusterFinding) -> list[str]:
    """Return who is said to be slow: of a process or a node its devices."""
    devices = finding.members if isinstance(finding, SlowServer | UnfeltServer) else []
    return devices or [finding.name]


def _short(name: str) -> str:
    return name.rpartition("server's ")[2].split()[0]


@dataclass(frozen=True)
class Fault:
    """What is done to a Swift: to one device, or to its server or process, or to a proxy; or else nothing."""

    seconds: float = 0.03
    where: str = ""  # empty: not by :meth:`LocalSwift.slow`
    share: float = 1.0
    devices: int = 1
    planted: str = "none"  # by :mod:`planted_object_server`
    operations: int = 300
    hot: bool = False

    def begin(self, swift: LocalSwift, device: str) -> list[set[str]]:
        """Begin, and return who is to be named, each by one of several names."""
        owners = swift.layout.device_owners
        names = list(owners)
        first = names.index(device)
        guilty = (names * 2)[first : first + self.devices]
        for name in guilty if self.where else ():
            swift.slow(name, self.seconds, self.share, self.where)
        if self.planted == "worker":
            return [{owners[device]}]
        if self.where == "block":
            guilty = [name for name in names if owners[name] == owners[device]]
        # A server may be named for its only device, and for all that it has where it is blocked.
        return [
            {name, owners[name]}
            if self.where == "block" or [*owners.values()].count(owners[name]) == 1
            else {name}
            for name in guilty
        ]


class _Healthy(Fault):
    def begin(self, swift: LocalSwift, device: str) -> list[set[str]]:
        return []


class _SlowProxy(Fault):
    def begin(self, swift: LocalSwift, device: str) -> list[set[str]]:
        name = f"proxy-{int(device[1:]) % 2 + 1}"
        swift.slow(name, self.seconds)
        return [{name}]


class _Unmounted(Fault):
    def begin(self, swift: LocalSwift, device: str) -> list[set[str]]:
        swift.fail(device)
        return [{device}]


CASES: dict[str, Fault] = {
    "nobody": _Healthy(),
    "hot": _Healthy(hot=True),
    "open": Fault(where="open"),
    "request": Fault(where="request"),
    "commit": Fault(where="commit"),
    "block": Fault(where="block"),
    "worker": Fault(planted="worker", operations=600),
    "proxy": _SlowProxy(),
    "two": Fault(where="open", devices=2),
    "507": _Unmounted(),
    "few": Fault(where="open", seconds=0.15, share=0.04, operations=1500),
    "large": Fault(planted="large", seconds=0.05, operations=600),
}
LIMIT = {
    f"{where} {ms} ms": Fault(where=where, seconds=ms / 1000)
    for where in ("open", "commit")
    for ms in (3, 6, 10)
}
#: What may be said of a run, the best first. Half: not all of the guilty are named.
WORDS = ("right", "half", "open", "all-clear", "wrong")


def _judge(answer: dict[str, Any], guilty: list[set[str]]) -> tuple[str, list[str]]:
    """Return what an answer is worth, and who is named in it."""
    named, perhaps = [], []
    for each in answer["findings"]:
        if each["kind"] in ("slow", "unfelt", "late", "507", "fails"):
            named.append(_name_of(each["name"]))
        elif each["kind"] == "one of":
            perhaps.append({_name_of(name) for name in (each["name"], *each["same"])})
    known = set().union(*guilty)
    if not known.issuperset(named) or not all(each & known for each in perhaps):
        return "wrong", named
    found = [bool(each.intersection(named)) for each in guilty]
    if all(found):
        return "right", named
    if any(found):
        return "half", named
    clear = answer["answer"][0].startswith(finding_sentences.ALL_CLEAR) and not perhaps
    return "all-clear" if clear else "open", named


def _name_of(name: str) -> str:
    """Return a device's name, and else that of the server."""
    device, _, node = name.rpartition(" on ")
    return device if device[:1] == "d" and device[1:].isdigit() else node


def _attribute(fault: Fault, seed: int, devices: int) -> tuple[dict[str, Any], list[set[str]]]:
    """Make a run with a fault; return what is said of it, and who is to be named."""
    device = f"d{seed % devices + 1}"
    planted = {"fault": fault.planted, "device": device, "seconds": str(fault.seconds)}
    options = {"use": "call:planted_object_server:make_app", **planted}
    with (
        LocalSwift(
            layout=replace(LAYOUT, devices=devices),
            object_options=None if fault.planted == "none" else options,
        ) as swift,
        tempfile.TemporaryDirectory() as folder,
    ):
        guilty = fault.begin(swift, device)
        answer = attributed(swift, Path(folder), seed, hot=fault.hot, operations=fault.operations)
    return answer, guilty


def real(runs: int, cases: dict[str, Fault], first_seed: int, devices: int, record: Path | None) -> None:
    """Each run has a Swift of its own, and is the same whichever others are asked for."""
    print(f"{'':14}" + "".join(f"{word:>10}" for word in WORDS) + f"{'median':>10}{'s a run':>9}", flush=True)
    for name, fault in cases.items():
        counts: Counter[str] = Counter()
        medians = []
        began = time.monotonic()
        for seed in range(first_seed + 1, first_seed + runs + 1):
            try:
                answer, guilty = _attribute(fault, seed, devices)
            except (AssertionError, ClusterError) as error:  # a loaded machine may be too slow for it
                print(f"  {name}, seed {seed}, not made: {error}", flush=True)
                continue
            word, named = _judge(answer, guilty)
            counts[word] += 1
            medians.append(answer["proxies"][0]["latency"][0])
            row = {"case": name, "seed": seed, "devices": devices, "planted": [*map(sorted, guilty)]}
            row |= {"said": word, "named": named, "answer": answer["answer"][0]}
            if record:
                with record.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            if word != "right":
                print(f"  {row}", flush=True)
        print(f"{name:14}" + "".join(f"{counts[word]:10}" for word in WORDS), end="")
        seconds = (time.monotonic() - began) / runs
        print(f"{np.median(medians or [np.nan]) * 1e3:7.0f} ms{seconds:9.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--limit", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--cases", nargs="+")
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--perseus", choices=["node", "all"])
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0, help="the first run's is one more")
    parser.add_argument("--record", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.simulated:
        unknown = set(arguments.cases or ()) - set(PLANTED)
        if unknown:
            parser.error(f"--cases: none of {', '.join(PLANTED)}: {', '.join(unknown)}")
        usual = [name for name in PLANTED if not (arguments.perseus and name in NOT_OF_DEVICES)]
        simulated(arguments.runs, arguments.cases or usual, arguments.perseus, noisy=arguments.noisy)
    if arguments.real:
        os.environ["PYTHONPATH"] = os.pathsep.join(
            (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
        )
        cases = {name: CASES[name] for name in arguments.cases or CASES}
        real(arguments.runs, cases, arguments.seed, arguments.devices, arguments.record)
    if arguments.limit:
        real(arguments.runs, LIMIT, arguments.seed, arguments.devices, arguments.record)


if __name__ == "__main__":
    main()
