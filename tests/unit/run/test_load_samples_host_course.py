"""What is put together of the readings of several processes of a run."""

from __future__ import annotations

import socket
from typing import cast

import pytest

from ssbench.base import host
from ssbench.base.host import CardCounters, HostCounters
from ssbench.fleet.worker_state import WorkerLoad, WorkerState
from ssbench.results.run_description import HostFacts
from ssbench.run import load_samples
from ssbench.statistics.load_generator import is_network_full

HERE = socket.gethostname()[:255]


class Presence:
    used = True


class Worker:
    """A worker whose heartbeats said this of its machine, ten seconds apart."""

    def __init__(self, name: str, pid: int, first: HostCounters, last: HostCounters) -> None:
        self.host, self.pid, self.presence, self.load = name, pid, Presence(), WorkerLoad()
        self.load.observe(100.0, 0.0, [], machine=first)
        self.load.observe(110.0, 0.0, [], machine=last)


def facts(
    monkeypatch: pytest.MonkeyPatch,
    *workers: Worker,
    kids: tuple[dict[int, float], ...] = ({}, {}),
    swift: tuple[dict[int, float], ...] = ({}, {}),
) -> list[HostFacts]:
    """Make the facts of a run of ten seconds in which the master used one second of CPU."""
    readings = iter(
        [HostCounters(2, 1.0, 3.0, 10.0, 0.0, 0.0, 0.0), HostCounters(2, 2.0, 9.0, 26.0, 1.0, 5.0, 1.0)]
    )
    children, servers, clock = iter(kids), iter(swift), iter([0.0, 10.0])
    monkeypatch.setattr(host, "read_host_counters", lambda: next(readings))
    monkeypatch.setattr(host, "read_child_cpu_times", lambda: next(children).items())
    monkeypatch.setattr(host, "read_cpu_times", lambda _: next(servers).items())
    monkeypatch.setattr(load_samples, "monotonic", lambda: next(clock))
    return list(load_samples.HostUsage(swift[0]).facts(cast("list[WorkerState]", list(workers))))


def test_processes_of_the_run_are_told_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    local = Worker(HERE, 7, HostCounters(2, 0.0, waited=0.0), HostCounters(2, 4.0, waited=1.0))
    by_hand = Worker(HERE, 8, HostCounters(2, 0.0, waited=0.0), HostCounters(2, 2.0, waited=6.0))
    far = Worker(
        "far", 7, HostCounters(4, 0.0, 0.5, 0.0, waited=0.0), HostCounters(4, 4.0, 0.75, 20.0, waited=0.5)
    )
    # 7 is the local worker, 9 a server of a local Swift.
    here, there = facts(monkeypatch, local, by_hand, far, kids=({7: 1.0, 9: 0.0}, {7: 5.0, 9: 3.0}))
    assert (here.host, here.cores, here.load_begin, here.load_end, here.processes) == (HERE, 2, 3.0, 9.0, 3)
    # 1 s of the master, 4 and 2 of its workers, 3 of its Swift; 16 of all processes, in 10 s on 2 cores.
    assert here.own_cpu == pytest.approx(10 / 20)
    assert here.other_cpu == pytest.approx(6 / 20)
    assert here.stolen == pytest.approx(1 / 20)
    assert (here.pressed, here.waited, here.denied) == (0.5, 0.6, pytest.approx(0.75))
    assert (there.host, there.load_begin, there.load_end) == ("far", 0.5, 0.75)
    assert (there.stolen, there.pressed) == (None, None)
    assert (there.own_cpu, there.other_cpu) == (pytest.approx(0.1), pytest.approx(0.4))
    assert there.denied == pytest.approx(0.5 / 4.5)


def test_the_busiest_network_card_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = tuple(CardCounters(name, 5e9, 5e9, 1.25e9) for name in ("eth0", "eth1"))
    ended = (CardCounters("eth0", 6e9, 5e9, 1.25e9), CardCounters("eth1", 5e9, 17e9, 1.25e9))
    far = Worker("far", 7, HostCounters(4, 0.0, cards=begun), HostCounters(4, 4.0, cards=ended))
    here, there = facts(monkeypatch, far)
    assert here.network is None
    assert there.network == pytest.approx(0.96)  # 12 GB in 10 s
    assert is_network_full(there)
    assert not is_network_full(here)


def test_a_local_swift_is_part_of_the_run_whoever_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    far = Worker("far", 7, HostCounters(4, 0.0), HostCounters(4, 4.0))
    # 20 and 21 are its servers, of which 21 is a child of this process, and 22 ends meanwhile.
    here, there = facts(
        monkeypatch,
        far,
        kids=({21: 1.0}, {21: 4.0}),
        swift=({20: 5.0, 21: 1.0, 22: 1.0}, {20: 10.0, 21: 4.0}),
    )
    # 1 s of the master, 5 and 3 of Swift; 16 of all processes, in 10 s on 2 cores.
    assert here.own_cpu == pytest.approx(9 / 20)
    assert here.swift_cpu == pytest.approx(8 / 20)
    assert here.other_cpu == pytest.approx(7 / 20)
    assert there.swift_cpu is None


def test_a_machine_of_which_little_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of which no heartbeat came, or one, and one whose kernel tells nothing."""
    never = Worker("never", 1, HostCounters(1, 0.0), HostCounters(1, 0.0))
    never.load.clear()
    once = [Worker(name, 1, HostCounters(1, 0.0), HostCounters(1, 0.0)) for name in ("once", HERE)]
    for each in once:
        each.load.clear()
        each.load.observe(5.0, 0.0, [], machine=HostCounters(1, 0.0))
    silent = Worker("silent", 1, HostCounters(1, 0.0), HostCounters(1, 5.0))
    _, found = facts(monkeypatch, never, *once, silent)
    assert found.host == "silent"
    assert found.own_cpu == 0.5
    assert [found.load_end, found.other_cpu, found.pressed, found.waited, found.denied] == [None] * 5
