"""The records of applications (bench/applications), and what the shipped scenarios make of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import OperationSettings, RequestTarget, resolve_steps
from ssbench.scenario.scenario_reading import read_scenario

FOLDER = Path(__file__).parents[2] / "bench" / "applications"


class Recorded(NamedTuple):
    """The phase of a record that a scenario follows, or one of its groups."""

    record: str
    phase: str
    #: What the record calls the objects of each size class, where that is not the name of the class.
    objects: Mapping[str, str] = {}
    #: What the record calls operations of the scenario.
    operations: Mapping[str, str] = {}


_RESTIC = {"data": "pack", "tree": "pack"}

#: By scenario, and its group where it has several.
RECORDED = {
    ("registry", "pull"): Recorded("registry", "pull without cache", {"layer": "blob", "manifest": "blob"}),
    ("registry", "push"): Recorded(
        "registry",
        "push",
        {"new-layer": "blob", "new-manifest": "blob", "new-link": "link"},
        {"delete_states": "bulk_delete"},
    ),
    ("restic_backup", "backup"): Recorded("restic", "backup", _RESTIC),
    ("restic_restore", "restore"): Recorded("restic", "restore", _RESTIC),
    ("rclone_copy", ""): Recorded("rclone", "copy"),
    ("rclone_sync", ""): Recorded("rclone", "sync"),
    ("rclone_down", ""): Recorded("rclone", "down"),
    ("swift_upload", ""): Recorded("swift", "upload"),
    ("swift_segments", ""): Recorded(
        "swift", "upload -S", {"large": "file"}, {"make_container": "create_container"}
    ),
    ("swift_download", ""): Recorded("swift", "download"),
}


def read_record(name: str) -> dict[str, Any]:
    """Return the record of an application."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def find_part(name: str, group: str) -> Scenario:
    """Return the part of a shipped scenario that a group of users does; without one all of it."""
    scenario = read_scenario(name)
    return next(part for part in scenario.parts if not group or f"({group})" in part.name)


def draw_request_kinds(scenario: Scenario, recorded: Recorded, operations: int = 40_000) -> Counter[str]:
    """Return how many requests of each kind the operations of a scenario are that are drawn."""
    known = {each.name: each for each in scenario.operations}
    drawn: Counter[tuple[int, int]] = Counter()
    segments: Counter[tuple[int, int]] = Counter()
    for code, index, _, size in islice(Workload(scenario, 1).draws(), operations):
        drawn[code, index] += 1
        segment_size = scenario.size_classes[index].segment_size
        segments[code, index] += -(-size // segment_size) if segment_size else 0
    kinds: Counter[str] = Counter()
    for (code, index), count in drawn.items():
        row = scenario.operation_table[code]
        own = known.get(row.name, OperationSettings(row.name))
        what = scenario.size_classes[index].name
        steps = resolve_steps(own.values.get("steps", ()), scenario.operations)
        for step_row, times in [(each.row, each.times) for each in steps] or [(row, 1)]:
            of_object = step_row.on is RequestTarget.OBJECT and (step_row.has_object or not step_row.defined)
            name = recorded.operations.get(step_row.name, step_row.name)
            kinds[f"{name} {recorded.objects.get(what, what)}" if of_object else name] += count * times
            if step_row.sends_body and segments[code, index]:
                kinds["create segment"] += segments[code, index] * times
    return kinds
