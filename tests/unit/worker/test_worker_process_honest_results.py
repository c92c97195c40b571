"""No honest answer is an impossible result: what stores answer, as the master judges it once it has crossed
the wire.
"""

from __future__ import annotations

import itertools
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import md5

import gevent
import pytest

from ssbench.fleet import wire
from ssbench.fleet.fleet import ResultBounds
from ssbench.fleet.wire import Job, RunParameters
from ssbench.fleet.worker_state import TaskBatch, WorkerState
from ssbench.scenario.operations import CREATE, DELETE, HEAD, READ, UPDATE, OperationKind
from ssbench.store.contract import JobResult
from ssbench.store.http import connection
from ssbench.store.request_options import RequestOptions
from ssbench.worker.worker_run import FastPath, WorkerRun, make_job_result

LARGEST = 1_000_000
CONTENT = random.Random(5).randbytes(LARGEST)

#: As many users as there are connections; each does so many operations.
USERS, EACH = 8, 160


def pieces(data: bytes, chance: random.Random) -> Iterator[memoryview]:
    """Cut data into pieces of any size from a byte on, or leave it whole; a cut may be within the head."""
    if chance.random() < 0.5:
        yield memoryview(data)
        return
    cuts = sorted(min(len(data), int(len(data) ** chance.random())) for _ in range(chance.randrange(12)))
    for start, end in itertools.pairwise([0, *cuts, len(data)]):
        if end > start:
            yield memoryview(data)[start:end]


def answer(request: bytes, chance: random.Random) -> bytes:
    """Return an honest answer: to a read an object of any size up to 1 MB, half of them of about 64 KiB."""
    method = request.split(b" ", 1)[0]
    if method in {b"GET", b"HEAD"}:
        size = chance.choice([int(LARGEST ** chance.random()), chance.randint(65_000, 100_000)])
        body = CONTENT[:size]
        etag = md5(body).hexdigest()
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: %b\r\n\r\n" % (size, etag.encode())
        return head + body if method == b"GET" else head
    status = b"201 Created" if method == b"PUT" else b"204 No Content"
    return b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status


@contextmanager
def store() -> Iterator[str]:
    """Serve honest answers in pieces on a thread for each connection; yields the storage URL."""

    def serve(client: socket.socket, number: int) -> None:
        chance = random.Random(number)
        with client, client.makefile("rb") as stream, suppress(OSError):
            client.settimeout(60)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while line := stream.readline():
                length = 0
                while (field := stream.readline().lower()) not in {b"\r\n", b""}:
                    if field.startswith(b"content-length:"):
                        length = int(field.partition(b":")[2])
                stream.read(length)
                for piece in pieces(answer(line, chance), chance):
                    client.sendall(piece)
                    if chance.random() < 0.1:
                        time.sleep(0)

    def accept() -> None:
        for number in itertools.count():
            try:
                client, _ = listener.accept()
            except OSError:
                return
            serving.append(threading.Thread(target=serve, args=(client, number), daemon=True))
            serving[-1].start()

    serving: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/AUTH_test"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join(60)
            for thread in serving:
                thread.join(60)


def judged(result: JobResult, job: Job, begun: float) -> str | None:
    """Return what the master finds impossible in a result, once it has crossed the wire."""
    _, code, size_class, container, number, size = job
    message = wire.JobResults(1, 1, 1, result.completed, 0, [result])
    arrived = wire.unpack_from_worker(wire.pack_message(message))
    assert isinstance(arrived, wire.JobResults)
    now = time.monotonic()
    worker = WorkerState(1, 1, "h", 1, "1", 8, now)
    batch = TaskBatch(1, [(code, size_class, container, number, size)], begun, worker)
    return ResultBounds((LARGEST,), 5).fault(batch, arrived.results[0], 0.0, now)


@pytest.mark.parametrize("every_etag", [False, True], ids=["as usual", "every ETag"])
def test_no_answer_in_pieces_of_any_size_is_impossible(
    monkeypatch: pytest.MonkeyPatch, every_etag: bool
) -> None:
    # On a busy machine a pause of some microseconds is often between two readings of clocks.
    for module in (connection, connection, connection):
        monkeypatch.setattr(module, "time", lambda: time.time() + random.uniform(0, 1e-5))
    impossible, failed, reads = [], [], 0
    with store() as url:
        run = WorkerRun(
            RunParameters(
                1,
                storage_urls=[url],
                token="t",
                size_classes=["any"],
                size_ranges=[(1, LARGEST)],
                requests=RequestOptions(retries=0, network_timeout=60, connect_timeout=60),
                every_etag=every_etag,
            ),
            USERS,
        )

        def user(number: int) -> None:
            nonlocal reads
            way, chance = FastPath(run), random.Random(number)
            for _ in range(EACH):
                operation: OperationKind = chance.choices(
                    (READ, HEAD, CREATE, UPDATE, DELETE), (12, 1, 1, 1, 1)
                )[0]
                size = chance.randint(1, LARGEST) if operation.sends_body else 0
                job = (1, operation.code, 0, 1, 7, size)
                begun = time.monotonic()
                result = way.perform(job, None)
                if result is None:
                    begun_on, way.begun = way.begun, None
                    if begun_on is None:
                        way.rest()
                    result = make_job_result(1, *run.perform(job, None, begun_on))
                reads += operation is READ
                if result.cause is not None:
                    failed.append((operation.name, result.cause, result.detail))
                if (wrong := judged(result, job, begun)) is not None:
                    impossible.append((operation.name, wrong))
            way.rest()

        try:
            gevent.joinall([gevent.spawn(user, number) for number in range(USERS)], timeout=300)
        finally:
            run.close()
    assert (impossible, failed) == ([], [])
    assert reads > USERS * EACH / 2
