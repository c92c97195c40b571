"""Do logs name the device that bounds a store, and nobody else?

    python bench/bounding_servers.py [--delays MS ...] [--runs N] [--users N] [--seconds S] [--json FILE]

An embedded Swift (two proxies, six object servers with a device each, three replicas) reads objects of 4 kB
for more users than it bears. One device, another one in each run, has each of its requests wait for the one
before, so many ms each (0: none has; 50+5: a second device has 5 ms). How often it is said to bound the store
(bound), anybody else is (wrong), it is called slow without that (slow), anybody else is called slow
(accused), or nobody is (nobody), with the median p99 of all requests and of those without who is called slow.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from saving import save
from yardsticks import free_port

from ssbench.cluster.attribute import find_logged_limit
from ssbench.comparison.store_limits import LoggedRun
from ssbench.local_swift import Layout, LocalSwift

LAYOUT = Layout(replicas=3, devices=6, object_servers=6, proxies=2, access_logs=True)
MASTER = (sys.executable, "-m", "ssbench.cli.master")

SCENARIO = """
name: reads
sizes: [{{name: one, size: 4kB}}]
initial_files: {{one: 200}}
profile: {{read: 1}}
user_count: {users}
run_seconds: {seconds}
"""


def read_objects(swift: LocalSwift, folder: Path, users: int, seconds: float) -> Path:
    """Carry out a run; return its stat file."""
    scenario, stats = folder / "reads.yaml", folder / "reads.stat.gz"
    scenario.write_text(SCENARIO.format(users=users, seconds=seconds))
    ports = (f"--zmq-work-port={free_port()}", f"--zmq-results-port={free_port()}")
    access = ("-A", swift.auth_url, "-U", swift.user, "-K", swift.key, "--workers=1", *ports)
    words = ("-q", "run-scenario", "-f", scenario, "-s", stats, "--force", "-R", *access)
    subprocess.run([*map(str, (*MASTER, *words))], check=True, stdout=subprocess.DEVNULL)
    return stats


def judge(found: LoggedRun, guilty: str) -> str:
    """Return what is said of a run in which a device bounds the store; empty: none does."""
    if found.slow:
        return "bound" if guilty and found.slow == (guilty,) else "wrong"
    if not found.headline.startswith(("Slow: ", "One of these is slow")):
        return "nobody"
    return "slow" if guilty and guilty in found.headline else "accused"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--delays", nargs="+", default=["0", "2", "5", "10", "20", "50", "50+5"])
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--users", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "bounding.json")
    options = parser.parse_args()
    rows = []
    with LocalSwift(layout=LAYOUT) as swift, tempfile.TemporaryDirectory() as name:
        logs = [str(swift.log_directory)]
        owners = [*LAYOUT.device_owners.items()]
        for delay in options.delays:
            seconds = [float(each) / 1000 for each in delay.split("+")]
            said: Counter[str] = Counter()
            found = []
            for run in range(options.runs):
                slow = [owners[(run + place) % len(owners)] for place in range(len(seconds))]
                for (device, _), each in zip(slow, seconds, strict=True):
                    if each:
                        swift.slow(device, each, where="block")
                stats = read_objects(swift, Path(name), options.users, options.seconds)
                for device, _ in slow:
                    swift.repair(device)
                found.append(find_logged_limit(stats, "read", swift_logs=logs, template=None))
                device, owner = slow[0]
                said[judge(found[-1], f"{device} on {owner}" if seconds[0] else "")] += 1
                named = ", ".join(found[-1].slow) or "nobody"
                print(f"  {delay} ms, {device}: {found[-1].headline}: {named}", file=sys.stderr, flush=True)
            p99, others = (
                statistics.median(1000 * getattr(each, which) for each in found)
                for which in ("p99", "p99_of_others")
            )
            rows.append({"delay": delay, "said": said, "p99": p99, "p99 of others": others})
            words = ", ".join(f"{what} {count}" for what, count in said.most_common())
            print(f"{delay} ms: {words}; p99 {p99:.0f} ms, of others {others:.0f} ms", flush=True)
    save(options.json, rows=rows)


if __name__ == "__main__":
    main()
