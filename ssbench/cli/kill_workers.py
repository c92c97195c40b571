"""``ssbench-master kill-workers``: tells every worker that is connected to end."""

from __future__ import annotations

import argparse
import logging
import time

import zmq

from ssbench import wire
from ssbench.cli import zmq_options
from ssbench.errors import ExitCode, WireError
from ssbench.sockets import MasterSockets

_log = logging.getLogger(__name__)

HELP = "tell all workers to exit"
DESCRIPTION = (
    "Binds the sockets that workers connect to, tells each worker that turns up to exit, and says which did."
    " Ends when nobody has answered for five seconds."
)

_DEFAULT_IP = "0.0.0.0"  # noqa: S104 - the documented default

#: Nobody is left when nobody has spoken for so long (seconds).
_SILENCE = 5.0

#: A worker that was told says goodbye at once; after so long it is told again.
_TELL_AGAIN = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    zmq_options.add_arguments(parser, _DEFAULT_IP)


def run(arguments: argparse.Namespace) -> ExitCode:
    """Tell them, until nobody answers any more."""
    with zmq_options.bind(arguments, _DEFAULT_IP) as sockets:
        gone = _tell_all(sockets)
    if not gone:
        _log.info("No worker was there")
    else:
        _log.info("%d worker%s told to exit", gone, "" if gone == 1 else "s")
    return ExitCode.OK


def _tell_all(sockets: MasterSockets) -> int:
    order = wire.pack(wire.RunParameters(protocol=wire.PROTOCOL, run_id=0, exit=True))
    nothing = wire.pack(wire.JobBatch(0, []))
    there: dict[int, wire.Heartbeat] = {}
    gone = 0
    heard = time.monotonic()
    told = 0.0
    while (now := time.monotonic()) - heard < _SILENCE:
        if there and now - told > _TELL_AGAIN:
            told = now
            # The socket deals messages out in turn, so each worker gets one of as many as there are.
            for _ in there:
                try:
                    sockets.work.send(order, zmq.NOBLOCK | zmq.SNDMORE)
                    sockets.work.send(nothing, zmq.NOBLOCK)
                except zmq.Again:
                    break
        if not sockets.poller.poll(100):
            continue
        try:
            message = wire.unpack_from_worker(sockets.results.recv())
        except WireError as error:
            _log.warning("Dropped a message: %s", error)
            continue
        heard = time.monotonic()
        if isinstance(message, wire.Heartbeat):
            if message.instance not in there:
                told = 0.0
            there[message.instance] = message
        elif isinstance(message, wire.Goodbye):
            gone += 1
            beat = there.pop(message.instance, None)
            where = f" on {beat.host} (pid {beat.pid})" if beat else ""
            _log.info("Worker %d%s has ended", message.worker_id, where)
    for beat in there.values():
        _log.warning("Worker %d on %s (pid %d) did not say goodbye", beat.worker_id, beat.host, beat.pid)
    return gone
