"""What tests of whole runs share: scenario files, a stand-in store, what a stat file holds."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

import yaml
from fault_server import FaultServer, Reply, Request

from ssbench.base.errors import StatFileError
from ssbench.results.block import UNFINISHED_CAUSE, ResultBlock
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunSummary
from ssbench.scenario.names import MARK_PREFIX

#: A result of a run, but for failures, in a row of characters: however long it took.
ENDED = r"[._oO*|^@]"

#: A storage URL and a token of a run that asks for neither.
TOKEN = "AUTH_tk0123456789abcdefsecret"

#: Initial objects: so many that, with few users, no read is still under way when its object's turn
#: to be deleted comes.
INITIAL = 60


def write_scenario(folder: Path, without: Sequence[str] = (), **changes: object) -> Path:
    """A small scenario of one size class, with these changes, and without some keys."""
    scenario: dict[str, object] = {
        "name": "fleet",
        "sizes": [{"name": "tiny", "size_min": 100, "size_max": 200}],
        "initial_files": {"tiny": INITIAL},
        "operation_count": 200,
        "crud_profile": [3, 4, 2, 1],
        "user_count": 8,
        "container_base": "fleet",
        "container_count": 2,
        "container_concurrency": 2,
    }
    path = folder / "scenario.yaml"
    path.write_text(
        yaml.safe_dump({key: value for key, value in (scenario | changes).items() if key not in without})
    )
    return path


def is_object(request: Request) -> bool:
    """Whether a request is for an object."""
    return request.target.count("/") > 3


class Store:
    """The rule of a :class:`FaultServer` that keeps names and sizes; each answer takes ``delay`` seconds.

    Answers have ``etags`` where they are asked for. ``fault``, where set, answers instead. After :meth:`hold`
    a run goes no further than so many requests, however slow the test is that does something to it in the
    middle; ``held`` is how many wait.
    """

    def __init__(self, delay: float = 0.0, *, etags: bool = False) -> None:
        self.delay = delay
        self._etags = etags
        self.sizes: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._places = itertools.count()
        self._most = math.inf
        self._released = threading.Event()
        self.held = 0
        self.fault: Callable[[Request], Reply | None] = lambda _request: None

    def __call__(self, request: Request) -> Reply:
        if MARK_PREFIX in request.target:
            # Marks of runs are no operations; it remembers none.
            return Reply({"PUT": 201, "DELETE": 204}.get(request.method, 404))
        with self._lock:
            self.counts[request.method] += 1
            moves = is_object(request) and request.method != "HEAD"
            held = moves and next(self._places) >= self._most
            self.held += held
        if held:
            self._released.wait(60)
            with self._lock:
                self.held -= 1
        return self.fault(request) or self.answer(request)

    def hold(self, after: int) -> None:
        """Answer so many requests for objects, and any HEAD; those beyond wait for :meth:`release`."""
        self._most = after

    def wait_for_held(self, count: int) -> None:
        """Wait until as many requests are held: those of all users, where it is so many."""
        wait_until(lambda: self.held == count, f"{count} requests that are held")

    def release(self) -> None:
        """Answer the requests that are held, and all others."""
        self._released.set()

    def answer(self, request: Request) -> Reply:
        """Answer as a store without faults does."""
        size = self.sizes.get(request.target)
        status = 404 if size is None else 200
        delay = self.delay if is_object(request) else 0.0
        match request.method:
            case "PUT":
                self.sizes[request.target] = int(request.headers.get("content-length", 0))
                return Reply(201, delay=delay, etag=str if self._etags else None)
            case "DELETE":
                self.sizes.pop(request.target, None)
                return Reply(404 if size is None else 204, delay=delay)
        if request.method == "GET" and size is None and not is_object(request):
            return self._list(request)
        body = b"x" * (size or 0)
        headers = (("ETag", hashlib.md5(body).hexdigest()),) if self._etags else ()
        return Reply(status, headers=headers, body=body, delay=delay)

    def _list(self, request: Request) -> Reply:
        """Answer a listing of a container as Swift does, in pages."""
        path, _, query = request.target.partition("?")
        asked = dict(parse_qsl(query))
        if path not in self.sizes:
            return Reply(404)
        rows = sorted(
            (name.removeprefix(f"{path}/"), size)
            for name, size in list(self.sizes.items())
            if name.startswith(f"{path}/")
        )
        page = [{"name": name, "bytes": size} for name, size in rows if name > asked.get("marker", "")]
        return Reply(200, body=json.dumps(page[: int(asked.get("limit", 10000))]).encode())

    def objects(self) -> set[str]:
        return {name for name in list(self.sizes) if name.count("/") > 3}


@contextlib.contextmanager
def store(delay: float = 0.0) -> Iterator[tuple[Store, list[str]]]:
    """A running stand-in store, and the options of run-scenario for it."""
    rule = Store(delay)
    with FaultServer(rule=rule) as server:
        try:
            yield rule, ["-S", server.url, "-T", TOKEN]
        finally:
            rule.release()


@dataclass
class Outcome:
    """What a stat file holds. ``causes`` has None for successes."""

    causes: Counter[str | None] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    workers: Counter[int] = field(default_factory=Counter)
    retried: Counter[str] = field(default_factory=Counter)
    details: set[str] = field(default_factory=set)
    options: dict[str, object] = field(default_factory=dict)
    summary: RunSummary | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.causes.total()

    def settled(self, users: int = 8) -> set[str | None]:
        """The causes of a run that was interrupted, but for what was under way then and did not end in time.

        An operation that a user has under way at the interrupt gets two seconds. On a busy machine these may
        be over before the store, the worker or the master has had its turn.
        """
        assert self.causes[UNFINISHED_CAUSE] <= users
        return set(self.causes) - {UNFINISHED_CAUSE}


def outcome(path: Path) -> Outcome:
    """Read a stat file."""
    results = open_results(path)
    found, operations = Outcome(), results.run.scenario.operation_table
    for block in results.blocks():
        failures = block.failures
        for row in range(len(block)):
            failure = failures.get(row)
            found.causes[failure.cause if failure else None] += 1
            found.operations[operations[int(block.operation[row])].name] += 1
            if failure is None or failure.cause is None:
                found.workers[int(block.worker[row])] += 1
            if failure is not None:
                found.retried.update(failure.retried)
                found.details.add(failure.detail)
    found.options = results.run.options
    found.summary = results.summary
    found.warnings = results.warnings
    return found


def results_so_far(path: Path) -> int:
    """How many results can be read of a stat file that is still written, 0 when none."""
    try:
        return outcome(path).count
    except (StatFileError, OSError):
        return 0


def wait_for_results_of(worker_id: int, count: int, path: Path) -> None:
    """Wait until a stat file that is still written has more than so many successes of a worker."""
    wait_until(
        lambda: results_so_far(path) and outcome(path).workers[worker_id] > count,
        f"{count} results of worker {worker_id}",
    )


def wait_until(condition: Callable[[], object], what: str, patience: float = 60.0) -> None:
    """Wait for something that has no event of its own."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def children(pid: int) -> list[int]:
    """The child processes of one."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found.extend(map(int, task.read_text().split()))
    return found


def listens(port: int) -> bool:
    """Whether somebody listens on a port of 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class After:
    """A sink that calls a function once, when so many results have come."""

    def __init__(self, count: int, call: Callable[[], object]) -> None:
        self._left = count
        self._call = call

    def add(self, block: ResultBlock) -> None:
        self._left -= len(block)
        if self._left <= 0 < self._left + len(block):
            self._call()

    def tick(self, now: float) -> None:
        pass

    def end(self, summary: RunSummary) -> None:
        pass


def worker_pids() -> set[int]:
    """The process ids of the local workers of this process."""
    return {
        pid
        for pid in children(os.getpid())
        if b"ssbench.cli.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    }
