"""The workers of a master, over its two sockets: sends batches of tasks and receives their results.

:class:`GroupWorkers` does this for one group of users; a :class:`Fleet` is all of it, and itself that of the
first group. Neither knows phases or tokens, and neither says anything: what happens is reported as
:mod:`ssbench.fleet.fleet_events`.

Results are checked against what the master itself knows of the job (:class:`ResultBounds`): when it was sent,
how large its object is, how often it may be retried. A worker that is broken, or a stranger that joined an
open fleet, may send any number. The checks cost no message.
"""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import zmq

from ssbench.base.errors import ProtocolError, WireError
from ssbench.document.units import format_seconds
from ssbench.fleet import wire
from ssbench.fleet.dispatcher import Dispatcher, GroupJobs
from ssbench.fleet.fleet_events import Event, InvalidMessage, PortNews
from ssbench.fleet.sockets import MasterSockets, has_message
from ssbench.fleet.wire import LOST_AFTER, RunParameters, Spent
from ssbench.fleet.worker_state import History, Task, TaskBatch, WorkerState, make_spent
from ssbench.fleet.written_versions import WrittenVersions
from ssbench.results.block import INVALID_CAUSE
from ssbench.scenario.operations import OPERATIONS, OperationTable
from ssbench.store.contract import JobResult, RareFields, longest_job_seconds

#: A latency may exceed the age of its job by this many seconds and by this share: two clocks differ.
_LATENCY_TOLERANCE = 1.0
_LATENCY_FACTOR = 1.001

#: When a job was completed, by the master's clock, is an estimate. It errs most where a machine was suspended
#: and its clock stalled: not for as long as makes a worker lost.
_CLOCK_TOLERANCE = LOST_AFTER + 1.0

#: Most bytes of an answer that has no object in it, as that to a DELETE.
_MAX_ANSWER_BYTES = 65536

_NOT_FOUND_STATUS = 404

#: A store may answer a read with more bytes than were written; no network moves more than this a second.
_MAX_BYTES_A_SECOND = 100e9


@dataclass(frozen=True, slots=True)
class ResultBounds:
    """What bounds the results of a run.

    ``largest`` holds the bytes of the largest object of each size class, ``retries`` how often a
    request may be retried, for all reasons together. The history of a task comes on top. Manifests come with
    the objects of ``segmented`` classes.
    """

    largest: tuple[int, ...]
    retries: int
    segmented: frozenset[int] = frozenset()
    operations: OperationTable = OPERATIONS

    def fault(  # noqa: PLR0911 - each rule in its own words; a call a rule would cost more than the rules
        self, batch: TaskBatch, result: JobResult, to_master: float, now: float
    ) -> str | None:
        """Say what is impossible in the result of a job of a batch; None if nothing is.

        ``to_master`` is what to add to the worker's clock to have the master's, ``now`` the arrival.
        """
        task, history = batch.task(result.job_id), batch.history(result.job_id)
        first, last = result.first_byte, result.last_byte
        age = now - (history.began if history is not None and history.retries else batch.sent_at)
        if last is None:
            if result.cause is None or first is not None:
                return "it has no last byte"
        elif last > age * _LATENCY_FACTOR + _LATENCY_TOLERANCE:
            return f"it took {format_seconds(last)} s and was sent {format_seconds(age)} s ago"
        elif first is not None and first > last:
            return (
                f"the first byte came after {format_seconds(first)} s, the last one after"
                f" {format_seconds(last)} s"
            )
        if result.spent is not None and result.spent > age * _LATENCY_FACTOR + _LATENCY_TOLERANCE:
            return (
                f"it failed after {format_seconds(result.spent)} s and was sent {format_seconds(age)} s ago"
            )
        took = result.spent if last is None else last
        if result.rare is not None:
            whole = age * _LATENCY_FACTOR if took is None else took
            if result.rare.least_seconds() > whole + _LATENCY_TOLERANCE:
                spent = format_seconds(result.rare.least_seconds())
                return f"of {format_seconds(whole)} s it spent {spent} s with connecting and pauses"
        since = result.completed + to_master - now
        if since > _CLOCK_TOLERANCE or since < batch.sent_at - now - _CLOCK_TOLERANCE:
            return (
                f"it ended {format_seconds(-since)} s ago and was sent {format_seconds(now - batch.sent_at)} "
                "s ago"
            )
        if result.late is not None and (wrong := _late_fault(batch, result, now + since)):
            return wrong
        if result.retries > self.retries + (history.retries if history is not None else 0) or (
            result.retried and sum(result.retried.values()) > result.retries
        ):
            return f"{result.retries} retries, of which {sum((result.retried or {}).values())} have a cause"
        size = result.size
        if size > task[4] and size > self._largest(task, result.status, age):
            return (
                f"{size:,} bytes were moved, more than can be"
                if task[4] == 0
                else (f"{size:,} bytes were moved, where {task[4]:,} were asked for")
            )
        return None

    def _largest(self, task: Task, status: int, age: float) -> float:
        """Return the most bytes that a job of that age may move, if not those it was sent with.

        A ``status`` of 404 is a success of some deletions: its body may be a page of any proxy between.
        """
        operation, largest = self.operations[task[0]], self.largest[task[1]]
        several = bool(operation.steps) or task[1] in self.segmented
        if operation.sends_body and operation.has_object and not several:
            return largest if operation.returns_object else 0
        any_number = (
            operation.returns_object
            or operation.defined
            or several
            or not operation.has_object
            or status == _NOT_FOUND_STATUS
        )
        return max(largest, _MAX_ANSWER_BYTES, age * _MAX_BYTES_A_SECOND if any_number else 0)


def _late_fault(batch: TaskBatch, result: JobResult, completed: float) -> str | None:
    """Say what is impossible in how late a job began, which was completed then by the master's clock."""
    said, due = result.late or 0.0, batch.due(result.job_id)
    if due is None:
        return f"it began {format_seconds(said)} s late and was due at no time"
    took = result.last_byte if result.spent is None else result.spent
    late = max(0.0, completed - (took or 0.0) - due)
    if abs(said - late) <= _CLOCK_TOLERANCE:
        return None
    return (
        f"it began {format_seconds(said)} s late, by its own account, and"
        f" {format_seconds(late)} s by when it was completed"
    )


# -- The workers for one group of users ------------------------------------------------------------


#: Flags of the sockets as plain numbers: to put two of zmq's together costs as much as the send.
_NO_WAIT = int(zmq.NOBLOCK)
_NO_WAIT_AND_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)

#: What is special about a job that failed or was sent again: its place among those that ended, when it
#: was sent, its history.
ResentJob = tuple[int, float, History | None]

#: An initial upload may be two requests, of which only one is tried again.
_UPLOAD_REQUESTS = 2


#: Addresses to which connections failed that are distinguished, about.
_MAX_ADDRESSES = 1000


class ReceivedResults(msgspec.Struct, frozen=True, gc=False):
    """Results that came in one message, of jobs that were in flight with its sender."""

    worker: WorkerState
    at: float  # when the message came, by the master's monotonic clock
    generation: int  # that of the parameters under which the jobs began
    ended: list[tuple[Task, JobResult]]
    special: list[ResentJob]  # those of ``ended`` that failed or were sent again
    group: int = 0


class GroupWorkers:
    """The workers of a master for one group; ``account`` is that of its jobs.

    ``parameters`` are those of the group in the run. ``left`` is how many objects its operations have made
    and could not delete, ``unreached`` counts their connections that failed, by address, where hosts have
    several.
    """

    def __init__(self, account: GroupJobs, sockets: MasterSockets) -> None:
        self.account = account
        self.allocation = account.allocation
        self.ledger = account.ledger
        self.parameters = RunParameters(run_id=0)
        self.left = 0
        self.unreached: Counter[str] = Counter()
        #: The generation of the parameters that brought the token of an account, or of all (None).
        self._token_since: dict[int | None, int] = {}
        self._sockets = sockets
        #: How messages with jobs begin: for a worker that has not had these parameters, and for others.
        self._whole = self._reference = b""
        #: The first due time of the run, from which those that workers get count.
        self._start: float | None = None
        #: Returns where the objects of tasks are, where their names cannot be derived.
        self.paths: Callable[[Sequence[Task]], list[str]] | None = None
        #: Knows which versions objects have; None where bodies are not verified.
        self._versions: WrittenVersions | None = None
        self._bounds = ResultBounds((), 0)
        self._retries = 0

    def living(self) -> list[WorkerState]:
        """Return the workers that can be given work, as the account of this group knows them."""
        return self.account.living()

    # -- parameters ---------------------------------------------------------------------------

    def use(self, parameters: RunParameters, largest_objects: Sequence[int]) -> None:
        """Begin a run with these parameters, and with objects of these sizes at most, in bytes."""
        self.parameters = parameters
        self.left = 0
        self._start = None
        self.paths = None
        self._versions = None if parameters.verify_seed is None else WrittenVersions()
        self.unreached.clear()
        self._token_since = {}
        self._pack()
        retries = parameters.requests.retries + parameters.requests.retry_404
        most = parameters.most_requests
        self._bounds = ResultBounds(
            tuple(largest_objects),
            retries * (most if most > _UPLOAD_REQUESTS else 1),
            frozenset(place for place, (size, _) in enumerate(parameters.segments) if size),
            OPERATIONS.with_defined(parameters.scenario.operations),
        )
        self._retries = retries
        self._set_longest_job()

    def change(self, **changes: object) -> None:
        """Change parameters in the middle of the run; workers see it with their next batch."""
        self.parameters = msgspec.structs.replace(
            self.parameters, generation=self.parameters.generation + 1, **changes
        )
        self._pack()
        self._set_longest_job()

    def _pack(self) -> None:
        self._whole = wire.pack_parameters(self.parameters)
        self._reference = wire.pack_reference(self._whole, self.parameters)

    def renew(self, account: int | None, token: str) -> None:
        """Use a new token: in one of several accounts, or in all (None)."""
        if account is None:
            self.change(token=token)
        else:
            accounts = [*self.parameters.accounts]
            accounts[account] = accounts[account][0], token
            self.change(accounts=accounts)
        self._token_since[account] = self.parameters.generation

    def token_since(self, account: int) -> int:
        """Return the generation of the parameters with which the token of an account came."""
        return max(self._token_since.get(None, 0), self._token_since.get(account, 0))

    def _set_longest_job(self) -> None:
        parameters = self.parameters
        longest = longest_job_seconds(
            parameters.requests.connect_timeout,
            parameters.requests.network_timeout,
            parameters.requests.request_timeout,
            self._retries,
            max(self._bounds.largest, default=0),
            parameters.most_requests,
        )
        # Between two jobs a user thinks, and the next one has not begun meanwhile.
        self.ledger.longest_job = longest + parameters.think_time

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
        account = self.account
        moments: Sequence[float | None] = dues
        again: list[Spent] = []
        if histories:
            again = [make_spent(each, worker.clock.offset.seconds) for each in histories]
            moments = [None if each is None else each.due for each in histories]
        start, seconds = self._to_worker(worker, moments) if moments else (0.0, [])
        first, jobs = account.send(tasks, now, worker, histories, moments if seconds else ())
        batch = wire.JobBatch(
            batch_id=first,
            jobs=jobs,
            histories=again,
            users=worker.allowance.share,
            low=self.allocation.low(worker),
            start=start,
            dues=seconds,
            heard=worker.presence.heard,
            gathering=self.allocation.gathering,
            paths=[] if self.paths is None else self.paths(tasks),
            versions=[] if self._versions is None else self._versions.find_least(tasks),
        )
        known = worker.held.parameters == self._reference
        beginning = self._reference if known else self._whole
        if self._send_message(worker, beginning + wire.pack_message(batch)):
            worker.held.parameters = self._reference
            return True
        account.unsend(first)
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
        for worker in self.living():
            if worker.allowance.share != worker.held.users_told and worker.held.outstanding:
                notice = wire.pack_notice(
                    wire.Share(self.parameters.run_id, worker.allowance.share, self.account.group)
                )
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
        for worker in self.living():
            self._recall(worker)

    def _recall(self, worker: WorkerState) -> None:
        if worker.held.outstanding and not worker.held.recalled:
            notice = wire.pack_notice(wire.Recall(self.parameters.run_id, self.account.group))
            worker.held.recalled = self._send_message(worker, notice)

    def _send_message(self, worker: WorkerState, message: bytes) -> bool:
        try:
            send = self._sockets.work.send
            send(worker.address, _NO_WAIT_AND_MORE)
            send(message, _NO_WAIT)
        except zmq.ZMQError as error:
            if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                return False  # it is not connected at this moment
            raise
        return True

    def _note(self, rare: RareFields) -> None:
        self.left += rare.left
        if rare.unreached and len(self.unreached) < _MAX_ADDRESSES:
            self.unreached.update(rare.unreached)

    def _note_written(self, ended: Sequence[tuple[Task, JobResult]]) -> None:
        if self._versions is not None:
            self._versions.note_ended(ended)

    def settle(self, message: wire.JobResults, worker: WorkerState, now: float) -> ReceivedResults | None:
        """Receive results of jobs of this group, from a worker; None where none of them is known."""
        account, to_master = self.account, worker.clock.offset.seconds
        earliest, latest = now - to_master - 1.0, now - to_master + 1.0
        take, largest = self.ledger.in_flight.pop, self._bounds.largest
        tasks: Sequence[Task] = ()
        histories: Sequence[History | None] = ()
        ended: list[tuple[Task, JobResult]] = []
        special: list[ResentJob] = []
        # Results of one batch come together, nearly always: they are counted together.
        last_batch: TaskBatch | None = None
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
                or (result.rare is not None and not result.rare.is_plain())
                or result.cause is not None
                or result.late is not None
                or histories
                or (result.size and result.size != task[4] and (task[4] or result.size > largest[task[1]]))
            ):
                history = batch.history(job_id)
                if result.rare is not None:
                    self._note(result.rare)
                if (wrong := self._bounds.fault(batch, result, to_master, now)) is not None:
                    self.ledger.note_invalid(worker, wrong)
                    result = _make_invalid_result(result, wrong, now - to_master)  # noqa: PLW2901 - what is kept of it
                if result.cause is not None or history is not None:
                    special.append((len(ended), batch.sent_at, history))
            ended.append((task, result))
        if last_batch is not None:
            self.ledger.settled(last_batch, count)
        self._note_written(ended)
        # More jobs ahead would make messages wait for a busy master only for longer.
        waited = now - message.clock - worker.clock.offset.most
        account.note_progress(
            worker, len(ended), begun, (message.received, message.held + waited), now, message.clock
        )
        return (
            ReceivedResults(worker, now, message.generation, ended, special, account.group) if ended else None
        )


def _make_invalid_result(result: JobResult, why: str, completed: float) -> JobResult:
    return JobResult(result.job_id, None, None, completed, cause=INVALID_CAUSE, detail=why)


# -- All workers of a master -----------------------------------------------------------------------


#: Refused workers are sent the reason at this interval (seconds) until they are silent; this many at once.
_REFUSAL_SECONDS = 1.0
_MAX_REFUSED_WORKERS = 32

#: About the most messages, and results, that are taken in before more work is sent: workers wait for it.
_MESSAGES_A_TURN = 256
_RESULTS_A_TURN = 1024

#: The first few invalid messages are reported; all are counted.
_REPORTED_MESSAGES = 3

#: A ping that could not be sent waits for so much of the time since its worker was first heard of.
_TRY_AGAIN_SECONDS = 0.2


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
        self.groups: list[GroupWorkers] = [self]
        #: Messages of this run that could not be decoded.
        self.invalid_messages = 0
        #: Whether the last call of :meth:`receive` brought more than results: what concerns all groups.
        self.heard_news = False
        self._clock = clock
        self._receive_timeout = -1.0
        self._told_at = -math.inf
        #: Connections to the ports that runs before this one have counted as refused, and that this one has.
        self._refused_before = 0
        self._refused_counted = 0

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
        self._refused_before = self._refused_counted
        former = self.dispatcher.begin(0, self._clock(), parts)
        self.groups = [self, *(GroupWorkers(each, self._sockets) for each in self.dispatcher.accounts[1:])]
        for group, each in zip(self.groups, (parameters, *others), strict=True):
            group.use(each, largest_objects)
        return former

    def forget_jobs(self, **changes: object) -> None:
        """Begin a new run with changed parameters: workers drop their jobs and close their connections."""
        run_id = secrets.randbits(62) + 1
        for group in self.groups:
            group.change(run_id=run_id, **changes)

    @property
    def storage_urls(self) -> list[str]:
        """The storage URLs of all groups."""
        return [*dict.fromkeys(url for group in self.groups for url in group.parameters.storage_urls)]

    @property
    def capacity(self) -> int:
        """How many jobs of all groups the workers that are ready can run at once."""
        return sum(group.allocation.capacity for group in self.groups)

    def outstanding(self, worker: WorkerState) -> int:
        """Return how many jobs of all groups a worker has that have not ended."""
        return sum(group.account.state_of(worker).held.outstanding for group in self.groups)

    def states(self) -> list[WorkerState]:
        """Return each worker as the accounts of all groups know it."""
        return [
            group.account.state_of(worker) for group in self.groups for worker in self.roster.workers.values()
        ]

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
        self.heard_news = False
        ended = 0
        for place in range(_MESSAGES_A_TURN):
            if place and (ended >= _RESULTS_A_TURN or not has_message(results)):
                break
            try:
                frame = receive(_NO_WAIT if place else 0)
            except zmq.Again:
                break
            try:
                message = wire.unpack_from_worker(frame)
            except WireError as error:
                self._drop(error)
                continue
            if type(message) is not wire.JobResults:
                self.heard_news = True
                self._take_news(message, self._clock())
                continue
            ended += len(message.results)
            worker = self.roster.known(message.instance)
            group = self._find_group(message)
            if worker is None or group is None:
                self.ledger.late_results += len(message.results)
                continue
            now = self._clock()
            worker.clock.offset.observe(message.clock, now)
            if message.gaps:
                self.roster.keep_gaps(worker, message.gaps, now)
            arrival = group.settle(message, group.account.state_of(worker), now)
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
            worker, group = self.roster.known(message.instance), self._find_group(message)
            if worker is not None and group is not None:
                account = group.account
                state = account.state_of(worker)
                account.hand_back(message.job_ids, state, message.capacity, asked=message.asked)

    def _find_group(self, message: wire.JobResults | wire.Handback) -> GroupWorkers | None:
        """Return whose jobs a message is about; None where they are not of this run."""
        if message.run_id != self.parameters.run_id or message.group >= len(self.groups):
            return None
        return self.groups[message.group]

    def _drop(self, error: WireError) -> None:
        few = len(self.roster.refused()) < _MAX_REFUSED_WORKERS
        if isinstance(error, ProtocolError) and error.worker is not None and few:
            worker_id, instance = error.worker
            reason = f"speaks protocol {error.protocol}, this master {wire.PROTOCOL}"
            self.roster.refuse(instance, worker_id, "?", reason, self._clock())
            return
        self._note_invalid_messages(str(error))

    def _note_invalid_messages(self, why: str, count: int = 1) -> None:
        if self.invalid_messages < _REPORTED_MESSAGES:
            self.dispatcher.events.append(InvalidMessage(why))
        self.invalid_messages += count

    # -- time passes --------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Find who is lost by now, and send pings and refusals that are due; call it every 0.1 s."""
        if dropped := self._sockets.drop_strangers():
            self._note_invalid_messages("it came to the port for work, where workers send none", dropped)
        self._note_port_news(self._sockets.take_port_news())
        self.dispatcher.tick(now)
        self._send_pings(now)
        if self._sockets.revokes:
            self._refuse_revoked(now)
        if now - self._told_at >= _REFUSAL_SECONDS:
            for worker in self.roster.refused()[:_MAX_REFUSED_WORKERS]:
                self._told_at = now
                self._send_message(worker, wire.pack_notice(wire.Refusal(worker.presence.refusal or "")))

    def count_refused_connections(self) -> None:
        """Count who was refused until now, the end of a run: those from now on belong to the next."""
        self._note_port_news(self._sockets.count_refused_connections())
        self._refused_counted = self._sockets.refused_connections

    def _note_port_news(self, news: Iterable[str]) -> None:
        self.dispatcher.events += map(PortNews, news)
        self.ledger.refused_connections = self._sockets.refused_connections - self._refused_before

    def _refuse_revoked(self, now: float) -> None:
        """Use workers no more whose keys were revoked, so that they are told why."""
        for frame in self._sockets.take_of_revoked():
            with suppress(WireError):
                message = wire.unpack_from_worker(frame)
                if isinstance(message, wire.Heartbeat) and (worker := self.roster.known(message.instance)):
                    reason = "has a key that was revoked"
                    self.roster.refuse(worker.instance, worker.worker_id, worker.host, reason, now)

    def _send_pings(self, now: float) -> None:
        due = self.roster.to_ping(now)
        for worker in due:
            self._ping(worker, now)

    def _ping(self, worker: WorkerState, now: float) -> None:
        presence = worker.presence
        ping = wire.pack_notice(wire.Ping(self.roster.master, now, presence.heard, presence.lost))
        if self._send_message(worker, ping) or now - presence.since > wire.LOST_AFTER:
            presence.pinged_at(now, self.allocation.ping_seconds)
        else:
            # One that has just come may not be connected yet. It is tried again soon, but thousands that
            # connect at once are not all tried in vain at each tick.
            presence.ping_due = now + _TRY_AGAIN_SECONDS * (now - presence.since)

    def take_events(self) -> list[Event]:
        """Return what has happened since the last call."""
        events, self.dispatcher.events = self.dispatcher.events, []
        return events
