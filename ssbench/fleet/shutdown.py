"""Tell all workers that connect to exit, and note which did."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import zmq

from ssbench.base.errors import ExitCode, ProtocolError, WireError
from ssbench.base.record import Count, JsonHead
from ssbench.fleet import wire
from ssbench.fleet.descriptors import MAX_WORKERS
from ssbench.fleet.sockets import MasterSockets

_log = logging.getLogger(__name__)

#: Seconds without a message after which no worker is left. A worker comes back to a new master within a
#: second, or two where a packet is lost: where all that came have exited, less is enough, and as much more as
#: two messages were apart. On a machine with much load they are, and there some worker may not run for long.
_SILENCE_SECONDS = 5.0
_SILENCE_AFTER_EXITS_SECONDS = 2.5

#: Seconds in which no worker comes or exits after which those that still send messages are given up.
_NO_PROGRESS_SECONDS = 10.0

#: Seconds after which a worker that has not exited is asked again.
_REPEAT_SECONDS = 1.0

#: Seconds without a heartbeat after which a worker that was asked has exited, where its connection has ended:
#: the message in which it says so was lost. One that lives sends one each second, and comes back within two.
_GONE_SECONDS = 3.5

#: A turn of the loop that took longer counts as so many seconds: this process was stopped, or got no CPU,
#: and has received nothing meanwhile.
_MAX_TURN_SECONDS = 1.0

#: Messages that are taken in before anything else is looked at.
_MESSAGES_A_TURN = 1000

#: More workers than this are counted instead of being named one by one.
MAX_NAMED_WORKERS = 20

#: Messages that cannot be decoded are counted beyond so many: strangers can send any number.
_REPORTED_MESSAGES = 3


class ShutdownReport(JsonHead, frozen=True, kw_only=True):
    """Which workers were asked to exit and have done so; ``unnamed`` is how many further ones did not."""

    format: Literal["ssbench workers"] = "ssbench workers"
    version: Literal[1] = 1
    exited: tuple[str, ...]
    remaining: tuple[str, ...]
    unnamed: Count


class Shutdown:
    """Asks every worker that connects to exit, until no worker sends messages any more.

    ``clock`` returns seconds, as time.monotonic does.
    """

    def __init__(self, sockets: MasterSockets, clock: Callable[[], float] = time.monotonic) -> None:
        #: The names of the workers that have not exited, by instance.
        self.remaining: dict[int, str] = {}
        #: The names of the workers that have exited, by instance.
        self.exited: dict[int, str] = {}
        #: The workers that there was no room to take note of; they were not asked to exit.
        self.turned_away: set[int] = set()
        #: Workers that were asked; the others in :attr:`remaining` have no connection to the work port.
        self.told: set[int] = set()
        #: Messages that could not be decoded.
        self.invalid_messages = 0
        self._heard: dict[int, float] = {}
        self._sockets = sockets
        self._clock = clock
        self._order = wire.pack_notice(wire.Exit())
        self._progress = 0.0
        #: Seconds for which this process was stopped so far.
        self._stalled = 0.0
        #: The longest time between two moments at which messages came, in seconds.
        self._apart = 0.0

    @property
    def exit_code(self) -> ExitCode:
        """Whether all that connected have exited."""
        return ExitCode.FAILED if self.remaining or self.turned_away else ExitCode.OK

    def report(self) -> ShutdownReport:
        """Return what was found."""
        return ShutdownReport(
            exit_code=self.exit_code,
            exited=tuple(self.exited.values()),
            remaining=tuple(self.remaining.values()),
            unnamed=len(self.turned_away),
        )

    def run(self) -> None:
        """Ask them; return after some seconds of silence, or when that does not come."""
        sockets, clock = self._sockets, self._clock
        heard = asked = turned = self._progress = clock()
        while True:
            now = clock()
            stalled = max(0.0, now - turned - _MAX_TURN_SECONDS)
            turned = now
            heard += stalled
            self._progress += stalled
            self._stalled += stalled
            if now - heard >= self._silence or now - self._progress >= _NO_PROGRESS_SECONDS:
                return
            if now - asked > _REPEAT_SECONDS:
                asked = now
                for instance in [*self.remaining]:
                    if not self._tell(instance) and self._is_gone(instance, now):
                        self._note_exit(instance)
            for text in sockets.take_port_news():
                _log.warning("%s", text)
            if sockets.poller.poll(100):
                before, heard = heard, clock()
                if self.exited or self.remaining:
                    self._apart = max(self._apart, heard - before)
                self._receive_some()

    @property
    def _silence(self) -> float:
        all_exited = self.exited and not self.remaining and not self.turned_away
        return (
            min(_SILENCE_AFTER_EXITS_SECONDS + self._apart, _SILENCE_SECONDS)
            if all_exited
            else _SILENCE_SECONDS
        )

    def _receive_some(self) -> None:
        with suppress(zmq.Again):
            for _ in range(_MESSAGES_A_TURN):
                self._receive(self._sockets.results.recv(zmq.NOBLOCK))

    def _tell(self, instance: int) -> bool:
        """Ask a worker; return whether it is connected. One that is not is asked the next time."""
        with suppress(zmq.ZMQError):
            self._sockets.work.send_multipart([wire.work_address(instance), self._order], zmq.NOBLOCK)
            self.told.add(instance)
            return True
        return False

    def _is_gone(self, instance: int, now: float) -> bool:
        return instance in self.told and now - self._stalled - self._heard[instance] >= _GONE_SECONDS

    def _receive(self, frame: bytes) -> None:
        try:
            message = wire.unpack_from_worker(frame)
        except ProtocolError as error:
            # Such a worker exits when it receives the order, because it cannot read it.
            if error.worker is not None:
                self._meet(error.worker[1], f"{wire.worker_name(error.worker[0])} (of another version)")
            return
        except WireError as error:
            self.invalid_messages += 1
            if self.invalid_messages <= _REPORTED_MESSAGES:
                _log.warning("Dropped an invalid message: %s", str(error)[:200])
            return
        if isinstance(message, wire.Heartbeat):
            name = wire.worker_name(message.worker_id, message.host, message.pid)
            self._meet(message.instance, name)
        elif isinstance(message, wire.Goodbye) and message.instance not in self.exited:
            self.turned_away.discard(message.instance)
            if message.instance in self.remaining or self._has_room:
                self._note_exit(message.instance, wire.worker_name(message.worker_id))

    @property
    def _has_room(self) -> bool:
        """Whether another worker is taken note of: strangers can pretend to be any number, and to exit."""
        return len(self.remaining) + len(self.exited) < MAX_WORKERS

    def _note_exit(self, instance: int, unknown: str = "") -> None:
        """Note that a worker has exited; its name is ``unknown`` if it was not heard from before."""
        name = self.exited[instance] = self.remaining.pop(instance, unknown)
        self._progress = self._clock()
        if len(self.exited) <= MAX_NAMED_WORKERS:
            _log.info("%s has exited", name)
        elif len(self.exited) == MAX_NAMED_WORKERS + 1:
            _log.info("More than %d have exited: the others are counted", MAX_NAMED_WORKERS)

    def _meet(self, instance: int, name: str) -> None:
        if instance in self.exited:
            return
        if instance in self.remaining:
            self._heard[instance] = self._clock() - self._stalled
            return
        if not self._has_room:
            if len(self.turned_away) < MAX_WORKERS:
                self.turned_away.add(instance)
            return
        self.turned_away.discard(instance)
        self.remaining[instance] = name
        self._progress = self._clock()
        self._heard[instance] = self._progress - self._stalled
        self._tell(instance)
