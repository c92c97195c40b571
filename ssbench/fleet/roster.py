"""Which workers there are, which of them can be given jobs, which are lost.

Pure: it knows no socket and is given the time. What happens to workers it reports as
:mod:`ssbench.fleet.fleet_events`. The rules:

* A worker is ready, and gets jobs, once it has answered a ping: only then both directions are known to
  work. Each heartbeat interval it gets another one. Of thousands, those whose results acknowledge jobs get
  fewer (:func:`~ssbench.fleet.prefetch.scale_of_fleet`): that is an answer too.
* A worker whose heartbeats, or whose answers, have not come for
  :data:`~ssbench.fleet.wire.LOST_AFTER` seconds is lost. Pings tell it so, and it drops its
  jobs. Once it answers such a ping it is used again.
* Of two workers with one id the later one waits. It is refused when a heartbeat of the earlier one comes more
  than a heartbeat interval after it joined, and used when the earlier one is lost or has ended: a worker that
  was killed and started again at once is used.
"""

from __future__ import annotations

import enum
import math
import secrets
from collections.abc import Callable, Iterator, Sequence

from ssbench.fleet import fleet_events
from ssbench.fleet.descriptors import MAX_WORKERS
from ssbench.fleet.wire import HEARTBEAT_SECONDS, LOST_AFTER, UNNUMBERED, Heartbeat
from ssbench.fleet.worker_state import WorkerState

#: The first number that the master gives; those that users give are lower.
FIRST_WORKER_NUMBER = 1_000_001

#: Of all workers together, this many times in which they stalled are kept.
MAX_FLEET_GAPS = 10_000


class NotReady(enum.Enum):
    """Why a worker whose heartbeats arrive is not ready."""

    NEW = enum.auto()
    #: Another worker, which may still live, has its id.
    SAME_ID = enum.auto()
    #: It does not answer pings.
    UNREACHABLE = enum.auto()
    #: It does not answer pings, and another one on its host does.
    UNANSWERED = enum.auto()


class Roster:
    """The workers of one master. ``master`` is the number that the pings of this master carry.

    ``tell`` is called with each event, ``admit`` with a worker that is to get jobs from now on, ``withdraw``
    with one that is to get none any more; it returns how many jobs are lost with it.
    """

    def __init__(
        self,
        tell: Callable[[fleet_events.Event], None],
        admit: Callable[[WorkerState], None],
        withdraw: Callable[[WorkerState], int],
    ) -> None:
        self.master = secrets.randbits(62) + 1
        self.workers: dict[int, WorkerState] = {}
        self._tell = tell
        self._use = admit
        self._no_longer_use = withdraw
        self._holders: dict[int, WorkerState] = {}
        self._full = False
        self._gaps_kept = 0
        #: How many workers were given a number here.
        self._numbered = 0
        self._ticked: float | None = None
        #: Until then all workers that are alive are in touch.
        self._in_touch_until = -math.inf

    def begin(self, now: float) -> list[WorkerState]:
        """Begin another run; returns the workers that were ready before.

        Every worker has to answer a ping again before it is used: it may have gone between the runs.
        """
        self._ticked = now
        self._gaps_kept = 0
        former = self.living()
        for worker in self.workers.values():
            worker.begin(now)
        return former

    def _withdraw(self, worker: WorkerState) -> int:
        """Use a worker no more; return how many jobs are lost with it."""
        worker.presence.ready = False
        return self._no_longer_use(worker)

    def _ready(self) -> Iterator[WorkerState]:
        return (worker for worker in self.workers.values() if worker.presence.ready)

    def living(self) -> list[WorkerState]:
        """Return the workers that can be given work."""
        return [worker for worker in self.workers.values() if worker.presence.ready]

    @property
    def has_living(self) -> bool:
        """Whether any worker can be given work."""
        return any(worker.presence.ready for worker in self.workers.values())

    def known(self, instance: int) -> WorkerState | None:
        """Return the worker of that instance, if anything has come from it."""
        return self.workers.get(instance)

    def refused(self) -> list[WorkerState]:
        """Return the refused workers that still send something."""
        return [
            worker for worker in self.workers.values() if worker.presence.refused and worker.presence.alive
        ]

    def to_ping(self, now: float) -> list[WorkerState]:
        """Return the workers whose next ping is due."""
        return [
            worker
            for worker in self.workers.values()
            if worker.presence.ping_due <= now and worker.presence.alive and not worker.presence.refused
        ]

    def heartbeat(self, beat: Heartbeat, now: float, wall: float) -> WorkerState | None:
        """Receive a heartbeat: its worker is alive and has received a ping. Return the worker.

        None: it is not used, whatever it says. ``wall`` is the master's time of day, 0 where it does not
        matter.
        """
        worker = self.workers.get(beat.instance) or self._enter(
            WorkerState(
                self._number(beat),
                beat.instance,
                beat.host,
                beat.pid,
                beat.version,
                beat.capacity,
                now,
                beat.label,
                beat.site,
            )
        )
        if worker is None or worker.presence.ended:
            return None
        if not worker.presence.alive:
            worker.presence.alive, worker.presence.since = True, now
            # A machine that was suspended has a clock that stalled meanwhile.
            worker.clock.forget()
        worker.presence.last_seen = now
        if worker.presence.refused:
            return None
        if beat.master == self.master:
            worker.presence.answered(beat.ping, beat.clock, now)
        answers = beat.master == self.master and beat.ping <= now
        worker.clock.offset.observe(beat.clock, now, beat.ping if answers else None)
        worker.load.observe(beat.clock, beat.cpu, beat.lag, beat.lag_max, beat.machine)
        worker.clock.course.observe(
            beat.clock,
            now,
            beat.ping if beat.master == self.master else None,
            wall - beat.wall if wall and beat.wall else None,
        )
        if not worker.presence.ready and now - worker.presence.reached <= LOST_AFTER:
            self._admit(worker, beat.capacity)
        self.keep_gaps(worker, beat.gaps, now)
        return worker

    def _number(self, beat: Heartbeat) -> int:
        """Return the id of a worker, a new one where it was given none."""
        if beat.worker_id != UNNUMBERED:
            return beat.worker_id
        self._numbered += 1
        return FIRST_WORKER_NUMBER + self._numbered - 1

    def keep_gaps(self, worker: WorkerState, gaps: Sequence[tuple[float, float]], now: float) -> None:
        """Keep the times in which a worker stalled, by its own clock, as far as it is used in this run."""
        if not worker.presence.used:
            return
        to_master = worker.clock.offset.seconds
        for began, ended in gaps:
            gap = (max(began + to_master, worker.presence.known_since), min(ended + to_master, now))
            if gap[0] < gap[1]:
                self._gaps_kept += worker.load.stood_still(began, gap, MAX_FLEET_GAPS - self._gaps_kept)

    def refuse(self, instance: int, worker_id: int, host: str, reason: str, now: float) -> None:
        """Refuse a worker for good; ``reason`` continues a sentence about it ("has the id of ...")."""
        worker = self.workers.get(instance) or self._enter(
            WorkerState(worker_id, instance, host, 0, "", 0, now)
        )
        if worker is None:
            return
        worker.presence.last_seen = now
        worker.presence.alive = not worker.presence.ended
        if not worker.presence.refused:
            self._withdraw(worker)
            worker.presence.refusal = reason
            self._tell(fleet_events.Refused(worker, reason))

    def leave(self, instance: int, reason: str) -> None:
        """Take note that a worker ends, or that its process has ended; ``reason`` is for the user."""
        worker = self.workers.get(instance)
        if worker is not None:
            self.end(worker, lambda _jobs: fleet_events.Left(worker, reason))

    def end(self, worker: WorkerState, event: Callable[[int], fleet_events.Event]) -> None:
        """Use a worker no more, for good; ``event`` is called with the number of jobs lost with it."""
        if worker.presence.ended:
            return
        worker.presence.ended = True
        worker.presence.alive = False
        if worker.presence.ready:
            self._tell(event(self._withdraw(worker)))

    def tick(self, now: float) -> float:
        """Find the workers that are lost by now; call it several times a second.

        A master that was itself stopped, or got no CPU, has received nothing meanwhile; its own gap
        does not count against the workers. Returns the seconds of that gap, 0 without one.
        """
        gap = 0.0 if self._ticked is None else now - self._ticked
        self._ticked = now
        if gap <= HEARTBEAT_SECONDS:
            gap = 0.0
        if gap:
            for worker in self.workers.values():
                worker.presence.forgive(gap)
        # To look at thousands at each tick takes part of each second.
        if now >= self._in_touch_until:
            self._look_at_all(now)
        return gap

    def _look_at_all(self, now: float) -> None:
        """Look closer at workers that are not in touch."""
        oldest = now  # whoever comes later is in touch for longer
        for worker in self.workers.values():
            presence = worker.presence
            if presence.alive:
                # Of one that is refused, or known not to answer, only the silence matters.
                is_written_off = presence.refused or presence.told
                heard = presence.last_seen if is_written_off else min(presence.last_seen, presence.reached)
                oldest = min(oldest, heard)
                if now - heard > LOST_AFTER:
                    self._look_at(worker, now)
        self._in_touch_until = oldest + LOST_AFTER

    def not_ready(self, now: float) -> list[tuple[WorkerState, NotReady]]:
        """Return the workers whose heartbeats arrive and that cannot be used, and why."""
        found = []
        reached = {worker.host for worker in self.living()}
        for worker in self.workers.values():
            if not worker.presence.alive or worker.presence.ready or worker.presence.refused:
                continue
            if now - worker.presence.reached <= LOST_AFTER:
                why = NotReady.SAME_ID
            elif now - worker.presence.since <= 2 * HEARTBEAT_SECONDS:
                why = NotReady.NEW
            else:
                why = NotReady.UNANSWERED if worker.host in reached else NotReady.UNREACHABLE
            found.append((worker, why))
        return found

    def _look_at(self, worker: WorkerState, now: float) -> None:
        silence = now - worker.presence.last_seen
        # Where both directions fail, its last heartbeat may be a little younger than its last answer.
        silent = silence > 2 * HEARTBEAT_SECONDS
        if worker.presence.ready and now - worker.presence.reached > LOST_AFTER:
            jobs = self._withdraw(worker)
            worker.presence.lose()
            worker.presence.told = not silent
            self._tell(
                fleet_events.Lost(worker, silence, jobs)
                if silent
                else fleet_events.CutOff(worker, now - worker.presence.reached, jobs)
            )
        unreachable = (
            not (silent or worker.presence.refused)
            and now - max(worker.presence.reached, worker.presence.since) > LOST_AFTER
        )
        if unreachable and not worker.presence.told:
            worker.presence.told = True
            reached = any(other.host == worker.host for other in self._ready())
            self._tell(fleet_events.Unanswered(worker) if reached else fleet_events.Unreachable(worker))
        if silence > LOST_AFTER:
            worker.presence.alive = False

    def _admit(self, worker: WorkerState, capacity: int) -> None:
        """Use a worker that can be reached, unless another one has its id."""
        holder = self._holders.get(worker.worker_id)
        if holder is None or not holder.presence.ready:
            self._holders[worker.worker_id] = worker
            self._tell(
                fleet_events.Back(worker)
                if worker.presence.used
                else fleet_events.WorkerJoined(worker, capacity)
            )
            worker.presence.ready = worker.presence.used = True
            worker.presence.told = False
            self._use(worker)
        elif holder.presence.last_seen > worker.presence.since + HEARTBEAT_SECONDS:
            reason = (
                f"has the id of the worker on {holder.host} (pid {holder.pid});"
                " give each worker an id of its own"
            )
            self.refuse(worker.instance, worker.worker_id, worker.host, reason, worker.presence.last_seen)

    def _enter(self, worker: WorkerState) -> WorkerState | None:
        if len(self.workers) >= MAX_WORKERS:
            forgotten = next((other for other in self.workers.values() if not other.presence.alive), None)
            if forgotten is None:
                if not self._full:
                    self._full = True
                    self._tell(fleet_events.Full(worker))
                return None
            del self.workers[forgotten.instance]
            if self._holders.get(forgotten.worker_id) is forgotten:
                del self._holders[forgotten.worker_id]
        self.workers[worker.instance] = worker
        return worker
