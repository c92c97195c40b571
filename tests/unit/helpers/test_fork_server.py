"""A fork is what ``python -m`` would have started, as far as programs and tests can tell."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import fork_server
import pytest
from fork_server import ForkedProgram, SwiftServer
from processes import ANEW, Fleet, Program
from runs import children, write_scenario

from ssbench.base.errors import ExitCode
from ssbench.local_swift import LocalSwift

pytestmark = pytest.mark.skipif("COVERAGE_PROCESS_CONFIG" in os.environ, reason="coverage has no forks")

MASTER = "ssbench.cli.master"


def started(arguments: Sequence[str], *, fork: bool) -> tuple[int, str, str]:
    with Program(MASTER, arguments, {} if fork else ANEW) as program:
        assert isinstance(program.process, ForkedProgram) is fork
        return program.end(), program.out, program.err


@pytest.mark.parametrize(
    "arguments", [["--version"], ["config", "--nonsense"], ["report-scenario", "-s", "/nowhere/at all"], []]
)
def test_it_says_the_same_and_ends_alike(arguments: list[str]) -> None:
    assert started(arguments, fork=True) == started(arguments, fork=False)


def test_it_has_a_group_and_descriptors_of_its_own(fleet: Fleet) -> None:
    worker = fleet.worker(1)
    worker.wait_for("waiting for a master")
    pid = worker.process.pid
    assert isinstance(worker.process, ForkedProgram)
    assert os.getpgid(pid) == pid
    shown = Path(f"/proc/{pid}")
    assert {str((shown / "fd" / number).readlink()).partition(":")[0] for number in "12"} == {"pipe"}
    assert (shown / "fd" / "0").readlink() == Path(os.devnull)
    assert (shown / "cwd").readlink() == Path.cwd()
    with pytest.raises(subprocess.TimeoutExpired):
        worker.process.wait(0.01)
    assert worker.process.poll() is None
    worker.process.kill()
    assert worker.end() == -signal.SIGKILL
    worker.process.send_signal(signal.SIGTERM)  # to nobody


def test_a_fork_owns_no_number_that_is_another_descriptor_there(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = socket.socketpair(type=socket.SOCK_SEQPACKET)
    # The rest as in the fork, whose descriptors have been closed without the knowledge of their objects.
    monkeypatch.setattr(os, "fork", lambda: 0)
    monkeypatch.setattr(fork_server, "_become_program", lambda *_: None)
    with here, there:
        number = there.fileno()
        socket.send_fds(here, [b'[[], {}, "/"]'], [])
        fork_server.serve(there, MASTER)
        assert there.fileno() == -1
        os.close(number)


def test_what_python_heeds_when_it_starts_is_started_anew() -> None:
    with Program(MASTER, ["--version"], ANEW) as program:
        assert program.process.args[:3] == [sys.executable, "-m", MASTER]
        assert program.end() == 0


@pytest.mark.parametrize("fork", [True, False])
def test_local_workers_are_forks_where_their_master_is_one(
    fleet: Fleet, tmp_path: Path, *, fork: bool
) -> None:
    scenario = write_scenario(tmp_path, operation_count=1_000_000)
    run = fleet.run(scenario, "--noop", "--workers", 2, environment=None if fork else ANEW)
    pids = {int(run.wait_for(rf"Worker {number} on \S+ \(pid (\d+)\) joined")[1]) for number in (0, 1)}
    assert {os.getpgid(pid) for pid in pids} == pids
    assert [*pids & {*children(run.process.pid)}] == ([] if fork else [*pids])
    for pid in pids:
        assert (b"fork_server.py" in Path(f"/proc/{pid}/cmdline").read_bytes()) is fork
        os.kill(pid, signal.SIGTERM)
    assert run.end() == ExitCode.WORKERS


def test_servers_of_a_swift_are_forks_that_end_with_the_tests() -> None:
    with LocalSwift() as own:
        assert all(isinstance(server._process, SwiftServer) for server in own.servers)
        # The kernel ends a server with its parent, which ends when the tests close its connection.
        (parent,) = {_parent_of(server.pid) for server in own.servers}
        assert _parent_of(parent) == os.getpid()
        own.proxy.restart()
        assert own.proxy.pid is not None


def _parent_of(pid: int | None) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
