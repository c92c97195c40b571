"""The key file of a sealed fleet: one file that the master and every worker hold.

With it both sockets speak CURVE (http://rfc.zeromq.org/spec:26): messages are encrypted, and the master
accepts only peers that have the client key of the file.
The file is JSON: ``format``, and ``server`` and ``client``, each with ``public`` and ``secret`` in
Z85 (http://rfc.zeromq.org/spec:32).
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from zmq.utils import z85

from ssbench.errors import KeyFileError
from ssbench.untrusted import read_small

FORMAT = "ssbench fleet key 1"
_MAX_BYTES = 4096


@dataclass(frozen=True, slots=True)
class FleetKey:
    """The four CURVE keys of a fleet, 40 characters of Z85 each."""

    server_public: bytes
    server_secret: bytes = field(repr=False)
    client_public: bytes
    client_secret: bytes = field(repr=False)


def write_new(path: Path) -> None:
    """Make new keys and write them to a file that only its owner reads; never over an old one.

    Raises KeyFileError, and leaves no file then.
    """
    parts = {}
    for side in ("server", "client"):
        public, secret = zmq.curve_keypair()
        parts[side] = {"public": public.decode(), "secret": secret.decode()}
    text = json.dumps({"format": FORMAT, **parts}, indent=1) + "\n"
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


def read(path: Path) -> FleetKey:
    """Read a key file; raises KeyFileError, also when others than its owner may read it."""
    try:
        mode = path.stat().st_mode
        content = json.loads(read_small(path, _MAX_BYTES))
    except OSError as error:
        raise KeyFileError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        content = None
    if stat.S_IMODE(mode) & 0o077:
        raise KeyFileError(f"{path}: others may read it (mode {stat.S_IMODE(mode):04o}): chmod 600 it")
    try:
        if content["format"] != FORMAT:
            raise ValueError
        keys = [
            content[side][half].encode("ascii")
            for side in ("server", "client")
            for half in ("public", "secret")
        ]
        if any(len(key) != 40 or len(z85.decode(key)) != 32 for key in keys):
            raise ValueError
    except (KeyError, TypeError, ValueError, AttributeError):
        raise KeyFileError(
            f"{path}: is not a key file of ssbench (ssbench-master keygen makes one)"
        ) from None
    return FleetKey(*keys)
