"""Usual results of ssbench 0.2.14 to 0.3.9, many at once; whatever is unusual has the careful way.

Each result of those formats is a map with all its keys. To make a dictionary of each, and to look at every
value by itself, is most of what a report on such a file costs. msgspec makes records of the few keys that
are wanted, and checks their types on the way.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import msgpack
import msgspec

#: Besides DecodeError and ValidationError of msgspec: of texts that are not UTF-8, of nesting without end.
_UNUSUAL_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)

_ARRAY_32_FORMAT = struct.Struct(">BI")
_CODE_OF_ARRAY_32 = 0xDD


class UsualResult(msgspec.Struct, gc=False):
    """What is wanted of a result; those with an exception are not usual."""

    type: str
    size_str: str
    worker_id: int
    completed_at: float
    last_byte_latency: float | None = None
    first_byte_latency: float | None = None
    container: str = ""
    name: str = ""
    size: int | None = None
    retries: int | None = None
    trans_id: str | None = None
    exception: object = msgspec.UNSET


_usual_decoder = msgspec.msgpack.Decoder(list[list[UsualResult]])


def find_document_ends(data: bytes) -> list[int]:
    """Return where each document in ``data`` ends, up to the first that is not whole, or damaged."""
    unpacker = msgpack.Unpacker(max_buffer_size=len(data) or 1)
    unpacker.feed(data)
    ends = []
    try:
        while True:
            unpacker.skip()
            ends.append(unpacker.tell())
    except (ValueError, msgpack.UnpackException, RecursionError):
        return ends


class DecodedDocuments(NamedTuple):
    """Documents that stand together, from ``start`` to ``end``; ``results`` is None where one is unusual."""

    start: int
    end: int
    documents: int
    results: list[UsualResult] | None


def decode_documents(data: bytes, ends: Sequence[int]) -> Iterator[DecodedDocuments]:
    """Yield all documents in ``data``, which should be arrays of maps; ``ends`` is where each ends."""
    head = _ARRAY_32_FORMAT.pack(_CODE_OF_ARRAY_32, len(ends))
    try:
        documents = _usual_decoder.decode(head + data[: ends[-1]])
    except _UNUSUAL_ERRORS:
        yield DecodedDocuments(0, ends[-1], len(ends), None)
        return
    places = zip(pairwise((0, *ends)), documents, strict=True)
    for usual, group in groupby(places, lambda each: all(map(_has_no_exception, each[1]))):
        found = list(group)
        (start, _), (_, end) = found[0][0], found[-1][0]
        results = [result for _, document in found for result in document] if usual else None
        yield DecodedDocuments(start, end, len(found), results)


def _has_no_exception(result: UsualResult) -> bool:
    return result.exception is msgspec.UNSET
