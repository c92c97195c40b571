"""Log files: which there are, how the node that wrote each is called, and their lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssbench.errors import UsageError
from ssbench.run_results.stream import Stream

#: So much is read at once.
_CHUNK = 1 << 18
#: What is longer than this is no line of Swift, and dropped.
_LONGEST = 1 << 16
#: Where Swift has cut a line.
_CUT = b" ... "
_ROTATED = re.compile(r"(\.gz|\.log|\.txt|\.\d+|-\d{8})+$")


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of log lines. ``node`` is who wrote the lines that name no host.

    With ``named`` the user said so, and it holds for all lines.
    """

    path: Path
    node: str
    named: bool = False


def find(arguments: Sequence[str]) -> list[LogFile]:
    """Find the files that the command line names: ``FILE``, ``NODE=FILE``, or a folder with all in it.

    A node is called by the file's name without its endings, with the folder's in front where two have the
    same. Raises UsageError for what is not there.
    """
    found: list[tuple[Path, str | None]] = []
    for argument in arguments:
        node, equals, rest = argument.partition("=")
        path, name = Path(argument), None
        if not path.exists() and equals and node and "/" not in node:
            path, name = Path(rest), node
        try:
            files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
            if not path.exists():
                raise UsageError(f"{path}: no such log file")
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
        if not files:
            raise UsageError(f"{path}: this folder holds no files")
        found += [(file, name) for file in files]
    unique = dict(sorted(((path.resolve(), (path, name)) for path, name in found), key=lambda each: each[0]))
    folders = Counter(stem for stem, _ in {(_stem(path), path.parent) for path in unique})
    return [
        LogFile(path, name, named=True)
        if name
        else LogFile(
            path, _stem(path) if folders[_stem(path)] == 1 else f"{resolved.parent.name}/{_stem(path)}"
        )
        for resolved, (path, name) in unique.items()
    ]


def _stem(path: Path) -> str:
    return _ROTATED.sub("", path.name) or path.name


class Reader:
    """The lines of a log file, compressed or not; ``damage`` says where and why compressed data end."""

    def __init__(self, file: LogFile) -> None:
        """Open the file; raises StatFileError, which says that it cannot be read."""
        self._stream = Stream(file.path)

    @property
    def damage(self) -> str | None:
        """What is wrong with the file, once all before has been read."""
        return self._stream.damage

    def chunks(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield how many lines follow, and these lines: none where not one of them can be of interest."""
        rest = b""
        try:
            while data := self._stream.read_some(_CHUNK):
                complete, line_feed, rest = (rest + data).rpartition(b"\n")
                if line_feed:
                    if b"tx" in complete or _CUT in complete:
                        lines = complete.split(b"\n")
                        yield len(lines), lines
                    else:
                        yield complete.count(b"\n") + 1, []
                rest = rest if len(rest) < _LONGEST else b""
            if rest:
                yield 1, [rest]
        finally:
            self._stream.close()
