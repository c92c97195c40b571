"""How often Python searches for garbage."""

from __future__ import annotations

import gc

import pytest

from ssbench.run.loop import rare_garbage_collection


def test_python_searches_less_often_meanwhile_and_as_before_afterwards() -> None:
    before = gc.get_threshold()

    @rare_garbage_collection()
    def fail() -> None:
        assert gc.get_threshold()[0] > before[0]
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            fail()
        assert gc.get_threshold() == before
