"""Where the results of runs stay that were given no place: a folder of the user's that outlives a reboot.

The temporary folder does not: many machines empty it when they start.
"""

from __future__ import annotations

import logging
import os
import shlex
import tempfile
from functools import cache
from pathlib import Path

from ssbench.run.own_folder import is_own, own_folder, own_names

_log = logging.getLogger(__name__)

#: The folder in the temporary folder that versions before 1.0.0 was released used, and where results go when
#: the user has no folder for them.
_TEMPORARY = "ssbench-results"


def results_folder() -> Path:
    """Return the folder for results, and make it: ``$XDG_STATE_HOME/ssbench``, or ``~/.local/state/ssbench``.

    It is used only when it is safely the user's own. Otherwise it is one in the temporary folder
    (:func:`ssbench.run.own_folder.own_folder`).
    """
    folder = _state_folder()
    if folder is None:
        return own_folder(_TEMPORARY)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_own(folder.stat()):
            return folder
        why = f"others own it or may write to it (chmod go-w {shlex.quote(str(folder))})"
    except OSError as error:
        why = error.strerror or str(error)
    temporary = own_folder(_TEMPORARY)
    _warn_once(f"{folder} is not used for results: {why}; {temporary} is, where no other place is given")
    return temporary


def earlier_folders() -> list[Path]:
    """Return the folders, besides :func:`results_folder`, in which earlier runs left their results."""
    found = []
    for folder in own_names(Path(tempfile.gettempdir()), _TEMPORARY):
        try:
            if is_own(folder.lstat()):
                found.append(folder)
        except OSError:
            continue
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
