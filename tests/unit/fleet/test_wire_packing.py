"""Messages: what is packed comes out again, and what is not one ends as a WireError."""

from __future__ import annotations

import re
import struct
from typing import cast, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssbench.base.errors import ProtocolError, WireError
from ssbench.fleet import wire
from ssbench.scenario.model import SENT_FIELDS, SentScenario
from ssbench.scenario.structured_values import Body, ConnectionSettings, Metadata
from ssbench.store.contract import BriefResult, JobResult, RareFields
from ssbench.store.request_options import RequestOptions

counts = st.integers(0, 2**63 - 1)
smalls = st.integers(0, 2**32 - 1)
seconds = st.floats(0, 1e9)
clocks = st.floats(-1e12, 1e12)
texts = st.text(max_size=50)

times = st.floats(0, 1e9, exclude_min=True)
requests = st.builds(
    RequestOptions,
    block_size=st.integers(1, 2**30),
    connect_timeout=times,
    network_timeout=times,
    request_timeout=st.none() | times,
    retries=counts,
    retry_404=counts,
)
parameters = st.builds(
    wire.RunParameters,
    run_id=counts,
    generation=counts,
    token=st.none() | texts,
    storage_urls=st.lists(texts, max_size=3),
    requests=requests,
    noop=st.booleans(),
    scenario=st.builds(
        SentScenario,
        container_base=texts,
        policy=st.none() | texts,
        delete_after=st.none() | counts,
        body=st.none() | st.builds(Body, st.floats(0, 1)),
        metadata=st.none() | st.builds(Metadata, smalls, smalls),
        connections=st.none() | st.builds(ConnectionSettings, st.floats(0, 1), st.booleans()),
    ),
    size_classes=st.lists(texts, max_size=3),
    insecure=st.booleans(),
    ca_certificates=st.none() | texts,
    size_ranges=st.lists(st.tuples(counts, counts), max_size=3),
)
jobs = st.tuples(counts, smalls, smalls, smalls, smalls, counts)


@st.composite
def batches(draw: st.DrawFn) -> wire.JobBatch:
    of = draw(st.lists(jobs, max_size=5))
    histories = draw(
        st.just([])
        | st.lists(
            st.tuples(counts, st.none() | clocks, st.none() | clocks, st.booleans()),
            min_size=len(of),
            max_size=len(of),
        )
    )
    return wire.JobBatch(draw(counts), of, histories)


results = st.builds(
    JobResult,
    job_id=counts,
    first_byte=st.none() | seconds,
    last_byte=st.none() | seconds,
    completed=clocks,
    size=counts,
    retries=smalls,
    trans_id=st.none() | texts,
    cause=st.none() | texts,
    detail=texts,
    retried=st.none() | st.dictionaries(texts, smalls, max_size=3),
    unauthorized=st.booleans(),
    storage_url=smalls,
    found=st.none() | counts,
)
heartbeats = st.builds(
    wire.Heartbeat,
    protocol=st.just(wire.PROTOCOL),
    worker_id=counts,
    instance=counts,
    run_id=counts,
    clock=clocks,
    capacity=smalls,
    held=st.lists(counts, max_size=5),
    cpu=seconds,
    lag=st.lists(smalls, max_size=wire.LAG_BUCKETS),
    host=texts,
    pid=counts,
    version=texts,
    master=counts,
    ping=clocks,
)
notices = (
    st.builds(wire.Ping, master=counts, sent=clocks)
    | st.builds(wire.Refusal, reason=texts)
    | st.builds(wire.Exit)
)
from_workers = (
    heartbeats
    | st.builds(
        wire.JobResults,
        run_id=counts,
        worker_id=counts,
        instance=counts,
        clock=clocks,
        generation=counts,
        results=st.lists(results, max_size=4),
    )
    | st.builds(
        wire.Handback,
        run_id=counts,
        worker_id=counts,
        instance=counts,
        capacity=smalls,
        job_ids=st.lists(counts, max_size=5),
    )
    | st.builds(wire.Goodbye, worker_id=counts, instance=counts, reason=texts)
)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | texts
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@given(parameters)
def test_run_parameters_come_out_as_they_went_in(message: wire.RunParameters) -> None:
    assert wire.unpack_parameters(wire.pack_parameters(message)) == message


@given(batches())
def test_batches_come_out_as_they_went_in(message: wire.JobBatch) -> None:
    assert wire.unpack_batch(wire.pack_message(message)) == message


@given(notices, parameters, batches())
def test_notices_come_out_as_they_went_in(
    notice: wire.Notice, beginning: wire.RunParameters, batch: wire.JobBatch
) -> None:
    message = wire.pack_notice(notice)
    assert wire.unpack_notice(message) == notice
    # No other kind of message begins like one, and older versions see at once that it is none of theirs.
    assert wire.unpack_notice(wire.pack_parameters(beginning) + wire.pack_message(batch)) is None
    assert msgspec.msgpack.decode(message)[0] == wire.PROTOCOL
    with pytest.raises(WireError):
        wire.split_work(message)


@given(st.binary(max_size=100))
def test_any_notice_is_one_or_a_wire_error(rest: bytes) -> None:
    try:
        notice = wire.unpack_notice(wire.pack_notice(wire.Exit())[:-2] + rest)
    except WireError as error:
        assert "notice" in str(error)  # noqa: PT017 - either is right; nothing else is
    else:
        assert isinstance(notice, get_args(wire.Notice))


@given(parameters, batches())
def test_work_messages_come_apart_as_they_were_put_together(
    beginning: wire.RunParameters, batch: wire.JobBatch
) -> None:
    header, rest = wire.pack_parameters(beginning), wire.pack_message(batch)
    assert wire.split_work(header + rest) == (header, rest)
    reference = wire.pack_reference(header, beginning)
    assert wire.split_work(reference + rest) == (reference, rest)
    assert wire.unpack_reference(reference) == (beginning.run_id, beginning.group)
    assert wire.unpack_reference(header) is None
    assert wire.unpack_notice(reference + rest) is None
    version, referred, _ = msgspec.msgpack.decode(reference + rest)
    assert (version, type(referred), len(reference) < 40) == (wire.PROTOCOL, bytes, True)
    other = wire.pack_parameters(msgspec.structs.replace(beginning, think_time=beginning.think_time + 1.0))
    assert wire.pack_reference(other, beginning) != reference


@given(parameters, st.data())
def test_a_work_message_that_was_cut_short_is_a_wire_error(
    beginning: wire.RunParameters, data: st.DataObject
) -> None:
    header = wire.pack_parameters(beginning)
    with pytest.raises(WireError, match="work message"):
        wire.split_work(header[: data.draw(st.integers(0, len(header) - 1))])
    reference = wire.pack_reference(header, beginning)
    with pytest.raises(WireError, match="work message"):
        wire.split_work(reference[: data.draw(st.integers(0, len(reference) - 1))])


@given(st.binary(max_size=300))
def test_any_bytes_come_apart_or_are_a_wire_error(frame: bytes) -> None:
    try:
        header, rest = wire.split_work(frame)
    except WireError as error:
        assert "work message" in str(error) or isinstance(error, ProtocolError)  # noqa: PT017 - either is right; nothing else is
    else:
        assert header + rest == frame


@given(from_workers)
def test_messages_of_workers_come_out_as_they_went_in(message: wire.FromWorker) -> None:
    assert wire.unpack_from_worker(wire.pack_message(message)) == message


def read_anything(frame: bytes) -> None:
    for unpack, kinds in (
        (wire.unpack_parameters, wire.RunParameters),
        (wire.unpack_batch, wire.JobBatch),
        (wire.unpack_from_worker, get_args(wire.FromWorker)),
    ):
        try:
            message = unpack(frame)
        except WireError as error:
            assert str(error)  # noqa: PT017 - either is right; nothing else is
        else:
            assert isinstance(message, kinds)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_a_wire_error(frame: bytes) -> None:
    read_anything(frame)


@given(plain)
def test_any_msgpack_is_a_message_or_a_wire_error(content: object) -> None:
    read_anything(msgspec.msgpack.encode(content))


@given(from_workers, st.data())
def test_a_damaged_message_is_a_message_or_a_wire_error(
    message: wire.FromWorker, data: st.DataObject
) -> None:
    frame = bytearray(wire.pack_message(message))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    read_anything(bytes(frame[: data.draw(st.integers(0, len(frame)))]))
    read_anything(bytes(frame))


@settings(max_examples=50)
@given(st.lists(plain, max_size=14), st.sampled_from([1, 2, 3, 4]))
def test_a_right_tag_with_anything_behind_it_is_a_message_or_a_wire_error(
    rest: list[object], tag: int
) -> None:
    read_anything(msgspec.msgpack.encode([tag, *rest]))


def heartbeat(**changes: object) -> list[object]:
    fields: dict[str, object] = {
        "tag": 1, "protocol": wire.PROTOCOL, "worker_id": 5, "instance": 6, "run_id": 7, "clock": 1.0,
        "capacity": 4, "held": [], "cpu": 1.0, "lag": [], "host": "h", "pid": 1, "version": "v",
        "master": 9, "ping": 1.0,
    }  # fmt: skip
    return list((fields | changes).values())


@pytest.mark.parametrize(
    "changes",
    [
        {"clock": float("nan")},
        {"clock": float("inf")},
        {"cpu": -1.0},
        {"worker_id": -1},
        {"capacity": 2**32},
        {"capacity": True},
        {"held": [1.5]},
        {"held": list(range(wire.MAX_JOBS + 1))},
        {"lag": [0] * 65},
        {"host": "h" * 4097},
        {"host": b"\xff"},
    ],
    ids=str,
)
def test_values_out_of_range_are_no_message(changes: dict[str, object]) -> None:
    assert wire.unpack_from_worker(msgspec.msgpack.encode(heartbeat()))
    with pytest.raises(WireError):
        wire.unpack_from_worker(msgspec.msgpack.encode(heartbeat(**changes)))


def test_lists_are_bounded_before_they_are_built() -> None:
    head = msgspec.msgpack.encode(heartbeat(held=[1, 2, 3]))
    at = head.index(b"\x93\x01\x02\x03")
    for length, content in ((2**32 - 1, b""), (8_000_000, b"\0" * 8_000_000)):
        frame = head[:at] + b"\xdd" + struct.pack(">I", length) + content + head[at + 4 :]
        with pytest.raises(WireError, match="length"):
            wire.unpack_from_worker(frame)


@pytest.mark.parametrize("opening", [b"\x91", b"\x81\x01", b"\xdd\x00\x00\x00\x01"])
def test_nesting_without_end_is_a_wire_error(opening: bytes) -> None:
    read_anything(opening * 100_000)


@pytest.mark.parametrize("frame", [b"\xdd\x00\xe4\xe1\xc0" + b"\0" * 15_000_000, b"\xff" * 15_000_000])
def test_rubbish_of_the_largest_size_is_a_wire_error(frame: bytes) -> None:
    read_anything(frame)


other_versions = st.integers(0, 2**31).filter(lambda number: number != wire.PROTOCOL)


@given(other_versions, st.lists(plain, max_size=12))
def test_another_version_of_a_work_message_is_told_as_such(protocol: int, rest: list[object]) -> None:
    with pytest.raises(ProtocolError) as raised:
        wire.split_work(msgspec.msgpack.encode([protocol, *rest]))
    assert raised.value.protocol == protocol
    assert str(protocol) in str(raised.value)


@given(parameters, batches())
def test_a_work_message_is_one_array_that_begins_with_the_version(
    beginning: wire.RunParameters, batch: wire.JobBatch
) -> None:
    version, packed, _ = msgspec.msgpack.decode(wire.pack_parameters(beginning) + wire.pack_message(batch))
    assert version == wire.PROTOCOL
    assert packed == wire.pack_message(beginning)


@given(other_versions, counts, counts, st.lists(plain, max_size=3))
def test_another_version_of_a_heartbeat_names_its_worker(
    protocol: int, worker_id: int, instance: int, rest: list[object]
) -> None:
    # With fields of another number and kind behind those that are the same in every version.
    with pytest.raises(ProtocolError) as raised:
        wire.unpack_from_worker(msgspec.msgpack.encode([1, protocol, worker_id, instance, *rest]))
    assert raised.value.worker == (worker_id, instance)


def test_a_heartbeat_of_the_same_shape_but_another_version_is_refused() -> None:
    beat = wire.Heartbeat(wire.PROTOCOL + 1, 5, 6, 0, 1.0, 1, [], 0.0, [0], "h", 1, "1")
    with pytest.raises(ProtocolError) as raised:
        wire.unpack_from_worker(wire.pack_message(beat))
    assert (raised.value.protocol, raised.value.worker) == (wire.PROTOCOL + 1, (5, 6))


def test_fields_that_are_exchanged_make_another_version() -> None:
    def described(*names: str) -> str:
        fields = [(name, int) for name in names]
        return wire.describe_structure(list[msgspec.defstruct("Message", fields, array_like=True)])

    assert described("run_id", "group") == "list[Message(run_id:int,group:int)]"
    assert described("group", "run_id") == "list[Message(group:int,run_id:int)]"


def test_a_version_has_the_fields_of_what_a_message_holds() -> None:
    known = wire.describe_structure(tuple[wire.RunParameters, wire.FromWorker])
    for name in (*RareFields.__struct_fields__, *SENT_FIELDS, *RequestOptions.__struct_fields__):
        assert re.search(rf"[(,]{name}:", known), name


@pytest.mark.parametrize(("worker_id", "instance"), [(-1, 1), (1, -1), (1, 2**63), (2**63, 1)])
def test_another_version_with_impossible_numbers_is_nobodys(worker_id: int, instance: int) -> None:
    with pytest.raises(WireError) as raised:
        wire.unpack_from_worker(msgspec.msgpack.encode([1, 99, worker_id, instance]))
    assert not isinstance(raised.value, ProtocolError)


def test_histories_belong_to_jobs_one_by_one() -> None:
    with pytest.raises(WireError, match="2 histories of 1 jobs"):
        wire.unpack_batch(
            wire.pack_message(wire.JobBatch(1, [(1, 0, 0, 0, 0, 0)], [(0, None, None, False)] * 2))
        )


def test_a_result_takes_few_bytes() -> None:
    result = JobResult(123456, 0.01, 0.02, 12345.678, 4096, 0, "tx" + "0" * 32)
    assert len(wire.pack_message([result])) < 100


def test_a_result_whose_other_fields_have_their_defaults_may_be_sent_as_a_brief_one() -> None:
    briefs = [BriefResult(1, 0.5, 0.5, 10.0), JobResult(2, None, 0.5, 10.0, 4096, status=201)]
    message = wire.JobResults(1, 2, 3, 10.0, 0, cast("list[JobResult]", briefs))
    received = wire.unpack_from_worker(wire.pack_message(message))
    assert isinstance(received, wire.JobResults)
    assert received.results == [JobResult(1, 0.5, 0.5, 10.0), briefs[1]]


def test_what_a_worker_may_list_fits_into_a_message() -> None:
    jobs = list(range(2**62, 2**62 + wire.MAX_JOBS))
    beat = wire.Heartbeat(
        wire.PROTOCOL, 2**62, 2**62, 2**62, 1.0, 1, jobs, 1.0, [2**32 - 1] * 64, "h" * 255, 1, "1"
    )
    for message in (wire.Handback(2**62, 2**62, 2**62, 2**62, jobs), beat):
        assert len(wire.pack_message(message)) <= wire.MAX_WORKER_MESSAGE_BYTES
