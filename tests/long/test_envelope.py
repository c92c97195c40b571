"""The envelope of a real Swift, and what is done again of one that is whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from json_records import valid
from processes import Fleet

from ssbench.base.errors import ExitCode


@pytest.mark.timeout(400)
def test_the_envelope_of_a_swift(fleet: Fleet, tmp_path: Path) -> None:
    def measure(name: str, *more: str) -> tuple[dict, str]:
        run = fleet.master(
            *("envelope", "--minutes", 0.8, "--sizes", "4kB", "--operations", "write,read", "--local-swift"),
            *("--workers", 2, "--results-dir", tmp_path, "--json", tmp_path / f"{name}.json", *more),
        )
        assert run.end(350) == ExitCode.OK, run.err
        return valid((tmp_path / f"{name}.json").read_text(), "envelope"), run.err

    first, said = measure("first")
    assert [each["name"] for each in first["cells"]] == ["4kB.write", "4kB.read"]
    for cell in first["cells"]:
        assert cell["runs"] >= 2
        assert cell["one_user"]["count"] > 0
        assert 0 <= cell["users_low"] <= cell["users_high"]
    assert first["mixed"] is None or first["mixed"]["seconds"] > 1
    files = sorted(tmp_path.glob("envelope.*.stat.gz"))
    assert len(files) == sum(each["runs"] for each in first["cells"]) + (first["mixed"] is not None)
    assert "condition ok" in said

    # All that was decided follows from these files.
    second, said = measure("second", "--resume")
    assert said.count("Done already: ") == len(files)
    assert sorted(tmp_path.glob("envelope.*.stat.gz")) == files
    assert second["cells"] == first["cells"]
    assert second["mixed"] == first["mixed"]
