"""The two ZeroMQ sockets of the master and of a worker, with every option that matters set in one place.

On Linux the kernel also gets a filter for listening TCP sockets, and for the connections that they accept.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import secrets
import socket as network
import struct
from collections import deque
from socket import gaierror
from types import TracebackType

import zmq

from ssbench.base.errors import UsageError
from ssbench.fleet.addresses import BindAddress, format_endpoint
from ssbench.fleet.descriptors import Descriptors
from ssbench.fleet.keys import AllowedClients, FleetKey, ZapHandler
from ssbench.fleet.wire import LOST_AFTER, MAX_MESSAGE_BYTES, MAX_WORKER_MESSAGE_BYTES, work_address

#: An option of Linux that the socket module does not name, and instructions of such a filter: to load a byte
#: of the TCP segment, to jump over so many where it has one of these bits, to return how many bytes pass.
_ATTACH_FILTER = 26
_LOAD_BYTE, _JUMP_IF_SET, _RETURN_CODE = 0x30, 0x45, 0x06

#: The byte of a segment with its flags, and the flag of a reset.
_FLAGS_OFFSET, _RESET_FLAG = 13, 4
_ALL_BYTES = 0xFFFFFFFF


def _filter_program(*instructions: tuple[int, int, int, int]) -> tuple[bytes, object]:
    """Return the value of the option for a filter, and what has to live as long as that is used."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
    return struct.pack("HP", len(instructions), ctypes.addressof(code)), code


_ACCEPT_NOTHING = _filter_program((_RETURN_CODE, 0, 0, 0))
_ACCEPT_NO_RESETS = _filter_program(
    (_LOAD_BYTE, 0, 0, _FLAGS_OFFSET),
    (_JUMP_IF_SET, 1, 0, _RESET_FLAG),
    (_RETURN_CODE, 0, 0, _ALL_BYTES),
    (_RETURN_CODE, 0, 0, 0),
)


def stop_accepting(listener: int) -> None:
    """Accept no more connections on a listening TCP socket, given its descriptor.

    A peer that connects waits until it is opened again. Unbinding would end all connections that were
    accepted there.
    """
    _attach_filter(listener, _ACCEPT_NOTHING)


def start_accepting(listener: int) -> None:
    """Accept connections, first or again, and have resets of their peers ignored.

    libzmq 4.3.5 aborts the process where a connection is reset while it does not read it, because the queue
    of received messages is full, and has a PING of the peer left in its buffer: the answer would go to a
    connection that it knows to be broken. Without the reset it reads on, until the peer's data ends. A
    connection accepted before the filter is attached does not have it, so attach it before listening.
    """
    _attach_filter(listener, _ACCEPT_NO_RESETS)


def _attach_filter(listener: int, program: tuple[bytes, object]) -> None:
    sock = network.socket(fileno=listener)
    try:
        with contextlib.suppress(OSError):
            sock.setsockopt(network.SOL_SOCKET, _ATTACH_FILTER, program[0])
    finally:
        sock.detach()


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


def set_worker_options(
    work: zmq.Socket[bytes], results: zmq.Socket[bytes], instance: int, key: FleetKey | None
) -> None:
    """Set the options of the two sockets of a worker, before they connect."""
    work.setsockopt(zmq.ROUTING_ID, work_address(instance))
    work.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    # No bound: where libzmq stops to read, whoever holds the master's port can end the process, as
    # accept_control says. A worker leaves a peer that sends without end.
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


def _bound_socket(host: str, port: int) -> network.socket:
    """Return a TCP socket that is bound to an address in digits; raises gaierror where it is none."""
    flags = network.AI_NUMERICHOST | network.AI_NUMERICSERV | network.AI_PASSIVE
    family, *_, place = network.getaddrinfo(host, port, type=network.SOCK_STREAM, flags=flags)[0]
    listener = network.socket(family, network.SOCK_STREAM)
    try:
        listener.setblocking(False)
        listener.setsockopt(network.SOL_SOCKET, network.SO_REUSEADDR, 1)
        if family == network.AF_INET6:
            listener.setsockopt(network.IPPROTO_IPV6, network.IPV6_V6ONLY, 0)
        listener.bind(place)
    except BaseException:
        listener.close()
        raise
    return listener


class MasterSockets:
    """A bound ROUTER socket for work and a bound PULL socket for results; a context manager.

    Work goes to the worker whose :func:`~ssbench.fleet.wire.work_address` is its first frame; sending fails
    with EHOSTUNREACH when that one is not connected. ``ports`` are the numbers of the two.
    """

    def __init__(self, address: BindAddress, key: FleetKey | None = None) -> None:
        # First, because it may raise: thousands of descriptors are to be closed from then on.
        self._clients = None if key is None else AllowedClients(key)
        self._of_revoked: deque[bytes] = deque(maxlen=_MAX_KEPT_MESSAGES)
        try:
            self._descriptors = Descriptors()
        except OSError as error:
            raise UsageError(
                f"no sockets can be opened: {error.strerror}; raise the limit (ulimit -n)"
            ) from None
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        try:
            self._zap = ZapHandler(self._context, self._clients)
        except BaseException:
            self._context.term()
            self._descriptors.close()
            raise
        #: The descriptors that libzmq accepts connections from.
        self._listeners: list[int] = []
        self._shut = False
        self.work = self._context.socket(zmq.ROUTER)
        self.work.setsockopt(zmq.ROUTER_MANDATORY, 1)
        # A worker that was cut off may be here again before its old connection is given up.
        self.work.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self.results = self._context.socket(zmq.PULL)
        try:
            for socket, port in ((self.work, address.work_port), (self.results, address.results_port)):
                _set_common_options(socket)
                _give_up_after(socket, _PEER_GONE_SECONDS, sends=True)
                self._zap.guard(socket, key)
                socket.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MILLISECONDS)
                socket.setsockopt(zmq.BACKLOG, self._descriptors.backlog)
                limit = _MAX_UNEXPECTED_BYTES if socket is self.work else MAX_WORKER_MESSAGE_BYTES
                socket.setsockopt(zmq.MAXMSGSIZE, limit)
                # A peer that sends more than is received has to wait; the other connections do not.
                most = _MAX_WAITING_MESSAGES if socket is self.work else _MAX_WAITING_RESULTS
                socket.setsockopt(zmq.RCVHWM, most)
                for host in filter(None, (address.ip, address.folder)):
                    self._bind(socket, host, port)
            self.ports = (self._port(self.work), self._port(self.results))
        except BaseException:
            self.close()
            raise
        self.poller = zmq.Poller()
        self.poller.register(self.results, zmq.POLLIN)

    def _bind(self, socket: zmq.Socket[bytes], host: str, port: int) -> None:
        try:
            if host.startswith("/"):
                socket.bind(format_endpoint(host, port))
            else:
                self._listen(socket, host, port)
        except (OSError, zmq.ZMQError) as error:
            raise UsageError(
                f"cannot bind {format_endpoint(host, port)}: {zmq.strerror(error.errno or 0)}"
                + (_PORT_ADVICE if error.errno == zmq.EADDRINUSE else "")
            ) from None

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

    def refuse_connections(self) -> None:
        """Accept no more connections, and release the reserved descriptors. Connections that exist stay.

        :meth:`look_after_descriptors` opens again once enough descriptors are free.
        """
        for listener in self._listeners:
            stop_accepting(listener)
        self._shut = True
        self._descriptors.release()

    def look_after_descriptors(self) -> str | None:
        """Accept no connections while file descriptors are scarce.

        Whatever connects takes a descriptor. libzmq would take all of them, and then try in vain for as long
        as a client waits to be accepted, while no file could be opened. Returns the message for the user.
        """
        descriptors = self._descriptors
        if not self._shut and descriptors.scarce():
            self.refuse_connections()
            return (
                f"{descriptors.limit:,} file descriptors are in use, all that this process may have: no more"
                f" connections are accepted until some end. There is room for about {descriptors.room // 2:,}"
                " workers, which have two connections each; raise the limit (ulimit -n) for more"
            )
        if self._shut and descriptors.hold():
            for listener in self._listeners:
                start_accepting(listener)
            self._shut = False
        return None

    def _listen(self, socket: zmq.Socket[bytes], host: str, port: int) -> None:
        """Listen on TCP with a filter from the first connection on; raises OSError and ZMQError."""
        try:
            listener = _bound_socket(host, port)
        except gaierror:
            self._listen_by_name(socket, format_endpoint(host, port))
            return
        try:
            start_accepting(listener.fileno())
            listener.listen(self._descriptors.backlog)
            socket.setsockopt(zmq.USE_FD, listener.fileno())
            socket.bind(format_endpoint(host, port))
        except BaseException:
            listener.close()
            raise
        # It is libzmq's now, which closes it.
        self._listeners.append(listener.detach())
        socket.setsockopt(zmq.USE_FD, -1)

    def _listen_by_name(self, socket: zmq.Socket[bytes], address: str) -> None:
        """Let libzmq listen, where an address is the name of an interface or a wildcard of its own."""
        # Once a socket: the address of a monitor is not free again at once when it is disabled.
        monitor = socket.get_monitor_socket(zmq.EVENT_LISTENING)
        try:
            socket.bind(address)
            self._listeners.append(next_monitor_event(monitor)[1])
            start_accepting(self._listeners[-1])
        finally:
            socket.disable_monitor()
            # Or the end of the context would wait for it, where the exception of a bind keeps it alive.
            monitor.close()

    @staticmethod
    def _port(socket: zmq.Socket[bytes]) -> int:
        """Return the port, or the number of the Unix socket, that a socket is bound to."""
        return int(re.split("[:/]", socket.get_string(zmq.LAST_ENDPOINT).rstrip("\0"))[-1])

    def drop_strangers(self) -> None:
        """Read what came on the socket for work, where workers say nothing, and drop it.

        A connection with a full queue is not read any more, so that its end would not be noticed either.
        """
        with contextlib.suppress(zmq.Again):
            for _ in range(_MAX_DROPPED_AT_ONCE):
                self.work.recv(zmq.NOBLOCK)

    def close(self) -> None:
        """Close both sockets; safe to call again."""
        self.work.close()
        self.results.close()
        self._context.term()
        self._zap.join()
        self._descriptors.close()

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
