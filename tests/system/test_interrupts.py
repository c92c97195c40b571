"""Signals to a run: what is said, what is left, and the exit code."""

from __future__ import annotations

import re
import signal
import tempfile
import threading
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request
from processes import ANEW, Fleet, Program
from runs import INITIAL, TOKEN, alive, children, outcome, store, wait_until, write_scenario
from said import NO_MORE_SENT, STILL_THERE

from ssbench.results.block import UNFINISHED_CAUSE

CREATES = {"crud_profile": [1, 0, 0, 0]}


def test_a_closed_terminal_ends_a_run_as_ctrl_c_does(fleet: Fleet, tmp_path: Path) -> None:
    with store(0.01) as (rule, options):
        run = fleet.run(
            write_scenario(tmp_path, **CREATES), "-r", 600, "--workers", 1, "--report", "both", *options
        )
        wait_until(lambda: len(rule.objects()) > INITIAL + 20, "created objects")
        run.signal(signal.SIGHUP)
        assert run.end() == 130
        # An upload that did not end in time may reach the store after its deletion, on a busy machine.
        left = len(rule.objects()) - INITIAL
        assert 0 <= left <= outcome(fleet.stats).causes[UNFINISHED_CAUSE]
    assert f"WARNING:The terminal is closed: {NO_MORE_SENT}" in run.err
    summary, _, table = run.out.partition("fleet - INTERRUPTED after ")[2].partition("\nfleet  (generated ")
    assert "\nTOTAL\n" in table
    assert "ALL " in summary
    assert "! the run was interrupted before its 600 s were over\n" in summary
    assert max(map(len, summary.splitlines())) <= 80
    report = fleet.master("report-scenario", "-s", fleet.stats, "--report", "both")
    assert report.end() == 0
    assert report.out == run.out


def test_nohup_keeps_a_closed_terminal_from_a_run(fleet: Fleet, tmp_path: Path) -> None:
    closed = threading.Event()
    with store(0.01) as (rule, options):

        def wait_for_the_signal(_request: Request) -> None:
            if len(rule.objects()) > INITIAL + 20:
                closed.wait(60)

        rule.fault = wait_for_the_signal
        run = fleet.run(
            write_scenario(tmp_path, **CREATES),
            *("-o", 200, "--workers", 1, *options),
            environment={"PYTHONPATH": str(ignoring(tmp_path, "SIGHUP"))},
        )
        wait_until(lambda: len(rule.objects()) > INITIAL + 20, "created objects")
        run.signal(signal.SIGHUP)
        closed.set()
        assert run.end() == 0, run.err
    assert outcome(fleet.stats).count == 200


def ignoring(folder: Path, name: str) -> Path:
    """A folder for PYTHONPATH that lets a program begin with a signal ignored, as nohup does."""
    (folder / "sitecustomize.py").write_text(f"import signal; signal.signal(signal.{name}, signal.SIG_IGN)")
    return folder


def test_ctrl_c_in_the_final_clean_up_says_what_is_left(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        rule.fault = lambda request: Reply(204, delay=0.3) if request.method == "DELETE" else None
        run = fleet.run(write_scenario(tmp_path, **CREATES), "-o", 300, "--workers", 1, *options)
        # So many that of some the master knows.
        wait_until(lambda: rule.counts["DELETE"] > 40, "the clean-up")
        run.signal(signal.SIGINT)
        assert run.end() == 130, run.err
    assert "WARNING:Interrupted: no more objects are deleted; the others stay" in run.err
    (left,) = re.findall(rf"WARNING:(\d+) .*{STILL_THERE}", run.err)
    assert 0 < int(left) < 300
    assert "Count:   300" in run.out
    assert not outcome(fleet.stats).summary.interrupted


@pytest.mark.parametrize("long", [False, True])
def test_a_master_that_was_killed_leaves_no_folder(fleet: Fleet, tmp_path: Path, long: bool) -> None:
    """Local workers remove it, or the process that relays where its path is too long for their sockets."""
    with tempfile.TemporaryDirectory(prefix="ssb", dir="/tmp") as short:
        temporary = Path(short, "x" * 100) if long else Path(short)
        temporary.mkdir(exist_ok=True)

        def folders() -> list[str]:
            return [path.name for path in temporary.iterdir() if path.name.startswith("ssbench-sockets-")]

        scenario = write_scenario(tmp_path, operation_count=1_000_000)
        killed = fleet.run(scenario, "--noop", "--workers", 1, environment=ANEW | {"TMPDIR": str(temporary)})
        killed.wait_for(r"[._]{20}")
        assert len(folders()) == 1
        workers = children(killed.process.pid)
        killed.signal(signal.SIGKILL)
        wait_until(lambda: not any(alive(pid) for pid in workers), "the end of the workers")
        wait_until(lambda: not folders(), "the end of the folder")


@pytest.mark.parametrize(
    ("program", "module"),
    [
        ("master report-scenario", "ssbench.cli.report_scenario"),
        ("master report-scenario", "ssbench.cli.output_file"),
        ("master report-scenario", "numpy"),
        ("worker", "gevent"),
    ],
)
def test_ctrl_c_while_modules_are_loaded_is_one_line(tmp_path: Path, program: str, module: str) -> None:
    """Some of them while the options are parsed."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder)\n"
    )
    name, *arguments = program.split()
    with Program(f"ssbench.cli.{name}", arguments, {"PYTHONPATH": str(tmp_path)}) as ended:
        assert ended.end() == 130, ended.err
    assert ended.err.count("\n") == 1
    assert ended.err.strip().lower().endswith("interrupted")


@pytest.mark.parametrize("times", [2, 3])
def test_a_run_that_ends_at_once_says_what_deletes_its_objects(
    fleet: Fleet, tmp_path: Path, times: int
) -> None:
    """The second and the third Ctrl-C left objects without a word of the command."""
    with store(0.01) as (rule, options):
        run = fleet.run(
            write_scenario(tmp_path, **CREATES, container_base="mine"),
            *("-r", 600, "--workers", 1, *options),
        )
        wait_until(lambda: len(rule.objects()) > INITIAL + 20, "created objects")
        if times == 3:  # so that the run is there for the third
            rule.fault = lambda request: Reply(201, delay=60) if request.method == "PUT" else None
        run.signal(signal.SIGINT)
        run.wait_for(NO_MORE_SENT)
        for _ in range(times - 1):
            run.signal(signal.SIGINT)
        assert run.end() == 130
    (left,) = re.findall(rf"([\d,]+|some) {STILL_THERE}", run.err)
    assert left == "some" or int(left.replace(",", "")) > 20
    assert run.err.count("ssbench-master cleanup-containers --container-base mine") == 1


@pytest.mark.parametrize("times", [1, 2])
def test_a_run_that_ends_in_its_uploads_says_what_deletes_them(
    fleet: Fleet, tmp_path: Path, times: int
) -> None:
    with store(0.05) as (rule, options):
        scenario = write_scenario(tmp_path, initial_files={"tiny": 5000}, container_base="mine")
        run = fleet.run(scenario, "-r", 600, "--workers", 1, *options)
        wait_until(lambda: len(rule.objects()) > 20, "initial objects")
        run.signal(signal.SIGINT)
        run.wait_for("the run ends before its benchmark")
        for _ in range(times - 1):
            run.signal(signal.SIGINT)
        assert run.end() == 130
    assert run.err.count("ssbench-master cleanup-containers --container-base mine") == 1


def test_a_run_that_waits_for_workers_has_made_nothing_to_delete(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        run = fleet.run(write_scenario(tmp_path), "--expect-workers", 1, *options)
        run.wait_for("Waiting for workers")
        run.signal(signal.SIGINT)
        assert run.end() == 130
    assert not rule.counts["PUT"]
    assert "Interrupted before the benchmark began" in run.err
    assert "cleanup-containers" not in run.err


def test_a_run_that_ends_at_once_before_it_created_anything_says_what_deletes_the_rest(
    fleet: Fleet, tmp_path: Path
) -> None:
    with store() as (rule, options):
        rule.fault = lambda request: Reply(200, delay=60) if request.method == "GET" else None
        scenario = write_scenario(tmp_path, crud_profile=[0, 1, 0, 0], container_base="mine")
        run = fleet.run(scenario, "-r", 600, "--workers", 1, *options)
        wait_until(lambda: rule.counts["GET"] > 0, "the benchmark")
        run.signal(signal.SIGINT)
        run.wait_for(NO_MORE_SENT)
        run.signal(signal.SIGINT)
        assert run.end() == 130
    assert run.err.count("ssbench-master cleanup-containers --container-base mine") == 1


def test_a_clean_up_that_ends_before_its_first_deletion_says_that_it_is_not_done(fleet: Fleet) -> None:
    asked = threading.Event()

    def wait_for_ever(_request: Request) -> Reply:
        asked.set()
        return Reply(200, delay=60)

    with FaultServer(rule=wait_for_ever) as server:
        run = fleet.master("cleanup-containers", "-S", server.url, "-T", TOKEN)
        assert asked.wait(60)
        run.signal(signal.SIGINT)
        assert run.end() == 130
    assert "Run it again to delete what is left" in run.err
