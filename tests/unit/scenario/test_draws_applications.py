"""Scenarios of applications draw the requests that these were recorded to make."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from application_records import RECORDED, Recorded, draw_request_kinds, find_part, read_record

from ssbench.scenario.scenario_files import list_shipped_scenarios

SCENARIOS = Path(__file__).parents[3] / "scenarios"

#: Applications whose scenarios follow no record.
DOCUMENTED = {"glance", "nextcloud", "loki", "tempo", "mimir"}


@pytest.mark.parametrize(("name", "group"), RECORDED, ids=lambda each: each)
def test_each_kind_of_request_has_the_share_that_was_recorded(name: str, group: str) -> None:
    recorded = RECORDED[name, group]
    kinds = read_record(recorded.record)["phases"][recorded.phase]["kinds"]
    drawn = draw_request_kinds(find_part(name, group), recorded)
    found = {kind: 100 * count / drawn.total() for kind, count in drawn.items()}
    wanted = {kind: row["percent"] for kind, row in kinds.items()}
    assert found.keys() <= wanted.keys()
    wrong = {
        kind: (share, found.get(kind, 0.0))
        for kind, share in wanted.items()
        if abs(share - found.get(kind, 0.0)) > 3
    }
    assert wrong == {}


def test_a_scenario_that_is_unlike_its_record_is_noticed() -> None:
    other = Recorded("rclone", "down")
    drawn = draw_request_kinds(find_part("rclone_copy", ""), other)
    kinds = read_record("rclone")["phases"]["down"]["kinds"]
    assert not drawn.keys() <= kinds.keys()


@pytest.mark.parametrize("name", sorted({name for name, _ in RECORDED}))
def test_a_scenario_names_its_record_with_version_and_date(name: str) -> None:
    recorded = next(each for (scenario, _), each in RECORDED.items() if scenario == name)
    record = read_record(recorded.record)
    comment = re.sub(r"\s+# ?", " ", (SCENARIOS / f"{name}.yaml").read_text())
    version = re.search(r" (\d+\.\d+\.\d+)", record["version"])
    assert version is not None
    for words in (f"bench/applications/{recorded.record}.json", record["date"], version[1]):
        assert words in comment


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_a_scenario_without_a_record_says_so(name: str) -> None:
    comment = re.sub(r"\s+# ?", " ", (SCENARIOS / f"{name}.yaml").read_text())
    assert re.search(r"Source: [\w' ]+documentation[\w', ]*, not a record\.", comment)
    assert name in dict(list_shipped_scenarios())


def test_sizes_of_the_small_objects_of_the_registry_are_those_of_the_record() -> None:
    """Most of what a push writes is tiny, which matters as much as the shares."""
    for group, pairs in {
        "pull": {"link": "read link"},
        "push": {"new-link": "create link", "state": "create state", "upload": "create upload"},
    }.items():
        part = find_part("registry", group)
        kinds = read_record("registry")["phases"][RECORDED["registry", group].phase]["kinds"]
        for name, kind in pairs.items():
            size_class = next(each for each in part.size_classes if each.name.endswith(name))
            assert size_class.size_min == kinds[kind]["bytes"]["least"]
            assert size_class.size_max == kinds[kind]["bytes"]["most"]


# -- The recorder ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorder() -> ModuleType:
    path = SCENARIOS.parent / "bench" / "applications" / "record.py"
    spec = importlib.util.spec_from_file_location("record_applications", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line(
    request: str, status: int, began: float, received: object = "-", sent: object = "-", source: str = "-"
) -> str:
    """Return an access line of a proxy."""
    return (
        "2026-11-27T12:03:22.296 INFO proxy-server: 127.0.0.1 127.0.0.1 27/Nov/2026/12/03/22"
        f" {request} HTTP/1.1 {status} - client AUTH_tk... {received} {sent} - tx0a - 0.01 {source} -"
        f" {began:.9f} 1795781003.29 0 test:tester"
    )


def test_a_log_becomes_kinds_shares_and_sequences(recorder: ModuleType) -> None:
    account = "/v1/AUTH_test"
    lines = [
        line("GET /auth/v1.0", 200, 1),
        line("GET /info", 200, 2, sent=900),
        line(f"HEAD {account}/c", 204, 3),
        # Swift writes a line at the end of a request: the order is that of the beginnings.
        line(f"PUT {account}/c/a", 201, 5, received=10),
        line(f"HEAD {account}/c/a", 404, 4),
        line(f"PUT {account}/c/a", 201, 6, received=12),
        line(f"GET {account}/c/a%3Ftemp_url_sig%3Dx", 200, 7, sent=12),
        line(f"GET {account}/c/a", 206, 8, sent=3),
        line(f"GET {account}/c/seg", 200, 8.5, sent=3, source="SLO"),
        line(f"DELETE {account}/c/a%3Fmultipart-manifest%3Ddelete", 204, 9),
        line(f"POST {account}%3Fbulk-delete", 200, 10, received=30, sent=60),
        "2026-11-27T12:03:22.296 INFO proxy-server: something else",
    ]
    requests = [found for each in lines if (found := recorder.parse_access_line(each)) is not None]
    found = recorder.summarize(requests, lambda name: "file", set())
    assert found["requests"] == 8
    assert found["besides"] == {"token": 1, "info": 1}
    assert found["of_one_object"] == {
        "missing file, create file, update file, tempurl file, range file, delete file": 1
    }
    assert found["kinds"]["create file"] == {
        "count": 1,
        "percent": 12.5,
        "methods": {"PUT": 1},
        "statuses": {"201": 1},
        "bytes": {"least": 10, "median": 10, "most": 10, "all": 10},
    }
    assert {"head_container", "bulk_delete"} < found["kinds"].keys()


def test_repeated_requests_are_counted_in_a_sequence(recorder: ModuleType) -> None:
    assert list(recorder.squeeze(["head", "head", "read", "head"])) == ["2 x head", "read", "head"]
    assert list(recorder.squeeze([])) == []
