"""How fast operations are drawn, handed out and taken back when none touches Swift (--noop).

    python bench/dispatch.py [--rounds N] [--seconds S] [--json FILE] [--only WORD ...]

Each case runs the real program with defaults (report and stat file included, standard error to a
file) and then bare zmq messages of the very same sizes and number in flight, by turns; operations a
second are what the report says. "uneven" compares user counts that are no multiple of the batch size
or of the workers with the even one beside them. "memory" runs 10 million operations and shows how
the master's memory grows from the first million on. README.rst says how to read the table.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import spread as spreads
import zmq
from program import Ran, run
from saving import save
from yardsticks import free_port

from ssbench.fleet import wire
from ssbench.store.contract import JobResult

SCENARIO: dict[str, object] = {
    "name": "Dispatch",
    "sizes": [
        {"name": "tiny", "size_min": 4096, "size_max": 8192},
        {"name": "small", "size_min": 20000, "size_max": 40000},
    ],
    "initial_files": {"tiny": 700, "small": 300},
    "operation_count": 1,
    "crud_profile": [10, 75, 10, 5],
    "user_count": 1,
    "container_count": 20,
}


spread = partial(spreads.spread, middle="9,.4g", ends=",.4g")


class Case(NamedTuple):
    users: int
    batch: int
    workers: int = 2

    @property
    def name(self) -> str:
        return f"u{self.users}-b{self.batch}-w{self.workers}"

    @property
    def expected(self) -> int:
        """Operations a second to choose a length of the run by."""
        return 50_000 if self.batch == 1 else 100_000 if self.batch < 32 else 400_000


CASES = [Case(24, 1), Case(24, 8), Case(512, 64)]
#: A user count, and the even one next to it.
UNEVEN = [
    (Case(23, 8), Case(24, 8)),
    (Case(25, 8), Case(24, 8)),
    (Case(25, 1), Case(24, 1)),
    (Case(13, 8), Case(16, 8)),
    (Case(500, 64), Case(512, 64)),
]


def ours(case: Case, seconds: float, operations: int | None = None) -> Ran:
    operations = operations or int(case.expected * seconds)
    return run(
        [
            "--noop",
            f"--user-count={case.users}",
            f"--op-count={operations}",
            f"--batch-size={case.batch}",
            f"--workers={case.workers}",
        ],
        SCENARIO,
    )


def messages(batch: int) -> tuple[bytes, bytes]:
    """Jobs and results as they are sent in the middle of such a run."""
    first = 1_000_000
    jobs = [(first + place, 1, place % 2, place % 20, 500 + place, 0) for place in range(batch)]
    results = [JobResult(job[0], 0.0, 0.0, 12345.678) for job in jobs]
    parameters = wire.RunParameters(run_id=2**61, noop=True, size_classes=["tiny", "small"])
    answer = wire.JobResults(2**61, 1, 2**61, 12345.678, 0, results)
    batch_packed = wire.pack_message(wire.JobBatch(first, jobs))
    reference = wire.pack_reference(wire.pack_parameters(parameters), parameters)
    return reference + batch_packed, wire.pack_message(answer)


def _echo(work: int, back: int, answer: bytes) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    receive, send = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    receive.connect(f"tcp://127.0.0.1:{work}")
    send.connect(f"tcp://127.0.0.1:{back}")
    while True:
        receive.recv()
        send.send(answer)


def bare(case: Case, seconds: float) -> float:
    """Operations a second of messages that nobody makes or reads, as many in flight as in ours."""
    jobs, answer = messages(case.batch)
    work, back = free_port(), free_port()
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    send, receive = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    send.bind(f"tcp://127.0.0.1:{work}")
    receive.bind(f"tcp://127.0.0.1:{back}")
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_echo, args=(work, back, answer)) for _ in range(case.workers)]
    try:
        for worker in workers:
            worker.start()
        time.sleep(1.0)  # until both are there: without, one of them would get all
        for _ in range(max(1, case.users // case.batch)):
            send.send(jobs)
        began = now = time.monotonic()
        count = 0
        while now < began + seconds:
            for _ in range(1000):
                receive.recv()
                send.send(jobs)
            count += 1000
            now = time.monotonic()
        return count * case.batch / (now - began)
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
        context.destroy(linger=0)


def compare(case: Case, rounds: int, seconds: float) -> dict[str, Any]:
    ran, bare_rates = [], []
    for _ in range(rounds):
        ran.append(ours(case, seconds))
        bare_rates.append(bare(case, seconds))
    ratios = [one / our.rate for our, one in zip(ran, bare_rates, strict=True)]
    print(
        f"{case.name:12} ours {spread([one.rate for one in ran], 1e-3)} k/s"
        f"   bare zmq {spread(bare_rates, 1e-3)} k/s   bare/ours {spread(ratios)}"
        f"   CPU us/op: master {spread([one.master_cpu for one in ran], 1e6)}"
        f" workers {spread([one.worker_cpu for one in ran], 1e6)}",
        flush=True,
    )
    return {
        "case": case.name,
        "ours": [one.rate for one in ran],
        "bare": bare_rates,
        "bare_to_ours": ratios,
        "master_cpu": [one.master_cpu for one in ran],
        "worker_cpu": [one.worker_cpu for one in ran],
    }


def compare_uneven(case: Case, even: Case, rounds: int, seconds: float) -> dict[str, Any]:
    uneven_rates, even_rates = [], []
    for _ in range(rounds):
        uneven_rates.append(ours(case, seconds).rate)
        even_rates.append(ours(even, seconds).rate)
    ratios = [one / other for one, other in zip(uneven_rates, even_rates, strict=True)]
    print(
        f"{case.name:12} {spread(uneven_rates, 1e-3)} k/s   {even.name:12} {spread(even_rates, 1e-3)} k/s"
        f"   ratio {spread(ratios)}",
        flush=True,
    )
    return {
        "case": case.name,
        "even": even.name,
        "ours": uneven_rates,
        "ours_even": even_rates,
        "ratio": ratios,
    }


def memory(operations: int) -> dict[str, Any]:
    """Resident memory of the master when each million had come, in bytes."""
    ran = ours(Case(512, 64), 0, operations)
    marks = []
    for million in range(1, operations // 1_000_000 + 1):
        when = ran.completed[min(million * 1_000_000, len(ran.completed)) - 1]
        marks.append(max((one.resident for one in ran.master if one.when <= when), default=0))
    print("master's memory, MB, at each million: " + " ".join(f"{mark / 1e6:.1f}" for mark in marks))
    return {"case": "memory", "operations": operations, "resident": marks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "dispatch.json")
    parser.add_argument(
        "--only", nargs="*", default=[""], metavar="WORD", help="u24-b1-w2, uneven, memory ..."
    )
    options = parser.parse_args()

    def wanted(name: str) -> bool:
        return any(word in name for word in options.only)

    results = [compare(case, options.rounds, options.seconds) for case in CASES if wanted(case.name)]
    for case, even in UNEVEN:
        if wanted(f"uneven-{case.name}"):
            results.append(compare_uneven(case, even, options.rounds, options.seconds))
    if wanted("memory"):
        results.append(memory(10_000_000))
    save(options.json, results=results)


if __name__ == "__main__":
    main()
