"""Makes results for tests: rows by the names of their fields, and blocks of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ssbench.results import Failure, ResultBlock, ResultRow, Rows
from ssbench.results.schema import row_fields

#: What rows have behind the usual fields.
ALSO = ("retries",)


def row(**values: float) -> ResultRow:
    """Return a row with these values, and the defaults of all other fields."""
    defaults = {field.name: field.default or 0 for field in row_fields(ALSO)}
    unknown = set(values) - set(defaults)
    assert not unknown, unknown
    return tuple({**defaults, **values}.values())


def block(
    rows: Iterable[ResultRow],
    trans_ids: Iterable[str | None] = (),
    failures: Mapping[int, Failure] | None = None,
    *,
    common: Mapping[str, float] | None = None,
    rare: Mapping[str, Mapping[int, float]] | None = None,
) -> ResultBlock:
    """Return rows as a block; rows that end too early are filled up with defaults."""
    made = Rows(ALSO)
    made.common.update(common or {})
    filling = row()
    made.rows.extend(tuple(each) + filling[len(each) :] for each in rows)
    made.trans_ids.extend(trans_ids)
    made.failures.update(failures or {})
    made.rare.update({name: dict(values) for name, values in (rare or {}).items()})
    return made.take()
