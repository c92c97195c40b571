"""What writing the stat file costs the master, and whether a slow disk holds it up.

    python bench/writing.py [--operations N] [--users N] [--batch-size N] [--repeat N]

1. Real no-op runs with two local workers: the CPU time of the master in the benchmark phase, all
   its threads, and what part of it goes into the stat file.
2. Blocks handed to a writer whose file is a pipe that nobody empties, so that every write stands
   still: the longest and the mean time that handing over took.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import as_block, draw, scenario

from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter

RUN = """
import resource, sys, time
from ssbench.cli.master import main
from ssbench.run.benchmark_run import BenchmarkRun
from ssbench.results.block import RowCollector
from ssbench.run.result_rows import RowMaker
from ssbench.results.writer import RunResultsWriter
spent = [0.0, 0.0]
def clock():
    before = time.thread_time()
    return time.thread_time() - before
clock = min(clock() for _ in range(1000))  # what looking at the clock itself costs
def timed(place, function):
    def call(*arguments):
        before = time.thread_time()
        value = function(*arguments)
        spent[place] += time.thread_time() - before - clock
        return value
    return call
RowMaker.take = timed(0, RowMaker.take)
RunResultsWriter.add = timed(0, RunResultsWriter.add)
RunResultsWriter._write = timed(1, RunResultsWriter._write)
measure = BenchmarkRun._measure
def measured(*arguments):
    before = resource.getrusage(resource.RUSAGE_SELF)
    outcome = measure(*arguments)
    after = resource.getrusage(resource.RUSAGE_SELF)
    # Rows are packed one by one, as they are made: looking at the clock for each would cost more than that.
    packing, before_packing = RowCollector().pack, time.thread_time()
    for _ in range(100_000):
        packing(1, 0, 1, 19, 500, 4096, 0.001, 0.002, 1.7e9, 200)
    spent[0] += (time.thread_time() - before_packing) * arguments[0]._benchmark.count / 100_000
    print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, *spent)
    return outcome
BenchmarkRun._measure = measured
sys.exit(main(sys.argv[1:]))
"""
SCENARIO = """
name: no-op
sizes: [{name: tiny, size_min: 1, size_max: 1000}]
initial_files: {tiny: 100}
crud_profile: [10, 75, 10, 5]
user_count: 512
operation_count: 1000
container_count: 2
"""


def no_op_run(arguments: argparse.Namespace, folder: Path) -> list[float]:
    """Run a no-op benchmark; return CPU seconds: the master's, those of add and of the writer's thread."""
    command = [sys.executable, "-c", RUN, "-q", "run-scenario", "-f", str(folder / "noop.yaml"), "--noop"]
    command += ["--workers", "2", "-o", str(arguments.operations), "-u", str(arguments.users), "-R"]
    command += ["--batch-size", str(arguments.batch_size), "-s", str(folder / "noop.stat.gz"), "--force"]
    command += ["-S", "http://127.0.0.1:1/v1/x", "-T", "none", "--zmq-work-port", "23579"]
    command += ["--zmq-results-port", "23580"]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600, check=False)
    if process.returncode:  # it has said why
        sys.exit(process.returncode)
    return [float(seconds) for seconds in process.stdout.splitlines()[0].split()]


def no_op_runs(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "noop.yaml").write_text(SCENARIO)
        runs = [no_op_run(arguments, folder) for _ in range(arguments.repeat)]
    shares = [100 * (add + thread) / master for master, add, thread in runs]
    each = [statistics.median(column) / arguments.operations * 1e9 for column in zip(*runs, strict=True)]
    print(
        f"no-op run: {each[0]:.0f} ns of the master's CPU an operation; of these {each[1]:.0f} hand "
        f"results over and {each[2]:.0f} write them: "
        f"{statistics.median(shares):.1f} % ({min(shares):.1f} to {max(shares):.1f})"
    )


def slow_disk() -> None:
    with tempfile.TemporaryDirectory() as name:
        pipe = Path(name) / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer = RunResultsWriter(pipe, RunDescription(scenario()))
        times = []
        for rows, _ in draw(1_000_000, trans_ids=False):
            for first in range(0, len(rows), 64):
                part = rows[first : first + 64]
                began = time.perf_counter()
                writer.add(as_block(part, []))
                times.append(time.perf_counter() - began)
        os.close(reader)
        writer.end(RunSummary(ended=0.0))
    times.sort()
    print(
        f"file that stands still, 64 rows at once: median {times[len(times) // 2] * 1e6:.0f} µs, "
        f"99.9 % under {times[len(times) * 999 // 1000] * 1e6:.0f} µs, longest {times[-1] * 1e3:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    slow_disk()
    no_op_runs(arguments)


if __name__ == "__main__":
    main()
