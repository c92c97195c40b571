"""Where a run's stat file goes when the user does not say."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
import time
from pathlib import Path

from ssbench.errors import StatFileError
from ssbench.scenario.model import Scenario


def default_folder() -> Path:
    """``/tmp/ssbench-results``, or a folder of a new name when that one is not safely ours.

    Everybody may write to ``/tmp``: a link planted there, or a folder of another user, is left alone.
    """
    folder = Path(tempfile.gettempdir()) / "ssbench-results"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022:
        return folder
    return Path(tempfile.mkdtemp(prefix="ssbench-results-"))


def default_name(scenario: Scenario, now: float) -> str:
    """``<scenario>.u<users>.o<operations or ->.r<seconds or ->.<local date and time>.stat.gz``."""
    name = re.sub(r"[\s/]", "_", scenario.name)
    # Most file systems take 255 bytes; 60 are for what follows.
    name = name.encode()[:190].decode(errors="ignore") or "_"
    operations = "-" if scenario.run_seconds is not None else scenario.operation_count
    seconds = "-" if scenario.run_seconds is None else f"{scenario.run_seconds:g}"
    when = time.strftime("%Y-%m-%d.%H%M%S", time.localtime(now))
    return f"{name}.u{scenario.user_count}.o{operations}.r{seconds}.{when}.stat.gz"


def stats_path(given: Path | None, scenario: Scenario, now: float) -> Path:
    """The path of a run's stat file, ``.gz`` added where it is missing."""
    if given is None:
        return default_folder() / default_name(scenario, now)
    if not given.name or given.is_dir():
        raise StatFileError(f"{given}: is a folder; a file is expected")
    return given if given.name.endswith(".gz") else given.with_name(given.name + ".gz")


def check_writable(path: Path) -> None:
    """Find out before a run what would spoil its end; raises StatFileError, leaves no file behind."""
    was_there = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if not was_there:
            path.unlink()
    except OSError as error:
        raise StatFileError(f"{path}: cannot be written: {error.strerror}") from None
