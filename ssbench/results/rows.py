"""Results on their way to a block: some packed numbers each, which is what costs least to make.

Made for the loop of the master, which has a microsecond or two for a result. Only what differs from
one result to the next is in the rows. What is the same for all is given once (``common``), what few
results have is kept by the row (``rare``, ``failures``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ssbench.results.block import Failure, ResultBlock, make_constant_column
from ssbench.results.schema import FIELDS, ResultField, row_fields

#: The values of :func:`~ssbench.results.schema.row_fields`, in their order.
ResultRow = tuple[float, ...]

_PLACES = {name: place for place, name in enumerate(FIELDS)}


class RowCollector:
    """Collects results until they are taken as a block.

    ``also`` names the fields that rows have after the usual ones. Fields are added to by whoever
    makes the rows: ``rows`` and ``trans_ids`` get one entry a result; ``failures`` and
    ``rare[field]`` are keyed by the place in ``rows``; ``common[field]`` is the value of all rows. A row is
    what ``pack`` makes of the values of the usual fields, and ``pack_also`` of those of the others behind it.
    """

    def __init__(self, also: Sequence[str] = ()) -> None:
        fields = row_fields(tuple(also))
        usual = len(fields) - len(also)
        self.pack, self.pack_also = _make_packer(fields[:usual]), _make_packer(fields[usual:])
        self._dtype = np.dtype([(field.name, _numpy_type(field)) for field in fields])
        self.common: dict[str, float] = {}
        self._begin()

    def _begin(self) -> None:
        self.rows: list[bytes] = []
        self.trans_ids: list[str | None] = []
        self.failures: dict[int, Failure] = {}
        self.rare: dict[str, dict[int, float]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def note(self, field: str, value: float, row: int | None = None) -> None:
        """Give a row a value that few rows have; None: the next one."""
        self.rare.setdefault(field, {})[len(self.rows) if row is None else row] = value

    def take(self) -> ResultBlock:
        """Return what was collected as a block, and begin anew; ``common`` stays."""
        rows, trans_ids, failures, rare = self.rows, self.trans_ids, self.failures, self.rare
        self._begin()
        count = len(rows)
        packed = np.frombuffer(b"".join(rows), self._dtype)
        columns: dict[str, Any] = {
            name: make_constant_column(value, count) for name, value in self.common.items()
        }
        if trans_ids.count(None) < len(trans_ids):
            columns["trans_id"] = trans_ids
        # In the order of the fields, for the later ones may be derived from those before.
        for name in sorted(rare, key=_PLACES.__getitem__):
            field, values = FIELDS[name], rare[name]
            if field.default is None or name in columns:
                block = ResultBlock(count, columns, packed=packed)
                column = np.array(getattr(block, name), _numpy_type(field))
            else:
                column = np.full(count, field.default, _numpy_type(field))
            column[list(values)] = list(values.values())
            columns[name] = column
        return ResultBlock(count, columns, failures, packed)


def _make_packer(fields: Sequence[ResultField]) -> Callable[..., bytes]:
    return struct.Struct("<" + "".join(field.packed for field in fields)).pack


def _numpy_type(field: ResultField) -> str:
    """Return the numpy type of a packed value: b is i1 there, q is i8."""
    size = struct.calcsize("<" + field.packed)
    kind = "f" if field.packed == "d" else "i" if field.packed.islower() else "u"
    return f"<{kind}{size}"
