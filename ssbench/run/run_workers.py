"""The workers of a run: starting local ones, counting all, and waiting until enough are ready.

Local workers run on the master's own host and end with it. Each holds one end of a pipe as its standard
input; when the master ends, however it ends, the pipe closes, and the worker exits.
"""

from __future__ import annotations

import fcntl
import logging
import math
import os
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ssbench.base import interruption, own_processes
from ssbench.base.errors import UsageError, WorkerError
from ssbench.base.socket_folders import temporary_folder
from ssbench.fleet.fleet import Fleet
from ssbench.fleet.worker_state import WorkerState
from ssbench.run import worker_messages
from ssbench.run.folders import own_folder
from ssbench.run.loop import SAY_SECONDS, TICK_SECONDS, MasterLoop
from ssbench.run.progress import WorkerView
from ssbench.store.stores import SECRET_VARIABLES

if TYPE_CHECKING:
    from ssbench.fleet.roster import Roster

_log = logging.getLogger(__name__)

#: Lines of a dead worker's log that are shown.
_TAIL_LINES = 15

#: Files of one name in the folder of logs; this many runs are not going on at once.
_MAX_LOGS = 1000


def open_private(name: str) -> tuple[int, Path]:
    """Open an empty file of that name for writing: (descriptor, the path it got).

    It is ``/tmp/NAME`` when that is new, or an own plain file that no other run is using. Otherwise it is
    in a folder of this user's own, ``/tmp/ssbench-logs``, with a number in its name while other runs use
    those before it; so files are used again, and runs do not leave more and more of them. A planted link
    or another user's file is left alone. A file counts as used for as long as the descriptor, or a copy
    of it in another process, is open.
    """
    path = temporary_folder() / name
    if (descriptor := _open_unused(path)) is not None:
        return descriptor, path
    folder = own_folder("ssbench-logs")
    for number in range(1, _MAX_LOGS):
        path = folder / f"{Path(name).stem}-{number}{path.suffix}"
        if (descriptor := _open_unused(path)) is not None:
            return descriptor, path
    raise UsageError(f"cannot write a log file in {folder}")


def _open_unused(path: Path) -> int | None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return None
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(descriptor, 0o600)
            os.ftruncate(descriptor, 0)
            return descriptor
    os.close(descriptor)
    return None


@dataclass(slots=True)
class LocalWorker:
    """A worker process that this program has started."""

    worker_id: int
    process: subprocess.Popen[bytes]
    log: Path
    ended: int | None = None  # its exit code, once the user has been informed

    def log_tail(self) -> str:
        """The last lines of its log."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except OSError as error:
            return f"(its log cannot be read: {error})"
        return "\n".join(lines[-_TAIL_LINES:])


class LocalWorkers:
    """``count`` workers, each with ``arguments``; a context manager that ends them."""

    def __init__(self, count: int, arguments: Sequence[str], *, profile: bool = False) -> None:
        self.workers: list[LocalWorker] = []
        self.profiles: list[Path] = []
        self._arguments = arguments
        self._profile = profile
        try:
            for worker_id in range(count):
                self.workers.append(self._start(worker_id))
        except BaseException:
            self.stop()
            raise

    def start_ended(self) -> list[LocalWorker]:
        """Start those again that have ended; returns them. Raises UsageError."""
        started = []
        for place, worker in enumerate(self.workers):
            if worker.process.poll() is not None:
                # Where that fails, the one that has ended is still there to be stopped.
                self.workers[place] = self._start(worker.worker_id)
                started.append(self.workers[place])
                if worker.process.stdin is not None:
                    worker.process.stdin.close()
        return started

    def _start(self, worker_id: int) -> LocalWorker:
        descriptor, log = open_private(f"ssbench-worker-local-{worker_id}.log")
        command = [
            *own_processes.make_python_command("ssbench.cli.worker"),
            "--exit-with-stdin",
            *self._arguments,
        ]
        if self._profile:
            profile_descriptor, profile_path = open_private(f"ssbench-worker-local-{worker_id}.prof")
            os.close(profile_descriptor)
            self.profiles.append(profile_path)
            command += ["--profile-file", str(profile_path)]
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program
                [*command, str(worker_id)],
                stdin=subprocess.PIPE,
                stdout=descriptor,
                stderr=descriptor,
                # Ctrl-C in a terminal is for the master, which ends its workers when it is done.
                process_group=0,
                env=own_processes.make_child_environment(SECRET_VARIABLES),
            )
        except OSError as error:
            raise UsageError(f"cannot start a local worker: {error}") from None
        finally:
            os.close(descriptor)
        return LocalWorker(worker_id, process, log)

    def newly_ended(self) -> list[LocalWorker]:
        """Those that ended since the last call."""
        ended = []
        for worker in self.workers:
            if worker.ended is None and worker.process.poll() is not None:
                worker.ended = worker.process.returncode
                ended.append(worker)
        return ended

    @property
    def running(self) -> int:
        """How many have not ended."""
        return sum(worker.process.poll() is None for worker in self.workers)

    def stop(self, timeout: float = 5.0) -> None:
        """End them all: close their pipes, and kill who is not gone in time; all have the same time."""
        for worker in self.workers:
            if worker.process.stdin is not None:
                with suppress(OSError):  # it has ended
                    # One whose pipe ends without a word takes its master for killed, and cleans up after it.
                    worker.process.stdin.write(b"\n")
                    worker.process.stdin.close()
        deadline = time.monotonic() + timeout
        for worker in self.workers:
            try:
                worker.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()

    def kill(self) -> None:
        """End them at once, without waiting for anything."""
        for worker in self.workers:
            worker.process.kill()

    def __enter__(self) -> LocalWorkers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def note_ended_workers(local: LocalWorkers, roster: Roster) -> int:
    """Log which workers ended since the last call, and tell the roster; returns how many they are."""
    ended = local.newly_ended()
    for worker in ended:
        if worker.ended:
            _log.error(
                "Local worker %d ended with exit code %d; the end of its log %s:\n%s",
                worker.worker_id,
                worker.ended,
                worker.log,
                worker.log_tail(),
            )
        mark_worker_left(worker, roster, f"exit code {worker.ended}")
    return len(ended)


def mark_worker_left(worker: LocalWorker, roster: Roster, reason: str) -> None:
    """Tell the roster that a worker is no longer there."""
    for known in roster.living():
        if known.pid == worker.process.pid and known.worker_id == worker.worker_id:
            roster.leave(known.instance, reason)


#: Seconds in which a worker that waits for a master finds it: it tries each port again after a second at most
#: (0.81 s was the longest of 80), and connecting may take it some time.
FINDING_SECONDS = 1.5
#: As long as others keep coming, they are waited for, up to so many seconds.
_MAX_OFFER_SECONDS = 30.0


def find_waiting_workers(fleet: Fleet, clock: Callable[[], float] = time.monotonic) -> list[WorkerState]:
    """Return the workers that were waiting for a master, once no further one has come in time.

    ``clock`` returns seconds. Raises KeyboardInterrupt.
    """
    began = heard = now = clock()
    known = 0
    while now - heard < FINDING_SECONDS and now - began < _MAX_OFFER_SECONDS:
        interruption.raise_if_interrupted()
        fleet.tick(now)
        fleet.receive(TICK_SECONDS)
        now = clock()
        if len(fleet.roster.workers) > known:
            known, heard = len(fleet.roster.workers), now
    return fleet.roster.living()


# -- Counting workers and waiting for them ---------------------------------------------------------


#: Seconds in which workers that the run before lost, or did not have, may come to a further run of a plan.
_RETURN_SECONDS = 5.0


class RunWorkers:
    """Counts the workers of a run.

    ``former`` are those of the run before, ``local`` those that this program started (None: it started
    none), ``asked`` is how many the user wants. ``clock`` returns seconds.
    """

    def __init__(
        self,
        fleet: Fleet,
        former: Sequence[WorkerState],
        local: LocalWorkers | None,
        asked: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        #: When it was first asked how many to wait for.
        self._waiting_since: float | None = None
        self._fleet = fleet
        self._former = former
        self._local = local
        self._asked = asked
        #: How many local workers have ended.
        self._ended = 0

    def counts(self) -> tuple[int, int]:
        """Return how many workers can get jobs, and how many are expected: asked for, or in use before."""
        roster = self._fleet.roster
        used = sum(worker.presence.used for worker in roster.workers.values())
        return len(roster.living()), max(self._asked, used)

    def views(self) -> list[WorkerView]:
        """Return how busy each worker is that is used, or was."""
        return [
            WorkerView(
                worker.worker_id,
                worker.host,
                worker.presence.ready and not worker.presence.ended,
                worker.load.cpu_share,
                worker.load.lag_percentile(99),
                self._fleet.outstanding(worker),
            )
            for worker in self._fleet.roster.workers.values()
            if worker.presence.used
        ]

    def expected(self) -> int:
        """Return how many workers to wait for: those requested, and live ones of the previous run.

        In a further run of a plan those that were lost before are waited for only for a short time.
        """
        now = self._clock()
        if self._waiting_since is None:
            self._waiting_since = now
        if self._former and now - self._waiting_since >= _RETURN_SECONDS:
            return self._least()
        return max(self._asked - self._ended, self._alive())

    def time_left(self) -> float:
        """Return for how many seconds :meth:`expected` stays above those that are there or on their way."""
        if not self._former or self._waiting_since is None or self._least() >= self.expected():
            return math.inf
        return max(0.0, self._waiting_since + _RETURN_SECONDS - self._clock())

    def _alive(self) -> int:
        return sum(worker.presence.alive for worker in self._former)

    def _least(self) -> int:
        """Return how many a further run of a plan waits for in any case."""
        # Workers that this program restarted are on their way.
        return max(1, self._alive(), self._local.running if self._local is not None else 0)

    def describe_missing(self) -> str | None:
        """Say how many workers a further run of a plan begins without; None where all are there."""
        there, asked = len(self._fleet.roster.living()), self._asked - self._ended
        if not self._former or not self.expected() <= there < asked:
            return None
        return (
            f"Only {there} of {asked} workers were ready, and lost ones did not return within"
            f" {_RETURN_SECONDS:g} s; starting with these"
        )

    def local_processes(self) -> list[int]:
        """Return the processes of the workers that this program has started."""
        return [each.process.pid for each in self._local.workers] if self._local is not None else []

    def look_after_local(self, _now: float) -> None:
        """Note which local workers have ended; raises WorkerError where these were all workers."""
        if self._local is None:
            return
        roster = self._fleet.roster
        self._ended += note_ended_workers(self._local, roster)
        if not self._local.running and not roster.living():
            raise WorkerError("all local workers have ended")


#: The longest time between two ticks while workers join (seconds), however long a tick takes.
_MAX_TICK_SECONDS = 0.5


def wait_for_workers(
    loop: MasterLoop,
    expected: Callable[[], int],
    timeout: float,
    advice: str,
    time_left: Callable[[], float] = lambda: math.inf,
) -> None:
    """Return once ``expected()`` workers are ready, or fewer after ``timeout`` seconds, or when interrupted.

    ``time_left()`` is for how many seconds as many are expected. Says every few seconds what it waits for.
    Raises WorkerError if there is none in the end.
    """
    roster, news = loop.fleet.roster, loop.news
    now = loop.clock()
    deadline = now + timeout
    said_at = now - SAY_SECONDS + 1.0
    tick_at = now
    while True:
        now = loop.clock()
        if now >= tick_at:
            loop.tick(now)
            # One that is heard of is sent a ping at once, but thousands that come together are not all looked
            # at with each message: ticks take about an eleventh of the time. One in which the master was
            # stopped says nothing about the next.
            tick_at = now + min(10 * (loop.clock() - now), _MAX_TICK_SECONDS)
        there = len(roster.living())
        if there >= max(1, expected()) or loop.interrupted.is_set():
            return
        if now >= deadline:
            break
        if now - said_at >= SAY_SECONDS:
            said_at = now
            _log.info(
                "Waiting for workers: %d of %d there, %.0f s left. %s",
                there,
                expected(),
                min(deadline - now, time_left()),
                _why_unused(loop, now) or advice,
            )
        loop.fleet.receive(min(TICK_SECONDS, deadline - now))
    why = _why_unused(loop, now)
    if not there:
        raise WorkerError(f"no worker was ready within {timeout:g} s. {why or advice}")
    news.warn(
        f"Only {there} of {expected()} workers were ready within {timeout:g} s; starting with those."
        f" {why}".rstrip()
    )


def _why_unused(loop: MasterLoop, now: float) -> str:
    """Say why workers that tried to come are not used; empty where none did."""
    reasons = (
        worker_messages.describe_not_ready(loop.fleet.roster.not_ready(now), loop.news.work_port),
        worker_messages.describe_refused_keys(loop.fleet.refused_keys),
    )
    return "; ".join(filter(None, reasons))
