"""Programs as forks of a process that has imported what they import: that is most of what a start takes.

A fork does what ``python -m MODULE`` would do: with its arguments, environment, folder and descriptors, in a
process group of its own, from ``main`` to the end of the interpreter. What differs is that nothing is left to
import. So :class:`processes.Program` uses it only where neither a shell nor a variable of Python itself is in
between. The local workers of such a program are forks, too, though not its children: tests that look for
those start the program anew. :class:`SwiftServer` does the same for the servers of a
:class:`~ssbench.local_swift.LocalSwift` that the tests start themselves; that of a program has servers that
are started anew.

This file is the process that forks, too: one for each module, started when it is first needed.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

MASTER = "ssbench.cli.master"
WORKER = "ssbench.cli.worker"

#: The programs, each with what most of its runs import after it began.
IMPORTED = {
    MASTER: (
        "ssbench.cli.export",
        "ssbench.cli.prepare",
        "ssbench.cli.run_scenario",
        "ssbench.cli.run_scenario_options",
        "ssbench.cli.report_scenario",
        "ssbench.cluster.report",
        "ssbench.cluster.run_options",
        "ssbench.monitoring.run_options",
        "ssbench.reports.json",
        "ssbench.reports.run_charts",
        "ssbench.reports.run_text",
        "ssbench.reports.writing",
        "ssbench.results.current",
        "ssbench.run.account_cleaner",
        "ssbench.statistics.summary",
        "ssbench.statistics.run_statistics",
        # With python-swiftclient and all that it needs.
        "ssbench.store.http.master_requests",
        "ssbench.store.swift.auth",
        "ssbench.store.swift.containers",
        "ssbench.store.swift.dialect",
        # By the words of a report, and by the first draw.
        "numpy.random",
        "rich.cells",
        "rich._unicode_data",
    ),
    WORKER: (
        "ssbench.store.http.client",
        "ssbench.store.swift.dialect",
        "ssbench.worker.engine",
        "ssbench.worker.worker_process",
    ),
    # These find the standard library as eventlet changes it; to do that is half of a start.
    "ssbench.local_swift._serve": (
        "swift.account.server",
        "swift.common.middleware.bulk",
        "swift.common.middleware.catch_errors",
        "swift.common.middleware.copy",
        "swift.common.middleware.dlo",
        "swift.common.middleware.gatekeeper",
        "swift.common.middleware.healthcheck",
        "swift.common.middleware.listing_formats",
        "swift.common.middleware.proxy_logging",
        "swift.common.middleware.recon",
        "swift.common.middleware.s3api.s3api",
        "swift.common.middleware.slo",
        "swift.common.middleware.symlink",
        "swift.common.middleware.tempauth",
        "swift.common.middleware.tempurl",
        "swift.common.middleware.versioned_writes",
        "swift.container.server",
        "swift.obj.server",
        "swift.proxy.server",
    ),
}


# -- The side of the tests -------------------------------------------------------------------------


class ForkedProgram:
    """A program as :class:`subprocess.Popen` shows it: what tests, or a master of its workers, use of that.

    ``server`` is the connection to the process that forks it, where that is not one of this process's own.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stdout: int,
        stderr: int,
        folder: Path | None = None,
        *,
        stdin: int = subprocess.DEVNULL,
        server: socket.socket | None = None,
    ) -> None:
        self.returncode: int | None = None
        self._lock = threading.Lock()
        asked = json.dumps([arguments, {**environment}, str(folder or Path.cwd())]).encode()
        self.stdout, out = _make_pipe(stdout)
        self.stderr, err = _make_pipe(stderr)
        self._status, status = os.pipe()
        self.stdin: IO[bytes] | None = None
        if stdin == subprocess.PIPE:
            into, writing = os.pipe()
            self.stdin = os.fdopen(writing, "wb", buffering=0)
        else:
            into = os.open(os.devnull, os.O_RDONLY)
        given = [into, out, err, status]
        if module == MASTER and "--workers" in arguments:
            given.append(_start_server(WORKER)[0].fileno())
        # One message, which is whole whoever else sends one on the same connection.
        socket.send_fds(server or _start_server(module)[0], [asked], given)
        for descriptor, own in ((into, True), (status, True), (out, out != stdout), (err, err != stderr)):
            if own:
                os.close(descriptor)
        self.pid = int.from_bytes(os.read(self._status, 4))

    def poll(self) -> int | None:
        """Return the exit code, None if the program goes on."""
        return self._look(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; raises subprocess.TimeoutExpired."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a forked program", timeout or 0.0)
        return code

    def _look(self, timeout: float | None) -> int | None:
        end = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = None if end is None else max(0.0, end - time.monotonic())
            watch = select.poll()  # select() knows no descriptor beyond 1,023
            watch.register(self._status, select.POLLIN)
            if not watch.poll(None if left is None else 1000 * left):
                return None
            with self._lock:
                if self.returncode is None:
                    data = os.read(self._status, 4)
                    assert data, "the process that forks programs has ended"
                    self.returncode = int.from_bytes(data, signed=True)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended just now
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def __del__(self) -> None:
        os.close(self._status)


class SwiftServer(ForkedProgram):
    """A process of a local Swift. It ends with the process that forks, and so with the tests."""

    MODULE = "ssbench.local_swift._serve"

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: int, folder: Path
    ) -> None:
        etc, _, *apps = command[command.index(self.MODULE) + 1 :]
        _, parent = _start_server(self.MODULE)
        super().__init__(self.MODULE, [etc, str(parent), *apps], environment, subprocess.PIPE, log, folder)


def start_process(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes] | SwiftServer:
    """Do as ``subprocess.Popen`` for :mod:`ssbench.local_swift.cluster`: Swift's servers are forks."""
    if SwiftServer.MODULE in command and command[0] == sys.executable:  # not that of another Swift
        return SwiftServer(command, options["env"], options["stderr"].fileno(), options["cwd"])
    return subprocess.Popen(command, **options)


def fork_worker(
    server: socket.socket,
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
    process_group: int,
) -> ForkedProgram:
    """Do as ``subprocess.Popen`` for :mod:`ssbench.run.run_workers` in a forked master: workers are forks."""
    assert process_group == 0
    arguments = command[command.index(WORKER) + 1 :]
    return ForkedProgram(WORKER, arguments, env, stdout, stderr, stdin=stdin, server=server)


def _make_pipe(descriptor: int) -> tuple[IO[bytes] | None, int]:
    """Return the reader here and the descriptor there, of a pipe where one is asked for."""
    if descriptor != subprocess.PIPE:
        return None, descriptor
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", buffering=0), writing


#: Heeded by what a program imports; the last one by eventlet, and each server of a Swift has it.
_VARIABLES = {
    "PYTHONUNBUFFERED": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "EVENTLET_NO_GREENDNS": "yes",
    # It has no descriptor, which forks could not share; they choose theirs anew.
    "EVENTLET_HUB": "poll",
}


@functools.cache
def _start_server(module: str) -> tuple[socket.socket, int]:
    """Start the process that forks programs of a module; it ends with this one, whose end it sees.

    Returns the connection to it, and its process id.
    """
    here, there = socket.socketpair(type=socket.SOCK_SEQPACKET)
    options = ("-W", "ignore") if module == SwiftServer.MODULE else ()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SSBENCH_")}
    server = subprocess.Popen(
        [sys.executable, *options, __file__, str(there.fileno()), module],
        env={**environment, **_VARIABLES},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[there.fileno()],
        process_group=0,
    )
    there.close()

    def end() -> None:
        here.close()
        server.wait(60)

    atexit.register(end)
    return here, server.pid


# -- The process that forks ------------------------------------------------------------------------

_make_poll = select.poll

#: Of a message that asks for a fork: its arguments and its environment.
_MOST_BYTES = 1 << 20


def serve(connection: socket.socket, module: str) -> None:
    """Fork programs until the tests have ended. Returns in each fork, which then is the program."""
    statuses: dict[int, tuple[int, int]] = {}
    watch = _make_poll()  # select itself is eventlet's now, where the program is a Swift
    watch.register(connection, select.POLLIN)
    while True:
        for watched, _ in watch.poll():
            if watched == connection.fileno():
                asked, given, _, _ = socket.recv_fds(connection, _MOST_BYTES, 5)
                if not asked:
                    os._exit(0)
                pid = os.fork()
                if not pid:
                    # Its number is soon another's, which the object's end must not close.
                    connection.detach()
                    arguments, environment, folder = json.loads(asked)
                    _become_program(module, arguments, environment, folder, given)
                    return
                os.setpgid(pid, pid)
                for descriptor in (*given[:3], *given[4:]):
                    os.close(descriptor)
                os.write(given[3], pid.to_bytes(4))
                process = os.pidfd_open(pid)
                statuses[process] = pid, given[3]
                watch.register(process, select.POLLIN)
            else:
                watch.unregister(watched)
                pid, status = statuses.pop(watched)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                os.close(watched)
                with suppress(BrokenPipeError):  # nobody may want to know any more
                    os.write(status, code.to_bytes(4, signed=True))
                os.close(status)


def _become_program(
    module: str, arguments: list[str], environment: dict[str, str], folder: str, given: list[int]
) -> None:
    """Make this process what it would be at the beginning of ``main``."""
    os.setpgid(0, 0)
    for number, descriptor in enumerate(given[:3]):
        os.dup2(descriptor, number)
    workers = None
    if given[4:]:
        workers = socket.socket(fileno=os.dup2(given[4], 3, inheritable=False))
    os.closerange(3 if workers is None else 4, 1024)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    time.tzset()
    # Filters of a test's own are found by it.
    if module == SwiftServer.MODULE and "PYTHONPATH" in environment:
        sys.path[1:1] = environment["PYTHONPATH"].split(os.pathsep)
    path = str(importlib.import_module(module).__file__)
    sys.argv = [path, *arguments]
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    for name, number, errors in (("stdout", 1, "strict"), ("stderr", 2, "backslashreplace")):
        raw = io.FileIO(number, "w", closefd=False)
        encoding = getattr(sys, name).encoding
        stream = io.TextIOWrapper(raw, encoding, errors, line_buffering=raw.isatty(), write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if workers is not None:
        local = importlib.import_module("ssbench.run.run_workers")
        forking = vars(subprocess) | {"Popen": functools.partial(fork_worker, workers)}
        vars(local)["subprocess"] = SimpleNamespace(**forking)


def main() -> int:
    """Import, fork, and in a fork run the program; return its exit code."""
    number, module = int(sys.argv[1]), sys.argv[2]
    from ssbench.cli import own_program  # noqa: PLC0415

    if module == MASTER:
        # The program does so before it imports the others, to be called after what they register.
        own_program.end_without_freeing()
        own_program.end_without_freeing = lambda: None
    program = importlib.import_module(module)
    assert threading.active_count() == 1
    connection = socket.socket(fileno=number)
    if module == SwiftServer.MODULE:
        program.utils.monkey_patch()
    for name in IMPORTED[module]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # forks share what is imported as long as nothing looks through it
    serve(connection, module)
    code: int = program.main()
    return code


if __name__ == "__main__":
    # Not the folder of this file, but the checkout, as python -m has the current folder.
    sys.path[0] = str(Path(__file__).parents[2])
    sys.exit(main())
