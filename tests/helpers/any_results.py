"""Results with any values that a file may hold, written to a stat file and read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import result_rows
from hypothesis import strategies as st

from ssbench.results.block import Failure, ResultBlock, ResultRow
from ssbench.results.reading import open_results
from ssbench.results.result_fields import NOT_MEASURED, FieldKind, ResultField
from ssbench.results.run_description import RunDescription, RunSummary, WorkerFacts
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass

SCENARIO = Scenario(
    "Test / scénario 🐌",
    (SizeClass("tiny", 1, 2, 3, (1, 2, 3, 4)), SizeClass("größer", 10**12, 10**13, 1, (0, 1, 0, 0))),
    user_count=4,
    run_seconds=1.5,
    delete_after=60,
    policy="gold",
    data={"name": "x", "sizes": [{"name": "tiny"}]},
)
RUN = RunDescription(
    SCENARIO,
    version="1.0",
    seed=2**80,
    options={"noop": True, "file": "\udcff", "urls": ["http://a"], "none": None},
    host="box",
    run_id=2**62,
    started=1.7e9,
    workers=(WorkerFacts(7, "box", "1.0"),),
)
SUMMARY = RunSummary(
    ended=1.7e9 + 2,
    not_sendable=((1, 0, 3),),
    lost_jobs=1,
    warnings=("the load generator was the limit",),
    interrupted=True,
    workers=(WorkerFacts(7, "box", "1.0", 0.97, 0.01, -3.5),),
    counters={"stale": 2},
)


def row(number: int = 0, **changes: float) -> ResultRow:
    values = {
        "operation": 1,
        "worker": 7,
        "container": 3,
        "object": number,
        "size": 2,
        "first_byte": 0.001,
        "last_byte": 0.002,
        "completed": 1.7e9 + number / 1000,
        "status": 200,
    }
    return result_rows.row(**{**values, **changes})


def write(path: Path, rows: Sequence[ResultRow], batch: int = 64) -> RunResultsWriter:
    writer = RunResultsWriter(path, RUN)
    for first in range(0, len(rows), batch):
        part = rows[first : first + batch]
        writer.add(result_rows.block(part, [f"tx{r[4]}" for r in part]))
    writer.end(SUMMARY)
    return writer


def read(path: Path) -> tuple[list[ResultBlock], list[str]]:
    results = open_results(path)
    blocks = list(results.blocks())
    return blocks, results.warnings


def numbers(blocks: list[ResultBlock]) -> list[int]:
    return [number for block in blocks for number in np.asarray(block.object).tolist()]


LATENCIES = st.just(NOT_MEASURED) | st.floats(0, 1e5)
MOMENTS = st.just(NOT_MEASURED) | st.floats(0, 4e9)
VALUES: dict[FieldKind, st.SearchStrategy[Any] | None] = {
    FieldKind.NUMBER: None,
    FieldKind.SECONDS: LATENCIES,
    FieldKind.COMPLETION: st.floats(0, 4e9),
    FieldKind.MOMENT: MOMENTS,
    FieldKind.TEXT: st.none() | st.text(min_size=1, max_size=40),
    FieldKind.FAILURES: st.none()
    | st.builds(
        Failure,
        st.none() | st.text(max_size=9),
        st.text(max_size=9),
        st.dictionaries(st.text(max_size=9), st.integers(0, 9), max_size=3),
    ),
}
LARGEST = {"b": 2**7, "h": 2**15, "q": 2**53, "B": 2**8, "H": 2**16, "I": 2**32}


def values(field: ResultField) -> st.SearchStrategy[Any]:
    """Any value that a field can have."""
    limits = {"operation": 3, "size_class": 1}
    if field.name in limits:
        return st.integers(0, limits[field.name])
    if field.kind is FieldKind.NUMBER:
        highest = (2**63 if field.name == "worker" else LARGEST[field.packed]) - 1
        return st.integers(-1 if field.packed.islower() else 0, highest)
    found = VALUES[field.kind]
    assert found is not None
    return found
