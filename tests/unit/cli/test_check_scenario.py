"""The sub-command check-scenario, for shipped scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssbench.cli.master import main
from ssbench.scenario.scenario_files import list_shipped_scenarios


@pytest.mark.parametrize("name", [name for name, _ in list_shipped_scenarios()])
def test_every_shipped_scenario_fits_the_screen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-scenario", name]) == 0
    said = capsys.readouterr().out
    assert main(["check-scenario", "-f", name]) == 0
    assert capsys.readouterr().out == said
    lines = said.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("estimated time: " in line for line in lines)


CASE = Path(__file__).parents[2] / "data" / "cases" / "12-over-5-GB" / "big.json"


def test_objects_beyond_what_stores_take_in_one_piece_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check-scenario", str(CASE)]) == 0
    said = capsys.readouterr().out
    assert "! huge: up to 6.44 GB in one piece, more than stores take" in said
    assert "their limit is 5 GiB by default; segment_size divides objects" in said
    path = tmp_path / "in-segments.json"
    path.write_text(CASE.read_text().replace('"size_max"', '"segment_size": 1000000000, "size_max"'))
    assert main(["check-scenario", str(path)]) == 0
    assert "in one piece" not in capsys.readouterr().out
