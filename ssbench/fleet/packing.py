"""Messages into bytes and back.

Work socket (master ROUTER, worker DEALER): after the address of its worker, a message is one frame. Two
frames would cost a worker another 1.7 µs a message, the master 0.4. Jobs are an array of
three:

1. The version of the protocol, which comes first in every version.
2. :class:`~ssbench.fleet.wire.RunParameters`, packed into a byte string: what is the same for a whole run.
   With many accounts or body files these are tens of kilobytes. So a worker gets them with its first jobs;
   later messages have a short byte string that refers to them (:func:`pack_reference`). A worker that does not know
   what a message refers to, because it has lost its connection meanwhile, hands its jobs back.
3. :class:`~ssbench.fleet.wire.JobBatch`: the jobs.

All before the jobs is the *beginning* of a message.

A notice is an array of two: the version, and one of :data:`~ssbench.fleet.wire.Notice`.

Results socket (worker PUSH, master PULL): a message is one msgpack frame, one of
:data:`~ssbench.fleet.wire.FromWorker`: an array whose first element is its kind.

Decoding checks every type and range in C, so that an invalid message raises a
:class:`~ssbench.base.errors.WireError` and nothing else.
"""

from __future__ import annotations

import hashlib
import struct

import msgspec

from ssbench.base.errors import ProtocolError, WireError
from ssbench.fleet.wire import PROTOCOL, FromWorker, JobBatch, Notice, RunParameters

_encoder = msgspec.msgpack.Encoder()
_parameters_decoder = msgspec.msgpack.Decoder(RunParameters)
_batch_decoder = msgspec.msgpack.Decoder(JobBatch)
_notice_decoder: msgspec.msgpack.Decoder[Notice] = msgspec.msgpack.Decoder(Notice)
_from_worker_decoder: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)

#: Packs any structure of :mod:`ssbench.fleet.wire`.
pack_message = _encoder.encode

#: How a work message begins: an array of three, the version, a byte string whose length follows.
_PARAMETERS_MARK = b"\x93%b\xc6" % pack_message(PROTOCOL)
_BEGINNING_LAYOUT = struct.Struct(f">{len(_PARAMETERS_MARK)}sI")

#: How one begins that refers to parameters: a byte string of their run, their group and a digest of them.
_REFERENCE_MARK = b"\x93%b\xc4\x1c" % pack_message(PROTOCOL)
_REFERENCE_LAYOUT = struct.Struct(f">{len(_REFERENCE_MARK)}sQI16s")

#: How a notice begins: an array of two, the version.
_NOTICE_MARK = b"\x92" + pack_message(PROTOCOL)

#: What a decoder raises: for a wrong type, for text that is not UTF-8, for arrays nested too deep.
_DECODING_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)

#: Messages up to this size that cannot be decoded are searched for their sender.
_MAX_UNKNOWN_BYTES = 65536


def _unpack_generic(frame: bytes) -> list[object]:
    if len(frame) > _MAX_UNKNOWN_BYTES:
        return []
    try:
        decoded = msgspec.msgpack.decode(frame)
    except _DECODING_ERRORS:
        return []
    return decoded if isinstance(decoded, list) else []


def pack_parameters(parameters: RunParameters) -> bytes:
    """Return the beginning of a work message that has these parameters; the packed batch follows it."""
    packed = pack_message(parameters)
    return _BEGINNING_LAYOUT.pack(_PARAMETERS_MARK, len(packed)) + packed


def pack_reference(beginning: bytes, parameters: RunParameters) -> bytes:
    """Return the beginning of work messages that refer to those parameters, which a message began with."""
    digest = hashlib.blake2b(beginning, digest_size=16).digest()
    return _REFERENCE_LAYOUT.pack(_REFERENCE_MARK, parameters.run_id, parameters.group, digest)


def unpack_reference(beginning: bytes) -> tuple[int, int] | None:
    """Return the run and the group to whose parameters a beginning refers; None where it has them itself."""
    if not beginning.startswith(_REFERENCE_MARK):
        return None
    _, run_id, group, _ = _REFERENCE_LAYOUT.unpack(beginning)
    return run_id, group


def pack_notice(notice: Notice) -> bytes:
    """Return a work message without jobs."""
    return _NOTICE_MARK + pack_message(notice)


def unpack_notice(message: bytes) -> Notice | None:
    """Decode a notice; None for a work message of another kind. Raises WireError."""
    if not message.startswith(_NOTICE_MARK):
        return None
    try:
        return _notice_decoder.decode(message[len(_NOTICE_MARK) :])
    except _DECODING_ERRORS as error:
        raise WireError(f"notice: {error}") from None


def split_work(message: bytes) -> tuple[bytes, bytes]:
    """Split a work message into its beginning, with the parameters or what refers to them, and the batch.

    Raises WireError, ProtocolError for another version.
    """
    if len(message) >= _BEGINNING_LAYOUT.size:
        mark, length = _BEGINNING_LAYOUT.unpack_from(message)
        end = _BEGINNING_LAYOUT.size + int(length)
        if mark == _PARAMETERS_MARK and end <= len(message):
            return message[:end], message[end:]
    if message.startswith(_REFERENCE_MARK) and len(message) >= _REFERENCE_LAYOUT.size:
        return message[: _REFERENCE_LAYOUT.size], message[_REFERENCE_LAYOUT.size :]
    match _unpack_generic(message):
        case [int(protocol), *_] if protocol != PROTOCOL:
            raise ProtocolError(protocol)
    raise WireError(f"work message: {len(message)} bytes, which is not a work message")


def unpack_parameters(beginning: bytes) -> RunParameters:
    """Decode the parameters that a work message begins with; raises WireError."""
    try:
        return _parameters_decoder.decode(beginning[_BEGINNING_LAYOUT.size :])
    except _DECODING_ERRORS as error:
        raise WireError(f"run parameters: {error}") from None


def unpack_batch(frame: bytes) -> JobBatch:
    """Decode the batch of a work message; raises WireError."""
    try:
        batch = _batch_decoder.decode(frame)
    except _DECODING_ERRORS as error:
        raise WireError(f"job batch: {error}") from None
    if batch.histories and len(batch.histories) != len(batch.jobs):
        raise WireError(f"job batch: {len(batch.histories)} histories of {len(batch.jobs)} jobs")
    if batch.dues and len(batch.dues) != len(batch.jobs):
        raise WireError(f"job batch: {len(batch.dues)} due times of {len(batch.jobs)} jobs")
    if batch.paths and len(batch.paths) != len(batch.jobs):
        raise WireError(f"job batch: {len(batch.paths)} paths of {len(batch.jobs)} jobs")
    return batch


def unpack_from_worker(frame: bytes) -> FromWorker:
    """Decode a message of the results socket; raises WireError, ProtocolError for another version."""
    try:
        return _from_worker_decoder.decode(frame)
    except _DECODING_ERRORS as error:
        match _unpack_generic(frame):
            # The first four fields of a heartbeat are the same in every version.
            case [1, int(protocol), int(worker_id), int(instance), *_] if (
                protocol != PROTOCOL and 0 <= worker_id < 2**63 and 0 <= instance < 2**63
            ):
                raise ProtocolError(protocol, (worker_id, instance)) from None
        raise WireError(f"message of a worker: {error}") from None
