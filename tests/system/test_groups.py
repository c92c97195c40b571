"""Groups of users at once: against a store whose behaviour was planted, and against a real Swift."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import swiftclient
import yaml
from fault_server import Reply, Request
from processes import Fleet
from runs import is_object, store
from said import NEVER_BEGAN

from ssbench.base.errors import ExitCode
from ssbench.cli.master import main
from ssbench.local_swift import LocalSwift
from ssbench.results.block import join_blocks
from ssbench.results.reading import open_results
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.statistics.summary import summarize

#: The store answers requests for the objects of the slow group after so many seconds, others at once.
SLOW = 0.25

GROUPS = [
    {"name": "web", "users": 3, "sizes": {"small": 1}, "profile": {"read": 9, "create": 1}},
    {
        "name": "backup",
        "users": 4,
        "rate": 10,
        "sizes": {"big": 1},
        "profile": {"create": 1},
        "container_base": "backups",
        "container_count": 1,
    },
]


def write(folder: Path, **changes: object) -> Path:
    scenario: dict[str, object] = {
        "name": "groups",
        "sizes": [
            {"name": "small", "size_min": 100, "size_max": 200},
            {"name": "big", "size_min": 20_000, "size_max": 30_000},
        ],
        "initial_files": {"small": 30, "big": 3},
        "run_seconds": 3,
        "container_count": 2,
        "groups": GROUPS,
    }
    path = folder / "groups.yaml"
    path.write_text(yaml.safe_dump(scenario | changes))
    return path


class Watched:
    """Delays what is asked of the containers of the backup; counts how much is under way of each group."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self.under_way = {"web": 0, "backup": 0}
        self.most = {"web": 0, "backup": 0}

    def __call__(self, request: Request) -> Reply | None:
        if not is_object(request) or request.method not in {"GET", "PUT"}:
            return None
        group = "backup" if "/backups_" in request.target else "web"
        with self._lock:
            self.under_way[group] += 1
            self.most[group] = max(self.most[group], self.under_way[group])
        time.sleep(SLOW if group == "backup" else 0.005)
        with self._lock:
            self.under_way[group] -= 1
        return self._answer(request)


def test_a_store_that_is_slow_for_one_group_is_slow_for_no_other(fleet: Fleet, tmp_path: Path) -> None:
    scenario = write(tmp_path)
    with store() as (rule, options):
        watched = Watched(rule.answer)
        rule.fault = watched
        html, made = tmp_path / "page.html", tmp_path / "report.json"
        run = fleet.run(scenario, "--workers", 2, "--html", html, "--json", made, *options)
        # Whether all that was due began before the end is up to the machine.
        assert run.end() in {ExitCode.OK, ExitCode.NOT_DELIVERED}, run.err
        left = rule.objects()
    # No group has more users than it says, and each object that the run made is deleted.
    assert watched.most["web"] <= 3
    assert watched.most["backup"] <= 4
    assert {name.rpartition("/")[2].rpartition("_")[0] for name in left} == {"web-small", "backup-big"}
    assert len(left) == 33

    numbers = summarize(open_results(fleet.stats))
    web, backup = (numbers.group(name) for name in ("web", "backup"))
    assert web is not None
    assert backup is not None
    # What was planted.
    create = backup.numbers.total.lines[0].last_byte
    assert create.minimum >= SLOW
    read = web.numbers.total.lines[0].last_byte
    assert read.minimum < SLOW
    assert read.percentile(50) < SLOW
    # As many as were due, no more.
    assert backup.numbers.due == 30
    assert backup.numbers.total.count + (backup.numbers.not_begun or 0) == 30
    # The groups add up to the whole.
    block = join_blocks(list(open_results(fleet.stats).blocks()))
    assert np.bincount(block.group).tolist() == [web.numbers.total.count, backup.numbers.total.count]
    assert web.numbers.total.count + backup.numbers.total.count == numbers.total.count == len(block)
    assert (block.size_class == block.group).all()
    # Each report has both.
    report = json.loads(made.read_text())
    assert [each["group"] for each in report["groups"]] == ["web", "backup"]
    assert [each["operations"][0]["figures"]["count"] for each in report["groups"]] == [
        web.numbers.total.count,
        backup.numbers.total.count,
    ]
    assert [each["asked"]["users"] for each in report["groups"]] == [3, 4]
    assert report["groups"][1]["asked"]["ops_per_second"] == 10
    assert "web: " in run.out
    assert "backup: " in run.out
    assert "Groups of users" in html.read_text()


def test_a_group_that_does_not_get_its_rate_is_named_and_not_green(fleet: Fleet, tmp_path: Path) -> None:
    """4 users and a store that takes 250 ms do 16 a second of 200; the other group has all it asked for."""
    groups = [GROUPS[0], GROUPS[1] | {"rate": 200}]
    conditions = ["web.read.errors > 0", "backup.undelivered > 99%"]
    with store() as (rule, options):
        rule.fault = Watched(rule.answer)
        made = tmp_path / "report.json"
        run = fleet.run(write(tmp_path, groups=groups), "--workers", 1, "--json", made, *options)
        assert run.end() == ExitCode.NOT_DELIVERED
        assert "! group backup: " in run.out
        assert NEVER_BEGAN in run.err + run.out
    # A busy machine may be the limit of the other group, which is no reason to call it undelivered.
    reasons = json.loads(made.read_text())["verdict"]["reasons"]
    failed = [each["text"] for each in reasons if each["exit_code"] == ExitCode.NOT_DELIVERED]
    assert len(failed) == 1
    assert failed[0].startswith("group backup: ")
    assert not any(each["text"].startswith("group web: ") and each["exit_code"] for each in reasons)
    # What may be missing of one group can be said.
    path = str(fleet.stats)
    more = [option for condition in conditions for option in ("--fail-if", condition)]
    assert main(["report-scenario", path, *more]) == ExitCode.OK
    assert main(["report-scenario", path, "--fail-if", "backup.rate < 100"]) != ExitCode.OK
    assert main(["report-scenario", path, "--fail-if", "wep.read.p99 > 1s"]) == ExitCode.USAGE


def test_groups_with_a_real_swift(
    swift_environment: LocalSwift,
    account: swiftclient.Connection,
    container_base: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The example of the documentation: two groups, of which one has stages, think time and a policy."""
    groups = [
        GROUPS[0] | {"think_time": 0.05},
        {
            "name": "backup",
            "sizes": {"big": 1},
            "profile": {"create": 3, "delete": 1},
            "stages": [{"seconds": 1, "users": 1}, {"seconds": 1, "rate": 5, "users": 2}],
            "container_base": f"{container_base}-b",
            "policy": "silver",
        },
    ]
    scenario = write(tmp_path, groups=groups, container_base=container_base, run_seconds=2)
    stats = tmp_path / "real.stat.gz"
    arguments = ["run-scenario", "-f", str(scenario), "--workers", "2", "-s", str(stats), "--verify"]
    # Whether all that was due began before the end is up to the machine.
    code = main([*arguments, "--report", "summary"])
    assert code in {ExitCode.OK, ExitCode.NOT_DELIVERED}, capfd.readouterr()
    numbers = summarize(open_results(stats))
    web, backup = numbers.by_group
    assert web.numbers.total.count > 0
    # With a think time of 50 ms three users begin 60 a second at most.
    assert web.numbers.total.count <= 3 * (2 / 0.05 + 1)
    assert [stage.numbers.due for stage in backup.numbers.stages] == [None, 5]
    assert not numbers.total.failed
    containers = {each["name"] for each in account.get_account(prefix=container_base)[1]}
    assert f"{container_base}-b_000000_silver" in containers
    assert f"{container_base}_000001" in containers
    left = {
        each["name"]
        for name in containers
        for each in account.get_container(name)[1]
        if not each["name"].startswith(".")
    }
    # The initial objects stay, but for those that the run deleted; what it created does not.
    assert {name.rpartition("_")[0] for name in left} <= {"web-small", "backup-big"}
    assert all(int(name.rpartition("_")[2]) <= 30 for name in left)
    assert read_scenario(str(scenario)).containers == 4
    for command in (["export", "-s", str(stats), "-o", str(tmp_path / "all.csv")], ["list"]):
        assert main(command) == ExitCode.OK
    exported = (tmp_path / "all.csv").read_text()
    capfd.readouterr()
    assert main([*arguments[:-1], "--force", "--noop", "--ab", "a=gold", "b=silver"]) == ExitCode.USAGE
    assert "--ab: not possible with a scenario that has groups" in capfd.readouterr().err
    assert "backup-big_" in exported
    assert f"{container_base}-b_000000_silver" in exported


def test_a_group_that_begins_later_sends_nothing_before(fleet: Fleet, tmp_path: Path) -> None:
    stages = [{"seconds": 1, "users": 0}, {"seconds": 1, "users": 4}]
    late = {"name": "late", "sizes": {"small": 1}, "profile": {"read": 1}, "stages": stages}
    path = tmp_path / "s.stat.gz"
    with store() as (_, options):
        run = fleet.master(
            *("run-scenario", "-f", write(tmp_path, groups=[GROUPS[0], late], run_seconds=None), "-s", path),
            *("--workers", 1, "--json", tmp_path / "s.json", *options),
        )
        assert run.end() == ExitCode.OK, run.err
    web, own = json.loads((tmp_path / "s.json").read_text())["groups"]
    idle, busy = own["stages"]
    assert idle["operations"][0]["figures"]["count"] == 0
    assert busy["operations"][0]["figures"]["count"] > 0
    (effect,) = web["events"]
    assert (effect["facts"]["group"], effect["facts"]["at"]) == ("late", 1)
    assert effect["before"]["count"] > 0
    assert effect["after"]["count"] > 0
    block = join_blocks(list(open_results(path).blocks()))
    begins = own["stages"][1]["begins"]
    sent = block.completed[block.group == 1] - block.last_byte[block.group == 1]
    assert sent.min() >= begins - 0.05
