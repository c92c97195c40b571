"""The version of a source tree: that of its tag, or else a development version, as PEP 440 orders them.

A clone says it by ``git describe``, an archive of git by ``.git_archival.txt``, an sdist by the file that its
build left in it. Without tags, as in a shallow clone, and without git there is the number of the release to
come, from ``ssbench/base/version.py``, marked as a development state. (setuptools-scm calls each clone
without tags 0.1, which would be older than ssbench 0.3.9, and all clones are shallow or without tags until
the first release.)
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

#: What a build leaves in the package, beside ``version.py``, which reads it.
BUILT = Path("ssbench", "base", "version.txt")

_ARCHIVAL = Path(".git_archival.txt")
_NUMBER = re.compile(r"\d+(\.\d+)*")
#: What git describe says: a tag, so many commits before this one, and the hash of this one.
_DESCRIBED = re.compile(
    r"v?(?P<tag>\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?)(?:-(?P<distance>\d+)-g(?P<hash>[0-9a-f]+))?"
)
_TAGS = "--match=v[0-9]*"


def find_version(root: Path) -> str:
    """Return the version of the source tree in ``root``."""
    is_sdist = (root / "PKG-INFO").exists()  # also where somebody keeps it in a repository of his own
    if (root / ".git").exists() and not is_sdist:
        return _ask_git(root)
    if (root / BUILT).exists():
        return (root / BUILT).read_text("utf-8").strip()
    return _read_archival(root)


def write_version(root: Path, version: str) -> None:
    """Leave the version in the package, for what is built of it."""
    fresh = (root / BUILT).with_suffix(".new")
    fresh.write_text(f"{version}\n", "utf-8")
    fresh.replace(root / BUILT)


def _ask_git(root: Path) -> str:
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    mark = ".changed" if changed else ""
    said = _git(root, "describe", "--tags", "--long", "--abbrev=8", _TAGS)
    if said and (found := _DESCRIBED.fullmatch(said)):
        return _name_state(root, found["tag"], int(found["distance"]), f"g{found['hash']}{mark}")
    commit = _git(root, "rev-parse", "--short=8", "HEAD")
    if not commit:  # no git is installed, or nothing is committed
        return f"{_read_number(root)}.dev0"
    shallow = _git(root, "rev-parse", "--is-shallow-repository") == "true"
    count = "0" if shallow else _git(root, "rev-list", "--count", "HEAD") or "0"
    return f"{_read_number(root)}.dev{count}+g{commit}{mark}"


def _read_archival(root: Path) -> str:
    """Return what ``git archive`` wrote into its file; in a plain copy there is nothing."""
    file = root / _ARCHIVAL
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    said = dict(line.split(": ", 1) for line in lines if ": " in line)
    if found := _DESCRIBED.fullmatch(said.get("describe", "")):
        return _name_state(root, found["tag"], int(found["distance"] or 0), f"g{found['hash']}")
    commit = said.get("commit", "")
    return f"{_read_number(root)}.dev0" + (f"+g{commit[:8]}" if re.fullmatch("[0-9a-f]{8,}", commit) else "")


def _name_state(root: Path, tag: str, distance: int, local: str) -> str:
    """Return the version of a tag, or that of a state beyond it, on the way to the next one."""
    if not distance and not local.endswith(".changed"):
        return tag
    # 1.0.0 is followed by 1.0.1, and 1.0.0rc1 by 1.0.0rc2: 1.0.0.dev5 comes before 1.0.0rc1.
    following = re.sub(r"\d+\Z", lambda last: str(int(last[0]) + 1), tag)
    coming, number = _read_number(root), _NUMBER.match(following)
    assert number, following
    if _order(coming) > _order(number[0]):
        following = coming
    return f"{following}.dev{distance}+{local}"


def _order(number: str) -> list[int]:
    return [*map(int, number.split("."))]


def _read_number(root: Path) -> str:
    """Return the number of the release to come, or of the one that this is."""
    text = (root / "ssbench" / "base" / "version.py").read_text("utf-8")
    found = re.search(r'^NUMBER = "(.*)"', text, re.MULTILINE)
    assert found, "ssbench/base/version.py: expected NUMBER"
    return found[1]


def _git(root: Path, *command: str) -> str:
    """Return what git says; nothing where it fails or is not installed."""
    # Of a clone of another user, too, whose setup.py runs already.
    command = ("git", "-c", "safe.directory=*", *command)
    try:
        made = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return made.stdout.strip()
