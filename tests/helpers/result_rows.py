"""Makes results for tests: rows by the names of their fields, and blocks of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ssbench.results.block import Failure, ResultBlock, ResultRow, RowCollector
from ssbench.results.cluster_observation import (
    Disk,
    Metric,
    MetricInterval,
    Observation,
    Server,
    State,
    Statsd,
)
from ssbench.results.result_fields import FieldKind, row_fields
from ssbench.statistics.latencies import SlowResult, make_slow_results

#: What rows have behind the usual fields.
ALSO = ("retries",)

#: What was seen of a cluster beside a run.
CLUSTER = Observation(
    began=1.7e9,
    interval=5.0,
    servers=(
        Server(
            "http://h:6200",
            "object",
            asked=9,
            before=State(disks=(Disk("d1", size=5),), replication_age={"object": 3.5}),
            during=tuple(State(at=number / 7, load=number / 3) for number in range(500)),
        ),
    ),
    statsd=Statsd(metrics=(Metric("x", True, (MetricInterval(5.0, 2.5, 1.0, {-3: 1.0, 7: 2.0}),)),)),
)


def row(**values: float) -> ResultRow:
    """Return a row with these values, and the defaults of all other fields."""
    defaults = {field.name: field.default or 0 for field in row_fields(ALSO)}
    unknown = set(values) - set(defaults)
    assert not unknown, unknown
    return tuple({**defaults, **values}.values())


def packed(rows: RowCollector, values: ResultRow, usual: int | None = None) -> bytes:
    """Return a row as ``rows`` takes it; ``usual`` is how many fields each row has, for who packs many."""
    usual = usual or len(row_fields())
    return rows.pack(*values[:usual]) + rows.pack_also(*values[usual:])


def block(
    rows: Iterable[ResultRow],
    trans_ids: Iterable[str | None] = (),
    failures: Mapping[int, Failure] | None = None,
    *,
    common: Mapping[str, float] | None = None,
    rare: Mapping[str, Mapping[int, float]] | None = None,
) -> ResultBlock:
    """Return rows as a block; rows that end too early are filled up with defaults."""
    made = RowCollector(ALSO)
    made.common.update(common or {})
    filling, usual = row(), len(row_fields())
    made.rows.extend(packed(made, tuple(each) + filling[len(each) :], usual) for each in rows)
    made.trans_ids.extend(trans_ids)
    made.failures.update(failures or {})
    made.rare.update({name: dict(values) for name, values in (rare or {}).items()})
    return made.take()


def slow_result(*, group: int, **values: float) -> SlowResult:
    """Return what reports keep of a slow result of a group, or of a side."""
    (made,) = make_slow_results(
        block([row(**values)], common={"group": group}), np.zeros(1, np.intp), np.array([0.1]), 0
    )
    return made


def many(objects: range, **columns: Any) -> ResultBlock:
    """Return results of these objects without a step for each; ``columns`` replace the defaults."""
    values = {"first_byte": 0.001, "last_byte": 0.002, "completed": 1.7e9, **columns, "object": objects}
    made: dict[str, np.ndarray] = {}
    for field in row_fields(ALSO):
        value = values.pop(field.name, field.default or 0)
        kind = np.int64 if field.kind is FieldKind.NUMBER else np.float64
        made[field.name] = np.array(np.broadcast_to(value, len(objects)), kind)
    return ResultBlock(len(objects), {**made, **values})
