"""What one group of users costs the others, measured with whole runs."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fault_server import Reply, Request
from json_records import valid
from processes import Fleet
from runs import is_object, store, write_scenario

SECONDS = 0.02

GROUPS = [
    {"name": "web", "users": 1, "profile": {"read": 1}},
    {"name": "noisy", "users": 4, "profile": {"read": 1}, "container_base": "noisy"},
]


def isolate(fleet: Fleet, tmp_path: Path, queues: dict[str, threading.Lock]) -> dict[str, Any]:
    """Return how runs with and without ``noisy`` compare, where requests of each group wait in its queue."""
    scenario = write_scenario(
        tmp_path, without=("crud_profile", "user_count", "operation_count"), run_seconds=3, groups=GROUPS
    )

    def serve_in_turn(request: Request) -> Reply | None:
        if is_object(request) and request.method == "GET":
            with queues["noisy" if "/noisy_" in request.target else "web"]:
                time.sleep(SECONDS)
        return None

    with store() as (rule, options):
        rule.fault = serve_in_turn
        made = tmp_path / "r.json"
        run = fleet.master(
            *("run-scenario", "-f", scenario, "-s", tmp_path / "s", "--workers", 1, "--pause", 0),
            *("--repeat", 4, "--versus", "without noisy", "--json", made, *options),
        )
        run.end(280)
    return valid(made.read_text(), "comparison")


@pytest.mark.timeout(300)
def test_a_group_with_a_queue_of_its_own_is_not_found_to_cost_the_other_one(
    fleet: Fleet, tmp_path: Path
) -> None:
    found = isolate(fleet, tmp_path, {"web": threading.Lock(), "noisy": threading.Lock()})
    assert found["verdict"]["word"] != "slower"


@pytest.mark.timeout(300)
def test_a_group_in_the_same_queue_is_found_to_cost_the_other_one(fleet: Fleet, tmp_path: Path) -> None:
    """A read of web waits for four of the other group, so that it takes five times as long."""
    found = isolate(fleet, tmp_path, dict.fromkeys(("web", "noisy"), threading.Lock()))
    assert found["groups_apart"] == [[], ["noisy"]]
    assert [row["operation"] for row in found["rows"]] == ["web.READ", "web.ALL"]
    assert found["verdict"]["word"] == "slower"
    assert found["verdict"]["findings"][0].startswith("With `noisy`, `web`'s READ operations take ")
    assert "; its rate is " in found["verdict"]["findings"][0]
    # What another side lacks is found again in files.
    compared = fleet.master("compare", tmp_path / "s.a-1.stat.gz", "--to", tmp_path / "s.b-1.stat.gz")
    compared.end(60)
    assert "web.READ" in compared.out
    assert "noisy.READ" not in compared.out
