"""Size classes whose objects are in segments: what a file may say, and what follows from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import ScenarioError
from ssbench.cli.master import main
from ssbench.fleet.fleet import ResultBounds
from ssbench.run.bench_options import RunOptions
from ssbench.run.group_run import make_run_parameters
from ssbench.scenario.model import Scenario, make_owner
from ssbench.scenario.names import container_pattern, segments_container, segments_prefix
from ssbench.scenario.operations import CREATE, OPERATIONS
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.scenario.sizes import Lognormal


def read(
    profile: dict[str, float] | None = None, operations: list[Any] | None = None, **keys: Any
) -> Scenario:
    data = {
        "name": "s",
        "sizes": [{"name": "big", "size_min": "1MB", "size_max": "3MB", **keys}],
        "initial_files": {"big": 2},
        "operation_count": 10,
        "user_count": 4,
        "profile": profile or {"create": 1, "parts": 1},
        "operations": operations or [],
    }
    return check_scenario_text(json.dumps(data), "s")


def fault_of(*arguments: Any, **keys: Any) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(*arguments, **keys)
    (fault,) = str(caught.value).splitlines()
    return fault


def test_objects_of_a_class_are_in_segments() -> None:
    found = read(segment_size="1MB")
    (big,) = found.size_classes
    assert (big.segment_size, big.segments, big.most_segments, found.has_segments) == (
        10**6,
        "static",
        3,
        True,
    )
    assert make_run_parameters(1, None, found, RunOptions(), []).segments == [(10**6, False)]
    dynamic = read(segment_size="1MB", segments="dynamic")
    assert make_run_parameters(1, None, dynamic, RunOptions(), []).segments == [(10**6, True)]
    plain = read()
    assert (plain.has_segments, make_run_parameters(1, None, plain, RunOptions(), []).segments) == (False, [])
    # Objects in other segments are other objects.
    owners = [
        make_owner(each, each.size_classes[0]) for each in (found, dynamic, plain, read(segment_size="2MB"))
    ]
    assert len(set(owners)) == 4


def test_steps_of_operations_on_them_have_names() -> None:
    found = read({"create": 1, "update": 1, "read": 1, "parts": 1}, segment_size=10**6)
    assert {
        name: found.steps_of(OPERATIONS.named(name)) for name in ("create", "update", "read", "parts")
    } == {
        "create": ("segments", "manifest"),
        "update": ("look", "segments", "manifest", "old segments"),
        "read": (),
        "parts": ("first part", "other parts"),
    }
    assert read().steps_of(CREATE) == ()


@pytest.mark.parametrize(
    "keys",
    [
        {"segment_size": 0},
        {"segments": "dynamic"},
        {"segment_size": 10**6, "segments": "some"},
        {"segment_size": 1000},
        {"segment_size": 200, "segments": "dynamic"},
        {"segment_size": 10**6, "size_min": 0},
    ],
)
def test_wrong_segments(keys: dict[str, Any], golden_words: GoldenWords) -> None:
    golden_words(fault_of({"create": 1}, **keys))


def test_a_post_and_dynamic_segments_do_not_go_together(golden_words: GoldenWords) -> None:
    dynamic = {"segment_size": 10**6, "segments": "dynamic"}
    mark = {"name": "mark", "steps": ["head", "post"]}
    own = {"name": "sequence", "steps": ["create", "post"]}
    touch = {"name": "touch", "method": "POST", "path": "/x/{object}", "effect": "changes"}
    for name, operations in (("post", []), ("mark", [mark]), ("sequence", [own]), ("touch", [touch])):
        golden_words(fault_of({name: 1}, operations, **dynamic))
        read({name: 1}, operations, segment_size=10**6)
    read({"sequence": 1}, [{"name": "sequence", "steps": ["create", "read"]}], **dynamic)


def test_their_containers_are_known_by_their_names() -> None:
    beside = segments_container("base_000001_gold")
    assert beside == "base_000001_gold_segments"
    assert container_pattern("base", "gold").match(beside)
    assert container_pattern("base", None).match(segments_container("base_000001"))
    assert not container_pattern("base", None).match("base_segments")
    assert segments_prefix("a/b") == "a/b/segments/"


def test_segments_have_no_name_that_a_store_may_decode() -> None:
    """Ceph's gateway did not find those of ``50%41`` when it deleted the object: it looked for ``50A``."""
    names = ["50%", "50=25", "50%25", "50=3D25", "50%41", "50A", "%/=", "=/%"]
    prefixes = [segments_prefix(each) for each in names]
    assert [each for each in prefixes if "%" in each] == []
    assert len({*prefixes}) == len(names)


def test_manifests_come_with_the_objects() -> None:
    task = (CREATE.code, 0, 0, 1, 100)
    assert ResultBounds((100,), 0)._largest(task, 201, 1.0) == 0
    assert ResultBounds((100,), 0, frozenset({0}))._largest(task, 201, 1.0) > 1000


def test_many_requests_are_an_operation() -> None:
    parameters = make_run_parameters(1, None, read({"update": 1}, segment_size=10**4), RunOptions(), [])
    # Each of 300 segments is written, and each of the old ones deleted.
    assert parameters.most_requests >= 600


def test_people_are_told_of_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dynamic = read(segment_size=10**6, segments="dynamic").size_classes[0]
    assert dynamic.title == "big (in dynamic segments of 1,000,000 bytes)"
    found = read(segment_size=5000)
    assert found.size_classes[0].title == "big (in segments of 5,000 bytes)"
    assert read().size_classes[0].title == "big"
    shaped = replace(dynamic, shape=Lognormal(2 * 10**6, 0.1, 10**6, 3 * 10**6))
    assert shaped.title == f"big ({shaped.shape}, in dynamic segments of 1,000,000 bytes)"
    path = tmp_path / "segments.yaml"
    path.write_text(json.dumps(found.data))
    assert main(["check-scenario", str(path)]) == 0
    told = capsys.readouterr().out
    assert "big: 2 objects of 1 MB to 3 MB, in segments of 5,000 bytes" in told
    assert "one more beside each for segments: ssbench_000000_segments" in told
