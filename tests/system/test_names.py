"""Names of objects by a template, and a sharded container, on a real Swift; swiftclient looks at them."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import swiftclient
import yaml
from processes import Fleet

from ssbench.base.errors import ExitCode
from ssbench.local_swift import LocalSwift
from ssbench.scenario.names import format_object_name

# A machine with other work may take long for several programs one after the other.
pytestmark = pytest.mark.timeout(300)

SHARDER = Path(__file__).parents[1] / "helpers" / "sharder.py"
TEMPLATE = "{hash:1}/{hash:2}/{class} ü%/{number:03d}.bin"


def listed(account: swiftclient.Connection, container: str, **query: object) -> list[str]:
    return [row["name"] for row in account.get_container(container, full_listing=True, **query)[1]]


def test_objects_have_the_names_of_the_template_and_go_after_the_run(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, container_base: str
) -> None:
    scenario = {
        "name": "named",
        "sizes": [{"name": "tiny", "size": 2000}],
        "initial_files": {"tiny": 24},
        "profile": {
            **dict.fromkeys(["create", "read", "update", "delete", "copy", "range"], 2),
            **dict.fromkeys(["slo", "symlink", "tempurl", "sequence", "bulk", "info"], 1),
        },
        "operations": [
            {"name": "slo", "segments": 1, "segment_size": 1000},
            {"name": "range", "length": 1},
            {"name": "sequence", "steps": ["create", "post", "read"]},
            {"name": "info", "method": "HEAD", "path": "{account}/{container}/{object}", "effect": "reads"},
        ],
        "operation_count": 60,
        "user_count": 4,
        "container_base": container_base,
        "objects_per_container": 12,
        "object_names": TEMPLATE,
    }
    path = tmp_path / "named.yaml"
    path.write_text(yaml.safe_dump(scenario))
    environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    run = fleet.run(path, "--workers", 1, "--seed", 3, "--verify", environment=environment)
    assert run.end() == ExitCode.OK, run.err + run.out
    out = tmp_path / "rows.csv"
    assert fleet.master("export", "-s", fleet.stats, "-o", out).end() == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert len({row["operation"] for row in rows}) == 12
    assert {row["error"] for row in rows} == {""}
    containers = [f"{container_base}_{number:06d}" for number in range(2)]
    left = [name for container in containers for name in listed(account, container)]
    initial = {format_object_name(TEMPLATE, "tiny", number) for number in range(1, 25)}
    assert set(left) <= initial

    # What is left is found again, by listing too, and by these names alone.
    again = fleet.master("prepare", path, "--workers", 1, environment=environment)
    assert again.end() == ExitCode.OK, again.err
    assert f"{24 - len(left)} uploaded, 0 replaced, {len(left)} reused" in again.err
    found = {name: container for container in containers for name in listed(account, container)}
    assert found == {
        format_object_name(TEMPLATE, "tiny", number): containers[(number - 1) % 2] for number in range(1, 25)
    }


@pytest.mark.long
def test_a_container_that_was_sharded_is_listed_in_full(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, container_base: str
) -> None:
    scenario = {
        "name": "sharded",
        "sizes": [{"name": "tiny", "size": "1..100"}],
        "initial_files": {"tiny": 60},
        "profile": {"list": 3, "read": 1},
        "operations": [{"name": "list", "limit": 25, "pages": 9}],
        "operation_count": 12,
        "user_count": 4,
        "container_base": container_base,
        "container_count": 1,
        # Only a reseller admin may ask for that.
        "container_put_headers": {"X-Container-Sharding": "on"},
        "object_names": "{hash:1}/{name}",
    }
    path = tmp_path / "sharded.yaml"
    path.write_text(yaml.safe_dump(scenario))
    environment = {"ST_AUTH": swift.auth_url, "ST_USER": "admin:admin", "ST_KEY": "admin"}
    run = fleet.master("prepare", path, "--workers", 1, environment=environment)
    assert run.end() == ExitCode.OK, run.err
    admin = swiftclient.Connection(swift.auth_url, "admin:admin", "admin", retries=1)
    url, _ = admin.get_auth()
    container = f"{container_base}_000000"
    assert admin.head_container(container)["x-container-sharding"] == "True"
    command = [sys.executable, SHARDER, swift.directory / "etc", url.rpartition("/")[2], container, "30"]
    shards = subprocess.check_output(command, text=True, timeout=120)
    assert int(shards) >= 3

    run = fleet.run(path, "--workers", 1, "--prepared", environment=environment)
    assert run.end() == ExitCode.OK, run.err + run.out
    out = tmp_path / "rows.csv"
    assert fleet.master("export", "-s", fleet.stats, "-o", out).end() == 0
    with out.open() as file:
        rows = [row for row in csv.DictReader(file) if row["operation"] == "list"]
    assert len(rows) > 4
    # The mark of the run may be among them.
    assert {int(row["entries"]) for row in rows} <= {60, 61}
    assert {row["error"] for row in rows} == {""}
    expected = sorted(format_object_name("{hash:1}/{name}", "tiny", number) for number in range(1, 61))
    assert listed(admin, container) == expected
    assert listed(admin, container, prefix="7/") == [name for name in expected if name[0] == "7"]
    admin.close()
