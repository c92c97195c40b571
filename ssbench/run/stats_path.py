"""Where a run's stat file goes when the user does not say."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ssbench.errors import StatFileError
from ssbench.run.own_folder import own_folder
from ssbench.scenario.model import Scenario


def default_name(scenario: Scenario, now: float) -> str:
    """``<scenario>.u<users>.o<operations or ->.r<seconds or ->.<local date and time>.stat.gz``."""
    name = re.sub(r"[\s/]", "_", scenario.name)
    # Most file systems take 255 bytes; 60 are for what follows.
    encoding = sys.getfilesystemencoding()
    name = name.encode(encoding, "replace")[:190].decode(encoding, "ignore") or "_"
    operations = "-" if scenario.run_seconds is not None else scenario.operation_count
    seconds = "-" if scenario.run_seconds is None else f"{scenario.run_seconds:g}"
    when = time.strftime("%Y-%m-%d.%H%M%S", time.localtime(now))
    return f"{name}.u{scenario.user_count}.o{operations}.r{seconds}.{when}.stat.gz"


@contextlib.contextmanager
def reserve(given: Path | None, scenario: Scenario, now: float, *, force: bool = False) -> Iterator[Path]:
    """Find out before a run where its results go, and keep that name for it.

    A ``given`` name gets ``.gz`` where it is missing. A new file is made at once, so that no other run
    takes the name; what is still empty at the end is removed. Raises StatFileError when the file cannot
    be written, is no regular file, or, without ``force``, when it exists.
    """
    path = given
    try:
        path = _new_default(scenario, now) if given is None else _compressed_name(given)
        path.parent.mkdir(parents=True, exist_ok=True)
        there = _check(path)
        if there and not force:
            raise StatFileError(f"{path}: exists already; give another name, or --force to overwrite it")
        with path.open("ab" if there else "xb") as file:
            reserved = os.fstat(file.fileno())
    except OSError as error:
        raise StatFileError(f"{path}: cannot be written: {error.strerror}") from None
    except ValueError:
        raise StatFileError(f"{str(given)!r}: no file can have this name here") from None
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            if not there and not path.stat().st_size and os.path.samestat(path.lstat(), reserved):
                path.unlink()


def _new_default(scenario: Scenario, now: float) -> Path:
    folder = own_folder("ssbench-results")
    path = folder / default_name(scenario, now)
    while path.exists():  # another run began in the same second
        now += 1
        path = folder / default_name(scenario, now)
    return path


def _compressed_name(given: Path) -> Path:
    if not given.name or given.is_dir():
        raise StatFileError(f"{given}: is a folder; a file is expected")
    _check(given)
    return given if given.name.endswith(".gz") else given.with_name(given.name + ".gz")


def _check(path: Path) -> bool:
    """Whether a file is there; raises StatFileError when it is no regular one."""
    if not os.path.lexists(path):
        return False
    with contextlib.suppress(FileNotFoundError):  # a link to nowhere
        if not stat.S_ISREG(path.stat().st_mode):
            raise StatFileError(f"{path}: is not a regular file")
    return True
