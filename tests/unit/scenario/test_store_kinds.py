"""The table of kinds of stores: each row has a package."""

from __future__ import annotations

from importlib import import_module

import pytest

from ssbench.scenario.operations import OPERATIONS
from ssbench.scenario.store_kinds import STORE_KINDS, StoreKind, find_store_kind


@pytest.mark.parametrize("kind", list(STORE_KINDS.values()), ids=lambda kind: kind.name)
def test_each_row_has_a_package_and_lacks_what_there_is(kind: StoreKind) -> None:
    assert import_module(f"ssbench.store.{kind.name}.store").STORE_CLASS
    assert import_module(f"ssbench.store.{kind.name}.dialect").DIALECT_CLASS
    assert kind.lacks.keys() <= {"policy", *(each.name for each in OPERATIONS.drawn)}
    assert find_store_kind(f"{kind.prefix}http://h") is kind
