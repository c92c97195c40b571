"""Where a run's stat file goes when the user does not say."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ssbench.base import interruption
from ssbench.base.errors import StatFileError
from ssbench.run.folders import results_folder
from ssbench.scenario.model import Scenario


def default_stats_name(scenario: Scenario, now: float) -> str:
    """``<scenario>.u<users>.o<operations or ->.r<seconds or ->.<local date and time>.stat.gz``."""
    name = re.sub(r"[\s/]", "_", scenario.name)
    # Most file systems take 255 bytes; 60 are for what follows.
    encoding = sys.getfilesystemencoding()
    name = name.encode(encoding, "replace")[:190].decode(encoding, "ignore") or "_"
    operations = "-" if scenario.run_seconds is not None else scenario.operation_count
    seconds = "-" if scenario.run_seconds is None else f"{scenario.run_seconds:g}"
    when = time.strftime("%Y-%m-%d.%H%M%S", time.localtime(now))
    return f"{name}.u{scenario.user_count}.o{operations}.r{seconds}.{when}.stat.gz"


def label_stats_path(given: Path | None, scenario: Scenario, label: str, now: float) -> Path:
    """Return the name of the stat file of one run of several: ``NAME.LABEL.stat.gz``.

    NAME is the ``given`` one without its endings, or that of a new file in the usual folder for runs that
    began at ``now``. Raises StatFileError where no file can have the name.
    """
    stem = _stats_stem(results_folder() / default_stats_name(scenario, now) if given is None else given)
    return stem.with_name(f"{stem.name}.{label}.stat.gz")


def check_labels_unused(given: Path, labels: str) -> None:
    """Raise StatFileError where stat files of several runs exist whose labels begin like this."""
    stem = _stats_stem(given)
    there = sorted(stem.parent.glob(f"{glob.escape(f'{stem.name}.{labels}')}*.stat.gz"))
    if there:
        raise StatFileError(
            f"{there[0]}: exists already; give another name, or --force to overwrite such files"
        )


def _stats_stem(given: Path) -> Path:
    """Return a name without its endings."""
    try:
        if not given.name or given.is_dir():
            raise StatFileError(f"{given}: is a folder; a file is expected")
    except OSError as error:
        raise StatFileError(f"{given}: cannot be written: {error.strerror}") from None
    if "\0" in str(given):
        raise StatFileError(f"{str(given)!r}: no file can have this name here")
    return given.with_name(given.name.removesuffix(".gz").removesuffix(".stat") or given.name)


@contextlib.contextmanager
def reserve_stats_path(
    given: Path | None, scenario: Scenario, now: float, *, force: bool = False
) -> Iterator[Path]:
    """Find out before a run where its results go, and keep that name for it.

    A ``given`` name gets ``.gz`` where it is missing. A new file is made at once, so that no other run
    takes the name; what is still empty at the end is removed. Raises StatFileError when the file cannot
    be written, is no regular file, or, without ``force``, when it exists.
    """
    path = given
    try:
        path = new_stats_path(results_folder(), scenario, now) if given is None else _compressed_name(given)
        path.parent.mkdir(parents=True, exist_ok=True)
        there = _is_there(path)
        if there and not force:
            raise StatFileError(f"{path}: exists already; give another name, or --force to overwrite it")
        with path.open("ab" if there else "xb") as file:
            reserved = os.fstat(file.fileno())
    except OSError as error:
        raise StatFileError(f"{path}: cannot be written: {error.strerror}") from None
    except ValueError:
        raise StatFileError(f"{str(given)!r}: no file can have this name here") from None

    def remove_empty() -> None:
        with contextlib.suppress(OSError):
            if not there and not path.stat().st_size and os.path.samestat(path.lstat(), reserved):
                path.unlink()

    try:
        with interruption.undo_on_interrupt(remove_empty):
            yield path
    finally:
        remove_empty()


def new_stats_path(folder: Path, scenario: Scenario, now: float) -> Path:
    """Return the name of a new stat file in a folder."""
    path = folder / default_stats_name(scenario, now)
    while path.exists():  # another run began in the same second
        now += 1
        path = folder / default_stats_name(scenario, now)
    return path


def _compressed_name(given: Path) -> Path:
    if not given.name or given.is_dir():
        raise StatFileError(f"{given}: is a folder; a file is expected")
    _is_there(given)
    return given if given.name.endswith(".gz") else given.with_name(given.name + ".gz")


def _is_there(path: Path) -> bool:
    """Whether a file is there; raises StatFileError when it is no regular one."""
    if not os.path.lexists(path):
        return False
    with contextlib.suppress(FileNotFoundError):  # a link to nowhere
        if not stat.S_ISREG(path.stat().st_mode):
            raise StatFileError(f"{path}: is not a regular file")
    return True
