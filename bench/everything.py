"""Every operation at once on a real Swift, compared with what the log of its proxy says.

    python bench/everything.py [--seconds N] [--users U] [--seed S] [--accounts A]

Needs ``pip install '.[swift]'``. All operations of ssbench have the same weight, bodies are verified. Beside
them is what else a scenario may ask for: sizes of a distribution, compressible bodies, metadata, popularity
and reuse, names by a template, a share of new connections, and with ``--accounts`` several accounts of a
reseller admin (without temporary URLs, for which each account would need a key).

Then each success has to be in the log with its transaction id, method, status and path; each method has to be
there as often as the results say; and nothing may be left in the accounts but the initial objects, with their
metadata, and empty containers, and after the clean-up not even these: no version, no key of temporary URLs,
no hidden container.

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

import swiftclient
import yaml

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from processes import Fleet
from proxy_log import Logged, requests_in

from ssbench.local_swift import Layout, LocalSwift
from ssbench.scenario.names import MARK_PREFIX
from ssbench.scenario.operations import OPERATIONS

SEGMENTS, OBJECTS, VERSIONS = 3, 4, 3
STEPS = ["create", "post", "read", "head", "update", "delete"]
INITIAL = {"tiny": 200, "large": 20}
LARGE = {"lognormal": {"median": "200kB", "sigma": 1.0}, "min": "70kB", "max": "900kB"}

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


def scenario(options: argparse.Namespace) -> dict[str, object]:
    """Return a scenario of all operations."""
    return {
        "name": "everything",
        "sizes": [
            {"name": "tiny", "size_min": 1, "size_max": 4000},
            {"name": "large", "size": LARGE},
        ],
        "body": {"compressible": 0.6},
        "metadata": {"number": 3, "size": 40},
        "popularity": {"zipf": 0.99},
        "reuse": {"share": 0.3, "distance": "1..50"},
        "connections": {"new": 0.1},
        "object_names": "{hash:2}/{class}/{number:06d}",
        "accounts": options.accounts,
        "account_base": "every",
        "initial_files": INITIAL,
        "user_count": options.users,
        "run_seconds": options.seconds,
        "container_base": "all",
        "container_count": 3,
        "container_put_headers": {"X-Container-Read": ".r:*"},
        "delete_after": "1h..2h",
        "profile": {
            row.name: 1 + (row.name == "create")
            for row in OPERATIONS.drawn
            if not row.defined and not (row.name == "tempurl" and options.accounts > 1)
        },
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
        place = f"{row['account']}/{row['container']}/{row['object']}"
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


def look(accounts: list[swiftclient.Connection], rows: list[dict[str, str]]) -> list[str]:
    """Say what is left in accounts after a run."""
    wrong = []
    names = {f"{name}/{number:06d}" for name, count in INITIAL.items() for number in range(1, count + 1)}
    deletes = [row for row in rows if row["operation"] == "delete" and not row["error"]]
    deleted = {row["object"].partition("/")[2] for row in deletes}
    there = set()
    for account in accounts:
        for container in account.get_account(full_listing=True)[1]:
            listed = account.get_container(container["name"], query_string="versions", full_listing=True)[1]
            for each in listed:
                there.add(each["name"].partition("/")[2])
                metadata = account.head_object(container["name"], each["name"])
                if sum(name.startswith("x-object-meta-") for name in metadata) < 3:
                    wrong.append(f"metadata of {each['name']}: {metadata}")
        keys = [name for name in account.head_account() if "temp-url-key" in name]
        wrong += [f"the account has the key {name}" for name in keys]
    if there != names - deleted:
        wrong.append(f"left: {sorted(there - names)}, missing: {sorted(names - deleted - there)}")
    return wrong


def share_of_new(rows: list[dict[str, str]]) -> list[str]:
    """Say whether as many operations had a new connection as were asked for, within 6 standard deviations."""
    single = [row for row in rows if row["operation"] not in SEVERAL]
    new = sum(int(row["connections"]) > 0 for row in single)
    far = abs(new - 0.1 * len(single)) > 6 * (0.09 * len(single)) ** 0.5 + 10
    return [f"{new} of {len(single)} operations had new connections"] * far


def connected(auth_url: str, user: str, key: str, count: int) -> list[swiftclient.Connection]:
    """Return a connection to each account: the user's own, or so many of an admin's."""
    own = swiftclient.Connection(auth_url, user, key)
    if count == 1:
        return [own]
    base = own.get_auth()[0].rpartition("/")[0]
    own.close()
    return [
        swiftclient.Connection(
            auth_url, user, key, os_options={"object_storage_url": f"{base}/AUTH_every{number}"}
        )
        for number in range(1, count + 1)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long (%(default)g)")
    parser.add_argument("--users", type=int, default=8, help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the operations (%(default)s)")
    parser.add_argument("--accounts", type=int, default=1, help="(%(default)s)")
    options = parser.parse_args()
    several = options.accounts > 1
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        swift = stack.enter_context(LocalSwift(layout=Layout(access_logs=True)))
        fleet = stack.enter_context(Fleet(folder))
        user, key = (swift.admin, swift.admin_key) if several else (swift.user, swift.key)
        accounts = connected(swift.auth_url, user, key, options.accounts)
        for account in accounts:
            stack.callback(account.close)
            account.post_account({})
        path = folder / "everything.yaml"
        path.write_text(yaml.safe_dump(scenario(options)))
        environment = {"ST_AUTH": swift.auth_url, "ST_USER": user, "ST_KEY": key}
        run = fleet.run(path, "--workers", 1, "--verify", "--seed", options.seed, environment=environment)
        code = run.end(options.seconds + 600)
        exported = folder / "rows.csv"
        fleet.master("export", "-s", fleet.stats, "-o", exported).end(300)
        with exported.open() as file:
            rows = list(csv.DictReader(file))
        marks = f"/{MARK_PREFIX}"
        logged = [each for each in requests_in(swift.proxy.log) if marks not in each.path]
        wrong = [f"the run ended with {code}: {run.err[-2000:]}"] * (code != 0)
        wrong += compare(rows, logged) + look(accounts, rows) + share_of_new(rows)
        of_all = ["--accounts", options.accounts, "--account-base", "every"] * several
        cleaned = fleet.master("cleanup-containers", "--yes", "-b", "all", *of_all, environment=environment)
        code = cleaned.end(300)
        left = [each["name"] for account in accounts for each in account.get_account()[1]]
        if code or left:
            wrong.append(f"containers survive the clean-up: {left} {cleaned.err}")
    for name, count in sorted(Counter(row["operation"] for row in rows).items()):
        print(f"{name:15}{count:7,}")
    print(f"requests of clients in the log: {len(logged):,}")
    for text in wrong[:30]:
        print(f"WRONG: {text}")
    print(f"Verdict: {len(wrong)} things are wrong" if wrong else "Verdict: all is well")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
