"""How long workers that may still come are waited for, once all that came have exited."""

from __future__ import annotations

from typing import cast

import pytest
import zmq

from ssbench.base.errors import ExitCode
from ssbench.fleet import wire
from ssbench.fleet.descriptors import MAX_WORKERS
from ssbench.fleet.shutdown import Shutdown
from ssbench.fleet.sockets import MasterSockets


class Sockets:
    """Messages of workers that exit as soon as they have come, each at its second."""

    def __init__(self, moments: list[float]) -> None:
        self.now = 100.0
        self.moments = [self.now + moment for moment in moments]
        self.poller = self.results = self.work = self
        self.number = 0
        #: Seconds for which this process is stopped at each poll; it receives nothing meanwhile.
        self.stops: list[float] = []

    def poll(self, milliseconds: int) -> bool:
        if self.stops and (stopped := self.stops.pop(0)):
            self.now += stopped
            return False
        until = self.now + milliseconds / 1000
        there = bool(self.moments) and self.moments[0] <= until
        self.now = max(self.now, self.moments[0]) if there else until
        return there

    def recv(self, flags: int) -> bytes:
        if not self.moments or self.moments[0] > self.now:
            raise zmq.Again
        self.moments.pop(0)
        self.number += 1
        return wire.pack_message(wire.Goodbye(self.number, self.number, "it was told to"))

    def take_port_news(self) -> list[str]:
        return []


@pytest.mark.parametrize(
    ("moments", "seconds"),
    [
        ([], 5.0),
        ([0.5], 0.5 + 2.5),
        ([0.5, 0.6, 0.7], 0.7 + 2.5 + 0.1),
        ([0.5, 2.0, 5.5], 5.5 + 5.0),
        ([0.5, 3.2], 0.5 + 2.5),
    ],
    ids=["nobody", "one", "together", "far apart", "too late"],
)
def test_the_further_messages_are_apart_the_longer_is_the_wait_for_others(
    moments: list[float], seconds: float
) -> None:
    sockets = Sockets(moments)
    came = len([moment for moment in moments if moment < seconds])
    shutdown = Shutdown(cast(MasterSockets, sockets), lambda: sockets.now)
    shutdown.run()
    assert sockets.now - 100.0 == pytest.approx(seconds, abs=0.15)
    assert len(shutdown.exited) == came
    assert shutdown.exit_code == ExitCode.OK


def test_a_time_in_which_it_was_stopped_is_no_silence() -> None:
    sockets = Sockets([21.0])
    sockets.stops = [0.0, 20.0]
    shutdown = Shutdown(cast(MasterSockets, sockets), lambda: sockets.now)
    shutdown.run()
    assert len(shutdown.exited) == 1


def test_it_ends_on_a_machine_on_which_each_turn_takes_seconds() -> None:
    sockets = Sockets([])
    sockets.stops = [20.0] * 10
    Shutdown(cast(MasterSockets, sockets), lambda: sockets.now).run()
    assert sockets.stops


class LosingSockets(Sockets):
    """One worker: it is told, exits, and its last word is lost; or it has no connection to the work port."""

    def __init__(self, *, connected_until: float, beats_until: float) -> None:
        beats = [0.5 + number for number in range(60) if 0.5 + number <= beats_until]
        super().__init__(beats)
        self.connected_until = self.now + connected_until
        self.told = 0

    def recv(self, flags: int) -> bytes:
        if not self.moments or self.moments[0] > self.now:
            raise zmq.Again
        self.moments.pop(0)
        beat = {"protocol": wire.PROTOCOL, "worker_id": 7, "instance": 7, "run_id": 0, "clock": self.now}
        more = {"capacity": 1, "held": [], "cpu": 0.0, "lag": [], "host": "h", "pid": 1, "version": "1"}
        return wire.pack_message(wire.Heartbeat(**beat, **more, master=0, ping=0.0, wall=0.0))

    def send_multipart(self, frames: list[bytes], flags: int) -> None:
        if self.now >= self.connected_until:
            raise zmq.ZMQError(zmq.EHOSTUNREACH)
        self.told += 1


def shut_down(sockets: LosingSockets) -> Shutdown:
    shutdown = Shutdown(cast(MasterSockets, sockets), lambda: sockets.now)
    shutdown.run()
    return shutdown


def test_a_worker_whose_last_word_was_lost_has_exited() -> None:
    """It was one that did not exit, after ten seconds and with exit code 1."""
    found = shut_down(LosingSockets(connected_until=1.0, beats_until=1.0))
    assert (len(found.exited), found.remaining, found.exit_code) == (1, {}, ExitCode.OK)


@pytest.mark.parametrize(("connected_until", "told"), [(0.0, False), (60.0, True), (1.0, True)])
def test_a_worker_that_lives_has_not_exited(connected_until: float, told: bool) -> None:
    found = shut_down(LosingSockets(connected_until=connected_until, beats_until=60.0))
    assert (len(found.exited), [*found.remaining], found.exit_code) == (0, [7], ExitCode.FAILED)
    assert (7 in found.told) is told


class FloodedSockets(Sockets):
    """A stranger that sends a thousand messages a second for ever: of workers that exit, or of none."""

    def __init__(self, message: bytes = b"") -> None:
        super().__init__([])
        self.message = message
        self.until = self.now + 3600

    def poll(self, milliseconds: int) -> bool:
        assert self.now < self.until, "it does not end"
        self.now += milliseconds / 1000
        self.moments = [self.now] * 100
        return True

    def recv(self, flags: int) -> bytes:
        goodbye = super().recv(flags)
        return self.message or goodbye


def shut_down_flooded(sockets: FloodedSockets) -> Shutdown:
    shutdown = Shutdown(cast(MasterSockets, sockets), lambda: sockets.now)
    shutdown.run()
    return shutdown


def test_strangers_that_say_they_exit_are_counted_up_to_a_bound_and_do_not_prolong_it() -> None:
    found = shut_down_flooded(FloodedSockets())
    assert len(found.exited) == MAX_WORKERS
    assert found.exit_code == ExitCode.OK


def test_messages_that_cannot_be_decoded_are_counted_and_few_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = shut_down_flooded(FloodedSockets(b"\xc1"))
    assert found.invalid_messages > 1000
    assert caplog.text.count("Dropped an invalid message") == 3
