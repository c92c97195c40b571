"""The worker: receives jobs on one socket, sends results on another, and heartbeats.

One process, one thread, gevent. The hub watches the file descriptor of the work socket and reads it without
blocking (plain zmq; zmq.green costs twice as much). Jobs go to the engine of the run
(:mod:`ssbench.worker.engine`); this module knows no requests. It has more jobs than users, so that none of
them waits for the master. Results go to an outbox (:mod:`ssbench.worker.group_service`).

A worker serves one master after another, and ends only on request, or after as many runs as it was told to
serve. It drops the jobs of a run when the parameters of another run arrive, when the connection to the master
ends, and when a ping says that the master has counted it as lost. Where it was itself stopped or starved for
so long that this may be so, it hands back what has not begun: the rest may still be its own, because the
master stalled as well.
"""

from __future__ import annotations

import gc
import logging
import os
import socket as network
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import gevent
import gevent.event
import zmq
from msgspec.structs import replace

from ssbench.base.errors import ExitCode, ProtocolError, UsageError, WireError
from ssbench.base.host import read_host_counters as read_host
from ssbench.base.version import __version__
from ssbench.fleet import wire
from ssbench.fleet.prefetch import MAX_PREFETCHED
from ssbench.fleet.sockets import WorkerSockets, has_message
from ssbench.fleet.wire import LOST_AFTER, UNASKED_HEARTBEAT_SECONDS, JobBatch
from ssbench.worker.engine import Engine, MakeEngine
from ssbench.worker.group_service import GroupService, GroupServices, JobHandbacks, ResultOutbox
from ssbench.worker.lag_meter import LagMeter
from ssbench.worker.master_connections import FloodGuard, MasterConnections

#: Variables in which an engine numbers the processes that it starts with one command, and what each is.
_LAUNCHER_VARIABLES = (("SLURM_PROCID", "task"), ("JOB_COMPLETION_INDEX", "index"))

_MAX_LABEL_CHARACTERS = 64


def launcher_label(environment: Mapping[str, str]) -> str:
    """Return what an engine calls this process, such as ``task 3``; empty where none started it."""
    for variable, what in _LAUNCHER_VARIABLES:
        if number := environment.get(variable):
            return f"{what} {number}"[:_MAX_LABEL_CHARACTERS]
    return ""


class ServedRuns:
    """Counts the runs that a worker has served. ``most``: after how many it is to exit, None: never.

    A master may do several runs (``--repeat``, a sweep); for its workers they are one, which is over when it
    is gone.

    A run is over when another master comes, or when its connection has ended and its master has not been
    heard of for :data:`~ssbench.fleet.wire.LOST_AFTER` seconds. Times are of a monotonic clock.
    """

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.served = 0
        #: The master that it has had jobs of, 0 without; when the connection to it ended.
        self._master = 0
        self._ended: float | None = None

    def works_for(self, master: int) -> None:
        """Take note of jobs of a master."""
        self._master, self._ended = master, None

    def connection_ends(self, now: float) -> None:
        """Take note that the connection to the master has ended."""
        if self._master and self._ended is None:
            self._ended = now

    def hears(self, master: int) -> None:
        """Take note of a ping of a master."""
        if master == self._master:
            self._ended = None
        elif self._master:
            self._over()

    def tick(self, now: float) -> None:
        """Find that a run is over; call it every few seconds."""
        if self._ended is not None and now - self._ended > LOST_AFTER:
            self._over()

    def _over(self) -> None:
        self.served += 1
        self._master, self._ended = 0, None

    @property
    def enough(self) -> bool:
        """Whether the worker is to exit."""
        return self.most is not None and self.served >= self.most


# -- The worker ------------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: Seconds without a sign that the master has heard of this worker after which it begins no jobs: a little
#: before the master counts it as lost. It looks after that so often (seconds).
_SURE_SECONDS = LOST_AFTER - 0.5
_CHECK_SECONDS = 0.2

#: Most messages that one turn of the event loop receives.
_MESSAGES_A_TURN = 200

#: A flag of the sockets as a plain number: the enumeration costs as much as the call.
_NO_WAIT = int(zmq.NOBLOCK)

#: Jobs that a master sends before it hears that a worker can do none arrive within this time (seconds).
_LAST_JOBS_SECONDS = 0.25

#: A heartbeat that could not be sent although the socket is connected is tried again so soon (seconds).
_HEARTBEAT_RETRY = 0.05


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker is started with."""

    worker_id: int
    concurrency: int = 64  # jobs that it carries out at once
    idle_exit: float | None = None  # exit after so many seconds without a job; None: never
    runs: int | None = None  # exit after so many runs; None: never
    label: str = ""  # what an engine calls it
    site: str = ""  # where it is


class Worker:
    """The state of a worker process; :meth:`run` serves masters until it is asked to end.

    ``make_engine`` makes the engine of each run. ``after_jobs`` is (a number of jobs, what to call when
    this many have ended).
    """

    def __init__(
        self,
        options: WorkerOptions,
        sockets: WorkerSockets,
        make_engine: MakeEngine,
        after_jobs: tuple[int, Callable[[], None]] | None = None,
    ) -> None:
        self._options = options
        self._sockets = sockets
        self._instance = sockets.instance
        #: Why it does no jobs of this master; empty where it does.
        self._refusal = ""
        #: What the last message with jobs began with; nothing between two runs.
        self._header = b""
        self._done = gevent.event.AsyncResult()
        self._hub = gevent.get_hub()
        self._lag = LagMeter(self._hub.loop)
        self._after_jobs = after_jobs
        self._services = GroupServices(self._make_outbox, make_engine, options.concurrency)
        #: What sends messages that hold no results.
        self._outbox = self._make_outbox(0)
        self._handbacks = JobHandbacks(
            self._services, self._outbox, options.worker_id, self._instance, options.concurrency
        )
        self._host = network.gethostname()[:255]
        self._ping = wire.Ping(0, 0.0)
        #: What the master last heard of this worker's clock, as far as is known here.
        self._heard: float | None = None
        self._in_touch = self._hub.loop.timer(_CHECK_SECONDS, _CHECK_SECONDS)
        self._beat_now = gevent.event.Event()
        self._connections = MasterConnections(sockets, self._beat_now.set, self._lose_master)
        self._flood = FloodGuard(self._connections.received_for_work, self._connections.leave_work)
        self._beat_at = 0.0
        #: Whether it was said that no heartbeat could be sent.
        self._silent = False
        self._worked_at = time.monotonic()
        self._runs = ServedRuns(options.runs)

    def _make_outbox(self, group: int) -> ResultOutbox:
        options, loop = self._options, self._hub.loop
        after_jobs = None if group else self._after_jobs
        return ResultOutbox(
            self._sockets.results, options.worker_id, self._instance, loop, self._lag, after_jobs, group
        )

    # -- life ---------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Serve until :meth:`stop`, a refusal or an order to exit; return the exit code."""
        loop = self._hub.loop
        watcher = loop.io(self._sockets.work.getsockopt(zmq.FD), 1)
        watcher.start(self._receive)
        # The descriptor of a socket signals only messages that come after it was found empty.
        loop.run_callback(self._receive)
        self._connections.start()
        heart = gevent.spawn(self._beat)
        # What exists now lives as long as the process: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        try:
            code: ExitCode = self._done.get()
        finally:
            heart.kill()
            self.stop("something went wrong", ExitCode.FAILED)  # unless it has been asked to end
            self._services.flush()
            self._receive()
            self._forget_run()
            self._connections.stop()
            self._services.close()
            self._outbox.close()
            self._in_touch.close()
            watcher.stop()
            watcher.close()
            self._sockets.close()
        return code

    def stop(self, reason: str, code: ExitCode = ExitCode.OK) -> None:
        """End: hand back jobs that have not begun, and tell the master. The others are lost."""
        if not self._done.ready():
            _log.info("Exiting: %s", reason)
            self._handbacks.not_begun(asked=False)
            self._outbox.send(wire.Goodbye(self._options.worker_id, self._instance, reason))
            self._done.set(code)

    def _beat(self) -> None:
        while True:
            self._exit_if_idle()
            self._exit_after_runs()
            self._beat_now.clear()
            retry = not self._heartbeat() and self._connections.results.connected
            seconds = _HEARTBEAT_RETRY if retry else UNASKED_HEARTBEAT_SECONDS
            # A master that sends jobs hears of this worker by their results.
            while not self._beat_now.wait(seconds) and not retry:
                seconds = self._worked_at + UNASKED_HEARTBEAT_SECONDS - time.monotonic()
                if seconds <= 0:
                    break

    def _exit_if_idle(self) -> None:
        limit, now = self._options.idle_exit, time.monotonic()
        if self._services.unfinished:
            self._worked_at = now
        elif limit is not None and now - self._worked_at >= limit:
            self.stop(f"there was no work for {limit:g} s (--idle-exit)")

    def _exit_after_runs(self) -> None:
        runs = self._runs
        runs.tick(time.monotonic())
        if runs.enough:
            self.stop(f"it has served {runs.served} run{'' if runs.served == 1 else 's'} (--runs)")

    def _heartbeat(self) -> bool:
        self._notice_silence()
        # A batch that a heartbeat no longer lists must have its results sent before it.
        self._services.flush()
        taken = self._lag.take()
        lag, lag_max, gaps = taken
        sent = self._outbox.send(
            wire.Heartbeat(
                protocol=wire.PROTOCOL,
                worker_id=self._options.worker_id,
                instance=self._instance,
                run_id=self._services.run_id,
                clock=time.monotonic(),
                capacity=self._handbacks.capacity,
                held=self._services.held(),
                cpu=time.thread_time(),
                lag=lag,
                host=self._host,
                pid=os.getpid(),
                version=__version__,
                master=self._ping.master,
                ping=self._ping.sent,
                lag_max=lag_max,
                gaps=gaps,
                wall=time.time(),
                label=self._options.label,
                site=self._options.site,
                machine=read_host(),
            )
        )
        if sent:
            self._beat_at, self._silent = time.monotonic(), False
        else:
            self._lag.put_back(taken)
        return sent

    def _notice_silence(self) -> None:
        silence = time.monotonic() - max(self._beat_at, self._services.sent_at)
        if self._silent or not self._services.run_id or silence <= LOST_AFTER:
            return
        self._silent = True
        _log.warning(
            "No heartbeat could be sent for %.1f s (the worker was delayed, or the results port cut off):"
            " the master may count this worker as lost, so jobs that have not begun are handed back",
            silence,
        )
        self._handbacks.not_begun(asked=False)

    def _is_out_of_touch(self) -> bool:
        """Whether the master may count this worker as lost soon, or may have done so."""
        return self._heard is not None and time.monotonic() - self._heard > _SURE_SECONDS

    def _hear(self, heard: float | None) -> None:
        if heard is not None:
            self._heard = heard if self._heard is None else max(heard, self._heard)
            for engine in self._services.engines:
                engine.trust_until(self._heard + _SURE_SECONDS)

    def _check_touch(self) -> None:
        if self._services.waiting and self._is_out_of_touch():
            _log.warning(
                "The master may not have heard of this worker for %.1f s and may give its jobs to others:"
                " those that have not begun are handed back",
                _SURE_SECONDS,
            )
            self._handbacks.not_begun(asked=False)

    def _lose_master(self) -> None:
        if self._services.run_id:
            _log.info("The connection to the master has ended; waiting for the next one")
        self._runs.connection_ends(time.monotonic())
        self._forget_run()

    # -- work comes in ------------------------------------------------------------------------

    def _next_message(self) -> bytes | None:
        """Return the next message, None if there is none."""
        socket = self._sockets.work
        return socket.recv(_NO_WAIT) if has_message(socket) else None

    def _receive(self) -> None:
        self._notice_silence()
        for _ in range(_MESSAGES_A_TURN):
            message = self._next_message()
            if message is None:
                self._flood.ends()
                return
            self._flood.take(message)
            try:
                parts = self._split(message)
                if parts is None:
                    continue
                header, batch = parts
                try:
                    service = self._services.of(header) or self._take_parameters(header)
                except UsageError as error:
                    self._refuse(str(error))
                    service = None
                self._header = header
                if service is None or self._done.ready():
                    self._handbacks.message(header, batch)
                else:
                    self._take_batch(wire.unpack_batch(batch), service)
            except WireError as error:
                self._flood.drop(error)
        self._flood.look()
        # The descriptor signals a change only once; the other messages are taken in the next turn, so
        # that a flood does not keep the engine from running.
        if not self._done.ready():
            self._hub.loop.run_callback(self._receive)

    def _split(self, message: bytes) -> tuple[bytes, bytes] | None:
        """Return the header of a message of jobs and its packed batch; None for a notice, which it handles.

        Raises WireError.
        """
        if self._header and message.startswith(self._header):
            return self._header, message[len(self._header) :]
        notice = wire.unpack_notice(message)
        if notice is not None:
            self._take_notice(notice)
            return None
        try:
            return wire.split_work(message)
        except ProtocolError as error:
            self.stop(
                f"the master speaks protocol {error.protocol}, this worker {wire.PROTOCOL}"
                f" (ssbench {__version__}): install the same version on both",
                ExitCode.USAGE,
            )
            raise

    def _take_notice(self, notice: wire.Notice) -> None:
        if isinstance(notice, wire.Ping):
            if notice.master == self._ping.master and notice.lost > self._ping.lost and self._services.run_id:
                _log.warning("The master has counted this worker as lost, so it drops its jobs")
                self._forget_run()
            self._ping = notice
            self._runs.hears(notice.master)
            self._hear(notice.heard)
            self._beat_now.set()
        elif isinstance(notice, wire.Share):
            if (engine := self._engine_of(notice)) is not None:
                engine.share(notice.users)
        elif isinstance(notice, wire.Recall):
            if self._engine_of(notice) is not None:
                self._handbacks.not_begun(asked=True, group=notice.group)
        elif isinstance(notice, wire.Refusal):
            self.stop(f"the master refuses this worker: it {notice.reason}", ExitCode.USAGE)
        else:
            self.stop("the master told this worker to")

    def _engine_of(self, notice: wire.Share | wire.Recall) -> Engine | None:
        """Return the engine of the group that a notice is about; None where there is none."""
        service = self._services.in_group(notice.group) if notice.run_id == self._services.run_id else None
        return service.engine if service is not None else None

    def _refuse(self, reason: str) -> None:
        """End soon: jobs that are on their way are handed back before, and no more are asked for."""
        if not self._refusal:
            self._refusal = reason
            self._handbacks.capacity = 0
            gevent.spawn_later(_LAST_JOBS_SECONDS, self._stop_refused)

    def _stop_refused(self) -> None:
        # On a busy machine they may have arrived only now, and would be lost after the goodbye.
        self._receive()
        self.stop(self._refusal, ExitCode.USAGE)

    def _take_parameters(self, header: bytes) -> GroupService | None:
        """Begin to serve a run, or a group of it; None where a message refers to what is not known here.

        Raises UsageError where this host lacks what the run needs.
        """
        if self._refusal:
            raise UsageError(self._refusal)
        if wire.unpack_reference(header) is not None:
            return None
        parameters = wire.unpack_parameters(header)
        if self._services.run_id != parameters.run_id:
            self._forget_run()
            self._in_touch.start(self._check_touch)
            self._lag.start()
            self._beat_at = time.monotonic()
        return self._services.begin(header, parameters)

    def _forget_run(self) -> None:
        self._header = b""
        self._heard = None
        self._in_touch.stop()
        self._lag.stop()
        self._services.forget_run()

    def _take_batch(self, batch: JobBatch, service: GroupService) -> None:
        engine, jobs = service.engine, batch.jobs
        if engine is None or not jobs:
            return
        if batch.batch_id in service.outbox.held:
            raise WireError(f"batch {batch.batch_id} came twice")
        self._hear(batch.heard)
        if self._is_out_of_touch():
            # It was delayed on its way, and others may have these jobs by now.
            self._handbacks.jobs(jobs, service)
            return
        room = self._options.concurrency + MAX_PREFETCHED - engine.busy - engine.waiting
        if room < len(jobs):
            room = max(room, 0)
            self._handbacks.jobs(jobs[room:], service)
            if not room:
                return
            cut = {name: getattr(batch, name)[:room] for name in ("histories", "dues", "paths", "versions")}
            batch = replace(batch, jobs=jobs[:room], **cut)
        self._worked_at = time.monotonic()
        self._runs.works_for(self._ping.master)
        service.outbox.expect(batch)
        engine.submit(batch)
