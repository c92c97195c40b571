"""The formats of stat files, and which of them a file has.

Another format is another module with a ``FORMAT``, and a line in :data:`_MODULES`. It is imported when a
file is of none of the formats before.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from ssbench.base.errors import StatFileError
from ssbench.results.reading import Format, RunResults
from ssbench.results.stream import Progress, StatFileStream

#: The modules of every format that can be read; the first that recognises a file reads it.
_MODULES = ("current", "legacy.msgpack_stream", "legacy.python2_pickle")

_HEAD_LENGTH = 64


def open_results(path: Path, progress: Progress | None = None) -> RunResults:
    """Open a stat file of any format, compressed or not, recognized by its content.

    ``progress`` is called now and then with the bytes read and those that there are. Raises
    StatFileError when it is no stat file, or damaged before its first result.
    """
    stream = StatFileStream(path, progress)
    try:
        head = stream.peek(_HEAD_LENGTH)
        for format_ in _formats():
            if format_.recognises(head):
                return format_.reader(stream)
        what = stream.damage or ("not a stat file of ssbench" if head else "an empty file")
        raise StatFileError(f"{path}: {what}")
    except BaseException:
        stream.close()
        raise


def _formats() -> Iterator[Format]:
    for name in _MODULES:
        format_: Format = import_module(f"ssbench.results.{name}").FORMAT
        yield format_
