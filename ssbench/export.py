"""Every single result of a run as CSV, JSON lines or Parquet, block by block.

Columns: ``operation``, ``size_class``, ``worker_id``, ``container``, ``object``, ``size`` (bytes),
``first_byte_latency`` and ``last_byte_latency`` (seconds), ``completed_at`` (seconds since 1970),
``retries``, ``trans_id``, ``error`` (the cause; empty for a success), ``error_detail``,
``retried`` (the causes of retries, ``cause: times`` separated by semicolons). What a result does
not have is empty, null in JSON and Parquet. CSV, which people look at in terminals, has U+FFFD in
place of control characters.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any, BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from ssbench.errors import UsageError
from ssbench.names import container_name, object_name
from ssbench.operations import OPERATIONS
from ssbench.reports.figures import printable
from ssbench.results import NO_WORKER, ResultBlock, TextColumn
from ssbench.run_results import RunResults

_OPERATIONS = [operation.name for operation in OPERATIONS]
_COLUMNS: dict[str, type] = {
    "operation": str,
    "size_class": str,
    "worker_id": str,
    "container": str,
    "object": str,
    "size": int,
    "first_byte_latency": float,
    "last_byte_latency": float,
    "completed_at": float,
    "retries": int,
    "trans_id": str,
    "error": str,
    "error_detail": str,
    "retried": str,
}


def _columns(results: RunResults, block: ResultBlock) -> list[list[Any]]:
    """Return the columns of a block in the order of ``_COLUMNS``, None where there is nothing."""
    scenario = results.run.scenario
    classes = [results.size_classes[index] for index in block.size_class.tolist()]
    container: list[Any]
    if isinstance(block.container, TextColumn):
        container = list(block.container)
    else:
        base, policy = scenario.container_base, scenario.policy
        container = [container_name(base, number, policy) for number in block.container.tolist()]
    objects: list[Any]
    if isinstance(block.object, TextColumn):
        objects = list(block.object)
    else:
        objects = [
            object_name(name, number) for name, number in zip(classes, block.object.tolist(), strict=True)
        ]
    errors: list[str | None] = [None] * len(block)
    details: list[str | None] = [None] * len(block)
    retried: list[str | None] = [None] * len(block)
    for row, failure in block.failures.items():
        errors[row] = failure.cause
        details[row] = failure.detail or None
        retried[row] = "; ".join(f"{cause}: {times}" for cause, times in failure.retried.items()) or None
    return [
        [_OPERATIONS[code] for code in block.operation.tolist()],
        classes,
        [_worker(results, worker) for worker in block.worker.tolist()],
        container,
        objects,
        [size if size >= 0 else None for size in block.size.tolist()],
        _floats(block.first_byte),
        _floats(block.last_byte),
        _floats(block.completed),
        block.retries.tolist(),
        list(block.trans_ids),
        errors,
        details,
        retried,
    ]


def _worker(results: RunResults, worker: int) -> str | None:
    return None if worker == NO_WORKER else results.worker_names.get(worker, str(worker))


def _floats(values: npt.NDArray[np.float64]) -> list[float | None]:
    return [value if value == value else None for value in values.tolist()]  # noqa: PLR0124  (NaN is not itself)


def write_csv(results: RunResults, out: BinaryIO) -> None:
    """Write a header and a line for each result."""
    out.write((",".join(_COLUMNS) + "\n").encode())
    for block in results.blocks():
        text = io.StringIO()
        columns = [
            [value and printable(value) for value in column] if kind is str else column
            for kind, column in zip(_COLUMNS.values(), _columns(results, block), strict=True)
        ]
        csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
        out.write(text.getvalue().encode("utf-8", "replace"))


def write_json_lines(results: RunResults, out: BinaryIO) -> None:
    """Write one JSON object a line for each result."""
    encoder = msgspec.json.Encoder()
    for block in results.blocks():
        rows = zip(*_columns(results, block), strict=True)
        out.write(encoder.encode_lines([dict(zip(_COLUMNS, row, strict=True)) for row in rows]))


def write_parquet(results: RunResults, out: BinaryIO) -> None:
    """Write a Parquet file, a row group for each block; raises UsageError without pyarrow."""
    try:
        import pyarrow as pa  # noqa: PLC0415  (an extra)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow: pip install pyarrow (or '.[parquet]' in a clone of ssbench)"
        ) from None
    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, types[kind]) for name, kind in _COLUMNS.items()])
    with parquet.ParquetWriter(out, schema) as writer:
        for block in results.blocks():
            writer.write_table(pa.table(_columns(results, block), schema=schema))


#: The formats by name.
WRITERS: dict[str, Callable[[RunResults, BinaryIO], None]] = {
    "csv": write_csv,
    "jsonl": write_json_lines,
    "parquet": write_parquet,
}
