"""The requests of a run, by its stat file, as columns of requests: to be compared with those of a log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ssbench.base.errors import StatFileError
from ssbench.cli import archives
from ssbench.logs.logged_requests import READING_KINDS, REQUEST_KINDS, RequestColumns
from ssbench.logs.request_formats import UNKNOWN_SIZE
from ssbench.results.block import TextColumn
from ssbench.scenario.operations import MAX_OPERATION_CODE, Effect, OperationKind

#: The kinds of operations, if not that of their name or ``other``.
_KINDS = {
    "create": "put",
    "update": "put",
    "create_only": "put",
    "upload_if_missing": "put",
    "conditional": "read",
    "public": "read",
    "tempurl": "read",
    "parts": "read",
    "check": "head",
    "remove": "delete",
}
#: The kinds of requests for objects that scenarios define, by their methods.
_METHODS = {"GET": "read", "HEAD": "head", "PUT": "put", "DELETE": "delete", "POST": "post", "COPY": "copy"}
#: The status of a result without one: no answer came; or it succeeded where none is kept (no-op runs, 0.x),
#: unless its operation has others that mean success.
_NO_ANSWER, _SUCCESS = 599, 200
#: Objects are numbered below this in each size class of each group.
_OBJECT_BITS, _CLASS_BITS = 32, 16


def has_stat_file_name(path: Path) -> bool:
    """Whether a file has the name of stat files."""
    return path.name.endswith((".stat.gz", ".stat"))


def read_run_requests(path: Path) -> RequestColumns:
    """Return the requests of a run in the order in which they began; raises StatFileError."""
    kind_of = np.full(MAX_OPERATION_CODE + 1, REQUEST_KINDS.index("other"), np.uint8)
    on_objects = np.zeros(MAX_OPERATION_CODE + 1, np.bool_)
    success = np.full(MAX_OPERATION_CODE + 1, _SUCCESS)
    parts: dict[str, list[np.ndarray]] = {}
    names: dict[str | None, int] = {}
    containers: dict[str | None, int] = {}
    with archives.open_stat_file(path) as results:
        scenario = results.run.scenario
        settings = {each.name: each.values for each in scenario.operations}
        for row in scenario.operation_table:
            kind = find_request_kind(row, settings.get(row.name, {}))
            kind_of[row.code] = REQUEST_KINDS.index(kind)
            on_objects[row.code] = row.effect is not Effect.NONE
            success[row.code] = min(row.success, default=_SUCCESS)
        for block in results.blocks():
            codes = block.operation.astype(np.int64)
            classes = block.group.astype(np.int64) << _CLASS_BITS | block.size_class
            item = classes << _OBJECT_BITS | _number(block.object, names)
            seconds = np.where(block.last_byte >= 0, block.last_byte, np.nan)
            usual = np.where(block.failed, _NO_ANSWER, success[codes])
            status = np.where(block.status > 0, block.status, usual)
            kinds = kind_of[codes]
            sized = np.isin(kinds, [REQUEST_KINDS.index("put"), REQUEST_KINDS.index("read")])
            sized &= (status < 300) & (block.size >= 0)
            for name, column in (
                ("began", np.where(np.isnan(block.started), block.completed, block.started)),
                ("seconds", seconds.astype(np.float32)),
                ("kind", kinds),
                ("status", status.astype(np.uint16)),
                ("size", np.where(sized, block.size, UNKNOWN_SIZE)),
                ("moved", np.maximum(block.size, 0)),
                ("account", block.account.astype(np.uint32)),
                ("container", _number(block.container, containers).astype(np.uint32)),
                ("item", np.where(on_objects[codes], item + 1, 0)),
            ):
                parts.setdefault(name, []).append(np.asarray(column))
    if not parts or not sum(map(len, parts["began"])):
        raise StatFileError(f"{path}: no results")
    columns: dict[str, Any] = {name: np.concatenate(own) for name, own in parts.items()}
    if names:
        columns["item"] = _sort_numbers(columns["item"], list(names))
    order = np.argsort(columns["began"], kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    is_read = np.isin(columns["kind"], [REQUEST_KINDS.index(each) for each in READING_KINDS])
    rises = _find_rises(columns["container"], np.where(is_read, columns["item"], 0))
    return RequestColumns(**columns, rises=rises, sources=1)


def _number(column: np.ndarray | TextColumn, known: dict[str | None, int]) -> np.ndarray:
    """Return numbers as they are, and texts (of ssbench 0.x) numbered as they come."""
    if not isinstance(column, TextColumn):
        return column
    return np.fromiter((known.setdefault(text, len(known)) for text in column), np.int64, len(column))


def _sort_numbers(items: np.ndarray, names: list[str | None]) -> np.ndarray:
    """Return items whose objects are numbered in the order of their names, as a listing has them."""
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=lambda number: names[number] or "")] = np.arange(len(names))
    numbers = (items - 1) & (1 << _OBJECT_BITS) - 1
    return np.where(items > 0, items - numbers + ranks[np.where(items > 0, numbers, 0)], 0)


def find_request_kind(row: OperationKind, settings: Mapping[str, Any]) -> str:
    """Return the kind of an operation with settings: of one that a scenario defines, that of its method."""
    if row.defined:
        return _METHODS.get(row.method, "other") if row.has_object and not row.steps else "other"
    if "method" in row.keys:
        return _METHODS[settings.get("method", row.method)]
    name = _KINDS.get(row.name, row.name)
    return name if name in REQUEST_KINDS else "other"


def _find_rises(containers: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return which objects have a higher number than the one before in their container."""
    rises = np.zeros(len(items), np.bool_)
    of_objects = np.flatnonzero(items)
    rows = of_objects[np.argsort(containers[of_objects], kind="stable")]
    same = containers[rows][1:] == containers[rows][:-1]
    rises[rows[1:]] = same & (items[rows][1:] > items[rows][:-1])
    return rises
