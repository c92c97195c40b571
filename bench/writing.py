"""What writing the stat file costs the master, and whether a slow disk holds it up.

    python bench/writing.py [--operations N] [--users N] [--batch-size N] [--repeat N]

1. Real no-op runs with two local workers, by turns with the stat file being written and with a
   writer that drops everything: CPU microseconds of the master (all its threads) for each operation,
   the benchmark phase alone. The difference is what writing costs.
2. Rows handed to a writer whose file is a pipe that nobody empties, so that every write stands
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

from report import draw, scenario

from ssbench.run_results import RunDescription, RunResultsWriter, RunSummary

RUN = """
import resource, sys
from ssbench.cli.master import main
from ssbench.master import Master
from ssbench.run_results.writer import RunResultsWriter
if sys.argv.pop(1) == "dropped":
    RunResultsWriter.add = lambda self, *rows: None
measure = Master.measure
def timed(*arguments):
    before = resource.getrusage(resource.RUSAGE_SELF)
    outcome = measure(*arguments)
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return outcome
Master.measure = timed
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


def master_seconds(kind: str, arguments: argparse.Namespace, folder: Path) -> float:
    """Run a no-op benchmark; return the CPU seconds of the master in its benchmark phase."""
    command = [
        sys.executable,
        "-c",
        RUN,
        kind,
        "-q",
        "run-scenario",
        "-f",
        str(folder / "noop.yaml"),
        "--noop",
    ]
    command += ["--workers", "2", "-o", str(arguments.operations), "-u", str(arguments.users), "-R"]
    command += ["--batch-size", str(arguments.batch_size), "-s", str(folder / "noop.stat.gz")]
    command += ["-S", "http://127.0.0.1:1/v1/x", "-T", "none", "--zmq-work-port", "23579"]
    command += ["--zmq-results-port", "23580"]
    process = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return float(process.stdout.splitlines()[0])


def noop_runs(arguments: argparse.Namespace) -> None:
    seconds: dict[str, list[float]] = {"written": [], "dropped": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "noop.yaml").write_text(SCENARIO)
        for _ in range(arguments.repeat):
            for kind, taken in seconds.items():
                taken.append(master_seconds(kind, arguments, folder))
    each = {kind: statistics.median(taken) / arguments.operations * 1e6 for kind, taken in seconds.items()}
    for kind, taken in seconds.items():
        spread = f"{min(taken):.2f} to {max(taken):.2f} s"
        print(f"no-op run, results {kind}: {each[kind]:.2f} µs of the master's CPU each ({spread})")
    print(f"writing: {100 * (each['written'] - each['dropped']) / each['written']:.0f} % of it")


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
                writer.add(part)
                times.append(time.perf_counter() - began)
        os.close(reader)
        writer.finish(RunSummary(ended=0.0))
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
    noop_runs(arguments)


if __name__ == "__main__":
    main()
