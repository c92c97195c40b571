"""Objects in segments on a real Swift: what its log says of each request, and what swiftclient finds."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import swiftclient
import yaml
from processes import Fleet
from proxy_log import Logged, requests_in
from runs import wait_until

from ssbench.local_swift import Layout, LocalSwift
from ssbench.results.block import LOST_CAUSE
from ssbench.scenario.names import MARK_PREFIX

SEGMENT, MOST = 7000, 18_000
OPERATIONS = ("create", "create_only", "update", "delete", "read", "range", "parts", "head", "refresh")


@pytest.fixture(scope="module")
def logging_swift() -> Iterator[LocalSwift]:
    with LocalSwift(layout=Layout(access_logs=True)) as swift:
        yield swift


@pytest.fixture
def client(logging_swift: LocalSwift) -> Iterator[swiftclient.Connection]:
    connection = swiftclient.Connection(logging_swift.auth_url, logging_swift.user, logging_swift.key)
    yield connection
    connection.close()


@pytest.fixture
def environment(logging_swift: LocalSwift) -> dict[str, str]:
    return {"ST_AUTH": logging_swift.auth_url, "ST_USER": logging_swift.user, "ST_KEY": logging_swift.key}


def write_scenario(folder: Path, base: str, **keys: Any) -> Path:
    path = folder / "segments.yaml"
    of_class = {"size_min": 10_000, "size_max": MOST, "segment_size": SEGMENT}
    scenario = {
        "name": "segments",
        "sizes": [{"name": "static", **of_class}, {"name": "dynamic", **of_class, "segments": "dynamic"}],
        "initial_files": {"static": 5, "dynamic": 5},
        "container_base": base,
        "container_count": 2,
        "user_count": 1,
        "operation_count": 32,
        "profile": dict.fromkeys(OPERATIONS, 1),
        "operations": [
            {"name": "refresh", "steps": ["list", "head", "update", {"name": "parts", "times": 2}]}
        ],
        **keys,
    }
    path.write_text(yaml.safe_dump(scenario))
    return path


def results_of(fleet: Fleet, folder: Path) -> list[dict[str, str]]:
    out = folder / "rows.csv"
    assert fleet.master("export", "-s", fleet.stats, "-o", out).end() == 0
    with out.open() as file:
        return list(csv.DictReader(file))


def expect(name: str, kind: str, parts: int, old: int) -> Counter[str]:
    """The requests of an operation on an object of so many segments, that had so many before."""
    dynamic = kind == "dynamic"
    look = ["HEAD object 200", "GET listing 200" if dynamic else "GET object 200"]
    write = [*["PUT segment 201"] * parts, "PUT object 201"]
    update = [*look, *write, *["DELETE segment 204"] * old]
    delete = [*look, "DELETE object 204", *["DELETE segment 204"] * old] if dynamic else ["DELETE object 200"]
    read_parts = ["GET object 206"] * parts
    return Counter(
        {
            "create": write,
            "create_only": write,
            "update": update,
            "delete": delete,
            "read": ["GET object 200"],
            "range": ["GET object 206"],
            "parts": read_parts,
            "head": ["HEAD object 200"],
            "refresh": ["GET listing 200", "HEAD object 200", *update, *read_parts * 2],
        }[name]
    )


def describe(request: Logged) -> str:
    path, _, query = request.path.partition("?")
    kind = "segment" if "_segments/" in path else "listing" if "prefix=" in query else "object"
    return f"{request.method} {kind} {request.status}"


def segments_of(client: swiftclient.Connection, base: str) -> set[str]:
    return {
        f"{base}_{number:06d}_segments/{each['name']}"
        for number in range(2)
        for each in client.get_container(f"{base}_{number:06d}_segments", full_listing=True)[1]
    }


def read_objects(client: swiftclient.Connection, base: str) -> dict[str, list[str]]:
    """Read every object whole and by its segments; return where these are."""
    found = {}
    for container in (f"{base}_{number:06d}" for number in range(2)):
        for row in client.get_container(container, full_listing=True)[1]:
            name = row["name"]
            if name.startswith(MARK_PREFIX):
                continue
            fields, whole = client.get_object(container, name)
            if name.startswith("static"):
                assert fields["x-static-large-object"] == "True"
                raw = "multipart-manifest=get&format=raw"
                rows = json.loads(client.get_object(container, name, query_string=raw)[1])
                places = [each["path"].lstrip("/") for each in rows]
                assert [each["size_bytes"] for each in rows][:-1] == [SEGMENT] * (len(rows) - 1)
            else:
                prefix = fields["x-object-manifest"]
                beside, _, beginning = prefix.partition("/")
                listed = client.get_container(beside, prefix=beginning, full_listing=True)[1]
                places = [f"{beside}/{each['name']}" for each in listed]
            assert fields["x-object-meta-ssbench-owner"]
            assert all(place.startswith(f"{container}_segments/{name}/segments/") for place in places)
            parts = [client.get_object(*place.split("/", 1))[1] for place in places]
            assert {len(each) for each in parts[:-1]} <= {SEGMENT}
            assert b"".join(parts) == whole
            found[name] = places
    return found


def find_orphans(client: swiftclient.Connection, base: str) -> set[str]:
    """Return where segments are that no object has; each object is read."""
    return segments_of(client, base).difference(*read_objects(client, base).values())


@pytest.mark.long
def test_each_request_for_objects_in_segments_is_in_the_log_of_the_store(
    fleet: Fleet,
    tmp_path: Path,
    logging_swift: LocalSwift,
    client: swiftclient.Connection,
    environment: dict[str, str],
    container_base: str,
) -> None:
    path = write_scenario(tmp_path, container_base)
    options = ["--workers", 1, "--verify", "--seed", 3, "--keep-objects"]
    run = fleet.run(path, *options, environment=environment)
    assert run.end() == 0, run.err
    rows = results_of(fleet, tmp_path)
    assert not [row for row in rows if row["error"]]
    # With this seed each operation meets objects of both kinds.
    met = {(row["operation"], row["object"].split("_")[0]) for row in rows}
    assert met == {(operation, kind) for operation in OPERATIONS for kind in ("static", "dynamic")}
    logged = [each for each in requests_in(logging_swift.proxy.log) if MARK_PREFIX not in each.path]
    known: dict[str, int] = {}
    for row in sorted(rows, key=lambda each: float(each["started_at"])):
        begin, end = float(row["started_at"]), float(row["completed_at"])
        asked = [each for each in logged if begin - 0.0005 <= each.began <= end]
        kind, name = row["object"].split("_")[0], row["operation"]
        parts = sum(describe(each) == "PUT segment 201" for each in asked)
        if not parts:
            parts = sum(describe(each) == "GET object 206" for each in asked)
        old = sum(describe(each) == "DELETE segment 204" for each in asked)
        if row["object"] in known and name in {"update", "refresh"}:
            assert old == known[row["object"]]
        if name not in {"read", "range", "head", "delete"}:
            known[row["object"]] = parts
        assert Counter(map(describe, asked)) == expect(name, kind, parts, old), (name, kind)
        # All of them are for that object, and the bytes of all are told.
        place = f"{row['container']}/{row['object']}"
        beside = f"{row['container']}_segments/{row['object']}/segments/"
        assert all(place in each.path or beside in each.path or "prefix=" in each.path for each in asked)
        told = [each.sent for each in asked if each.method in {"GET", "DELETE"}]
        assert int(row["size"]) == sum(told) + sum(each.received for each in asked), (name, kind)
    assert max(map(len, read_objects(client, container_base).values())) > 2
    assert not find_orphans(client, container_base)
    for line in ("CREATE by step, mean ms: segments", "PARTS by step, mean ms: first part"):
        assert line in run.out
    # Objects that an earlier run left are written anew, with all of their segments.
    path = write_scenario(tmp_path, container_base, profile={"create": 1, "update": 1, "read": 1, "parts": 1})
    prepared = fleet.master("prepare", path, "--workers", 1, environment=environment)
    assert prepared.end(120) == 0, prepared.err
    again = fleet.run(
        path, "--workers", 1, "-o", 16, "-u", 6, "--prepared", "--seed", 6, environment=environment
    )
    assert again.end() == 0, again.err
    assert not find_orphans(client, container_base)
    cleaned = fleet.master("cleanup-containers", "--yes", "-b", container_base, environment=environment)
    assert cleaned.end() == 0, cleaned.err
    names = [each["name"] for each in client.get_account(full_listing=True)[1]]
    assert not [name for name in names if name.startswith(container_base)]


@pytest.mark.long
def test_workers_that_are_killed_within_large_objects_leave_no_segment_unsaid(
    fleet: Fleet,
    tmp_path: Path,
    logging_swift: LocalSwift,
    client: swiftclient.Connection,
    environment: dict[str, str],
    container_base: str,
) -> None:
    path = write_scenario(
        tmp_path,
        container_base,
        user_count=6,
        operation_count=45,
        profile={"create": 2, "update": 5, "delete": 1},
    )
    run = fleet.run(path, "--workers", 2, "--seed", 3, environment=environment)
    killed = run.wait_for(r"Worker 1 on \S+ \(pid (\d+)\) joined")
    run.wait_for("Starting the benchmark")
    deleted = re.compile(rf" DELETE /v1/AUTH_test/{container_base}_00000[01]_segments/")
    wait_until(
        lambda: len(deleted.findall(logging_swift.proxy.log.read_text("utf-8", "replace"))) > 3, "updates"
    )
    os.kill(int(killed[1]), signal.SIGKILL)
    run.end(120)
    rows = results_of(fleet, tmp_path)
    lost = [row for row in rows if row["error"] == LOST_CAUSE]
    assert lost
    # Objects are whole at any time, and new ones go with their segments. Of others the run says what may be.
    orphans = find_orphans(client, container_base)
    initial = {f"{kind}_{number:06d}" for kind in ("static", "dynamic") for number in range(1, 6)}
    assert {place.split("/")[1] for place in segments_of(client, container_base)} <= initial
    replaced = sum(row["operation"] in {"update", "delete"} for row in lost)
    said = f"and {replaced} such operations did not finish" in run.err
    assert said == bool(replaced)
    assert said or not orphans
    cleaned = fleet.master("cleanup-containers", "--yes", "-b", container_base, environment=environment)
    assert cleaned.end() == 0, cleaned.err
    names = [each["name"] for each in client.get_account(full_listing=True)[1]]
    assert not [name for name in names if name.startswith(container_base)]
