"""The master's side of the fleet: its sockets, who is there, which jobs are where.

It sends batches of tasks and receives results. It knows no phase and no token, and says nothing: what
happens it reports as :mod:`ssbench.fleet.events`.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import zmq

from ssbench.base.errors import ProtocolError, WireError
from ssbench.fleet import packing, wire
from ssbench.fleet.crew import GroupWorkers, ReceivedResults
from ssbench.fleet.dispatch import Dispatcher
from ssbench.fleet.events import Event, InvalidMessage, Scarce
from ssbench.fleet.sockets import MasterSockets, has_message
from ssbench.fleet.wire import RunParameters
from ssbench.fleet.worker_state import WorkerState

#: Refused workers are sent the reason at this interval (seconds) until they are silent; this many at once.
_REFUSAL_SECONDS = 1.0
_MAX_REFUSED_WORKERS = 32

#: About the most messages, and results, that are taken in before more work is sent: workers wait for it.
_MESSAGES_A_TURN = 256
_RESULTS_A_TURN = 1024

#: The first few invalid messages are reported; all are counted.
_REPORTED_MESSAGES = 3

#: That descriptors are scarce is reported again after this many seconds.
_SCARCE_SECONDS = 60.0
#: A ping that could not be sent waits for so much of the time since its worker was first heard of.
_TRY_AGAIN_SECONDS = 0.2

#: A flag of the sockets as a plain number: the enumeration costs as much as the call.
_WITHOUT_WAITING = int(zmq.NOBLOCK)


class Fleet(GroupWorkers):
    """The workers of a master, over its two sockets, for one run after another: itself for the first group.

    Each run starts with :meth:`begin`. ``parameters`` are those of the run. ``clock`` returns seconds, as
    time.monotonic does.
    """

    def __init__(self, sockets: MasterSockets, clock: Callable[[], float] = time.monotonic) -> None:
        self.dispatcher = Dispatcher()
        super().__init__(self.dispatcher, sockets)
        self.roster = self.dispatcher.roster
        #: The workers as each group of users meets them, the first one first.
        self.crews: list[GroupWorkers] = [self]
        #: Messages of this run that could not be decoded.
        self.invalid_messages = 0
        self._clock = clock
        self._receive_timeout = -1.0
        self._told_at = self._told_scarce_at = -math.inf

    @property
    def ports(self) -> tuple[int, int]:
        """The ports of the two sockets, for work and for results."""
        return self._sockets.ports

    @property
    def refused_keys(self) -> int:
        """How many keys workers came with that are not in the list of keys."""
        return self._sockets.refused

    # -- parameters ---------------------------------------------------------------------------

    def begin(
        self,
        parameters: RunParameters,
        largest_objects: Sequence[int],
        others: Sequence[RunParameters] = (),
        parts: Sequence[float] = (1.0,),
    ) -> list[WorkerState]:
        """Begin a run; no job may be in flight.

        ``parameters.run_id`` must differ from that of every earlier run; ``largest_objects`` holds the bytes
        of the largest object of each size class. What is counted begins at 0, and every worker has to answer
        a ping again before it is used. Returns those that were ready before. ``others`` are the parameters of
        further groups of users, and ``parts`` the shares of the workers' capacity that the groups may use.
        """
        self.invalid_messages = 0
        former = self.dispatcher.begin(0, self._clock(), parts)
        self.crews = [self, *(GroupWorkers(each, self._sockets) for each in self.dispatcher.accounts[1:])]
        for crew, each in zip(self.crews, (parameters, *others), strict=True):
            crew.use(each, largest_objects)
        return former

    def forget_jobs(self, **changes: object) -> None:
        """Begin a new run with changed parameters: workers drop their jobs and close their connections."""
        run_id = secrets.randbits(62) + 1
        for crew in self.crews:
            crew.change(run_id=run_id, **changes)

    @property
    def storage_urls(self) -> list[str]:
        """The storage URLs of all groups."""
        return [*dict.fromkeys(url for crew in self.crews for url in crew.parameters.storage_urls)]

    @property
    def capacity(self) -> int:
        """How many jobs of all groups the workers that are ready can run at once."""
        return sum(crew.allocation.capacity for crew in self.crews)

    def outstanding(self, worker: WorkerState) -> int:
        """Return how many jobs of all groups a worker has that have not ended."""
        return sum(crew.account.seat(worker).held.outstanding for crew in self.crews)

    def seats(self) -> list[WorkerState]:
        """Return each worker as the accounts of all groups know it."""
        return [crew.account.seat(worker) for crew in self.crews for worker in self.roster.workers.values()]

    # -- what comes in ------------------------------------------------------------------------

    def receive(self, timeout: float) -> list[ReceivedResults]:
        """Wait up to ``timeout`` seconds for a message; receive what is there, and return the results."""
        results = self._sockets.results
        if timeout != self._receive_timeout:
            # A receive that waits by itself is one call less than a poll before it: 15 % of the
            # loop at 3 batches of 8 in flight.
            self._receive_timeout = timeout
            results.setsockopt(zmq.RCVTIMEO, math.ceil(timeout * 1000))
        receive = self._sockets.receive_allowed if self._sockets.revokes else results.recv
        arrivals: list[ReceivedResults] = []
        ended = 0
        for place in range(_MESSAGES_A_TURN):
            if place and (ended >= _RESULTS_A_TURN or not has_message(results)):
                break
            try:
                frame = receive(_WITHOUT_WAITING if place else 0)
            except zmq.Again:
                break
            try:
                message = packing.unpack_from_worker(frame)
            except WireError as error:
                self._drop(error)
                continue
            if type(message) is not wire.JobResults:
                self._take_news(message, self._clock())
                continue
            ended += len(message.results)
            worker = self.roster.known(message.instance)
            crew = self._crew(message)
            if worker is None or crew is None:
                self.ledger.late_results += len(message.results)
                continue
            now = self._clock()
            worker.clock.offset.observe(message.clock, now)
            if message.gaps:
                self.roster.keep_gaps(worker, message.gaps, now)
            arrival = crew.settle(message, crew.account.seat(worker), now)
            if arrival is not None:
                arrivals.append(arrival)
        return arrivals

    def _take_news(self, message: wire.FromWorker, now: float) -> None:
        dispatcher = self.dispatcher
        if isinstance(message, wire.Heartbeat):
            worker = dispatcher.heartbeat(message, self.parameters.run_id, now, time.time())
            if worker is not None and worker.presence.ready and worker.presence.ping_due <= now:
                self._ping(worker, now)
        elif isinstance(message, wire.Goodbye):
            self.roster.leave(message.instance, message.reason)
        elif isinstance(message, wire.Handback):
            worker, crew = self.roster.known(message.instance), self._crew(message)
            if worker is not None and crew is not None:
                account = crew.account
                seat = account.seat(worker)
                account.hand_back(message.job_ids, seat, message.capacity, asked=message.asked)

    def _crew(self, message: wire.JobResults | wire.Handback) -> GroupWorkers | None:
        """Return whose jobs a message is about; None where they are not of this run."""
        if message.run_id != self.parameters.run_id or message.group >= len(self.crews):
            return None
        return self.crews[message.group]

    def _drop(self, error: WireError) -> None:
        few = len(self.roster.refused()) < _MAX_REFUSED_WORKERS
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
        if self._sockets.revokes:
            self._refuse_revoked(now)
        if now - self._told_at >= _REFUSAL_SECONDS:
            for worker in self.roster.refused()[:_MAX_REFUSED_WORKERS]:
                self._told_at = now
                self._send_message(worker, packing.pack_notice(wire.Refusal(worker.presence.refusal or "")))

    def _refuse_revoked(self, now: float) -> None:
        """Use workers no more whose keys were revoked, so that they are told why."""
        for frame in self._sockets.take_of_revoked():
            with suppress(WireError):
                message = packing.unpack_from_worker(frame)
                if isinstance(message, wire.Heartbeat) and (worker := self.roster.known(message.instance)):
                    reason = "has a key that was revoked"
                    self.roster.refuse(worker.instance, worker.worker_id, worker.host, reason, now)

    def _send_pings(self, now: float) -> None:
        due = self.roster.to_ping(now)
        for worker in due:
            self._ping(worker, now)

    def _ping(self, worker: WorkerState, now: float) -> None:
        presence = worker.presence
        ping = packing.pack_notice(wire.Ping(self.roster.master, now, presence.heard, presence.lost))
        if self._send_message(worker, ping) or now - presence.since > wire.LOST_AFTER:
            presence.pinged_at(now)
        else:
            # One that has just come may not be connected yet. It is tried again soon, but thousands that
            # connect at once are not all tried in vain at each tick.
            presence.ping_due = now + _TRY_AGAIN_SECONDS * (now - presence.since)

    def look_after_descriptors(self, now: float) -> None:
        """See to it that files can be opened; call it several times a second where nothing else ticks."""
        text = self._sockets.look_after_descriptors()
        if text is not None and now - self._told_scarce_at > _SCARCE_SECONDS:
            self._told_scarce_at = now
            self.dispatcher.events.append(Scarce(text))

    def refuse_connections(self) -> None:
        """Accept no more connections, so that files can be opened, until the next tick."""
        self._sockets.refuse_connections()

    def take_events(self) -> list[Event]:
        """Return what has happened since the last call."""
        events, self.dispatcher.events = self.dispatcher.events, []
        return events
