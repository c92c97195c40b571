"""The profile of a sub-command."""

from __future__ import annotations

from pathlib import Path

import pytest
from known_results import write_known

from ssbench.cli.master import main


@pytest.fixture
def known(tmp_path: Path) -> Path:
    return write_known(tmp_path / "known.stat.gz")


def test_a_profile_says_where_it_is(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report-scenario", "-s", str(known), "--profile"]) == 0
    line = capsys.readouterr().err.splitlines()[-1]
    profile = Path(line.removeprefix("INFO:Profile written to "))
    assert profile.stat().st_size > 100
    profile.unlink()
