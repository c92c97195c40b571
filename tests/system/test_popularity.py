"""Objects that are updated and read at once, on a real Swift: nothing fails, and contents are checked."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
import yaml
from processes import Fleet

from ssbench.base.errors import ExitCode
from ssbench.local_swift import LocalSwift

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("verify", [False, True])
def test_hot_objects_are_read_while_they_are_updated(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, container_base: str, verify: bool
) -> None:
    scenario = {
        "name": "hot",
        "sizes": [{"name": "tiny", "size_min": 1, "size_max": 5000}],
        "initial_files": {"tiny": 12},
        "popularity": {"zipf": 1.0},
        "profile": {"update": 5, "read": 2, "range": 1, "head": 1, "create": 1, "delete": 0.5, "post": 0.2},
        "operations": [{"name": "range", "offset": "1000..6000", "length": 500}],
        "operation_count": 240,
        "rate": 80,
        "user_count": 80,
        "container_base": container_base,
        "container_count": 2,
    }
    path = tmp_path / "hot.yaml"
    path.write_text(yaml.safe_dump(scenario))
    environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    report = tmp_path / "report.json"
    more = ["--verify"] if verify else []
    run = fleet.run(path, "--workers", 2, "--seed", 3, "--json", report, *more, environment=environment)
    assert run.end() in {ExitCode.OK, ExitCode.NOT_DELIVERED}, run.err + run.out
    out = tmp_path / "rows.csv"
    assert fleet.master("export", "-s", fleet.stats, "-o", out).end() == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["error"] for row in rows) == {"": 240}
    shared = json.loads(report.read_text())["counters"].get("shared", 0)
    assert (shared > 50) != verify
