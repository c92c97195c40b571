"""A run over objects that were there before, on a real Swift; python-swiftclient looks at them after it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import swiftclient
import yaml
from processes import Fleet

from ssbench.base.errors import ClusterError, ExitCode
from ssbench.local_swift import LocalSwift
from ssbench.run.bench_options import ExistingIn, RunOptions
from ssbench.run.setup import find_existing_objects
from ssbench.run.tokens import TokenSource
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.store.credentials import Credentials

#: Names that nobody would derive, with sizes.
OBJECTS = {"plain": 2000, "ä b%20?#/../c": 300, "a//b": 700, "empty": 0}
SEGMENT = 1000


def state(account: swiftclient.Connection, container: str) -> object:
    """All that a run could change: the containers, and each object with its time."""
    listing = account.get_container(container, full_listing=True)[1]
    heads = [account.head_object(container, row["name"]) for row in listing]
    return (
        [row["name"] for row in account.get_account()[1]],
        listing,
        [(head["x-timestamp"], head["etag"]) for head in heads],
    )


def test_existing_objects_are_read_and_stay_as_they_were(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, container_base: str
) -> None:
    container = f"{container_base} ü"
    account.put_container(container)
    for name, size in OBJECTS.items():
        account.put_object(container, name, b"x" * size)
    segments = [{"path": f"{container}/plain"}, {"path": f"{container}/a//b"}]
    account.put_object(container, "large", json.dumps(segments), query_string="multipart-manifest=put")
    sizes = OBJECTS | {"large": 2700}
    before = state(account, container)

    scenario = {
        "name": "existing",
        "sizes": [{"name": "any", "size": "1..10kB"}],
        "initial_files": {"any": 1},
        "profile": {"read": 6, "head": 2, "range": 2, "conditional": 1, "list": 1},
        "operations": [{"name": "range", "length": 100}],
        "operation_count": 120,
        "user_count": 4,
    }
    path = tmp_path / "reads.yaml"
    path.write_text(yaml.safe_dump(scenario))
    environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    common = ("--workers", 1, "--seed", 7)
    run = fleet.run(
        path, *common, "--existing", container, "--verify", "--report", "full", environment=environment
    )
    assert run.end() == ExitCode.OK, run.err + run.out
    assert "Existing objects: 4 in 1 container, only read; 1 others skipped" in run.err
    assert "4 objects that were there already were only read" in run.out
    assert state(account, container) == before
    out = tmp_path / "rows.csv"
    assert fleet.master("export", "-s", fleet.stats, "-o", out).end() == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["error"] for row in rows} == {""}
    assert {row["container"] for row in rows} == {container}
    read = {int(row["size"]) for row in rows if row["operation"] == "read"}
    assert read == set(sizes.values()) - {0}

    # From a list of names, whose sizes are not known: the one that is not there fails, the others are read.
    names = tmp_path / "names"
    names.write_text(f"{container}/a//b\n{container}/gone\n")
    scenario |= {"profile": {"read": 1}, "operation_count": 20}
    path.write_text(yaml.safe_dump(scenario))
    run = fleet.run(path, *common, "--existing", f"@{names}", environment=environment)
    assert run.end() == ExitCode.FAILED, run.err + run.out
    assert "HTTP 404" in run.out
    assert state(account, container) == before

    # A container that is not there, and one without an object for the scenario.
    tokens = TokenSource(
        [Credentials(version="1.0", auth_url=swift.auth_url, user=swift.user, key=swift.key)]
    )
    reads = read_scenario(str(path))
    with pytest.raises(ClusterError, match=rf"there is no container '{container}x' in this account"):
        find_existing_objects(reads, RunOptions(), ExistingIn((f"{container}x",)), tokens)
    account.put_container(container_base)
    with pytest.raises(ClusterError, match=f"no object for the scenario in '{container_base}'$"):
        find_existing_objects(reads, RunOptions(), ExistingIn((container_base,)), tokens)
