"""The worker: takes jobs from one socket, does them against Swift, puts results into another.

Shape. One process, one thread, gevent. The hub watches the work socket's file descriptor and drains
it without blocking (plain zmq; zmq.green costs twice as much). Each *slot* is a greenlet that does
one job after another; there are at most ``concurrency``, made when first needed. Results go to an
outbox that is sent once a turn of the event loop: nothing waits for a batch to fill, and what
finishes together travels together.

A worker serves one master after another. It drops a run's work when another run's parameters come,
when the connection to the master ends, and when it was itself held up for so long (stopped, starved)
that the master must count it as lost; what piled up meanwhile goes back unbegun. It never ends by
itself, unless it is told to.
"""

from __future__ import annotations

import gc
import logging
import os
import socket as network
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gevent
import gevent.event
import zmq
from gevent import getcurrent
from msgspec.structs import replace

from ssbench import __version__
from ssbench.errors import ExitCode, ProtocolError, WireError
from ssbench.fleet import wire
from ssbench.fleet.sockets import WorkerSockets, has_message
from ssbench.fleet.wire import LAG_BUCKETS, LOST_AFTER, UNASKED_HEARTBEAT_SECONDS, Job, JobBatch, Result
from ssbench.swift.objects import Outcome
from ssbench.worker.connections import Connections
from ssbench.worker.requests import Run, as_result

_log = logging.getLogger(__name__)

#: Seconds between two ticks that measure how late the event loop is.
_TICK = 0.02

#: Most messages that one turn of the event loop takes in, and most results of one message.
_MESSAGES_A_TURN = 200
_RESULTS_A_MESSAGE = 2000

#: A flag of the sockets as a plain number: the enumeration costs as much as the call.
_AT_ONCE = int(zmq.NOBLOCK)

#: A heartbeat that could not be sent although the socket is connected is tried again so soon (seconds).
_HEARTBEAT_RETRY = 0.05


#: A job to be done: its run, the batch it came in, itself, and what it has behind it.
_Work = tuple[Run, int, Job, tuple[int, float] | None]


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker is started with."""

    worker_id: int
    concurrency: int = 64


class Worker:
    """One worker process's state; :meth:`run` serves masters until told to exit.

    ``after_jobs`` is (a number of jobs, what to call once so many have ended).
    """

    def __init__(
        self,
        options: WorkerOptions,
        sockets: WorkerSockets,
        after_jobs: tuple[int, Callable[[], None]] | None = None,
    ) -> None:
        self._options = options
        self._sockets = sockets
        self._instance = sockets.instance
        self._run: Run | None = None
        self._header = b""
        self._queue: deque[_Work] = deque()
        self._idle: list[gevent.Greenlet] = []
        self._slots = 0
        self._busy = 0
        self._held: dict[int, int] = {}
        self._outbox: list[Result] = []
        self._refused_generation = sys.maxsize
        self._flush_due = False
        self._lag = [0] * LAG_BUCKETS
        self._expected_tick = 0.0
        self._done = gevent.event.AsyncResult()
        self._hub = gevent.get_hub()
        self._host = network.gethostname()[:255]
        self._ping = wire.Ping(0, 0.0)
        self._beat_now = gevent.event.Event()
        self._connections = Connections(sockets, self._beat_now.set, self._lose_master)
        self._beat_at = 0.0
        self._after_jobs = after_jobs

    # -- life ---------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Serve until :meth:`stop`, a refusal or an order to exit; returns the exit code."""
        loop = self._hub.loop
        watcher = loop.io(self._sockets.work.getsockopt(zmq.FD), 1)
        watcher.start(self._receive)
        # The descriptor of a socket tells of what comes only after somebody has found it empty.
        loop.run_callback(self._receive)
        self._connections.start()
        self._ticker = loop.timer(_TICK, _TICK)
        heart = gevent.spawn(self._beat)
        # What exists now lives as long as the process: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        try:
            code: ExitCode = self._done.get()
        finally:
            heart.kill()
            self.stop("something went wrong", ExitCode.FAILED)  # unless it has been told to end
            self._flush()
            self._receive()
            self._ticker.stop()
            self._connections.stop()
            watcher.stop()
            watcher.close()
            self._sockets.close()
        return code

    def stop(self, reason: str, code: ExitCode = ExitCode.OK) -> None:
        """End: tell the master, leave what is held."""
        if not self._done.ready():
            _log.info("Exiting: %s", reason)
            self._flush()
            self._send(wire.Goodbye(self._options.worker_id, self._instance, reason))
            self._done.set(code)

    def _send(self, message: wire.FromWorker) -> bool:
        packed = wire.pack(message)
        if len(packed) > wire.MAX_WORKER_MESSAGE_BYTES and isinstance(message, wire.Results):
            middle = len(message.results) // 2
            halves = (message.results[:middle], message.results[middle:])
            return all(self._send(replace(message, results=half)) for half in halves)
        try:
            self._sockets.results.send(packed, _AT_ONCE)
        except zmq.Again:
            return False
        return True

    def _beat(self) -> None:
        while True:
            self._beat_now.clear()
            retry = not self._heartbeat() and self._connections.results.connected
            self._beat_now.wait(_HEARTBEAT_RETRY if retry else UNASKED_HEARTBEAT_SECONDS)

    def _heartbeat(self) -> bool:
        self._notice_silence()
        # A batch that a heartbeat no longer lists must have its results sent before it.
        self._flush()
        lag, self._lag = self._lag, [0] * LAG_BUCKETS
        sent = self._send(
            wire.Heartbeat(
                protocol=wire.PROTOCOL,
                worker_id=self._options.worker_id,
                instance=self._instance,
                run_id=self._run.parameters.run_id if self._run else 0,
                clock=time.monotonic(),
                capacity=self._capacity(),
                held=list(self._held),
                cpu=time.thread_time(),
                lag=lag,
                host=self._host,
                pid=os.getpid(),
                version=__version__,
                master=self._ping.master,
                ping=self._ping.sent,
            )
        )
        if sent:
            self._beat_at = time.monotonic()
        return sent

    def _notice_silence(self) -> None:
        silence = time.monotonic() - self._beat_at
        if self._run is None or silence <= LOST_AFTER:
            return
        _log.warning(
            "No heartbeat could be sent for %.1f s (the worker was held up, or the results port cut off):"
            " the master counts this worker as lost, so it drops its jobs",
            silence,
        )
        self._forget_run()
        while (message := self._next_message()) is not None:
            try:
                if (parts := self._split(message)) is not None:
                    self._hand_back_all(*parts)
            except WireError as error:
                _log.error("Dropped a message: %s", error)

    def _tick(self) -> None:
        now = time.monotonic()
        late = int((now - self._expected_tick) * 1000)
        self._lag[min(late.bit_length(), LAG_BUCKETS - 1) if late > 0 else 0] += 1
        self._expected_tick = now + _TICK

    def _lose_master(self) -> None:
        if self._run is not None:
            _log.info("The connection to the master has ended; waiting for the next one")
        self._forget_run()

    # -- work comes in ------------------------------------------------------------------------

    def _next_message(self) -> bytes | None:
        """The next message, None when there is none."""
        socket = self._sockets.work
        return socket.recv(_AT_ONCE) if has_message(socket) else None

    def _receive(self) -> None:
        self._notice_silence()
        for _ in range(_MESSAGES_A_TURN):
            message = self._next_message()
            if message is None:
                return
            try:
                parts = self._split(message)
                if parts is None:
                    continue
                header, batch = parts
                if header is not self._header:
                    self._take_parameters(header)
                if self._done.ready():
                    self._hand_back_all(header, batch)
                else:
                    self._take_batch(wire.unpack_batch(batch))
            except WireError as error:
                _log.error("Dropped a message: %s", error)
        # The descriptor tells of a change once only; what is left is taken in the next turn, so
        # that a flood does not keep the slots from running.
        if not self._done.ready():
            self._hub.loop.run_callback(self._receive)

    def _split(self, message: bytes) -> tuple[bytes, bytes] | None:
        """What a message of jobs begins with and its packed batch; takes in a notice. Raises WireError."""
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
            self._ping = notice
            self._beat_now.set()
        elif isinstance(notice, wire.Refusal):
            self.stop(f"the master refuses this worker: it {notice.reason}", ExitCode.USAGE)
        else:
            self.stop("the master told this worker to")

    def _take_parameters(self, header: bytes) -> None:
        parameters = wire.unpack_parameters(header)
        if self._run is not None and self._run.parameters.run_id == parameters.run_id:
            self._header = header
            self._run.parameters = parameters
            return
        self._forget_run()
        self._header = header
        self._run = Run(parameters, self._options.concurrency)
        self._expected_tick = time.monotonic() + _TICK
        self._ticker.start(self._tick)
        self._beat_at = time.monotonic()

    def _forget_run(self) -> None:
        run, self._run = self._run, None
        self._header = b""
        self._ticker.stop()
        self._queue.clear()
        # Slots that are still busy with the run end at once when it is closed; what comes meanwhile
        # waits for them. To hand it back would have the master send it again and again.
        self._busy = 0
        self._held.clear()
        self._outbox.clear()
        self._refused_generation = sys.maxsize
        if run is not None:
            run.close()

    def _take_batch(self, batch: JobBatch) -> None:
        run = self._run
        if run is None or not batch.jobs:
            return
        if run.parameters.noop:
            self._noop(batch)
            return
        if batch.batch_id in self._held:
            raise WireError(f"batch {batch.batch_id} came twice")
        room = self._options.concurrency - self._busy - len(self._queue)
        jobs = batch.jobs
        if room < len(jobs):
            room = max(room, 0)
            self._hand_back(run.parameters.run_id, jobs[room:])
            jobs = jobs[:room]
            if not jobs:
                return
        self._held[batch.batch_id] = len(jobs)
        idle = self._idle
        for place, job in enumerate(jobs):
            work = (run, batch.batch_id, job, batch.prior[place] if batch.prior else None)
            if idle:
                # From the hub straight into the slot, which comes back when it first waits.
                idle.pop().switch(work)
                continue
            self._queue.append(work)
            if self._slots < self._options.concurrency:
                self._slots += 1
                gevent.spawn(self._slot)

    def _capacity(self) -> int:
        """How many jobs of this run there is room for: jobs of an earlier run may still be ending."""
        foreign = self._busy + len(self._queue) - sum(self._held.values())
        return self._options.concurrency - foreign

    def _hand_back(self, run_id: int, jobs: Sequence[Job]) -> None:
        job_ids = [job[0] for job in jobs]
        self._send(wire.Handback(run_id, self._options.worker_id, self._instance, self._capacity(), job_ids))

    def _hand_back_all(self, header: bytes, batch: bytes) -> None:
        """Begin none of a message's jobs; raises WireError."""
        run_id = wire.unpack_parameters(header).run_id
        if jobs := wire.unpack_batch(batch).jobs:
            self._hand_back(run_id, jobs)

    def _noop(self, batch: JobBatch) -> None:
        now = time.monotonic()
        self._outbox.extend([Result(job[0], 0.0, 0.0, now) for job in batch.jobs])
        self._flush_soon()

    # -- work is done -------------------------------------------------------------------------

    def _slot(self) -> None:
        queue = self._queue
        while True:
            if queue:
                run, batch_id, job, prior = queue.popleft()
            else:
                self._idle.append(getcurrent())
                run, batch_id, job, prior = self._hub.switch()
            self._busy += 1
            generation = run.parameters.generation
            outcome, storage_url = run.perform(job, prior)
            if run is self._run:
                self._busy -= 1
                if outcome.unauthorized:
                    # The token that was refused is the one the job began with: the master may have got
                    # a new one since.
                    self._refused_generation = min(self._refused_generation, generation)
                self._finish(batch_id, job[0], outcome, storage_url)

    def _finish(self, batch_id: int, job_id: int, outcome: Outcome, storage_url: int) -> None:
        self._outbox.append(as_result(job_id, outcome, storage_url))
        left = self._held[batch_id] - 1
        if left:
            self._held[batch_id] = left
        else:
            del self._held[batch_id]
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._hub.loop.run_callback(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        if not self._outbox or self._run is None:
            return
        results, self._outbox = self._outbox, []
        if self._after_jobs is not None:
            left, callback = self._after_jobs
            self._after_jobs = (left - len(results), callback) if left > len(results) else None
            if self._after_jobs is None:
                callback()
        parameters = self._run.parameters
        generation = min(parameters.generation, self._refused_generation)
        self._refused_generation = sys.maxsize
        for start in range(0, len(results), _RESULTS_A_MESSAGE):
            # A master that is gone takes nothing; its run is forgotten when the connection ends.
            self._send(
                wire.Results(
                    parameters.run_id,
                    self._options.worker_id,
                    self._instance,
                    time.monotonic(),
                    generation,
                    results[start : start + _RESULTS_A_MESSAGE],
                )
            )
