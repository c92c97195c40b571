"""Several runs at once in the same containers of a real Swift: a run owns its objects."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import swiftclient
from fault_server import FaultServer, Reply, Request
from processes import Fleet
from runs import outcome, write_scenario

from ssbench.base.errors import ExitCode
from ssbench.local_swift import LocalSwift
from ssbench.results.reading import open_results
from ssbench.results.result_export import write_csv
from ssbench.run import run_marks
from ssbench.run.bench_options import RunOptions
from ssbench.run.group_run import container_set_of
from ssbench.run.ownership import Ownership
from ssbench.run.run_marks import RunMark, RunMarks, describe_this_process
from ssbench.run.tokens import TokenSource
from ssbench.scenario.names import MARK_PREFIX, mark_name, run_mark
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Credentials


def options_for(swift: LocalSwift) -> list[str]:
    return ["--workers", "1", "-A", swift.auth_url, "-U", swift.user, "-K", swift.key]


def names_of(account: swiftclient.Connection, base: str) -> set[str]:
    containers = [row["name"] for row in account.get_account(prefix=base)[1]]
    return {row["name"] for name in containers for row in account.get_container(name)[1]}


def run_id(path: Path) -> str:
    results = open_results(path)
    for _ in results.blocks():  # closes it
        pass
    return run_mark(results.run.run_id or 0).removeprefix("ssb-")


def test_two_runs_at_once_do_not_disturb_each_other_and_say_so(
    tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, container_base: str
) -> None:
    scenario = write_scenario(tmp_path, container_base=container_base, operation_count=60)
    with ExitStack() as stack:
        folders = [tmp_path / name for name in ("first", "second")]
        for folder in folders:
            folder.mkdir()
        first, second = (stack.enter_context(Fleet(folder)) for folder in folders)
        one = first.run(scenario, *options_for(swift), "-r", 600, "--rate", 30)
        one.wait_for("Starting the benchmark")
        other = second.run(scenario, *options_for(swift))
        assert other.end() == ExitCode.OK, other.err
        # Containers that are in use stay.
        clean = first.master("cleanup-containers", "--yes", "-b", container_base, *options_for(swift)[2:])
        assert clean.end() == ExitCode.FAILED
        assert "is under way in 2 of these containers, which stay" in clean.err
        one.process.send_signal(signal.SIGINT)
        assert one.end() == ExitCode.INTERRUPTED, one.err
        assert set(outcome(first.stats).causes) == set(outcome(second.stats).causes) == {None}
        ids = run_id(first.stats), run_id(second.stats)
        assert f"have other names (tiny-{ids[1]}_000001 and so on) because run {ids[0]} of host" in " ".join(
            other.out.split()
        )
        assert f"Run {ids[1]} of host" in " ".join(one.out.split())
        assert "with other object names; its load is in these figures" in " ".join(one.out.split())
        rows = BytesIO()
        write_csv(open_results(second.stats), rows)
    assert f",tiny-{ids[1]}_0000".encode() in rows.getvalue()
    # Its initial objects went with the second run, those of the first stay; no mark is left.
    left = names_of(account, container_base)
    assert left
    assert all(name.startswith("tiny_") for name in left)


def test_the_next_run_reuses_the_initial_objects_but_not_those_of_another_scenario(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, container_base: str
) -> None:
    common: dict[str, object] = {"container_base": container_base, "initial_files": {"tiny": 20}}
    mixed = write_scenario(tmp_path, **common, operation_count=60, crud_profile=[1, 2, 3, 0])
    run = fleet.run(mixed, *options_for(swift), "-k")
    assert run.end() == ExitCode.OK, run.err
    assert "Initial objects: 20 uploaded" in run.err
    kept = run_id(fleet.stats)
    assert mark_name(kept) in names_of(account, container_base)

    again = fleet.run(mixed, *options_for(swift))
    assert again.end() == ExitCode.OK, again.err
    assert "Initial objects: 0 uploaded, 0 replaced, 20 reused" in again.err
    assert f"that run {kept} of host" in again.err
    assert "apart" not in again.out

    # Of sizes that include those of the first one, which wrote updates too.
    sizes = [{"name": "tiny", "size_min": 50, "size_max": 400}]
    reads = write_scenario(tmp_path, **common, name="Another", sizes=sizes, crud_profile=[0, 1, 0, 0])
    other = fleet.run(reads, *options_for(swift), "-o", 20)
    assert other.end() == ExitCode.OK, other.err
    assert "Initial objects: 0 uploaded, 20 replaced (objects of another scenario), 0 reused" in other.err
    assert "20 objects of the scenario 'fleet' had the names of this scenario's initial" in other.err
    assert "20 replaced (objects of another scenario)" in other.out


class Store:
    """What an :class:`Ownership` needs of a run, without workers."""

    def __init__(self, credentials: Credentials, scenario: Path) -> None:
        self.scenario = read_scenario(str(scenario))
        self.tokens = TokenSource([credentials])
        self._owners: list[Ownership] = []

    def run(self, number: int, **options: Any) -> tuple[Ownership, list[str]]:
        said: list[str] = []
        loop = SimpleNamespace(
            interrupted=threading.Event(),
            news=SimpleNamespace(warn=said.append),
        )
        owner = Ownership(
            self.scenario,
            [container_set_of(self.scenario)],
            RunOptions(**options),
            self.tokens,
            cast("Any", loop),
            run_id=number,
            trans_id_extra=None,
        )
        self._owners.append(owner)
        return owner, said

    def marks(self) -> RunMarks:
        return RunMarks(
            StoreAccess(self.tokens.sessions[0], (5.0, 5.0)), f"{self.scenario.container_base}_000000"
        )

    def end(self) -> None:
        for owner in self._owners:
            owner.end()


@pytest.fixture
def beside(
    tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, container_base: str
) -> Iterator[Store]:
    account.put_container(f"{container_base}_000000")
    credentials = Credentials(version="1.0", auth_url=swift.auth_url, user=swift.user, key=swift.key)
    store = Store(credentials, write_scenario(tmp_path, container_base=container_base))
    yield store
    store.end()


def test_of_runs_that_begin_at_the_same_moment_no_two_have_the_same_names(beside: Store) -> None:
    runs = [beside.run(number) for number in (1, 2, 3)]
    begun = threading.Barrier(3)

    def begin(owner: Ownership) -> None:
        begun.wait(10)
        owner.begin()

    threads = [threading.Thread(target=begin, args=(owner,)) for owner, _ in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len({owner.tag for owner, _ in runs}) == 3
    for number, (owner, said) in enumerate(runs, 1):
        owner.look()
        named = set(re.findall(r"\b0000000[1-3]\b", " ".join(said)))
        assert named - {f"{number:08}"} == {f"{each:08}" for each in (1, 2, 3) if each != number}
    for owner, _ in runs:
        owner.end()
    assert beside.marks().others() == []


def test_runs_that_only_read_share_objects_that_are_there(beside: Store, tmp_path: Path) -> None:
    base = beside.scenario.container_base
    writes = beside.scenario
    beside.scenario = read_scenario(
        str(write_scenario(tmp_path, container_base=base, crud_profile=[0, 1, 0, 0]))
    )
    first, said = beside.run(1)
    first.begin()
    early, _ = beside.run(2)
    assert early.begin()  # the objects are not there yet
    early.end()
    first.ready()
    second, told = beside.run(3)
    assert second.begin() == ""
    assert "Run 00000001 of host" in told[0]
    assert "reading the same objects" in told[0]
    verifying, _ = beside.run(4, verify=True)
    assert verifying.begin()  # it replaces them
    verifying.end()
    beside.scenario = writes
    writing, _ = beside.run(5)
    assert writing.begin()
    first.look()
    assert {*re.findall(r"\b0000000\d", " ".join(said))} == {f"{each:08}" for each in (2, 3, 4, 5)}


def test_the_mark_of_a_run_that_was_killed_counts_for_nothing(beside: Store, monkeypatch) -> None:
    store, process = beside.marks(), describe_this_process()
    here, _, start = process.rpartition("/")
    store.put(
        RunMark(run="a1", host="h", process=f"{here}/{int(start) - 1}")
    )  # its number was given out again
    store.put(RunMark(run="a2", host="h", process=f"{here.rpartition('/')[0]}/4194305/1"))
    monkeypatch.setattr(run_marks, "MARK_LIFETIME", 1)
    store.put(RunMark(run="a3", host="elsewhere"))
    expired = threading.Event()
    for _ in range(100):
        if not [mark for mark in store.others() if mark.run == "a3"]:
            break
        expired.wait(0.1)
    owner, said = beside.run(1)
    assert owner.begin() == ""
    assert said == []
    owner.end()
    monkeypatch.undo()
    store.put(RunMark(run="a4", host="elsewhere\x1b[2J", pid=7, scenario="S"))
    other, told = beside.run(2)
    assert other.begin() == "00000002"
    assert "because run a4 of host elsewhere??2J (pid 7, scenario S) is under way" in told[-1]


def test_what_is_no_mark_is_left_alone(
    beside: Store, account: swiftclient.Connection, container_base: str
) -> None:
    container = f"{container_base}_000000"
    mine = {f"{MARK_PREFIX}notes": b"{}", f"{MARK_PREFIX}b1": b"[" * 2000, f"{MARK_PREFIX}b2": b"x" * 5000}
    for name, content in mine.items():
        account.put_object(container, name, content)
    owner, said = beside.run(1)
    assert owner.begin() == ""
    assert said == []
    owner.end()
    assert names_of(account, container_base) == set(mine)


def test_an_account_that_cannot_be_written_to_sees_the_others(tmp_path: Path) -> None:
    mark = msgspec.json.encode(RunMark(run="c1", host="writer", pid=3))

    def rule(request: Request) -> Reply:
        if request.method != "GET":
            return Reply(403)
        if request.target.endswith("c1"):
            return Reply(200, mark)
        return Reply(200, msgspec.json.encode([{"name": mark_name("c1"), "bytes": len(mark)}]))

    with FaultServer(rule=rule) as server:
        credentials = Credentials(version="none", token="t", storage_urls=(server.url,))
        store = Store(credentials, write_scenario(tmp_path, crud_profile=[0, 1, 0, 0]))
        owner, said = store.run(1)
        assert owner.begin() == ""
        assert said == [
            "Run c1 of host writer (pid 3) is under way in the same containers, and this account cannot"
            " write: operations on objects that it deletes or replaces fail"
        ]
        server.rule = lambda _request: Reply(500)
        blind, told = store.run(2)
        assert blind.begin() == ""
        assert told[0].startswith("Whether other runs use the same containers is not known: HTTP 500")
        store.end()
