"""How evenly work is spread, and what a slow or a stopped worker costs the others.

    python bench/fleet.py [--rounds N] [--seconds S] [--workers W] [--service MS] [--json FILE]

Real masters and workers over a server of some lines that answers each request after a fixed time, so
that what the workers do together is known beforehand and the machine is not what limits it. Cases, by
turns:

all      W workers of equal speed
without  the last one is missing
half     the last one runs half of the time only: stopped and continued every 100 ms
stopped  the last one is stopped for good in the middle: the longest time in which none of the others
         completed anything, and how many operations are lost with it

"others" is what the other workers do a second, compared with the same workers in "without".
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from saving import save
from served import served
from spread import spread
from watched import Watched
from yardsticks import free_port

from ssbench.results.block import LOST_CAUSE
from ssbench.results.reading import open_results

CONCURRENCY = 8
CASES = ("all", "without", "half", "stopped")
_PERIOD = 0.2  # of running and being stopped, seconds

SCENARIO = {
    "name": "Fleet",
    "sizes": [{"name": "tiny", "size_min": 100, "size_max": 100}],
    "initial_files": {"tiny": 100},
    "operation_count": 1,
    "crud_profile": [0, 1, 0, 0],
    "user_count": 1,
    "container_count": 2,
}


@dataclass(frozen=True)
class Ran:
    """Operations a second of each worker, in order of id; the longest gap of the others; lost ones."""

    rates: list[float]
    gap: float
    lost: int

    @property
    def others(self) -> float:
        """Of the workers that are in every case."""
        return sum(self.rates[:-1])


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            method = head.split(b" ", 1)[0]
            if method == b"PUT":
                length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
                await reader.readexactly(int(length or 0))
            await asyncio.sleep(delay if method == b"GET" else 0)
            body = b"x" * 100 if method == b"GET" else b""
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def _serve(port: int, delay: float) -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda r, w: _answer(r, w, delay), "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(main())


@contextmanager
def half_speed(worker: Watched) -> Iterator[None]:
    """Let it run half of the time only."""
    enough = threading.Event()

    def toggle() -> None:
        while not enough.wait(_PERIOD / 2):
            worker.process.send_signal(signal.SIGSTOP)
            enough.wait(_PERIOD / 2)
            worker.process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=toggle)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
        worker.process.send_signal(signal.SIGCONT)


def ran(case: str, count: int, seconds: float, url: str) -> Ran:
    """One run of one case."""
    here = count - 1 if case == "without" else count
    sockets = [f"--zmq-work-port={free_port()}", f"--zmq-results-port={free_port()}"]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path, stats = folder / "scenario.json", folder / "run.stat.gz"
        path.write_text(json.dumps(SCENARIO))
        workers = []
        for worker_id in range(here):
            arguments = [*sockets, f"--concurrency={CONCURRENCY}", worker_id]
            workers.append(Watched(folder, f"worker{worker_id}", "ssbench.cli.worker", arguments))
            stack.callback(workers[-1].end)
        command = ["run-scenario", "-f", path, "-s", stats, "-r", seconds, "-S", url, "-T", "token"]
        command += ["-u", CONCURRENCY * here, "--expect-workers", here, "--zmq-bind-ip=127.0.0.1", *sockets]
        master = Watched(folder, "master", "ssbench.cli.master", command)
        stack.callback(master.end)
        master.wait_for("Starting the benchmark", 60)
        if case == "half":
            stack.enter_context(half_speed(workers[-1]))
        if case == "stopped":
            time.sleep(seconds / 3)
            workers[-1].process.send_signal(signal.SIGSTOP)
        if master.process.wait(seconds + 60) > 1:
            sys.exit(master.said)
        return read(stats, count)


def read(stats: Path, count: int) -> Ran:
    """What a run's stat file says."""
    blocks = list(open_results(stats).blocks())
    completed = np.concatenate([block.completed for block in blocks])
    failed = np.concatenate([block.failed for block in blocks])
    worker = np.concatenate([block.worker for block in blocks])
    lost = sum(failure.cause == LOST_CAUSE for block in blocks for failure in block.failures.values())
    duration = completed.max() - completed.min()
    rates = [float(((worker == worker_id) & ~failed).sum() / duration) for worker_id in range(count)]
    others = np.sort(completed[(worker < count - 1) & ~failed])
    return Ran(rates, float(np.diff(others).max(initial=0.0)), lost)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--service", type=float, default=20.0, help="milliseconds of a request (%(default)g)")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "fleet.json")
    options = parser.parse_args()
    if options.workers < 2:
        parser.error("--workers: one is compared with the others: expected 2 or more")
    results: dict[str, list[Ran]] = {case: [] for case in CASES}
    with served(_serve, options.service / 1000) as server:
        url = f"{server}/v1/AUTH_bench"
        for _ in range(options.rounds):
            for case in CASES:
                results[case].append(ran(case, options.workers, options.seconds, url))
    print(
        f"{'case':8}  {'operations/s of each worker':36}  {'others/without':20}  {'longest gap, s':22}  lost"
    )
    for case, rans in results.items():
        each = zip(*(one.rates for one in rans), strict=True)
        rates = "  ".join(f"{statistics.median(rates):7.1f}" for rates in each)
        ratios = [one.others / other.others for one, other in zip(rans, results["without"], strict=True)]
        gaps = spread([one.gap for one in rans], middle=".2f", ends=".2f")
        lost = spread([float(one.lost) for one in rans], middle=".0f", ends=".0f")
        print(f"{case:8}  {rates:36}  {spread(ratios, middle='.3f', ends='.3f'):20}  {gaps:22}  {lost}")
    cases = {case: [asdict(one) for one in rans] for case, rans in results.items()}
    save(options.json, cases=cases)


if __name__ == "__main__":
    main()
