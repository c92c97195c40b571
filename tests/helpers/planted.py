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

from ssbench.reports import ReportOptions, text
from ssbench.results import NOT_MEASURED, Failure, ResultRow, RunDescription, RunSummary
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics import Collector, make_statistics

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
    free = [(0.01 * user / users, user) for user in range(users)]
    done: list[tuple[float, float, Met]] = []
    while free[0][0] < seconds:
        sent, user = heapq.heappop(free)
        met = store(len(done), sent)
        done.append((sent + met.seconds, sent, met))
        heapq.heappush(free, (sent + met.seconds + met.idle, user))
    done.sort(key=lambda each: each[0])
    return report_of(done, users, seconds)


def report_of(done: Sequence[tuple[float, float, Met]], users: int, seconds: float) -> str:
    """Return the report of operations: (ended, sent, what it met) each, in the order of their ends."""
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
    return text.report(make_statistics(collector, facts), ReportOptions())


def printed(report: str) -> dict[str, float]:
    """Read the figures back: ``READ ops/s``, ``READ last p99``, ``HTTP 503 n``, ... and those of the table.

    What is printed as ``-`` is NaN.
    """
    figures = re.split(r"\n\n(?=\S)", report.partition("\nFigures\n")[2])[0]
    found: dict[str, float] = {}
    for paragraph in figures.split("\n\n"):
        head, *lines = (line.strip() for line in paragraph.splitlines())
        if lines and lines[-1].startswith("Left out"):
            numbers = re.findall(r"(?<= )(?:-(?= ms)|[\d.]+)", lines.pop())
            found |= dict(
                zip(("left out", "left out median ms", "left out max ms"), map(_number, numbers), strict=True)
            )
        if head.startswith("Window"):
            found |= _window(" ".join([head, *lines]))
        elif head.startswith("Stalls"):
            found["stalls"] = float(head.split()[1].rstrip(","))
            for number, line in enumerate(lines):
                stall = re.fullmatch(
                    r"([\d.]+) s from ([\d.]+) s on((?:; .* stalled for [\d.]+ s of it)?)", line
                )
                assert stall, line
                own = map(float, re.findall(r"stalled for ([\d.]+) s", stall[3]))
                found[f"stall {number} own"] = max(own, default=0.0)
                found |= {f"stall {number} s": float(stall[1]), f"stall {number} from": float(stall[2])}
        elif head.startswith(("Sent again", "Deletes that found")):
            names = {"Sent": "reconnect", "Deletes": "vanished"}
            found |= {names[line.split()[0]]: float(line.rpartition(":")[2]) for line in (head, *lines)}
        else:
            found |= _table(head, lines)
    return found | _old_table(report)


def _window(text_: str) -> dict[str, float]:
    patterns = {
        "window": r"Window: ([\d.]+)",
        "drain": r"Drain: ([\d.]+)",
        "drained": r"succeeded: (\d+)",
        "drained failed": r"failed: (\d+)",
        "busy %": r"busy ([\d.]+)%",
    }
    matches = {name: re.search(pattern, text_) for name, pattern in patterns.items()}
    return {name: float(match[1]) for name, match in matches.items() if match}


def _table(head: str, lines: Sequence[str]) -> dict[str, float]:
    """Read a table whose columns have the names of its head, by the names of its rows."""
    if head.startswith("Failures"):
        return _failures(lines)
    if head.startswith("Load generator"):
        names = ("CPU %", "lag p50", "lag p99", "lag max")
        return {
            f"{line[:34].strip()} {name}": _number(value)
            for line in lines
            if line[34:35] == " "
            for name, value in zip(names, line[34:].split(), strict=True)
        }
    if head.startswith("Latency"):
        names = head.removeprefix("Latency in ms").split()
    elif head.startswith("Part of latencies"):
        names = re.split(r"  +", head)[1:]
    else:
        names = re.split(r"  +", re.sub(r"^Whole seconds: \d+|^Within the window", "", head).strip())
        names = [f"{names[place - 1]} at" if name == "at s" else name for place, name in enumerate(names)]
    found: dict[str, float] = {}
    for line in lines:
        label, *values = line.rsplit(maxsplit=len(names))
        assert len(values) == len(names), (head, line)
        row = " ".join(label.split())
        found |= {f"{row} {name}": _number(value) for name, value in zip(names, values, strict=True)}
    return found


def _failures(lines: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in lines:
        cause, values = line[:24].strip(), line[24:].split()
        names = ("n", "%", "ms", "max ms", "status")
        found |= {f"{cause} {name}": _number(value) for name, value in zip(names, values, strict=False)}
    return found


def _number(text_: str) -> float:
    if text_.endswith("s"):  # a time too long for milliseconds
        return 1000 * float(text_[:-1])
    return math.nan if text_ == "-" else float(text_)


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
