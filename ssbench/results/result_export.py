"""Every single result of a run as CSV, JSON lines or Parquet, block by block.

The columns follow from :data:`~ssbench.results.result_fields.FIELDS`; ``doc/stat-files.rst`` lists them. What
a result does not have is empty, null in JSON and Parquet. CSV, which people look at in terminals, has U+FFFD
in place of control characters.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import msgspec
import numpy as np

from ssbench.base.errors import UsageError
from ssbench.base.printable import escape_csv_cell, escape_in_json
from ssbench.base.version import describe_install
from ssbench.results.block import ResultBlock, TextColumn
from ssbench.results.reading import RunResults
from ssbench.results.result_fields import FIELDS, NO_WORKER, FieldKind, ResultField

#: The type of a field's values.
_FIELD_TYPES: dict[FieldKind, type] = {
    FieldKind.NUMBER: int,
    FieldKind.SECONDS: float,
    FieldKind.COMPLETION: float,
    FieldKind.MOMENT: float,
    FieldKind.TEXT: str,
}


def _operations(results: RunResults, block: ResultBlock) -> list[str]:
    names = {operation.code: operation.name for operation in results.run.scenario.operation_table}
    return [names[code] for code in block.operation.tolist()]


def _size_classes(results: RunResults, block: ResultBlock) -> list[str]:
    return [results.size_classes[index] for index in block.size_class.tolist()]


def _workers(results: RunResults, block: ResultBlock) -> list[str | None]:
    names = results.worker_names
    return [
        None if worker == NO_WORKER else names.get(worker, str(worker)) for worker in block.worker.tolist()
    ]


def _containers(results: RunResults, block: ResultBlock) -> list[str | None]:
    if isinstance(block.container, TextColumn):
        return list(block.container)
    rows = zip(block.container.tolist(), block.group.tolist(), block.master.tolist(), strict=True)
    return [results.run.container(number, group, master) for number, group, master in rows]


def _objects(results: RunResults, block: ResultBlock) -> list[str | None]:
    if isinstance(block.object, TextColumn):
        return list(block.object)
    without = {row.code for row in results.run.scenario.operation_table if not row.has_object}
    rows = zip(
        _size_classes(results, block),
        block.object.tolist(),
        block.operation.tolist(),
        block.group.tolist(),
        block.master.tolist(),
        strict=True,
    )
    return [
        None if operation in without else results.run.name_object(name, number, group, master)
        for name, number, operation, group, master in rows
    ]


def _make_namer(field: str, list_: str) -> Callable[[RunResults, ResultBlock], list[str | None]]:
    """Return a function that gives the names that a field's numbers stand for, in a list of the run."""

    def names(results: RunResults, block: ResultBlock) -> list[str | None]:
        known: Sequence[str] = getattr(results.run, list_)
        return [known[index] if 0 <= index < len(known) else None for index in getattr(block, field).tolist()]

    return names


#: Fields whose numbers stand for names.
_NAMED_FIELDS: dict[str, Callable[[RunResults, ResultBlock], Sequence[str | None]]] = {
    "operation": _operations,
    "size_class": _size_classes,
    "worker": _workers,
    "container": _containers,
    "object": _objects,
    "storage_url": _make_namer("storage_url", "storage_urls"),
    "stage": _make_namer("stage", "stages"),
    "group": _make_namer("group", "group_names"),
    "account": _make_namer("account", "accounts"),
}


def list_export_columns() -> dict[str, type]:
    """Return the names of the columns, and the type of each."""
    columns: dict[str, type] = {}
    for field in FIELDS.values():
        kind = (
            str
            if field.kind is FieldKind.FAILURES or field.name in _NAMED_FIELDS
            else _FIELD_TYPES[field.kind]
        )
        columns.update(dict.fromkeys(filter(None, field.export.split(", ")), kind))
    return columns


def _columns(results: RunResults, block: ResultBlock) -> list[Sequence[Any]]:
    """Return the columns of a block in the order of the header, None where there is nothing."""
    columns: list[Sequence[Any]] = []
    for field in FIELDS.values():
        if field.kind is FieldKind.FAILURES:
            columns.extend(_failures(block))
        elif field.name in _NAMED_FIELDS:
            columns.append(_NAMED_FIELDS[field.name](results, block))
        elif field.export:
            columns.append(_field_values(field, block))
    return columns


def _field_values(field: ResultField, block: ResultBlock) -> Sequence[Any]:
    column = getattr(block, field.name)
    if not isinstance(column, np.ndarray):
        return list(column)
    values = column.tolist()
    if _FIELD_TYPES[field.kind] is float:
        return [value if value == value else None for value in values]  # noqa: PLR0124  (NaN is not itself)
    return [value if value >= 0 else None for value in values]


def _failures(block: ResultBlock) -> list[list[str | None]]:
    """Return the columns error, error_detail and retried."""
    errors: list[str | None] = [None] * len(block)
    details: list[str | None] = [None] * len(block)
    retried: list[str | None] = [None] * len(block)
    for row, failure in block.failures.items():
        errors[row] = failure.cause
        details[row] = failure.detail or None
        retried[row] = "; ".join(f"{cause}: {times}" for cause, times in failure.retried.items()) or None
    return [errors, details, retried]


def write_csv(results: RunResults, out: BinaryIO) -> None:
    """Write a header and a line for each result."""
    out.write((",".join(list_export_columns()) + "\n").encode())
    for block in results.blocks():
        text = io.StringIO()
        columns = [
            [value and escape_csv_cell(value) for value in column] if kind is str else column
            for kind, column in zip(list_export_columns().values(), _columns(results, block), strict=True)
        ]
        csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
        out.write(text.getvalue().encode("utf-8", "replace"))


def write_json_lines(results: RunResults, out: BinaryIO) -> None:
    """Write one JSON object a line for each result."""
    encoder, names = msgspec.json.Encoder(), list(list_export_columns())
    for block in results.blocks():
        rows = zip(*_columns(results, block), strict=True)
        lines = encoder.encode_lines([dict(zip(names, row, strict=True)) for row in rows])
        out.write(lines if lines.isascii() else escape_in_json(lines.decode()).encode())


def write_parquet(results: RunResults, out: BinaryIO) -> None:
    """Write a Parquet file, a row group for each block; raises UsageError without pyarrow."""
    try:
        import pyarrow as pa  # noqa: PLC0415  (an extra)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise UsageError(f"Parquet needs pyarrow: {describe_install('pyarrow', 'parquet')}") from None
    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, types[kind]) for name, kind in list_export_columns().items()])
    with parquet.ParquetWriter(out, schema) as writer:
        for block in results.blocks():
            writer.write_table(pa.table([list(column) for column in _columns(results, block)], schema=schema))


#: The formats by name.
EXPORT_WRITERS: dict[str, Callable[[RunResults, BinaryIO], None]] = {
    "csv": write_csv,
    "jsonl": write_json_lines,
    "parquet": write_parquet,
}
