"""Commands that are run at moments of a benchmark, such as what makes a disk fail.

Each is a shell in a session of its own, and has two threads: the one waits for its moment and for its end,
the other reads what it says. Nothing of the run waits for them. At the end of the run all that is left of
them is killed.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from ssbench.document.units import format_moment
from ssbench.results.run_description import EventFacts
from ssbench.scenario.value_rules import TimedCommand

_log = logging.getLogger(__name__)

#: Bytes of what a command says that are kept.
_MAX_KEPT_BYTES = 4096

#: Seconds that a command gets at the end of the run between SIGTERM and SIGKILL.
_LAST_SECONDS = 1.0


class RunEvents:
    """The commands of a run, which have their moments from :meth:`begin` on."""

    def __init__(self, commands: Sequence[TimedCommand]) -> None:
        self._running = [_RunningCommand(each) for each in commands]

    def begin(self, start: float, epoch: float) -> None:
        """Let the benchmark begin at ``start`` of the monotonic clock; ``epoch`` makes seconds since 1970."""
        for each in self._running:
            each.begin(start, epoch)

    def end(self) -> tuple[EventFacts, ...]:
        """Kill what is left of them, and return how they went. This may wait for a second."""
        for each in self._running:
            each.ask_to_end()
        until = time.monotonic() + _LAST_SECONDS
        for each in self._running:
            each.exited.wait(max(0.0, until - time.monotonic()))
        return tuple(each.kill() for each in self._running)


class _RunningCommand:
    """A command, before it is started, while it runs and after that."""

    def __init__(self, command: TimedCommand) -> None:
        self.exited = threading.Event()
        self._command = command
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._epoch = 0.0
        self._began: float | None = None
        self._ended: float | None = None
        self._exit_code: int | None = None
        self._failure = ""
        self._output = bytearray()
        self._is_cut = False

    def begin(self, start: float, epoch: float) -> None:
        self._epoch = epoch
        name = f"command at {self._command.at:g} s"
        threading.Thread(target=self._carry_out, args=(start,), name=name, daemon=True).start()

    def _carry_out(self, start: float) -> None:
        if self._over.wait(max(0.0, start + self._command.at - time.monotonic())):
            self.exited.set()
            return
        with self._lock:
            if not self._over.is_set():
                self._start()
        process = self._process
        if process is None:
            self.exited.set()
            return
        # It is not reaped before the end of the run, so that no other process group gets its number.
        found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self._ended = time.monotonic() + self._epoch
        if found is not None and not self._over.is_set():
            killed = found.si_code != os.CLD_EXITED
            self._exit_code = -found.si_status if killed else found.si_status
            _log.info(
                "The command at %s s ended after %s s with exit code %d: %s",
                format_moment(self._command.at),
                format_moment(self._ended - (self._began or self._ended)),
                self._exit_code,
                self._command.command,
            )
        self.exited.set()

    def _start(self) -> None:
        self._began = time.monotonic() + self._epoch
        _log.info("At %s s: %s", format_moment(self._command.at), self._command.command)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - what the user asked for
                ["/bin/sh", "-c", self._command.command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._failure = str(error)
            return
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        """Keep the first part of what it says, and read on, so that it is not held up."""
        if (stream := process.stdout) is None:
            return
        with stream:
            while said := os.read(stream.fileno(), 65536):
                room = _MAX_KEPT_BYTES - len(self._output)
                self._is_cut |= len(said) > room
                self._output += said[: max(room, 0)]

    def ask_to_end(self) -> None:
        with self._lock:
            self._over.set()
        if self._process is None:
            self.exited.set()
        else:
            self._signal(signal.SIGTERM)

    def kill(self) -> EventFacts:
        process = self._process
        if process is not None:
            self._signal(signal.SIGKILL)
            if self.exited.wait(_LAST_SECONDS):  # nothing ends one that waits for a device
                process.wait()
            if self._reader is not None:  # what left its session may hold the pipe
                self._reader.join(_LAST_SECONDS)
        return EventFacts(
            at=self._command.at,
            command=self._command.command,
            began=self._began,
            ended=self._ended if self._exit_code is not None else None,
            exit_code=self._exit_code,
            output=self._output.decode("utf-8", "replace"),
            is_cut=self._is_cut,
            failure=self._failure,
        )

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


def describe_failed_events(events: Sequence[EventFacts]) -> list[str]:
    """Return sentences on commands that did not do what they should have."""
    found = []
    for each in events:
        name = f"The command at {format_moment(each.at)} s ({each.command[:80]})"
        if each.failure:
            found.append(f"{name} could not be started: {each.failure}")
        elif each.began is None:
            found.append(f"{name} was not run: the benchmark ended before")
        elif each.exit_code is None:
            found.append(f"{name} had not ended when the benchmark did, and was killed")
        elif each.exit_code:
            said = each.output.strip().splitlines()
            found.append(
                f"{name} ended with exit code {each.exit_code}{f': {said[-1][:200]}' if said else ''}"
            )
    return found
