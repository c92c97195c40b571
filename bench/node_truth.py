"""Is ``ssbench-master attribute`` right about clusters with queues, of which the truth is known?

    python bench/node_truth.py [--runs N] [--seed S] [--load paced|saturated] [--kinds NAME ...] [--list]

Each run is a cluster of its own, simulated event by event: requests wait in a queue for each proxy, node,
disk and database, and lines have what a server's clock sees. Numbers of nodes, devices, proxies, workers and
requests are drawn, and whether the ring is fresh, weights differ, some objects are hot, load comes in bursts,
speed drifts, lines are lost, requests are retried. Nothing is shared with the simulation of the tests, so
that it has none of its assumptions. Users come at a rate (paced) or send the next when the last has ended
(saturated). One thing is wrong, or nothing: how often is it named, or one of several that nothing tells apart
(open), or a healthy one accused (wrong), or all said to be well though it was not (false all-clear)?
"""

from __future__ import annotations

import argparse
import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ssbench.cluster import finding_sentences
from ssbench.cluster.attribution_records import Attribution
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.joined_run import (
    NO_INDEX,
    OBJECT,
    UPDATE,
    Device,
    FileCount,
    JoinedLines,
    JoinedOperations,
    JoinedRun,
    Process,
    TakenResults,
)
from ssbench.scenario.operations import CREATE, DELETE, READ
from ssbench.statistics.confidence import wilson_interval

# -- Events ----------------------------------------------------------------------------------------

#: What a process of the simulation does next: use a server for some seconds, or wait for others.
Step = tuple[str, Any, Any]
Story = Generator[Step, None, None]


@dataclass
class Server:
    """Serves so many at once, the others wait in order."""

    capacity: int = 1
    busy: int = 0
    queue: deque[tuple[Task, float]] = field(default_factory=deque)


class Awaited:
    """Something that comes, and who waits for it."""

    def __init__(self) -> None:
        self.done = False
        self.waiting: list[Callable[[], None]] = []

    def come(self) -> None:
        self.done = True
        for call in self.waiting:
            call()


class Task(Awaited):
    """A story that is being told."""

    def __init__(self, story: Story) -> None:
        super().__init__()
        self.story = story


class Gathering(Awaited):
    """Comes when so many have arrived: the replicas of a write, before its data is sent."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self._missing = expected

    def arrive(self) -> None:
        self._missing -= 1
        if not self._missing:
            self.come()


class Clock:
    """Runs stories in the order of their events."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()

    def at(self, moment: float, call: Callable[[], object]) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), call))

    def start(self, story: Story) -> Task:
        task = Task(story)
        self._go_on(task)
        return task

    def run(self) -> None:
        while self._events:
            self.now, _, call = heapq.heappop(self._events)
            call()

    def _go_on(self, task: Task) -> None:
        try:
            kind, what, more = next(task.story)
        except StopIteration:
            task.come()
            return
        if kind == "sleep":
            self.at(self.now + what, lambda: self._go_on(task))
        elif kind == "use":
            if what.busy < what.capacity:
                self._serve(what, task, more)
            else:
                what.queue.append((task, more))
        else:  # all of some tasks, or as many as are enough and then so many seconds for the rest
            self._wait_for(task, what, *more)

    def _serve(self, server: Server, task: Task, seconds: float) -> None:
        server.busy += 1

        def end() -> None:
            server.busy -= 1
            if server.queue:
                self._serve(server, *server.queue.popleft())
            self._go_on(task)

        self.at(self.now + seconds, end)

    def _wait_for(self, task: Task, tasks: list[Awaited], enough: int, patience: float) -> None:
        state = {"gone": False, "late": False}

        def check() -> None:
            if state["gone"]:
                return
            done = sum(each.done for each in tasks)
            if done == len(tasks) or state["late"]:
                state["gone"] = True
                self._go_on(task)
            elif done == enough:
                self.at(self.now + patience, give_up)

        def give_up() -> None:
            state["late"] = True
            check()

        for each in tasks:
            if not each.done:
                each.waiting.append(check)
        check()


# -- A cluster -------------------------------------------------------------------------------------

#: What is wrong, as a kind of it: who, and what that does. Delays are in seconds.
KINDS = (
    "nothing",
    "hot object",
    "weights",
    "joins as all slows",
    "open 8 ms",
    "open 30 ms",
    "reads 15 ms",
    "commit 15 ms",
    "commit 40 ms",
    "before 30 ms",
    "third 30 ms",
    "part 60 ms",
    "two 30 ms",
    "node 30 ms",
    "worker 15 ms",
    "proxy 15 ms",
    "container server 50 ms",
    "few 150 ms",
    "large 50 ms",
    "container 60 ms",
    "fails",
)
HEALTHY = KINDS[:4]


@dataclass(frozen=True)
class Truth:
    """Who is to be named: names of devices, nodes and so on, any of which will do; all of ``every``."""

    every: tuple[frozenset[str], ...] = ()


class Cluster:
    """Draws a cluster and its load from a seed, and simulates a run."""

    def __init__(self, kind: str, *, saturated: bool, seed: int) -> None:
        self._random = random = np.random.default_rng([seed, KINDS.index(kind), saturated])
        self._kind, self._saturated = kind, saturated
        self._clock = Clock()
        self.nodes = int(random.integers(3, 7))
        per_node = int(random.integers(1, 5))
        self._device_node = [place // per_node for place in range(self.nodes * per_node)]
        self.devices = len(self._device_node)
        self._proxies = int(random.integers(2, 5))
        self._workers = int(random.integers(1, 4)) if kind != "worker 15 ms" else 3
        self._containers = 4
        self._requests = int(random.integers(900, 2200))
        self._disks = [Server(2) for _ in range(self.devices)]
        self._cpus = [Server(4) for _ in range(self.nodes)]
        self._proxy_cpus = [Server(2) for _ in range(self._proxies)]
        self._databases = [Server(4) for _ in range(self.nodes)]
        self._fresh = random.random() < 0.4
        self._ring = self._make_ring(random.random() < 0.3 or kind == "weights")
        self._objects = int(random.integers(100, 800))
        self._zipf = random.random() < 0.3 or kind == "hot object"
        self._lost = 0.004 if random.random() < 0.2 else 0.0
        self._drift = float(random.uniform(0, 0.4)) if random.random() < 0.4 else 0.0
        self._bursts = random.random() < 0.3
        self._retried = 0.01 if random.random() < 0.3 else 0.0
        self._noise = float(random.uniform(0.4, 0.8))
        self._sizes = np.exp(random.normal(10.5, 1.6, self._objects + self._requests)).clip(100, 8e6)
        self._placed = random.integers(0, len(self._ring), self._objects + self._requests)
        self._guilty = random.permutation(self.devices).tolist()
        self._rows: list[tuple[Any, ...]] = []
        self._lines: list[tuple[Any, ...]] = []
        self._length = 1.0

    def _make_ring(self, weighted: bool) -> list[list[int]]:
        """Return the devices of each partition, on different nodes."""
        random = self._random
        weights = random.choice([1.0, 2.0], self.devices) if weighted else np.ones(self.devices)
        if self._kind == "weights":
            weights[0] = 3.0
        used = np.zeros(self.devices)
        # A fresh ring has few sets of devices.
        sets = -(-self.devices // 3) if self._fresh and not weighted else 256
        parts = []
        for _ in range(sets):
            chosen: list[int] = []
            for place in np.argsort((used + random.random(self.devices)) / weights).tolist():
                nodes = {self._device_node[each] for each in chosen}
                if self._device_node[place] not in nodes and len(chosen) < 3:
                    chosen.append(place)
            used[chosen] += 1
            parts.append(chosen)
        return [parts[place % sets] for place in range(256)]

    # What is wrong

    def _delay(self, device: int, where: str, operation: str, size: float, worker: int) -> float:
        """Return how much longer a server takes at some place in a request (s)."""
        kind, guilty, moment = self._kind, self._guilty, self._clock.now / self._length
        chance = self._random.random()
        mine = device == guilty[0]
        on_node = self._device_node[device] == self._device_node[guilty[0]]
        rules = {
            "open 8 ms": (mine, "open", 0.008),
            "open 30 ms": (mine, "open", 0.03),
            "reads 15 ms": (mine and operation == "read", "open", 0.015),
            "commit 15 ms": (mine, "commit", 0.015),
            "commit 40 ms": (mine, "commit", 0.04),
            "before 30 ms": (mine, "before", 0.03),
            "third 30 ms": (mine and chance < 1 / 3, "open", 0.03),
            "part 60 ms": (mine and 0.3 < moment < 0.6, "open", 0.06),
            "two 30 ms": (device in guilty[:2], "open", 0.03),
            "node 30 ms": (on_node, "open", 0.03),
            "worker 15 ms": (on_node and not worker, "open", 0.015),
            "few 150 ms": (mine and chance < 0.04, "open", 0.15),
            "large 50 ms": (mine and size >= 200e3, "open", 0.05),
        }
        applies, place, seconds = rules.get(kind, (False, "", 0.0))
        return seconds if applies and place == where else 0.0

    @property
    def truth(self) -> Truth:
        guilty, kind = self._guilty, self._kind
        if kind in HEALTHY:
            return Truth()
        device, node = f"d{guilty[0]}", f"n{self._device_node[guilty[0]]}"
        alone = self._device_node.count(self._device_node[guilty[0]]) == 1
        # Two devices that are all of a node are that node.
        both = [node, f"{node}-0"] if self._devices_of(guilty[0]) == set(guilty[:2]) else []
        names = {
            "two 30 ms": [[f"d{each}", *both] for each in guilty[:2]],
            "node 30 ms": [
                [node, *([f"{node}-0"] if self._workers == 1 else []), *([device] if alone else [])]
            ],
            "worker 15 ms": [[f"{node}-0"]],
            "proxy 15 ms": [["p0"]],
            "container server 50 ms": [["c0"]],
            "container 60 ms": [["container 1"]],
        }
        of_device = [[device, node] if alone else [device]]
        return Truth(tuple(map(frozenset, names.get(kind, of_device))))

    def _devices_of(self, device: int) -> set[int]:
        """Return the devices of the node of one."""
        node = self._device_node[device]
        return {place for place, each in enumerate(self._device_node) if each == node}

    # Requests

    def _spread(self, median: float) -> float:
        slower = 1 + self._drift * np.sin(6.3 * self._clock.now / self._length)
        if self._kind == "joins as all slows" and self._clock.now > 0.35 * self._length:
            slower *= 1.6
        return float(self._random.lognormal(np.log(median), self._noise) * slower)

    def _serve_object(
        self, operation: int, device: int, kind: str, size: float, container: int, arrived: Gathering | None
    ) -> Story:
        """Be an object server with a request; its line has what its clock saw."""
        node, clock = self._device_node[device], self._clock
        worker = int(self._random.integers(self._workers))
        yield "sleep", self._spread(0.0004) + self._delay(device, "before", kind, size, worker), None
        began = clock.now
        yield "use", self._cpus[node], self._spread(0.0004)
        opening = {"read": 0.004, "write": 0.0015, "delete": 0.003}[kind]
        slow = self._delay(device, "open", kind, size, worker)
        if kind == "read":
            opening += size / 2e8
        # A slow worker sleeps itself; a slow disk is busy.
        yield "use", self._disks[device], self._spread(opening)
        yield "sleep", slow, None
        if arrived is not None:
            arrived.arrive()
            yield "all", [arrived], (1, 0.0)
            yield "sleep", size / 1e8, None
            yield "use", self._disks[device], self._spread(0.005)
            yield "sleep", self._delay(device, "commit", kind, size, worker), None
        if kind != "read":
            server = int(self._random.integers(min(3, self.nodes)))
            told = clock.now
            slow = 0.05 * (self._kind == "container server 50 ms" and server == 0)
            slow += 0.06 * (self._kind == "container 60 ms" and container == 1)
            yield "use", self._databases[server], self._spread(0.0012)
            yield "sleep", slow, None
            self._add_line(operation, ("c", server), clock.now - told, UPDATE, device, worker)
        self._add_line(operation, ("d", device), clock.now - began, OBJECT, NO_INDEX, worker)

    def _add_line(
        self, operation: int, who: tuple[str, int], seconds: float, of: int, sender: int, worker: int
    ) -> None:
        if self._random.random() >= self._lost:
            self._lines.append((operation, who, seconds, of, sender, worker))

    def _request(self, number: int) -> Story:
        random, clock = self._random, self._clock
        draw = random.random()
        kind = "read" if draw < 0.6 else "delete" if draw > 0.9 else "write"
        subject = self._objects + number
        if kind == "read":
            hot = random.random() < (0.25 if self._kind == "hot object" else 0.1)
            subject = 0 if self._zipf and hot else int(random.integers(self._objects))
        size = 3e6 if subject == 0 and self._zipf else float(self._sizes[subject])
        size = 0.0 if kind == "delete" else size
        container = subject % self._containers
        devices = [*self._ring[self._placed[subject]]]
        away = self._guilty[0]
        joined = self._kind == "joins as all slows" and clock.now < 0.35 * self._length
        if joined and away in devices:
            others = [each for each in range(self.devices) if each not in devices]
            devices[devices.index(away)] = int(random.choice(others)) if others else away
        proxy, began = int(random.integers(self._proxies)), clock.now
        yield "sleep", self._spread(0.0008), None
        at_proxy = clock.now
        slow = 0.015 * (self._kind == "proxy 15 ms" and proxy == 0)
        yield "use", self._proxy_cpus[proxy], self._spread(0.0015) + slow
        failed = False
        if kind == "read":
            device = int(random.choice(devices))
            failed = self._kind == "fails" and device == self._guilty[0] and random.random() < 0.15
            task = clock.start(self._serve_object(number, device, kind, size, container, None))
            yield "all", [task], (1, 0.0)
            yield "sleep", size / 1.2e8, None
        else:
            arrived = Gathering(len(devices)) if kind == "write" else None
            tasks = [
                clock.start(self._serve_object(number, device, kind, size, container, arrived))
                for device in devices
            ]
            yield "all", tasks, (2, 0.5)
        in_proxy = clock.now - at_proxy
        yield "sleep", self._spread(0.0004), None
        retries = int(random.random() < self._retried)
        self._rows.append((number, kind, size, clock.now - began, subject, retries, failed, proxy, in_proxy))
        self._rows[-1] += (clock.now, int(self._placed[subject]), container)

    def run(self) -> JoinedRun:
        """Simulate the run, and return what a join of results and logs would have."""
        clock, random = self._clock, self._random
        if self._saturated:
            self._length = self._requests * 0.012
            numbers = iter(range(self._requests))

            def user() -> Story:
                for number in numbers:
                    yield "all", [clock.start(self._request(number))], (1, 0.0)

            for _ in range(int(random.integers(12, 40))):
                clock.start(user())
        else:
            # Disks are busy for an eighth of the time, as a rule.
            rate = 0.16 * self.devices / 0.0125
            self._length = self._requests / rate
            moment = 0.0
            for number in range(self._requests):
                burst = 2.0 if self._bursts and int(8 * moment / self._length) % 4 == 1 else 1.0
                moment += float(random.exponential(1 / (rate * burst)))
                clock.at(moment, partial(clock.start, self._request(number)))
        clock.run()
        return self._join()

    def _join(self) -> JoinedRun:
        # The order of results is that in which operations ended.
        place_of = {row[0]: place for place, row in enumerate(self._rows)}
        columns = [*zip(*self._rows, strict=True)]
        code = np.array([{"read": READ, "write": CREATE, "delete": DELETE}[kind].code for kind in columns[1]])
        failed = np.array(columns[6])
        count = len(code)
        devices = [Device(f"n{node}", "object", f"d{place}") for place, node in enumerate(self._device_node)]
        servers = min(3, self.nodes)
        devices += [Device(f"n{place}", "container", f"c{place}") for place in range(servers)]
        processes = [
            Process(f"n{node}", server, f"n{node}-{worker}")
            for server, nodes in (("object", self.nodes), ("container", servers))
            for node in range(nodes)
            for worker in range(self._workers)
        ]
        rows = []
        for operation, (server, place), seconds, of, sender, worker in self._lines:
            node = self._device_node[place] if server == "d" else place
            device = place if server == "d" else self.devices + place
            process = (node if server == "d" else self.nodes + node) * self._workers + worker
            rows.append((place_of[operation], device, process, seconds, of, sender))
        lines = [np.array(each) for each in zip(*rows, strict=True)]
        partition = np.array(columns[10])
        operations = JoinedOperations(
            code.astype(np.uint8),
            np.array(columns[2], np.int64),
            np.where(failed, np.nan, np.array(columns[3])),
            np.array(columns[4], np.uint64),
            np.array(columns[5], np.int64),
            failed,
            1.7e9 + np.array(columns[9]),
            np.full(count, np.nan),
            *([np.array(columns[11], np.int64)] if "container" in JoinedOperations.__slots__ else []),
        )
        return JoinedRun(
            operations=operations,
            proxies=[f"p{place}" for place in range(self._proxies)],
            proxy_workers=[],
            devices=devices,
            processes=processes,
            partitions=[(0, place) for place in range(256)],
            proxy=np.array(columns[7], np.int32),
            proxy_worker=np.full(count, NO_INDEX, np.int32),
            proxy_seconds=np.array(columns[8]),
            policy=np.zeros(count, np.int32),
            lines=JoinedLines(
                lines[0].astype(np.int32),
                lines[1].astype(np.int32),
                lines[2].astype(np.int32),
                partition[lines[0]].astype(np.int32),
                lines[3],
                np.full(len(lines[0]), 200, np.int32),
                lines[4].astype(np.uint8),
                lines[5].astype(np.int32),
            ),
            containers=[f"container {place}" for place in range(self._containers)],
            duplicates=0,
            handoffs=np.zeros(count, np.int32),
            errors=Counter(),
            other_errors=Counter(),
            files=[FileCount("all.log", "all", len(lines[0]), len(lines[0]), 0, None, None)],
            without_id=0,
            began=None,
            ended=None,
            taken=TakenResults(count, count),
        )


# -- What is said of it ----------------------------------------------------------------------------

#: What says that somebody is at fault.
_NAMED = ("slow", "unfelt", "late", "fails", "507")


def _short(name: str) -> str:
    """Return the part of a name that the truth has."""
    words = name.removeprefix("container server's ").removeprefix("proxy ").split()
    if words[:1] == ["container"] and len(words) == 2:
        return name
    return next((word for word in words if word[:1] in "dncp" and word[1:2].isdigit()), name)


def judge(found: Attribution, truth: Truth) -> str:
    """Return ``right``, ``open``, ``wrong``, ``all-clear``, of a healthy cluster ``right`` or ``wrong``."""
    named: list[set[str]] = []
    perhaps: list[set[str]] = []
    for each in found.findings:
        if each.kind in _NAMED:
            named.append({_short(each.name)})
        elif each.kind == "one of":
            perhaps.append(set(map(_short, each.candidates)))
    known = frozenset().union(*truth.every)
    if any(not each & known for each in (*named, *perhaps)):
        return "wrong"
    if truth.every and all(any(each & wanted for each in named) for wanted in truth.every):
        return "right"
    if not truth.every:
        return "right"
    if named or perhaps:
        return "open"
    clear = finding_sentences.describe_attribution(found)[0].startswith(finding_sentences.ALL_CLEAR)
    return "all-clear" if clear else "open"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--load", choices=["paced", "saturated"], default="paced")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--list", action="store_true", help="print the answers that are not right")
    arguments = parser.parse_args()
    columns = ("right", "open", "wrong", "all-clear")
    print(f"{arguments.load:24}" + "".join(f"{name:>10}" for name in columns), flush=True)
    totals: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    most = 0
    for kind in arguments.kinds:
        counts: Counter[str] = Counter()
        for number in range(arguments.runs):
            cluster = Cluster(kind, saturated=arguments.load == "saturated", seed=arguments.seed + number)
            found = make_attribution(cluster.run())
            word = judge(found, cluster.truth)
            counts[word] += 1
            most = max(most, sum(each.kind in (*_NAMED, "one of") for each in found.findings))
            if arguments.list and word != "right":
                who = " and ".join("|".join(sorted(each)) for each in cluster.truth.every)
                print(f"  {arguments.seed + number} {word}: {who or 'nobody'}")
                print(f"    {finding_sentences.describe_attribution(found)[0][:170]}")
                for each in found.findings[1:]:
                    print(f"    {each!r:.200}", flush=True)
        totals[kind in HEALTHY] += counts
        print(f"{kind:24}" + "".join(f"{counts[name]:10}" for name in columns), flush=True)
    for is_healthy, counts in totals.items():
        if number := counts.total():
            title = "all healthy" if is_healthy else "all faults"
            print(f"{title:24}" + "".join(f"{counts[name]:10}" for name in columns))
            for name in columns:
                low, high = wilson_interval(counts[name] / number, number)
                print(f"  {name:12} {counts[name] / number:6.1%} ({low:.1%} to {high:.1%})")
    print(f"most findings of one run: {most}")


if __name__ == "__main__":
    main()
