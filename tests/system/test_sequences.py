"""What follows other requests on the same object, on a real Swift: the log of its proxy has each request."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import swiftclient
import yaml
from processes import Fleet
from proxy_log import Logged, requests_in

from ssbench.local_swift import Layout, LocalSwift
from ssbench.scenario.names import MARK_PREFIX, format_object_name

#: By sequence: its steps, and the requests that these are, with their statuses.
SEQUENCES: dict[str, tuple[list[Any], list[str]]] = {
    "pull": (
        ["head_container", {"name": "list", "limit": 5}, "head", {"name": "range", "times": 2, "length": 50}],
        ["HEAD 204", "GET 200", "HEAD 200", "GET 206", "GET 206"],
    ),
    "push": (
        ["missing", "create", "head"],
        ["HEAD 404", "PUT 201", "HEAD 200"],
    ),
    "refresh": (["read", "update", "read", "tempurl"], ["GET 200", "PUT 201", "GET 200", "GET 200"]),
    "tag": (["post", "head"], ["POST 202", "HEAD 200"]),
    "drop": (["read", "delete", {"name": "missing", "method": "GET"}], ["GET 200", "DELETE 204", "GET 404"]),
    "renew": (["delete", "create"], ["DELETE 204", "PUT 201"]),
    "try": (["missing", "create_only", "delete"], ["HEAD 404", "PUT 201", "DELETE 204"]),
    "missing": ([], ["HEAD 404"]),
}


@pytest.fixture(scope="module")
def logging_swift() -> Iterator[LocalSwift]:
    with LocalSwift(layout=Layout(access_logs=True)) as swift:
        yield swift


@pytest.fixture
def client(logging_swift: LocalSwift) -> Iterator[swiftclient.Connection]:
    connection = swiftclient.Connection(logging_swift.auth_url, logging_swift.user, logging_swift.key)
    yield connection
    connection.close()


def run_scenario(
    fleet: Fleet, folder: Path, swift: LocalSwift, *options: object, **keys: Any
) -> tuple[list[dict[str, str]], str]:
    """Run a scenario; return its results, and what it said."""
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump({"name": "sequences", "user_count": 1, **keys}))
    environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    program = fleet.run(path, "--workers", 1, "--verify", *options, environment=environment)
    assert program.end(180) == 0, program.err
    out = folder / "rows.csv"
    assert fleet.master("export", "-s", fleet.stats, "-o", out).end() == 0
    with out.open() as file:
        return list(csv.DictReader(file)), program.out


def requests_of(row: dict[str, str], logged: list[Logged]) -> list[Logged]:
    """Return what the proxy logged while an operation was under way, of a run of one user."""
    begin, end = float(row["started_at"]), float(row["completed_at"])
    found = [each for each in logged if begin - 0.0005 <= each.began <= end and MARK_PREFIX not in each.path]
    return sorted(found, key=lambda each: each.began)


def test_each_request_of_sequences_is_in_the_log_of_the_store(
    fleet: Fleet,
    tmp_path: Path,
    logging_swift: LocalSwift,
    client: swiftclient.Connection,
    container_base: str,
) -> None:
    rows, said = run_scenario(
        fleet,
        tmp_path,
        logging_swift,
        "--seed",
        5,
        sizes=[{"name": "tiny", "size_min": 1000, "size_max": 3000}],
        initial_files={"tiny": 30},
        operation_count=60,
        container_base=container_base,
        container_count=2,
        object_names="{hash:1}/{name}",
        profile=dict.fromkeys(SEQUENCES, 1),
        operations=[{"name": name, "steps": steps} for name, (steps, _) in SEQUENCES.items() if steps],
    )
    assert not [row for row in rows if row["error"]]
    assert {row["operation"] for row in rows} == SEQUENCES.keys()
    logged = requests_in(logging_swift.proxy.log)
    for row in rows:
        name, asked = row["operation"], requests_of(row, logged)
        assert [f"{each.method} {each.status}" for each in asked] == SEQUENCES[name][1], name
        bodies = [each.sent for each in asked if each.method == "GET"] + [each.received for each in asked]
        assert int(row["size"]) == sum(bodies), name
        assert asked[-1].trans_id == row["trans_id"]
        for each in asked:
            path, _, query = each.path.partition("?")
            container, _, found = path.removeprefix("/v1/AUTH_test/").partition("/")
            of_object = found or unquote(query.partition("prefix=")[2].partition("&")[0])
            assert container == row["container"]
            assert of_object.startswith(row["object"]) or (each.method, found) == ("HEAD", "")
        times = [float(row[f"step_{number}"]) for number in range(1, len(SEQUENCES[name][0]) + 1)]
        assert sum(times) == pytest.approx(float(row["last_byte_latency"]) if times else 0)
    # Each listing by the name of an object that exists has that.
    assert {row["entries"] for row in rows if row["operation"] == "pull"} == {"1"}
    assert "2 x range" in said
    there = {
        each["name"]
        for number in range(2)
        for each in client.get_container(f"{container_base}_{number:06d}")[1]
    }
    dropped = {row["object"] for row in rows if row["operation"] == "drop"}
    initial = {format_object_name("{hash:1}/{name}", "tiny", number) for number in range(1, 31)}
    # What was created is deleted after the run.
    assert there == initial - dropped
