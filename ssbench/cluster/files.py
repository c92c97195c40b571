"""Log files: which there are, how the node that wrote each is called, and their lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ssbench.base.errors import UsageError
from ssbench.cluster.compressed import open_log_source
from ssbench.cluster.rewritten import find_rewriter

#: So much is read at once.
_CHUNK_BYTES = 1 << 18
#: What is longer than this is no line of Swift, and dropped.
_MAX_LINE_BYTES = 1 << 16
_ROTATED_ENDING = re.compile(r"(\.(?:gz|zst|xz|bz2)|\.log|\.txt|\.\d+|-\d{8})+$")


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of log lines. ``node`` is who wrote the lines that name no host.

    With ``named`` the user said so, and it holds for all lines.
    """

    path: Path
    node: str
    named: bool = False


def find_log_files(arguments: Sequence[str]) -> list[LogFile]:
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
    names = _name_log_files(list(unique))
    return [
        LogFile(path, name, named=True) if name else LogFile(path, names[resolved])
        for resolved, (path, name) in unique.items()
    ]


def _name_log_files(paths: list[Path]) -> dict[Path, str]:
    """Name files after themselves, with as many folders in front as tell apart those of several folders.

    The files of one folder that differ in their endings only are one log, rotated.
    """
    logs = {path: (*path.parent.parts, _file_stem(path)) for path in paths}
    names: dict[tuple[str, ...], str] = {}
    for length in range(1, max(map(len, logs.values()), default=1) + 1):
        ends = Counter(log[-length:] for log in set(logs.values()))
        names |= {
            log: "/".join(log[-length:])
            for log in logs.values()
            if log not in names and ends[log[-length:]] == 1
        }
    return {path: names[log] for path, log in logs.items()}


def _file_stem(path: Path) -> str:
    return _ROTATED_ENDING.sub("", path.name) or path.name


class LogFileReader:
    """The lines of a log file, compressed or not; ``damage`` says where and why compressed data end."""

    def __init__(self, file: LogFile) -> None:
        """Open the file; raises StatFileError, which says that it cannot be read."""
        self._stream = open_log_source(file.path)

    @property
    def damage(self) -> str | None:
        """What is wrong with the file, once all before has been read."""
        return self._stream.damage

    def chunks(self) -> Iterator[bytes]:
        """Yield the lines, many together; each ends with a line feed."""
        rest = b""
        try:
            for data in self._pieces():
                complete, line_feed, rest = (rest + data).rpartition(b"\n")
                if line_feed:
                    yield complete + line_feed
                rest = rest if len(rest) < _MAX_LINE_BYTES else b""
            if rest:
                yield rest + b"\n"
        finally:
            self._stream.close()

    def _pieces(self) -> Iterator[bytes]:
        """Yield what is read; entries of several lines, or all on one, as lines as others have them."""
        first = self._some()
        rewrite = find_rewriter(first)
        every = chain([first] if first else [], iter(self._some, b""))
        yield from every if rewrite is None else rewrite(every)

    def _some(self) -> bytes:
        """Return about as much as is worth looking at together; what is compressed comes in small pieces."""
        pieces, size = [], 0
        while size < _CHUNK_BYTES and (piece := self._stream.read_some(_CHUNK_BYTES)):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)
