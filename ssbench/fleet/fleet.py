"""The master's side of the fleet: its sockets, who is there, which jobs are where.

It sends batches of tasks and takes in results. It knows no phase and no token, and says nothing: what
happens it reports as :mod:`ssbench.fleet.events`.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Sequence

import msgspec
import zmq

from ssbench.errors import ProtocolError, WireError
from ssbench.fleet import packing, wire
from ssbench.fleet.dispatch import Dispatcher
from ssbench.fleet.events import Event, InvalidMessage, Scarce
from ssbench.fleet.history import History, spent
from ssbench.fleet.plausible import Bounds
from ssbench.fleet.sockets import MasterSockets, has_message
from ssbench.fleet.wire import Result, RunParameters, Spent
from ssbench.fleet.worker_state import Batch, Task, WorkerState
from ssbench.results import INVALID
from ssbench.swift.timing import longest_job

#: Refused workers are told so at this interval (seconds) until they are silent; this many at once.
_TELL_SECONDS = 1.0
_MOST_REFUSED = 32

#: About the most messages, and results, that are taken in before more work is sent: workers wait for it.
_MESSAGES_A_TURN = 256
_RESULTS_A_TURN = 1024

#: The first few invalid messages are reported; all are counted.
_REPORTED_MESSAGES = 3

#: That descriptors are scarce is reported again after this many seconds.
_SCARCE_SECONDS = 60.0

#: Flags of the sockets as plain numbers: to put two of zmq's together costs as much as the send.
_AT_ONCE = int(zmq.NOBLOCK)
_AT_ONCE_AND_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)

#: What is special about a job that failed or was sent again: its place among those that ended, when it
#: was sent, its history.
Special = tuple[int, float, History | None]


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """Results that came in one message, of jobs that were in flight with its sender.

    ``at`` is when it came (the master's monotonic clock), ``generation`` that of the parameters under
    which the jobs began. ``special`` names those of ``ended`` that failed or were sent again.
    """

    worker: WorkerState
    at: float
    generation: int
    ended: list[tuple[Task, Result]]
    special: list[Special]


class Fleet:
    """The workers of a master, over its two sockets, for one run after another.

    Each run starts with :meth:`begin`. ``parameters`` are those of the run. ``clock`` returns seconds, as
    time.monotonic does.
    """

    def __init__(self, sockets: MasterSockets, clock: Callable[[], float] = time.monotonic) -> None:
        self.dispatcher = Dispatcher()
        self.roster = self.dispatcher.roster
        self.allocation = self.dispatcher.allocation
        self.ledger = self.dispatcher.ledger
        self.parameters = RunParameters(run_id=0)
        #: Messages of this run that could not be decoded.
        self.invalid_messages = 0
        self._sockets = sockets
        self._clock = clock
        self._header = b""
        #: The first due time of the run, from which those that workers get count.
        self._start: float | None = None
        self._bounds = Bounds((), 0)
        self._receive_timeout = -1.0
        self._told_at = self._told_scarce_at = -math.inf

    @property
    def ports(self) -> tuple[int, int]:
        """The ports of the two sockets, for work and for results."""
        return self._sockets.ports

    # -- parameters ---------------------------------------------------------------------------

    def begin(self, parameters: RunParameters, largest_objects: Sequence[int]) -> list[WorkerState]:
        """Begin a run; no job may be in flight.

        ``parameters.run_id`` must differ from that of every earlier run; ``largest_objects`` holds the bytes
        of the largest object of each size class. What is counted begins at 0, and every worker has to answer
        a ping again before it is used. Returns those that were ready before.
        """
        self.parameters = parameters
        self.invalid_messages = 0
        self._start = None
        self._header = packing.pack_parameters(parameters)
        retries = parameters.requests.retries + parameters.requests.retry_404
        self._bounds = Bounds(tuple(largest_objects), retries)
        self._set_longest_job()
        return self.dispatcher.begin(0, self._clock())

    def change(self, **changes: object) -> None:
        """Change parameters in the middle of the run; workers see it with their next batch."""
        self.parameters = msgspec.structs.replace(
            self.parameters, generation=self.parameters.generation + 1, **changes
        )
        self._header = packing.pack_parameters(self.parameters)
        self._set_longest_job()

    def _set_longest_job(self) -> None:
        parameters = self.parameters
        longest = longest_job(
            parameters.requests.connect_timeout,
            parameters.requests.network_timeout,
            parameters.requests.request_timeout,
            self._bounds.retries,
            max(self._bounds.largest, default=0),
        )
        # Between two jobs a user thinks, and the next one has not begun meanwhile.
        self.ledger.longest_job = longest + parameters.think_time

    def forget_jobs(self, **changes: object) -> None:
        """Begin a new run with changed parameters: workers drop their jobs and close their connections."""
        self.change(run_id=secrets.randbits(62) + 1, **changes)

    # -- work ---------------------------------------------------------------------------------

    def send(
        self,
        worker: WorkerState,
        tasks: Sequence[Task],
        now: float,
        histories: Sequence[History | None] = (),
        dues: Sequence[float] = (),
    ) -> bool:
        """Send a batch of tasks to a worker.

        Returns False if its connection is not there at this moment; the tasks are in the backlog then.
        ``histories`` holds one for each task, if any of them has one. ``dues`` are when new tasks are due, by
        the master's clock; those of others are in their histories.
        """
        dispatcher = self.dispatcher
        moments: Sequence[float | None] = dues
        again: list[Spent] = []
        if histories:
            again = [spent(each, worker.clock.offset.seconds) for each in histories]
            moments = [None if each is None else each.due for each in histories]
        start, seconds = self._to_worker(worker, moments)
        first, jobs = dispatcher.send(tasks, now, worker, histories, moments if seconds else ())
        batch = wire.JobBatch(
            first,
            jobs,
            again,
            worker.allowance.share,
            worker.allowance.ahead.low,
            start,
            seconds,
            worker.presence.heard,
        )
        if self._send_message(worker, self._header + packing.pack(batch)):
            return True
        dispatcher.unsend(first)
        return False

    def _to_worker(
        self, worker: WorkerState, moments: Sequence[float | None]
    ) -> tuple[float, list[float | None]]:
        """Return due times as a worker takes them: a moment of its clock, and seconds after that."""
        first = next((moment for moment in moments if moment is not None), None)
        if first is None:
            return 0.0, []
        if self._start is None:
            self._start = first
        start = self._start
        return worker.clock.start_of(start), [
            None if moment is None else max(0.0, moment - start) for moment in moments
        ]

    def tell_shares(self) -> None:
        """Tell workers with jobs how many they may run at once, where that has changed.

        One that may run none is asked for those that have not begun: with it they never would.
        """
        for worker in self.roster.living():
            if worker.allowance.share != worker.held.users_told and worker.held.outstanding:
                notice = packing.pack_notice(wire.Share(self.parameters.run_id, worker.allowance.share))
                if self._send_message(worker, notice):
                    worker.held.users_told = worker.allowance.share
            if not worker.allowance.share and not worker.held.users_told:
                self._recall(worker)

    def let_hold(self, in_hand: int | None) -> None:
        """Limit the jobs of all workers together, those ahead included; None: as many as each needs.

        Where jobs are due at moments of their own from now on, those that users were to begin next would
        delay them: workers are asked for these.
        """
        if in_hand is not None and self.allocation.in_hand is None:
            self.recall()
            self.allocation.keeps_ahead = True
        self.allocation.in_hand = in_hand

    def recall(self) -> None:
        """Ask all workers for the jobs that have not begun, and send no more than can begin at once.

        Call it again some times a second: a worker that is not connected at the moment is asked later.
        What they hand back comes into the backlog.
        """
        self.allocation.keeps_ahead = False
        for worker in self.roster.living():
            self._recall(worker)

    def _recall(self, worker: WorkerState) -> None:
        if worker.held.outstanding and not worker.held.recalled:
            notice = packing.pack_notice(wire.Recall(self.parameters.run_id))
            worker.held.recalled = self._send_message(worker, notice)

    def _send_message(self, worker: WorkerState, message: bytes) -> bool:
        try:
            send = self._sockets.work.send
            send(worker.address, _AT_ONCE_AND_MORE)
            send(message, _AT_ONCE)
        except zmq.ZMQError as error:
            if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                return False  # it is not connected at this moment
            raise
        return True

    # -- what comes in ------------------------------------------------------------------------

    def receive(self, timeout: float) -> list[Arrival]:
        """Wait up to ``timeout`` seconds for a message; take in what is there, and return the results."""
        results = self._sockets.results
        if timeout != self._receive_timeout:
            # A receive that waits by itself is one call less than a poll before it: 15 % of the
            # loop at 3 batches of 8 in flight.
            self._receive_timeout = timeout
            results.setsockopt(zmq.RCVTIMEO, math.ceil(timeout * 1000))
        arrivals: list[Arrival] = []
        ended = 0
        for place in range(_MESSAGES_A_TURN):
            if place and (ended >= _RESULTS_A_TURN or not has_message(results)):
                break
            try:
                frame = results.recv(_AT_ONCE if place else 0)
            except zmq.Again:
                break
            try:
                message = packing.unpack_from_worker(frame)
            except WireError as error:
                self._drop(error)
                continue
            if type(message) is not wire.Results:
                self._take_news(message, self._clock())
                continue
            ended += len(message.results)
            worker = self.roster.known(message.instance)
            if message.run_id != self.parameters.run_id or worker is None:
                self.ledger.late_results += len(message.results)
                continue
            now = self._clock()
            worker.clock.offset.observe(message.clock, now)
            arrival = self._settle(message, worker, now)
            if arrival is not None:
                arrivals.append(arrival)
        return arrivals

    def _settle(self, message: wire.Results, worker: WorkerState, now: float) -> Arrival | None:
        dispatcher, to_master = self.dispatcher, worker.clock.offset.seconds
        earliest, latest = now - to_master - 1.0, now - to_master + 1.0
        take, largest = self.ledger.in_flight.pop, self._bounds.largest
        tasks: Sequence[Task] = ()
        histories: Sequence[History | None] = ()
        ended: list[tuple[Task, Result]] = []
        special: list[Special] = []
        # Results of one batch come together, nearly always: they are counted together.
        last_batch: Batch | None = None
        count, first, age = 0, 0, 0.0
        # A job of this batch has ended, so those before it have begun, whatever the worker says.
        begun = message.begun
        for result in message.results:
            job_id = result.job_id
            batch = take(job_id, None)
            if batch is not last_batch or batch is None:
                if batch is None or batch.worker is not worker:
                    self.ledger.put_back(job_id, batch, worker)
                    continue
                if last_batch is not None:
                    self.ledger.settled(last_batch, count)
                last_batch, count, age = batch, 0, now - batch.sent_at
                first, tasks, histories = batch.first, batch.tasks, batch.histories
                begun = max(begun, first)
            count += 1
            task = tasks[job_id - first]
            last = result.last_byte
            # Nearly all are plainly possible. To call a function for each would cost half of this loop.
            if (
                last is None
                or (result.first_byte or 0.0) > last
                or last > age
                or not earliest < result.completed < latest
                or result.retries
                or result.retried
                or result.rare is not None
                or result.cause is not None
                or result.late is not None
                or histories
                or (result.size and result.size != task[4] and (task[4] or result.size > largest[task[1]]))
            ):
                history = batch.history(job_id)
                if (wrong := self._bounds.fault(batch, result, to_master, now)) is not None:
                    self.ledger.note_invalid(worker, wrong)
                    result = _invalid(result, wrong, now - to_master)  # noqa: PLW2901 - what is kept of it
                if result.cause is not None or history is not None:
                    special.append((len(ended), batch.sent_at, history))
            ended.append((task, result))
        if last_batch is not None:
            self.ledger.settled(last_batch, count)
        # More jobs ahead would make messages wait for a busy master only for longer.
        waited = now - message.clock - to_master
        dispatcher.note_progress(worker, len(ended), begun, (message.received, message.held + waited), now)
        return Arrival(worker, now, message.generation, ended, special) if ended else None

    def _take_news(self, message: wire.FromWorker, now: float) -> None:
        dispatcher = self.dispatcher
        if isinstance(message, wire.Heartbeat):
            dispatcher.heartbeat(message, self.parameters.run_id, now, time.time())
        elif isinstance(message, wire.Goodbye):
            self.roster.leave(message.instance, message.reason)
        elif isinstance(message, wire.Handback):
            worker = self.roster.known(message.instance)
            if worker is not None and message.run_id == self.parameters.run_id:
                dispatcher.hand_back(message.job_ids, worker, message.capacity, asked=message.asked)

    def _drop(self, error: WireError) -> None:
        few = len(self.roster.refused()) < _MOST_REFUSED
        if isinstance(error, ProtocolError) and error.worker is not None and few:
            worker_id, instance = error.worker
            reason = f"speaks protocol {error.protocol}, this master {wire.PROTOCOL}"
            self.roster.refuse(instance, worker_id, "?", reason, self._clock())
            return
        self.invalid_messages += 1
        if self.invalid_messages <= _REPORTED_MESSAGES:
            self.dispatcher.events.append(InvalidMessage(str(error)))

    # -- time passes --------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Find who is lost by now, and send pings and refusals that are due; call it every 0.1 s."""
        self._sockets.drop_strangers()
        self.look_after_descriptors(now)
        self.dispatcher.tick(now)
        self._send_pings(now)
        if now - self._told_at >= _TELL_SECONDS:
            for worker in self.roster.refused()[:_MOST_REFUSED]:
                self._told_at = now
                self._send_message(worker, packing.pack_notice(wire.Refusal(worker.presence.refusal or "")))

    def _send_pings(self, now: float) -> None:
        due = self.roster.to_ping(now)
        for worker in due:
            ping = packing.pack_notice(wire.Ping(self.roster.master, now, worker.presence.heard))
            # One that has just come may not be connected yet and is tried again soon.
            if self._send_message(worker, ping) or now - worker.presence.since > wire.LOST_AFTER:
                worker.presence.pinged = now

    def look_after_descriptors(self, now: float) -> None:
        """See to it that files can be opened; call it several times a second where nothing else ticks."""
        text = self._sockets.look_after_descriptors()
        if text is not None and now - self._told_scarce_at > _SCARCE_SECONDS:
            self._told_scarce_at = now
            self.dispatcher.events.append(Scarce(text))

    def shut_doors(self) -> None:
        """Accept no more connections, so that files can be opened, until the next tick."""
        self._sockets.shut_doors()

    def take_events(self) -> list[Event]:
        """Return what has happened since the last call."""
        events, self.dispatcher.events = self.dispatcher.events, []
        return events


def _invalid(result: Result, why: str, completed: float) -> Result:
    return Result(result.job_id, None, None, completed, cause=INVALID, detail=why)
