"""Who may connect to a master: the handler that libzmq asks about each connection.

libzmq asks over a socket of the process, with the messages of ZAP (https://rfc.zeromq.org/spec/27/). This is
done here, not by pyzmq's ThreadAuthenticator: that takes 0.25 ms of Python for each connection, in an event
loop of asyncio, which was a quarter of the CPU of a master while 3,000 workers with keys joined.
"""

from __future__ import annotations

import threading
from contextlib import suppress

import zmq
from zmq.utils import z85

from ssbench.base.errors import KeyFileError
from ssbench.fleet.key import FleetKey

_ZAP_ENDPOINT = "inproc://zeromq.zap.01"
_ZAP_VERSION = b"1.0"
#: libzmq asks only where a socket has a domain.
_ZAP_DOMAIN = b"ssbench"
#: Frames of a question before the credentials.
_FRAMES_BEFORE_CREDENTIALS = 6
#: Keys of strangers that are counted.
_MAX_REFUSED_KEYS = 1000


class AllowedClients:
    """Accepts for the ZAP handler the client keys (in Z85) that are allowed now.

    ``revoked`` are those that no longer are: their connections stay, but what they send is dropped.
    ``refused`` are others that peers came with, as many as are remembered.
    """

    def __init__(self, key: FleetKey) -> None:
        self._key = key
        self._has_list = key.listed() is not None
        self._allowed = key.allowed()
        self.revoked: frozenset[str] = frozenset()
        self.refused: set[bytes] = set()

    def accepts(self, key: bytes) -> bool:
        """Return whether a key is allowed, and remember one that is not."""
        allowed = key in self._allowed
        if not allowed and len(self.refused) < _MAX_REFUSED_KEYS:
            self.refused.add(key)
        return allowed

    def read_again(self) -> tuple[list[str], list[str]]:
        """Read the list again; return the names of keys that were added and revoked. Raises KeyFileError.

        A list that is gone changes nothing: without one a master would accept the key that all share, also
        from those whose own keys were revoked.
        """
        listed = self._key.listed()
        if listed is None and self._has_list:
            raise KeyFileError(
                "the list of allowed keys is gone; a master that uses one needs it until its end"
            )
        self._has_list = listed is not None
        before, now = self._allowed, self._key.allowed() if listed is None else listed
        self._allowed = now
        self.refused -= now.keys()
        self.revoked = frozenset(
            {*self.revoked, *(key.decode() for key in before)} - {key.decode() for key in now}
        )
        added = [name for key, name in now.items() if key not in before]
        return added, [name for key, name in before.items() if key not in now]


class ZapHandler:
    """Answers libzmq's questions about the connections of a context, in a thread, until that is terminated.

    With ``clients`` it accepts peers that have one of their keys, otherwise all that speak ZMTP 3. Without a
    handler libzmq takes any bytes for messages of a peer of ZMTP 1, which does not even say what kind of
    socket it is.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], clients: AllowedClients | None) -> None:
        self._clients = clients
        self._socket = context.socket(zmq.REP)
        self._thread = threading.Thread(target=self._answer, name="zap", daemon=True)
        try:
            self._socket.linger = 0
            self._socket.bind(_ZAP_ENDPOINT)
            self._thread.start()
        except BaseException:
            # Or the end of the context would wait for it.
            self._socket.close()
            raise

    def guard(self, socket: zmq.Socket[bytes], key: FleetKey | None) -> None:
        """Have libzmq ask about the connections of a socket that is bound later; ``key`` seals it."""
        socket.zap_domain = _ZAP_DOMAIN
        if key is not None:
            socket.curve_server = True
            socket.curve_publickey = key.server_public
            socket.curve_secretkey = key.server_secret

    def join(self) -> None:
        """Wait for the end of the thread, which comes when the context is terminated."""
        self._thread.join()

    def _answer(self) -> None:
        with self._socket, suppress(zmq.ContextTerminated):
            while True:
                question = self._socket.recv_multipart()
                self._socket.send_multipart([_ZAP_VERSION, question[1], *self._decide(question)])

    def _decide(self, question: list[bytes]) -> tuple[bytes, bytes, bytes, bytes]:
        """Return status, text, the name under which messages of the peer come in, and no metadata.

        The name is the key in Z85, as with ThreadAuthenticator.
        """
        mechanism, credentials = (
            question[_FRAMES_BEFORE_CREDENTIALS - 1],
            question[_FRAMES_BEFORE_CREDENTIALS:],
        )
        if self._clients is None:
            return b"200", b"OK", b"anonymous", b""
        key = z85.encode(credentials[0]) if mechanism == b"CURVE" else b""
        if not self._clients.accepts(key):
            return b"400", b"Unknown key", b"", b""
        return b"200", b"OK", key, b""
