"""Tell all workers that connect to exit, and note which did."""

from __future__ import annotations

import logging
import time
from contextlib import suppress

import zmq

from ssbench.errors import ProtocolError, WireError
from ssbench.fleet import packing, wire
from ssbench.fleet.dispatch import MOST_WORKERS
from ssbench.fleet.sockets import MasterSockets

_log = logging.getLogger(__name__)

#: Seconds without a message after which no worker is left.
_SILENCE = 5.0

#: Seconds after which a worker that sends messages but does not exit is no longer waited for.
_TIMEOUT = 30.0

#: Seconds after which a worker that has not said goodbye is told again.
_REPEAT = 0.5


class Dismissal:
    """Tells every worker that connects to exit, until no worker sends messages any more."""

    def __init__(self, sockets: MasterSockets) -> None:
        #: The names of the workers that have not exited, by instance.
        self.remaining: dict[int, str] = {}
        #: The instances of the workers that have exited.
        self.exited: set[int] = set()
        self._sockets = sockets

    def run(self) -> None:
        """Tell them; return after some seconds of silence, or when that does not come."""
        sockets = self._sockets
        order = packing.pack_notice(wire.Exit())
        began = heard = time.monotonic()
        told = 0.0
        while (now := time.monotonic()) - heard < _SILENCE and now - began < _TIMEOUT:
            if self.remaining and now - told > _REPEAT:
                told = now
                for instance in self.remaining:
                    # A worker that is not connected at this moment is told the next time.
                    with suppress(zmq.ZMQError):
                        sockets.work.send_multipart([wire.work_address(instance), order], zmq.NOBLOCK)
            if (scarce := sockets.look_after_descriptors()) is not None:
                _log.warning("%s", scarce)
            if sockets.poller.poll(100):
                heard = now
                if self._receive(sockets.results.recv()):
                    told = 0.0

    def _receive(self, frame: bytes) -> bool:
        """Process a message; return whether it is the first one of a worker."""
        try:
            message = packing.unpack_from_worker(frame)
        except ProtocolError as error:
            # Such a worker exits when it receives the order, because it cannot read it.
            if error.worker is None:
                return False
            return self._meet(error.worker[1], f"Worker {error.worker[0]} (of another version)")
        except WireError as error:
            _log.warning("Dropped an invalid message: %s", str(error)[:200])
            return False
        if isinstance(message, wire.Heartbeat):
            name = f"Worker {message.worker_id} on {message.host} (pid {message.pid})"
            return self._meet(message.instance, name)
        if isinstance(message, wire.Goodbye) and message.instance not in self.exited:
            self.exited.add(message.instance)
            _log.info("%s has exited", self.remaining.pop(message.instance, f"Worker {message.worker_id}"))
        return False

    def _meet(self, instance: int, name: str) -> bool:
        known = instance in self.exited or instance in self.remaining
        if known or len(self.remaining) >= MOST_WORKERS:
            return False
        self.remaining[instance] = name
        return True
