"""The short way of a usual job and the careful one: the same answers to the same server, whatever it does."""

from __future__ import annotations

import hashlib
import re
import select
from collections.abc import Iterator
from contextlib import contextmanager

import gevent
import pytest
from fault_server import FaultServer, Reply
from msgspec import structs
from sent_scenarios import make_sent

from ssbench.fleet.wire import Job, JobBatch, RunParameters
from ssbench.scenario.operations import CREATE, DELETE, READ, REMOVE, UPDATE, UPLOAD_IF_MISSING, OperationKind
from ssbench.store.contract import JobResult, RareFields
from ssbench.store.http.bodies import PIECE_BYTES, BodyHash, make_metadata
from ssbench.store.http.connection import HttpConnection
from ssbench.store.request_options import RequestOptions
from ssbench.worker.worker_run import FastPath, WorkerRun, make_job_result

SIZE = 3000
BODY = b"x" * SIZE
WRONG = "0" * 32
TX = (("X-Trans-Id", "tx1234-AB"),)

USUAL = {
    "usual": Reply(body=BODY, headers=TX),
    "no id": Reply(body=BODY),
    "lower case": Reply(
        raw=b"HTTP/1.1 200 OK\r\ncontent-length: 3000\r\nx-openstack-request-id: tx1\r\n\r\n" + BODY
    ),
    "long id": Reply(body=BODY, headers=(("X-Trans-Id", "t" * 600),)),
}

ODD = {
    "lone line feeds": Reply(raw=b"HTTP/1.1 200 OK\nContent-Length: 3000\n\n" + BODY),
    "folded": Reply(raw=b"HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 3000\r\n\r\n" + BODY),
    "two lengths": Reply(body=BODY, headers=(("Content-Length", "3000"),)),
    "two different lengths": Reply(body=BODY, headers=(("Content-Length", "9"),)),
    "chunked": Reply(body=BODY, chunked=True),
    "closes": Reply(body=BODY, closes=True),
    "drops": Reply(body=BODY, drops=True),
    "unframed": Reply(body=BODY, unframed=True),
    "of old": Reply(body=BODY, version="HTTP/1.0"),
    "continues": Reply(body=BODY, continues=2),
    "continues before": Reply(body=BODY, lead=b"HTTP/1.1 100 Continue\r\n\r\n", delay=0.02),
    "early hints": Reply(body=BODY, lead=b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"),
    "head in pieces": Reply(body=BODY, pieces=30, pause=0.0005, headers=TX),
    "body in pieces": Reply(body=BODY, pieces=1000, pause=0.005),
    "large": Reply(body=b"x" * 300_000),
    "short body": Reply(body=BODY, claim=SIZE + 9, drops=True, headers=TX),
    "cut in the head": Reply(body=BODY, cut=20),
    "cut in the body": Reply(body=BODY, cut=200, headers=TX),
    "long body": Reply(body=BODY, claim=SIZE - 9, headers=TX),
    "late trailer": Reply(body=BODY, chunked=True, pieces=2900, pause=0.005),
    "not http": Reply(raw=b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
    "no status": Reply(raw=b"HTTP/1.1 OK\r\nContent-Length: 0\r\n\r\n"),
    "huge head": Reply(raw=b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 70_000 + b"\r\nContent-Length: 0\r\n\r\n"),
    "other protocol": Reply(101),
    "closed": Reply(cut=0),
    "reset": Reply(reset=True, cut=0),
    "reset in the head": Reply(body=BODY, reset=True, cut=20),
    "silent": Reply(stall=True),
    "stalls in the head": Reply(body=BODY, stall=True, cut=20),
    "stalls in the body": Reply(body=BODY, stall=True, cut=300),
    "a byte at a time": Reply(raw=b"HTTP/1.1 100 Continue\r\n\r\n", endless=True, pause=0.05),
    "empty": Reply(),
    "wrong size": Reply(body=b"x" * 17, headers=TX),
    "created": Reply(201),
    "no content": Reply(204),
    "a part": Reply(206, body=BODY, headers=TX),
    "found elsewhere": Reply(302, headers=TX),
    "refused token": Reply(401, body=b"no", headers=TX),
    "forbidden": Reply(403, body=b"no" * 1000),
    "not there": Reply(404, body=b"no", headers=TX),
    "broken": Reply(500, body=b"x" * 200_000),
    "busy": Reply(503, retry_after="0", body=b"busy"),
    "other etag": Reply(body=BODY, headers=(("ETag", "abc-3"),)),
    "wrong etag": Reply(body=BODY, headers=(*TX, ("ETag", WRONG))),
    "etag": Reply(body=BODY, etag=str),
    "quoted etag": Reply(body=BODY, etag='"{}"'.format),
    "loud etag": Reply(body=BODY, etag=str.upper),
}


#: How many times as long time-outs are, one after the other, until both ways come to the same: on a starved
#: machine either may take longer than a usual one.
PATIENCE = (1, 3, 10)


def wait_for_answers(patience: float) -> RequestOptions:
    return RequestOptions(retries=1, network_timeout=0.25 * patience, request_timeout=0.4 * patience)


#: Of tests in which nothing is to be given up.
PATIENT = RequestOptions(retries=1, network_timeout=60, connect_timeout=60)


@contextmanager
def running(server: FaultServer, **changes: object) -> Iterator[WorkerRun]:
    given = {
        "token": "t%t",
        "scenario": make_sent(container_base="50%", delete_after=60),
        "size_classes": ["ti ny%"],
        "requests": wait_for_answers(PATIENCE[0]),
        "owners": ["me %d"],
        "storage_urls": [server.url],
    }
    run = WorkerRun(RunParameters(1, **(given | changes)), 2)
    try:
        yield run
    finally:
        run.close()


def job(operation: OperationKind, size: int = SIZE) -> Job:
    return (5, operation.code, 0, 2, 7, size)


def carry_out(run: WorkerRun, way: FastPath | None, what: Job, due: float | None = None) -> JobResult:
    """Do what a slot does."""
    gevent.sleep(0)  # the clock of the loop goes on
    result = way.perform(what, due) if way is not None else None
    if result is not None:
        assert way is not None
        assert way.begun is None
        return result
    begun = None
    if way is not None:
        begun, way.begun = way.begun, None
        if begun is None:
            way.rest()
    return make_job_result(5, *run.perform(what, None, begun), due)


def told(result: JobResult) -> dict[str, object]:
    """What does not depend on how long it took."""
    times = {"first_byte", "last_byte", "completed", "spent", "late", "rare"}
    known = {name: getattr(result, name) is None for name in times}
    rare = result.rare or RareFields()
    parts = rare.connecting > 0, rare.pausing > 0, rare.last_attempt is None
    return {
        **{name: getattr(result, name) for name in result.__struct_fields__ if name not in times},
        # No two bodies are the same.
        "detail": re.sub("MD5 [0-9a-f]{32}$", "MD5", result.detail),
        "known": known,
        "parts": parts,
    }


def await_end(run: WorkerRun) -> None:
    """Wait until the server has closed the kept connection; the loop, which would see it, does not turn."""
    for connection in run.client._shared.connections:
        assert isinstance(connection, HttpConnection)
        assert select.select([connection._sock], [], [], 60)[0]


#: Sizes of uploads: one in one piece with its head, one that follows it.
SMALL, LARGE = SIZE, 700_000


def meet(
    operation: OperationKind,
    reply: Reply,
    brief: bool,
    size: int = SMALL,
    sampled: bool = False,
    *,
    patience: float,
) -> tuple[object, ...]:
    """Let a job meet an answer on a kept connection; return how it ended, and what the server saw."""
    with FaultServer() as server, running(server, requests=wait_for_answers(patience)) as run:
        if not sampled:
            run.client.sample(size)  # the first read is one of those that are looked at
        carry_out(run, None, job(DELETE))
        way = FastPath(run) if brief else None
        server.script(reply)
        first = told(carry_out(run, way, job(operation, size)))
        server.default = Reply(body=BODY)
        if reply.drops:
            await_end(run)  # a request that is on its way before that is reset
        after = told(carry_out(run, way, job(operation, size)))
        if way is not None:
            way.rest()
        seen = [
            (each.method, each.target, each.headers, len(each.body), each.connection)
            for each in server.requests
        ]
        for *_, headers, _, _ in seen:
            headers.pop("host")
        # Of a long answer the server may notice late that nobody reads on.
        return first, after, seen, len(run.client._shared.connections) <= 1


@pytest.mark.parametrize(
    ("operation", "size"),
    [(READ, SIZE), (UPDATE, SMALL), (UPDATE, LARGE), (DELETE, SIZE)],
    ids=["read", "update", "update-large", "delete"],
)
@pytest.mark.parametrize("name", [*USUAL, *ODD])
def test_both_ways_come_to_the_same(name: str, operation: OperationKind, size: int) -> None:
    reply = (USUAL | ODD)[name]
    for patience in PATIENCE:
        brief, careful = (meet(operation, reply, each, size, patience=patience) for each in (True, False))
        if brief == careful:
            break
    assert brief == careful


@pytest.mark.parametrize("name", [*USUAL, *ODD])
def test_both_ways_look_at_a_body_of_the_sample(name: str) -> None:
    reply = (USUAL | ODD)[name]
    for patience in PATIENCE:
        brief, careful = (meet(READ, reply, each, sampled=True, patience=patience) for each in (True, False))
        if brief == careful:
            break
    assert brief == careful


@pytest.mark.parametrize(
    ("etag", "cause", "unchecked"),
    [(hashlib.md5(BODY).hexdigest(), None, 0), (WRONG, "wrong ETag", 0), ("of another kind", None, 1)],
)
def test_a_body_of_the_sample_ends_the_short_way_if_its_etag_is_right(
    fault_server: FaultServer, etag: str, cause: str | None, unchecked: int
) -> None:
    with running(fault_server, requests=PATIENT) as run:
        carry_out(run, None, job(DELETE))
        fault_server.default = Reply(body=BODY, headers=(("ETag", etag),))
        way = FastPath(run)
        result = way.perform(job(READ), None)
        assert (result is None) == (cause is not None)
        ended = result or make_job_result(5, *run.perform(job(READ), None, way.begun))
        way.rest()
        assert ended.cause == cause
        assert (ended.rare or RareFields()).unchecked == unchecked
        assert not run.client.sample()


#: The size of a body that comes in parts.
LONG_SIZE = 300_000
LONG = b"y" * LONG_SIZE

LONGS = {
    "whole": Reply(body=LONG, headers=TX),
    "in pieces": Reply(body=LONG, pieces=50_000, pause=0.002, headers=TX),
    "one byte last": Reply(body=LONG, pieces=LONG_SIZE + 60, pause=0.002),
    "64 KiB and a head": Reply(body=LONG[:65536], headers=TX),
    "a part": Reply(206, body=LONG, pieces=50_000, pause=0.002, headers=TX),
    "chunked": Reply(body=LONG, chunked=True),
    "closes": Reply(body=LONG, closes=True),
    "short body": Reply(body=LONG, claim=LONG_SIZE + 9, drops=True, headers=TX),
    "long body": Reply(body=LONG, claim=LONG_SIZE - 9, headers=TX),
    "cut": Reply(body=LONG, cut=200_000, headers=TX),
    "reset": Reply(body=LONG, cut=200_000, reset=True, headers=TX),
    "stalls": Reply(body=LONG, cut=200_000, stall=True, headers=TX),
    # For three times as long as a request may take in which nothing moves.
    "trickles": Reply(
        lead=b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + LONG[:-30_000],
        raw=LONG[-30_000:],
        pieces=500,
        pause=0.02,
    ),
    "wrong size": Reply(body=LONG + b"y", headers=TX),
    "far too long": Reply(body=LONG, claim=LONG_SIZE + (1 << 21), stall=True, headers=TX),
    "wrong etag": Reply(body=LONG, headers=(("ETag", WRONG),)),
    "broken": Reply(500, body=LONG, headers=TX),
}


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("name", LONGS)
def test_both_ways_come_to_the_same_where_bodies_come_in_parts(name: str, sampled: bool) -> None:
    size = 65536 if name.startswith("64") else LONG_SIZE
    for patience in PATIENCE:
        brief, careful = (
            meet(READ, LONGS[name], each, size, sampled, patience=patience) for each in (True, False)
        )
        if brief == careful:
            break
    assert brief == careful


@pytest.mark.parametrize("size", [65_000, 65_536, 100_000, 1_000_000])
def test_reads_of_any_size_end_the_short_way(fault_server: FaultServer, size: int) -> None:
    with running(fault_server, requests=PATIENT) as run:
        carry_out(run, None, job(DELETE))
        fault_server.default = Reply(body=bytes(size), headers=TX, pieces=size // 3 + 300, pause=0.01)
        for known in (size, 0):
            run.client.sample(known)
            result = short(run, job(READ, known))
            assert result is not None
            assert (result.cause, result.size, result.status) == (None, size, 200)
            assert result.trans_id == "tx1234-AB"
            assert result.first_byte is not None
            assert result.last_byte is not None
            assert result.first_byte < result.last_byte
        assert fault_server.connections == 1


#: What a server may do to an object that is verified, and what comes of that.
VERIFIED = {
    "right": None,
    "etag": None,
    "other etag": None,
    "of segments": None,
    "posted": None,
    "in pieces": None,
    "wrong etag": "wrong ETag",
    "last byte": "wrong content",
    "of another": "wrong content",
    "of a few bytes": "wrong size",
    "cut": "short body",
    "wrong metadata": "wrong metadata",
    "of no metadata": "wrong metadata",
    "busy": None,  # it is tried again
}


def verified_reply(name: str, body: bytes) -> Reply:
    items = make_metadata(3, "50%_000002/ti ny%_000007", (1, 16))
    posted = tuple((f"X-Object-Meta-{item}", value) for item, value in items)
    etag = ("ETag", hashlib.md5(body).hexdigest())
    replies = {
        "etag": Reply(body=body, headers=(etag,)),
        "other etag": Reply(body=body, headers=(("ETag", '"abc-3"'),)),
        "of segments": Reply(body=body, headers=(("ETag", WRONG), ("X-Static-Large-Object", "True"))),
        "posted": Reply(body=body, headers=(etag, *posted)),
        "in pieces": Reply(body=body, headers=(etag,), pieces=1000, pause=0.005),
        "wrong etag": Reply(body=body, headers=(("ETag", WRONG),)),
        "last byte": Reply(body=body[:-1] + bytes([body[-1] ^ 1]), headers=(etag,)),
        "of another": Reply(body=bytes([body[0] ^ 1]) + body[1:]),
        "of a few bytes": Reply(body=body[:9]),
        "cut": Reply(body=body, cut=900),
        "wrong metadata": Reply(body=body, headers=((posted[0][0], "0" * 16),)),
        "of no metadata": Reply(body=body, headers=(("X-Object-Meta-Ssbench-7", "00"),)),
        "busy": Reply(503, retry_after="0"),
    }
    return replies.get(name) or Reply(body=body, headers=(*TX, ("X-Object-Meta-Ssbench-Owner", "me")))


def meet_verified(name: str, brief: bool, size: int, patience: float) -> tuple[dict[str, object], ...]:
    """Write an object and read it; return how that ended."""
    requests = wait_for_answers(patience)
    with FaultServer() as server, running(server, verify_seed=3, requests=requests) as run:
        carry_out(run, None, job(DELETE))
        way = FastPath(run) if brief else None
        server.default = Reply(201, etag=str)
        written = told(carry_out(run, way, job(UPDATE, size)))
        body = server.requests[-1].body
        server.default = Reply(body=body)
        server.script(verified_reply(name, body))
        read = told(carry_out(run, way, job(READ, size)))
        after = told(carry_out(run, way, job(READ, size)))
        if way is not None:
            way.rest()
        seen = [(each.method, each.target, len(each.body), each.connection) for each in server.requests]
        return written, read, after, {"seen": seen}


@pytest.mark.parametrize("size", [40, SIZE, 4096, 100_000])
@pytest.mark.parametrize("name", VERIFIED)
def test_both_ways_come_to_the_same_where_bodies_are_verified(name: str, size: int) -> None:
    for patience in PATIENCE:
        brief, careful = (meet_verified(name, each, size, patience) for each in (True, False))
        if brief == careful:
            break
    assert brief == careful
    if name != "cut" or size > 900:
        assert brief[1]["cause"] == VERIFIED[name]


@pytest.mark.parametrize("size", [16, SIZE, 4096, 5000, 100_000])
@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("brief", [True, False])
def test_the_sample_sees_the_body_of_another_object_that_has_its_own_etag(
    fault_server: FaultServer, size: int, written: bool, brief: bool
) -> None:
    """Whether the short way wrote it, and whether it reads it."""
    with running(fault_server, requests=PATIENT, every_etag=True) as run:
        carry_out(run, None, job(DELETE))
        fault_server.default = Reply(201, etag=str)
        way = FastPath(run)
        causes = []
        for number in (7, 8):
            carry_out(run, way if written else None, (5, UPDATE.code, 0, 2, number, size))
            body = fault_server.requests[-1].body
            etag = hashlib.md5(body).hexdigest()
            fault_server.default = Reply(body=body, headers=(("ETag", etag),))
            causes.append(carry_out(run, way if brief else None, job(READ, size)).cause)
        assert causes == [None, "wrong content"]
        # Names that are not this program's may be copies.
        run.name(JobBatch(5, [job(READ, size)], paths=["50%_000002/ti ny%_000007"]))
        run.plans.clear()
        assert carry_out(run, way if brief else None, job(READ, size)).cause is None
        way.rest()


@pytest.mark.parametrize("size", [16, SIZE, 100_000])
@pytest.mark.parametrize("brief", [True, False])
@pytest.mark.parametrize(("least", "cause"), [(1, None), (2, "older version")])
def test_a_body_that_this_run_has_replaced_is_an_older_version(
    fault_server: FaultServer, size: int, brief: bool, least: int, cause: str | None
) -> None:
    with running(fault_server, requests=PATIENT, verify_seed=3) as run:
        carry_out(run, None, job(DELETE))
        way = FastPath(run) if brief else None
        fault_server.default = Reply(201, etag=str)
        carry_out(run, way, (1, *job(UPDATE, size)[1:]))
        fault_server.default = Reply(body=fault_server.requests[-1].body)
        reads = [(number, *job(READ, size)[1:]) for number in (5, 6)]
        run.expect(JobBatch(5, reads, versions=[least, 0]))
        assert [carry_out(run, way, each).cause for each in reads] == [cause, None]
        run.forget([5])
        assert not run.least
        if way is not None:
            way.rest()


@pytest.mark.parametrize("size", [16, 17, SIZE, 4096])
@pytest.mark.parametrize("names", [None, "a%b {class}/{number}"])
def test_verified_jobs_end_the_short_way(fault_server: FaultServer, size: int, names: str | None) -> None:
    sent = make_sent(object_names=names)
    named = {"scenario": sent, "size_classes": ["tiny"]} if names else {}
    with running(fault_server, requests=PATIENT, verify_seed=3, **named) as run:
        carry_out(run, None, job(DELETE))
        fault_server.default = Reply(201, etag=str)
        result = short(run, job(UPDATE, size))
        assert result is not None
        assert (result.cause, result.size, result.status) == (None, size, 201)
        body = fault_server.requests[-1].body
        assert len(body) == size
        etag = hashlib.md5(body).hexdigest()
        for headers in ((("ETag", etag),), (("ETag", "no-md5"),), ()):
            fault_server.default = Reply(body=body, headers=headers)
            result = short(run, job(READ, size))
            assert result is not None
            assert (result.cause, result.size, result.status) == (None, size, 200)
            assert (result.rare is None) is (headers == (("ETag", etag),))
        fault_server.default = Reply(body=body, headers=(("ETag", WRONG),))
        way = FastPath(run)
        assert carry_out(run, way, job(READ, size)).cause == "wrong ETag", "though this body's MD5 is known"
        way.rest()
        assert len(run.client._shared.connections) == 1


@pytest.mark.parametrize("size", [40, SIZE, 100_000])
def test_the_md5_of_an_upload_is_computed_if_this_store_has_such_etags(
    fault_server: FaultServer, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    with running(fault_server, requests=PATIENT, verify_seed=3) as run:
        carry_out(run, None, job(DELETE))
        payload, summed = run.client.payload, []
        add_to = payload.add_to

        def noted(digest: BodyHash, offset: int, count: int) -> None:
            summed.append(count)
            add_to(digest, offset, count)

        monkeypatch.setattr(payload, "add_to", noted)
        way = FastPath(run)
        none, right, wrong = Reply(201), Reply(201, etag=str), Reply(201, headers=(("ETag", WRONG),))
        # The first one cannot be known; then it is as with the last one.
        for reply, sums in (
            (none, True),
            (none, False),
            (right, True),
            (none, True),
            (wrong, True),
            (none, True),
            (none, False),
        ):
            fault_server.default = reply
            summed.clear()
            result = carry_out(run, way, job(UPDATE, size))
            assert result.cause == ("wrong ETag" if reply is wrong else None)
            assert (result.rare or RareFields()).unchecked == (reply is none)
            assert bool(summed) is sums
        way.rest()


def short(run: WorkerRun, what: Job, due: float | None = None) -> JobResult | None:
    way = FastPath(run)
    try:
        return way.perform(what, due)
    finally:
        way.rest()


@pytest.mark.parametrize("name", USUAL)
@pytest.mark.parametrize("operation", [READ, UPDATE, CREATE, DELETE], ids=lambda operation: operation.name)
def test_usual_jobs_end_the_short_way(fault_server: FaultServer, name: str, operation: OperationKind) -> None:
    with running(fault_server, requests=PATIENT) as run:
        run.client.sample()
        carry_out(run, None, job(DELETE))
        fault_server.default = USUAL[name]
        result = short(run, job(operation), 1.0)
        assert result is not None
        assert (result.cause, result.size, result.status) == (None, SIZE, 200)
        assert result.last_byte is not None
        assert (result.first_byte is None) == operation.sends_body
        assert result.late == pytest.approx(result.completed - result.last_byte - 1.0)
        assert len(run.client._shared.connections) == fault_server.connections == 1


def test_uploads_of_a_megabyte_end_the_short_way_and_longer_ones_do_not(fault_server: FaultServer) -> None:
    with running(fault_server, requests=PATIENT) as run:
        carry_out(run, None, job(DELETE))
        fault_server.default = Reply(201, etag=str)
        taken = []
        for size in (4097, 100_000, PIECE_BYTES, PIECE_BYTES + 1):
            result = short(run, job(UPDATE, size))
            if result is not None:
                assert (result.cause, result.size, result.status) == (None, size, 201)
                assert len(fault_server.requests[-1].body) == size
                taken.append(size)
        # What the kernel had no room for at once goes on the careful way.
        assert taken[:2] == [4097, 100_000]
        assert PIECE_BYTES + 1 not in taken


def test_what_is_not_usual_is_left_to_the_careful_way_from_the_start(fault_server: FaultServer) -> None:
    fault_server.default = Reply(body=BODY)
    with running(fault_server, requests=PATIENT) as run:
        assert short(run, job(DELETE)) is None  # no connection
        carry_out(run, None, job(DELETE))
        assert short(run, job(READ)) is not None  # the first is looked at
        assert short(run, job(READ)) is not None
        for what in (
            job(UPDATE, 0),
            job(UPDATE, PIECE_BYTES + 1),
            job(UPLOAD_IF_MISSING),
            job(REMOVE),
            (5, 99, 0, 0, 0, 0),
        ):
            assert short(run, what) is None
        assert short(run, (5, READ.code, 3, 0, 0, 0)) is None  # there is no such class
        run.update(structs.replace(run.parameters, token="a\nb"))
        assert short(run, job(READ)) is None
        assert len(fault_server.requests) == 3
        run.update(structs.replace(run.parameters, token="new"))
        assert short(run, job(READ)) is not None
        assert fault_server.requests[-1].headers["x-auth-token"] == "new"
    for changes in (
        {"storage_urls": [fault_server.url] * 2},
        {"storage_urls": ["no-url"]},
    ):
        with running(fault_server, requests=PATIENT, **changes) as run:
            carry_out(run, None, job(READ))
            assert short(run, job(DELETE)) is None


def test_a_killed_slot_closes_its_connection(fault_server: FaultServer) -> None:
    with running(fault_server, requests=PATIENT) as run:
        carry_out(run, None, job(DELETE))
        fault_server.script(Reply(stall=True))
        asking = gevent.spawn(short, run, job(DELETE))
        while len(fault_server.requests) < 2:
            gevent.sleep(0.001)
        asking.kill(timeout=5)
        assert asking.dead
        assert not run.client._shared.connections
