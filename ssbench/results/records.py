"""The records of a stat file: a header, a checksum, and what is known of the run as JSON.

``doc/stat-files.rst`` has the layout. :mod:`ssbench.results.columns` has that of the results.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec
from isal.isal_zlib import crc32

from ssbench.base.untrusted import copy_plain
from ssbench.results.description import RunDescription, RunSummary
from ssbench.results.observation import Observation
from ssbench.results.reading import DamageError
from ssbench.scenario.operation import remove_secrets

#: What the decompressed stream begins with; the version of the format and a line feed follow.
STAT_FILE_MAGIC = b"ssbench results "
STAT_FILE_VERSION = 2
FILE_PREAMBLE = STAT_FILE_MAGIC + b"%d\n" % STAT_FILE_VERSION

#: Kinds of record. A reader skips kinds that it does not know.
RUN_KIND, ROWS_KIND, CLUSTER_KIND, END_KIND = b"RUN ", b"ROWS", b"CLUS", b"END "
#: kind, bytes of the payload, CRC-32 of kind and payload.
RECORD_HEADER = struct.Struct("<4sII")
#: No writer makes longer records, so what claims more is damage.
MAX_RECORD_BYTES = 128 * 1024 * 1024

_record_encoder = msgspec.json.Encoder()
_run_decoder = msgspec.json.Decoder(RunDescription)
_cluster_decoder = msgspec.json.Decoder(Observation)


@dataclass(frozen=True, slots=True)
class ClosingRecord:
    """The payload of the closing record: how many results were written, and how many could not be."""

    results: int
    results_lost: int
    summary: RunSummary


_closing_decoder = msgspec.json.Decoder(ClosingRecord)


def encode_record(kind: bytes, payload: bytes) -> bytes:
    """Put the header in front of a payload."""
    return RECORD_HEADER.pack(kind, len(payload), crc32(payload, crc32(kind))) + payload


def encode_run(run: RunDescription) -> bytes:
    """Encode the record that begins a file, without the secrets among the header fields of its scenario."""
    return encode_record(
        RUN_KIND, _record_encoder.encode(_make_printable(remove_secrets(msgspec.to_builtins(run))))
    )


def encode_closing(closing: ClosingRecord) -> bytes:
    """Encode the record that ends a file, without what was seen of the cluster."""
    plain = msgspec.to_builtins(replace(closing, summary=replace(closing.summary, cluster=None)))
    del plain["summary"]["cluster"]
    return encode_record(END_KIND, _record_encoder.encode(_make_printable(plain)))


def encode_cluster(cluster: Observation) -> bytes:
    """Encode what was seen of the cluster."""
    return encode_record(CLUSTER_KIND, _record_encoder.encode(cluster))


def decode_cluster(payload: bytes) -> Observation | None:
    """Decode the payload of a CLUS record; None where it is of another version of ssbench."""
    try:
        return _cluster_decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def decode_run(payload: bytes) -> RunDescription:
    """Decode the payload of a RUN record; raises DamageError."""
    try:
        run = _run_decoder.decode(payload)
        # Files of earlier versions have secrets.
        data, options = copy_plain(remove_secrets(run.scenario.data)), copy_plain(run.options)
        return replace(
            run,
            scenario=replace(run.scenario, data=cast("dict[str, Any]", data)),
            options=cast("dict[str, object]", options),
        )
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamageError(f"the description of the run: {error}") from None


def decode_closing(payload: bytes) -> ClosingRecord:
    """Decode the payload of an END record; raises DamageError."""
    try:
        return _closing_decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamageError(f"the summary of the run: {error}") from None


def _make_printable(data: object) -> object:
    """Plain data whose texts are UTF-8: a path given on the command line may hold other bytes."""
    match data:
        case str():
            return data.encode("utf-8", "replace").decode()
        case dict():
            return {_make_printable(key): _make_printable(value) for key, value in data.items()}
        case list() | tuple():
            return [_make_printable(value) for value in data]
    return data
