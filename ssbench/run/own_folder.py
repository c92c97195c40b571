"""A private folder in the temporary folder, which everybody may write to."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path


def own_folder(name: str) -> Path:
    """Return ``/tmp/NAME``, ``/tmp/NAME-UID`` when that is not safely ours, else a folder of a new name.

    A link planted there, or a folder that another user owns or may write to, is left alone.
    """
    temporary = Path(tempfile.gettempdir())
    for folder in own_names(temporary, name):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if is_own(folder.lstat()):
            return folder
    return Path(tempfile.mkdtemp(prefix=f"{name}-"))


def own_names(temporary: Path, name: str) -> tuple[Path, Path]:
    """Return the names that :func:`own_folder` tries in the temporary folder."""
    return temporary / name, temporary / f"{name}-{os.geteuid()}"


def is_own(found: os.stat_result) -> bool:
    """Return whether this is a folder of the user's that no other user may write to."""
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
