"""Stores of which it is known what a report of them has to say: each a rule and the arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from planted import CREATE, DELETE, READ, UPDATE, Met, Store, play, printed

USERS = 8
MS = 1e-3


@dataclass(frozen=True)
class Planted:
    """A store, how long :data:`USERS` users use it, and the figures that follow."""

    name: str
    seconds: float
    store: Store
    figures: Mapping[str, float]

    @cached_property
    def report(self) -> str:
        """The report of the run."""
        return play(self.store, USERS, self.seconds)

    def compare(self) -> list[tuple[str, float, float, bool]]:
        """Return (figure, planted, printed, whether that is near enough) of each figure."""
        found = printed(self.report)
        return [
            (name, planted, found.get(name, math.inf), near(name, planted, found.get(name, math.inf)))
            for name, planted in self.figures.items()
        ]


def near(name: str, planted: float, found: float) -> bool:
    """Whether a figure is within 1 %, of tails within 5 %; - (NaN) has to be just that."""
    if math.isnan(planted) or math.isnan(found):
        return math.isnan(planted) and math.isnan(found)
    tail = name.rpartition(" ")[2] in {"p95", "p99", "p99.9", "p99.99", "max"}
    return math.isclose(planted, found, rel_tol=0.05 if tail else 0.01, abs_tol=1e-9)


def every(number: int, special: Met, usual: Met) -> Store:
    """One of so many operations is special; the first one is not."""
    return lambda place, _: special if place % number == number - 1 else usual


def mean(number: int, special: float, usual: float) -> float:
    """The mean of values of which one in so many is special."""
    return (special + (number - 1) * usual) / number


def _stall(_place: int, sent: float) -> Met:
    return Met(8.0 - sent + 5 * MS if 6.9945 < sent < 8.0 else 5 * MS)


def _short_stall(_place: int, sent: float) -> Met:
    return Met(2.0 - sent + 40 * MS if 0.955 < sent < 2.0 else 40 * MS)


def _stalls(_place: int, sent: float) -> Met:
    """A second in every five."""
    return Met(5.0 - sent % 5 + 40 * MS if 3.955 < sent % 5 < 5.0 else 40 * MS)


def _outage(_place: int, sent: float) -> Met:
    return Met(1.0, cause="connect timeout", status=-1) if sent < 4.5 else Met(10 * MS)


def _mix(place: int, _sent: float) -> Met:
    operation = (CREATE, READ, UPDATE, DELETE)[place % 4]
    return Met((40, 10, 30, 20)[place % 4] * MS, operation, size=0 if operation == DELETE else 10_000)


def _dead_from_15(_place: int, sent: float) -> Met:
    return Met(10 * MS) if sent < 15 - 5 * MS else Met(60.0)


_HUNG = (7 * 100 * 20 + 12) / 20
_LOST = USERS / mean(50, 0.5, 20 * MS)

STORES = (
    Planted(
        "constant",
        20,
        lambda *_: Met(20 * MS, first=15 * MS, size=50_000),
        {
            "window": 20.0,
            "busy %": 100.0,
            "drained": 8,
            "TOTAL requests/s": 400.0,
            "ALL ops/s": 400.0,
            "READ ops/s": 400.0,
            "READ MB/s": 20.0,
            "READ failed": 0,
            "ops median": 400.0,
            "MB median": 20.0,
            "READ first p50": 15.0,
            "READ last n": 8000,
            "READ last p50": 20.0,
            "READ last p99.9": math.nan,
            "READ last p99": 20.0,
            "READ last max": 20.0,
        },
    ),
    Planted(
        "microseconds",
        1,
        lambda *_: Met(0.150 * MS),
        {"ALL ops/s": USERS / 0.000150, "READ last p50": 0.150, "READ last p99.9": 0.150},
    ),
    Planted(
        "trickling body",
        60,
        lambda *_: Met(0.4, first=10 * MS, size=1_000_000),
        {
            "ALL ops/s": 20.0,
            "ALL MB/s": 20.0,
            "READ first p90": 10.0,
            "READ last p90": 400.0,
            "READ last p99.9": math.nan,
        },
    ),
    Planted(
        "stall of a second",
        20,
        _stall,
        {
            "ALL ops/s": USERS / (5 * MS) * 19 / 20,
            "ops median": 1600.0,
            "ops slowest": 0,
            "ops slowest at": 7,
            "stalls": 1,
            "stall 0 s": 1.0,
            "stall 0 from": 7.0,
            "READ last p99": 5.0,
            "READ last max": 1005.0,
            "busy %": 100.0,
        },
    ),
    Planted(
        "errors, then success",
        100,
        every(10, Met(320 * MS, retried={"HTTP 503": 2}, pausing=280 * MS), Met(20 * MS)),
        {
            "ALL ops/s": USERS / mean(10, 320 * MS, 20 * MS),
            "ALL failed": 0,
            "TOTAL retries %": 20.0,
            "ALL pauses % of ops": 10.0,
            "ALL pauses % of time": 100 * 28 / 50,
            "ALL pauses mean ms": 280.0,
            "READ pauses max ms": 280.0,
            "READ last p50": 20.0,
            "READ last p95": 320.0,
            "READ last max": 320.0,
        },
    ),
    Planted(
        "missing object",
        20,
        every(20, Met(5 * MS, cause="HTTP 404", status=404), Met(20 * MS)),
        {
            "ALL ops/s": USERS / mean(20, 5 * MS, 20 * MS) * 0.95,
            "ALL failed/s": USERS / mean(20, 5 * MS, 20 * MS) * 0.05,
            "ALL in %": 5.0,
            "HTTP 404 %": 5.0,
            "HTTP 404 ms": 5.0,
            "HTTP 404 status": 404,
            "READ last p90": 20.0,
        },
    ),
    Planted(
        "hung read",
        20,
        lambda place, _: Met(100.0) if place == 100 else Met(10 * MS),
        {
            "TOTAL requests/s": _HUNG,
            "ALL ops/s": _HUNG,
            "window": 20.0,
            "drain": 80.12,
            "READ last p99": 10.0,
            "READ last max": 100_000.0,
            "busy %": 100.0,
            "ops median": 700.0,
        },
    ),
    Planted(
        "outage at the start",
        20,
        _outage,
        {
            "window": 20.0,
            "TOTAL requests/s": USERS / (10 * MS) * 15 / 20,
            "ALL ops/s": USERS / (10 * MS) * 15 / 20,
            "ALL failed/s": USERS * 5 / 20,
            "connect timeout n": 40,
            "connect timeout ms": 1000.0,
            "connect timeout max ms": 1000.0,
            "stalls": 5,
            "stall 0 s": 1.0,
            "stall 4 s": 0.991,
            "ops median": 800.0,
            "ops slowest": 0,
            "READ last p99": 10.0,
        },
    ),
    Planted(
        "store that dies at 15 s",
        20,
        _dead_from_15,
        {
            "window": 20.0,
            "ALL ops/s": USERS / (10 * MS) * 15 / 20,
            "busy %": 100.0,
            "stalls": 1,
            "stall 0 s": 5.0,
            "stall 0 from": 15.0,
            "drain": 55.0,
            "drained": 8,
        },
    ),
    Planted(
        "resets of kept connections",
        20,
        every(10, Met(21 * MS, resent=1), Met(20 * MS)),
        {
            "ALL ops/s": USERS / mean(10, 21 * MS, 20 * MS),
            "reconnect": USERS / mean(10, 21 * MS, 20 * MS) * 20 / 10,
            "TOTAL retries": 0,
            "ALL failed": 0,
        },
    ),
    Planted(
        "slow class",
        60,
        lambda place, _: Met((10, 200)[place % 2] * MS, READ, place % 2, size=(1_000, 100_000)[place % 2]),
        {
            "ALL ops/s": USERS / (105 * MS),
            "ALL MB/s": USERS / (105 * MS) * 0.0505,
            "READ last small n": USERS / (105 * MS) * 60 / 2,
            "READ last small p99": 10.0,
            "READ last big p50": 200.0,
            "READ last p75": 200.0,
        },
    ),
    Planted(
        "lost answers",
        200,
        every(50, Met(0.5, cause="read timeout", status=-1), Met(20 * MS)),
        {
            "ALL ops/s": _LOST * 0.98,
            "ALL failed/s": _LOST * 0.02,
            "ALL in %": 2.0,
            "read timeout %": 2.0,
            "read timeout ms": 500.0,
            "READ last max": 20.0,
            "busy %": 100.0,
        },
    ),
    Planted(
        "wrong sizes",
        20,
        every(4, Met(10 * MS, cause="wrong size", size=2_000), Met(30 * MS, size=4_000)),
        {
            "ALL ops/s": 240.0,
            "ALL MB/s": 0.96,
            "ALL failed/s": 80.0,
            "ALL in %": 25.0,
            "wrong size ms": 10.0,
            "wrong size status": 200,
        },
    ),
    Planted(
        "new connection each time",
        20,
        lambda *_: Met(90 * MS, connecting=81 * MS),
        {
            "ALL ops/s": USERS / (90 * MS),
            "busy %": 100.0,
            "READ last p50": 90.0,
            "ALL connecting % of ops": 100.0,
            "ALL connecting % of time": 90.0,
            "ALL connecting mean ms": 81.0,
            "ALL connecting max ms": 81.0,
        },
    ),
    Planted(
        "users that are idle",
        20,
        lambda *_: Met(10 * MS, idle=30 * MS),
        {"ALL ops/s": 200.0, "busy %": 25.0, "READ last p50": 10.0},
    ),
    Planted(
        "stall in a short run",
        3,
        _short_stall,
        {
            "ALL ops/s": USERS * (24 + 25) / 3,
            "READ last max": 1080.0,
            "stalls": 1,
            "stall 0 s": 2.04 - 0.96875,  # from the end of the last user's 24th operation on
            "stall 0 from": 0.96875,
        },
    ),
    Planted(
        "stalls again and again",
        20,
        _stalls,
        {
            "stalls": 4,
            "stall 0 from": 3.96875,
            "stall 0 s": 1.07125,
            "stall 2 from": 13.96,
            "stall 2 s": 1.08,
        },
    ),
    Planted(
        "every tenth takes six seconds",  # no stalls, although often no operation ends for half a second
        60,
        every(10, Met(6.0), Met(5 * MS)),
        {"stalls": math.inf, "READ last p75": 5.0, "READ last p95": 6000.0},
    ),
    Planted(
        "deletes whose answers are lost",
        20,
        every(
            20,
            Met(300 * MS, DELETE, size=0, status=404, retried={"reset": 1}, pausing=50 * MS),
            Met(20 * MS, DELETE, size=0, status=204),
        ),
        {
            "ALL ops/s": USERS / mean(20, 300 * MS, 20 * MS),
            "ALL failed": 0,
            "vanished": USERS / mean(20, 300 * MS, 20 * MS) * 20 / 20,
            "DELETE pauses mean ms": 50.0,
        },
    ),
    Planted(
        "one delete among reads",
        20,
        lambda place, _: Met(20 * MS, DELETE if place == 500 else READ),
        {"DELETE ops/s": 0.05, "ALL ops/s": 400.0, "DELETE last max": 20.0, "DELETE last p50": math.nan},
    ),
    Planted(
        "mix",
        20,
        _mix,
        {
            "CREATE ops/s": 80.0,
            "READ ops/s": 80.0,
            "UPDATE ops/s": 80.0,
            "DELETE ops/s": 80.0,
            "ALL ops/s": 320.0,
            "CREATE MB/s": 0.8,
            "DELETE MB/s": 0.0,
            "ALL MB/s": 2.4,
            "CREATE last p50": 40.0,
            "READ last p50": 10.0,
            "UPDATE last p50": 30.0,
            "DELETE last p50": 20.0,
        },
    ),
    Planted(
        "slow tail",
        60,
        every(50, Met(100 * MS), Met(5 * MS)),
        {
            "ALL ops/s": USERS / mean(50, 100 * MS, 5 * MS),
            "READ last p50": 5.0,
            "READ last p95": 5.0,
            "READ last p99": 100.0,
            "READ last p99.9": 100.0,
        },
    ),
)
