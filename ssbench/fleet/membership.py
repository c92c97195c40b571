"""Which workers there are, which of them can be given jobs, which are lost.

Pure: it knows no socket and is told the time. What happens to workers it reports as
:mod:`ssbench.fleet.events`. The rules:

* A worker is ready, and gets jobs, once it has answered a ping: only then both directions are known to
  work. Each heartbeat interval it gets another one.
* A worker whose heartbeats, or whose answers to pings, have not come for
  :data:`~ssbench.fleet.wire.LOST_AFTER` seconds is lost. Once it answers a ping again it is used again.
* Of two workers with one id the later one waits. It is refused when a heartbeat of the earlier one comes more
  than a heartbeat interval after it joined, and used when the earlier one is lost or has ended: a worker that
  was killed and started again at once is used.
"""

from __future__ import annotations

import enum
import secrets
from collections.abc import Callable, Sequence

from ssbench.fleet import events
from ssbench.fleet.clocks import Clocks
from ssbench.fleet.wire import HEARTBEAT_SECONDS, LOST_AFTER, UNNUMBERED, Heartbeat
from ssbench.fleet.worker_state import ClockOffset, WorkerState

#: Most workers that are kept; strangers can pretend to be any number.
MOST_WORKERS = 4096


#: The first number that the master gives; those that users give are lower.
FIRST_NUMBER = 1_000_001

#: Of all workers together, this many times in which they stood still are kept.
MOST_GAPS_OF_ALL = 10_000


class NotReady(enum.Enum):
    """Why a worker whose heartbeats arrive is not ready."""

    NEW = enum.auto()
    #: Another worker, which may still live, has its id.
    SAME_ID = enum.auto()
    #: It does not answer pings.
    UNREACHABLE = enum.auto()


class Membership:
    """The workers of one master. ``master`` is the number that the pings of this master carry.

    What a subclass does with their jobs: :meth:`_withdraw` is called when a worker can no longer be used,
    :meth:`_compare` with what each heartbeat says that the worker holds.
    """

    def __init__(self) -> None:
        self.master = secrets.randbits(62) + 1
        self.workers: dict[int, WorkerState] = {}
        self.events: list[events.Event] = []
        #: Whether workers came, went or changed, so that shares have to be counted again.
        self._changed = False
        self._holders: dict[int, WorkerState] = {}
        self._full = False
        self._gaps_kept = 0
        #: How many workers were given a number here.
        self._numbered = 0
        self._ticked: float | None = None

    def _begin(self, now: float) -> list[WorkerState]:
        """Begin another run; returns the workers that were ready before.

        Every worker has to answer a ping again before it is used: it may have gone while nobody listened.
        Events that nobody took are dropped.
        """
        self.events.clear()
        self._ticked = now
        self._gaps_kept = 0
        former = self.living()
        for worker in self.workers.values():
            worker.begin(now)
        self._changed = True
        return former

    def _withdraw(self, worker: WorkerState) -> int:
        """Use a worker no more; return how many jobs are lost with it."""
        worker.ready = False
        self._changed = True
        return 0

    def _compare(self, worker: WorkerState, held: Sequence[int]) -> None:
        """Take note of the batches that a worker says it holds."""

    def living(self) -> list[WorkerState]:
        """Return the workers that can be given work."""
        return [worker for worker in self.workers.values() if worker.ready]

    def known(self, instance: int) -> WorkerState | None:
        """Return the worker of that instance, if anything has come from it."""
        return self.workers.get(instance)

    def refused(self) -> list[WorkerState]:
        """Return the refused workers that still send something."""
        return [worker for worker in self.workers.values() if worker.refused and worker.alive]

    def to_ping(self, now: float) -> list[WorkerState]:
        """Return the workers whose next ping is due."""
        due = now - HEARTBEAT_SECONDS
        return [
            worker
            for worker in self.workers.values()
            if worker.alive and worker.pinged <= due and not worker.refused
        ]

    def heartbeat(self, beat: Heartbeat, run_id: int, now: float, wall: float = 0.0) -> None:
        """Take in a heartbeat: its worker is alive, holds batches and has received a ping.

        ``wall`` is the master's time of day, 0 where it does not matter.
        """
        worker = self.workers.get(beat.instance) or self._enter(
            WorkerState(
                self._number(beat), beat.instance, beat.host, beat.pid, beat.version, beat.capacity, now
            )
        )
        if worker is None or worker.ended:
            return
        if not worker.alive:
            worker.alive, worker.since = True, now
            # A machine that was suspended has a clock that stood still meanwhile.
            worker.offset, worker.clocks = ClockOffset(), Clocks()
        worker.last_seen = now
        if worker.refused:
            return
        if beat.master == self.master:
            worker.answered(beat.ping, beat.clock, now)
        self._set_capacity(worker, beat.capacity)
        worker.offset.observe(beat.clock, now)
        worker.load.observe(beat.clock, beat.cpu, beat.lag, beat.lag_max)
        worker.clocks.observe(
            beat.clock,
            now,
            beat.ping if beat.master == self.master else None,
            wall - beat.wall if wall and beat.wall else None,
        )
        if not worker.ready and now - worker.reached <= LOST_AFTER:
            self._admit(worker)
        if worker.used and beat.gaps:
            self._keep_gaps(worker, beat.gaps, now)
        self._compare(worker, beat.held if beat.run_id == run_id else [])

    def _number(self, beat: Heartbeat) -> int:
        """Return the id of a worker, a new one where it was given none."""
        if beat.worker_id != UNNUMBERED:
            return beat.worker_id
        self._numbered += 1
        return FIRST_NUMBER + self._numbered - 1

    def _keep_gaps(self, worker: WorkerState, gaps: Sequence[tuple[float, float]], now: float) -> None:
        """Keep the times in which a worker stood still, by its own clock, as far as they are in this run."""
        to_master = worker.offset.seconds
        for began, ended in gaps:
            gap = (max(began + to_master, worker.known_since), min(ended + to_master, now))
            if gap[0] < gap[1]:
                self._gaps_kept += worker.load.stood_still(began, gap, MOST_GAPS_OF_ALL - self._gaps_kept)

    def refuse(self, instance: int, worker_id: int, host: str, reason: str, now: float) -> None:
        """Refuse a worker for good; ``reason`` continues a sentence about it ("has the id of ...")."""
        worker = self.workers.get(instance) or self._enter(
            WorkerState(worker_id, instance, host, 0, "", 0, now)
        )
        if worker is None:
            return
        worker.last_seen = now
        worker.alive = not worker.ended
        if not worker.refused:
            self._withdraw(worker)
            worker.refusal = reason
            self.events.append(events.Refused(worker, reason))

    def leave(self, instance: int, reason: str) -> None:
        """Take note that a worker ends, or that its process has ended; ``reason`` is for the user."""
        worker = self.workers.get(instance)
        if worker is not None:
            self._end(worker, lambda _jobs: events.Left(worker, reason))

    def _end(self, worker: WorkerState, event: Callable[[int], events.Event]) -> None:
        """Use a worker no more, for good; ``event`` is told how many jobs are lost with it."""
        if worker.ended:
            return
        worker.ended = True
        worker.alive = False
        if worker.ready:
            self.events.append(event(self._withdraw(worker)))

    def tick(self, now: float) -> None:
        """Find the workers that are lost by now; call it several times a second.

        A master that was itself stopped, or got no CPU, has received nothing meanwhile; its own gap
        does not count against the workers.
        """
        if self._ticked is not None and now - self._ticked > HEARTBEAT_SECONDS:
            self._forgive(now - self._ticked)
        self._ticked = now
        for worker in self.workers.values():
            worker.away = False  # try again
            if worker.alive:
                self._look_at(worker, now)

    def _forgive(self, gap: float) -> None:
        """The master was held up for this many seconds."""
        for worker in self.workers.values():
            worker.forgive(gap)

    def not_ready(self, now: float) -> list[tuple[WorkerState, NotReady]]:
        """Return the workers whose heartbeats arrive and that cannot be used, and why."""
        found = []
        for worker in self.workers.values():
            if not worker.alive or worker.ready or worker.refused:
                continue
            if now - worker.reached <= LOST_AFTER:
                why = NotReady.SAME_ID
            elif now - worker.since <= 2 * HEARTBEAT_SECONDS:
                why = NotReady.NEW
            else:
                why = NotReady.UNREACHABLE
            found.append((worker, why))
        return found

    def _look_at(self, worker: WorkerState, now: float) -> None:
        silence = now - worker.last_seen
        # Where both directions fail, its last heartbeat may be a little younger than its last answer.
        silent = silence > 2 * HEARTBEAT_SECONDS
        if worker.ready and now - worker.reached > LOST_AFTER:
            jobs = self._withdraw(worker)
            worker.told = not silent
            self.events.append(
                events.Lost(worker, silence, jobs)
                if silent
                else events.CutOff(worker, now - worker.reached, jobs)
            )
        unreachable = not (silent or worker.refused) and now - max(worker.reached, worker.since) > LOST_AFTER
        if unreachable and not worker.told:
            worker.told = True
            self.events.append(events.Unreachable(worker))
        if silence > LOST_AFTER:
            worker.alive = False

    def _admit(self, worker: WorkerState) -> None:
        """Use a worker that can be reached, unless another one has its id."""
        holder = self._holders.get(worker.worker_id)
        if holder is None or not holder.ready:
            self._holders[worker.worker_id] = worker
            self.events.append(events.Back(worker) if worker.used else events.Joined(worker, worker.capacity))
            worker.ready = worker.used = True
            worker.told = False
            self._changed = True
        elif holder.last_seen > worker.since + HEARTBEAT_SECONDS:
            reason = (
                f"has the id of the worker on {holder.host} (pid {holder.pid});"
                " give each worker an id of its own"
            )
            self.refuse(worker.instance, worker.worker_id, worker.host, reason, worker.last_seen)

    def _enter(self, worker: WorkerState) -> WorkerState | None:
        if len(self.workers) >= MOST_WORKERS:
            forgotten = next((other for other in self.workers.values() if not other.alive), None)
            if forgotten is None:
                if not self._full:
                    self._full = True
                    self.events.append(events.Full(worker))
                return None
            del self.workers[forgotten.instance]
            if self._holders.get(forgotten.worker_id) is forgotten:
                del self._holders[forgotten.worker_id]
        self.workers[worker.instance] = worker
        return worker

    def _set_capacity(self, worker: WorkerState, capacity: int) -> None:
        if worker.capacity != capacity:
            worker.capacity = capacity
            self._changed = True
