"""How cost grows with users and operations: one master, and stand-ins that answer each job at once.

    python bench/growth.py [--cases USERSxOPERATIONS ...] [--keep FOLDER] [--json FILE]

Prints the table of bench/README.rst. Twelve stand-ins in two processes (tests/helpers/stand_in_workers.py)
run on the same cores as the master. They answer at once, say that an operation took up to 5 ms, each another
time, and make no transaction ids.

ops/s     operations a second, from the first that was sent to the last that was
CPU       of the master while it hands out operations, microseconds an operation
MB        largest resident memory of the master, at the end of the benchmark and with its report
file      of the stat file, bytes an operation
end       from the last operation sent until the master has printed the report and exited, seconds
report    report-scenario of that file: seconds, CPU seconds, and its largest resident memory
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from program import Reading, read_process
from saving import save
from scale import CHECKOUT, Program, StandIns, peak_megabytes
from yardsticks import free_port

from ssbench.results.reading import open_results

WORKERS, PROCESSES = 12, 2
#: Milliseconds.
LONGEST = 5

SCENARIO = {
    "name": "Growth",
    "sizes": [{"name": "tiny", "size_min": 4096, "size_max": 4096}],
    "initial_files": {"tiny": 20_000},
    "operation_count": 1,
    "crud_profile": [10, 80, 5, 5],
    "user_count": 1,
    "container_count": 20,
}

CASES = [f"{users}x{operations}" for users, operations in (
    (1_000, 10**6), (10_000, 10**6), (100_000, 10**6),
    (1_000, 10**7), (10_000, 10**7), (100_000, 10**7),
    (1_000, 10**8),
)]  # fmt: skip


@dataclass
class Row:
    """A line of the table."""

    users: int
    operations: int
    rate: float = 0.0
    cpu_us: float = 0.0
    megabytes: float = 0.0
    megabytes_at_end: float = 0.0
    file_bytes: float = 0.0
    end: float = 0.0
    report_seconds: float = 0.0
    report_cpu: float = 0.0
    report_megabytes: float = 0.0
    load: float = 0.0


def measure(users: int, operations: int, folder: Path) -> Row:
    """Run it and report on it; leaves the stat file in the folder."""
    row = Row(users, operations, load=os.getloadavg()[0])
    stats = folder / f"{users}x{operations}.stat.gz"
    with ExitStack() as stack:
        own = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (own / "scenario.json").write_text(json.dumps(SCENARIO))
        ports = (free_port(), free_port())
        capacity = -(-users // WORKERS)
        fleet = StandIns(WORKERS, ports, None, processes=PROCESSES, capacity=capacity, longest=LONGEST)
        stack.callback(fleet.end)
        arguments = ["run-scenario", "-f", own / "scenario.json", "-s", stats, "--force", "--noop"]
        arguments += ["-u", users, "-o", operations, "--expect-workers", WORKERS, "--zmq-bind-ip=127.0.0.1"]
        arguments += [f"--zmq-work-port={ports[0]}", f"--zmq-results-port={ports[1]}"]
        master = Program(arguments, CHECKOUT)
        master.when("Starting the benchmark", 120)
        readings: list[tuple[Reading, float]] = []
        while master.process.poll() is None:
            with suppress(OSError, IndexError):
                reading = read_process(master.process.pid)
                if reading is not None:
                    readings.append((reading, peak_megabytes(master.process.pid)))
            time.sleep(0.05)
        exited, code = master.end(60)
        if code:
            sys.exit(master.said)
    results = open_results(stats)
    if sum(map(len, results.blocks())) != operations or results.warnings:
        sys.exit(f"{stats} does not have all results: {results.warnings}")
    assert results.summary is not None
    sent_until = results.summary.sent_until
    assert sent_until is not None
    assert results.run.started is not None
    while_sent = [each for each in readings if each[0].when <= sent_until]
    (first, _), (last, row.megabytes) = while_sent[0], while_sent[-1]
    seconds = sent_until - results.run.started
    row.rate = operations / seconds
    row.cpu_us = (last.cpu - first.cpu) / (last.when - first.when) * seconds / operations * 1e6
    row.megabytes_at_end = readings[-1][1]
    row.file_bytes = stats.stat().st_size / operations
    row.end = exited - sent_until
    return row


def report(row: Row, stats: Path) -> None:
    """Let ``report-scenario`` read the file."""
    command = [sys.executable, "-m", "ssbench.cli.master", "report-scenario", "-s", str(stats)]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"report-scenario ended with {status}")
    row.report_seconds = time.monotonic() - began
    row.report_cpu = used.ru_utime + used.ru_stime
    row.report_megabytes = used.ru_maxrss / 1000


def show(row: Row) -> None:
    """Print a line of the table."""
    print(
        f"{row.users:8,} {row.operations:12,} {row.rate:8,.0f} {row.cpu_us:5.2f}"
        f" {row.megabytes:6,.0f} {row.megabytes_at_end:6,.0f} {row.file_bytes:5.1f} {row.end:6.2f}"
        f" {row.report_seconds:7.2f} {row.report_cpu:7.2f} {row.report_megabytes:6,.0f} {row.load:5.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=CASES)
    parser.add_argument("--keep", type=Path, help="leave the stat files here")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "growth.json")
    options = parser.parse_args()
    rows = []
    print(
        "   users   operations    ops/s   CPU     MB         file    end  report\n"
        "                                  us    run    end  B/op      s       s   CPU s     MB  load"
    )
    with tempfile.TemporaryDirectory() as folder:
        for case in options.cases:
            users, operations = map(int, case.split("x"))
            row = measure(users, operations, options.keep or Path(folder))
            stats = (options.keep or Path(folder)) / f"{case}.stat.gz"
            report(row, stats)
            if options.keep is None:
                stats.unlink()
            rows.append(row)
            show(row)
    save(options.json, results=[asdict(row) for row in rows])


if __name__ == "__main__":
    main()
