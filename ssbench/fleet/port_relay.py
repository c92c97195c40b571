"""A program between a master's TCP ports and libzmq: ``port_relay.py CONTROL LINKS ENDS LISTENER...``.

libzmq 4.3.5 aborts its process where a connection is reset that it does not read at that moment, because its
queue is full, if a PING of the peer is left to answer. On a Unix socket there are no resets. So libzmq
listens on Unix sockets in the current folder that have the numbers of the ports, and this program takes
connections from the LISTENERs, with limits that strangers cannot exceed:

- At most LINKS of each port are relayed at once, and those only that begin as the protocol of ZeroMQ (ZMTP)
  does. So the master's descriptors are never used up. More may wait for their first bytes, or for room, as
  long as there are no more than ENDS in all, two of each link; then who has waited longest has to go.
- Without a key, no message may have several parts: libzmq takes in all of them before it delivers one,
  however many there are. No worker sends such messages.
- Of each direction :data:`_PIECE_BYTES` at most are kept; who sends more has to wait.
- After a reset the other side sees an ordinary end, behind all that came before it.

It ends when CONTROL, its end of a pair of sockets, is closed at the other end: with the master, however that
ends. Through it the master is told who was refused, see :meth:`PortRelay._tell`: now and then, and at once
when it asks, with a message of any content.

It imports little, so that it starts fast.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

#: Bytes that are moved at once.
_PIECE_BYTES = 16_384

#: Seconds in which a connection must have said its first bytes, and room must have been found for it. As long
#: as libzmq gives to the whole handshake.
WAIT_SECONDS = 15.0

#: Seconds between two messages to the master, and until what failed for lack of room is tried again.
_TELL_SECONDS = 0.25
_TRY_AGAIN_SECONDS = 0.05

#: Seconds for what the master has sent to leave, after its end.
_DRAIN_SECONDS = 2.0

#: How ZMTP begins since its version 2: a byte, eight of any value, another byte.
_GREETING_BYTES = 10
_GREETING_BEGIN, _GREETING_END = 0xFF, 0x7F

#: The greeting goes on with a version and the name of the mechanism, and frames follow, each with a byte of
#: flags and a length of one byte or eight.
_WHOLE_GREETING_BYTES, _MECHANISM_OFFSET, _SEALED = 64, 12, b"CURVE"
_MORE_PARTS, _LONG = 1, 2
_SHORT_HEADER, _LONG_HEADER = 2, 9

#: More bytes than libzmq sends in any handshake: who was sent more was a peer.
_HANDSHAKE_BYTES = 512
#: Where the bytes that the other end has received are in what Linux says of it (``struct tcp_info``).
_TCP_INFO_BYTES = 128
_ACKED_OFFSET = 120

#: Connections that are accepted in one turn.
_ACCEPTED_A_TURN = 64
_NO_ROOM_ERRORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_READ, _WRITE = select.EPOLLIN, select.EPOLLOUT


class _Port:
    """A port, and how many of its connections are relayed."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.name = str(listener.getsockname()[1])
        self.links = 0


class _End:
    """One of the two ends of a link: of the TCP connection, or of that to the master.

    ``pending`` waits to be sent here. Nothing more comes from one that has ``ended``. ``send`` is len for one
    that has failed, which takes everything. ``other`` is None while the connection waits.
    """

    __slots__ = (
        *("came", "ended", "fd", "mask", "other", "peer", "pending", "port", "recv", "said", "send", "sock"),
    )

    def __init__(self, sock: socket.socket, port: _Port, peer: str, came: float) -> None:
        self.port = port
        self.sock = sock
        self.fd = sock.fileno()
        self.recv: Callable[[int], bytes] = sock.recv
        self.send: Callable[[bytes], int] = sock.send
        self.other: _End | None = None
        self.pending = b""
        self.ended = False
        self.mask = 0
        self.peer = peer
        self.came = came
        self.said = b""


class _ForeignError(OSError):
    """The data received does not follow the protocol of ssbench-worker."""


class _FrameReader:
    """Receives for an end, after the first bytes of its greeting, and refuses messages of several parts."""

    def __init__(self, end: _End) -> None:
        self._end = end
        self._recv = end.sock.recv
        #: The rest of the greeting, then a header that has come in part.
        self._begun = b""
        self._in_greeting = True
        #: Bytes until the next frame begins.
        self._skip = 0

    def recv(self, size: int) -> bytes:
        """Do as the method of a socket; raises _ForeignError."""
        data = self._recv(size)
        came = self._begun + data if self._begun else data
        at, end = self._skip, len(came)
        if self._in_greeting:
            at = _WHOLE_GREETING_BYTES - _GREETING_BYTES
            if end < at:
                self._begun = came
                return data
            self._in_greeting = False
            if came.startswith(_SEALED, _MECHANISM_OFFSET - _GREETING_BYTES):
                # Encrypted; without the key libzmq accepts no message.
                self._end.recv = self._recv
                return data
        while at < end:
            flags = came[at]
            if flags & _MORE_PARTS:
                raise _ForeignError
            body = at + (_LONG_HEADER if flags & _LONG else _SHORT_HEADER)
            if body > end:
                break
            at = body + int.from_bytes(came[at + 1 : body])
        self._begun = came[at:]
        self._skip = max(0, at - end)
        return data


class PortRelay:
    """Relays until the master has ended; see the module."""

    def __init__(
        self,
        control: socket.socket,
        most_links: int,
        most_ends: int,
        listeners: Sequence[socket.socket],
    ) -> None:
        self._control = control
        self._ports = {listener.fileno(): _Port(listener) for listener in listeners}
        self._most_links = most_links
        self._most_ends = most_ends
        self._epoll = select.epoll()
        #: Both ends of each link, and connections that wait, by descriptor.
        self._ends: dict[int, _End] = {}
        #: Connections without a link, the oldest first, and those of them that have said enough.
        self._waiting: dict[int, _End] = {}
        self._greeted: dict[int, _End] = {}
        #: How many were refused, and the address of the first one, by reason.
        self._refused: dict[str, tuple[int, str]] = {}
        #: Whether the master does not know that yet, and when it was told last.
        self._untold = False
        self._told_at = 0.0
        #: How often the master has asked.
        self._asked = 0
        self._until: float | None = None
        for sock in (*listeners, control):
            sock.setblocking(False)
            self._epoll.register(sock, _READ)

    def run(self) -> None:
        """Relay; returns when the master has ended."""
        timeout = -1.0
        while self._until is None or (self._ends and time.monotonic() < self._until):
            self._take_events(self._epoll.poll(timeout))
            timeout = self._look()
        for end in self._ends.values():
            end.sock.close()
        self._epoll.close()

    def _take_events(self, events: Sequence[tuple[int, int]]) -> None:
        ends = self._ends
        for fd, event in events:
            end = ends.get(fd)
            if end is None:
                self._take_special(fd)
                continue
            other = end.other
            if event != _READ or other is None:
                self._take(end, event)
                continue
            # Nearly all are here, so that this is not a function of its own.
            try:
                data = end.recv(_PIECE_BYTES)
            except BlockingIOError:
                continue
            except OSError as error:
                data = self._fail(end, error)
            if not data:
                self._note_end(end)
                continue
            try:
                sent = other.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                other.send = len
                continue
            if sent != len(data):
                other.pending = data[sent:]
                self._watch(other)
                self._watch(end)

    # -- events -------------------------------------------------------------------------------

    def _look(self) -> float:
        """Do what is due; return the seconds until more may be due, -1 for never."""
        if not (self._waiting or self._untold or self._until):
            return -1.0
        full: set[_Port] = set()
        for end in [*self._greeted.values()]:
            if self._greeted.get(end.fd) is not end:
                continue  # it had to make room
            if end.port not in full and not self._link(end):
                full.add(end.port)
        now = time.monotonic()
        while self._waiting and now - (oldest := next(iter(self._waiting.values()))).came > WAIT_SECONDS:
            self._refuse_waiting(oldest)
        if self._untold and now - self._told_at >= _TELL_SECONDS:
            self._tell(now)
        if self._greeted or self._until is not None:
            return _TRY_AGAIN_SECONDS
        return _TELL_SECONDS if self._waiting or self._untold else -1.0

    def _take_special(self, fd: int) -> None:
        """Take an event that is not of an end, or of one that has gone in this turn."""
        if (port := self._ports.get(fd)) is not None:
            for _ in range(_ACCEPTED_A_TURN):
                if not self._accept(port):
                    break
        elif fd == self._control.fileno():
            try:
                asked = self._control.recv(_PIECE_BYTES)
            except OSError:  # it ended with a message of ours unread
                asked = b""
            if asked:
                self._asked += 1
                self._tell(time.monotonic())
            else:
                self._begin_end()

    def _begin_end(self) -> None:
        """The master has ended: take no more, and let what it has sent leave."""
        self._until = time.monotonic() + _DRAIN_SECONDS
        self._epoll.unregister(self._control)
        for port in self._ports.values():
            self._epoll.unregister(port.listener)
            port.listener.close()
        self._ports.clear()
        for end in [*self._waiting.values()]:
            self._forget(end)

    def _take(self, end: _End, event: int) -> None:
        """Take an event that is not the usual one."""
        other = end.other
        if end.pending:
            self._flush(end)
        if event & ~_WRITE == 0 or end.ended or end.fd not in self._ends:
            return
        if other is None:
            self._greet(end)
        elif not other.pending:
            self._move(end, other)

    def _move(self, end: _End, other: _End) -> None:
        try:
            data = end.recv(_PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            data = self._fail(end, error)
        if data:
            other.pending = data
            self._flush(other)
        else:
            self._note_end(end)

    def _fail(self, end: _End, error: OSError) -> bytes:
        """Take a failed receive for the end of what comes."""
        if isinstance(error, _ForeignError):
            self._count("foreign", end.peer)
            with suppress(OSError):
                end.sock.shutdown(socket.SHUT_RDWR)
        end.send = len
        return b""

    def _flush(self, end: _End) -> None:
        """Send what waits to be sent."""
        try:
            sent = end.send(end.pending)
        except BlockingIOError:
            sent = 0
        except OSError:
            end.send = len
            sent = len(end.pending)
        end.pending = end.pending[sent:]
        self._watch(end)
        other = end.other
        if other is not None:
            self._watch(other)
            if other.ended and not end.pending:
                self._finish(end, other)

    def _note_end(self, end: _End) -> None:
        """Nothing more comes from this end."""
        end.ended = True
        self._watch(end)
        other = end.other
        if other is not None and not other.pending:
            self._finish(other, end)

    def _finish(self, end: _End, ended: _End) -> None:
        """Pass on that the other one of this end has ended, after all that came before."""
        if ended.peer:
            # The end of the connection; the link lasts until libzmq has closed its own.
            with suppress(OSError):
                end.sock.shutdown(socket.SHUT_WR)
            if not end.ended:
                return
        elif not end.ended and end.send is not len and self._until is None and not _was_served(end.sock):
            self._count("closed", end.peer)
        end.port.links -= 1
        self._forget(end)
        self._forget(ended)

    def _watch(self, end: _End) -> None:
        """Wait for events at this end; a reset while none can occur is found later."""
        mask = _WRITE if end.pending else 0
        if not end.ended and (end.other is None or not end.other.pending):
            mask |= _READ
        if mask == end.mask or end.fd not in self._ends:
            return
        if not mask:
            self._epoll.unregister(end.fd)
        elif not end.mask:
            self._epoll.register(end.fd, mask)
        else:
            self._epoll.modify(end.fd, mask)
        end.mask = mask

    def _forget(self, end: _End) -> None:
        del self._ends[end.fd]
        self._waiting.pop(end.fd, None)
        self._greeted.pop(end.fd, None)
        if end.mask:
            self._epoll.unregister(end.fd)
        # Its descriptor may be used again while an event of it is still there, which does no harm: what is
        # received or sent in vain is tried again later.
        end.sock.close()

    # -- connections --------------------------------------------------------------------------

    def _accept(self, port: _Port) -> bool:
        """Accept a connection if there is one; if necessary, drop the one that has waited longest."""
        try:
            sock, address = port.listener.accept()
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _NO_ROOM_ERRORS:
                return True  # the peer has left
            # Not because our own descriptors ran out: their use is bounded.
            time.sleep(_TRY_AGAIN_SECONDS)
            return False
        self._make_room()
        sock.setblocking(False)
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        end = _End(sock, port, f"{host}:{address[1]}", time.monotonic())
        self._ends[end.fd] = self._waiting[end.fd] = end
        self._watch(end)
        return True

    def _greet(self, end: _End) -> None:
        """Read the first bytes of a connection."""
        try:
            data = end.recv(_GREETING_BYTES - len(end.said))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        end.said += data
        if not data:  # it has left by itself
            self._forget(end)
        elif end.said[0] != _GREETING_BEGIN:
            self._refuse("foreign", end)
        elif len(end.said) == _GREETING_BYTES:
            if end.said[-1] != _GREETING_END:
                self._refuse("foreign", end)
                return
            self._epoll.unregister(end.fd)
            end.mask = 0
            self._greeted[end.fd] = end

    def _link(self, end: _End) -> bool:
        """Connect to the master for a connection; return whether that could be done now."""
        port = end.port
        if port.links >= self._most_links:
            if "full" not in self._refused:
                self._refused["full"] = (0, "")
                self._untold = True
            return False
        sock = socket.socket(socket.AF_UNIX)
        sock.setblocking(False)
        try:
            sock.connect(port.name)
        except OSError:  # as many wait to be accepted as may: the master is stopped, or very busy
            sock.close()
            return False
        del self._waiting[end.fd], self._greeted[end.fd]
        self._make_room()
        near = _End(sock, port, "", 0.0)
        near.other, end.other = end, near
        end.recv = _FrameReader(end).recv
        port.links += 1
        self._ends[near.fd] = near
        near.pending, end.said = end.said, b""
        self._flush(near)
        return True

    # -- who is refused -----------------------------------------------------------------------

    def _make_room(self) -> None:
        """Let the one that has waited longest go where one more end would be too many."""
        if len(self._ends) >= self._most_ends and self._waiting:
            self._refuse_waiting(next(iter(self._waiting.values())))

    def _refuse_waiting(self, end: _End) -> None:
        self._refuse("full" if end.fd in self._greeted else "silent", end)

    def _refuse(self, reason: str, end: _End) -> None:
        self._count(reason, end.peer)
        self._forget(end)

    def _count(self, reason: str, peer: str) -> None:
        count, first = self._refused.get(reason, (0, ""))
        self._refused[reason] = count + 1, first or peer
        self._untold = True

    def _tell(self, now: float) -> None:
        """Tell the master, in lines: how often it has asked, and of each reason count and first address.

        ``silent`` have not said enough in time, ``foreign`` spoke something else, for ``full`` there was no
        room (0: they wait for it), and ``closed`` were shut out by libzmq in their handshake.
        """
        lines = (f"{reason} {count} {first}\n" for reason, (count, first) in self._refused.items())
        with suppress(OSError):
            self._control.send(f"{self._asked}\n{''.join(lines)}".encode())
            self._untold = False
        self._told_at = now


def _was_served(connection: socket.socket) -> bool:
    """Whether more was sent than a handshake."""
    try:
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except OSError:
        return True
    return int.from_bytes(told[_ACKED_OFFSET:], sys.byteorder) > _HANDSHAKE_BYTES


def main() -> None:
    """Run the program."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # It ends with the master, which has a report to write.
        signal.signal(number, signal.SIG_IGN)
    control, most_links, most_ends, *given = map(int, sys.argv[1:])
    listeners = [socket.socket(fileno=number) for number in given]
    names = [str(listener.getsockname()[1]) for listener in listeners]
    PortRelay(socket.socket(fileno=control), most_links, most_ends, listeners).run()
    # A master that was killed could not remove its folder; any other has closed its sockets there before.
    with suppress(OSError):
        for name in names:
            os.unlink(name)  # noqa: PTH108 - pathlib takes long to import
        os.rmdir(os.getcwd())  # noqa: PTH106, PTH109 - as above


if __name__ == "__main__":
    main()
