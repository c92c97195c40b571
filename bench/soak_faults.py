"""What the soak test does to its fleet: programs that are started and ended, faults dealt at random."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from watched import Watched

from ssbench.fleet.wire import LOST_AFTER
from ssbench.local_swift import LocalSwift

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from history import PlantedSwift
from processes import free_ports
from relay import DOWN, UP, Relay

CONCURRENCY = 4  # of a worker
NETWORK_TIMEOUT = 3.0

SIZES = {"small": (100, 10_000), "large": (200_000, 400_000)}
INITIAL = {"small": 40, "large": 10}


def scenario(base: str) -> dict[str, object]:
    """As many creates as deletes, so that the number of objects goes nowhere."""
    return {
        "name": "Soak",
        "sizes": [{"name": name, "size_min": low, "size_max": high} for name, (low, high) in SIZES.items()],
        "initial_files": INITIAL,
        "operation_count": 1,
        "crud_profile": [2, 4, 2, 2],
        "user_count": 1,
        "container_base": base,
        "container_count": 4,
        "container_concurrency": 2,
    }


class Fleet:
    """Masters and workers over one pair of ports and one Swift, if any. Ended with the stack."""

    def __init__(
        self,
        folder: Path,
        workers: int,
        swift: LocalSwift | None,
        stack: ExitStack,
        planted: PlantedSwift | None = None,
    ) -> None:
        self.port = swift.port if swift else 0  # of no connection at all
        self._planted = planted
        self.everybody: list[Watched] = []
        self.workers: dict[int, Watched] = {}
        self.swift = swift
        self._folder = folder
        self._stack = stack
        #: Nobody else takes them before a master begins, or between two of them.
        self._ports = free_ports()
        #: How each worker but number 0 reaches the two ports, so that either can be cut off.
        self.links = {
            worker_id: tuple(stack.enter_context(Relay(port)) for port in self._ports)
            for worker_id in range(1, workers)
        }
        for worker_id in range(workers):
            self.start_worker(worker_id)

    def _start(self, name: str, module: str, *arguments: object) -> Watched:
        program = Watched(self._folder, f"{len(self.everybody)}-{name}", module, arguments)
        self.everybody.append(program)
        self._stack.callback(program.end)
        return program

    @property
    def _sockets(self) -> list[str]:
        return [f"--zmq-work-port={self._ports[0]}", f"--zmq-results-port={self._ports[1]}"]

    def start_worker(self, worker_id: int) -> None:
        links = self.links.get(worker_id)
        work, results = (link.port for link in links) if links else self._ports
        arguments = [f"--zmq-work-port={work}", f"--zmq-results-port={results}"]
        arguments += [f"--concurrency={CONCURRENCY}", str(worker_id)]
        self.workers[worker_id] = self._start(f"worker{worker_id}", "ssbench.cli.worker", *arguments)

    def run_arguments(self, base: str, seed: int, *more: object) -> tuple[list[object], Path]:
        """The command line of a run, and its stat file."""
        path, stats = self._folder / f"{base}.json", self._folder / f"{base}.stat.gz"
        path.write_text(json.dumps(scenario(base)))
        count = len(self.workers)
        arguments: list[object] = ["run-scenario", "-f", path, "-s", stats, "--seed", seed, *self._sockets]
        arguments += ["-u", CONCURRENCY * count, "--expect-workers", count, "--zmq-bind-ip=127.0.0.1"]
        arguments += ["--network-timeout", NETWORK_TIMEOUT, *(self._credentials or ["--noop"]), *more]
        return arguments, stats

    def start_run(self, base: str, seed: int, *more: object) -> tuple[Watched, Path]:
        arguments, stats = self.run_arguments(base, seed, *more)
        return self._start(f"master-{base}", "ssbench.cli.master", *arguments), stats

    def start_into_pipe(self, base: str, seed: int, *more: object) -> tuple[subprocess.Popen[bytes], Path]:
        """Start a run whose output and log go into one pipe, as with ``2>&1 | head``."""
        arguments, stats = self.run_arguments(base, seed, *more)
        process = subprocess.Popen(
            [sys.executable, "-m", "ssbench.cli.master", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process, stats

    @property
    def _credentials(self) -> list[str]:
        swift = self.swift
        if self._planted is not None:
            return self._planted.credentials
        return ["-A", swift.auth_url, "-U", swift.user, "-K", swift.key] if swift else []

    def master(self, command: str, *arguments: object) -> Watched:
        """Another sub-command of ssbench-master, to its end (a minute at most)."""
        if command == "kill-workers":
            arguments = ("--zmq-bind-ip=127.0.0.1", *self._sockets)
        else:
            arguments = (*arguments, *self._credentials)
        program = self._start(command, "ssbench.cli.master", command, *arguments)
        program.process.wait(60)
        return program


class Faults:
    """What goes wrong and when: kinds are dealt from a deck, so that each has its turn."""

    def __init__(self, numbers: random.Random, fleet: Fleet) -> None:
        self.counts: Counter[str] = Counter()
        self._numbers = numbers
        self._fleet = fleet
        self._deck: list[Callable[[float], bool]] = []
        #: Whether each kind has had its turn.
        self.all_dealt = False
        self._next = 0.0
        #: What ends faults that last: (when, what to do), by worker id, or -1 for the server.
        self._ends: dict[int, tuple[float, Callable[[], object]]] = {}

    def step(self, now: float, *, server: bool) -> None:
        """Begin and end what is due; faults of the server only when told so."""
        for which, (when, end) in list(self._ends.items()):
            if now >= when:
                del self._ends[which]
                end()
        if now < self._next:
            return
        self._next = now + self._numbers.uniform(0.2, 2.5)
        if not self._deck:
            self._deck = [self._kill, self._kill, self._stop, self._stop, self._block, self._gap, self._cut]
            if self._fleet.swift is not None:
                self._deck += [self._restart, self._stall]
            self._numbers.shuffle(self._deck)
        # What cannot happen now keeps its turn: each kind comes in each round.
        for fault in reversed(self._deck):
            if (server or fault not in (self._restart, self._stall)) and fault(now):
                self._deck.remove(fault)
                self.all_dealt = self.all_dealt or not self._deck
                break

    def heal(self) -> None:
        """End all faults that last."""
        for _, end in self._ends.values():
            end()
        self._ends.clear()

    def _victim(self, first: int) -> int | None:
        """A worker that runs, when another one does too; one that is still starting does not."""
        able = [
            worker_id
            for worker_id, worker in self._fleet.workers.items()
            if worker_id not in self._ends and "waiting for a master" in worker.said
        ]
        candidates = [worker_id for worker_id in able if worker_id >= first]
        return self._numbers.choice(candidates) if len(able) > 1 and candidates else None

    def _kill(self, now: float) -> bool:
        if (victim := self._victim(1)) is None:
            return False
        self.counts["workers killed and started"] += 1
        self._fleet.workers[victim].end()
        again = now + self._numbers.choice([0.0, self._numbers.uniform(0.0, 8.0)])
        self._ends[victim] = (again, lambda: self._fleet.start_worker(victim))
        return True

    def _stop(self, now: float) -> bool:
        if (victim := self._victim(0)) is None:
            return False
        self.counts["workers stopped and continued"] += 1
        process = self._fleet.workers[victim].process
        process.send_signal(signal.SIGSTOP)
        # About half of them for less than counts as lost.
        until = now + self._numbers.uniform(0.1, 2 * LOST_AFTER)
        self._ends[victim] = (until, lambda: process.send_signal(signal.SIGCONT))
        return True

    def _restart(self, _now: float) -> bool:
        if self._fleet.swift is None or -1 in self._ends:
            return False
        self.counts["proxy restarted"] += 1
        self._fleet.swift.proxy.restart()
        return True

    def _stall(self, now: float) -> bool:
        if self._fleet.swift is None or -1 in self._ends:
            return False
        self.counts["proxy stopped and continued"] += 1
        self._fleet.swift.proxy.stop()
        until = now + self._numbers.uniform(0.1, 1.5 * NETWORK_TIMEOUT)
        self._ends[-1] = (until, self._fleet.swift.proxy.resume)
        return True

    def _block(self, now: float) -> bool:
        """Hold back what comes through the work port of a worker, about half of the time until it is lost."""
        if (victim := self._victim(1)) is None:
            return False
        self.counts["work ports blocked"] += 1
        link = self._fleet.links[victim][0]
        link.block()
        self._ends[victim] = (now + self._numbers.uniform(0.1, 2 * LOST_AFTER), link.unblock)
        return True

    def _cut(self, now: float) -> bool:
        """Hold back what comes through one of the ports of a worker, in one direction only."""
        if (victim := self._victim(1)) is None:
            return False
        self.counts["links cut in one direction"] += 1
        link = self._numbers.choice(self._fleet.links[victim])
        link.block(self._numbers.choice((UP, DOWN)))
        self._ends[victim] = (now + self._numbers.uniform(0.1, 2 * LOST_AFTER), link.unblock)
        return True

    def _gap(self, now: float) -> bool:
        """Drop the link of a worker for 2 s, which costs nothing."""
        if (victim := self._victim(1)) is None:
            return False
        self.counts["links dropped for 2 s"] += 1
        links = self._fleet.links[victim]
        for link in links:
            link.block()

        def unblock() -> None:
            for link in links:
                link.unblock()

        self._ends[victim] = (now + 2.0, unblock)
        return True
