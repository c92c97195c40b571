"""Exports of results in each format."""

from __future__ import annotations

import csv
import csv as csv_module
import io
import json
from pathlib import Path
from typing import Any

import pytest
from known_results import ROWS, write_known
from old_formats import failure, msgpack_file, success
from sided_scenarios import scenario

from ssbench.cli.master import main
from ssbench.results.block import LOST_CAUSE, RowCollector
from ssbench.results.reading import open_results
from ssbench.results.result_export import write_csv
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return write_known(tmp_path / "known.stat.gz")


EXPECTED = [
    {
        "operation": "create",
        "size_class": "tiny",
        "worker_id": "1",
        "container": "ssbench_000000_gold",
        "object": "tiny_000007",
        "size": 2500,
        "first_byte_latency": None,
        "last_byte_latency": 0.25,
        "completed_at": 1_000_000_000.5,
        "retries": 0,
        "trans_id": "tx0",
        "error": None,
        "error_detail": None,
        "retried": None,
        "status": 201,
        "started_at": 1_000_000_000.25,
        "due_at": None,
        "attempts": 1,
        "storage_url": "http://a/v1/x",
        "stage": None,
        "expected_size": 2500,
        "marks": 0,
        "last_attempt": 0.25,
        "connections": 0,
        "group": None,
    },
    {
        "operation": "read",
        "size_class": "tiny",
        "worker_id": "2",
        "container": "ssbench_000003_gold",
        "object": "tiny_000002",
        "size": 0,
        "first_byte_latency": None,
        "last_byte_latency": None,
        "completed_at": 1_000_000_003.0,
        "retries": 1,
        "trans_id": "tx3",
        "error": "short body",
        "error_detail": "12 of 2500 bytes",
        "retried": "HTTP 408: 1",
        "status": 200,
        "started_at": None,
        "due_at": None,
        "attempts": 2,
        "storage_url": "http://a/v1/x",
        "stage": None,
        "expected_size": 0,
        "marks": 0,
        "last_attempt": None,
        "connections": 0,
        "group": None,
    },
]


def exported_rows(rows: list[dict[str, Any]], default: set[object]) -> list[dict[str, Any]]:
    """Return two rows of an export, without the columns of what they do not have."""
    found = [rows[0], rows[3]]
    assert {value for row in found for name, value in row.items() if name not in EXPECTED[0]} <= default
    return [{name: row[name] for name in EXPECTED[0]} for row in found]


def test_export_as_json_lines(known: Path, tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    assert main(["export", "-s", str(known), "-o", str(out)]) == 0
    exported = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(exported) == len(ROWS)
    assert exported_rows(exported, {0, None}) == EXPECTED
    assert (exported[4]["worker_id"], exported[4]["error"]) == (None, LOST_CAUSE)


def test_export_as_csv(known: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["export", "-s", str(known)]) == 0
    exported = list(csv_module.DictReader(io.StringIO(capfdbinary.readouterr().out.decode())))
    texts = [{name: "" if value is None else str(value) for name, value in row.items()} for row in EXPECTED]
    assert exported_rows(exported, {"0", "0.0", ""}) == texts


def test_export_as_parquet(known: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "results.parquet"
    assert main(["export", "-s", str(known), "-o", str(out)]) == 0
    exported = parquet.read_table(out).to_pylist()
    assert exported_rows(exported, {0, None}) == EXPECTED


def test_export_of_an_old_file_has_its_names_and_no_secrets(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "old.stat"
    secrets = {"token": "AUTH_tk1", "storage_url": "http://host/v1/x", "auth_kwargs": {"key": "sesame"}}
    path.write_bytes(msgpack_file([[success(size_str="größer", **secrets), failure(**secrets)]]))
    assert main(["export", "-s", str(path), "-f", "jsonl"]) == 0
    out = capfdbinary.readouterr().out
    first, second = (json.loads(line) for line in out.splitlines())
    assert (first["container"], first["object"], first["size_class"]) == (
        "ssbench_000001",
        "tiny_000001",
        "größer",
    )
    assert second["error_detail"] == "error(111, 'Connection refused')"
    for secret in (b"AUTH_tk1", b"http://host", b"sesame"):
        assert secret not in out


def test_an_export_has_the_container_of_each_side(tmp_path):
    path = tmp_path / "run.stat.gz"
    run = RunDescription(scenario(), sides=("x", "y"), side_policies=("p", "q"), side_prefixes=("a", "b"))
    writer = RunResultsWriter(path, run)
    for side in (0, 1):
        rows = RowCollector()
        rows.common["group"] = side
        rows.rows += [rows.pack(1, 0, 1, 3, number, 1, 0.1, 0.2, 100.0, 200) for number in (1, 2)]
        rows.trans_ids += ["tx"] * 2
        writer.add(rows.take())
    writer.end(RunSummary(ended=0.0))
    out = io.BytesIO()
    write_csv(open_results(path), out)
    found = [
        (row["group"], row["container"], row["object"])
        for row in csv.DictReader(io.StringIO(out.getvalue().decode()))
    ]
    assert found == [
        (name, f"ssbench_000003_{policy}", f"{prefix}-small_{number:06d}")
        for name, policy, prefix in (("x", "p", "a"), ("y", "q", "b"))
        for number in (1, 2)
    ]
