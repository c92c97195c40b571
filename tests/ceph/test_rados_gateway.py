"""Ceph's gateway, which has both APIs: all operations over S3, both as the sides of a run, and conformance.

``tox -e rgw`` runs this.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import swiftclient
from processes import Fleet
from s3_runs import (
    Ran,
    check_all_operations,
    check_conformance,
    check_versions_are_cleaned,
    open_botocore,
    variables,
)
from s3_stores import MISSING_OF_CEPH, RadosGateway

pytestmark = pytest.mark.skipif(
    bool(MISSING_OF_CEPH),
    reason=f"no {', '.join(MISSING_OF_CEPH)}: apt-get install radosgw ceph-mon ceph-osd"
    " (with --no-install-recommends; no service is needed)",
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RadosGateway]:
    with RadosGateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture
def environment(gateway: RadosGateway) -> dict[str, str]:
    """Variables for both APIs: the user of version 1 is an access key, too."""
    return {
        "ST_AUTH": gateway.auth_url,
        "ST_USER": gateway.user,
        "ST_KEY": gateway.key,
        "HOME": "/nonexistent",
    }


@pytest.mark.parametrize("payload", ["unsigned", "signed"])
def test_all_operations_are_right(
    fleet: Fleet, tmp_path: Path, gateway: RadosGateway, container_base: str, payload: str
) -> None:
    check_all_operations(fleet, tmp_path, gateway, f"{container_base}-", s3_payload=payload)


def test_chunks_are_refused_in_one_sentence(
    fleet: Fleet, tmp_path: Path, gateway: RadosGateway, container_base: str
) -> None:
    url, base = f"s3+{gateway.address}", f"{container_base}-"
    ran = Ran(fleet, tmp_path, variables(gateway), "-S", url, s3_payload="chunked", container_base=base)
    assert ran.code == 2
    assert "s3_payload: chunked is not possible at" in " ".join(ran.program.err.split())
    command = "cleanup-containers", "--container-base", base, "-S", url
    assert fleet.master(*command, environment=variables(gateway)).end() == 0


def test_it_does_what_the_documentation_says(
    fleet: Fleet, gateway: RadosGateway, environment: dict[str, str]
) -> None:
    check_conformance(fleet, "Ceph, Swift API", environment)
    check_conformance(fleet, "Ceph, S3 API", environment, "-S", f"s3+{gateway.address}")


def test_both_apis_of_one_account_are_two_sides(
    fleet: Fleet, tmp_path: Path, gateway: RadosGateway, environment: dict[str, str]
) -> None:
    operations = "create", "read", "update", "delete", "head", "range", "copy", "list", "head_container"
    sides, profile = ("--ab", "swift=@", "s3=@"), dict.fromkeys(operations, 1)
    ran = Ran(fleet, tmp_path, environment, "--verify", *sides, crud_profile=profile)
    assert (ran.code, ran.errors) == (0, Counter()), ran.program.err + ran.program.out
    assert f"s3=s3+{gateway.address}" in re.sub(r"\s+", "", ran.program.out)
    assert {row["operation"] for row in ran.rows} == set(operations)
    assert {row["group"] for row in ran.rows} == {"swift", "s3"}
    command = "cleanup-containers", "--container-base", "ssbench-"
    cleaned = fleet.master(*command, environment=environment)
    assert cleaned.end() == 0, cleaned.err
    with open_botocore(gateway) as botocore:
        assert botocore.list_buckets()["Buckets"] == []


def open_swift(gateway: RadosGateway) -> swiftclient.Connection:
    return swiftclient.Connection(gateway.auth_url, gateway.user, gateway.key, retries=1)


def test_a_bucket_with_versions_is_cleaned(fleet: Fleet, gateway: RadosGateway, container_base: str) -> None:
    check_versions_are_cleaned(fleet, gateway, f"{container_base}-")


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_an_update_of_an_object_in_segments_leaves_none_of_the_old_ones(
    fleet: Fleet,
    tmp_path: Path,
    gateway: RadosGateway,
    environment: dict[str, str],
    container_base: str,
    kind: str,
) -> None:
    """The gateway shows no manifest: it answers 200 without a body."""
    keys = {
        "sizes": [{"name": "big", "size": 3000, "segment_size": 1500, "segments": kind}],
        "initial_files": {"big": 1},
        "crud_profile": {"update": 1},
        "operation_count": 4,
        "container_count": 1,
        "container_base": container_base,
    }
    ran = Ran(fleet, tmp_path, environment, "--verify", "--keep-objects", **keys)
    assert (ran.code, ran.errors) == (0, Counter()), ran.program.err + ran.program.out
    assert ("slo manifest: the store accepts but ignores" in ran.program.err) == (kind == "static")
    swift = open_swift(gateway)
    segments = swift.get_container(f"{container_base}_000000_segments")[1]
    assert [row["bytes"] for row in segments] == [1500, 1500]
    command = "cleanup-containers", "--container-base", container_base
    assert fleet.master(*command, environment=environment).end() == 0


def test_names_with_percent_signs_are_those_of_segments_too(
    fleet: Fleet, tmp_path: Path, gateway: RadosGateway, environment: dict[str, str], container_base: str
) -> None:
    """The gateway decodes names in a manifest before it deletes the segments: 409, and these stayed."""
    keys = {
        "sizes": [{"name": "big", "size": 3000, "segment_size": 1500}],
        "initial_files": {"big": 6},
        "crud_profile": {"create": 1, "update": 1, "delete": 2, "slo": 1},
        "operations": [{"name": "slo", "segments": 2, "segment_size": 1000}],
        "operation_count": 24,
        "container_count": 1,
        "container_base": container_base,
        "object_names": "50%/%41=/{class} {number:03d}",
    }
    ran = Ran(fleet, tmp_path, environment, "--verify", **keys)
    assert (ran.code, ran.errors) == (0, Counter()), ran.program.err + ran.program.out
    left, segments = (
        len(open_swift(gateway).get_container(f"{container_base}_000000{beside}")[1])
        for beside in ("", "_segments")
    )
    assert segments == 2 * left
    command = "cleanup-containers", "--container-base", container_base
    assert fleet.master(*command, environment=environment).end() == 0
