"""The two ZeroMQ sockets of the master and of a worker, with every option that matters set in one place.

A master's listen on Unix sockets; what connects over TCP comes through :mod:`ssbench.fleet.relayed_ports`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket as network
import struct
from collections import deque
from contextlib import ExitStack
from socket import gaierror
from types import TracebackType
from typing import TYPE_CHECKING

import zmq

from ssbench.base.errors import UsageError
from ssbench.fleet.addresses import BindAddress, format_endpoint
from ssbench.fleet.descriptors import count_descriptors, raise_descriptor_limit, share_descriptors
from ssbench.fleet.keys import AllowedClients, FleetKey, ZapHandler
from ssbench.fleet.wire import LOST_AFTER, MAX_MESSAGE_BYTES, MAX_WORKER_MESSAGE_BYTES, work_address

if TYPE_CHECKING:
    from ssbench.fleet.relayed_ports import RelayedPorts

# -- The sockets of master and worker --------------------------------------------------------------


#: Seconds after which the kernel gives up a connection whose other end does not answer: TCP keepalive, not
#: ZMTP heartbeats (``doc/architecture.rst``). :data:`~ssbench.fleet.wire.LOST_AFTER` says who is lost; a
#: connection lasts longer, because with it goes what is on its way, also where both ends stalled for a while
#: and no worker is lost. A worker finds its master gone by the connection for work. The other time is about
#: descriptors only, so it is longer than a master reads nothing while it makes a report.
_MASTER_GONE_SECONDS = 4 * int(LOST_AFTER)
_PEER_GONE_SECONDS = 120
_KEEPALIVE_PROBES = 5

#: Messages that a connection may have waiting to be taken in at the master, and that of a worker's results:
#: with the size of the largest this bounds what a stranger can fill of the master's memory. A worker that
#: sends more waits.
_MAX_WAITING_MESSAGES = 1000
_MAX_WAITING_RESULTS = 100

#: A connection on which ZMTP is not spoken is closed after so long. libzmq's default is 30 s, in which
#: silent ones pile up; but 3,000 workers with keys that come together take up to 5.6 s, so that the last ones
#: have to wait, on a loaded machine longer. Those that pile up are bounded by the descriptors in any case.
_HANDSHAKE_MILLISECONDS = 15000

#: Bytes of a message that a stranger may send where nothing is expected: to the master's socket for work, and
#: to a worker's for results. Frames of the former that are dropped at once.
_MAX_UNEXPECTED_BYTES = 1024
_MAX_DROPPED_AT_ONCE = 10_000

#: Messages of revoked keys that are kept until they are looked at, and bytes of the longest.
_MAX_KEPT_MESSAGES, _MAX_KEPT_BYTES = 64, 4096

_PORT_ADVICE = (
    " (does another ssbench-master run? --zmq-work-port and --zmq-results-port give other ports,"
    " to the master and to its workers)"
)

#: How many Unix connections may wait to be accepted.
_BACKLOG = 4096

_READABLE_EVENT = int(zmq.POLLIN)


#: The first frame of a message of a monitor: the event and its value (zmq_socket_monitor(3)).
_EVENT_LAYOUT = struct.Struct("=Hi")


def next_monitor_event(monitor: zmq.Socket[bytes], flags: int = 0) -> tuple[int, int]:
    """Return the next event of a monitor and its value; raises zmq.Again where there is none with NOBLOCK.

    As zmq.utils.monitor does, which imports asyncio; no worker needs that.
    """
    event, value = _EVENT_LAYOUT.unpack(monitor.recv_multipart(flags)[0])
    return event, value


def has_message(socket: zmq.Socket[bytes]) -> bool:
    """Return whether a message is there now.

    This takes 1.5 µs; the exception of a receive without a message takes 3.3. With batches of 8 that makes
    an eighth more no-op operations.
    """
    return bool(int(socket.getsockopt(zmq.EVENTS)) & _READABLE_EVENT)


def _set_common_options(socket: zmq.Socket[bytes]) -> None:
    socket.setsockopt(zmq.IPV6, 1)
    socket.setsockopt(zmq.LINGER, 0)
    # What may queue up is bounded by the jobs in flight; a full queue must not drop any of them.
    socket.setsockopt(zmq.SNDHWM, 0)


def _give_up_after(socket: zmq.Socket[bytes], seconds: int, *, sends: bool) -> None:
    """Let the kernel give up connections; with ``sends`` also those on which data is on its way."""
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, seconds // 2)
    socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, max(1, seconds // 2 // _KEEPALIVE_PROBES))
    socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, _KEEPALIVE_PROBES)
    if sends:
        # Also where a peer is stopped and its buffer full. Linux ignores the number of probes then.
        socket.setsockopt(zmq.TCP_MAXRT, seconds * 1000)


def _bind(socket: zmq.Socket[bytes], folder: str, port: int) -> None:
    """Bind a Unix socket; raises UsageError."""
    endpoint = format_endpoint(folder, port)
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        raise _make_bind_error(endpoint, error) from None


def _make_bind_error(endpoint: str, error: OSError | zmq.ZMQError) -> UsageError:
    advice = _PORT_ADVICE if error.errno == zmq.EADDRINUSE else ""
    return UsageError(f"cannot bind {endpoint}: {zmq.strerror(error.errno or 0)}{advice}")


def set_worker_options(
    work: zmq.Socket[bytes], results: zmq.Socket[bytes], instance: int, key: FleetKey | None
) -> None:
    """Set the options of the two sockets of a worker, before they connect."""
    work.setsockopt(zmq.ROUTING_ID, work_address(instance))
    work.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    # No bound: where libzmq stops to read, whoever holds the master's port can end the process, as
    # port_relay says. A worker leaves a peer that sends without end.
    work.setsockopt(zmq.RCVHWM, 0)
    # Nothing is queued for a master that is not there: a worker waits for one, perhaps for days.
    results.setsockopt(zmq.IMMEDIATE, 1)
    # A master sends nothing here, and nobody would read it.
    results.setsockopt(zmq.MAXMSGSIZE, _MAX_UNEXPECTED_BYTES)
    results.setsockopt(zmq.RCVHWM, 1)
    _give_up_after(work, _MASTER_GONE_SECONDS, sends=False)
    _give_up_after(results, _PEER_GONE_SECONDS, sends=True)
    for socket in (work, results):
        _set_common_options(socket)
        socket.setsockopt(zmq.RECONNECT_IVL, 100)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        if key is not None:
            socket.curve_serverkey = key.server_public
            socket.curve_publickey = key.client_public
            socket.curve_secretkey = key.client_secret


class MasterSockets:
    """A bound ROUTER socket for work and a bound PULL socket for results; a context manager.

    Work goes to the worker whose :func:`~ssbench.fleet.wire.work_address` is its first frame; sending fails
    with EHOSTUNREACH when that one is not connected. ``ports`` are the numbers of the two.
    """

    def __init__(self, address: BindAddress, key: FleetKey | None = None) -> None:
        # First, because it may raise: a thread is to be ended from then on.
        self._clients = None if key is None else AllowedClients(key)
        self._of_revoked: deque[bytes] = deque(maxlen=_MAX_KEPT_MESSAGES)
        self._descriptor_limit = raise_descriptor_limit()
        self._ports: RelayedPorts | None = None
        self._relay_folder = ExitStack()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        try:
            self._zap = ZapHandler(self._context, self._clients)
        except BaseException:
            self._context.term()
            raise
        self.work = self._context.socket(zmq.ROUTER)
        self.work.setsockopt(zmq.ROUTER_MANDATORY, 1)
        # A worker that was cut off may be here again before its old connection is given up.
        self.work.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self.results = self._context.socket(zmq.PULL)
        try:
            for socket in (self.work, self.results):
                _set_common_options(socket)
                self._zap.guard(socket, key)
                socket.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MILLISECONDS)
                socket.setsockopt(zmq.BACKLOG, _BACKLOG)
                limit = _MAX_UNEXPECTED_BYTES if socket is self.work else MAX_WORKER_MESSAGE_BYTES
                socket.setsockopt(zmq.MAXMSGSIZE, limit)
                # A peer that sends more than is received has to wait; the other connections do not.
                most = _MAX_WAITING_MESSAGES if socket is self.work else _MAX_WAITING_RESULTS
                socket.setsockopt(zmq.RCVHWM, most)
            self.ports = self._listen(address)
        except BaseException:
            self.close()
            raise
        self.poller = zmq.Poller()
        self.poller.register(self.results, zmq.POLLIN)

    def _listen(self, address: BindAddress) -> tuple[int, int]:
        """Bind the two sockets, and start to relay what connects over TCP; return the ports."""
        ports = (address.work_port, address.results_port)
        if address.ip is None:
            for socket, port in zip((self.work, self.results), ports, strict=True):
                if address.folder is not None:
                    _bind(socket, address.folder, port)
            return ports
        # Here, because workers do without what starts a process.
        from ssbench.base.socket_folders import socket_folder  # noqa: PLC0415
        from ssbench.fleet.relayed_ports import RelayedPorts, set_connection_options  # noqa: PLC0415

        with ExitStack() as stack:
            listeners = [stack.enter_context(self._bind_port(address.ip, port)) for port in ports]
            work, results = (listener.getsockname()[1] for listener in listeners)
            folder = address.folder
            if folder is None:
                folder = str(self._relay_folder.enter_context(socket_folder()))
            # A path of any length will do.
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            self._relay_folder.callback(os.close, opened)
            for socket, port in ((self.work, work), (self.results, results)):
                _bind(socket, folder if address.folder else f"/proc/self/fd/{opened}", port)
            limits = share_descriptors(self._descriptor_limit, count_descriptors())
            for listener in listeners:
                set_connection_options(listener, _PEER_GONE_SECONDS, _KEEPALIVE_PROBES)
            self._ports = RelayedPorts(listeners, folder, limits)
        return work, results

    def _bind_port(self, host: str, port: int) -> network.socket:
        """Return a TCP socket that is bound; raises UsageError."""
        from ssbench.fleet.relayed_ports import bind_port  # noqa: PLC0415 - as above

        try:
            try:
                return bind_port(host, port)
            except gaierror:
                return bind_port(self._resolve(host), port)
        except (OSError, zmq.ZMQError) as error:
            raise _make_bind_error(format_endpoint(host, port), error) from None

    def _resolve(self, host: str) -> str:
        """Return the address of an interface, or of a wildcard, as libzmq knows them; raises ZMQError."""
        with self._context.socket(zmq.PULL) as asked:
            asked.setsockopt(zmq.IPV6, 1)
            asked.bind(format_endpoint(host, 0))
            endpoint = asked.get_string(zmq.LAST_ENDPOINT).rstrip("\0")
        return endpoint.removeprefix("tcp://").rpartition(":")[0].strip("[]")

    @property
    def revokes(self) -> bool:
        """Whether some keys were revoked, so that :meth:`receive_allowed` is to be used."""
        return self._clients is not None and bool(self._clients.revoked)

    @property
    def refused(self) -> int:
        """How many keys peers came with that are not allowed; no more than 1,000 are counted."""
        return 0 if self._clients is None else len(self._clients.refused)

    def receive_allowed(self, flags: int = 0) -> bytes:
        """Return the next message for results that is not of a revoked key; raises zmq.Again."""
        revoked = self._clients.revoked if self._clients is not None else frozenset()
        for _ in range(_MAX_DROPPED_AT_ONCE):
            frame = self.results.recv(flags, copy=False)
            if frame.get("User-Id") not in revoked:
                return bytes(frame.bytes)
            if len(frame) <= _MAX_KEPT_BYTES:
                self._of_revoked.append(bytes(frame.bytes))
        raise zmq.Again

    def take_of_revoked(self) -> list[bytes]:
        """Return the last messages of revoked keys since the last call, only to tell who is to be told."""
        found = [*self._of_revoked]
        self._of_revoked.clear()
        return found

    def read_keys_again(self) -> tuple[list[str], list[str]]:
        """Read the list of keys again; return the names that were added and revoked. Raises KeyFileError."""
        return ([], []) if self._clients is None else self._clients.read_again()

    @property
    def refused_connections(self) -> int:
        """How many connections over TCP were refused so far."""
        return 0 if self._ports is None else self._ports.refused

    def count_refused_connections(self) -> list[str]:
        """Bring ``refused_connections`` up to date, which may take a second; return messages as below."""
        return [] if self._ports is None else self._ports.count_refused()

    def take_port_news(self) -> list[str]:
        """Read the events of the TCP ports; return messages for the user, each text once."""
        return [] if self._ports is None else self._ports.take_news()

    def drop_strangers(self) -> int:
        """Drop messages on the work socket, on which workers send none; return how many frames arrived.

        A connection with a full queue is not read any more, so that its end would not be noticed either.
        """
        count = 0
        with contextlib.suppress(zmq.Again):
            while count < _MAX_DROPPED_AT_ONCE:
                self.work.recv(zmq.NOBLOCK)
                count += 1
        return count

    def close(self) -> None:
        """Close both sockets and the ports; safe to call again."""
        self.work.close()
        self.results.close()
        self._context.term()
        self._zap.join()
        if self._ports is not None:
            self._ports.close()
        self._relay_folder.close()

    def __enter__(self) -> MasterSockets:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class WorkerSockets:
    """A DEALER socket for work and a PUSH socket for results, connected to a master that may start later.

    ``instance`` is a number of this process that no other process has, under which work is sent to it.
    """

    def __init__(self, work: str, results: str, key: FleetKey | None = None) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.instance = secrets.randbits(62) + 1
        self.work = self._context.socket(zmq.DEALER)
        self.results = self._context.socket(zmq.PUSH)
        set_worker_options(self.work, self.results, self.instance, key)
        events = zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        events |= zmq.EVENT_HANDSHAKE_FAILED_AUTH
        events |= zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
        self.addresses = {self.work: work, self.results: results}
        self.monitors = {socket: socket.get_monitor_socket(events) for socket in self.addresses}
        for socket, address in self.addresses.items():
            try:
                socket.connect(address)
            except zmq.ZMQError as error:
                raise UsageError(f"cannot connect to {address}: {zmq.strerror(error.errno or 0)}") from None

    def disconnect(self, socket: zmq.Socket[bytes]) -> None:
        """Close the connection of one of the two sockets; what came through it can still be received."""
        with contextlib.suppress(zmq.ZMQError):
            socket.disconnect(self.addresses[socket])

    def connect_again(self, socket: zmq.Socket[bytes]) -> None:
        """Connect one of the two sockets again.

        libzmq tries again by itself where there is no answer, but gives an address up for good once a
        peer there broke the protocol: a sealed master met without a key, some other server.
        """
        self.disconnect(socket)
        socket.connect(self.addresses[socket])

    def close(self, linger_milliseconds: int = 500) -> None:
        """Close both sockets; messages already sent get that long to leave."""
        for socket, monitor in self.monitors.items():
            socket.disable_monitor()
            monitor.close(linger=0)
        self.work.close()
        self.results.close(linger=linger_milliseconds)
        self._context.term()
