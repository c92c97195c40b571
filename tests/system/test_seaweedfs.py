"""A store of the S3 API that is no Swift: all operations, read back by botocore, and nothing of it left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from processes import Fleet
from s3_runs import (
    check_all_operations,
    check_conformance,
    check_versions_are_cleaned,
    open_botocore,
    variables,
)
from s3_stores import WEED, SeaweedFs

from ssbench.scenario.value_rules import PayloadMode

pytestmark = pytest.mark.skipif(WEED is None, reason="SeaweedFS is not installed: tox -e seaweedfs")


@pytest.fixture(scope="module")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedFs]:
    with SeaweedFs(tmp_path_factory.mktemp("seaweedfs")) as running:
        yield running


@pytest.mark.parametrize("payload", get_args(PayloadMode))
def test_all_operations_are_right(
    fleet: Fleet, tmp_path: Path, seaweedfs: SeaweedFs, container_base: str, payload: str
) -> None:
    check_all_operations(fleet, tmp_path, seaweedfs, f"{container_base}-", s3_payload=payload)


def test_a_bucket_with_versions_is_cleaned(fleet: Fleet, seaweedfs: SeaweedFs, container_base: str) -> None:
    check_versions_are_cleaned(fleet, seaweedfs, f"{container_base}-")


def test_it_does_what_the_documentation_says(fleet: Fleet, seaweedfs: SeaweedFs) -> None:
    check_conformance(fleet, "SeaweedFS", variables(seaweedfs), "-S", f"s3+{seaweedfs.address}")
    with open_botocore(seaweedfs) as botocore:
        assert not [each for each in botocore.list_buckets()["Buckets"] if "conformance" in each["Name"]]
