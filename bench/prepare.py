"""What it costs to prepare many objects, beside a run that creates as many.

    python bench/prepare.py [--objects N] [--rounds N] [--users N]

``ssbench-master prepare`` and a run of creates alone take turns at the same nginx, which takes 4 kB objects
and keeps none of them, with one local worker each. A round prints objects a second (from the start of the
master to its end), microseconds of CPU of the master for each object, and its largest memory in MB. Needs
nginx.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import yaml
from yardsticks import Nginx, require

ACCOUNT = "/v1/swallow"


@dataclass(frozen=True)
class Cost:
    """What the objects of one round took."""

    rate: float
    cpu_us: float
    megabytes: float

    def __str__(self) -> str:
        return f"{self.rate:9,.0f}/s {self.cpu_us:6.1f} us {self.megabytes:6.0f} MB"


def measure(folder: Path, words: list[object], objects: int) -> Cost:
    """Run the master, from its start to its end."""
    log = folder / "log"
    began = time.monotonic()
    with log.open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "ssbench.cli.master", *map(str, words)], stdout=said, stderr=said
        )
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"failed: {words}\n{log.read_text()}")
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(objects / (time.monotonic() - began), cpu / objects * 1e6, usage.ru_maxrss * 1024 / 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--users", type=int, default=64)
    arguments = parser.parse_args()
    require("nginx")
    scenario = {
        "name": "many",
        "sizes": [{"name": "tiny", "size_min": 4096, "size_max": 4096}],
        "user_count": arguments.users,
        "container_count": 100,
    }
    with tempfile.TemporaryDirectory() as temporary, Nginx() as nginx:
        folder = Path(temporary)
        prepared, created = folder / "prepared.yaml", folder / "created.yaml"
        prepared.write_text(
            yaml.safe_dump(
                scenario
                | {"initial_files": {"tiny": arguments.objects}, "profile": {"read": 1}, "operation_count": 1}
            )
        )
        created.write_text(
            yaml.safe_dump(
                scenario
                | {
                    "initial_files": {"tiny": 1},
                    "profile": {"create": 1},
                    "operation_count": arguments.objects,
                }
            )
        )
        store = ["-S", f"{nginx.url()}{ACCOUNT}", "-T", "t", "--workers", 1]
        costs: list[tuple[Cost, Cost]] = []
        for round_ in range(arguments.rounds):
            stats = folder / f"{round_}.stat.gz"
            both = (
                measure(folder, ["prepare", prepared, *store], arguments.objects),
                measure(
                    folder,
                    ["run-scenario", "-f", created, "-s", stats, "--keep-objects", *store],
                    arguments.objects,
                ),
            )
            costs.append(both)
            print(
                *(f"{name} {cost}" for name, cost in zip(("prepare", "create"), both, strict=True)), sep="  "
            )
    ratio = median(first.rate / second.rate for first, second in costs)
    print(f"prepare: {ratio:.2f} times the rate of creates, median of {arguments.rounds}")


if __name__ == "__main__":
    main()
