"""Reads the stat files of ssbench 0.2.14 to 0.3.9: msgpack documents one after the other.

The first is a map of the scenario; each other one an array of result maps, as a worker sent them.
Python 2 wrote text as the raw strings of the old msgpack, which may hold any bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgpack

from ssbench.results import RunDescription
from ssbench.run_results.damage import DamageError
from ssbench.run_results.legacy.old_results import OldResultColumns, OldRunResults, old_run
from ssbench.run_results.reading import Format
from ssbench.run_results.stream import Stream

#: No map in such a file is longer than this, so what goes on for longer is damage, or a bomb.
_MAX_MAP_BYTES = 4 * 1024 * 1024
_MAX_ENTRIES = 1_000_000
#: A file may have so many documents and results, and beyond that so many for each of its bytes.
_FREE_DOCUMENTS = 2_000_000
_DOCUMENTS_A_BYTE = 8
_CHUNK = 64 * 1024
_CUT_OFF = "the file is cut off"


class _Source:
    """What the unpacker reads from: refuses to feed one map without end."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._since_map = 0
        self.total = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read_some(size)
        self.total += len(data)
        self._since_map += len(data)
        if self._since_map > _MAX_MAP_BYTES:
            raise DamageError("an entry that goes on without end")
        return data

    def map_read(self) -> None:
        self._since_map = 0


class MsgpackResults(OldRunResults):
    """A stat file of ssbench 0.2.14 to 0.3.9."""

    def _read_run(self) -> RunDescription:
        self._source = _Source(self._stream)
        self._documents_left = _FREE_DOCUMENTS + _DOCUMENTS_A_BYTE * self._stream.size
        self._unpacker = msgpack.Unpacker(
            self._source,
            read_size=_CHUNK,
            raw=False,
            unicode_errors="replace",
            strict_map_key=False,
            max_str_len=_MAX_MAP_BYTES,
            max_array_len=_MAX_ENTRIES,
            max_map_len=_MAX_ENTRIES,
        )
        document = self._next(self._unpacker.unpack)
        run = old_run(document) if isinstance(document, dict) else None
        if run is None:
            raise DamageError("not a stat file: no scenario in it")
        return run

    def _read_rows(self, columns: OldResultColumns) -> Iterator[None]:
        while not self._at_end():
            for _ in range(self._next(self._unpacker.read_array_header)):
                columns.add(self._next(self._unpacker.unpack))
                yield

    def _at_end(self) -> bool:
        """Whether nothing follows; half a document is something."""
        return self._unpacker.tell() == self._source.total and not self._stream.peek(1)

    def _next(self, unpack: Callable[[], Any]) -> Any:
        """Unpack something; raises DamageError."""
        self._documents_left -= 1
        if self._documents_left < 0:
            raise DamageError("more entries than a file of its size holds")
        try:
            value = unpack()
        except msgpack.OutOfData:
            raise DamageError(_CUT_OFF) from None
        except DamageError:
            raise
        except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
            where = self._unpacker.tell()
            raise DamageError(
                f"no msgpack of ssbench at byte {where:,} of the decompressed file: {error}"
            ) from None
        self._source.map_read()
        return value


def _recognises(head: bytes) -> bool:
    """Whether there is a map, and a text as its first key."""
    if 0x81 <= (head or b"\0")[0] <= 0x8F:  # fixmap, of at least one entry
        key = head[1:2]
    else:
        key = head[{b"\xde": 3, b"\xdf": 5}.get(head[:1], len(head)) :][:1]  # map 16 or map 32
    return b"\xa0" <= key <= b"\xbf" or key in (b"\xda", b"\xdb")  # fixraw, raw 16 or raw 32


FORMAT = Format("ssbench 0.2.14 to 0.3.9", _recognises, MsgpackResults)
