"""Equal runs of a real Swift: what they say, and the same of their stat files."""

from __future__ import annotations

from pathlib import Path

import pytest
from json_records import valid
from processes import PATIENCE, Fleet


@pytest.mark.timeout(600)
def test_equal_runs_are_made_in_turn_and_judged(fleet: Fleet, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    run = fleet.master(
        *("noise", "-f", "very_small", "-u", 2, "-r", 1, "--minutes", 0.22, "--local-swift"),
        *("--workers", 1, "--results-dir", folder, "--json", tmp_path / "made.json"),
        *("--html", tmp_path / "made.html", "--label", "equal"),
    )
    # Runs of a second on a busy machine may differ so much that no plan is short enough.
    assert run.end(5 * PATIENCE) in {0, 6}, run.err
    assert "6 runs, about 12 s to " in run.err
    files = sorted(folder.glob("*.stat.gz"))
    labels = [each.name.split(".")[-3] for each in files]
    assert labels == ["a-1", "a-2", "a-3", "b-1", "b-2", "b-3"]
    made = valid((tmp_path / "made.json").read_text(), "noise")
    assert made["runs"] == 6
    rate = next(each for each in made["figures"] if each["figure"] == "rate")
    assert rate["deviation"] > 0
    assert rate["by_change"]["pairs"] == 15
    assert rate["freedom"] == 3  # of the pairs, each of which drew the same operations
    assert "Equal runs, and by" in (tmp_path / "made.html").read_text()
    read = fleet.master("noise", "@equal", "--results-dir", folder, "--json", tmp_path / "read.json")
    assert read.end(PATIENCE) in {0, 6}, read.err
    assert valid((tmp_path / "read.json").read_text(), "noise")["figures"] == made["figures"]
