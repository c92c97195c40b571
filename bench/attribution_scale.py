"""Time and memory of ``ssbench-master attribute`` for a million results and ten million lines of logs.

    python bench/attribution_scale.py [--results N] [--lines N] [--copies N] [--writes SHARE] [--expiring]
        [--sample N] [--rounds N] [--folder DIR] [--generate]

The run and its cluster are simulated: 60 devices on 10 nodes, of which one is slow by 30 ms. The results are
written as a stat file, the lines as rsyslog writes those of Swift: access lines of proxies, object servers
and container servers, some look-ups and errors, and as many lines of other clients as are missing to
``--lines``. With ``--copies`` fewer requests are simulated and each is so many, with ids of their own, which
takes less time; they are not independent of each other, so that who is named then says nothing. With
``--expiring`` each write has the three lines more that ``X-Delete-After`` brings. The
command runs as a process of its own; its time, CPU and largest memory are those that the system tells of it,
and the memory of it and its children together is looked at five times a second (what they share counts once).
The benchmark ends with 1 where that is ever above 2 GB, or where the slow device is not the only one named.
``--generate`` ends before the command.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster.joined_run import OBJECT, JoinedRun
from ssbench.results.block import ResultBlock, TextColumn
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass

SLOW, NODES, BEGAN, RATE = 17, 10, 1_795_300_893, 1000
MOST_MEMORY = 2e9
_CHUNK = 20_000
_WORKERS = 8
#: What begins the transaction ids of a request of which there are several.
_ANY = "tx@"
#: Beginnings of the ids of one request in 256, and of one in 4096.
_LOOKS_UP, _FAILS_ONCE = f"{_ANY}07", f"{_ANY}012"


@dataclass(frozen=True)
class Request:
    """One request, and who served it: the devices of its object servers, and their seconds."""

    trans_id: str
    write: bool
    began: float
    path: str
    size: int
    partition: int
    proxy: int
    seconds: float
    served: list[tuple[int, float]]


def requests(joined: JoinedRun, first: int, last: int, suffix: str) -> Iterator[Request]:
    """Yield some of the requests of a simulated cluster, with new transaction ids."""
    lines, operations = joined.lines, joined.operations
    # Object servers' lines come first, in the order of operations.
    of_objects = lines.operation[: np.count_nonzero(lines.of == OBJECT)]
    chosen = np.arange(*np.searchsorted(of_objects, (first, last)))
    served: list[list[tuple[int, float]]] = [[] for _ in range(last - first)]
    for line in chosen.tolist():
        served[int(lines.operation[line]) - first].append(
            (int(lines.device[line]), float(lines.seconds[line]))
        )
    for place, backends in zip(range(first, last), served, strict=True):
        began = BEGAN + place / RATE
        subject = int(operations.subject[place])
        yield Request(
            f"{_ANY}{os.urandom(10).hex()}-{int(began):010x}{suffix}",
            bool(operations.code[place] == 0),
            began,
            f"AUTH_test/ssbench_{subject % 10:06}/mixed_{subject:08}",
            int(operations.size[place]),
            subject % 1024,
            int(joined.proxy[place]),
            float(joined.proxy_seconds[place]),
            backends,
        )


def lines_of(request: Request, expiring: bool) -> Iterator[tuple[str, str]]:
    """Yield the file and the text of each line of a request."""
    worker = int(request.trans_id[len(_ANY)], 16) % _WORKERS
    ended = request.began + request.seconds
    second = time.gmtime(ended)
    clock = time.strftime("%Y-%m-%dT%H:%M:%S", second)
    prefix = f"{clock}.{int(ended % 1 * 1e6):06}+00:00"
    told = time.strftime("[%d/%b/%Y:%H:%M:%S +0000]", second)
    method, status = ("PUT", 201) if request.write else ("GET", 200)
    url, path = f"http://10.0.1.{request.proxy + 1}:8080/v1", request.path
    asker = f"proxy-server {4000 + 10 * request.proxy + worker}"
    for device, seconds in request.served:
        host = f"node{device % NODES}"
        pid = 5200 + (worker + device) % _WORKERS
        tail = f'"{request.trans_id}" "{asker}" {seconds:.4f} "-" {pid} 0'
        yield (
            host,
            f'{prefix} {host} object-server: 10.0.1.{request.proxy + 1} - - {told} "{method} /d{device}/'
            f'{request.partition}/{path}" {status} {"-" if request.write else request.size}'
            f' "{method} {url}/{path}" {tail}\n',
        )
        if request.write:
            yield from _updates(request, device, f"{prefix} {{}} container-server:", told, expiring)
    proxy = f"proxy{request.proxy}"
    stamp = told[1:21].replace(":", "/")
    sizes = f"{request.size} -" if request.write else f"- {request.size}"
    times = f"{request.began:.9f} {ended:.9f}"
    begins = f"{prefix} {proxy} proxy-server:"
    if request.trans_id.startswith(_LOOKS_UP):
        yield (
            proxy,
            f"{begins} - - {stamp} HEAD /v1/{path.rpartition('/')[0]} HTTP/1.0 204 - ssbench/1.0"
            f" AUTH_tk8e8317d9b... - - - {request.trans_id} - 0.0021 GET_CONTAINER_INFO - {times}"
            " - test:tester\n",
        )
    if request.trans_id.startswith(_FAILS_ONCE):
        device = request.served[0][0] + 1
        yield (
            proxy,
            f"{begins} ERROR with Object server 10.0.0.{device % NODES + 1}:6200/d{device} re: Trying to"
            f" {method} /v1/{path}: Timeout (3.0s) (txn: {request.trans_id}) (client_ip: 10.0.9.1)\n",
        )
    yield (
        proxy,
        f"{begins} 10.0.9.1 10.0.9.1 {stamp} {method} /v1/{path} HTTP/1.0 {status} -"
        f" ssbench/1.0 AUTH_tk8e8317d9b... {sizes} - {request.trans_id} - {request.seconds:.4f} - - {times} 0"
        " test:tester\n",
    )


def _updates(
    request: Request, device: int, prefix: str, told: str, expiring: bool
) -> Iterator[tuple[str, str]]:
    """Yield the lines of the container server that an object server tells of an object."""
    other = (request.partition * 7 + device) % 60
    host = f"node{other % NODES}"
    asker = f"10.0.0.{device % NODES + 1}"
    names = [request.path]
    if expiring:
        names.append(f".expiring_objects/1795219149/1795300670-{request.path}")
    for name in names:
        yield (
            host,
            f'{prefix.format(host)} {asker} - - {told} "PUT /d{other}/{request.partition % 64}/{name}" 201 -'
            f' "PUT http://10.0.1.{request.proxy + 1}:8080/d{device}/{request.partition}/{request.path}"'
            f' "{request.trans_id}" "object-server {5200 + device % _WORKERS}" 0.0009 "-"'
            f" {6200 + device % _WORKERS} 0\n",
        )


def write(folder: Path, results: int, lines: int, copies: int, writes: float, *, expiring: bool) -> int:
    """Write a stat file and logs of so many copies of each request; return how many lines."""
    results, lines = results // copies, lines // copies
    sizes = SizeClass("mixed", 4096, 8 * 2**15, 10, (1, 1, 0, 0))
    scenario = Scenario("scale", (sizes,), user_count=100, operation_count=results * copies)
    shape = Shape(requests=results, nodes=NODES, objects=100_000, writes=writes, deletes=0.0)
    joined = simulate(1, Cause(devices=(SLOW,)), shape)
    writer = RunResultsWriter(folder / "run.stat.gz", RunDescription(scenario, run_id=1))
    (folder / "logs").mkdir()
    files: dict[str, list[str]] = {}
    total = 0

    def flush() -> None:
        for name, texts in files.items():
            text = "".join(texts)
            with (folder / "logs" / f"{name}.log").open("a") as file:
                for copy in range(copies):
                    file.write(text.replace(_ANY, f"tx{copy:x}"))
        files.clear()

    # Other clients of the cluster do the same in between, until the lines are enough.
    wanted = lines / results
    for first in range(0, results, _CHUNK):
        last = min(first + _CHUNK, results)
        own = list(requests(joined, first, last, "-ssb-00000001"))
        for copy in range(copies):
            writer.add(_block(joined, own, first, last, copy))
        writer.tick(time.monotonic())
        others = requests(joined, first, last, "")
        for request in own:
            for name, text in lines_of(request, expiring):
                files.setdefault(name, []).append(text)
                total += 1
        while total < wanted * last:
            other = next(others, None) or next(others := requests(joined, first, last, ""))
            for name, text in lines_of(other, expiring):
                files.setdefault(name, []).append(text)
                total += 1
        flush()
    writer.end(RunSummary(ended=BEGAN + results / RATE))
    return total * copies


def _block(joined: JoinedRun, own: list[Request], first: int, last: int, copy: int) -> ResultBlock:
    operations, chosen = joined.operations, slice(first, last)
    subject = operations.subject[chosen].astype(np.int64) + copy * (100_000 + len(operations.code))
    columns = {
        "operation": operations.code[chosen],
        "container": subject % 10,
        "object": subject,
        "size": operations.size[chosen],
        "last_byte": operations.latency[chosen],
        "completed": BEGAN + np.arange(first, last) / RATE + operations.latency[chosen],
        "trans_id": TextColumn.of([each.trans_id.replace(_ANY, f"tx{copy:x}") for each in own]),
    }
    return ResultBlock(last - first, columns)


def run(folder: Path, found: Path, sample: str | None) -> tuple[float, float, float, float]:
    """Run the command; return seconds, seconds of CPU, bytes of memory of the largest process and of all."""
    command: list[str | Path] = [sys.executable, "-m", "ssbench.cli.master", "-q", "attribute"]
    command += ["-s", folder / "run.stat.gz", "--swift-logs", folder / "logs"]
    command += ["-f", os.devnull, "--json", found, "--force"]
    command += ["--sample", sample] if sample else []
    began = time.monotonic()
    process = subprocess.Popen(command)
    ended = together = 0
    while not ended:
        together = max(together, memory_of(process.pid))
        time.sleep(0.2)
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"attribute: exit code {process.returncode}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, together


def memory_of(pid: int) -> int:
    """Return the bytes of memory of a process and its children; what they share is counted once."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:  # it has ended
        return 0
    own = next(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:"))
    return own + sum(memory_of(int(child)) for child in children)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=int, default=1_000_000)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--copies", type=int, choices=range(1, 17), default=1, metavar="N")
    parser.add_argument("--writes", type=float, default=0.5)
    parser.add_argument("--expiring", action="store_true")
    parser.add_argument("--sample", help="results that are joined at most, as of attribute")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="folder to keep, or to use again, what is generated")
    parser.add_argument("--generate", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        if not (folder / "logs").exists():
            folder.mkdir(parents=True, exist_ok=True)
            # In a process of its own: what runs the command is to be small, since its memory would count.
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                numbers = (arguments.results, arguments.lines, arguments.copies, arguments.writes)
                lines = pool.submit(write, folder, *numbers, expiring=arguments.expiring).result()
            size = sum(path.stat().st_size for path in (folder / "logs").iterdir())
            print(f"{arguments.results:,} results, {lines:,} lines ({size / 1e9:.1f} GB)", flush=True)
        wrong = False
        for _ in range(0 if arguments.generate else arguments.rounds):
            seconds, cpu, largest, memory = run(folder, Path(temporary) / "found.json", arguments.sample)
            found = json.loads((Path(temporary) / "found.json").read_text())
            named = [each["name"] for each in found["findings"] if each["kind"] == "slow"]
            wrong |= memory > MOST_MEMORY or (
                arguments.copies == 1 and named != [f"d{SLOW} on node{SLOW % NODES}"]
            )
            print(
                f"{seconds:.1f} s, {cpu:.1f} s of CPU, {memory / 1e6:.0f} MB (largest process"
                f" {largest / 1e6:.0f} MB); of the run"
                f" {found['coverage']['lines_of_run']:,} lines; named by {found['coverage']['operations']:,}"
                f" results: {', '.join(named) or 'nobody'}",
                flush=True,
            )
    sys.exit(wrong)


if __name__ == "__main__":
    main()
