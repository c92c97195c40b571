"""Call a function many times, each time in a process of its own, some at once.

The processes are forks of one that has imported what takes long (``multiprocessing.forkserver``), so each
begins in milliseconds. One that dies or hangs costs only its own result.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any, NamedTuple, cast

#: No module of the program: each process imports it with a change of its own.
IMPORTED = [
    *("pytest", "pytest_cov", "pytest_timeout", "xdist", "hypothesis", "mock"),
    *("gevent", "jinja2", "msgspec", "numpy", "swiftclient", "trustme", "yaml", "zmq"),
]


class Call(NamedTuple):
    """Arguments of the function, which has so many seconds, and a key of the caller."""

    key: Any
    arguments: tuple[Any, ...]
    seconds: float


class Died(NamedTuple):
    """In place of a result: the process died, with its exit code (negative: a signal), or was too slow."""

    code: int | None


class _Running(NamedTuple):
    key: Any
    process: BaseProcess
    until: float


def results(
    function: Callable[..., Any], calls: Iterable[Call], processes: int
) -> Iterator[tuple[Any, Any | Died]]:
    """Yield the key and the result of each call, in the order in which they end."""
    context = get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    left = iter(calls)
    running: dict[Connection, _Running] = {}
    try:
        while True:
            while len(running) < processes and (call := next(left, None)):
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_run, args=(theirs, function, call.arguments))
                process.start()
                theirs.close()
                running[ours] = _Running(call.key, process, monotonic() + call.seconds)
            if not running:
                return
            for connection in _ended(running):
                each = running.pop(connection)
                yield each.key, _result(connection, each)
    finally:
        for connection, each in running.items():
            _end(connection, each)


def _run(connection: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    connection.send(function(*arguments))
    os.killpg(0, signal.SIGKILL)  # what it has started too, and no waiting for its threads


def _ended(running: dict[Connection, _Running]) -> list[Connection]:
    """Wait until some have ended or have no time left."""
    while True:
        now = monotonic()
        most = max(0.0, min(each.until for each in running.values()) - now)
        ready = cast("list[Connection]", wait(running, most))
        if ended := ready or [each for each, its in running.items() if its.until <= monotonic()]:
            return ended


def _result(connection: Connection, running: _Running) -> Any | Died:
    try:
        return connection.recv() if connection.poll() else Died(None)
    except EOFError:
        running.process.join()
        return Died(running.process.exitcode)
    finally:
        _end(connection, running)


def _end(connection: Connection, running: _Running) -> None:
    with contextlib.suppress(ProcessLookupError):
        assert running.process.pid is not None
        os.killpg(running.process.pid, signal.SIGKILL)
    running.process.kill()
    running.process.join()
    connection.close()
