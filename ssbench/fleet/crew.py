"""The workers as the jobs of one group of users meet them: sends batches of tasks, receives their results.

It knows no phase and no token. What happens it reports as :mod:`ssbench.fleet.events`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import zmq

from ssbench.fleet import packing, wire
from ssbench.fleet.account import GroupJobs
from ssbench.fleet.history import History, make_spent
from ssbench.fleet.plausible import ResultBounds, is_plain
from ssbench.fleet.sockets import MasterSockets
from ssbench.fleet.wire import JobResult, RareFields, RunParameters, Spent
from ssbench.fleet.worker_state import Task, TaskBatch, WorkerState
from ssbench.results.block import INVALID_CAUSE
from ssbench.store.timing import longest_job_seconds

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
    """Results that came in one message, of jobs that were in flight with its sender.

    ``at`` is when it came (the master's monotonic clock), ``generation`` that of the parameters under
    which the jobs began. ``special`` names those of ``ended`` that failed or were sent again.
    """

    worker: WorkerState
    at: float
    generation: int
    ended: list[tuple[Task, JobResult]]
    special: list[ResentJob]
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
        self.unreached.clear()
        self._token_since = {}
        self._pack()
        retries = parameters.requests.retries + parameters.requests.retry_404
        most = parameters.most_requests
        self._bounds = ResultBounds(
            tuple(largest_objects), retries * (most if most > _UPLOAD_REQUESTS else 1)
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
        self._whole = packing.pack_parameters(self.parameters)
        self._reference = packing.pack_reference(self._whole, self.parameters)

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
            first,
            jobs,
            again,
            worker.allowance.share,
            worker.allowance.ahead.low,
            start,
            seconds,
            worker.presence.heard,
            self.allocation.gathering,
            [] if self.paths is None else self.paths(tasks),
        )
        known = worker.held.parameters == self._reference
        beginning = self._reference if known else self._whole
        if self._send_message(worker, beginning + packing.pack_message(batch)):
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
                notice = packing.pack_notice(
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
            notice = packing.pack_notice(wire.Recall(self.parameters.run_id, self.account.group))
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
                or (result.rare is not None and not is_plain(result.rare))
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
        # More jobs ahead would make messages wait for a busy master only for longer.
        waited = now - message.clock - worker.clock.offset.most
        account.note_progress(worker, len(ended), begun, (message.received, message.held + waited), now)
        return (
            ReceivedResults(worker, now, message.generation, ended, special, account.group) if ended else None
        )


def _make_invalid_result(result: JobResult, why: str, completed: float) -> JobResult:
    return JobResult(result.job_id, None, None, completed, cause=INVALID_CAUSE, detail=why)
