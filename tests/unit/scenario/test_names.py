"""Names of containers and objects."""

from __future__ import annotations

import pytest

from ssbench.scenario.names import container_name, object_name


@pytest.mark.parametrize(
    ("number", "policy", "name"),
    [(1, None, "base_000001"), (1234567, None, "base_1234567"), (2, "gold", "base_000002_gold")],
)
def test_names_of_containers(number: int, policy: str | None, name: str) -> None:
    assert container_name("base", number, policy) == name


def test_names_of_objects() -> None:
    assert object_name("tiny", 12) == "tiny_000012"
