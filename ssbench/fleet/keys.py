"""The keys of a sealed fleet: files, the list of those that are accepted, and who may connect.

With a key file both sockets speak CURVE (http://rfc.zeromq.org/spec:26): messages are encrypted, and the
master accepts only peers that have the client key of its file, or a key in its list. The master and all
workers hold the same file, or each worker has its own.

The key file is JSON: ``format``, and ``server`` and ``client``, each with ``public`` and ``secret`` in Z85
(http://rfc.zeromq.org/spec:32). That of one worker has no ``secret`` of the server.

The list is a file beside the master's key file, ``fleet.key.allowed``. Each line has a name and the public
half of a key in Z85. Without a list the key that all share is accepted. To revoke a key, remove its line and
send SIGHUP to the master.
"""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from zmq.utils import z85

from ssbench.base.errors import KeyFileError
from ssbench.base.untrusted import read_small_file

#: A list of thousands of workers.
_MAX_LIST_BYTES = 1_000_000

#: The name of the key in the master's own file, with which its local workers connect.
LOCAL_KEY_NAME = "local"

_KEY_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LIST_HEAD = """\
# Keys of workers that the master accepts: a name and a public key in each line. It reads them anew on SIGHUP.
# "local" is the key in the master's own file: remove its line if that file was ever on another host.
"""


def allowed_list_path(key_file: Path) -> Path:
    """Return where the list that belongs to a key file is."""
    return key_file.with_name(key_file.name + ".allowed")


def check_key_name(name: str) -> str:
    """Return the name of a worker's key; raises ValueError."""
    if not _KEY_NAME_PATTERN.fullmatch(name) or name == LOCAL_KEY_NAME:
        raise ValueError(f"{name!r}: expected 1 to 64 letters, digits, dots, dashes and underscores")
    return name


def read_allowed_keys(path: Path) -> Mapping[bytes, str] | None:
    """Return the names of the keys of a list by their public halves; None where there is no list.

    Raises KeyFileError, also where others than the owner may write it.
    """
    try:
        mode = path.stat().st_mode
        text = read_small_file(path, _MAX_LIST_BYTES).decode("ascii")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise KeyFileError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise KeyFileError(f"{path}: is not a list of keys") from None
    if stat.S_IMODE(mode) & 0o022:
        raise KeyFileError(f"{path}: others may write it (mode {stat.S_IMODE(mode):04o}): chmod 600 it")
    found: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or not _KEY_NAME_PATTERN.fullmatch(words[0]) or not _is_key(words[1]):
            raise KeyFileError(f"{path}:{number}: expected a name and a public key of 40 characters")
        found[words[1].encode()] = words[0]
    return found


def _is_key(text: str) -> bool:
    try:
        return len(text) == 40 and len(z85.decode(text.encode())) == 32
    except (ValueError, KeyError):
        return False


def add_worker_key(path: Path, name: str, public: bytes, local: bytes) -> None:
    """Add a key to a list, which is made where there is none; raises KeyFileError."""
    known = read_allowed_keys(path)
    if known is None:
        _write_list(path, f"{_LIST_HEAD}{LOCAL_KEY_NAME} {local.decode()}\n{name} {public.decode()}\n")
        return
    if name in known.values():
        raise KeyFileError(
            f"{path}: has a key of {name} already; give the new one another name, and revoke the old one"
            " later"
        )
    _write_list(path, _list_text(path) + f"{name} {public.decode()}\n")


def revoke_worker_key(path: Path, name: str) -> None:
    """Remove a key from a list; raises KeyFileError where it is not there."""
    known = read_allowed_keys(path)
    if known is None or name not in known.values():
        raise KeyFileError(f"{path}: has no key of {name}")
    lines = _list_text(path).splitlines(keepends=True)
    _write_list(path, "".join(line for line in lines if line.split()[:1] != [name]))


def _list_text(path: Path) -> str:
    text = path.read_text(encoding="ascii")
    return text if text.endswith("\n") else text + "\n"


def _write_list(path: Path, text: str) -> None:
    """Replace a file by a whole one: a master may read it at any time."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise KeyFileError(f"{path}: cannot be written: {error.strerror}") from None


# -- Key files -------------------------------------------------------------------------------------


FLEET_KEY_FORMAT = "ssbench fleet key 1"
WORKER_KEY_FORMAT = "ssbench worker key 1"
_MAX_KEY_BYTES = 4096


@dataclass(frozen=True, slots=True)
class FleetKey:
    """The four CURVE keys of a fleet, 40 characters of Z85 each; a worker may lack that of the server."""

    server_public: bytes
    server_secret: bytes = field(repr=False)
    client_public: bytes
    client_secret: bytes = field(repr=False)
    path: Path | None = None  # the file that they were read from

    def allowed(self) -> Mapping[bytes, str]:
        """Return the names of the keys that a master accepts now, by their public halves.

        Raises KeyFileError where the list of its file cannot be read, or this is the key of a worker.
        """
        listed = self.listed()
        return {self.client_public: "shared"} if listed is None else listed

    def listed(self) -> Mapping[bytes, str] | None:
        """Return those of the list, None where there is no list, so that the shared key is accepted.

        Raises KeyFileError as :meth:`allowed` does.
        """
        if not self.server_secret:
            raise KeyFileError(f"{self.path}: is the key of a worker; a master needs that of the fleet")
        return read_allowed_keys(allowed_list_path(self.path)) if self.path is not None else None


def write_fleet_key(path: Path) -> None:
    """Make new keys and write them to a file that only its owner reads; never over an old one.

    Raises KeyFileError, and leaves no file then.
    """
    _write_key_file(
        path, {"format": FLEET_KEY_FORMAT, "server": _make_key_pair(), "client": _make_key_pair()}
    )


def write_worker_key(fleet_file: Path, name: str) -> Path:
    """Make a key of one worker, and let the master that has a file accept it; return the worker's file.

    Raises KeyFileError, and leaves no file and no line of the list then.
    """
    fleet = read_fleet_key(fleet_file)
    fleet.allowed()  # refuses the key of a worker
    pair = _make_key_pair()
    path = fleet_file.with_name(f"{name}.key")
    _write_key_file(
        path,
        {"format": WORKER_KEY_FORMAT, "server": {"public": fleet.server_public.decode()}, "client": pair},
    )
    try:
        add_worker_key(allowed_list_path(fleet_file), name, pair["public"].encode(), fleet.client_public)
    except KeyFileError:
        path.unlink(missing_ok=True)
        raise
    return path


def _make_key_pair() -> dict[str, str]:
    public, secret = zmq.curve_keypair()
    return {"public": public.decode(), "secret": secret.decode()}


def _write_key_file(path: Path, content: Mapping[str, object]) -> None:
    text = json.dumps(content, indent=1) + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise KeyFileError(f"{path}: is there already and is not overwritten") from None
    except OSError as error:
        raise KeyFileError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise KeyFileError(f"{path}: cannot be written: {error.strerror}") from None


def read_fleet_key(path: Path) -> FleetKey:
    """Read a key file; raises KeyFileError, also when others than its owner may read it."""
    try:
        mode = path.stat().st_mode
        content = json.loads(read_small_file(path, _MAX_KEY_BYTES))
    except OSError as error:
        raise KeyFileError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        content = None
    if stat.S_IMODE(mode) & 0o077:
        raise KeyFileError(f"{path}: others may read it (mode {stat.S_IMODE(mode):04o}): chmod 600 it")
    try:
        if content["format"] not in {FLEET_KEY_FORMAT, WORKER_KEY_FORMAT}:
            raise ValueError
        halves = [(side, half) for side in ("server", "client") for half in ("public", "secret")]
        if content["format"] == WORKER_KEY_FORMAT:
            halves.remove(("server", "secret"))
        keys = {(side, half): content[side][half].encode("ascii") for side, half in halves}
        if any(len(key) != 40 or len(z85.decode(key)) != 32 for key in keys.values()):
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise KeyFileError(
            f"{path}: is not a key file of ssbench (ssbench-master keygen makes one)"
        ) from None
    return FleetKey(
        keys["server", "public"],
        keys.get(("server", "secret"), b""),
        keys["client", "public"],
        keys["client", "secret"],
        path,
    )


# -- Who may connect -------------------------------------------------------------------------------


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

    libzmq asks about each connection over a socket of the process, with the messages of ZAP
    (https://rfc.zeromq.org/spec/27/). pyzmq's ThreadAuthenticator, which would answer too, takes 0.25 ms of
    Python for each connection, in an event loop of asyncio, which was a quarter of the CPU of a master while
    3,000 workers with keys joined.

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
