"""A simulated fleet with a store and faults drawn from a seed; minutes of a run take a second.

The workers do what a real one does where something goes wrong: they keep results for some milliseconds, begin
nothing while the master may count them as lost, and drop a run after they were stopped for long. Their clocks
start anywhere and may jump ahead, as those of suspended machines do. What a link holds back arrives later, in
order, or never.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from heartbeats import make_heartbeat
from history import Entry, Row
from simulated import Network, SimulatedWorker

from ssbench.fleet import wire
from ssbench.fleet.phase import ClosedLoop
from ssbench.fleet.wire import LOST_AFTER, Job, RunParameters
from ssbench.fleet.worker_state import Task, WorkerState
from ssbench.results.block import LOST_CAUSE
from ssbench.run.loop import MasterLoop
from ssbench.run.run_workers import wait_for_workers
from ssbench.run.tokens import TokenRenewal
from ssbench.run.worker_messages import WorkerNews
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.operations import OPERATIONS
from ssbench.scenario.population import Population
from ssbench.store.contract import JobResult

#: As in ssbench.worker: when a worker is no longer sure, how often it looks, how long it keeps results.
_SURE, _CHECK, _GATHER = LOST_AFTER - 0.5, 0.2, 0.004

_USERS = 12

Message = Callable[[], None]


class Store:
    """Objects by name, and the log of what was asked. ``token`` is the one that it takes."""

    def __init__(self, numbers: random.Random) -> None:
        self.log: list[Entry] = []
        self.objects: set[str] = set()
        self.token = "0"
        self.numbers = numbers

    def begin(self, job: Job, now: float) -> Entry:
        trans_id = f"tx{len(self.log)}"
        name = name_of(job[1:])
        entry = Entry(trans_id, OPERATIONS[job[1]].method, name, now, now, 0, answered=False)
        self.log.append(entry)
        return entry

    def end(self, entry: Entry, now: float, token: str | None) -> None:
        entry.ended = now
        there = entry.name in self.objects
        if token != self.token:
            entry.status = 401
        elif entry.method == "PUT":
            entry.status = 201
            self.objects.add(entry.name)
        elif not there:
            entry.status = 404
        elif entry.method == "DELETE":
            entry.status = 204
            self.objects.discard(entry.name)
        else:
            entry.status = 200


def name_of(task: Sequence[int]) -> str:
    """Return the name of the object of a task, or of a job without its number."""
    return f"c{task[2]}/s{task[1]}_{task[3]}"


class FaultyWorker(SimulatedWorker):
    """A worker over a link and beside a store. ``careless``: when continued, its slots go on at once."""

    def __init__(self, network: Network, instance: int, store: Store, *, careless: bool = False) -> None:
        super().__init__(network, instance, capacity=100)
        self.careless = careless
        self.frozen = self.killed = False
        self.up = self.down = True
        #: By how much its clock is ahead of the master's.
        self.ahead = store.numbers.uniform(-1e4, 1e4)
        self._store = store
        self._sent: list[bytes] = []
        self._received: list[bytes] = []  # type: ignore[assignment]
        self._last_batch = (0, 0.0)
        self._results: list[JobResult] = []
        self._later: list[Message] = []
        self._heard: float | None = None
        self._beat_at = self.clock
        self._lost = 0
        self._flushes = False
        self._look()

    @property
    def clock(self) -> float:
        return self._network.now + self.ahead

    # -- what happens to it -------------------------------------------------------------------

    def freeze(self) -> None:
        self.frozen = True

    def go_on(self) -> None:
        """Continue after it was stopped: what had come by then is dealt with in some order."""
        self.frozen = False
        later, self._later = self._later, []
        if not self.careless:
            self._notice()
        for call in later:
            call()
        self._notice()
        self._arrive()

    def kill(self) -> None:
        self.killed = True
        self.connected = False

    def open(self) -> None:
        """Let what the link has held back arrive."""
        self.up = self.down = True
        sent, self._sent = self._sent, []
        for frame in sent:
            # By the way of what is sent from now on, which must not overtake it: a link keeps the order.
            self._network.arrives(self.way, frame)
        self._arrive()

    # -- messages -----------------------------------------------------------------------------

    def send(self, message: wire.FromWorker) -> None:
        if self.killed:
            return
        if self.up:
            self._network.arrives(self.way, wire.pack_message(message))
        else:
            self._sent.append(wire.pack_message(message))

    def receive(self, message: bytes) -> None:
        self._received.append(message)
        self._network.at(self.way, self._arrive)

    def _arrive(self) -> None:
        while self._received and self.down and not self.frozen and not self.killed:
            self._take(self._received.pop(0))

    def heartbeat(self) -> None:
        if self.frozen or self.killed:
            return
        self._notice()
        self._flush()
        self._beat_at = self.clock
        self.send(
            make_heartbeat(
                self.instance,
                run_id=self.parameters.run_id,
                clock=self.clock,
                capacity=self.capacity,
                held=list(self._held),
                master=self._ping[0],
                ping=self._ping[1],
            )
        )

    def _take(self, message: bytes) -> None:
        notice = wire.unpack_notice(message)
        if notice is None:
            beginning, packed = wire.split_work(message)
            parameters, batch = self.parameters_of(beginning), wire.unpack_batch(packed)
            if parameters is None:
                self._hand_back_unknown(beginning, batch)
            else:
                self._take_batch(parameters, batch)
        elif isinstance(notice, wire.Ping):
            if notice.lost > self._lost:
                self._lost = notice.lost
                self._forget()
            self._ping = (notice.master, notice.sent)
            self._hear(notice.heard)
            self.heartbeat()
        elif isinstance(notice, wire.Share):
            self.users = notice.users
            self._begin_more()
        elif isinstance(notice, wire.Recall) and notice.run_id == self.parameters.run_id:
            self._hand_back_waiting(asked=True)

    def _take_batch(self, parameters: RunParameters, batch: wire.JobBatch) -> None:
        if parameters.run_id != self.parameters.run_id:
            known = {**self.known}
            self._forget()
            self.known = known
        self.parameters = parameters
        self._hear(batch.heard)
        if self._out_of_touch():
            self._hand_back_jobs([job[0] for job in batch.jobs], asked=False)
            return
        self._held[batch.batch_id] = len(batch.jobs)
        self._last_batch = (batch.batch_id, self.clock)
        self.users = batch.users
        histories = batch.histories or [None] * len(batch.jobs)  # type: ignore[list-item]
        for job, history in zip(batch.jobs, histories, strict=True):
            attempts, *_, late = history or (0, None, None, False)
            self._waiting.append((batch.batch_id, (*job, attempts, late), parameters))  # type: ignore[arg-type]
        self._begin_more()

    def _hear(self, heard: float | None) -> None:
        if heard is not None:
            self._heard = heard if self._heard is None else max(heard, self._heard)

    def _out_of_touch(self) -> bool:
        return self._heard is not None and self.clock - self._heard > _SURE

    def _look(self) -> None:
        """Look after the touch with the master, as the real one's timer does; beat where no ping comes."""
        if self.killed:
            return
        if not self.frozen:
            if self._waiting and self._out_of_touch():
                self._hand_back_waiting(asked=False)
            if self.clock - self._beat_at >= 1.5:
                self.heartbeat()
        self._network.at(_CHECK, self._look)

    def _notice(self) -> None:
        """Hand back what has not begun after a silence in which the master may have counted it as lost."""
        if self.clock - self._beat_at > LOST_AFTER:
            self._beat_at = self.clock
            self._hand_back_waiting(asked=False)

    def _forget(self) -> None:
        self.parameters = RunParameters(run_id=0)
        self.known.clear()
        self._held.clear()
        self._waiting.clear()
        self._results.clear()
        self._heard = None
        self.busy = 0

    # -- jobs ---------------------------------------------------------------------------------

    def _begin_more(self) -> None:
        while self._waiting and self.busy < min(self.users, self.capacity):
            if self._out_of_touch() and not self.careless:
                return
            self.busy += 1
            batch, job, parameters = self._waiting.popleft()
            self.begun = max(self.begun, job[0])
            entry = self._store.begin(job[:6], self._network.now)
            slow = self._store.numbers.random() < 0.01
            seconds = self._store.numbers.uniform(0.001, 2.0 if slow else 0.03)
            self._network.at(seconds, partial(self._answered, batch, job, parameters, entry))

    def _answered(self, batch: int, job: Any, parameters: RunParameters, entry: Entry) -> None:
        self._store.end(entry, self._network.now, parameters.token)
        began = entry.began
        if self.killed:
            return
        if self.frozen:
            self._later.append(lambda: self._end_job(batch, job, parameters, entry, began))
        else:
            self._end_job(batch, job, parameters, entry, began)

    def _end_job(self, batch: int, job: Any, parameters: RunParameters, entry: Entry, began: float) -> None:
        if batch not in self._held or self.parameters.run_id != parameters.run_id:
            return
        good = entry.status < 300 or (entry.status == 404 and job[7] and entry.method == "DELETE")
        took = self._network.now - began
        cause = None if good else f"HTTP {entry.status}"
        self._results.append(
            JobResult(
                job[0],
                None,
                took if good or entry.status == 401 else None,
                self.clock,
                size=job[5] if good else 0,
                retries=job[6],
                trans_id=entry.trans_id,
                cause=cause,
                unauthorized=entry.status == 401,
                status=entry.status,
                spent=None if good else took,
            )
        )
        self._count(batch)
        self.busy -= 1
        self._begin_more()
        if not self._flushes:
            self._flushes = True
            self._network.at(_GATHER, self._flush_by_itself)

    def _flush_by_itself(self) -> None:
        if self.killed:
            return
        if self.frozen:
            self._later.append(self._flush_by_itself)
            return
        self._flushes = False
        self._flush()

    def _flush(self) -> None:
        results, self._results = self._results, []
        if results:
            now = self.clock
            self.send(
                wire.JobResults(
                    self.parameters.run_id,
                    self.instance,
                    self.instance,
                    now,
                    self.parameters.generation,
                    list[JobResult](results),
                    self.begun,
                    self._last_batch[0],
                    now - self._last_batch[1],
                )
            )

    def _hand_back_waiting(self, *, asked: bool) -> None:
        self._flush()
        job_ids = [job[0] for _, job, _ in self._waiting]
        for batch, _, _ in self._waiting:
            self._count(batch)
        self._waiting.clear()
        if job_ids:
            self._hand_back_jobs(job_ids, asked=asked)

    def _hand_back_jobs(self, job_ids: list[int], *, asked: bool) -> None:
        self.send(
            wire.Handback(self.parameters.run_id, self.instance, self.instance, self.capacity, job_ids, asked)
        )


class Operations:
    """A phase that draws operations from a population, and keeps what came of them as rows."""

    what = "operations"
    drain_timeout: float | None = 60.0

    def __init__(self, state: Population, count: int, clock: Callable[[], float]) -> None:
        self.rows: list[Row] = []
        self.taken_back = 0
        self._state = state
        self._count = count
        self._clock = clock

    def next_tasks(self, count: int) -> Sequence[Task]:
        return self._state.next_jobs(count, 0.0, self._count - self._state.drawn)

    def exhausted(self, now: float) -> bool:
        return self._state.drawn >= self._count and not self._state.waiting

    def cut_short(self, now: float) -> bool:
        return False

    def take_back(self, tasks: Sequence[Task], *, in_doubt: bool) -> None:
        for operation, size_class, container, number, _ in tasks:
            self._state.take_back(operation, size_class, container, number, in_doubt=in_doubt)
        self.taken_back += len(tasks)

    def sent_again(self, now: float) -> None:
        pass

    def done(self, ended: Sequence[tuple[Task, JobResult]], worker: WorkerState) -> None:
        self._state.ended(ended)
        for task, result in ended:
            completed = result.completed + worker.clock.offset.seconds
            started = None if result.last_byte is None else completed - result.last_byte
            self._add(task, result.trans_id, result.cause, started, completed, result.retries)

    def lost(
        self, tasks: Sequence[Task], *, abandoned: str | None, worker: WorkerState | None = None
    ) -> Sequence[Task]:
        for task in tasks:
            self._state.finished(*task[:4], ok=False)
            self._add(task, None, abandoned or LOST_CAUSE, None, self._clock(), 0)
        return []

    def _add(
        self,
        task: Task,
        trans_id: str | None,
        error: str | None,
        started: float | None,
        completed: float,
        extra: int,
    ) -> None:
        self.rows.append(
            Row(OPERATIONS[task[0]].name, name_of(task), trans_id, error, started, completed, extra)
        )

    def catch_up(self) -> None:
        pass

    def tick(self, now: float) -> None:
        pass


class Simulation:
    """A run of ``count`` operations on a fleet of three; ``seed`` draws what goes wrong, and when."""

    def __init__(self, seed: int, count: int = 3000, *, careless: bool = False, faults: bool = True) -> None:
        self.numbers = random.Random(seed)
        self.network = Network()
        self.store = Store(self.numbers)
        self.counts: Counter[str] = Counter()
        self.careless = careless
        weights: dict[str, float] = {"create": 3, "read": 3, "update": 4, "delete": 2}
        scenario = Scenario("s", (SizeClass("s", 100, 200, 40, weights),), _USERS, count, container_count=2)
        self.fleet = self.network.fleet(RunParameters(run_id=1, token="0", storage_urls=["http://a"]))
        self.loop = MasterLoop(
            self.fleet,
            ClosedLoop(_USERS),
            WorkerNews(),
            [[TokenRenewal(lambda: self.store.token, lambda call: call())]],
            0.0,
            lambda: self.network.now,
        )
        self.state = Population(scenario, Workload(scenario, seed))
        for number in range(1, 41):
            self.state.add_initial(0, number, 150)
            self.store.objects.add(f"c{(number - 1) % 2}/s0_{number}")
        self.phase = Operations(self.state, count, lambda: self.network.now)
        self.workers = [self._worker(instance) for instance in (1, 2, 3)]
        self._instances = 3
        wait_for_workers(self.loop, lambda: 3, 10.0, "advice")
        if faults:
            self._next_fault()

    def _worker(self, instance: int) -> FaultyWorker:
        worker = FaultyWorker(self.network, instance, self.store, careless=self.careless)
        worker.way = self.numbers.choice((0.0, 0.001, 0.01))
        self.network.workers[wire.work_address(instance)] = worker
        worker.heartbeat()
        return worker

    def run(self) -> Operations:
        self.loop.run(self.phase)
        return self.phase

    def _next_fault(self) -> None:
        self.network.at(self.numbers.uniform(0.05, 1.0), self._fault)

    def _fault(self) -> None:
        self._next_fault()
        place = self.numbers.randrange(3)
        worker = self.workers[place]
        kind = self.numbers.choice(("kill", "stop", "up", "down", "both", "token", "clock"))
        usable = not worker.frozen and worker.up and worker.down and not worker.killed
        others = [each for each in self.workers if each is not worker]
        if not usable or not any(each.up and each.down and not each.frozen for each in others):
            return
        self.counts[kind] += 1
        seconds = self.numbers.choice((self.numbers.uniform(0.01, 4), self.numbers.uniform(4, 12)))
        match kind:
            case "kill":
                worker.kill()
                if self.numbers.random() < 0.5:  # one that was started here is known to have ended
                    self.fleet.roster.leave(worker.instance, "it was killed")
                self.network.at(self.numbers.uniform(0.0, 3.0), lambda: self._replace(place))
            case "stop":
                worker.freeze()
                self.network.at(seconds, worker.go_on)
            case "up" | "down" | "both":
                worker.up = kind == "down"
                worker.down = kind == "up"
                self.network.at(seconds, worker.open)
            case "token":
                self.store.token = str(int(self.store.token) + 1)
            case "clock":
                worker._flush()  # what has ended is told by the clock that it ended by
                worker.ahead += self.numbers.choice((0.5, 3.0, 10.0, 3600.0))

    def _replace(self, place: int) -> None:
        self._instances += 1
        self.workers[place] = self._worker(self._instances)
