"""``ssbench-master kill-workers``: tells every worker that is connected to end."""

from __future__ import annotations

import argparse
import logging
import time
from contextlib import suppress

import zmq

from ssbench.cli import zmq_options
from ssbench.errors import ExitCode, ProtocolError, WireError
from ssbench.fleet import wire
from ssbench.fleet.dispatch import MOST_WORKERS
from ssbench.fleet.sockets import MasterSockets

_log = logging.getLogger(__name__)

DESCRIPTION = (
    "Binds the sockets that workers connect to, tells each worker that turns up to exit, and says which did."
    " Ends when nobody has answered for five seconds."
)

_DEFAULT_IP = "0.0.0.0"  # noqa: S104 - the documented default

#: Nobody is left when nobody has spoken for so long (seconds).
_SILENCE = 5.0

#: A worker that speaks but does not end must not keep us for ever (seconds).
_PATIENCE = 30.0

#: A worker that was told says goodbye at once; after so long it is told again.
_TELL_AGAIN = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    zmq_options.add_arguments(parser, _DEFAULT_IP)


def run(arguments: argparse.Namespace) -> ExitCode:
    """Tell them, until nobody answers any more."""
    with zmq_options.bind(arguments, zmq_options.address(arguments, _DEFAULT_IP)) as sockets:
        roll = _Roll()
        _tell_all(sockets, roll)
    for name in roll.there.values():
        _log.warning("%s did not say goodbye", name)
    gone = len(roll.gone)
    if gone:
        _log.info("%d worker%s told to exit", gone, "" if gone == 1 else "s")
    elif not roll.there:
        _log.info("No worker was there")
    return ExitCode.OK


class _Roll:
    """Who is there, by instance, and who is gone."""

    def __init__(self) -> None:
        self.there: dict[int, str] = {}
        self.gone: set[int] = set()

    def take(self, frame: bytes) -> bool:
        """Take in a message; whether it tells of a worker that was not there before."""
        try:
            message = wire.unpack_from_worker(frame)
        except ProtocolError as error:
            # It ends too once it sees our order, because it cannot read that.
            if error.worker is None:
                return False
            return self._meet(error.worker[1], f"Worker {error.worker[0]} (of another version)")
        except WireError as error:
            _log.warning("Dropped a message: %s", str(error)[:200])
            return False
        if isinstance(message, wire.Heartbeat):
            name = f"Worker {message.worker_id} on {message.host} (pid {message.pid})"
            return self._meet(message.instance, name)
        if isinstance(message, wire.Goodbye) and message.instance not in self.gone:
            self.gone.add(message.instance)
            _log.info("%s has ended", self.there.pop(message.instance, f"Worker {message.worker_id}"))
        return False

    def _meet(self, instance: int, name: str) -> bool:
        if instance in self.gone or instance in self.there or len(self.there) >= MOST_WORKERS:
            return False
        self.there[instance] = name
        return True


def _tell_all(sockets: MasterSockets, roll: _Roll) -> None:
    order = wire.pack_notice(wire.Exit())
    began = heard = time.monotonic()
    told = 0.0
    while (now := time.monotonic()) - heard < _SILENCE and now - began < _PATIENCE:
        if roll.there and now - told > _TELL_AGAIN:
            told = now
            for instance in roll.there:
                # One that is not connected is told again.
                with suppress(zmq.ZMQError):
                    sockets.work.send_multipart([wire.work_address(instance), order], zmq.NOBLOCK)
        if (scarce := sockets.look_after_descriptors()) is not None:
            _log.warning("%s", scarce)
        if sockets.poller.poll(100):
            heard = now
            if roll.take(sockets.results.recv()):
                told = 0.0
