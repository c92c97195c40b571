"""What an operation costs the worker and the master in a real run, next to wrk, against nginx on memory.

    python bench/whole_worker.py [--rounds N] [--seconds S] [--json FILE] [--only WORD ...]

Each case runs the real program (one local worker; job in, request, result out, stat file and all)
and then wrk with as many connections, by turns, and nectar for small objects where it is installed.
CPU is that of the worker's process, of the master's, of wrk's, of nectar's; "latency" is the median of
last-byte latencies that the report shows, next to wrk's median.
"memory" runs objects of 5 GB with 64 users, downloads and then uploads, and shows the most that the
worker's process had resident. README.rst says how to read the table.
"""

from __future__ import annotations

import argparse
import shutil
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import spread as spreads
from objects import HUGE, sink
from program import Ran, run
from saving import save
from yardsticks import Nginx, nectar, require, wrk

spread = partial(spreads.spread, middle="6.3g")


class Case(NamedTuple):
    method: str
    size: int
    users: int
    batch: int = 1
    tls: bool = False

    @property
    def name(self) -> str:
        return f"{'TLS-' if self.tls else ''}{self.method}-{self.size}-u{self.users}-b{self.batch}"

    @property
    def large(self) -> bool:
        return self.size >= 1_000_000


CASES = [
    *(Case(method, 4096, 32, batch) for batch in (1, 8) for method in ("GET", "PUT")),
    *(Case(method, 1_000_000, 16) for method in ("GET", "PUT")),
    *(Case(method, 100_000_000, 4) for method in ("GET", "PUT")),
    *(Case(method, size, 16, tls=True) for size in (4096, 1_000_000) for method in ("GET", "PUT")),
]


def scenario(case: Case, initial: int) -> dict[str, object]:
    # Uploads are updates, which put over and over what is there, as wrk does.
    return {
        "name": case.name,
        "sizes": [{"name": "o", "size_min": case.size, "size_max": case.size}],
        "initial_files": {"o": initial},
        "operation_count": 1,
        "crud_profile": [0, 100, 0, 0] if case.method == "GET" else [0, 0, 100, 0],
        "user_count": case.users,
        "container_count": 4,
        "container_base": f"bench{case.size}",  # initial objects that are there already are not uploaded
        "container_concurrency": 4,
    }


def ours(url: str, case: Case, seconds: float, interrupt_after: float | None = None) -> Ran:
    initial = case.users if case.large else 500
    return run(
        [
            f"--storage-url={url}/v1/a",
            "--token=AUTH_tk0123456789abcdef",
            "--insecure",
            "--workers=1",
            f"--batch-size={case.batch}",
            f"--run-seconds={seconds:g}",
        ],
        scenario(case, initial),
        interrupt_after,
    )


def compare(nginx: Nginx, case: Case, rounds: int, seconds: float) -> dict[str, Any]:
    url = nginx.url(case.tls)
    nginx.store("c/o_000000", case.size)
    path = f"{url}/c/o_{'000099' if case.method == 'PUT' else '000000'}"
    seconds = max(seconds, case.size / 20_000_000)  # so that each user ends several
    pairs, nectars = [], []
    for _ in range(rounds):
        ran = ours(url, case, seconds)
        pairs.append((ran, wrk(path, case.method, case.size, case.users, seconds)))
        if shutil.which("nectar") and not case.large and not case.tls:
            nectars.append(nectar(nginx, case.method, case.size, case.users, int(seconds * 15_000)))
    # Of large objects milliseconds a MB, of small ones microseconds an operation.
    scale = 1e9 / case.size if case.large else 1e6
    found: dict[str, Any] = {
        "case": case.name,
        "unit": "ms/MB" if case.large else "us/op",
        "worker": [ran.worker_cpu * scale for ran, _ in pairs],
        "wrk": [one.cpu / one.operations * scale for _, one in pairs],
        "nectar": [cpu * scale for cpu in nectars],
        "worker_to_nectar": [ran.worker_cpu / cpu for (ran, _), cpu in zip(pairs, nectars, strict=False)],
        "worker_to_wrk": [ran.worker_cpu / one.cpu * one.operations for ran, one in pairs],
        "master_us": [ran.master_cpu * 1e6 for ran, _ in pairs],
        "latency": [median_latency(ran) for ran, _ in pairs],
        "wrk_latency": [one.median_latency for _, one in pairs],
        "latency_to_wrk": [median_latency(ran) / one.median_latency for ran, one in pairs],
        "rate": [ran.rate for ran, _ in pairs],
        "wrk_rate": [one.operations / one.seconds for _, one in pairs],
    }
    print(
        f"{case.name:18} {found['unit']} worker {spread(found['worker'])} wrk {spread(found['wrk'])}"
        f" ratio {spread(found['worker_to_wrk'])}"
        + (f" nectar {spread(found['nectar'])} ratio {spread(found['worker_to_nectar'])}" if nectars else "")
        + f"; master us/op {spread(found['master_us'])};"
        f" latency ms {spread(found['latency'], 1e3)} wrk's {spread(found['wrk_latency'], 1e3)}"
        f" ratio {spread(found['latency_to_wrk'])}; op/s {spread(found['rate'])}"
        f" wrk's {spread(found['wrk_rate'])}",
        flush=True,
    )
    return found


def median_latency(ran: Ran) -> float:
    return ran.statistics.sections[0].lines[0].last_byte.percentile(50)


def memory(nginx: Nginx, users: int, seconds: float) -> dict[str, Any]:
    """The most that the worker had resident, bytes: downloads, then uploads."""
    for number in range(1, users + 1):
        nginx.store(f"v1/a/bench{HUGE}_{(number - 1) % 4:06d}/o_{number:06d}", HUGE)
    downloads = ours(nginx.url(), Case("GET", HUGE, users), 3600, seconds).worker_peak
    with sink() as listener:
        port = listener.getsockname()[1]
        uploads = ours(f"http://127.0.0.1:{port}", Case("PUT", HUGE, users), 3600, seconds).worker_peak
    print(f"5 GB objects, {users} users: worker resident {downloads / 1e6:.1f} MB, {uploads / 1e6:.1f} MB")
    return {"case": "memory", "downloads": downloads, "uploads": uploads}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "whole_worker.json")
    parser.add_argument("--only", nargs="*", default=[""], metavar="WORD", help="GET-4096, TLS, memory ...")
    options = parser.parse_args()
    require("nginx", "wrk")
    results = []
    with Nginx() as nginx:
        for case in CASES:
            if any(word in case.name for word in options.only):
                results.append(compare(nginx, case, options.rounds, options.seconds))
        if any(word in "memory" for word in options.only):
            results.append(memory(nginx, 64, 15.0))
    save(options.json, results=results)


if __name__ == "__main__":
    main()
