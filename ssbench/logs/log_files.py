"""Log files: which there are, how the node that wrote each is called, and their lines.

Colours and what stands for a quotation mark are taken out of lines.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ssbench.base.errors import UsageError
from ssbench.logs.compression import open_log_source
from ssbench.logs.rewriting import BytePieces, RewriterFinder, find_rewriter, join_lines

#: So much is read at once.
_CHUNK_BYTES = 1 << 18
_ROTATED_ENDING = re.compile(r"(\.(?:gz|zst|xz|bz2)|\.log|\.txt|\.\d+|-\d{8})+$")


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of log lines."""

    path: Path
    node: str  # who wrote the lines that name no host
    named: bool = False  # the user said so, and it holds for all lines
    of_folder: bool = False  # a folder of it was given: where it cannot be read, the others are


def find_log_files(arguments: Sequence[str]) -> list[LogFile]:
    """Find the files that the command line names: ``FILE``, ``NODE=FILE``, or a folder with all in it.

    A node is called by the file's name without its endings, with the folder's in front where two have the
    same. Raises UsageError for what is not there.
    """
    found: list[tuple[Path, str | None, bool]] = []
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
        found += [(file, name, path.is_dir()) for file in files]
    unique = dict(sorted(((each[0].resolve(), each) for each in found), key=lambda each: each[0]))
    names = _name_log_files(list(unique))
    return [
        LogFile(path, name or names[resolved], named=name is not None, of_folder=of_folder)
        for resolved, (path, name, of_folder) in unique.items()
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


#: How texts begin that are not in UTF-8, or say that they are.
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: Colours of a terminal, as they are or as rsyslog writes them.
_COLOUR_CODES = re.compile(rb"(?:\x1b|#033)(?:\[[\d;]*[mK]|\([B0])")
#: What stands for a quotation mark, or at the end of a line for nothing, in logs that others have rewritten.
_STAND_INS = {b"&quot;": b'"', b"&#34;": b'"', b"#042": b'"', b"#000": b""}


def _decode_pieces(pieces: BytePieces, coding: str) -> BytePieces:
    decode = codecs.getincrementaldecoder(coding)("replace").decode
    for piece in pieces:
        yield decode(piece).encode()


def _clean_lines(lines: bytes) -> bytes:
    if b"\x1b" in lines or b"#033" in lines:
        lines = _COLOUR_CODES.sub(b"", lines)
    for stand_in, meant in _STAND_INS.items():
        if stand_in in lines:
            lines = lines.replace(stand_in, meant)
    return lines


class LogFileReader:
    """The lines of a log file, compressed or not; ``damage`` says where and why compressed data end."""

    def __init__(self, file: LogFile, find: RewriterFinder = find_rewriter) -> None:
        """Open the file; raises StatFileError, which says that it cannot be read.

        ``find`` finds what makes lines of entries of several lines, such as documents of JSON.
        """
        self._stream = open_log_source(file.path)
        self._find_rewriter = find

    @property
    def damage(self) -> str | None:
        """What is wrong with the file, once all before has been read."""
        return self._stream.damage

    def chunks(self) -> Iterator[bytes]:
        """Yield the lines, many together; each ends with a line feed."""
        try:
            for lines in join_lines(self._pieces()):
                yield _clean_lines(lines)
        finally:
            self._stream.close()

    def _pieces(self) -> Iterator[bytes]:
        """Yield what is read; entries of several lines, or all on one, as lines as others have them."""
        first = self._some()
        every: BytePieces = chain([first] if first else [], iter(self._some, b""))
        for mark, coding in _BYTE_ORDER_MARKS.items():
            if first.startswith(mark):
                every = _decode_pieces(every, coding)
                first = next(every, b"")
                every = chain([first], every)
                break
        rewrite = self._find_rewriter(first)
        yield from every if rewrite is None else rewrite(every)

    def _some(self) -> bytes:
        """Return about as much as is worth looking at together; what is compressed comes in small pieces."""
        pieces, size = [], 0
        while size < _CHUNK_BYTES and (piece := self._stream.read_some(_CHUNK_BYTES)):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)
