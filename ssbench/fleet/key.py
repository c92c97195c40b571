"""The key files of a sealed fleet: one that the master and every worker hold, or one for each worker.

With it both sockets speak CURVE (http://rfc.zeromq.org/spec:26): messages are encrypted, and the master
accepts only peers that have the client key of its file, or a key in its list (:mod:`ssbench.fleet.allowed`).
The file is JSON: ``format``, and ``server`` and ``client``, each with ``public`` and ``secret`` in
Z85 (http://rfc.zeromq.org/spec:32). That of one worker has no ``secret`` of the server.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from zmq.utils import z85

from ssbench.base.errors import KeyFileError
from ssbench.base.untrusted import read_small_file
from ssbench.fleet import allowed

FLEET_KEY_FORMAT = "ssbench fleet key 1"
WORKER_KEY_FORMAT = "ssbench worker key 1"
_MAX_KEY_BYTES = 4096


@dataclass(frozen=True, slots=True)
class FleetKey:
    """The four CURVE keys of a fleet, 40 characters of Z85 each; a worker may lack that of the server.

    ``path`` is the file that they are from.
    """

    server_public: bytes
    server_secret: bytes = field(repr=False)
    client_public: bytes
    client_secret: bytes = field(repr=False)
    path: Path | None = None

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
        return (
            allowed.read_allowed_keys(allowed.allowed_list_path(self.path)) if self.path is not None else None
        )


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
        allowed.add_worker_key(
            allowed.allowed_list_path(fleet_file), name, pair["public"].encode(), fleet.client_public
        )
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
