"""Reads and uploads of each power of two from 1 kB to 16 MB, next to wrk: where a size costs too much.

    python bench/sizes.py [--rounds N] [--seconds S] [--only WORD ...] [--least BYTES] [--most BYTES]
        [--users N] [--against FOLDER] [--json FILE]

Reads are from nginx on memory (both from the system's packages: ``sudo apt-get install nginx-extras wrk``),
of as many objects by wrk as by the program, uploads to the store of ``bench/uploads.py``, which is faster
than any client. Each round runs the real program (one local worker, master, stat file and all) and wrk with
as many connections, every other round the other way about. CPU is that of the worker's process and of wrk's,
microseconds an operation; "CPU", "with the master" and "rate" are ours by wrk's, medians and ranges of
rounds; "core" is how much of one the worker had. Both clients have the same server and kernel, so what these
do at a size is in neither ratio. A step is where the CPU ratio rises, or that of rates falls, from one size
to the next by more than a quarter, and by more than rounds differ.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import uploads
from program import run
from saving import save
from spread import spread
from whole_worker import Case, scenario
from yardsticks import Nginx, require, wrk

HERE = Path(__file__).parents[1]
WRK = "wrk"

LEAST, MOST = 1 << 10, 1 << 24
METHODS = ("GET", "PUT")

#: From one size to the next a ratio that changes by more is a step.
STEP = 1.25

#: So many bytes of objects are read at most where that leaves one for each user, and so many objects.
_STORED_BYTES, _STORED = 1 << 26, 500


class Cost(NamedTuple):
    """CPU microseconds an operation, operations a second, and the master's microseconds besides."""

    cpu: float
    rate: float
    master: float = 0.0


def count_objects(case: Case) -> int:
    """Return how many objects are read."""
    return max(case.users, min(_STORED, _STORED_BYTES // case.size))


def read(nginx: Nginx, program: str, case: Case, seconds: float) -> Cost:
    """Read objects with a program, which is that of a folder, or wrk."""
    if program == WRK:
        paths = [f"/c/o_{number}" for number in range(count_objects(case))]
        one = wrk(nginx.url(), case.method, case.size, case.users, seconds, paths)
        return Cost(one.cpu_us, one.operations / one.seconds)
    os.environ["PYTHONPATH"] = program
    arguments = [f"--storage-url={nginx.url()}/v1/a", "--token=t", "--workers=1"]
    ran = run([*arguments, f"--run-seconds={seconds:g}"], scenario(case, count_objects(case)))
    return Cost(ran.worker_cpu * 1e6, ran.rate, ran.master_cpu * 1e6)


def upload(program: str, case: Case, seconds: float) -> Cost:
    """Upload with a program."""
    done = uploads.of_wrk(case, seconds) if program == WRK else uploads.ours(Path(program), case, seconds)
    megabytes = case.size / 1e6
    return Cost(done.client * megabytes * 1e3, done.throughput / megabytes, done.master)


def measure(case: Case, programs: Sequence[str], rounds: int, seconds: float) -> dict[str, list[Cost]]:
    found: dict[str, list[Cost]] = {program: [] for program in programs}
    with Nginx() as nginx:
        for number in range(count_objects(case) if case.method == "GET" else 0):
            nginx.store(f"c/o_{number}", case.size)
        for number in range(rounds):
            for program in programs[:: -1 if number % 2 else 1]:
                found[program].append(
                    read(nginx, program, case, seconds)
                    if case.method == "GET"
                    else upload(program, case, seconds)
                )
    return found


def ratios(own: Sequence[Cost], other: Sequence[Cost]) -> tuple[list[float], list[float]]:
    """CPU and rate of one by those of the other, of each round."""
    pairs = list(zip(own, other, strict=True))
    return [one.cpu / two.cpu for one, two in pairs], [one.rate / two.rate for one, two in pairs]


def rises(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether values are larger by a step, and by more than they differ among themselves."""
    return statistics.median(after) > STEP * statistics.median(before) and min(after) > max(before)


def steps(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> list[str]:
    """Say what is a step between the ratios of CPU and rate of two sizes."""
    found = ["CPU rises"] if rises(before[0], after[0]) else []
    slower = [[1 / value for value in each[1]] for each in (before, after)]
    return [*found, "rate falls"] if rises(*slower) else found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", nargs="*", default=METHODS, choices=METHODS)
    parser.add_argument("--least", type=int, default=LEAST)
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--users", type=int, default=32)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "sizes.json")
    options = parser.parse_args()
    require("nginx", "wrk")
    folders = [HERE, *([options.against] if options.against else [])]
    programs = [WRK, *map(str, folders)]
    sizes = [1 << power for power in range(LEAST.bit_length() - 1, MOST.bit_length())]
    results, found_steps = {}, []
    for method in options.only:
        last: dict[str, Sequence[Sequence[float]]] = {}
        for size in sizes:
            if not options.least <= size <= options.most:
                continue
            case = Case(method, size, options.users)
            found = results[case.name] = measure(case, programs, options.rounds, options.seconds)
            print(f"{method} {size:>8} wrk {spread([one.cpu for one in found[WRK]])} us", flush=True)
            for program in programs[1:]:
                costs = found[program]
                by_wrk = ratios(costs, found[WRK])
                core = statistics.median(one.cpu * one.rate / 1e6 for one in costs)
                both = [(one.cpu + one.master) / two.cpu for one, two in zip(costs, found[WRK], strict=True)]
                print(
                    f"{method} {size:>8} {program} {spread([one.cpu for one in costs])} us;"
                    f" CPU {spread(by_wrk[0])}, with the master {spread(both)},"
                    f" rate {spread(by_wrk[1])}, core {core:.2f}",
                    flush=True,
                )
                for what in steps(last[program], by_wrk) if program in last else ():
                    found_steps.append(f"step: {method} at {size} bytes, {program}: {what}")
                    print(found_steps[-1], flush=True)
                last[program] = by_wrk
    print(*found_steps or ["no step"], sep="\n")
    save(options.json, results=results)


if __name__ == "__main__":
    main()
