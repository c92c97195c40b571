"""Which workers there are, without jobs: ids, and those that have none."""

from __future__ import annotations

import pytest
from heartbeats import make_heartbeat
from said import ID_TAKEN

from ssbench.fleet import fleet_events
from ssbench.fleet.descriptors import MAX_WORKERS
from ssbench.fleet.roster import FIRST_WORKER_NUMBER, NotReady, Roster
from ssbench.fleet.wire import HEARTBEAT_SECONDS, LOST_AFTER, UNNUMBERED
from ssbench.fleet.worker_state import WorkerState


class Gate:
    """A roster, and what it told of."""

    def __init__(self) -> None:
        self.events: list[fleet_events.Event] = []
        self.used: list[int] = []
        self.withdrawn: list[int] = []
        self.roster = Roster(
            self.events.append, lambda worker: self.used.append(worker.instance), self._withdraw
        )

    def _withdraw(self, worker: WorkerState) -> int:
        self.withdrawn.append(worker.instance)
        return 3

    def hear(
        self,
        instance: int,
        now: float,
        *,
        worker_id: int | None = None,
        answers: bool = True,
        ping: float | None = None,
        host: str = "h",
        gaps: list[tuple[float, float]] | None = None,
        clock: float = 0.0,
        times_of_day: tuple[float, float] | None = None,
    ) -> WorkerState | None:
        """Receive a heartbeat; ``times_of_day`` are those of the worker and of the master.

        It answers a ping that was sent now, or then.
        """
        worker_s, *master_s = times_of_day or (0.0,)
        return self.roster.heartbeat(
            make_heartbeat(
                instance,
                worker_id=instance if worker_id is None else worker_id,
                run_id=1,
                clock=clock,
                host=host,
                gaps=gaps or [],
                wall=worker_s,
                **({"master": self.roster.master, "ping": now if ping is None else ping} if answers else {}),
            ),
            now,
            master_s[0] if master_s else 0.0,
        )

    def kinds(self) -> list[type[fleet_events.Event]]:
        happened, self.events[:] = [*self.events], []
        return [type(event) for event in happened]


def test_workers_that_were_given_no_id_get_one_each_beyond_those_of_users() -> None:
    gate = Gate()
    names = [gate.hear(instance, 0.0, worker_id=UNNUMBERED) for instance in (5, 6)]
    assert [worker and worker.worker_id for worker in names] == [FIRST_WORKER_NUMBER, FIRST_WORKER_NUMBER + 1]
    again = gate.hear(5, 1.0, worker_id=UNNUMBERED)
    assert again is names[0]
    assert [worker.instance for worker in gate.roster.living()] == [5, 6]
    assert (gate.used, gate.kinds()) == ([5, 6], [fleet_events.WorkerJoined, fleet_events.WorkerJoined])


def test_one_that_does_not_answer_is_not_ready_and_the_reason_depends_on_its_host() -> None:
    gate = Gate()
    gate.hear(1, 0.0, answers=False)
    assert [why for _, why in gate.roster.not_ready(2 * HEARTBEAT_SECONDS)] == [NotReady.NEW]
    later = 2 * HEARTBEAT_SECONDS + 0.1
    assert [why for _, why in gate.roster.not_ready(later)] == [NotReady.UNREACHABLE]
    gate.hear(2, later, host="other")
    assert [why for _, why in gate.roster.not_ready(later)] == [NotReady.UNREACHABLE]
    gate.hear(3, later)
    assert [why for _, why in gate.roster.not_ready(later)] == [NotReady.UNANSWERED]
    assert gate.used == [2, 3]


def test_one_is_new_for_two_heartbeat_intervals_from_when_it_came() -> None:
    gate = Gate()
    gate.hear(1, 100.0, answers=False)
    newest = 100.0 + 2 * HEARTBEAT_SECONDS
    assert [why for _, why in gate.roster.not_ready(newest)] == [NotReady.NEW]
    assert [why for _, why in gate.roster.not_ready(newest + 0.1)] == [NotReady.UNREACHABLE]


def test_who_is_pinged_and_when() -> None:
    gate = Gate()
    for instance in (1, 2, 3):
        worker = gate.hear(instance, 0.0)
        assert worker is not None
        worker.presence.pinged_at(float(instance))
    gate.roster.refuse(3, 3, "h", "why", 0.0)
    due = gate.roster.to_ping(1.0 + HEARTBEAT_SECONDS)
    assert [worker.instance for worker in due] == [1]
    gate.roster.leave(1, "it was asked to")
    assert gate.roster.to_ping(100.0) == [gate.roster.known(2)]


def test_one_that_leaves_is_gone_for_good_and_told_of_once() -> None:
    gate = Gate()
    worker = gate.hear(1, 0.0)
    gate.kinds()
    gate.roster.leave(1, "why")
    assert gate.events == [fleet_events.Left(worker, "why")]
    assert gate.withdrawn == [1]
    gate.roster.leave(1, "why")
    gate.roster.leave(9, "unknown")
    assert gate.hear(1, 1.0) is None
    assert len(gate.events) == 1
    assert gate.roster.living() == []


def test_one_that_is_lost_comes_back_when_it_answers_again() -> None:
    gate = Gate()
    gate.hear(1, 0.0)
    gate.kinds()
    for step in range(1, 200):
        gate.roster.tick(step / 10)
        if gate.events:
            break
    lost = gate.events[0]
    assert isinstance(lost, fleet_events.Lost)
    assert step / 10 == LOST_AFTER + 0.1
    assert (lost.jobs, gate.withdrawn) == (3, [1])
    gate.kinds()
    gate.hear(1, 30.0, answers=False)
    assert gate.kinds() == []
    gate.hear(1, 31.0)
    assert gate.kinds() == [fleet_events.Back]
    assert gate.used == [1, 1]


def test_one_that_is_lost_is_used_again_only_when_it_has_heard_of_that() -> None:
    gate = Gate()
    worker = gate.hear(1, 0.0)
    assert worker is not None
    worker.presence.pinged_at(3.0)
    gate.roster.tick(0.5)
    for step in range(1, 10):
        gate.roster.tick(float(step))
    assert (worker.presence.ready, worker.presence.lost) == (False, 1)
    assert gate.kinds() == [fleet_events.WorkerJoined, fleet_events.Lost]
    # Until then it has the jobs that it had: others may have got them.
    for ping, told in ((3.0, []), (9.5, [fleet_events.Back])):
        gate.hear(1, 10.0, ping=ping)
        assert gate.kinds() == told


def test_of_two_with_one_id_the_later_one_is_used_when_the_earlier_one_ends() -> None:
    gate = Gate()
    gate.hear(1, 0.0, worker_id=7)
    gate.hear(2, 0.5, worker_id=7)
    assert [why for _, why in gate.roster.not_ready(0.5)] == [NotReady.SAME_ID]
    gate.roster.leave(1, "why")
    gate.hear(2, 1.0, worker_id=7)
    assert gate.used == [1, 2]
    assert gate.roster.refused() == []


def test_of_two_with_one_id_the_later_one_is_refused_when_the_earlier_one_goes_on() -> None:
    gate = Gate()
    gate.hear(1, 0.0, worker_id=7)
    gate.hear(2, 0.5, worker_id=7)
    gate.hear(1, 0.5 + HEARTBEAT_SECONDS, worker_id=7)
    gate.hear(2, 0.6 + HEARTBEAT_SECONDS, worker_id=7)
    assert gate.roster.refused() == []
    gate.hear(1, 0.7 + HEARTBEAT_SECONDS, worker_id=7)
    gate.hear(2, 0.8 + HEARTBEAT_SECONDS, worker_id=7)
    (refused,) = gate.roster.refused()
    assert refused.instance == 2
    assert f"{ID_TAKEN} h (pid 1)" in (refused.presence.refusal or "")
    assert gate.used == [1]


def test_another_run_begins_with_nobody_ready_and_names_those_that_were() -> None:
    gate = Gate()
    gate.hear(1, 0.0)
    gate.hear(2, 0.0, answers=False)
    assert [worker.instance for worker in gate.roster.begin(5.0)] == [1]
    assert gate.roster.living() == []
    # The time between the runs was no gap.
    assert gate.roster.tick(5.0 + HEARTBEAT_SECONDS) == 0.0
    gate.kinds()
    gate.hear(1, 6.0)
    assert gate.kinds() == [fleet_events.WorkerJoined]


def test_a_gap_of_the_master_is_one_that_is_longer_than_a_heartbeat_interval() -> None:
    gate = Gate()
    gate.hear(1, 0.0)
    assert gate.roster.tick(50.0) == 0.0  # the first time there is none
    gate = Gate()
    gate.hear(1, 0.0)
    assert gate.roster.tick(0.0) == 0.0
    assert gate.roster.tick(HEARTBEAT_SECONDS) == 0.0
    gate.kinds()
    assert gate.roster.tick(HEARTBEAT_SECONDS + 50.0) == 50.0
    assert gate.kinds() == []
    assert len(gate.roster.living()) == 1


def test_in_a_full_roster_one_that_is_gone_makes_room_and_otherwise_it_is_told_once() -> None:
    gate = Gate()
    for instance in range(1, MAX_WORKERS + 1):
        gate.hear(instance, 0.0, answers=False)
    assert gate.hear(MAX_WORKERS + 1, 0.0) is None
    assert gate.hear(MAX_WORKERS + 2, 0.0) is None
    assert gate.kinds() == [fleet_events.Full]
    gate.roster.leave(5, "why")
    assert gate.hear(MAX_WORKERS + 3, 0.0) is not None
    assert gate.roster.known(5) is None
    assert len(gate.roster.workers) == MAX_WORKERS


def test_the_times_in_which_a_worker_stalled_are_kept_as_far_as_they_are_in_the_run() -> None:
    gate = Gate()
    worker = gate.hear(1, 100.0, clock=0.0)  # its clock is 100 s behind
    assert worker is not None
    gate.roster.begin(102.0)
    gate.hear(1, 103.0, clock=3.0, gaps=[(1.0, 1.5), (1.5, 2.5), (2.7, 9.0)])
    kept = [(round(began, 6), round(ended, 6)) for began, ended in worker.load.gaps]
    assert kept == [(102.0, 102.5), (102.7, 103.0)]


def test_an_answer_to_a_ping_counts_for_as_long_as_without_one_a_worker_is_lost() -> None:
    for seconds, used in ((LOST_AFTER, [1, 2]), (LOST_AFTER + 0.1, [1])):
        gate = Gate()
        gate.hear(1, 0.0, worker_id=7)
        gate.hear(2, 0.5, worker_id=7)
        gate.roster.leave(1, "why")
        gate.hear(2, 0.5 + seconds, worker_id=7, answers=False)
        assert gate.used == used


def test_clocks_are_known_by_answers_to_pings_of_this_master() -> None:
    for answers in (True, False):
        gate = Gate()
        for moment in range(1, 30):
            worker = gate.hear(1, float(moment), clock=0.99 * moment, answers=answers)
        assert worker is not None
        assert worker.clock.course.slope == (pytest.approx(0.01, rel=0.2) if answers else None)


@pytest.mark.parametrize(
    ("of_worker", "of_master", "offset"), [(1e9, 1e9 + 7.0, 7.0), (0.0, 1e9, None), (1e9, 0.0, None)]
)
def test_times_of_day_are_compared_where_both_are_known(
    of_worker: float, of_master: float, offset: float | None
) -> None:
    gate = Gate()
    worker = gate.hear(1, 5.0, times_of_day=(of_worker, of_master))
    assert worker is not None
    assert worker.clock.course.wall_offset == offset


@pytest.mark.parametrize("has_ended", [False, True])
def test_one_that_is_refused_is_heard_unless_it_has_ended(has_ended: bool) -> None:
    gate = Gate()
    worker = gate.hear(1, 0.0)
    assert worker is not None
    worker.presence.alive, worker.presence.ended = False, has_ended
    gate.roster.refuse(1, 1, "h", "why", 3.0)
    assert worker.presence.alive is not has_ended
    assert (worker.presence.last_seen, worker.presence.refusal) == (3.0, "why")
    gate.roster.refuse(1, 1, "h", "another", 4.0)
    assert (worker.presence.last_seen, worker.presence.refusal) == (4.0, "why")


def test_the_clock_of_one_that_was_lost_begins_anew() -> None:
    """A machine that was suspended for 40 s is later by that from then on."""
    gate = Gate()
    worker = gate.hear(1, 100.0, clock=90.0)
    assert worker is not None
    assert worker.clock.offset.most == 10.0
    gate.hear(1, 101.0, clock=51.0, answers=False)
    assert worker.clock.offset.most == 10.0  # while it is there that is a message that took long
    gate.roster.tick(101.0 + LOST_AFTER + 0.1)
    gate.roster.tick(102.0 + LOST_AFTER + 0.1)
    assert not worker.presence.alive
    gate.hear(1, 150.0, clock=100.0, answers=False)
    assert worker.presence.alive
    assert (worker.clock.offset.most, worker.presence.since) == (50.0, 150.0)


@pytest.mark.parametrize("silence", [1.9, 2.1])
def test_one_that_does_not_answer_is_cut_off_and_one_that_is_not_heard_is_lost(silence: float) -> None:
    """Heartbeats come each second: two may be missing."""
    gate = Gate()
    worker = gate.hear(1, 0.25)
    assert worker is not None
    now = LOST_AFTER + 0.5
    for second in range(1, int(now - silence * HEARTBEAT_SECONDS) + 1):
        gate.roster.tick(float(second))
        gate.hear(1, float(second), answers=False)
    worker.presence.last_seen = now - silence * HEARTBEAT_SECONDS
    for before in (1.5, 0.75):
        gate.roster.tick(now - before)
    gate.kinds()
    gate.roster.tick(now)
    (told,) = gate.events
    if silence < 2:
        assert told == fleet_events.CutOff(worker, LOST_AFTER + 0.25, 3)
    else:
        assert told == fleet_events.Lost(worker, pytest.approx(silence * HEARTBEAT_SECONDS), 3)
    assert not worker.presence.ready
    assert worker.presence.told is (silence < 2)


@pytest.mark.parametrize("came", [0.0, 3.0])
def test_a_worker_is_lost_at_the_first_tick_after_its_time_whoever_else_is_in_touch(came: float) -> None:
    gate = Gate()
    for tick in range(100):
        now = tick / 8
        if tick % 8 == 0:
            gate.hear(1, now)
            if came <= now <= 4.0:
                gate.hear(2, now)
        gate.roster.tick(now)
        lost = [event.worker.instance for event in gate.events if isinstance(event, fleet_events.Lost)]
        assert lost == ([2] if now > 4.0 + LOST_AFTER else [])


@pytest.mark.parametrize("refused", [True, False])
def test_one_that_is_refused_or_does_not_answer_makes_no_tick_look_at_all(
    monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    gate = Gate()
    looked: list[float] = []
    look_at_all = gate.roster._look_at_all
    monkeypatch.setattr(gate.roster, "_look_at_all", lambda now: (looked.append(now), look_at_all(now)))
    for tick in range(240):
        now = tick / 8
        if tick % 8 == 0:
            gate.hear(1, now)
            if now <= 25.0:
                gate.hear(2, now, answers=False)
        if refused and tick == 0:
            gate.roster.refuse(2, 2, "h", "is of another version", now)
        gate.roster.tick(now)
    assert sum(now > LOST_AFTER + 1 for now in looked) <= 4
    other = gate.roster.known(2)
    assert other is not None
    assert other.presence.alive
    gate.roster.tick(25.0 + LOST_AFTER + 0.25)
    assert not other.presence.alive


def test_each_heartbeat_tells_how_busy_a_worker_is_and_a_new_one_holds_nothing() -> None:
    gate = Gate()
    worker = gate.hear(1, 0.0, clock=5.0)
    assert worker is not None
    held = worker.held
    assert (held.outstanding, held.users_told, held.completed, held.begun) == (0, 0, 0, 0)
    assert (held.recalled, held.parameters, [*held.unbegun], [*held.unacknowledged]) == (False, b"", [], [])
    assert worker.load.cpu_share is None
    gate.hear(1, 1.0, clock=6.0)
    assert worker.load.cpu_share == 0.0
    presence = worker.presence
    assert (presence.refused, presence.ended, presence.told, presence.lost) == (False, False, False, 0)
    assert (presence.alive, presence.ready, presence.used) == (True, True, True)
