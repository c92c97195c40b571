"""Operations beyond create, read, update and delete on a real Swift; what they did is read by swiftclient."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import swiftclient
import yaml
from processes import Fleet

from ssbench.base.errors import UsageError
from ssbench.local_swift import LocalSwift
from ssbench.results.reading import open_results
from ssbench.run.bench_options import RunOptions
from ssbench.run.setup import refuse_missing_features
from ssbench.run.tokens import TokenSource
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS, OperationSettings
from ssbench.scenario.structured_values import Metadata
from ssbench.store.contract import Capabilities, StoreAccess
from ssbench.store.credentials import Session
from ssbench.store.stores import STORE
from ssbench.store.swift.store import SwiftStore

INITIAL = 12


class Ran:
    """A run that has ended: its program, and its results as rows of text."""

    def __init__(
        self, fleet: Fleet, folder: Path, swift: LocalSwift, base: str, *options: object, **keys: Any
    ):
        scenario = {
            "name": "more",
            "sizes": [{"name": "tiny", "size_min": 1000, "size_max": 3000}],
            "initial_files": {"tiny": INITIAL},
            "operation_count": 60,
            "user_count": 4,
            "container_base": base,
            "container_count": 2,
            **keys,
        }
        self.path = folder / "more.yaml"
        self.path.write_text(yaml.safe_dump(scenario))
        environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
        self.program = fleet.run(self.path, "--workers", 1, "--seed", 7, *options, environment=environment)
        self.code = self.program.end()
        self.stats = fleet.stats
        self.rows: list[dict[str, str]] = []
        if fleet.stats.exists():
            out = folder / "rows.csv"
            assert fleet.master("export", "-s", fleet.stats, "-o", out).end() == 0
            with out.open() as file:
                self.rows = list(csv.DictReader(file))

    def of(self, operation: str) -> list[dict[str, str]]:
        return [row for row in self.rows if row["operation"] == operation]

    @property
    def errors(self) -> Counter[str]:
        return Counter(
            f"{row['operation']}: {row['error']} {row['error_detail']}" for row in self.rows if row["error"]
        )


@pytest.fixture
def ran(fleet: Fleet, tmp_path: Path, swift: LocalSwift, container_base: str) -> Any:
    return lambda *options, **keys: Ran(fleet, tmp_path, swift, container_base, *options, **keys)


def containers(base: str) -> list[str]:
    return [f"{base}_{number:06d}" for number in range(2)]


def left(account: swiftclient.Connection, base: str, *names: str) -> set[str]:
    """The objects in the containers of a run; their names are unique over the containers."""
    return {
        row["name"]
        for name in names or containers(base)
        for row in account.get_container(name, full_listing=True)[1]
    }


def initial() -> set[str]:
    return {f"tiny_{number:06d}" for number in range(1, INITIAL + 1)}


def test_operations_without_a_body(
    fleet: Fleet, ran: Any, account: swiftclient.Connection, container_base: str
) -> None:
    run = ran(
        "--verify",
        profile={
            "create": 1,
            "read": 1,
            "head": 2,
            "head_container": 1,
            "head_account": 1,
            "list": 3,
            "list_account": 1,
            "info": 1,
            "touched": 1,
        },
        operations=[
            {"name": "list", "limit": 4, "pages": 2, "prefix": "tiny_00000"},
            {"name": "info", "method": "GET", "path": "/info", "success": [200]},
            {
                "name": "touched",
                "method": "POST",
                "path": "{account}/{container}/{object}",
                "headers": {"X-Object-Meta-Touched": "yes"},
                "effect": "changes",
                "success": [202],
            },
        ],
        container_put_headers={"X-Container-Meta-Made-By": "this test"},
        fail_if=["info.errors > 0", "list.entries_per_s < 0.001"],
    )
    assert run.code == 0, run.program.err + run.program.out
    assert not run.errors
    asked = ("head", "head_container", "head_account", "list", "list_account", "info", "touched")
    assert all(run.of(name) for name in asked)
    # In another process, which knows operations of scenarios only when it has read the stat file.
    report = fleet.master("report-scenario", "-s", run.stats, "--fail-if", "info.count < 1")
    assert report.end() == 0, report.err
    assert {row["status"] for row in run.of("head")} == {"200"}
    assert {row["status"] for row in run.of("head_container")} == {"204"}
    assert {row["object"] for row in run.of("head_container")} == {""}
    # At most two pages of four, of the initial objects numbered below 10 that a container has.
    assert {int(row["entries"]) for row in run.of("list")} <= set(range(9))
    assert max(int(row["entries"]) for row in run.of("list")) >= 4
    assert all(int(row["size"]) > 2 for row in run.of("info"))
    assert left(account, container_base) == initial()
    for name in containers(container_base):
        assert account.head_container(name)["x-container-meta-made-by"] == "this test"
    touched = {row["object"]: row["container"] for row in run.of("touched")}
    names = [(container, name) for name, container in touched.items() if name in initial()]
    assert names
    assert {account.head_object(*each)["x-object-meta-touched"] for each in names} == {"yes"}
    # The operation that the scenario defines is known from the stat file alone.
    results = open_results(run.stats)
    codes = {code for block in results.blocks() for code in block.operation.tolist()}
    assert {"info", "touched"} <= {results.run.scenario.operation_table[code].name for code in codes}
    for words in ("INFO\n       Count:", "HEAD_ACCOUNT\n       Count:"):
        assert words in run.program.out


def test_a_fifth_number_is_list(ran: Any) -> None:
    run = ran(crud_profile=[0, 1, 0, 0, 1], operation_count=20)
    assert run.code == 0, run.program.err
    assert {row["operation"] for row in run.rows} == {"read", "list"}
    assert "C   R   U   D  LIST" in run.program.out


def test_one_request_each(ran: Any, account: swiftclient.Connection, container_base: str) -> None:
    account.put_container(f"{container_base}_000000")
    account.put_container(f"{container_base}_000001")
    # What create_only finds there is somebody else's, and stays.
    for name in containers(container_base):
        account.put_object(
            name, f"tiny_{INITIAL + 1:06d}", b"a stranger's", headers={"X-Delete-After": "3600"}
        )
    run = ran(
        "--verify",
        # Few are deleted, so that some are left whose last change is a post.
        profile={
            "create_only": 8,
            "read": 4,
            "conditional": 8,
            "post": 8,
            "range": 24,
            "delete": 1,
            "update": 4,
        },
        operations=[
            {"name": "range", "length": "1..2000"},
            {"name": "post", "metadata": 3, "metadata_bytes": 7, "headers": {"X-Object-Meta-Color": "red"}},
        ],
        operation_count=120,
    )
    assert Counter(row["error"] for row in run.rows if row["error"]) == {"exists already": 1}, run.errors
    assert {row["status"] for row in run.of("conditional")} == {"304"}
    assert {row["status"] for row in run.of("range")} == {"206"}
    assert {int(row["size"]) for row in run.of("range")} <= set(range(1, 2001))
    assert len({row["size"] for row in run.of("range")}) > 10
    strangers = {f"tiny_{INITIAL + 1:06d}"}
    assert left(account, container_base) - strangers <= initial()
    assert strangers <= left(account, container_base)
    # Who was posted to last has its metadata, and is still known to be of this scenario.
    last = {row["object"]: row for row in run.rows if row["operation"] in {"post", "update", "delete"}}
    posted = [row for name, row in last.items() if row["operation"] == "post" and name in initial()]
    assert posted
    for row in posted:
        found = account.head_object(row["container"], row["object"])
        assert found["x-object-meta-color"] == "red"
        assert [len(found[f"x-object-meta-ssbench-{number}"]) for number in range(3)] == [7, 7, 7]
        assert "x-object-meta-ssbench-3" not in found
        assert found["x-object-meta-ssbench-owner"]


def test_reads_without_a_token(ran: Any, account: swiftclient.Connection, container_base: str) -> None:
    closed, opened = containers(container_base)
    account.put_container(closed)
    run = ran(profile={"public": 1}, container_put_headers={"X-Container-Read": ".r:*"}, operation_count=24)
    assert account.head_container(opened)["x-container-read"] == ".r:*"
    assert {(row["container"], row["error"], row["status"]) for row in run.of("public")} == {
        (closed, "not public", "401"),
        (opened, "", "200"),
    }


def test_reads_of_a_range_that_the_scenario_asks_for(ran: Any) -> None:
    """As forks of ssbench 0.x have it; each was an error, HTTP 206."""
    run = ran("--verify", crud_profile=[1, 5, 0, 0], get_headers={"Range": "bytes=10-19"}, operation_count=40)
    assert run.code == 0, run.program.err + str(run.errors)
    assert {(row["status"], row["size"]) for row in run.of("read")} == {("206", "10")}


def test_copies(ran: Any, account: swiftclient.Connection, container_base: str) -> None:
    run = ran("-k", profile={"copy": 3, "read": 1}, delete_after="1h..2h", operation_count=40)
    assert run.code == 0, run.program.err + str(run.errors)
    made = run.of("copy")
    assert {(row["status"], row["size"]) for row in made} == {("201", "0")}
    contents = [
        {name: account.get_object(container, name) for name in left(account, container_base, container)}
        for container in containers(container_base)
    ]
    for row in made:
        there = contents[containers(container_base).index(row["container"])]
        headers, body = there[row["object"]]
        assert body in [other for name, (_, other) in there.items() if name in initial()]
        assert headers["x-object-meta-ssbench-owner"]
        # Swift cuts fractions of a second off.
        assert 3599 < int(headers["x-delete-at"]) - float(headers["x-timestamp"]) <= 7200


def test_copies_go_after_the_run(ran: Any, account: swiftclient.Connection, container_base: str) -> None:
    run = ran(profile={"copy": 1}, operation_count=10)
    assert run.code == 0, run.program.err
    assert left(account, container_base) == initial()


@pytest.mark.long
def test_everything_at_once(
    fleet: Fleet, ran: Any, account: swiftclient.Connection, container_base: str
) -> None:
    every = [row.name for row in OPERATIONS.drawn if not row.defined]
    keys = "x-account-meta-temp-url-key", "x-account-meta-temp-url-key-2"
    account.post_account({keys[0]: "the user's"})
    run = ran(
        "--verify",
        # Fewer of those that are many requests each.
        profile=dict.fromkeys(every, 3)
        | dict.fromkeys(("slo", "dlo", "bulk", "versions", "sequence"), 1)
        | {"create": 10, "info": 1, "auth": 1, "sequence": 2, "missing": 2},
        operations=[
            {"name": "info", "method": "GET", "path": "/info"},
            {
                "name": "auth",
                "method": "GET",
                "path": "/auth/v1.0",
                "headers": {"X-Auth-User": "test2:tester2", "X-Auth-Key": "testing2"},
            },
            {"name": "read", "headers": {"X-Newest": "true"}},
            {"name": "update", "etag": True},
            {"name": "range", "length": "1..5000"},
            {"name": "slo", "segment_size": "1..20000", "reads": ["part", "whole", "range"]},
            {"name": "sequence", "steps": ["create", "post", "read", "range", "update", "read"]},
            {"name": "dlo", "segment_size": "1..20000"},
        ],
        sizes=[
            {"name": "tiny", "size_min": 1, "size_max": 3000},
            {"name": "large", "size_min": 70_000, "size_max": 900_000},
        ],
        initial_files={"tiny": INITIAL, "large": 5},
        container_put_headers={"X-Container-Read": ".r:*"},
        operation_count=120,
        user_count=8,
    )
    assert run.code == 0, f"{run.errors}\n{run.program.err}"
    assert not run.errors
    assert {row["operation"] for row in run.rows} == {*every, "info", "auth"}
    reported = fleet.master("report-scenario", "-s", run.stats, "--json", "-")
    assert reported.end() == 0, reported.err
    report = json.loads(reported.out)
    steps = {each["operation"]: each["steps"] for each in report["operations"] if each["steps"]}
    # Operations that a stall of the worker held up are in no latency.
    timed = {name: sum(row["marks"] == "0" for row in run.of(name)) for name in ("slo", "sequence")}
    names = {"segments", "manifest", "part", "whole", "range", "delete"}
    assert set(steps.get("slo", ())) == (names if timed["slo"] else set())
    assert (
        sum(each["count"] for name, each in steps.get("sequence", {}).items() if name == "read 2")
        == (timed["sequence"])
    )
    for row in run.of("versions"):
        assert sum(float(row[f"step_{number}"]) for number in range(1, 6)) == pytest.approx(
            float(row["last_byte_latency"])
        )
    assert [account.head_account().get(key) for key in keys] == ["the user's", None]
    account.post_account({keys[0]: ""})
    deleted = {row["object"] for row in run.of("delete")}
    there = initial() | {f"large_{number:06d}" for number in range(1, 6)}
    assert left(account, container_base) == there - deleted


def test_several_requests(ran: Any, account: swiftclient.Connection, container_base: str) -> None:
    run = ran(
        "--verify",
        profile={"symlink": 2, "slo": 1, "dlo": 1, "bulk": 1},
        operations=[
            {"name": "slo", "segments": 4, "segment_size": "1000..100000"},
            {"name": "dlo", "segments": 4, "segment_size": "1000..100000"},
            {"name": "bulk", "objects": 5, "size": 300},
        ],
        operation_count=20,
    )
    assert run.code == 0, f"{run.errors}\n{run.program.err}"
    assert not run.errors
    assert left(account, container_base) == initial()
    for name in ("slo", "dlo"):
        sizes = [int(row["size"]) for row in run.of(name)]
        assert sizes
        assert all(2 * 4 * 1000 <= size <= 2 * 4 * 100_000 + 10_000 for size in sizes)


def test_versions_go_with_their_containers(
    fleet: Fleet, ran: Any, swift: LocalSwift, account: swiftclient.Connection, container_base: str
) -> None:
    before = account.head_account()["x-account-container-count"]
    run = ran(
        "--verify",
        profile={"versions": 1},
        operations=[{"name": "versions", "versions": 4, "size": "1..2000"}],
        operation_count=6,
    )
    assert run.code == 0, f"{run.errors}\n{run.program.err}"
    assert {row["entries"] for row in run.of("versions")} == {"4"}
    versioned = [f"{name}_versions" for name in containers(container_base)]
    for name in versioned:
        assert account.head_container(name)["x-versions-enabled"] == "True"
        assert account.get_container(name, query_string="versions")[1] == []
    # What a killed run leaves: versions, of which a plain listing shows none when the last is gone.
    account.put_object(versioned[0], "left", b"1")
    account.put_object(versioned[0], "left", b"2")
    account.delete_object(versioned[0], "left")
    account.put_object(versioned[1], "left", b"1")
    cleaned = fleet.master(
        "cleanup-containers",
        "--yes",
        "-b",
        container_base,
        environment={"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key},
    )
    assert cleaned.end() == 0, cleaned.err
    # The hidden containers that have the versions are gone too.
    assert account.head_account()["x-account-container-count"] == before


def test_uploads_have_the_metadata_and_the_bodies_that_the_scenario_asks_for(
    ran: Any, account: swiftclient.Connection, container_base: str, tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    words = [b"one ", b"two, " * 300]
    for number, word in enumerate(words):
        (tmp_path / "files" / str(number)).write_bytes(word)
    whole = b"".join(words)
    run = ran(
        "--verify",
        "--keep-objects",
        metadata={"number": 3, "size": 40},
        body={"files": "files"},
        connections={"new": 0.3},
        profile={"create": 2, "create_only": 1, "update": 1, "post": 2, "copy": 1}
        | {"read": 2, "head": 2, "range": 1, "symlink": 1, "sequence": 1, "tempurl": 1, "conditional": 1},
        operations=[
            {"name": "post", "metadata": 2},
            {"name": "sequence", "steps": ["create", "read", "post", "head", "update", "range"]},
        ],
    )
    assert run.code == 0, run.program.err
    assert not run.errors
    for line in ("Metadata of each upload: 3 items of 40 bytes", "Bodies: 2 files of", "New connections: "):
        assert line in run.program.out
    found: Counter[int] = Counter()
    for name in containers(container_base):
        for row in account.get_container(name, full_listing=True)[1]:
            if not row["name"].startswith("tiny_"):
                continue  # the mark of the run, which stays with what is kept
            fields = account.head_object(name, row["name"])
            values = [value for key, value in fields.items() if re.search("-meta-ssbench-[0-9]+$", key)]
            assert {len(value) for value in values} == {40}
            found[len(values)] += 1
            body = account.get_object(name, row["name"])[1][16:]
            assert body in [(whole * 3)[first : first + len(body)] for first in (0, len(words[0]))]
    # Those that were posted last have two.
    assert found.keys() == {2, 3}
    assert sum(found.values()) >= INITIAL


def test_a_cluster_that_lacks_a_feature_is_refused(
    ran: Any, account: swiftclient.Connection, container_base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SwiftStore().capabilities(StoreAccess(Session((account.get_auth()[0],)), (5.0, 5.0)))
    assert found.known
    assert not found.lacks("slo")
    assert found.lacks("teleportation")
    monkeypatch.setattr(type(STORE), "capabilities", lambda *_: Capabilities({"swift": {}}, known=True))
    sessions = SimpleNamespace(sessions=[Session(("http://x/v1/a",))])
    with pytest.raises(UsageError, match=r"slo needs slo.*it has swift"):
        refuse_missing_features(scenario(slo=1), RunOptions(), cast("TokenSource", sessions))


def test_more_metadata_than_the_cluster_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"max_meta_count": 5, "max_meta_value_length": 256, "max_meta_overall_size": 300}
    monkeypatch.setattr(type(STORE), "capabilities", lambda *_: Capabilities({"swift": limits}, known=True))
    sessions = cast("TokenSource", SimpleNamespace(sessions=[Session(("http://x/v1/a",))]))
    refuse_missing_features(replace(scenario(create=1), metadata=Metadata(4, 50)), RunOptions(), sessions)
    # So are those of uploads alone, and of POSTs.
    with pytest.raises(UsageError, match=r"more than the cluster takes: max_meta_count 6 \(at most 5\)$"):
        refuse_missing_features(
            replace(scenario(create=1), metadata=Metadata(5, 9)), RunOptions(), sessions, uploads_only=True
        )
    posts = (OperationSettings("post", values={"metadata_bytes": 299}),)
    with pytest.raises(UsageError, match=r"max_meta_value_length 299 .*, max_meta_overall_size \d+ "):
        refuse_missing_features(replace(scenario(post=1), operations=posts), RunOptions(), sessions)


def test_what_cannot_be_is_refused_before_anything_is_made() -> None:
    nobody = cast("TokenSource", SimpleNamespace(sessions=[]))
    with pytest.raises(UsageError, match=r"tempurl: possible with 1,000 containers at most, not with 1,001"):
        refuse_missing_features(replace(scenario(tempurl=1), container_count=1001), RunOptions(), nobody)


def scenario(**weights: float) -> Scenario:
    return Scenario("s", (SizeClass("tiny", 1, 1, 1, weights),), user_count=1, operation_count=1)
