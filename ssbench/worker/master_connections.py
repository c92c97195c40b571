"""A worker's two connections to its master: whether they are there, and what comes that no master sends.

ZeroMQ connects in the background and reports nothing, so a wrong name or a closed port would look like a
master that has not started yet. While a socket is not connected, its address is tried with a plain connection
every few seconds, and the error of the operating system is logged (:class:`MasterConnections`).

A worker leaves a peer that sends so many messages, or such large ones, that they would fill its memory;
invalid messages are logged (:class:`FloodGuard`).
"""

from __future__ import annotations

import logging
import math
import random
import select
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable

import gevent
import zmq
from gevent import socket as network

from ssbench.base.errors import WireError
from ssbench.fleet.addresses import is_loopback
from ssbench.fleet.sockets import WorkerSockets, next_monitor_event

_log = logging.getLogger(__name__)

#: Bytes of memory that messages may need which wait without end. The jobs that a master sends wait for
#: results, so that those of the largest run need a small part of this.
_MAX_MESSAGE_MEMORY = 128 * 1024 * 1024

#: Bytes that libzmq needs for a message beside its own, and those of its frame on the wire.
_MESSAGE_OVERHEAD, _FRAME_OVERHEAD = 64, 2

#: Messages of more bytes than this may fill the memory in one turn of the event loop.
_LARGE_BYTES = 65_536

#: Where the bytes that a connection has received are in what Linux says of it (``struct tcp_info``).
_TCP_INFO_BYTES = 136
_RECEIVED_OFFSET = 128

#: So many invalid messages are logged one by one in so many seconds; the others are counted.
_MAX_LOGGED, _LOGGED_SECONDS = 20, 10.0


def bytes_received(descriptor: int) -> int | None:
    """Return how many bytes came through a TCP connection, given its descriptor; None where it is none.

    Linux only.
    """
    try:
        connection = socket.socket(fileno=descriptor)
    except (OSError, ValueError):  # ValueError: negative
        return None
    try:
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        return (
            int.from_bytes(told[_RECEIVED_OFFSET:], sys.byteorder) if len(told) == _TCP_INFO_BYTES else None
        )
    except (AttributeError, OSError):
        return None
    finally:
        connection.detach()


class FloodGuard:
    """Calls ``leave`` when too much waits. ``received`` returns how many bytes came through the connection.

    :meth:`take` is to be called for each message, :meth:`ends` where no more waits, :meth:`look` where more
    wait than are taken in at once.
    """

    def __init__(self, received: Callable[[], int | None], leave: Callable[[], None]) -> None:
        self._received = received
        self._leave = leave
        #: What had come when this was last looked at first, and what was taken in since.
        self._base: int | None = None
        self._count = self._bytes = 0
        self._dropped = 0
        self._since = 0.0

    def take(self, message: bytes) -> None:
        """Count a message."""
        self._count += 1
        self._bytes += len(message)
        if len(message) > _LARGE_BYTES:
            self.look()

    def ends(self) -> None:
        """Note that no message waits."""
        self._base = None

    def look(self) -> None:
        """Estimate how much memory those need that came since messages wait and were not taken in."""
        received = self._received()
        if received is None:
            return
        if self._base is None:
            self._base, self._count, self._bytes = received, 0, 0
            return
        average = self._bytes / max(1, self._count)
        waiting = received - self._base - self._bytes - _FRAME_OVERHEAD * self._count
        if waiting * (average + _MESSAGE_OVERHEAD) / (average + _FRAME_OVERHEAD) > _MAX_MESSAGE_MEMORY:
            self._base = None
            self._leave()

    def drop(self, error: WireError) -> None:
        """Log that a message is dropped, where not too many were."""
        now = time.monotonic()
        if now - self._since > _LOGGED_SECONDS:
            if self._dropped > _MAX_LOGGED:
                _log.error("Dropped %d more invalid messages", self._dropped - _MAX_LOGGED)
            self._dropped, self._since = 0, now
        self._dropped += 1
        if self._dropped <= _MAX_LOGGED:
            _log.error("Dropped an invalid message: %s", error)


# -- Whether the sockets are connected -------------------------------------------------------------


#: Seconds before the first message, in which most connections are made, and between two messages.
_FIRST_SAY_SECONDS = 1.0
_SAY_SECONDS = 10.0

#: A message that is the same as before comes after twice as long each time, up to so many seconds.
_MAX_SAY_SECONDS = 300.0

#: Seconds without a connection after which a socket is connected again.
_RECONNECT_SECONDS = 5.0
#: The same where no handshake has failed: one may be under way, which takes a master seconds while thousands
#: of workers connect.
_RECONNECT_UNANSWERED_SECONDS = 10.0
#: Each of them waits up to so many times as long, so that thousands do not come at once again.
_JITTER_FACTOR = 2.0

#: Seconds to wait for an address to answer.
_PROBE_SECONDS = 3.0

_HANDSHAKE_TEXT = (
    "the handshake fails; is the --zmq-key the same on both sides, and is it the port of an ssbench-master?"
)
_KEY_REFUSED_TEXT = (
    "the master does not accept the key of this worker: it is not in the master's list, or was revoked"
)
_NO_HANDSHAKE_TEXT = "the port is open, but no ssbench-master answers"
_BLOCKED_TEXT = "does a firewall or a proxy block the answer?"
_FLOOD_TEXT = "it sends messages without end, as no ssbench-master does; connecting again in %g s"
_BUSY_TEXT = "is another program listening there, or is the master busy?"


class MasterConnection:
    """One of the two sockets.

    ``since`` is when its connection ended or was last tried again, ``handshake_failed`` when a handshake
    last failed, and ``key_refused`` whether that was because of the worker's key. ``left``: the worker
    ended it, because of what came. ``descriptor`` is that of
    the last connection.
    """

    def __init__(self, name: str, address: str, socket: zmq.Socket[bytes]) -> None:
        self.name = name
        self.address = address
        self.socket = socket
        self.connected = False
        self.handshake_failed = -math.inf
        self.key_refused = False
        self.descriptor = -1
        self.try_now()

    def try_now(self) -> None:
        """Take note that it is tried now; how long it waits until it is tried again is drawn once a try."""
        self.since = time.monotonic()
        self.left = False
        self._jitter = random.uniform(1.0, _JITTER_FACTOR)

    @property
    def patience(self) -> float:
        """For how many seconds it waits after ``since``; not longer than needed where the worker left it."""
        if self.left:
            return _RECONNECT_SECONDS
        failed = self.handshake_failed > self.since
        return (_RECONNECT_SECONDS if failed else _RECONNECT_UNANSWERED_SECONDS) * self._jitter

    def has_stalled(self) -> bool:
        """Whether something that libzmq does not read waits at a connection where nothing is to come.

        So it is where something else than a master sent more than one message to the socket for results.
        libzmq does not notice then that the connection has ended either.
        """
        if not self.connected:
            return False
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(0))


class RepeatedNotice:
    """Says when a text is logged again that may be the same for hours, such as what a worker waits for."""

    def __init__(self) -> None:
        self._text = ""
        self._logged_at = -math.inf
        self._pause = _SAY_SECONDS

    def is_due(self, text: str, now: float) -> bool:
        """Return whether to log a text at a moment (seconds): a new one at once, then ever more rarely."""
        if text != self._text:
            self._text, self._pause = text, _SAY_SECONDS
        elif now - self._logged_at < self._pause:
            return False
        else:
            self._pause = min(2 * self._pause, _MAX_SAY_SECONDS)
        self._logged_at = now
        return True


class MasterConnections:
    """Both connections; :meth:`start` begins to watch them.

    ``on_results`` is called when the socket for results connects, ``on_work_lost`` when the socket for work
    loses its connection.
    """

    def __init__(
        self, sockets: WorkerSockets, on_results: Callable[[], None], on_work_lost: Callable[[], None]
    ) -> None:
        self._sockets = sockets
        self._on_results = on_results
        self._on_work_lost = on_work_lost
        self._work, self.results = (
            MasterConnection(name, sockets.addresses[socket], socket)
            for name, socket in (("work", sockets.work), ("results", sockets.results))
        )
        self._said_at = -math.inf
        self._notice = RepeatedNotice()

    def start(self) -> None:
        """Watch both until :meth:`stop`."""
        loop = gevent.get_hub().loop
        self._watchers = []
        for connection in (self._work, self.results):
            monitor = self._sockets.monitors[connection.socket]
            watcher = loop.io(monitor.getsockopt(zmq.FD), 1)
            watcher.start(self._take_events, connection, monitor)
            # The descriptor of a socket signals only messages that come after it was found empty.
            loop.run_callback(self._take_events, connection, monitor)
            self._watchers.append(watcher)
        self._looker = gevent.spawn(self._look)

    def stop(self) -> None:
        """Stop watching."""
        self._looker.kill()
        for watcher in self._watchers:
            watcher.stop()
            watcher.close()

    def _take_events(self, connection: MasterConnection, monitor: zmq.Socket[bytes]) -> None:
        while True:
            try:
                event, value = next_monitor_event(monitor, zmq.NOBLOCK)
            except zmq.Again:
                return
            if event == zmq.EVENT_CONNECTED:
                connection.descriptor = value
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                connection.connected = True
                self._notice = RepeatedNotice()
                self._say_soon()
                if connection is self.results:
                    self._on_results()
            elif event == zmq.EVENT_DISCONNECTED:
                if connection.connected:
                    # The loss itself is logged by whoever had a run from that master.
                    self._said_at = time.monotonic()
                    connection.try_now()
                connection.connected = False
                if connection is self._work:
                    self._lose_work()
            else:
                if time.monotonic() - connection.handshake_failed > _SAY_SECONDS:
                    self._say_soon()
                connection.handshake_failed = time.monotonic()
                connection.key_refused = event == zmq.EVENT_HANDSHAKE_FAILED_AUTH

    def _lose_work(self) -> None:
        if self.results.connected:
            # That of the same host is most likely broken, too, which where nothing is sent shows late.
            self._connect_again(self.results)
        self._on_work_lost()

    def received_for_work(self) -> int | None:
        """Return how many bytes came through the connection for work; None where that is not known."""
        return bytes_received(self._work.descriptor)

    def leave_work(self) -> None:
        """Close the connection for work, because of what comes from there; connect again a little later."""
        _log.warning("Left %s: " + _FLOOD_TEXT, self._work.address, _RECONNECT_SECONDS)
        self._sockets.disconnect(self._work.socket)
        self._said_at = time.monotonic()
        self._work.try_now()
        self._work.left = True
        self._work.connected = False
        self._lose_work()

    def _connect_again(self, connection: MasterConnection) -> None:
        connection.try_now()
        connection.connected = False
        self._sockets.connect_again(connection.socket)

    def _say_soon(self) -> None:
        """Log the next message soon, because the state of a connection has changed."""
        self._said_at = min(self._said_at, time.monotonic() - _SAY_SECONDS + _FIRST_SAY_SECONDS)

    def _look(self) -> None:
        gevent.sleep(_FIRST_SAY_SECONDS)
        while True:
            if self.results.has_stalled():
                _log.warning("Left %s: no ssbench-master sends anything there", self.results.address)
                self._connect_again(self.results)
            missing = [each for each in (self._work, self.results) if not each.connected]
            now = time.monotonic()
            if missing and now - self._said_at >= _SAY_SECONDS:
                self._said_at = now
                self._say(missing)
            for connection in missing:
                if not connection.connected and now - connection.since > connection.patience:
                    self._connect_again(connection)
            gevent.sleep(1.0)

    def _say(self, missing: list[MasterConnection]) -> None:
        others = {self._work, self.results} - set(missing)
        also = f"; the {others.pop().name} port is connected" if others else ""
        reasons: dict[str, list[str]] = defaultdict(list)
        for connection in missing:
            reason = find_hindrance(connection.address)
            if reason is None:
                recently = time.monotonic() - connection.handshake_failed < _SAY_SECONDS
                failed = _KEY_REFUSED_TEXT if connection.key_refused else _HANDSHAKE_TEXT
                reason = failed if recently else _describe_no_handshake(connection.address)
            if not connection.connected:  # it may be by now
                reasons[reason].append(f"{connection.address} ({connection.name}{also})")
        lines = [f"Not connected to {' and '.join(each)}: {reason}" for reason, each in reasons.items()]
        for line in lines if self._notice.is_due("\n".join(lines), time.monotonic()) else ():
            _log.warning("%s", line)


def _describe_no_handshake(address: str) -> str:
    """Return what to say where the port is open: no firewall is between two processes of one host."""
    host = address.removeprefix("tcp://").rpartition(":")[0].strip("[]")
    local = address.startswith("ipc://") or is_loopback(host)
    return f"{_NO_HANDSHAKE_TEXT}; {_BUSY_TEXT if local else _BLOCKED_TEXT}"


def find_hindrance(address: str) -> str | None:
    """Return why no connection to the address of a ZeroMQ socket can be made, and what to do; else None."""
    try:
        _probe_address(address)
    except network.gaierror as error:
        host = address.removeprefix("tcp://").rpartition(":")[0]
        return f"the name {host} does not resolve ({error.strerror}); check --zmq-host"
    except (ConnectionRefusedError, FileNotFoundError):
        return "no process listens there; waiting for an ssbench-master with these ports"
    except TimeoutError:
        return "no answer; check that the host is up and that no firewall blocks the port"
    except OSError as error:
        return f"{error.strerror or error}; check --zmq-host and the network"
    return None


def _probe_address(address: str) -> None:
    if address.startswith("ipc://"):
        with network.socket(network.AF_UNIX) as probe:
            probe.settimeout(_PROBE_SECONDS)
            probe.connect(address.removeprefix("ipc://"))
    else:
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        network.create_connection((host.strip("[]"), int(port)), _PROBE_SECONDS).close()
