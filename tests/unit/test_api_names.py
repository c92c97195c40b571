"""What ``import ssbench`` offers is there: its modules are imported by name, when it is asked for."""

from __future__ import annotations

import pytest

import ssbench


@pytest.mark.parametrize("name", ssbench.__all__)
def test_each_public_name_is_there(name: str) -> None:
    assert getattr(ssbench, name) is not None
