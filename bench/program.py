"""The real program as a user starts it, and what its processes cost while the benchmark lasts.

CPU is read from /proc some times a second, of each process as a whole, threads of libraries included.
What counts is the span between the first and the last reading within the benchmark, divided by the
results that ended in that span: start, initial uploads, clean-up and report are no part of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from yardsticks import free_port

from ssbench.base.errors import ExitCode
from ssbench.results.reading import open_results
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PERIOD = 0.02


@dataclass(frozen=True)
class Reading:
    """One look at a process: seconds since 1970, CPU seconds so far, resident bytes."""

    when: float
    cpu: float
    resident: int


@dataclass(frozen=True)
class Ran:
    """A run: what its report says, CPU seconds an operation, and all readings of the master.

    ``worker_cpu`` is the sum of all workers, and what one of them used at most of memory is
    ``worker_peak``, in bytes.
    """

    statistics: RunStatistics
    operations: int
    rate: float
    master_cpu: float
    worker_cpu: float
    worker_peak: int
    master: list[Reading]
    completed: np.ndarray


def read_process(pid: int) -> Reading | None:
    """Look at a process; None where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return Reading(time.time(), (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS, int(fields[21]) * _PAGE)


def child_processes(pid: int) -> list[int]:
    """The processes that a process has started, and that have not ended."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in found]


def _peak(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 if "VmHWM:" in status else 0


def run(
    arguments: Sequence[str], scenario: dict[str, object] | None = None, interrupt_after: float | None = None
) -> Ran:
    """Run ``ssbench-master run-scenario`` with local workers, standard error to a file.

    ``scenario`` is a scenario's content in place of a file. The run is interrupted, as by Ctrl-C,
    after so many seconds if wanted. Ends the program when the run fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        stats, said = Path(folder) / "run.stat.gz", Path(folder) / "stderr"
        # -P: PYTHONPATH, which may name another checkout, comes before the current folder.
        command = [sys.executable, "-P", "-m", "ssbench.cli.master", "run-scenario", "-s", str(stats)]
        command += [f"--zmq-work-port={free_port()}", f"--zmq-results-port={free_port()}", *arguments]
        if scenario is not None:
            path = Path(folder) / "scenario.json"
            path.write_text(json.dumps(scenario))
            command += ["-f", str(path)]
        readings: dict[int, list[Reading]] = {}
        peaks: dict[int, int] = {}
        with said.open("wb") as errors:
            # Elsewhere: a checkout that one works in would come before that of PYTHONPATH.
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, cwd=folder)
            began = time.monotonic()
            interrupted = False
            while process.poll() is None:
                if not interrupted and interrupt_after and time.monotonic() - began > interrupt_after:
                    interrupted = True
                    process.send_signal(signal.SIGINT)
                for pid in (process.pid, *child_processes(process.pid)):
                    reading = read_process(pid)
                    if reading is not None:
                        readings.setdefault(pid, []).append(reading)
                        peaks[pid] = max(_peak(pid), peaks.get(pid, 0))
                time.sleep(_PERIOD)
        if process.returncode != (ExitCode.INTERRUPTED if interrupted else ExitCode.OK):
            sys.exit(f"{' '.join(command)}\nended with {process.returncode}:\n{said.read_text()[-3000:]}")
        statistics = summarize(open_results(stats))
        completed = np.concatenate([block.completed for block in open_results(stats).blocks()])
    completed.sort()
    total = statistics.sections[0]
    master = readings.pop(process.pid)
    return Ran(
        statistics,
        total.count,
        total.requests_per_second,
        _cpu_an_operation([master], completed),
        _cpu_an_operation(list(readings.values()), completed),
        max(peaks[pid] for pid in readings),
        master,
        completed,
    )


def _cpu_an_operation(processes: list[list[Reading]], completed: np.ndarray) -> float:
    """CPU seconds of the processes together for each result, over the span they were all seen in."""
    cost = 0.0
    for readings in processes:
        inside = [one for one in readings if completed[0] <= one.when <= completed[-1]]
        if len(inside) < 2:
            return float("nan")
        first, last = inside[0], inside[-1]
        operations = np.searchsorted(completed, [first.when, last.when])
        cost += (last.cpu - first.cpu) / max(1, int(operations[1] - operations[0]))
    return cost
