"""Logs: how fast they are read, whether replays keep their rate, and whether a made scenario is like its log.

    python bench/replay.py [--lines N ...] [--rates N ...] [--repeat N] [--seconds S] [--rate N] [--rerun]
                           [--together] [--cached] [--json FILE]

``read`` reads made logs of a proxy for a replay, each in a process of its own: lines a second of CPU, and the
most memory that is its own and that it has mapped of files. ``rate`` is the rate of a no-op replay by that of
its log. ``same`` runs a scenario on a local Swift, makes a scenario of the proxy's log, and then replays the
log and runs that scenario, which is a pair. With ``--rerun`` it replays the run by its stat file in place of
the log: a busy proxy logs requests later, and more evenly, than they came. The scenario and the first run are
then set beside the replay. A percentile is the same within 10 % where the interval of 90 % (Student, of
pairs) of the ratio is within 1/1.1 and 1.1: two one-sided tests at 5 %. Where the ratio is 1 that needs pairs
with a standard deviation of less than 0.14 for eight of them, 0.12 for six, 0.08 for four. Chance in the
arrivals alone gives a p99 0.12 in a minute at 60/s, 0.07 in three (one server, busy for half of the time).
``--together`` carries out the two runs of a pair at once, each at ``--rate``, so that both meet whatever else
happens on the machine; what is looked at is the time in which both run. What differs between them is then
what they ask for; queues are those of both. ``--cached`` has the store of :mod:`cached_store` in place of the
local Swift: its latencies show what the loads differ by, where those of a Swift on a busy machine differ from
run to run by more.
``--lines``, ``--rates`` or ``--repeat`` 0 leaves a part out.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
from cached_store import FOUND, start_cached_store
from saving import save
from yardsticks import free_port

from ssbench.local_swift import Layout, LocalSwift
from ssbench.results.reading import open_results
from ssbench.scenario.operations import CREATE, DELETE, UPDATE
from ssbench.scenario.operations import READ as READ_OPERATION
from ssbench.statistics.confidence import t_quantile

MASTER = (sys.executable, "-m", "ssbench.cli.master")
BEGAN = 1_795_300_000.0
RANKS = ("50", "95", "99")
#: How far percentiles may be apart.
LIMIT = math.log(1.1)

READ = """
import sys, time
from ssbench.traffic.replayed_log import ReplayOrder, read_replay
replay = read_replay(ReplayOrder((sys.argv[1],)))
print(len(replay), replay.source.objects, time.process_time())
"""

KNOWN = """
name: known
sizes: [{{name: one, size: {{lognormal: {{median: 8kB, sigma: 1}}}}}}]
initial_files: {{one: 1000}}
profile: {{read: 85, update: 10, create: 5}}
popularity: {{zipf: 0.9}}
container_count: 3
rate: {rate}
run_seconds: {seconds}
arrivals: poisson
user_count: 64
"""


def write_log(path: Path, lines: int, rate: float, objects: int) -> None:
    """Write a proxy's log of reads, uploads and more, in the order of ends."""
    random = np.random.default_rng(1)
    ends = BEGAN + np.sort(random.random(lines)) * (lines / rate)
    seconds = random.lognormal(-4, 1, lines)
    names = np.minimum(objects * random.random(lines) ** 2.5, objects - 1).astype(np.int64)
    methods = random.choice(["GET", "HEAD", "PUT", "DELETE"], lines, p=[0.72, 0.1, 0.15, 0.03])
    status = {"GET": 200, "HEAD": 200, "PUT": 201, "DELETE": 204}
    with path.open("w") as log:
        for end, took, name, method in zip(ends, seconds, names, methods, strict=True):
            size = 1000 + name * 7919 % 60_000
            date = time.strftime("%d/%b/%Y/%H/%M/%S", time.gmtime(end))
            log.write(
                f"10.0.0.{name % 250} 10.0.0.1 {date} {method} /v1/AUTH_test/c{name % 50}/photos/o{name:08d}"
                f" HTTP/1.0 {status[method]} - client/4.0 AUTH_tk8e8317d9b..."
                f" {size if method == 'PUT' else '-'} {size if method == 'GET' else '-'} -"
                f" tx2fb49ad9eae8482080275-006b021d3a - {took:.4f} - - {end - took:.9f} {end:.9f} 0 -\n"
            )


def read(path: Path) -> tuple[float, int, int]:
    """Read a log in a process of its own; return its CPU seconds and the most MB, own and mapped."""
    most = {"RssAnon": 0, "RssFile": 0}
    with subprocess.Popen(
        [sys.executable, "-c", READ, str(path)], stdout=subprocess.PIPE, text=True
    ) as program:
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.1):
                for line in Path(f"/proc/{program.pid}/status").read_text().splitlines():
                    name, _, value = line.partition(":")
                    if name in most:
                        most[name] = max(most[name], int(value.split()[0]) // 1000)

        watcher = threading.Thread(target=watch)
        watcher.start()
        assert program.stdout is not None
        said = program.stdout.read().split()
        ended.set()
        watcher.join()
    return float(said[2]), most["RssAnon"], most["RssFile"]


def start(*words: object, stats: Path) -> subprocess.Popen[str]:
    """Start a run, which writes a stat file, and its report beside it."""
    ports = (f"--zmq-work-port={free_port()}", f"--zmq-results-port={free_port()}")
    files = ("--json", stats.with_suffix(".json"), "-s", stats, "--force", "--report", "summary")
    command = [*MASTER, "-q", "run-scenario", *words, "--workers=1", *ports, *files]
    stats.with_suffix(".json").unlink(missing_ok=True)  # that of an earlier run
    return subprocess.Popen(
        [*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def finish(program: subprocess.Popen[str], stats: Path) -> dict[str, Any]:
    """Return the report of a run that was started; one that failed or is undecided has one, too."""
    _, said = program.communicate()
    if not stats.with_suffix(".json").exists():
        sys.exit(said)
    report: dict[str, Any] = json.loads(stats.with_suffix(".json").read_text())
    # What fails has no latency, and what is left would be compared as if it were all.
    if failed := report["operations"][0]["figures"]["errors"]:
        sys.exit(f"{failed:,} operations failed: {said}")
    return report


def find_span(stats: Path) -> tuple[float, float]:
    """Return when the first request of a run began and the last one ended."""
    blocks = [*open_results(stats).blocks()]
    return float(min(each.started.min() for each in blocks)), float(
        max(each.completed.max() for each in blocks)
    )


def percentiles(stats: Path, begin: float, end: float) -> dict[tuple[str, str], float]:
    """Return response times in seconds, of what was due in a part of a run, by operation and rank."""
    found: dict[str, list[Any]] = {}
    for block in open_results(stats).blocks():
        seconds = block.last_byte + block.started - block.due
        rows = (block.due >= begin) & (block.due <= end) & ~np.isnan(seconds)
        found.setdefault("TOTAL", []).append(seconds[rows])
        for row in (CREATE, READ_OPERATION, UPDATE, DELETE):
            found.setdefault(row.name.upper(), []).append(seconds[rows & (block.operation == row.code)])
    return {
        (name, rank): float(np.quantile(values, float(rank) / 100))
        for name, parts in found.items()
        for rank in RANKS
        # A percentile is known where three results or more are beyond it.
        if len(values := np.concatenate(parts)) * (100 - float(rank)) >= 300
    }


def read_hits(lines: Iterable[str]) -> float:
    """Return the share of reads that the cache of :mod:`cached_store` had; NaN of other logs."""
    words = [line.split() for line in lines]
    reads = [each for each in words if each[3] == "GET" and each[4].count("/") > 3]
    return sum(each[-5] == FOUND for each in reads) / len(reads) if reads else math.nan


def ratio_interval(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of means of logarithms, and the ends of its interval of 90 % by pairs (Student)."""
    distances = [second - first for first, second in zip(one, other, strict=True)]
    middle = statistics.mean(distances)
    half = t_quantile(0.95, len(distances) - 1) * statistics.stdev(distances) / math.sqrt(len(distances))
    return middle, middle - half, middle + half


@contextmanager
def start_store(folder: Path, *, cached: bool) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Start a store; yields the words that say where it is, and the folder with its logs."""
    if cached:
        with start_cached_store(folder) as url:
            yield ("-S", url, "-T", "token"), folder
    else:
        with LocalSwift(layout=Layout(access_logs=True)) as swift:
            yield ("-A", swift.auth_url, "-U", swift.user, "-K", swift.key), swift.log_directory


def print_run(which: str, found: dict[tuple[str, str], float], hits: float) -> None:
    """Print what a run measured."""
    shown = (f"{name} p{rank} {1e3 * value:.1f}" for (name, rank), value in found.items())
    said = "" if math.isnan(hits) else f"; hits {hits:.3f}"
    print(f"  {which}, ms: {', '.join(shown)}{said}", file=sys.stderr, flush=True)


def compare(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield for each operation and percentile how made scenarios, and the first runs, compare with replays.

    Each pair has a log of its own: the moments of one log make queues that are longer or shorter than usual
    in all of its replays.
    """
    repeat, sides = options.repeat, ("replay", "scenario")
    found: dict[str, list[dict[tuple[str, str], float]]] = {which: [] for which in ("known", *sides)}
    hits: dict[str, list[float]] = {which: [] for which in found}
    with ExitStack() as stack:
        folder, logs = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        access, logs = stack.enter_context(start_store(logs, cached=options.cached))
        known, made, log = (folder / each for each in ("known.yaml", "made.yaml", "proxy.log"))
        stats = {which: folder / f"{which}.stat.gz" for which in found}
        known.write_text(KNOWN.format(rate=options.rate, seconds=options.seconds))
        replayed = stats["known"] if options.rerun else log
        words: dict[str, tuple[object, ...]] = {
            "known": ("-f", known),
            "replay": ("--replay", replayed, "--set", "container_base=replayed"),
            "scenario": ("-f", made, "--set", "container_base=made"),  # the other one may run beside it
        }

        def measure(*which: str) -> list[str]:
            """Carry out runs together; return the lines of the log while all of them ran."""
            with ExitStack() as running:  # where one fails, none is left behind
                programs = [
                    running.enter_context(start(*words[each], *access, stats=stats[each])) for each in which
                ]
                for each, program in zip(which, programs, strict=True):
                    finish(program, stats[each])
            begins, ends = zip(*(find_span(stats[each]) for each in which), strict=True)
            begin, end = max(begins), min(ends)
            lines = [
                line
                for each in logs.glob("*proxy*")
                for line in each.read_text().splitlines(True)
                if begin - 0.05 <= find_start(line) <= end
            ]
            for each in which:
                found[each].append(percentiles(stats[each], begin, end))
                hits[each].append(read_hits(lines))
            return lines

        for number in range(repeat):
            # What the run asked for in its preparation and clean-up is none of the load.
            log.write_text("".join(measure("known")))
            command = [*MASTER, "-q", "traffic", str(log), "-o", str(made), "--force"]
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            if options.together:
                measure(*sides)
            else:
                for which in islice(cycle(sides), number, number + len(sides)):
                    measure(which)
            print(f"pair {number + 1} of {repeat}", file=sys.stderr, flush=True)
            for which, runs in found.items():
                print_run(which, runs[-1], hits[which][-1])
    for which, ratios in hits.items() if options.cached and repeat >= 2 else ():
        mean, spread = statistics.mean(ratios), statistics.stdev(ratios)
        print(f"hits of {which}: {mean:.3f}, standard deviation {spread:.3f}", flush=True)
    for operation, rank in found["replay"][0]:
        logarithms = {
            which: [math.log(each[operation, rank]) for each in runs if (operation, rank) in each]
            for which, runs in found.items()
        }
        own = logarithms.pop("replay")
        for which, others in logarithms.items():
            if len(own) == len(others) == repeat >= 2:
                ratio, low, high = ratio_interval(own, others)
                yield {
                    "operation": operation,
                    "percentile": rank,
                    "side": which,
                    "replay": math.exp(statistics.mean(own)),
                    "ratio": math.exp(ratio),
                    "interval": [math.exp(low), math.exp(high)],
                    "same": max(-low, high) < LIMIT,
                }


def find_start(line: str) -> float:
    """Return when the request of an access line began; 0 of another line."""
    words = line.split()
    return float(words[-4]) if len(words) > 20 and words[-4].replace(".", "").isdigit() else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--rates", type=int, nargs="+", default=[2000, 10_000])
    parser.add_argument("--repeat", type=int, default=6, help="pairs of runs on a local Swift")
    parser.add_argument("--rate", type=float, default=60.0, help="operations a second there")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rerun", action="store_true", help="replay each run by its stat file, not its log")
    parser.add_argument("--together", action="store_true", help="carry out both runs of a pair at once")
    parser.add_argument("--cached", action="store_true", help="on a store of known latencies")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "replay.json")
    options = parser.parse_args()
    reading, rates = [], []
    with tempfile.TemporaryDirectory(prefix="ssbench-bench-") as folder:
        log = Path(folder) / "proxy.log"
        for lines in filter(None, options.lines):
            write_log(log, lines, 2000, max(lines // 10, 1))
            cpu, own, mapped = read(log)
            reading.append(
                {"lines": lines, "lines a second": lines / cpu, "own MB": own, "mapped MB": mapped}
            )
            print(
                f"read {lines:,}: {lines / cpu:,.0f} lines/s of CPU, {own} MB, {mapped} MB of files",
                flush=True,
            )
        for rate in filter(None, options.rates):
            write_log(log, 20 * rate, rate, 1000)
            stats = Path(folder) / "run.stat.gz"
            report = finish(start("--replay", log, "--noop", "--undecided", "report", stats=stats), stats)
            delivered, source = report["verdict"]["delivered"], report["replay"]["source"]
            ratio = delivered["operations"] / delivered["seconds"] / (source["requests"] / source["seconds"])
            rates.append({"rate": rate, "ratio": ratio})
            print(f"rate {rate:,}: {ratio:.4f} of the log's", flush=True)
    same = []
    for each in compare(options) if options.repeat else ():
        same.append(each)
        low, high = each["interval"]
        print(
            f"same {each['operation']:>7} p{each['percentile']}: replay {1e3 * each['replay']:.1f} ms,"
            f" {each['side']} {each['ratio']:.3f} ({low:.3f} to {high:.3f}) times that"
            f": {'the same' if each['same'] else 'not shown to be the same'}",
            flush=True,
        )
    save(options.json, reading=reading, rates=rates, same=same)


if __name__ == "__main__":
    main()
