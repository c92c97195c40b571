"""The sub-command check-scenario, for shipped scenarios."""

from __future__ import annotations

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
    assert any("time, at a guess" in line for line in lines)
