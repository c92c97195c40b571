"""How long a report takes, and how much memory, next to plain decompression of the same file.

    python bench/report.py [--results N ...] [--format current|msgpack|pickle ...] [--no-trans-ids]

Draws stat files in a temporary folder, of today's format through the same writer as a run, of the
old formats from their description. For each it runs, each in a process of its own and by turns,
``report-scenario`` and a loop over the standard gzip module, and prints the medians of their seconds
by the clock (the start of Python included, which an empty program shows), the range of the ratio, the CPU
seconds of the report (other work on the machine disturbs them less; two threads take part in the report of a
large file), the largest memory, and by how many bytes a result it grew since the first number of results.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgpack
import numpy as np

from ssbench.results.block import ResultBlock, ResultRow, RowCollector
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from old_formats import OLD_TYPES, Pickler

CHUNK = 20_000
START = 1_700_000_000.0
CLASSES = (("tiny", 4_000, 8_000, 60), ("small", 20_000, 40_000, 30), ("medium", 1_000_000, 2_000_000, 10))
WEIGHTS = (10.0, 75.0, 10.0, 5.0)
GUNZIP = """
import gzip, sys
with gzip.open(sys.argv[1]) as stream:
    while stream.read(1 << 20):
        pass
"""
REPORT = "import sys; from ssbench.cli.master import main; sys.exit(main(sys.argv[1:]))"


def draw(results: int, trans_ids: bool) -> Iterator[tuple[list[ResultRow], list[str | None]]]:
    """Yield rows of a run of 20,000 operations a second, and their transaction ids."""
    random = np.random.default_rng(1)
    for first in range(0, results, CHUNK):
        count = min(CHUNK, results - first)
        operation = random.choice(4, count, p=np.array(WEIGHTS) / 100)
        size_class = random.choice(3, count, p=[0.6, 0.3, 0.1])
        low, high = (np.array([c[i] for c in CLASSES])[size_class] for i in (1, 2))
        last_byte = random.lognormal(-5, 0.8, count)
        first_byte = np.where(operation % 2 == 1, last_byte * random.uniform(0.5, 1, count), np.nan)
        completed = START + (first + np.arange(count)) / 20_000 + random.exponential(1e-4, count)
        columns = (
            operation,
            size_class,
            random.integers(0, 8, count),
            random.integers(0, 100, count),
            first + np.arange(count),
            random.integers(low, high + 1),
            first_byte,
            last_byte,
            completed,
            np.array((201, 200, 201, 204))[operation],
            (random.random(count) < 0.001).astype(int),
        )
        ids: list[str | None] = []
        if trans_ids:
            noise = random.bytes(11 * count).hex()
            ids = [f"tx{noise[22 * i : 22 * i + 21]}-0065539c80" for i in range(count)]
        yield list(zip(*(column.tolist() for column in columns), strict=True)), ids


def as_block(rows: list[ResultRow], ids: list[str | None]) -> ResultBlock:
    made = RowCollector(also=["retries"])
    made.rows.extend(made.pack(*row[:-1]) + made.pack_also(row[-1]) for row in rows)
    made.trans_ids.extend(ids)
    return made.take()


def scenario() -> Scenario:
    classes = tuple(SizeClass(name, low, high, share, WEIGHTS) for name, low, high, share in CLASSES)
    return Scenario("Drawn for the bench", classes, user_count=512, operation_count=0)


def write_current(path: Path, results: int, trans_ids: bool) -> None:
    writer = RunResultsWriter(path, RunDescription(scenario(), version="bench", started=START))
    for rows, ids in draw(results, trans_ids):
        writer.add(as_block(rows, ids))
    writer.end(RunSummary(ended=START))
    if writer.failure:
        raise writer.failure


def old_results(results: int, trans_ids: bool) -> Iterator[dict[str, object]]:
    for rows, ids in draw(results, trans_ids):
        for place, row in enumerate(rows):
            (
                operation,
                size_class,
                worker,
                container,
                number,
                size,
                first_byte,
                last_byte,
                completed,
                _status,
                retries,
            ) = row
            name = CLASSES[int(size_class)][0]
            result: dict[str, object] = {
                "type": OLD_TYPES[int(operation)],
                "size_str": name,
                "container": f"ssbench_{container:06d}",
                "name": f"{name}_{number:06d}",
                "worker_id": worker,
                "first_byte_latency": None if math.isnan(first_byte) else first_byte,
                "last_byte_latency": last_byte,
                "completed_at": completed,
                "trans_id": ids[place] if ids else None,
                "retries": retries,
            }
            if operation in (0, 2):
                result["size"] = size
            yield result


def old_scenario() -> dict[str, object]:
    data = {
        "name": "Drawn for the bench",
        "sizes": [{"name": n, "size_min": low, "size_max": high} for n, low, high, _ in CLASSES],
        "initial_files": {n: share for n, _, _, share in CLASSES},
        "crud_profile": list(WEIGHTS),
        "user_count": 512,
        "operation_count": 0,
    }
    return {"_scenario_data": data, "name": data["name"], "user_count": 512, "version": "0.3.9"}


def write_msgpack(path: Path, results: int, trans_ids: bool) -> None:
    packer = msgpack.Packer(use_bin_type=False)
    batch = []
    with gzip.open(path, "wb", 1) as out:
        out.write(packer.pack(old_scenario()))
        for result in old_results(results, trans_ids):
            batch.append(result)
            if len(batch) == 10:
                out.write(packer.pack(batch))
                batch.clear()
        if batch:
            out.write(packer.pack(batch))


def write_pickle(path: Path, results: int, trans_ids: bool) -> None:
    with gzip.open(path, "wb", 1) as out:
        for piece in Pickler().file(old_results(results, trans_ids), old_scenario()):
            out.write(piece)


WRITERS = {"current": write_current, "msgpack": write_msgpack, "pickle": write_pickle}


class Cost(NamedTuple):
    """What a process took: seconds of the clock and of the CPU, and its largest memory in MB."""

    seconds: float
    cpu: float
    memory: float


def measure(*command: str) -> Cost:
    """Run Python."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", *command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode} of {command}")
    return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=int, nargs="+", default=[10_000, 1_000_000, 10_000_000])
    parser.add_argument("--format", choices=WRITERS, nargs="+", default=["current"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-trans-ids", action="store_true")
    arguments = parser.parse_args()
    print(f"empty program: {statistics.median(measure('').seconds for _ in range(5)):.2f} s")
    print(
        "format      results      MB bytes each   gzip s report s  ratio (range)"
        "       CPU s  report MB  growth B"
    )
    with tempfile.TemporaryDirectory(prefix="ssbench-bench-") as folder:
        path = Path(folder) / "drawn.stat.gz"
        for name in arguments.format:
            least: tuple[int, float] | None = None
            for results in arguments.results:
                WRITERS[name](path, results, not arguments.no_trans_ids)
                gunzips, reports = [], []
                for _ in range(arguments.repeat):
                    gunzips.append(measure(GUNZIP, str(path)).seconds)
                    reports.append(measure(REPORT, "report-scenario", "-s", str(path)))
                size = path.stat().st_size
                gunzip = statistics.median(gunzips)
                report, cpu, memory = (statistics.median(each) for each in zip(*reports, strict=True))
                ratios = sorted(r.seconds / g for r, g in zip(reports, gunzips, strict=True))
                growth = "-"
                if least and results > least[0]:
                    growth = f"{1e6 * (memory - least[1]) / (results - least[0]):.1f}"
                least = least or (results, memory)
                print(
                    f"{name:8} {results:10,} {size / 1e6:7.1f} {size / results:10.1f} {gunzip:8.2f} "
                    f"{report:8.2f} {report / gunzip:6.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})".ljust(70)
                    + f"{cpu:6.2f} {max(each.memory for each in reports):9.0f} {growth:>9}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
