"""Runs of the whole program over the S3 API, and what botocore, which is not ours, says of what they made."""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from botocore.config import Config
from botocore.session import Session
from json_records import valid
from processes import Fleet

#: S3 stores take no smaller parts (bytes).
PART = 5 * 2**20

#: A run of small objects.
SCENARIO: dict[str, Any] = {
    "name": "over s3",
    "sizes": [{"name": "tiny", "size_min": 1000, "size_max": 3000}],
    "initial_files": {"tiny": 20},
    "crud_profile": {
        **dict.fromkeys(["create", "read", "update", "delete", "head", "range", "conditional"], 10),
        **dict.fromkeys(["create_only", "copy", "list", "head_container", "list_account"], 5),
    },
    "operation_count": 120,
    "user_count": 4,
    "container_count": 2,
}

#: With it a run has all operations that are possible over the S3 API, and large objects.
ALL_OPERATIONS: dict[str, Any] = {
    "sizes": [
        *SCENARIO["sizes"],
        {
            "name": "big",
            "size_min": 6_000_000,
            "size_max": 7_000_000,
            "segment_size": PART,
            "profile": dict.fromkeys(["create", "read", "update", "delete", "range", "parts"], 1),
        },
    ],
    "initial_files": {"tiny": 15, "big": 3},
    "crud_profile": {**SCENARIO["crud_profile"], "tempurl": 10, "slo": 5, "bulk": 5, "sequence": 5},
    "operations": [
        # Not by part number, which Ceph's RGW 16 ignores.
        {"name": "slo", "segments": 2, "reads": ["whole", "range"]},
        {"name": "sequence", "steps": ["create", "head", "read", "delete"]},
    ],
    "metadata": {"number": 2, "size": 20},
}


def variables(store: Any) -> dict[str, str]:
    """Return the variables for the ``user`` and ``key`` of a store, and no others of this API."""
    return {
        "AWS_ACCESS_KEY_ID": store.user,
        "AWS_SECRET_ACCESS_KEY": store.key,
        "AWS_REGION": "",
        "HOME": "/nonexistent",
    }


class Ran:
    """A run that has ended, with its results as rows of text."""

    def __init__(
        self, fleet: Fleet, folder: Path, environment: dict[str, str], *options: object, **keys: Any
    ):
        path = folder / "s3.yaml"
        path.write_text(yaml.safe_dump({**SCENARIO, **keys}))
        self.program = fleet.run(path, "--workers", 1, "--seed", 7, *options, environment=environment)
        self.code = self.program.end(120)
        self.rows: list[dict[str, str]] = []
        if fleet.stats.exists():
            out = fleet.stats.with_suffix(".csv")
            assert fleet.master("export", "-s", fleet.stats, "-o", out).end() == 0
            with out.open() as file:
                self.rows = list(csv.DictReader(file))
        self.errors = Counter(f"{row['operation']}: {row['error']}" for row in self.rows if row["error"])


@contextmanager
def open_botocore(store: Any) -> Iterator[Any]:
    """Yield a client for the ``address``, ``user`` and ``key`` of a store."""
    client = Session().create_client(
        "s3",
        "us-east-1",
        endpoint_url=store.address,
        aws_access_key_id=store.user,
        aws_secret_access_key=store.key,
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )
    try:
        yield client
    finally:
        client.close()


def check_all_operations(
    fleet: Fleet,
    folder: Path,
    store: Any,
    base: str,
    look: Callable[[str, str, dict[str, Any]], None] = lambda _bucket, _name, _answer: None,
    **keys: Any,
) -> Ran:
    """Run all operations with ``--verify``, read back what they left, clean up, and look that nothing stays.

    ``store`` has an ``address``, a ``user`` and a ``key``; containers have the base name ``base``. ``look``
    is called for each object, with botocore's answer to a GET. ``keys`` are further ones of the scenario.
    """
    environment, url = variables(store), f"s3+{store.address}"
    options = "--verify", "--keep-objects", "-v", "-S", url
    ran = Ran(fleet, folder, environment, *options, **{**ALL_OPERATIONS, **keys}, container_base=base)
    assert (ran.code, ran.errors) == (0, Counter()), ran.program.err + ran.program.out
    assert {row["operation"] for row in ran.rows} == {*ALL_OPERATIONS["crud_profile"], "parts"}
    assert all(row["trans_id"] for row in ran.rows)
    with open_botocore(store) as botocore:
        read: Counter[str] = Counter()
        for bucket in (f"{base}{number:06d}" for number in range(SCENARIO["container_count"])):
            for name, answer in _read_back(botocore, bucket):
                look(bucket, name, answer)
                read[name.partition("_")[0]] += 1
            assert not botocore.list_multipart_uploads(Bucket=bucket).get("Uploads")
        assert read["tiny"] > 15
        assert read["big"] > 0
        command = "cleanup-containers", "--container-base", base, "-S", url
        cleaned = fleet.master(*command, environment=environment)
        assert cleaned.end() == 0, cleaned.err
        assert not [each for each in botocore.list_buckets()["Buckets"] if each["Name"].startswith(base)]
    return ran


def check_versions_are_cleaned(fleet: Fleet, store: Any, base: str) -> None:
    """Make a bucket with versions of all kinds, and look that ``cleanup-containers`` leaves nothing of it."""
    bucket, older, newer = f"{base}000000", "50%41 a&b+", "x/\u00fc"
    with open_botocore(store) as botocore:

        def keep_versions(status: str) -> None:
            configuration = {"Status": status}
            botocore.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=configuration)

        botocore.create_bucket(Bucket=bucket)
        botocore.put_object(Bucket=bucket, Key=older, Body=b"of a time before versions were kept")
        keep_versions("Enabled")
        for key in (older, newer, newer, newer):
            botocore.put_object(Bucket=bucket, Key=key, Body=b"a version")
        botocore.delete_object(Bucket=bucket, Key=newer)
        keep_versions("Suspended")
        botocore.delete_object(Bucket=bucket, Key=older)
        listed = botocore.list_object_versions(Bucket=bucket)
        assert len(listed["Versions"]) >= 4
        assert listed["DeleteMarkers"]
        command = "cleanup-containers", "--container-base", base, "-S", f"s3+{store.address}"
        cleaned = fleet.master(*command, environment=variables(store))
        assert cleaned.end() == 0, cleaned.err
        assert not [each for each in botocore.list_buckets()["Buckets"] if each["Name"].startswith(base)]


def _read_back(botocore: Any, bucket: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each object with the answer to its GET, whose body has to be that of its ETag."""
    for each in botocore.list_objects_v2(Bucket=bucket).get("Contents", []):
        if each["Key"].startswith("."):  # the mark of the run
            continue
        answer = botocore.get_object(Bucket=bucket, Key=each["Key"])
        body = answer["Body"].read()
        assert len(body) == each["Size"]
        assert answer["ETag"].strip('"') == _make_etag(body, in_parts=each["Key"].startswith("big"))
        assert answer["Metadata"]["ssbench-owner"]
        yield each["Key"], answer


def _make_etag(body: bytes, *, in_parts: bool) -> str:
    if not in_parts:
        return hashlib.md5(body).hexdigest()
    parts = [hashlib.md5(body[begin : begin + PART]).digest() for begin in range(0, len(body), PART)]
    return f"{hashlib.md5(b''.join(parts)).hexdigest()}-{len(parts)}"


_PAGE = Path(__file__).parents[2] / "doc" / "stores.rst"


def read_documented(store: str) -> dict[str, str]:
    """Return what the page in the documentation says of a store: a verdict for each name of a feature."""
    page = _PAGE.read_text()
    lines = re.findall(r"^(?:Name|``).*  .*$", page, re.MULTILINE)
    head, *rows = (re.split("  +", line) for line in lines)
    place = head.index(store)
    differing = {cells[0].strip("`"): re.split(r"[:\s]", cells[place])[0] for cells in rows}
    by_all = re.findall("``(.*?)``", page.partition("\nDone by all: ")[2].partition(".\n")[0], re.DOTALL)
    return {**{" ".join(name.split()): "done" for name in by_all}, **differing}


def check_conformance(fleet: Fleet, column: str, environment: dict[str, str], *options: str) -> None:
    """Ask a store what it does, and compare that with a column of the documentation."""
    program = fleet.master("conformance", "--json", "-", *options, environment=environment)
    program.end(120)
    checks = valid(program.out, "conformance")["checks"]
    assert {each["name"]: each["verdict"] for each in checks} == read_documented(column), program.err
