"""Suites of real runs: one table, and what goes on after the program was killed."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from urllib.parse import unquote

import yaml
from json_records import valid
from processes import PATIENCE, Fleet

SUITE = {
    "name": "tiny",
    "rounds": 2,
    "seconds": 1,
    "scenarios": {
        "o": {
            "sizes": [{"name": "object", "size": "4kB"}],
            "initial_files": {"object": 8},
            "container_count": 1,
            "profile": {"read": 1},
            "user_count": 2,
        }
    },
    "rows": {
        "small": {"scenario": "o", "vary": {"users": [1, 2]}},
        "large": {"scenario": "o", "set": {"size": "64kB"}},
    },
    "fail_if": ["errors > 50%"],
}


def test_a_suite_of_a_real_swift_is_killed_half_way_and_goes_on(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(SUITE, sort_keys=False))
    folder = tmp_path / "results"
    command = ("suite", tmp_path / "tiny.yaml", "--workers", 1, "--local-swift", "--results-dir", folder)
    killed = fleet.master(*command)
    killed.wait_for("Run 4 of 6", PATIENCE)
    killed.signal(signal.SIGKILL)
    assert killed.end(PATIENCE) == -signal.SIGKILL
    there = {path: path.read_bytes() for path in folder.glob("*.stat.gz")}
    assert 3 <= len(there) <= 4
    outputs = ("--json", tmp_path / "found.json", "--html", tmp_path / "found.html")
    run = fleet.master(*command, "--resume", *outputs)
    assert run.end(PATIENCE) == 0, run.err
    assert run.err.count("Done already: ") == 3
    found = valid((tmp_path / "found.json").read_text(), "suite")
    assert [row["name"] for row in found["rows"]] == ["small users=1", "small users=2", "large"]
    for row in found["rows"]:
        assert len(row["stat_files"]) == 2
        assert row["figures"]["rate"]["low"] < row["figures"]["rate"]["mean"]
        assert [each["result"] for each in row["conditions"]] == ["ok"]
    assert len([*folder.glob("*.stat.gz")]) == 6
    # Each row leads to the page of one of its runs.
    pages = re.findall(r'<a href="(found-rows/[^"]+)">', (tmp_path / "found.html").read_text())
    assert len(pages) == 3
    assert all("large" in (tmp_path / unquote(page)).read_text() for page in pages if "large" in page)
    # What was complete is as it was.
    kept = [path for path, content in there.items() if path.read_bytes() == content]
    assert len(kept) == 3
    compared = fleet.master("compare", folder, folder)
    assert compared.end(PATIENCE) == 0
    assert "no verdict" in compared.out
    assert "3 rows of 2 runs a side: a verdict needs 3 or more" in " ".join(compared.out.split())
