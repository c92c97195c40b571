"""The table of operations, and what follows from a new row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pytest
import result_rows

from ssbench.base.errors import ScenarioError
from ssbench.results import current
from ssbench.results.reading import DamageError
from ssbench.run.progress import describe_characters, make_result_characters
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import (
    CREATE,
    DELETE,
    OPERATIONS,
    READ,
    REMOVE,
    UPDATE,
    Effect,
    OperationKind,
    OperationSettings,
    OperationTable,
)
from ssbench.scenario.population import Population
from ssbench.scenario.scenario_reading import read_scenario

PEEK = OperationKind(code=200, name="peek", method="HEAD", effect=Effect.READS, times_first_byte=True)


@pytest.fixture
def peek() -> Iterator[OperationKind]:
    """One more operation for the time of a test."""
    rows, drawn = dict(OPERATIONS._by_code), OPERATIONS.drawn
    OPERATIONS.add(PEEK)
    yield PEEK
    OPERATIONS._by_code, OPERATIONS.drawn = rows, drawn


def scenario(weights: dict[str, float], initial: int = 10) -> Scenario:
    return Scenario("s", (SizeClass("tiny", 10, 20, initial, weights),), user_count=1000, operation_count=1)


def test_rows_are_found_by_code_and_by_name() -> None:
    assert [OPERATIONS[code] for code in (0, 1, 2, 3, 65)] == [CREATE, READ, UPDATE, DELETE, REMOVE]
    assert OPERATIONS.named("update") is UPDATE
    assert OPERATIONS.get(63) is None
    with pytest.raises(KeyError):
        OPERATIONS.named("upload")
    names = [operation.name for operation in OPERATIONS.drawn]
    assert names[:5] == ["create", "read", "update", "delete", "head"]


@pytest.mark.parametrize(("code", "name"), [(1, "other"), (77, "read"), (65, "other"), (-1, "x"), (256, "x")])
def test_codes_and_names_are_unique_and_codes_fit_in_a_byte(code: int, name: str) -> None:
    table = OperationTable(OPERATIONS)
    with pytest.raises(ValueError, match=name):
        table.add(OperationKind(code=code, name=name, method="GET", effect=Effect.READS))
    assert list(table) == list(OPERATIONS)


def test_shares_follow_names_and_no_code_or_place(peek: OperationKind) -> None:
    drawn = Counter(
        code for code, *_ in islice(Workload(scenario({"peek": 2, "read": 3}), 1).draws(), 20_000)
    )
    assert drawn.keys() == {READ.code, peek.code}
    assert drawn[READ.code] == pytest.approx(12_000, rel=0.05)


def test_one_more_operation_leaves_the_draws_of_others_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {"create": 3.0, "read": 4.0, "update": 2.0, "delete": 1.0}
    before = list(islice(Workload(scenario(weights), 5).draws(), 5000))
    first = OperationKind(code=207, name="peek", method="HEAD", effect=Effect.READS)
    monkeypatch.setattr(OPERATIONS, "drawn", (first, *OPERATIONS.drawn))
    assert list(islice(Workload(scenario(weights), 5).draws(), 5000)) == before


def test_an_operation_that_looks_may_overlap_and_expects_no_bytes(peek: OperationKind) -> None:
    drawn = scenario({"peek": 1, "read": 1}, initial=1)
    state = Population(drawn, Workload(drawn, 1))
    state.add_initial(0, 1, 15)
    jobs = state.next_jobs(50)
    assert {(code, number, size) for code, _, _, number, size in jobs} == {(READ.code, 1, 15), (200, 1, 0)}
    for job in jobs:
        state.finished(*job[:4], ok=True)
    assert not state.waiting


def test_operations_that_are_not_drawn_have_no_weight(tmp_path, peek: OperationKind) -> None:
    path = tmp_path / "scenario"
    path.write_text(
        "{name: s, sizes: [{name: t, size_min: 1, size_max: 1}], initial_files: {t: 1}, user_count: 1,"
        " operation_count: 1, crud_profile: {remove: 1}}"
    )
    with pytest.raises(ScenarioError, match=r"not 'remove' \(there are bulk, .*peek, .*versions\)"):
        read_scenario(str(path))


def test_results_of_a_new_operation_are_kept_and_shown(peek: OperationKind) -> None:
    rows = [
        result_rows.row(operation=code, first_byte=first, last_byte=last)
        for code, first, last in ((200, 0.1, 0.1), (200, 4.0, 12.0), (2, 4.0, 12.0), (200, 1.0, 1.0))
    ]
    block = result_rows.block(rows)
    assert make_result_characters(block) == ".O@o"
    assert "first byte  (read, delete, peek)" in describe_characters(
        ["create", "read", "update", "delete", "peek"]
    )
    assert current.decode_rows(current.encode_rows(block), 1).operation.tolist() == [200, 200, 2, 200]


@pytest.mark.parametrize("code", [63, 65, 200, 255])
def test_results_of_an_unknown_operation_are_damage(code: int) -> None:
    payload = current.encode_rows(result_rows.block([result_rows.row(operation=code)]))
    with pytest.raises(DamageError, match="operation"):
        current.decode_rows(payload, 1)


def test_how_many_requests_an_operation_is_at_most() -> None:
    slo, listing = OPERATIONS.named("slo"), OPERATIONS.named("list")
    assert READ.most_requests(OperationSettings("read")) == 1
    assert listing.most_requests(OperationSettings("list", values={"pages": 50})) >= 50
    # Segments, manifest, read, deletion; and where that fails, a deletion of each.
    assert slo.most_requests(OperationSettings("slo")) >= 3 + 3 + 4
    assert slo.most_requests(OperationSettings("slo", values={"segments": 9})) >= 9 + 3 + 10
