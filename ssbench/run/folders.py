"""Folders that ssbench makes for itself: for results that were given no place, for sockets, temporary ones.

Results stay in a folder of the user's that outlives a reboot. The temporary folder does not: many machines
empty it when they start; and everybody may write to it, so that a folder there is only used where it is ours.

:func:`reserve_stats_path` says where a run's stat file goes when the user does not.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import itertools
import logging
import os
import re
import shlex
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from ssbench.base import interruption
from ssbench.base.errors import StatFileError, UsageError
from ssbench.base.socket_folders import temporary_folder
from ssbench.scenario.model import Scenario

_log = logging.getLogger(__name__)

#: The folder in the temporary folder that versions before 1.0.0 was released used, and where results go when
#: the user has no folder for them.
_TEMPORARY_NAME = "ssbench-results"


def results_folder() -> Path:
    """Return the folder for results, and make it: ``$XDG_STATE_HOME/ssbench``, or ``~/.local/state/ssbench``.

    It is used only when it is safely the user's own. Otherwise it is one in the temporary folder
    (:func:`ssbench.run.folders.own_folder`). Raises UsageError where none can be made there either.
    """
    folder = _state_folder()
    if folder is None:
        return _temporary("no folder for results: the user has no home")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_own_folder(folder.stat()):
            return folder
        why = f"others own it or may write to it (chmod go-w {shlex.quote(str(folder))})"
    except OSError as error:
        why = error.strerror or str(error)
    why = f"{folder} is not used for results: {why}"
    instead = _temporary(why)
    _warn_once(f"{why}; {instead} is used unless --results-dir names another")
    return instead


def _temporary(why: str) -> Path:
    """Return the folder in the temporary folder; the error says ``why`` it is needed, and the way out."""
    try:
        return own_folder(_TEMPORARY_NAME)
    except UsageError as error:
        raise UsageError(f"{why}, and {error}; --results-dir names one") from None


def earlier_folders() -> list[Path]:
    """Return the folders, besides :func:`results_folder`, in which earlier runs left their results."""
    found = []
    with suppress(UsageError):  # without a temporary folder there are none
        for folder in own_folder_names(temporary_folder(), _TEMPORARY_NAME):
            with suppress(OSError):
                if is_own_folder(folder.lstat()):
                    found.append(folder)
    return found


def _state_folder() -> Path | None:
    """Return the folder of the user's, which may not exist yet; None where the user has no home.

    With sudo, the home may be another user's; root must leave nothing of its own there.
    """
    try:
        state = Path(os.environ.get("XDG_STATE_HOME", ""))
        if not state.is_absolute():  # the specification says to ignore it then
            home = Path.home()
            if not home.is_absolute() or home == home.parent or not home.is_dir():
                return None
            state = home / ".local" / "state"
        there = next(each for each in (state, *state.parents) if each.exists())
        return state / "ssbench" if there.stat().st_uid == os.geteuid() else None
    except (OSError, RuntimeError, ValueError):  # RuntimeError: no home is known
        return None


@cache
def _warn_once(text: str) -> None:
    _log.warning("%s", text)


def own_folder(name: str) -> Path:
    """Return ``/tmp/NAME``, ``/tmp/NAME-UID`` when that is not safely ours, else a folder of a new name.

    A link planted there, or a folder that another user owns or may write to, is left alone. Raises
    UsageError where none can be made.
    """
    found = temporary_folder()
    try:
        for folder in own_folder_names(found, name):
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            if is_own_folder(folder.lstat()):
                return folder
        return Path(tempfile.mkdtemp(prefix=f"{name}-"))
    except OSError as error:
        raise UsageError(
            f"{found}: no folder can be made there: {error.strerror}; TMPDIR names another"
        ) from None


def own_folder_names(temporary: Path, name: str) -> tuple[Path, Path]:
    """Return the names that :func:`own_folder` tries in the temporary folder."""
    return temporary / name, temporary / f"{name}-{os.geteuid()}"


def is_own_folder(found: os.stat_result) -> bool:
    """Return whether this is a folder of the user's that no other user may write to."""
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


# -- Stat files ------------------------------------------------------------------------------------


def default_stats_name(scenario: Scenario, now: float) -> str:
    """Return :func:`default_stats_stem` with local date and time: ``STEM.2026-01-31.235959.stat.gz``."""
    when = time.strftime("%Y-%m-%d.%H%M%S", time.localtime(now))
    return f"{default_stats_stem(scenario)}.{when}.stat.gz"


def default_stats_stem(scenario: Scenario) -> str:
    """Return ``<scenario>.u<users>.o<operations or ->.r<seconds or ->``."""
    name = re.sub(r"[\s/]", "_", scenario.name)
    # Most file systems take 255 bytes; 60 are for what follows.
    encoding = sys.getfilesystemencoding()
    name = name.encode(encoding, "replace")[:190].decode(encoding, "ignore") or "_"
    operations = "-" if scenario.run_seconds is not None else scenario.operation_count
    seconds = "-" if scenario.run_seconds is None else f"{scenario.run_seconds:g}"
    return f"{name}.u{scenario.user_count}.o{operations}.r{seconds}"


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
    takes the name; what is still empty at the end is removed. A stat file that exists gets another name,
    because scripts of ssbench 0.x give the same one each time. Raises StatFileError when the file cannot be
    written, is no regular file, or, without ``force``, when it exists and is no stat file, or another run is
    writing it.
    """
    path = given
    try:
        path = new_stats_path(results_folder(), scenario, now) if given is None else _compressed_name(given)
        path.parent.mkdir(parents=True, exist_ok=True)
        there = _is_there(path)
        if there and not force:
            _keep_earlier_results(path)
            there = False
        file = path.open("ab" if there else "xb")
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
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
        with file, interruption.undo_on_interrupt(remove_empty):
            yield path
    finally:
        remove_empty()


def _keep_earlier_results(path: Path) -> None:
    """Give the stat file of a run that has ended another name; raises StatFileError for any other file."""
    # Here, because it brings numpy, which others that need a folder do without.
    from ssbench.results.reading import is_stat_file  # noqa: PLC0415

    refusal = f"{path}: exists already; give another name, or --force to overwrite it"
    # Where a run was killed before it had results, the file is empty.
    if path.is_symlink() or (path.stat().st_size and not is_stat_file(path)):
        raise StatFileError(refusal)
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StatFileError(f"{path}: exists already, and a run is writing it") from None
        except OSError:  # a file system without locks: whether a run is writing it is unknown
            raise StatFileError(refusal) from None
        _log.info("Kept the earlier %s as %s", path, rename_earlier_file(path))


#: A name without its endings, and these.
_ENDINGS_PATTERN = re.compile(r"(.+?)(\.stat\.gz|\.stat|\.gz|\.[A-Za-z]\w{0,9})?", re.DOTALL)


def rename_earlier_file(path: Path) -> Path:
    """Give a file a name with a number that no file has, such as ``x.1.stat.gz``, and return it.

    Raises OSError where that cannot be.
    """
    found = _ENDINGS_PATTERN.fullmatch(path.name)
    stem, endings = found.groups("") if found else (path.name, "")
    for number in itertools.count(1):
        kept = path.with_name(f"{stem}.{number}{endings}")
        with contextlib.suppress(FileExistsError):
            # Unlike a rename this replaces nothing.
            os.link(path, kept, follow_symlinks=False)
            path.unlink()
            return kept
    raise AssertionError("numbers have no end")


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
