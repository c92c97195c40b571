"""Rules of plans: which cell is next."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted_plans import Planted, carry_out, grid

from ssbench.base.errors import ExitCode


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Planted:
    return Planted(monkeypatch)


def test_cells_take_turns_and_draw_the_same_in_each_round(bench: Planted, tmp_path: Path) -> None:
    end = carry_out(grid(tmp_path, "a", "b", "c"), bench)
    assert bench.names == [f"s.{each}.stat.gz" for each in ("a-1", "b-1", "c-1", "c-2", "b-2", "a-2")]
    seeds = [each.seed or 0 for each in bench.options]
    assert [seed - seeds[0] for seed in seeds] == [0, 0, 0, 1, 1, 1]
    assert [each.kept for each in end.done] == ["s.a-1", "s.b-1", "s.c-1", "s.c-2", "s.b-2", "s.a-2"]
    assert (end.why, end.code, end.resumed) == ("", ExitCode.OK, 0)


def test_cells_may_follow_each_other(bench: Planted, tmp_path: Path) -> None:
    carry_out(grid(tmp_path, "a", "b", in_turn=False, seed=7), bench)
    assert [name.split(".")[1] for name in bench.names] == ["a-1", "a-2", "b-1", "b-2"]
    assert [each.seed for each in bench.options] == [7, 8, 7, 8]
