"""The messages between master and workers, and how they are packed.

To a worker go jobs, which are a :class:`JobBatch` after the :class:`RunParameters` of the run, and notices:
:class:`Ping`, :class:`Refusal`, :class:`Exit`, :class:`Share` and :class:`Recall`. A notice holds nothing
secret: the token travels with jobs only, and jobs go only to a worker that has answered a ping. From a worker
come :class:`Heartbeat`, :class:`JobResults`, :class:`Handback` and :class:`Goodbye`.

All structures are arrays, not maps, and all numbers small ints: container and object names are derived
(:mod:`ssbench.scenario.names`). Decoding checks every type and range in C, so that an invalid message raises
a :class:`~ssbench.base.errors.WireError` and nothing else.

Work socket (master ROUTER, worker DEALER): after the address of its worker, a message is one frame. Two
frames would cost a worker another 1.7 µs a message, the master 0.4. Jobs are an array of three: the version
of the protocol, which comes first in every version; :class:`RunParameters`, packed into a byte string, or
what refers to them (:func:`pack_reference`); and a :class:`JobBatch`. All before the jobs is the *beginning*
of a message. A notice is an array of two: the version, and one of :data:`Notice`.

Results socket (worker PUSH, master PULL): a message is one msgpack frame, one of :data:`FromWorker`: an array
whose first element is its kind.
"""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from ssbench.base.errors import ProtocolError, WireError
from ssbench.base.host import HostCounters
from ssbench.scenario.model import DEFAULT_SENT_SCENARIO, SentScenario
from ssbench.store.contract import (
    Clock,
    Count,
    JobResult,
    Name,
    Seconds,
    Small,
    Text,
)
from ssbench.store.request_options import RequestOptions

#: A message of the master beyond this many bytes is refused by the socket itself (ZMQ_MAXMSGSIZE).
MAX_MESSAGE_BYTES = 16 * 1024 * 1024

#: Bounds of what a stranger may make the other side build from one message.
MAX_JOBS = 50_000
MAX_RESULTS = 10_000

#: The same for messages of workers, of which a master has many: a full list of jobs is 450,000 bytes.
#: Results that need more go in several messages.
MAX_WORKER_MESSAGE_BYTES = 512 * 1024

#: The id of a worker that was given none: the master numbers it.
UNNUMBERED = 2**63 - 1

#: Seconds after a ping, or after results that acknowledge jobs, until the master sends the next ping at the
#: latest; a worker answers each with a heartbeat.
HEARTBEAT_SECONDS = 1.0

#: Seconds after which a worker without a ping or jobs sends a heartbeat by itself.
UNASKED_HEARTBEAT_SECONDS = 1.5

#: Seconds without a heartbeat, or without the answer to a ping, after which a worker counts as lost; also
#: those after which an unclaimed batch does. After a network failure of 2 s, TCP's next retransmission comes
#: at 3 s; with the interval between two heartbeats that is 4.1 s. Connections are not given up sooner
#: (:mod:`ssbench.fleet.sockets`).
LOST_AFTER = 5.0

#: For so many seconds a worker gathers results that are not urgent, unless it is given another time, or until
#: there are so many. At low rates each message is a turn of two sleeping processes, which costs more than
#: the operations that it describes.
GATHERING_SECONDS = 0.025
GATHERED_RESULTS = 128

#: Buckets of :attr:`Heartbeat.lag`: half octaves up from LAG_UNIT (seconds). The last one has no end.
LAG_BUCKETS = 40
LAG_UNIT = 5e-5

#: Most gaps in a message; there is one each time that the loop of a worker is blocked.
MAX_GAPS = 64

Lag = Annotated[list[Small], Meta(max_length=64)]
JobNumbers = Annotated[list[Count], Meta(max_length=MAX_JOBS)]

#: (job id, code of its operation, size-class index, container number, object number, bytes)
Job = tuple[Count, Small, Small, Small, Small, Count]

#: What was spent on a job before: (retries, when the first attempt began, when the last one ended, whether it
#: may have been done). Moments are of the clock of the worker to which it goes, None where not known.
Spent = tuple[Count, Clock | None, Clock | None, bool]


#: Storage URLs, any of which reaches the account, and its token; None: that of the run.
AccountAccess = tuple[list[str], Text | None]


#: What workers draw for jobs is a whole number from 0 to this, without it.
DRAWN_END = 2**64


class RunParameters(Struct, array_like=True, frozen=True):
    """Parameters that are the same for all jobs of a run, or of one of its groups of users."""

    run_id: Count  # the number of the run
    generation: Count = 0  # goes up when the token changes during a run
    token: str | None = None  # None: there is none
    storage_urls: list[str] = []  # any of these reaches the account
    requests: RequestOptions = RequestOptions()  # how requests are made
    noop: bool = False  # send no requests
    #: The keys of the scenario that workers heed (:class:`ssbench.scenario.model.ScenarioKey`)
    scenario: SentScenario = DEFAULT_SENT_SCENARIO
    size_classes: list[str] = []  # their names
    insecure: bool = False  # do not check certificates
    ca_certificates: str | None = None  # file with those to trust; None: the system's
    #: The smallest and the largest size of each of ``size_classes``.
    size_ranges: list[tuple[Count, Count]] = []
    #: How large the segments of the objects of each size class are (0: they are in one piece), and whether
    #: they are dynamic; empty: all objects are in one piece.
    segments: list[tuple[Count, bool]] = []  # empty: all objects are in one piece
    trans_id_extra: str | None = None  # what every request carries as ``X-Trans-Id-Extra``
    #: A user waits so long after a job before it begins the next, except where jobs have due times.
    think_time: Seconds = 0.0
    #: Bodies follow from it, and those of reads are checked; None: they are not.
    verify_seed: Count | None = None
    #: What the objects of each of ``size_classes`` say of their owner (:mod:`ssbench.scenario.model`).
    owners: list[str] = []
    group: Small = 0  # the group of users whose jobs follow these parameters
    most_requests: Small = 2  # requests that a job is at most
    signed: list[Text] = []  # query of temporary URLs for each container
    every_etag: bool = False  # compare the MD5 of all that is read with its ETag, not that of a sample
    #: With several the number of a job's container says which of them it is in
    #: (:func:`ssbench.scenario.names.split_container_number`).
    accounts: list[AccountAccess] = []
    seed: Count = 0  # of what workers draw

    def draw(self, job: int) -> int:
        """Return a whole number below :data:`DRAWN_END` for the number of a job, whichever worker has it.

        What is drawn besides new connections needs a ``person`` of its own, or depends on these.
        """
        drawn = hashlib.blake2b(job.to_bytes(8, "little"), digest_size=8, key=self.seed.to_bytes(8, "little"))
        return int.from_bytes(drawn.digest(), "little")


class JobBatch(Struct, array_like=True, frozen=True):
    """The rest of a work message: jobs, and the history of those that are sent again."""

    batch_id: Count
    jobs: Annotated[list[Job], Meta(max_length=MAX_JOBS)]
    histories: Annotated[list[Spent], Meta(max_length=MAX_JOBS)] = []  # one for each job, or none at all
    #: Jobs of the run that the worker may run at once from now on, if it has room for them; the others wait
    #: there.
    users: Small = MAX_JOBS
    low: Small = MAX_JOBS  # results are sent at once when no more jobs than this wait
    start: Clock = 0.0  # the moment from which ``dues`` count, by that worker's monotonic clock
    #: When each job is due, in seconds after ``start``, None for one that has no due time; empty in a closed
    #: loop.
    dues: Annotated[list[Seconds | None], Meta(max_length=MAX_JOBS)] = []
    heard: Clock | None = None  # as in a :class:`Ping`
    #: Seconds for which results may be gathered while more than ``low`` jobs wait.
    gathering: Annotated[float, Meta(ge=0.001, le=1)] = GATHERING_SECONDS
    #: ``container/object`` of each job; empty where names are derived.
    paths: Annotated[list[Text], Meta(max_length=MAX_JOBS)] = []
    #: The version that the object of each job has at least, 0 where that is not known; empty: of none it is.
    versions: JobNumbers = []


class Ping(Struct, array_like=True, frozen=True, tag=1):
    """Ask for a heartbeat at once."""

    master: Count  # a random number of the master
    sent: Clock  # the master's clock
    #: The worker's clock in the last message that answered a ping or jobs; None before. A worker of which the
    #: master may not have heard for long begins no jobs: others may get them.
    heard: Clock | None = None
    #: How many times the master has counted this worker as lost. Once it is more, its jobs are not its own.
    lost: Count = 0


class Refusal(Struct, array_like=True, frozen=True, tag=2):
    """Tell a worker to end, because the master does not use it; ``reason`` is for its log."""

    reason: Text


class Exit(Struct, array_like=True, frozen=True, tag=3):
    """Tell a worker to end (kill-workers)."""


class Share(Struct, array_like=True, frozen=True, tag=4):
    """Tell a worker how many jobs of a group it may run at once from now on, as a batch does."""

    run_id: Count
    users: Small
    group: Small = 0


class Recall(Struct, array_like=True, frozen=True, tag=5):
    """Ask a worker to hand back the jobs of a group that have not begun."""

    run_id: Count
    group: Small = 0


Notice = Ping | Refusal | Exit | Share | Recall


class Heartbeat(Struct, array_like=True, frozen=True, tag=1):
    """Answers a ping; sent unasked on joining, and when no ping and no jobs have come for a while."""

    protocol: Small  # :data:`PROTOCOL` of the worker
    worker_id: Count  # :data:`UNNUMBERED` where the worker was given none
    instance: Count
    run_id: Count  # the run that it serves; 0: none
    clock: Clock  # the worker's monotonic clock at sending
    capacity: Small  # jobs that it can run at once
    held: JobNumbers  # batches that it has not finished
    cpu: Seconds  # CPU seconds that its main thread has used so far
    #: Ticks of its event loop since the last heartbeat, counted by how late they came (:func:`lag_bucket`).
    #: Counts add up over heartbeats and workers, which percentiles do not.
    lag: Lag
    host: Text
    pid: Count
    version: Text
    master: Count = 0  # that of the last :class:`Ping` it received; 0: none
    ping: Clock = 0.0  # when that was sent, by the master's clock; 0: none
    lag_max: Seconds = 0.0  # how late a tick came at most
    #: (begin, end) of the times in which the loop stalled, by the worker's clock.
    gaps: Annotated[list[tuple[Clock, Clock]], Meta(max_length=MAX_GAPS)] = []
    wall: Clock = 0.0  # the worker's time of day at sending, in seconds since 1970; 0: not known
    label: Name = ""  # what an engine calls it; empty: not known
    site: Name = ""  # where it is; empty: not known
    machine: HostCounters | None = None  # how busy its machine is; None: it does not say


class JobResults(Struct, array_like=True, frozen=True, tag=2):
    """Finished jobs, of one or several batches; some of the results may be sent as :class:`BriefResult`."""

    run_id: Count
    worker_id: Count
    instance: Count
    clock: Clock
    #: That of the parameters now, or an earlier one under which a job began whose token was refused.
    generation: Count
    results: Annotated[list[JobResult], Meta(max_length=MAX_RESULTS)]
    begun: Count = 0  # number of the last job that has begun
    received: Count = 0  # the last batch that came
    held: Seconds = 0.0  # seconds from then until this was sent
    group: Small = 0  # the group of users that all of them are of
    #: As in a :class:`Heartbeat`, none of them reported before: a run may end with these results and await no
    #: heartbeat.
    gaps: Annotated[list[tuple[Clock, Clock]], Meta(max_length=MAX_GAPS)] = []


class Handback(Struct, array_like=True, frozen=True, tag=3):
    """Jobs that were not begun and return to the master.

    There was no room for them, they piled up while the worker was stopped, or a :class:`Recall` asked for
    them.
    """

    run_id: Count
    worker_id: Count
    instance: Count
    capacity: Small  # as in a :class:`Heartbeat`: the worker runs no more at once
    job_ids: JobNumbers
    asked: bool = False  # a :class:`Recall` asked for them
    group: Small = 0  # the group of users that all of them are of


class Goodbye(Struct, array_like=True, frozen=True, tag=4):
    """The worker ends; the jobs that it still has will not be done."""

    worker_id: Count
    instance: Count
    reason: Text


FromWorker = Heartbeat | JobResults | Handback | Goodbye


def describe_structure(kind: Any) -> str:
    """Return the names and types of all fields in their order, without bounds, for any version of Python."""
    if names := getattr(kind, "__struct_fields__", None) or getattr(kind, "__dataclass_fields__", None):
        hints = get_type_hints(kind)
        return f"{kind.__name__}({','.join(f'{name}:{describe_structure(hints[name])}' for name in names)})"
    if arguments := get_args(kind):
        origin = get_origin(kind)
        name = "union" if origin in (Union, UnionType) else origin.__name__
        return f"{name}[{','.join(map(describe_structure, arguments))}]"
    return str(getattr(kind, "__name__", kind))


#: Raise this where the meaning of a field changes, and nothing that :func:`describe_structure` sees.
_EDITION = 1

#: Comes first in every message; both sides refuse another one's. It follows from the fields of all messages,
#: which are arrays: a worker with two of them exchanged would take one value for the other.
PROTOCOL = (
    zlib.crc32(describe_structure(tuple[RunParameters, JobBatch, Notice, FromWorker]).encode(), _EDITION) >> 1
)


def lag_bucket(seconds: float) -> int:
    """Return the element of :attr:`Heartbeat.lag` that counts ticks so late."""
    if seconds <= LAG_UNIT:
        return 0
    return min(math.ceil(2 * math.log2(seconds / LAG_UNIT)), LAG_BUCKETS - 1)


def lag_limit(bucket: int) -> float:
    """Return the seconds that ticks of an element of :attr:`Heartbeat.lag` are late at most."""
    return float(LAG_UNIT * 2 ** (bucket / 2))


def work_address(instance: int) -> bytes:
    """Return the address frame of messages for a worker process."""
    return b"%016x" % instance


def worker_name(worker_id: int, host: str = "", pid: int = 0, *, begins: bool = True) -> str:
    """Return how a worker is called in messages; ``begins``: at the beginning of a sentence."""
    name = ("Worker" if begins else "worker") + ("" if worker_id == UNNUMBERED else f" {worker_id}")
    return f"{name} on {host} (pid {pid})" if host else name


# -- Packing and unpacking -------------------------------------------------------------------------


_encoder = msgspec.msgpack.Encoder()
_parameters_decoder = msgspec.msgpack.Decoder(RunParameters)
_batch_decoder = msgspec.msgpack.Decoder(JobBatch)
_notice_decoder: msgspec.msgpack.Decoder[Notice] = msgspec.msgpack.Decoder(Notice)
_from_worker_decoder: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)

#: Packs any of these structures.
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
    """Return the beginning of work messages that refer to those parameters, which a message began with.

    With many accounts or body files parameters are tens of kilobytes, so a worker gets them with its first
    jobs only. One that does not know what a message refers to, because it has lost its connection meanwhile,
    hands its jobs back.
    """
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
    if batch.versions and len(batch.versions) != len(batch.jobs):
        raise WireError(f"job batch: {len(batch.versions)} versions of {len(batch.jobs)} jobs")
    return batch


def unpack_from_worker(frame: bytes) -> FromWorker:
    """Decode a message of the results socket; raises WireError, ProtocolError for another version."""
    try:
        message = _from_worker_decoder.decode(frame)
    except _DECODING_ERRORS as error:
        match _unpack_generic(frame):
            # The first four fields of a heartbeat are the same in every version.
            case [1, int(protocol), int(worker_id), int(instance), *_] if (
                protocol != PROTOCOL and 0 <= worker_id < 2**63 and 0 <= instance < 2**63
            ):
                raise ProtocolError(protocol, (worker_id, instance)) from None
        raise WireError(f"message of a worker: {error}") from None
    if isinstance(message, Heartbeat) and message.protocol != PROTOCOL:
        raise ProtocolError(message.protocol, (message.worker_id, message.instance))
    return message
