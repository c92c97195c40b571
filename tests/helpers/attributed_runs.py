"""Runs against an embedded Swift of three object servers, joined with its logs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from processes import Program
from runs import wait_until

from ssbench.cli.master import main
from ssbench.local_swift import Layout, LocalSwift

#: d1 and d4 belong to object-1, d2 to object-2, d3 to object-3.
LAYOUT = Layout(replicas=3, devices=4, object_servers=3, proxies=2, access_logs=True)
DEVICES = ("d1", "d2", "d3", "d4")
OWNERS = {"d1": "object-1", "d2": "object-2", "d3": "object-3", "d4": "object-1"}

_SIZES = [
    {"name": "tiny", "size_min": 1000, "size_max": 8000},
    {"name": "small", "size_min": 30_000, "size_max": 120_000},
    {"name": "medium", "size_min": 250_000, "size_max": 1_000_000},
]
_HOT = {"name": "hot", "size_min": 3_000_000, "size_max": 3_000_000, "crud_profile": [0, 1, 0, 0]}


def attributed(
    swift: LocalSwift,
    folder: Path,
    seed: int,
    *,
    operations: int = 300,
    hot: bool = False,
    crud: Sequence[int] = (5, 8, 1, 1),
) -> dict[str, Any]:
    """Run a mix of sizes and operations, and return what ``attribute --json`` says of it.

    With ``hot`` there is one object of 3 MB that gets many of the reads.
    """
    name = f"run{seed}"
    scenario = folder / f"{name}.yaml"
    scenario.write_text(yaml.safe_dump(_scenario(name, operations, crud, hot=hot)))
    stat_file, found = folder / f"{name}.stat.gz", folder / f"{name}.json"
    urls = [word for url in swift.storage_urls for word in ("-S", url)]
    _master(
        "run-scenario",
        "-f",
        scenario,
        "-s",
        stat_file,
        "--workers",
        1,
        "-R",
        "--seed",
        seed,
        *urls,
        "-T",
        _token(swift),
    )
    logs = swift.log_directory
    words = [
        "attribute",
        "-s",
        stat_file,
        "--swift-logs",
        logs,
        "-f",
        folder / f"{name}.txt",
        "--json",
        found,
        "--force",  # it is asked again where the logs are not complete yet
    ]
    answer: dict[str, Any] = {}

    def complete() -> bool:
        assert main(["-q", *map(str, words)]) == 0
        answer.update(json.loads(found.read_text()))
        return bool(answer["coverage"]["complete"] == operations)

    # A server writes its line when it has answered: the last ones may come after the run's end.
    wait_until(complete, "the last lines of the logs")
    return answer


def attributed_slow(
    swift: LocalSwift, folder: Path, seed: int, who: str, where: str, *, operations: int, **options: Any
) -> dict[str, Any]:
    """Make a device slow, and return what ``attribute --json`` says of the first run that names it alone.

    On a loaded machine one run may not show 100 ms, so that the next ones have a slower device and more
    operations. A test of statistics accuses somebody healthy now and then (how often:
    ``bench/attribution.py``): once in three runs is chance, twice is a fault. Servers of a loaded machine
    do differ: what is less than a tenth of the delay that was planted accuses nobody.
    """
    answers, wrong = [], 0
    for attempt, (seconds, times) in enumerate([(0.1, 1), (0.2, 2), (0.5, 2)]):
        swift.repair(who)
        swift.slow(who, seconds, where=where)
        (own := folder / str(attempt)).mkdir()
        found = attributed(swift, own, seed + 100 * attempt, operations=operations * times, **options)
        suspects = slow(found, seconds / 10)
        if suspects == [who]:
            return found
        answers.append(found["answer"])
        wrong += bool(set(suspects) - {who})
        assert wrong < 2, answers
    raise AssertionError(answers)


def attributed_on_a_fresh_ring(
    folder: Path, devices: int, guilty: str, where: str, *, crud: Sequence[int]
) -> None:
    """Start a Swift with so many devices, and have one that is made slow named, and no other."""
    with LocalSwift(layout=replace(LAYOUT, devices=devices)) as swift:
        # Fewer would begin with so few objects that deletes may leave none, and not all would be sent.
        found = attributed_slow(swift, folder, 4, guilty, where, operations=200, crud=crud)
    assert len([name for name in found["devices"] if "server's" not in name["name"]]) == devices


def _scenario(name: str, operations: int, crud: Sequence[int], *, hot: bool) -> dict[str, Any]:
    initial = {"tiny": 24, "small": 12, "medium": 4}
    if hot or operations < 200:
        initial = {"tiny": 8, "small": 2, "medium": 2}
    return {
        "name": name,
        "sizes": [*_SIZES, _HOT] if hot else _SIZES,
        "initial_files": {**initial, "hot": 1} if hot else initial,
        "operation_count": operations,
        "crud_profile": list(crud),
        "user_count": 2,
        "container_base": name,
        "container_count": 2,
        "container_concurrency": 2,
    }


def slow(answer: dict[str, Any], least: float = 0.0) -> list[str]:
    """Who makes requests slow: devices without their node, those of a process or node instead of it.

    Who makes them slower by less than ``least`` seconds is left out.
    """
    return [
        name.split(" on ")[0]
        for found in answer["findings"]
        if found["kind"] == "slow" and _longest(found["difference"]) >= least
        for name in found["members"] or [found["name"]]
    ]


def _longest(difference: dict[str, float] | None) -> float:
    return max(difference["median"], difference["mean"]) if difference else math.inf


def broken(answer: dict[str, Any]) -> list[str]:
    """Who answered 507, without the node of a device."""
    return [found["name"].split(" on ")[0] for found in answer["findings"] if found["kind"] == "507"]


def _token(swift: LocalSwift) -> str:
    import swiftclient  # noqa: PLC0415

    token: str = swiftclient.get_auth(swift.auth_url, swift.user, swift.key)[1]
    return token


def _master(*arguments: object) -> None:
    with Program("ssbench.cli.master", ["-q", *arguments]) as program:
        assert program.end(240) == 0, program.err
