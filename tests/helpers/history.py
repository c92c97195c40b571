"""A store that logs every request with an id of its own, and a check of that log against the results.

The store is on one host with the master, and takes time of one monotonic clock, so that no step of a wall
clock gets into the comparison. What it does wrong is drawn from a seed.
"""

from __future__ import annotations

import io
import json
import math
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote

from fault_server import FaultServer, Reply, Request

from ssbench.results.block import LOST_CAUSE, UNFINISHED_CAUSE
from ssbench.results.reading import open_results
from ssbench.results.result_export import write_json_lines
from ssbench.scenario.names import MARK_PREFIX
from ssbench.scenario.operations import OPERATIONS

#: How far apart (seconds) a time of the store and one of the run may be although they are the same: what the
#: clocks of worker and master are compared by takes the way of a message.
TOLERANCE = 0.1

#: What the master says of an operation whose end it does not know.
UNKNOWN_END = frozenset({LOST_CAUSE, UNFINISHED_CAUSE})

_READ = frozenset({"GET", "HEAD"})


@dataclass(slots=True)
class Entry:
    """A request in the log. ``status`` is what it came to in the store, whether or not that was answered."""

    trans_id: str
    method: str
    name: str
    began: float
    ended: float
    status: int
    answered: bool


@dataclass(slots=True)
class Row:
    """A result of the run; ``extra`` is how many requests it made beyond the last one."""

    operation: str
    name: str
    trans_id: str | None
    error: str | None
    started: float | None
    completed: float
    extra: int

    @property
    def method(self) -> str:
        return OPERATIONS.named(self.operation).method

    @property
    def plain(self) -> bool:
        """Whether it was one request, which succeeded."""
        return self.error is None and not self.extra


@dataclass
class Findings:
    """What is wrong, and what was seen that a fault explains."""

    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class LoggingStore:
    """The rule of a :class:`FaultServer`: objects by name, each answer after some milliseconds.

    ``rate`` is the share of requests for objects that something goes wrong with: an answer 503, a connection
    that breaks before the request is carried out or after it, a second until it is. ``late`` requests take so
    long that the client has given up before they are carried out.
    """

    def __init__(self, seed: int, rate: float = 0.0, late: float = 1.0) -> None:
        self.log: list[Entry] = []
        #: What turns monotonic times into those of the wall clock at the start.
        self.epoch = time.time() - time.monotonic()
        self.rate = rate
        self._late = late
        self._numbers = random.Random(seed)
        self._sizes: dict[str, int] = {}
        #: When the last write of each object began: as in Swift, one that began earlier changes nothing.
        self._written: dict[str, float] = {}
        self._lock = threading.Lock()
        self._count = 0
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Let no request wait any more."""
        self._stopping.set()

    def __call__(self, request: Request) -> Reply:
        parts = unquote(request.target).split("/", 4)
        if len(parts) < 5 or MARK_PREFIX in request.target:
            return Reply(201 if request.method in {"PUT", "DELETE"} else 404 if len(parts) == 5 else 204)
        with self._lock:
            self._count += 1
            trans_id = f"tx{self._count:021x}-000000000000"
            seconds = self._numbers.uniform(0.005, 0.05)
            fault = self._numbers.choice(("503", "before", "after", "late"))
            if self._numbers.random() >= self.rate:
                fault = ""
        entry = Entry(trans_id, request.method, "/".join(parts[3:]), time.monotonic(), 0.0, 0, answered=True)
        self._stopping.wait(self._late if fault == "late" else seconds)
        return self._carry_out(entry, fault, int(request.headers.get("content-length", 0)))

    def _carry_out(self, entry: Entry, fault: str, size: int) -> Reply:
        with self._lock:
            there = self._sizes.get(entry.name)
            overtaken = self._written.get(entry.name, 0.0) > entry.began
            if fault in {"503", "before"}:
                entry.status = 503
            elif overtaken and entry.method in {"PUT", "DELETE"}:
                entry.status = 202
            elif entry.method == "PUT":
                self._sizes[entry.name], entry.status = size, 201
                self._written[entry.name] = entry.began
            elif there is None:
                entry.status = 404
            elif entry.method == "DELETE":
                entry.status = 204
                del self._sizes[entry.name]
                self._written[entry.name] = entry.began
            else:
                entry.status = 200
            entry.answered = fault not in {"before", "after"}
            entry.ended = time.monotonic()
            self.log.append(entry)
        if not entry.answered:
            return Reply(cut=0, reset=True)
        body = b"x" * (there or 0) if entry.status == 200 else b""
        return Reply(entry.status, body, (("X-Trans-Id", entry.trans_id),))


class _Forgetful(list[Request]):
    """Keeps nothing: the log is the store's."""

    def append(self, _request: Request) -> None:
        pass


class PlantedSwift:
    """A running :class:`LoggingStore`. A context manager."""

    def __init__(self, seed: int, rate: float = 0.0, late: float = 1.0) -> None:
        self.store = LoggingStore(seed, rate, late)
        self._server = FaultServer(rule=self.store, keep_bodies=False, requests=_Forgetful())
        self._stack = ExitStack()

    def __enter__(self) -> PlantedSwift:
        self._stack.enter_context(self._server)
        self._stack.callback(self.store.stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def credentials(self) -> list[str]:
        """The options of ssbench-master for it."""
        return ["-S", self._server.url, "-T", "token"]


def rows_of(path: Path) -> list[Row]:
    """Read the results of a run, as its export tells them."""
    out = io.BytesIO()
    write_json_lines(open_results(path), out)
    rows = []
    for line in out.getvalue().splitlines():
        data = json.loads(line)
        rows.append(
            Row(
                data["operation"],
                f"{data['container']}/{data['object']}",
                data.get("trans_id"),
                data.get("error"),
                data.get("started_at"),
                data["completed_at"],
                max(data.get("retries") or 0, (data.get("attempts") or 1) - 1),
            )
        )
    return rows


def check(
    log: Sequence[Entry], rows: Sequence[Row], epoch: float, *, twice: int = 0, taken_back: int = 0
) -> Findings:
    """Compare what a store did with what a run says of it.

    ``epoch`` turns times of the log into those of the rows. ``twice`` is how many operations may have been
    done twice, because workers were lost that had begun them, and ``taken_back`` how many the run took back
    at its end: a worker that was cut off then may have begun them.
    """
    found = Findings()
    claimed = _claims(log, rows, epoch, found)
    _check_order(log, claimed, found)
    if rows:
        _check_unclaimed(log, rows, claimed, epoch, (twice, taken_back), found)
    return found


def _claims(log: Sequence[Entry], rows: Sequence[Row], epoch: float, found: Findings) -> dict[str, Row]:
    """Find the request of each result that names one; what it says of it has to be so."""
    by_id = {entry.trans_id: entry for entry in log}
    deleted = {entry.name for entry in log if entry.method == "DELETE" and entry.status == 204}
    claimed: dict[str, Row] = {}
    for row in rows:
        found.counts["results"] += 1
        if row.trans_id is None:
            if row.error is None:
                found.wrong.append(f"{row.operation} of {row.name}: succeeded without a transaction id")
            continue
        entry = by_id.get(row.trans_id)
        if entry is None or (entry.method, entry.name) != (row.method, row.name):
            found.wrong.append(f"{row.operation} of {row.name}: recorded but never done ({row.trans_id})")
            continue
        if row.trans_id in claimed:
            found.wrong.append(f"{row.operation} of {row.name}: recorded twice ({row.trans_id})")
        claimed[row.trans_id] = row
        if row.error is None and entry.status >= 300:
            if row.method != "DELETE" or entry.status != 404:
                found.wrong.append(f"{row.operation} of {row.name}: a success, the store said {entry.status}")
            elif entry.name not in deleted:
                found.wrong.append(f"{row.operation} of {row.name}: a success, and nothing was there before")
        elif row.error == "HTTP 404" and entry.name not in deleted:
            found.wrong.append(f"{row.operation} of {row.name}: not found, and it was never deleted")
        if row.plain and row.started is not None:
            early = row.started - (entry.began + epoch)
            late = (entry.ended + epoch) - row.completed
            if early > TOLERANCE or late > TOLERANCE:
                found.wrong.append(
                    f"{row.operation} of {row.name}: times outside the store's by {max(early, late):.3f} s"
                )
    return claimed


def _check_order(log: Iterable[Entry], claimed: Mapping[str, Row], found: Findings) -> None:
    """No operation is beside a write of its object, or after its delete, unless a fault explains that."""
    by_name: dict[str, list[Entry]] = defaultdict(list)
    for entry in log:
        if entry.method != "HEAD":
            by_name[entry.name].append(entry)
    for name, entries in by_name.items():
        entries.sort(key=lambda entry: entry.began)
        deleted = False
        for place, entry in enumerate(entries):
            row = claimed.get(entry.trans_id)
            if deleted and row is not None:
                found.wrong.append(f"{row.operation} of {name}: after its delete")
            for other in entries[place + 1 :]:
                if other.began >= entry.ended:
                    break
                if {entry.method, other.method} <= _READ:
                    continue
                rows = [row, claimed.get(other.trans_id)]
                if all(each is not None and each.plain for each in rows):
                    found.wrong.append(f"{name}: {entry.method} and {other.method} overlap")
                else:
                    found.counts["overlaps with what failed or was done again"] += 1
            deleted |= entry.method == "DELETE" and row is not None and row.plain


def _check_unclaimed(
    log: Iterable[Entry],
    rows: Sequence[Row],
    claimed: Mapping[str, Row],
    epoch: float,
    limits: tuple[int, int],
    found: Findings,
) -> None:
    """Each request that no result names is an attempt of one that was made again, or of one that was lost.

    ``limits`` are how many may have been done twice, and how many were taken back at the end.
    """
    twice, taken_back = limits
    begin = min(row.started for row in rows if row.started is not None) - epoch
    end = max(row.completed for row in rows) - epoch
    more: Counter[tuple[str, str]] = Counter()
    unknown: set[tuple[str, str]] = set()
    for row in rows:
        key = row.method, row.name
        more[key] += row.extra + (row.trans_id is None)
        if row.error in UNKNOWN_END:
            unknown.add(key)
    again = 0
    last: dict[tuple[str, str], float] = {}
    used: dict[str, float] = {}
    for entry in log:
        if entry.trans_id in claimed:
            key = entry.method, entry.name
            last[key] = max(last.get(key, entry.began), entry.began)
            used[entry.name] = max(used.get(entry.name, entry.began), entry.began)
    for entry in log:
        # What is before the first operation, and any HEAD, belongs to the initial uploads.
        if entry.trans_id in claimed or entry.began < begin or entry.began > end or entry.method == "HEAD":
            continue
        key = entry.method, entry.name
        if more[key] > 0 or key in unknown:
            more[key] -= 1
            found.counts["attempts before the last, or of lost operations"] += 1
        elif again < twice and last.get(key, -math.inf) >= entry.began:
            again += 1
        elif taken_back > 0 and (entry.method == "GET" or used.get(entry.name, -math.inf) < entry.began):
            # Nothing else is done with an object until its write has ended.
            taken_back -= 1
            found.counts["of operations taken back at the end"] += 1
        elif again < twice and key in last:
            # A lost worker does it first, and another one then; not the other way round.
            found.wrong.append(f"{entry.method} of {entry.name}: done once more after another worker did it")
        else:
            answered = "" if entry.answered else ", not answered"
            found.wrong.append(
                f"{entry.method} of {entry.name} at {entry.began - begin:.3f} s, which took"
                f" {entry.ended - entry.began:.3f} s: {entry.status}{answered}, and in no result"
            )
    found.counts["done twice"] = again
