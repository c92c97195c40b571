"""Reads the stat files of ssbench 0.2.14 to 0.3.9: msgpack documents one after the other.

The first is a map of the scenario; each other one an array of result maps, as a worker sent them.
Python 2 wrote text as the raw strings of the old msgpack, which may hold any bytes. What stands in whole
documents of usual results is read many at once; all else, and what is damaged, entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgpack

from ssbench.results.legacy.old_results import (
    DecodedDocuments,
    OldResultColumns,
    OldRunResults,
    decode_documents,
    find_document_ends,
    make_old_run,
)
from ssbench.results.reading import DamageError, Format, StatFileStream
from ssbench.results.run_description import RunDescription

#: No map in such a file is longer than this, so what goes on for longer is damage, or a bomb.
_MAX_MAP_BYTES = 4 * 1024 * 1024
_MAX_ENTRIES = 1_000_000
#: A file may have so many documents and results, and beyond that so many for each of its bytes.
_FREE_DOCUMENTS = 2_000_000
_DOCUMENTS_A_BYTE = 8
_CHUNK_BYTES = 64 * 1024
#: Bytes that are read before documents are looked for in them.
_READ_AHEAD_BYTES = 256 * 1024
_CUT_OFF_TEXT = "the file is cut off"


class _Source:
    """What the unpacker reads from: ``head``, then the stream; refuses to feed one map without end."""

    def __init__(self, stream: StatFileStream | None, head: bytes = b"") -> None:
        self._stream = stream
        self._head = head
        self._since_map = 0
        self.total = 0

    def read(self, size: int) -> bytes:
        data, self._head = self._head[:size], self._head[size:]
        if not data and self._stream is not None:
            data = self._stream.read_some(size)
        self.total += len(data)
        self._since_map += len(data)
        if self._since_map > _MAX_MAP_BYTES:
            raise DamageError("an entry that goes on without end")
        return data

    def at_end(self, read: int) -> bool:
        """Whether nothing follows what was read."""
        return not (self.total > read or self._head or (self._stream is not None and self._stream.peek(1)))

    def map_read(self) -> None:
        self._since_map = 0


class MsgpackResults(OldRunResults):
    """A stat file of ssbench 0.2.14 to 0.3.9."""

    def _read_run(self) -> RunDescription:
        self._documents_left = _FREE_DOCUMENTS + _DOCUMENTS_A_BYTE * self._stream.size
        self._unpack(_Source(self._stream), 0)
        document = self._next(self._unpacker.unpack)
        run = make_old_run(document) if isinstance(document, dict) else None
        if run is None:
            raise DamageError("not a stat file: no scenario in it")
        return run

    def _unpack(self, source: _Source, begin: int) -> None:
        """Read on entry by entry from a source, which begins there in the decompressed file."""
        self._source, self._begin = source, begin
        self._unpacker = msgpack.Unpacker(
            source,
            read_size=_CHUNK_BYTES,
            raw=False,
            unicode_errors="replace",
            strict_map_key=False,
            max_str_len=_MAX_MAP_BYTES,
            max_array_len=_MAX_ENTRIES,
            max_map_len=_MAX_ENTRIES,
        )

    def _read_rows(self, columns: OldResultColumns) -> Iterator[None]:
        begin = self._unpacker.tell()
        rest = self._unpacker.read_bytes(self._source.total - begin)
        while len(rest) <= _MAX_MAP_BYTES and (more := self._stream.read_some(_READ_AHEAD_BYTES)):
            rest += more
            if ends := find_document_ends(rest):
                for each in decode_documents(rest, ends):
                    if not self._take(each, columns):
                        self._unpack(_Source(None, rest[each.start : each.end]), begin + each.start)
                        yield from self._read_entries(columns)
                    yield
                rest, begin = rest[ends[-1] :], begin + ends[-1]
        self._unpack(_Source(self._stream, rest), begin)
        yield from self._read_entries(columns)

    def _take(self, found: DecodedDocuments, columns: OldResultColumns) -> bool:
        """Take usual results at once; False where they are not, and nothing was taken."""
        if found.results is None or not columns.extend(found.results):
            return False
        self._count(found.documents + len(found.results))
        return True

    def _count(self, entries: int) -> None:
        self._documents_left -= entries
        if self._documents_left < 0:
            raise DamageError("more entries than a file of its size holds")

    def _read_entries(self, columns: OldResultColumns) -> Iterator[None]:
        while not self._source.at_end(self._unpacker.tell()):
            for _ in range(self._next(self._unpacker.read_array_header)):
                columns.add(self._next(self._unpacker.unpack))
                yield

    def _next(self, unpack: Callable[[], Any]) -> Any:
        """Unpack something; raises DamageError."""
        self._count(1)
        try:
            value = unpack()
        except msgpack.OutOfData:
            raise DamageError(_CUT_OFF_TEXT) from None
        except DamageError:
            raise
        except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
            where = self._begin + self._unpacker.tell()
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
