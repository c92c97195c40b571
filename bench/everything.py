"""Every operation at once on a real Swift, compared with what the log of its proxy says.

    python bench/everything.py [--seconds N] [--users U] [--seed S]

Needs ``pip install '.[swift]'``. All operations of ssbench have the same weight, bodies are verified. Then
each success has to be in the log with its transaction id, method, status and path; each method has to be
there as often as the results say; and nothing may be left in the account but the initial objects and empty
containers, and after the clean-up not even these: no version, no key of temporary URLs, no hidden container.

Prints a table and a verdict; exit code 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import swiftclient
import yaml

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from processes import Fleet

from ssbench.local_swift import Layout, LocalSwift
from ssbench.names import MARK_PREFIX
from ssbench.operations import OPERATIONS

SEGMENTS, OBJECTS, VERSIONS = 3, 4, 3
STEPS = ["create", "post", "read", "head", "update", "delete"]
INITIAL = {"tiny": 200, "large": 20}

#: The requests that each success of an operation is, where it is more than one of its method.
REQUESTS = {
    "symlink": ["PUT", "GET", "DELETE"],
    "slo": [*["PUT"] * (SEGMENTS + 1), *["GET"] * 3, "DELETE"],
    "dlo": [*["PUT"] * (SEGMENTS + 1), *["GET"] * 2, *["DELETE"] * (SEGMENTS + 1)],
    "bulk": ["PUT", "POST"],
    "versions": [*["PUT"] * VERSIONS, "GET", "GET", *["DELETE"] * (VERSIONS + 2)],
    "sequence": ["PUT", "POST", "GET", "HEAD", "PUT", "DELETE"],
}

#: Paths and statuses of these are of requests that the row of the result does not name.
SEVERAL = frozenset(REQUESTS)


class Logged(NamedTuple):
    """A request of a client in the log of the proxy."""

    method: str
    path: str
    status: int
    trans_id: str
    began: float


def requests_in(log: Path) -> list[Logged]:
    """Return the requests of clients: of each transaction the line without a source, else the last one.

    The line of a PUT in a container with versions has a source, as those have that middleware makes of it.
    """
    found: dict[str, tuple[bool, Logged]] = {}
    for line in log.read_text("utf-8", "replace").splitlines():
        words = line.split(" ")
        begin = next((place for place, word in enumerate(words) if word.startswith("HTTP/1")), 0)
        rest = words[begin:]
        # protocol status referer agent token received sent etag trans_id headers time source log_info begin
        if begin < 2 or len(rest) < 14:
            continue
        method, path = words[begin - 2 : begin]
        trans_id, of_client = unquote(rest[8]), rest[11] == "-"
        if of_client or not found.get(trans_id, (False,))[0]:
            logged = Logged(method, unquote(path), int(rest[1]), trans_id, float(rest[13]))
            found[trans_id] = of_client, logged
    return [logged for _, logged in found.values()]


def scenario(options: argparse.Namespace) -> dict[str, object]:
    """Return a scenario of all operations."""
    return {
        "name": "everything",
        "sizes": [
            {"name": "tiny", "size_min": 1, "size_max": 4000},
            {"name": "large", "size_min": 70_000, "size_max": 900_000},
        ],
        "initial_files": INITIAL,
        "user_count": options.users,
        "run_seconds": options.seconds,
        "container_base": "all",
        "container_count": 3,
        "container_put_headers": {"X-Container-Read": ".r:*"},
        "delete_after": "1h..2h",
        "profile": {row.name: 1 for row in OPERATIONS.drawn if not row.defined} | {"create": 2},
        "operations": [
            {"name": "slo", "segment_size": "1..200kB", "reads": ["whole", "range", "part"]},
            {"name": "dlo", "segment_size": "1..200kB", "reads": ["whole", "range"]},
            {"name": "bulk", "objects": OBJECTS, "size": "0..5kB"},
            {"name": "versions", "versions": VERSIONS, "size": "1..5kB"},
            {"name": "range", "length": "1..50kB"},
            {"name": "sequence", "steps": STEPS},
        ],
    }


def compare(rows: list[dict[str, str]], logged: list[Logged]) -> list[str]:
    """Say how results and the log differ."""
    wrong = []
    by_id = {each.trans_id: each for each in logged}
    expected: Counter[str] = Counter()
    for row in rows:
        name = row["operation"]
        expected.update(REQUESTS.get(name, [OPERATIONS.named(name).method]))
        if row["error"]:
            wrong.append(f"{name}: {row['error']} {row['error_detail']}")
            continue
        there = by_id.get(row["trans_id"])
        if there is None:
            wrong.append(f"{name}: {row['trans_id']} is not in the log")
            continue
        if there.status != int(row["status"]):
            wrong.append(f"{name}: status {row['status']}, in the log {there}")
        if name not in SEVERAL and there.method != OPERATIONS.named(name).method:
            wrong.append(f"{name}: in the log {there}")
        place = f"/{row['container']}/{row['object']}"
        if name not in {*SEVERAL, "copy"} and row["object"] and place not in there.path:
            wrong.append(f"{name} of {place}: in the log {there}")
    begin = min(float(row["started_at"]) for row in rows) - 0.01
    end = max(float(row["completed_at"]) for row in rows)
    found = Counter(each.method for each in logged if begin <= each.began <= end)
    wrong += [
        f"{method}: {found[method]} in the log, {expected[method]} by the results"
        for method in sorted({*found, *expected})
        if found[method] != expected[method]
    ]
    return wrong


def look(account: swiftclient.Connection, rows: list[dict[str, str]]) -> list[str]:
    """Say what is left in the account after a run."""
    wrong = []
    deleted = {row["object"] for row in rows if row["operation"] == "delete" and not row["error"]}
    names = {f"{name}_{number:06d}" for name, count in INITIAL.items() for number in range(1, count + 1)}
    there = set()
    for container in account.get_account(full_listing=True)[1]:
        listed = account.get_container(container["name"], query_string="versions", full_listing=True)[1]
        there |= {each["name"] for each in listed}
    if there != names - deleted:
        wrong.append(f"left: {sorted(there - names)}, missing: {sorted(names - deleted - there)}")
    keys = [name for name in account.head_account() if "temp-url-key" in name]
    return wrong + [f"the account has the key {name}" for name in keys]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long (%(default)g)")
    parser.add_argument("--users", type=int, default=8, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the operations (%(default)s)")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        swift = stack.enter_context(LocalSwift(layout=Layout(access_logs=True)))
        fleet = stack.enter_context(Fleet(folder))
        account = swiftclient.Connection(swift.auth_url, swift.user, swift.key)
        stack.callback(account.close)
        account.post_account({})
        before = account.head_account()["x-account-container-count"]
        path = folder / "everything.yaml"
        path.write_text(yaml.safe_dump(scenario(options)))
        environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
        run = fleet.run(path, "--workers", 1, "--verify", "--seed", options.seed, environment=environment)
        code = run.end(options.seconds + 600)
        exported = folder / "rows.csv"
        fleet.master("export", "-s", fleet.stats, "-o", exported).end(300)
        with exported.open() as file:
            rows = list(csv.DictReader(file))
        marks = f"/{MARK_PREFIX}"
        logged = [each for each in requests_in(swift.proxy.log) if marks not in each.path]
        wrong = [f"the run ended with {code}: {run.err[-2000:]}"] * (code != 0)
        wrong += compare(rows, logged) + look(account, rows)
        cleaned = fleet.master("cleanup-containers", "--yes", "-b", "all", environment=environment)
        if cleaned.end(300) or account.head_account()["x-account-container-count"] != before:
            wrong.append(f"containers survive the clean-up: {account.get_account()[1]} {cleaned.err}")
    for name, count in sorted(Counter(row["operation"] for row in rows).items()):
        print(f"{name:15}{count:7,}")
    print(f"requests of clients in the log: {len(logged):,}")
    for text in wrong[:30]:
        print(f"WRONG: {text}")
    print(f"Verdict: {len(wrong)} things are wrong" if wrong else "Verdict: all is well")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
