"""How often what the load generator does itself, or what a store drops, is told wrongly.

Meters, connections and servers are real; only stalls and latencies are simulated.
"""

from __future__ import annotations

import random
import sys
import time
from functools import partial
from pathlib import Path

import gevent
from error_rates import ErrorRate

from ssbench.fleet.wire import lag_limit
from ssbench.run.result_rows import STALLED_SHARE
from ssbench.store.contract import JobResult
from ssbench.store.http.client import ClientSettings
from ssbench.worker import lag_meter
from ssbench.worker.lag_meter import LAG_TICK_SECONDS, LagMeter

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from fault_server import FaultServer, Reply
from fresh_client import FreshClient

#: A worker is called overloaded from a tenth of the median latency on: here of 20 ms.
_LATE_SECONDS = 0.002

_TICKS = 15
_REQUESTS = 60


def _called_late(runs: int) -> tuple[int, int]:
    """Meters that are started anew, as for each run, while the process gets no CPU.

    What is counted from a wrong moment makes each tick late, also the one that is least so on a busy machine.
    """
    make, wrong = lag_meter._make_kernel_timer, 0
    meter = LagMeter(gevent.get_hub().loop)
    for seed in range(runs):
        pause = random.Random(seed).uniform(0, 0.03)

        def make_slowly(seconds: float, pause: float = pause) -> tuple[int, float] | None:
            time.sleep(pause / 2)
            made = make(seconds)
            time.sleep(pause / 2)
            return made

        lag_meter._make_kernel_timer = make_slowly
        meter.start()
        gevent.sleep(_TICKS * LAG_TICK_SECONDS)
        counts, *_ = meter.take()
        meter.stop()
        wrong += lag_limit(next((place for place, count in enumerate(counts) if count), 0)) > _LATE_SECONDS
    lag_meter._make_kernel_timer = make
    return wrong, runs


def _left_out_wrongly(seconds: float, stamped: bool, runs: int) -> tuple[int, int]:
    """Operations of so many seconds of a worker that stalls for a third of the time, 0.1 to 0.3 s each.

    Wrong is to leave out a latency to which a stall added less than the share from which it counts, or to
    keep one to which it added more. Where the kernel tells when answers came, nothing is added. What came
    within a tick of the end of a stall, or where the kernel does not tell, may have waited for all of it.
    """
    chance, meter = random.Random(7), LagMeter(gevent.get_hub().loop)
    gaps, at = [], 0.0
    while at < 20:
        begin = at + chance.uniform(0.2, 0.6)
        at = begin + chance.uniform(0.1, 0.3)
        gaps.append((begin, at))
        meter._due = begin
        meter._note_gap(at)
    wrong = 0
    for number in range(100 * runs):
        sent = chance.uniform(5, 10)
        came = sent + seconds * chance.lognormvariate(0, 0.3)
        held_until = next((end for begin, end in gaps if begin <= came < end), came)
        read = came if stamped else held_until
        took = read - sent
        (marked,) = meter.mark([JobResult(number, took, took, read)])
        rare = marked.rare if isinstance(marked, JobResult) else None
        left_out = rare is not None and rare.held >= STALLED_SHARE * took
        wrong += left_out != (read - came >= STALLED_SHARE * took)
    return wrong, 100 * runs


def _drops_not_counted(share: float, reset: bool, runs: int) -> tuple[int, int]:
    """Requests on a kept connection, of which the server drops a share: not each is a retry."""
    wrong = 0
    for seed in range(runs):
        chance, client = random.Random(seed), FreshClient(ClientSettings())
        try:
            with FaultServer() as server:
                dropped = retries = 0
                client.request(f"{server.url}/v1/a", "DELETE", "c", "o")
                for _ in range(_REQUESTS):
                    if chance.random() < share:
                        server.script(Reply(reset=True) if reset else Reply(cut=0))
                        dropped += 1
                    retries += client.request(f"{server.url}/v1/a", "PUT", "c", "o", size=10).retries
        finally:
            client.close()
        wrong += retries != dropped
    return wrong, runs


def _stale_counted(runs: int) -> tuple[int, int]:
    """Requests that find a connection, at rest for a minute, reset by the time-out of the server."""
    client, wrong = FreshClient(ClientSettings()), 0
    try:
        with FaultServer() as server:
            client.request(f"{server.url}/v1/a", "DELETE", "c", "o")
            for _ in range(runs):
                client.rest(60)
                server.script(Reply(reset=True))
                outcome = client.request(f"{server.url}/v1/a", "PUT", "c", "o", size=10)
                wrong += bool(outcome.retries)
    finally:
        client.close()
    return wrong, runs


ROWS = (
    ErrorRate("meter started anew: each tick is late by a tenth of 20 ms", _called_late, 0.05),
    *(
        ErrorRate(
            f"stalls, answers after {seconds:g} s{', when by the kernel' * stamped}: left out, or kept",
            partial(_left_out_wrongly, seconds, stamped),
            0.15 if seconds < 1 else 0.05,
        )
        for seconds in (0.05, 0.5, 3.0)
        for stamped in (False, True)
    ),
    *(
        ErrorRate(
            f"{share:.0%} of requests dropped{' by a reset' * reset}: not each is a retry",
            partial(_drops_not_counted, share, reset),
            0.0,
        )
        for share in (0.03, 0.2)
        for reset in (False, True)
    ),
    ErrorRate("connection reset at rest: counted as a retry", _stale_counted, 0.0),
)
