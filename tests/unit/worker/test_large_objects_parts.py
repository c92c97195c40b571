"""Objects of a class in segments over the S3 API: uploads of parts, and what is left where one fails."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import md5, sha256

import pytest
from fault_server import FaultServer, Reply, Request
from sent_scenarios import make_sent

from ssbench.fleet.wire import RunParameters
from ssbench.scenario.operations import OPERATIONS, OperationSettings
from ssbench.scenario.value_rules import PayloadMode
from ssbench.store.contract import WRONG_ETAG, RequestOutcome
from ssbench.store.request_options import RequestOptions
from ssbench.store.s3.signing import AccessKey
from ssbench.worker.worker_run import WorkerRun

OBJECT = "/base-000002/tiny_000007"

Perform = Callable[..., RequestOutcome]


class PartsStore:
    """A store of uploads of parts, as far as a client sees them.

    ``fault`` answers in place of what is right.
    """

    def __init__(self) -> None:
        self.objects: dict[str, int] = {}
        self.uploads: dict[str, dict[int, tuple[int, str]]] = {}
        self.begun = 0
        self.checksums: list[str] = []  # those that answers to the next parts say
        self.fault: Callable[[str], Reply | None] = lambda _: None

    def kind(self, request: Request) -> str:
        """Return what a request is for."""
        query = request.target.partition("?")[2]
        if request.method == "POST":
            return "end" if "uploadId" in query else "begin"
        if request.method == "DELETE":
            return "abort" if "uploadId" in query else "delete"
        return "list" if "uploads=" in query else "part" if "uploadId" in query else request.method

    def __call__(self, request: Request) -> Reply:
        kind = self.kind(request)
        if (found := self.fault(kind)) is not None:
            return found
        path, _, query = request.target.partition("?")
        number = "".join(re.findall(r"uploadId=(\w+)", query))
        if number and number not in self.uploads:
            return Reply(404, b"<Error><Code>NoSuchUpload</Code></Error>")
        if kind == "part":
            return self.write(self.uploads[number], query, int(request.headers["content-length"]))
        if kind == "delete":
            return Reply(204 if self.objects.pop(path, None) is not None else 404)
        if kind == "abort":
            del self.uploads[number]
            return Reply(204)
        return Reply(200, getattr(self, kind)(path, number).encode())

    def write(self, parts: dict[int, tuple[int, str]], query: str, size: int) -> Reply:
        place = int(re.findall(r"partNumber=(\d+)", query)[0])

        def keep(digest: str) -> str:
            parts[place] = size, digest
            return digest

        if self.checksums:  # of chunks the ETag would be of all that comes; this answer has none
            keep("")
            said = self.checksums.pop()
            return Reply(200, headers=(("x-amz-checksum-crc32", said),) if said else ())
        return Reply(200, etag=keep)

    def begin(self, path: str, number: str) -> str:
        self.begun += 1
        self.uploads[f"u{self.begun}"] = {}
        told = f"<UploadId>u{self.begun}</UploadId>"
        return f"<InitiateMultipartUploadResult>{told}</InitiateMultipartUploadResult>"

    def end(self, path: str, number: str) -> str:
        parts = self.uploads.pop(number)
        self.objects[path] = sum(size for size, _ in parts.values())
        digests = [bytes.fromhex(parts[place][1]) for place in sorted(parts)]
        etag = f"{md5(b''.join(digests)).hexdigest()}-{len(parts)}"
        return f"<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>"

    def list(self, path: str, number: str) -> str:
        told = "".join(
            f"<Upload><Key>{key}</Key><UploadId>{each}</UploadId></Upload>"
            for each in self.uploads
            for key in ("tiny_000007", "tiny_0000071")
        )
        return f"<ListMultipartUploadsResult>{told}</ListMultipartUploadsResult>"


@pytest.fixture
def store() -> PartsStore:
    return PartsStore()


@pytest.fixture
def server(store: PartsStore) -> Iterator[FaultServer]:
    with FaultServer(rule=store) as running:
        yield running


@pytest.fixture
def perform(server: FaultServer) -> Perform:
    """Carry out an operation on an object in parts of 10 bytes."""

    def carry_out(
        name: str,
        size: int = 0,
        retries: int = 0,
        settings: tuple[OperationSettings, ...] = (),
        payload: PayloadMode = "unsigned",
    ) -> RequestOutcome:
        run = WorkerRun(
            RunParameters(
                0xABC,
                storage_urls=[f"s3+{server.url.rpartition('/v1')[0]}"],
                token=AccessKey(access="a", secret="b").pack(),
                size_classes=["tiny"],
                size_ranges=[(20, 40)],
                segments=[(10, False)],
                owners=["mine"],
                requests=RequestOptions(retries=retries),
                scenario=make_sent(
                    container_base="base-", delete_after=60, operations=settings, s3_payload=payload
                ),
            ),
            16,
        )
        with closing(run):
            return run.perform((1, OPERATIONS.named(name).code, 0, 2, 7, size), None)[0]

    return carry_out


def left_by(found: RequestOutcome) -> int:
    return 0 if found.rare is None else found.rare.left


def test_an_object_is_written_in_parts(perform: Perform, server: FaultServer, store: PartsStore) -> None:
    found = perform("create", 25)
    assert (found.cause, found.detail, store.objects, store.uploads) == (None, "", {OBJECT: 25}, {})
    assert found.size == 25
    assert found.rare is not None
    assert len(found.rare.steps) == 2
    assert sum(found.rare.steps) == pytest.approx(found.last_byte)
    begin, *parts, end = server.requests
    assert begin.headers["x-amz-meta-ssbench-owner"] == "mine"
    assert sorted(len(each.body) for each in parts) == [5, 10, 10]
    # An object that expires has parts that do; s3api takes no time from the beginning of an upload.
    assert {each.headers.get("x-delete-after") for each in (*parts, end)} == {"60"}
    found = perform("update", 40)
    assert (found.cause, store.objects, store.uploads) == (None, {OBJECT: 40}, {})
    assert found.rare is not None
    assert len(found.rare.steps) == 4


def test_the_condition_of_a_create_is_that_of_the_end(perform: Perform, server: FaultServer) -> None:
    assert perform("create_only", 25).cause is None
    conditional = [each.target for each in server.requests if each.headers.get("if-none-match") == "*"]
    assert conditional == [server.requests[-1].target]


@pytest.mark.parametrize(
    ("name", "failing", "cause", "left", "there"),
    [
        ("create", "begin 503", "HTTP 503", 0, 0),
        ("update", "begin 503", "HTTP 503", 1, 0),
        ("update", "begin 400", "HTTP 400", 0, 0),
        ("create", "part 503", "HTTP 503", 0, 0),
        ("update", "part 503", "HTTP 503", 0, 0),
        ("create_only", "end 412", "exists already", 0, 0),
        ("update", "end 400", "HTTP 400", 0, 0),
        # It may be written yet; what a create leaves goes after the run.
        ("create", "end 503", "HTTP 503", 0, 1),
        ("update", "end 503", "HTTP 503", 1, 1),
    ],
)
def test_what_an_upload_that_fails_leaves(
    perform: Perform, store: PartsStore, name: str, failing: str, cause: str, left: int, there: int
) -> None:
    kind, status = failing.split()
    store.fault = lambda asked: Reply(int(status)) if asked == kind else None
    found = perform(name, 25)
    assert (found.cause, left_by(found), len(store.uploads)) == (cause, left, there)


def test_an_upload_that_cannot_be_given_up_is_counted(perform: Perform, store: PartsStore) -> None:
    store.fault = lambda kind: Reply(500) if kind in {"part", "abort"} else None
    assert left_by(perform("update", 25)) == 1


def test_an_error_in_an_answer_of_200_is_a_failure(perform: Perform, store: PartsStore) -> None:
    body = b"<Error><Code>InternalError</Code></Error>"
    store.fault = lambda kind: Reply(200, body) if kind == "end" else None
    found = perform("create", 25)
    assert (found.cause, found.detail) == ("wrong verdict", "InternalError")


def test_an_end_whose_answer_was_lost_has_ended(perform: Perform, store: PartsStore) -> None:
    lost = iter([Reply(raw=b"", drops=True)])

    def fault(kind: str) -> Reply | None:
        if kind != "end" or (reply := next(lost, None)) is None:
            return None
        store.uploads.clear()
        store.objects[OBJECT] = 25
        return reply

    store.fault = fault
    found = perform("create", 25, retries=2)
    assert (found.cause, store.objects) == (None, {OBJECT: 25})


def test_an_object_goes_and_so_do_its_unfinished_uploads(
    perform: Perform, server: FaultServer, store: PartsStore
) -> None:
    perform("create", 25)
    assert perform("delete").cause is None
    assert server.requests[-1].target == OBJECT
    store.fault = lambda kind: Reply(503) if kind == "end" else None
    perform("create", 25)
    assert store.uploads
    assert (perform("remove").cause, store.uploads) == (None, {})
    assert perform("delete").cause == "HTTP 404"


def test_each_part_is_announced_with_its_md5(perform: Perform, server: FaultServer) -> None:
    server.keep_bodies = True
    settings = (OperationSettings("create", values={"etag": True}),)
    assert perform("create", 25, settings=settings).cause is None
    _, *parts, _ = server.requests
    assert [each.headers["content-md5"] for each in parts] == [
        base64.b64encode(md5(each.body).digest()).decode() for each in parts
    ]


@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_parts_say_what_they_are(
    perform: Perform, server: FaultServer, store: PartsStore, payload: PayloadMode
) -> None:
    server.keep_bodies = True
    outcome = perform("create", 25, payload=payload)
    # This store takes all that comes for the object, so that ETags are of chunks with what is around them.
    assert outcome.cause in ({None} if payload == "signed" else {None, WRONG_ETAG})
    begin, *parts, end = server.requests
    parts.sort(key=lambda each: each.target)
    for each in (begin, end):
        assert each.headers["x-amz-content-sha256"] == sha256(each.body).hexdigest()
    for each, size in zip(parts, (10, 10, 5), strict=True):
        if payload == "signed":
            assert each.headers["x-amz-content-sha256"] == sha256(each.body).hexdigest()
        else:
            assert each.headers["x-amz-decoded-content-length"] == str(size)
            assert each.body.startswith(b"%x\r\n" % size)


@pytest.mark.parametrize(
    ("said", "expected"), [(["c="] * 3, ["c="] * 3), (["c=", "", "c="], []), ([""] * 3, [])]
)
def test_the_end_says_the_checksums_that_answers_to_parts_said(
    perform: Perform, server: FaultServer, store: PartsStore, said: list[str], expected: list[str]
) -> None:
    server.keep_bodies = True
    store.checksums = list(said)
    assert perform("create", 25, payload="chunked").cause is None
    begin, *_, end = server.requests
    assert begin.headers["x-amz-checksum-algorithm"] == "CRC32"
    assert re.findall(r"<ChecksumCRC32>(.*?)</ChecksumCRC32>", end.body.decode()) == expected
