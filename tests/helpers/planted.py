"""Stores whose behaviour is planted, at the level of results: what users meet, operation by operation.

:func:`play` lets users in a closed loop meet a store and returns the report that a run with these
results prints; :func:`printed` reads its figures back, so that each can be held against arithmetic.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from result_rows import block

from ssbench.reports import run_text
from ssbench.reports.writing import ReportOptions
from ssbench.results.block import Failure, ResultRow
from ssbench.results.result_fields import NOT_MEASURED
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import make_statistics

START = 1_700_000_000.0
CLASSES = ("small", "big")
WEIGHTS = dict.fromkeys(("create", "read", "update", "delete"), 1.0)
CREATE, READ, UPDATE, DELETE = range(4)


@dataclass(frozen=True)
class Met:
    """What one operation meets: how long it takes, and how it ends (``cause``: it fails).

    ``idle`` is the time that its user then takes to send the next one; ``connecting`` and ``pausing`` are
    parts of ``seconds``.
    """

    seconds: float
    operation: int = READ
    size_class: int = 0
    first: float = NOT_MEASURED
    size: int = 1000
    cause: str | None = None
    status: int = 200
    retried: dict[str, int] = field(default_factory=dict)
    resent: int = 0
    idle: float = 0.0
    connecting: float = 0.0
    pausing: float = 0.0


#: (number of the operation, seconds since the start at which it is sent) -> what it meets.
Store = Callable[[int, float], Met]


@dataclass
class Facts:
    """What the statistics are told of the run."""

    run: RunDescription
    summary: RunSummary
    size_classes: Sequence[str] = CLASSES
    warnings: Sequence[str] = ()
    current: bool = True


def play(store: Store, users: int, seconds: float) -> str:
    """Return the report of a run of ``users`` for some seconds; they begin evenly over the first 10 ms."""
    return run_text.make_sections_report(
        statistics_of(operations(store, users, seconds), users, seconds), ReportOptions()
    )


def operations(store: Store, users: int, seconds: float) -> list[tuple[float, float, Met]]:
    """Return the operations of such a run: (ended, sent, what it met) each, in the order of their ends."""
    free = [(0.01 * user / users, user) for user in range(users)]
    done: list[tuple[float, float, Met]] = []
    while free[0][0] < seconds:
        sent, user = heapq.heappop(free)
        met = store(len(done), sent)
        done.append((sent + met.seconds, sent, met))
        heapq.heappush(free, (sent + met.seconds + met.idle, user))
    done.sort(key=lambda each: each[0])
    return done


def statistics_of(done: Sequence[tuple[float, float, Met]], users: int, seconds: float) -> RunStatistics:
    """Return the numbers of operations: (ended, sent, what it met) each, in the order of their ends."""
    rows: list[ResultRow] = []
    failures: dict[int, Failure] = {}
    rare: dict[str, dict[int, float]] = {"started": {}, "attempts": {}, "connecting": {}, "pausing": {}}
    for place, (ended, sent, met) in enumerate(done):
        retries = sum(met.retried.values())
        last = NOT_MEASURED if met.cause else ended - sent
        size = 0 if met.cause else met.size
        rows.append(
            (
                met.operation,
                met.size_class,
                1,
                0,
                1,
                size,
                met.first,
                last,
                START + ended,
                met.status,
                retries,
            )
        )
        rare["attempts"][place] = retries + met.resent + 1
        rare["started"][place] = START + sent
        rare["connecting"][place] = met.connecting
        rare["pausing"][place] = met.pausing
        if met.cause or met.retried:
            failures[place] = Failure(met.cause, "", met.retried)
    classes = tuple(SizeClass(name, 1000, 1000, 1, WEIGHTS) for name in CLASSES)
    scenario = Scenario("planted", classes, user_count=users, run_seconds=seconds)
    collector = Collector()
    for start in range(0, len(rows), 1000):
        part = range(start, min(start + 1000, len(rows)))
        collector.add(
            block(
                [rows[place] for place in part],
                [f"tx{place}" for place in part],
                {place - start: failures[place] for place in part if place in failures},
                rare={
                    name: {place - start: values[place] for place in part} for name, values in rare.items()
                },
            )
        )
    facts = Facts(
        RunDescription(scenario, "1"), RunSummary(ended=START + seconds, sent_until=START + seconds)
    )
    return make_statistics(collector, facts)


def printed(report: str) -> dict[str, float]:
    """Read the figures back: ``READ ops/s``, ``READ last p99``, ``HTTP 503 n``, ... and those of the table.

    What is printed as ``-`` is NaN.
    """
    found: dict[str, float] = {}
    for paragraph in _section(report, "Figures") + _section(report, "Errors"):
        head, *lines = (line.strip() for line in paragraph.splitlines())
        if head.startswith("Window"):
            found |= _window(" ".join([head, *lines]))
        elif re.match("Stalls|Sent again|Deletes that found|Left out|Standard error", head):
            found |= _remarks(" ".join([head, *lines]))
            for number, (line, own) in enumerate(_STALL.findall(" ".join(lines))):
                seconds, start = re.findall(r"[\d.]+", line)
                stalled = map(float, re.findall(r"stalled for ([\d.]+) s", own))
                found |= {f"stall {number} s": float(seconds), f"stall {number} from": float(start)}
                found[f"stall {number} own"] = max(stalled, default=0.0)
        elif not head.startswith(("cause of retries", "no object for")) and "first transaction" not in head:
            found |= _table(head, lines)
    return found | _old_table(report)


#: A stall, and what follows where the load generator stalled too.
_STALL = re.compile(r"([\d.]+ s from [\d.]+ s on)((?:; [a-z0-9 ]+ stalled for [\d.]+ s of it)*)")


def _section(report: str, title: str) -> list[str]:
    _, found, after = report.partition(f"\n{title}\n")
    return re.split(r"\n\n(?=\S)", after)[0].split("\n\n") if found else []


def _remarks(text_: str) -> dict[str, float]:
    patterns = {
        "stalls": r"Stalls: (\d+)",
        "reconnect": r"\(reconnect\): (\d+)",
        "vanished": r"\(successes\): (\d+)",
        "left out": r"Left out, .*?: (\d+)",
        "left out median ms": r"Left out, .*?\(median ([\d.]+|-)",
        "left out max ms": r"Left out, .*? max ([\d.]+) ms",
    }
    return _numbers(patterns, text_)


def _window(text_: str) -> dict[str, float]:
    patterns = {
        "window": r"Window: ([\d.]+)",
        "drain": r"Drain: ([\d.]+)",
        "drained": r"succeeded: (\d+)",
        "drained failed": r"failed: (\d+)",
        "busy %": r"busy ([\d.]+) %",
    }
    return _numbers(patterns, text_)


def _numbers(patterns: dict[str, str], text_: str) -> dict[str, float]:
    matches = {name: re.search(pattern, text_) for name, pattern in patterns.items()}
    return {name: _number(match[1]) for name, match in matches.items() if match}


def _table(head: str, lines: Sequence[str]) -> dict[str, float]:
    """Read a table whose columns have the names of its head, by the names of its rows."""
    if head.startswith("cause"):
        return _failures(lines)
    names = re.split(r"  +", head)[1:]
    if head.startswith("Latency"):
        names = head.removeprefix("Latency in ms").split()
    elif head.startswith("Load generator"):
        names = ["CPU %", "lag p50", "lag p99", "lag max"]
    elif head.startswith("Whole seconds"):
        names = [f"{names[place - 1]} at" if name == "at s" else name for place, name in enumerate(names)]
    found: dict[str, float] = {}
    for line in lines:
        label, *values = line.rsplit(maxsplit=len(names))
        assert len(values) == len(names), (head, line)
        found |= {f"{label} {name}": _number(value) for name, value in zip(names, values, strict=True)}
    return found


def _failures(lines: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in lines:
        cause, *values = re.split(r"  +", line)
        names = ("n", "%", "ms", "max ms", "status")
        known = [value for value in values if re.fullmatch(r"[\d.,]+s?|-", value)]
        found |= {f"{cause} {name}": _number(value) for name, value in zip(names, known, strict=False)}
    return found


def _number(text_: str) -> float:
    if text_.endswith("s"):  # a time too long for milliseconds
        return 1000 * float(text_[:-1])
    if text_.startswith("<"):  # half of it is off by no more than rounding is
        return float(text_[1:]) / 2
    return math.nan if text_ == "-" else float(text_.replace(",", ""))


def _old_table(report: str) -> dict[str, float]:
    pattern = (
        r"^(TOTAL|[A-Z]+)\n +Count: +(\d+) \( *(\d+) error; *(\d+) retries: *([\d.]+)%\)"
        r"  Average requests per second: *([\d.]+|inf)$"
    )
    found: dict[str, float] = {}
    for name, *values in re.findall(pattern, report, re.MULTILINE):
        names = ("count", "errors", "retries", "retries %", "requests/s")
        found |= {f"{name} {what}": float(value) for what, value in zip(names, values, strict=True)}
    return found
