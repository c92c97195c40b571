"""The programs as child processes: started with ports of their own, watched line by line, ended for sure."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from fork_server import IMPORTED, ForkedProgram

PATIENCE = 60.0

#: Options of run-scenario for tests that wait until some operations have ended.
CHARACTERS = ("--progress", "characters")

#: An option of run-scenario for tests that look for something in its report.
FULL = ("--report", "full")


_OF_ACCOUNTS = ("ST_", "OS_", "SSBENCH_")


def _environment() -> dict[str, str]:
    """Return what a program may inherit of the tests' environment; nothing that says how to authenticate."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OF_ACCOUNTS)}


#: How many ports belong to one process of tests, of those from 12,000 to 20,000: below the ones that
#: outgoing connections and the tests' Swift get.
_SHARE = 200


@functools.cache
def _own_ports() -> tuple[socket.socket, Iterator[int]]:
    """The ports of this process, in turn for ever; a name that only one process can bind reserves them."""
    for first in range(12_000, 20_000, _SHARE):
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0ssbench-tests-{first}")
        except OSError:
            reservation.close()
            continue
        atexit.register(reservation.close)
        return reservation, itertools.cycle(range(first, first + _SHARE))
    raise RuntimeError("no ports are left for one more process of tests")


def free_ports(count: int = 2, ip: str = "127.0.0.1") -> list[int]:
    """Ports that nobody listens on, and that no other process of tests takes."""
    ports: list[int] = []
    _, turns = _own_ports()
    for port in itertools.islice(turns, _SHARE):
        with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET) as probe:
            try:
                probe.bind((ip, port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError("no free port")


#: An environment in which a program and its local workers are started anew: no path at all is heeded, too.
ANEW = {"PYTHONPATH": ""}

#: Variables that Python heeds when it starts, or a library when it is imported: no fork would heed them.
_OF_THE_START = {"PYTHONPATH", "PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL", "LANG", "GEVENT_LOOP"}


class Program:
    """A running ssbench program; its output can be waited for, and its end too. A context manager.

    ``redirect`` is what a shell would be told of its output (``2>&-``); ``stdout`` and ``stderr`` are
    descriptors in place of the pipes that are read here. It leads a process group of its own.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[object],
        environment: dict[str, str] | None = None,
        *,
        redirect: str = "",
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> None:
        shell = ["sh", "-c", f'exec "$@" {redirect}', "sh"] if redirect else []
        variables = {**_environment(), "PYTHONUNBUFFERED": "1", "COLUMNS": "80", **(environment or {})}
        self.process: subprocess.Popen[bytes] | ForkedProgram
        # What coverage measures, it does from the start of Python on.
        begun = _OF_THE_START.isdisjoint(environment or ()) and "COVERAGE_PROCESS_CONFIG" not in os.environ
        if module in IMPORTED and begun and not shell:
            self.process = ForkedProgram(module, [*map(str, arguments)], variables, stdout, stderr)
        else:
            self.process = subprocess.Popen(
                [*shell, sys.executable, "-m", module, *map(str, arguments)],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
            )
        self._changed = threading.Condition()
        self._text = {"out": "", "err": ""}
        self._threads = [
            threading.Thread(target=self._read, args=(name, pipe))
            for name, pipe in (("out", self.process.stdout), ("err", self.process.stderr))
            if pipe is not None
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, name: str, pipe: IO[bytes]) -> None:
        while data := os.read(pipe.fileno(), 65536):
            with self._changed:
                self._text[name] += data.decode(errors="replace")
                self._changed.notify_all()

    @property
    def out(self) -> str:
        return self._text["out"]

    @property
    def err(self) -> str:
        return self._text["err"]

    def wait_for(self, pattern: str, patience: float = PATIENCE) -> re.Match[str]:
        """Wait until standard error has text that the pattern matches."""
        end = time.monotonic() + patience
        with self._changed:
            while not (match := re.search(pattern, self.err)):
                left = end - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._threads[-1].is_alive()):
                    raise AssertionError(f"{pattern!r} did not come:\n{self.err}\n{self.out}")
                self._changed.wait(min(left, 0.5))
        return match

    def end(self, patience: float = PATIENCE) -> int:
        """Wait for its end; returns the exit code."""
        try:
            code = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"did not end:\n{self.err}\n{self.out}") from None
        for thread in self._threads:
            thread.join(10)
        return code

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(10)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def limited(folder: Path, descriptors: int) -> dict[str, str]:
    """An environment in which a program of ours may have so many descriptors."""
    (folder / "sitecustomize.py").write_text(
        f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({descriptors}, {descriptors}))\n"
    )
    return {"PYTHONPATH": f"{folder}:{Path(__file__).parents[2]}"}


def run_master(*arguments: object, patience: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """Run ``ssbench-master`` to its end, away from any terminal; it authenticates as this process would."""
    own = {name: value for name, value in os.environ.items() if name.startswith(_OF_ACCOUNTS)}
    with Program("ssbench.cli.master", arguments, own) as program:
        code = program.end(patience)
        return subprocess.CompletedProcess([*map(str, arguments)], code, program.out, program.err)


class Fleet:
    """Programs that share a pair of ports, and a folder for stat files. A context manager."""

    def __init__(self, folder: Path, ip: str = "127.0.0.1") -> None:
        self.folder = folder
        self.ip = ip
        self.work_port, self.results_port = free_ports(2, ip)
        self._stack = ExitStack()
        self._runs = 0

    def _ports(self) -> list[object]:
        return ["--zmq-work-port", self.work_port, "--zmq-results-port", self.results_port]

    def worker(
        self,
        worker_id: int | None,
        *arguments: object,
        module: str = "ssbench.cli.worker",
        environment: dict[str, str] | None = None,
    ) -> Program:
        """Start ``ssbench-worker``, or a module that stands in for it."""
        return self._stack.enter_context(
            Program(
                module,
                [
                    "--zmq-host",
                    self.ip,
                    *self._ports(),
                    *arguments,
                    *([] if worker_id is None else [worker_id]),
                ],
                environment,
            )
        )

    def run(
        self,
        scenario: object,
        *arguments: object,
        environment: dict[str, str] | None = None,
        **outputs: Any,
    ) -> Program:
        """Start ``ssbench-master run-scenario``; its stat file is :attr:`stats`.

        It shows a character for each result, so that tests can wait for some, and prints the full report,
        unless the arguments say otherwise.
        """
        self._runs += 1
        given = set(map(str, arguments))
        report = () if {"--csv", "--report"} & given else FULL
        return self.master(
            "run-scenario",
            "-f",
            scenario,
            "--zmq-bind-ip",
            self.ip,
            *self._ports(),
            "-s",
            self.stats,
            *(() if "live" in given else CHARACTERS),
            *report,
            *arguments,
            environment=environment,
            **outputs,
        )

    @property
    def stats(self) -> Path:
        """The stat file of the last run."""
        return self.folder / f"run{self._runs}.stat.gz"

    def master(
        self, *arguments: object, environment: dict[str, str] | None = None, **outputs: Any
    ) -> Program:
        """Start ``ssbench-master``; ``outputs`` are those of :class:`Program`."""
        return self._stack.enter_context(Program("ssbench.cli.master", arguments, environment, **outputs))

    def kill_workers(self, *options: str) -> Program:
        """Start ``ssbench-master kill-workers`` on the fleet's ports."""
        return self.master("kill-workers", "--zmq-bind-ip", self.ip, *self._ports(), *options)

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
