"""The TCP ports of a master: a process of their own relays their connections to Unix sockets.

Why, and what that process does, is in :mod:`ssbench.fleet.port_relay`. It begins to relay some hundredths of
a second later; who connects before that waits.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from ssbench.base.errors import UsageError
from ssbench.fleet import port_relay
from ssbench.fleet.descriptors import ConnectionLimits
from ssbench.fleet.port_relay import WAIT_SECONDS

_PROGRAM = Path(port_relay.__file__).resolve()

#: How many connections may wait to be accepted. Thousands come at once when the workers of a large fleet
#: start together; those for which there is no room come again after 1, 2 or 4 s.
_BACKLOG = 4096

#: Seconds for the process to end, once the master's sockets are closed.
_END_SECONDS = 5.0

#: The message when a peer is first refused, by reason.
_REFUSALS = {
    "silent": "Closed a connection from {peer}: it said nothing for {seconds:g} s, or until others needed its"
    " place; the report counts such connections",
    "foreign": "Closed a connection from {peer}: it does not speak the protocol of ssbench-worker; the report"
    " counts such connections",
    "closed": "Closed a connection from {peer} in its handshake: it comes from another program, or has no key"
    " of this fleet; the report counts such connections",
    "full": "{limits.descriptors:,} file descriptors are too few for more connections: those that come now"
    " wait until others end. There is room for about {limits.relayed:,} workers, which have two connections"
    " each; raise the limit (ulimit -n) for more",
}
_FAILURE = (
    "A process that relays the connections of workers has ended: workers that connect over TCP can no longer"
    " be reached. Has somebody ended it, or was memory short?"
)

_SILENCE = (
    "The process that relays the connections of workers (pid {pid}) has not answered for {seconds:g} s: until"
    " it does, workers that connect over TCP cannot be reached. Has somebody stopped it?"
)

#: Seconds between two questions to the process, and those it may take to answer: while the master waits for
#: nothing else, and before its user is told.
_ASK_SECONDS = 2.0
_ANSWER_SECONDS = 1.0
_SILENT_SECONDS = 10.0

#: More bytes than one message of the process has.
_MAX_STATE_BYTES = 4096


def bind_port(host: str, port: int) -> socket.socket:
    """Return a TCP socket bound to a numeric address; raises gaierror for other addresses."""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV | socket.AI_PASSIVE
    family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(place)
    except BaseException:
        listener.close()
        raise
    return listener


def set_connection_options(listener: socket.socket, seconds: int, probes: int) -> None:
    """Make the kernel drop accepted connections whose peer has not answered for so long.

    Also those on which data is on its way, to a peer that was stopped and has a full buffer.
    """
    for level, option, value in (
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, seconds // 2),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, seconds // 2 // probes)),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, probes),
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, seconds * 1000),
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    ):
        listener.setsockopt(level, option, value)


class RelayedPorts:
    """The process that relays.

    It takes over the bound TCP sockets, and connects to the Unix sockets in ``folder`` that have the numbers
    of their ports. Raises UsageError where it cannot be started. ``refused`` is how many connections were
    refused, as of the last :meth:`take_news` or :meth:`count_refused`.
    """

    def __init__(self, listeners: Sequence[socket.socket], folder: str, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._lives = True
        #: What has been said, by reason.
        self._said: set[str] = set()
        self.refused = 0
        #: The questions, when the last one was sent, and how many of them have an answer.
        self._asked = 0
        self._asked_at = time.monotonic()
        self._answered = 0
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)
        try:
            with ExitStack() as handed:
                for each in (theirs, *listeners):
                    handed.enter_context(each)
                for each in listeners:
                    each.listen(_BACKLOG)
                given = [each.fileno() for each in listeners]
                numbers = (theirs.fileno(), limits.relayed, limits.ends, *given)
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    [sys.executable, "-I", "-S", str(_PROGRAM), *map(str, numbers)],
                    pass_fds=(theirs.fileno(), *given),
                    cwd=folder,  # so that a path of any length will do
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    # Ctrl-C in a terminal is for the master, which has a report to write.
                    start_new_session=True,
                )
        except OSError as error:
            self._control.close()
            raise UsageError(f"no process can be started that relays connections: {error.strerror}") from None

    def take_news(self) -> list[str]:
        """Read the messages of the process; return new ones for the user, each text once."""
        news = self._receive()
        since = time.monotonic() - self._asked_at
        if self._answered == self._asked:
            self._said.discard("unanswered")
            if since > _ASK_SECONDS:
                self._ask()
        elif since > _SILENT_SECONDS and self._lives and "unanswered" not in self._said:
            self._said.add("unanswered")
            news.append(_SILENCE.format(pid=self._process.pid, seconds=_SILENT_SECONDS))
        return news

    def count_refused(self) -> list[str]:
        """Bring ``refused`` up to this moment; return what there is to say, as :meth:`take_news` does.

        It waits for the answer of the process, one second at most.
        """
        self._ask()
        news = self._receive()
        end = time.monotonic() + _ANSWER_SECONDS
        watch = select.poll()  # select() knows no descriptor beyond 1,023
        watch.register(self._control, select.POLLIN)
        while self._lives and self._answered < self._asked and (left := end - time.monotonic()) > 0:
            watch.poll(1000 * left)
            news += self._receive()
        return news

    def _ask(self) -> None:
        with suppress(OSError):  # it has ended, which the next message tells, or reads nothing
            self._control.send(b"?")
            self._asked += 1
            self._asked_at = time.monotonic()

    def _receive(self) -> list[str]:
        news: list[str] = []
        with suppress(BlockingIOError):
            while self._lives:
                try:
                    told = self._control.recv(_MAX_STATE_BYTES)
                except ConnectionResetError:
                    told = b""
                if not told:
                    self._lives = False
                    news.append(_FAILURE)
                    break
                answered, *reasons = told.decode().splitlines()
                self._answered = int(answered)
                lines = [line.split(" ") for line in reasons]
                self.refused = sum(int(count) for _, count, _ in lines)
                for reason, _, first in lines:
                    if reason not in self._said:
                        self._said.add(reason)
                        news.append(
                            _REFUSALS[reason].format(peer=first, seconds=WAIT_SECONDS, limits=self._limits)
                        )
        return news

    def close(self) -> None:
        """Make the process end once all data sent has left; safe to call again."""
        self._control.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
