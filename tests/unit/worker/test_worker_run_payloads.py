"""Uploads over the S3 API by the short way say of their bodies what those of the careful way say."""

from __future__ import annotations

import base64
import hashlib
import re
from binascii import crc32
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import gevent
import pytest
from fault_server import FaultServer, Reply, Request
from fresh_client import rest
from sent_scenarios import make_sent

from ssbench.fleet.wire import RunParameters
from ssbench.scenario.operations import CREATE, READ, UPLOAD_IF_MISSING
from ssbench.scenario.value_rules import PayloadMode
from ssbench.store.http.bodies import PIECE_BYTES
from ssbench.store.request_options import RequestOptions
from ssbench.store.s3.signing import AccessKey
from ssbench.worker.worker_run import FastPath, WorkerRun

SIZES = [1, 16, 4096, 4097, 70_000, PIECE_BYTES]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@contextmanager
def running(
    server: FaultServer, payload: PayloadMode, seed: int | None, names: str | None = None
) -> Iterator[WorkerRun]:
    parameters = RunParameters(
        1,
        storage_urls=[f"s3+{server.url.rpartition('/v1')[0]}"],
        token=AccessKey(access="a", secret="s").pack(),
        size_classes=["tiny"],
        size_ranges=[(1, PIECE_BYTES)],
        owners=["mine"],
        verify_seed=seed,
        requests=RequestOptions(retries=0),
        scenario=make_sent(container_base="base-", s3_payload=payload, object_names=names),
    )
    run = WorkerRun(parameters, 4)
    try:
        yield run
    finally:
        run.close()


def body_of(request: Request) -> bytes:
    """Return the body of an upload, of which all that is said is true."""
    said, body = request.headers["x-amz-content-sha256"], request.body
    if not said.startswith("STREAMING-"):
        assert said in {hashlib.sha256(body).hexdigest(), "UNSIGNED-PAYLOAD"}
        return body
    found = re.match(rb"([0-9a-f]+)\r\n", body)
    assert found is not None
    size = int(found[1], 16)
    whole = body[found.end() : found.end() + size]
    checksum = base64.b64encode(crc32(whole).to_bytes(4, "big")).decode()
    assert body[found.end() + size :] == f"\r\n0\r\nx-amz-checksum-crc32:{checksum}\r\n\r\n".encode()
    assert request.headers["x-amz-decoded-content-length"] == str(size)
    return whole


@pytest.mark.parametrize("payload", get_args(PayloadMode))
@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("names", [None, "{class}/{number}"])
def test_both_ways_say_the_same(
    server: FaultServer, payload: PayloadMode, seed: int | None, names: str | None
) -> None:
    with running(server, payload, seed, names) as run:
        path = FastPath(run)
        run.perform((1, READ.code, 0, 0, 7, 0), None)  # it is connected
        server.requests.clear()
        for number, size in enumerate(SIZES):
            job = number, CREATE.code, 0, 0, 7, size
            gevent.sleep(0)
            done = path.perform(job, None)
            if done is None:  # all of a large body need not go at once
                assert size == PIECE_BYTES
                begun, path.begun = path.begun, None
                assert run.perform(job, None, begun)[0].cause is None
            else:
                assert (done.cause, done.size) == (None, size)
            path.rest()
            outcome, _ = run.perform(job, None)
            assert (outcome.cause, outcome.size) == (None, size)
            short, careful = server.requests[-2:]
            assert [len(body_of(each)) for each in (short, careful)] == [size, size]
            own = {"x-amz-content-sha256", "authorization"} if payload == "signed" else set()
            if len({each.headers["x-amz-date"] for each in (short, careful)}) > 1:  # its time was over
                own |= {"x-amz-date", "authorization"}
            fields = [{k: v for k, v in each.headers.items() if k not in own} for each in (short, careful)]
            assert fields[0] == fields[1]
            assert short.target == careful.target
        assert server.connections == 1


@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_a_body_that_a_connection_at_rest_did_not_take_is_sent_anew(
    server: FaultServer, payload: PayloadMode
) -> None:
    with running(server, payload, None) as run:
        path = FastPath(run)
        job = 1, CREATE.code, 0, 0, 7, 50_000
        run.perform(job, None)
        rest(run.client, 60)
        server.script(Reply(reset=True))
        assert path.perform(job, None) is None
        begun, path.begun = path.begun, None
        outcome, _ = run.perform(job, None, begun)
        assert (outcome.cause, outcome.resent, outcome.size) == (None, 1, 50_000)
        assert [len(body_of(each)) for each in server.requests] == [50_000] * 3


@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_reads_have_a_signature_that_is_kept(server: FaultServer, payload: PayloadMode) -> None:
    with running(server, payload, None) as run:
        pattern = run.plan(READ.code, 0, 0)
        assert pattern is not None
        assert pattern.hashed is None
        assert b"x-amz-content-sha256: e3b0c44298fc1c14" in pattern.template % 7


@pytest.mark.parametrize(("there", "status"), [(None, 201), (PIECE_BYTES, 200), (2 * PIECE_BYTES, 201)])
def test_an_initial_object_that_was_written_is_told_from_one_that_was_there(
    server: FaultServer, there: int | None, status: int
) -> None:
    """S3 stores answer 200 to both."""

    def answer(request: Request) -> Reply:
        if request.method != "HEAD":
            return Reply(200)
        return Reply(404) if there is None else Reply(200, bytes(there))

    server.rule = answer
    with running(server, "unsigned", None) as run:
        outcome, _ = run.perform((1, UPLOAD_IF_MISSING.code, 0, 0, 7, 100), None)
    assert (outcome.cause, outcome.found, outcome.status) == (None, there, status)
