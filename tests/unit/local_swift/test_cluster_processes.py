"""A server process of the embedded Swift as its parent sees it, with other programs in its place."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from golden_words import GoldenWords
from runs import wait_until

from ssbench.base import own_processes
from ssbench.base.errors import ClusterError
from ssbench.local_swift.cluster import PortTakenError, ServerProcess

READY = "print('ready', flush=True); signal.pause()"

Make = Callable[[str], ServerProcess]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes a server that is a few lines of Python."""
    made: list[ServerProcess] = []

    def server(program: str) -> ServerProcess:
        command = [sys.executable, "-c", f"import os, signal, sys; {program}"]
        monkeypatch.setattr(own_processes, "make_python_command", lambda *_: command)
        made.append(ServerProcess(tmp_path, "object-1", ["object-1"], swift="the local Swift 2.38.3"))
        return made[-1]

    yield server
    for each in made:
        each.kill()


def state(pid: int | None) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_it_has_its_folder_its_parent_and_its_applications(make: Make, tmp_path: Path) -> None:
    server = make(f"print(*sys.argv[1:], os.getcwd(), file=sys.stderr); {READY}")
    server.start()
    assert server.log == tmp_path / "log" / "object-1.log"
    assert server.log.read_text().split() == [
        *(str(tmp_path / "etc"), str(os.getpid()), "object-1", str(tmp_path))
    ]
    first = server.pid
    server.start()  # it runs already
    assert server.pid == first
    server.restart()
    assert server.pid not in (None, first)
    assert len(server.log.read_text().splitlines()) == 2
    server.kill()
    assert server.pid is None
    server.kill()


def test_it_is_stopped_and_resumed(make: Make) -> None:
    server = make(READY)
    server.stop()  # it does not run yet
    server.start()
    server.stop()
    wait_until(lambda: state(server.pid) == "T", "the stop")
    server.resume()
    wait_until(lambda: state(server.pid) != "T", "its going on")
    server.stop()
    server.kill()
    assert server.pid is None


class SignallingLock:
    """The lock of a Popen; Ctrl-C comes at the instruction after it was taken for the first time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.taken = 0

    def acquire(self, blocking: bool = True) -> bool:
        # In place of waiting for ever for whoever has kept it.
        taken = self._lock.acquire(blocking, 10 if blocking else -1)
        assert taken or not blocking, "the lock was kept"
        self.taken += 1
        if self.taken == 1:
            signal.raise_signal(signal.SIGINT)
        return taken

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_error: object) -> None:
        self.release()


@pytest.mark.parametrize("what", ["kill", "restart", "stop", "pid"])
def test_ctrl_c_within_popen_does_not_keep_its_lock(make: Make, what: str) -> None:
    server = make(READY)
    server.start()
    process = server._process
    assert process is not None
    process._waitpid_lock = lock = SignallingLock()  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        server.pid if what == "pid" else getattr(server, what)()
    assert lock.taken
    server.kill()
    assert process.returncode == -signal.SIGKILL


def test_ctrl_c_while_it_starts_ends_the_wait(make: Make) -> None:
    parent = os.getpid()
    server = make(f"os.kill({parent}, signal.SIGINT); signal.pause()")
    with pytest.raises(KeyboardInterrupt):
        server.start()


def test_one_that_ended_has_no_number(make: Make) -> None:
    server = make(READY)
    server.start()
    assert server.pid is not None
    os.kill(server.pid, signal.SIGTERM)
    wait_until(lambda: server.pid is None, "its end")


def test_one_that_does_not_start_shows_the_end_of_its_log(make: Make) -> None:
    server = make("print(*range(100), sep='\\n', file=sys.stderr); sys.exit(1)")
    with pytest.raises(
        ClusterError, match=r"object-1 server of the local Swift 2\.38\.3 did not start; its log ends:"
    ) as caught:
        server.start()
    lines = [line.strip() for line in str(caught.value).splitlines()[1:]]
    assert lines == [str(number) for number in range(85, 100)]
    server.log.unlink()
    assert server.tail() == ""


def test_what_one_raises_at_its_start_is_one_line(make: Make) -> None:
    raised = "ModuleNotFoundError: No module named 'no_such'"
    server = make("print('WARNING: odd', file=sys.stderr, flush=True); import no_such")
    with pytest.raises(ClusterError, match=rf"did not start: {raised} \([^ ]+, line \d+\)\Z"):
        server.start()
    server = make("raise ValueError('a\\nb')")
    with pytest.raises(ClusterError, match=r"did not start: ValueError: a b \(.+, line \d+\)\Z"):
        server.start()


def test_one_that_says_something_else_did_not_start(make: Make) -> None:
    server = make("print('steady', flush=True); signal.pause()")
    with pytest.raises(ClusterError, match="did not start"):
        server.start()
    assert server.pid is None


def test_words_may_come_in_parts(make: Make) -> None:
    server = make("os.write(1, b're'); sys.stdin.read(); os.write(1, b'ady\\n'); signal.pause()")
    server.start()
    assert server.pid is not None


def test_a_port_that_is_taken_is_another_error(make: Make) -> None:
    server = make("print('port 7001', flush=True)")
    with pytest.raises(PortTakenError, match="port 7001"):
        server.start()


def test_one_that_takes_too_long_is_ended(make: Make, golden_words: GoldenWords) -> None:
    server = make("signal.pause()")
    server.launch()
    with golden_words.raises(ClusterError):
        server.wait_ready(0.05)
    assert server.pid is None


def test_it_is_launched_before_it_is_waited_for(make: Make) -> None:
    with pytest.raises(RuntimeError):
        make(READY).wait_ready()
