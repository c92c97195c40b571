"""How long a user waits at the end of a run: from the last result to the exit of the master, report included.

    python bench/at_end.py [--results N ...] [--classes N ...] [--repeat N] [--users N] [--think-time S]

No-op runs of the whole program with one local worker. The last result is the latest completion in the stat
file, whose clock is that of this host. ``report s`` is the CPU, start of Python included, that
``report-scenario`` takes for the same file. Results are counted while a run goes on where its master has
time, which such a run leaves it with a think time: 512 users with 0.01 s do about 50,000 operations a second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import REPORT, measure
from yardsticks import free_port

from ssbench.results.reading import open_results

MASTER = (sys.executable, "-m", "ssbench.cli.master")


def scenario(classes: int, users: int) -> dict[str, object]:
    """Return the content of a scenario with so many size classes, all of them in use."""
    names = [f"class{number:04}" for number in range(classes)]
    return {
        "name": "Bench of the end of a run",
        "sizes": [
            {"name": name, "size_min": 1000 + place, "size_max": 2000 + place}
            for place, name in enumerate(names)
        ],
        "initial_files": dict.fromkeys(names, 4 * users // classes + 8),
        "user_count": users,
        "crud_profile": [10, 75, 10, 5],
    }


def wait_at_end(path: Path, results: int, stats: Path, think: float) -> tuple[float, float]:
    """Carry out a run; return the seconds from its last result to its exit, and the CPU of a report on it."""
    command = [*MASTER, "-q", "run-scenario", "-f", str(path), "--noop", "--workers=1"]
    command += [f"--op-count={results}", "--batch-size=64", "-s", str(stats), "--force"]
    command += [f"--set=think_time={think}"] if think else []
    command += [f"--zmq-work-port={free_port()}", f"--zmq-results-port={free_port()}"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    ended = time.time()
    last = max(float(block.completed.max()) for block in open_results(stats).blocks())
    return ended - last, measure(REPORT, "report-scenario", "-s", str(stats)).cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--classes", type=int, nargs="+", default=[1, 500])
    parser.add_argument("--users", type=int, default=512)
    parser.add_argument("--think-time", type=float, default=0.0, help="seconds (default: none)")
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    print("   results classes   last result to exit s (range)   report s")
    with tempfile.TemporaryDirectory(prefix="ssbench-bench-") as folder:
        path, stats = Path(folder) / "scenario.json", Path(folder) / "run.stat.gz"
        for results in arguments.results:
            for classes in arguments.classes:
                path.write_text(json.dumps(scenario(classes, arguments.users)))
                found = [
                    wait_at_end(path, results, stats, arguments.think_time) for _ in range(arguments.repeat)
                ]
                waited, made = zip(*found, strict=True)
                print(
                    f"{results:10,} {classes:7} {statistics.median(waited):12.2f}"
                    f" ({min(waited):.2f}-{max(waited):.2f}) {statistics.median(made):14.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
