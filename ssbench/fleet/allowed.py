"""The list of the workers' keys that a master accepts: a file beside its key file.

A line of ``fleet.key.allowed`` has a name and the public half of a key in Z85. Where there is no such file,
the key that all share is accepted. Removing a line, and SIGHUP to the master, revokes a key.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

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
