"""Objects in segments: what operations on them ask of a store, and what is left where one fails."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import md5
from typing import Any

import pytest
from fault_server import FaultServer, Reply, Request
from sent_scenarios import make_sent

from ssbench.fleet.wire import RunParameters, Spent
from ssbench.scenario.operations import OPERATIONS, OperationSettings
from ssbench.store.contract import RequestOutcome
from ssbench.store.request_options import RequestOptions
from ssbench.worker.worker_run import WorkerRun

OBJECT = "/v1/AUTH_test/base_000002/tiny_000007"
SEGMENTS = "/v1/AUTH_test/base_000002_segments"
RUN_ID = 0xABC
FIRST = f"{SEGMENTS}/tiny_000007/segments/abc"

Perform = Callable[..., RequestOutcome]


class SegmentStore:
    """A store of objects by their paths, with manifests of either kind, as far as a client sees them.

    ``fault`` answers in place of what is right. Bodies are not kept, but their lengths.
    """

    def __init__(self) -> None:
        self.ignores_prefix = False
        self.sizes: dict[str, int] = {}
        self.etags: dict[str, str] = {}
        self.static: dict[str, list[str]] = {}
        self.dynamic: dict[str, str] = {}
        self.fault: Callable[[Request], Reply | None] = lambda _: None
        self.told = 0  # bytes of listings and of manifests that were read

    def __call__(self, request: Request) -> Reply:
        path, _, query = request.target.partition("?")
        if (found := self.fault(request)) is not None:
            return found
        if "format=json" in query:
            prefix = query.partition("prefix=")[2].partition("&")[0].replace("%2F", "/")
            names = sorted(
                each.removeprefix(f"{path}/") for each in self.sizes if each.startswith(f"{path}/")
            )
            asked = [each for each in names if self.ignores_prefix or each.startswith(prefix)]
            return self.tell([{"name": each} for each in asked])
        answer = {"PUT": self.put, "DELETE": self.delete}.get(request.method, self.read)
        return answer(request, path, query)

    def tell(self, rows: list[dict[str, str]]) -> Reply:
        body = json.dumps(rows).encode()
        self.told += len(body)
        return Reply(200, body=body)

    def put(self, request: Request, path: str, query: str) -> Reply:
        self.sizes[path] = int(request.headers["content-length"])
        self.static.pop(path, None)
        self.dynamic.pop(path, None)
        if place := request.headers.get("x-object-manifest"):
            self.dynamic[path] = f"/v1/AUTH_test/{place}"
        return Reply(
            201, delay=0.02 if SEGMENTS in path else 0, etag=lambda digest: self.written(path, query, digest)
        )

    def written(self, path: str, query: str, digest: str) -> str:
        self.etags[path] = digest
        if "multipart-manifest=put" not in query:
            return digest
        own = [each for each in self.sizes if each.startswith(f"{SEGMENTS}/{path.rpartition('/')[2]}/")]
        version = own[-1].rpartition("/")[0]  # of those that were written last
        newest = sorted(each for each in own if each.startswith(f"{version}/"))
        self.static[path] = newest
        self.sizes[path] = sum(self.sizes[each] for each in newest)
        return md5("".join(self.etags[each] for each in newest).encode()).hexdigest()

    def read(self, request: Request, path: str, query: str) -> Reply:
        if path not in self.sizes:
            return Reply(404)
        size, fields = self.sizes[path], []
        if path in self.static:
            fields = [("X-Static-Large-Object", "True")]
        if path in self.dynamic:
            fields = [("X-Object-Manifest", self.dynamic[path].removeprefix("/v1/AUTH_test/"))]
            size = sum(each for name, each in self.sizes.items() if name.startswith(self.dynamic[path]))
        if "multipart-manifest=get" in query:
            rows = [{"name": each.removeprefix("/v1/AUTH_test")} for each in self.static[path]]
            return self.tell(rows)
        if request.method == "HEAD":
            return Reply(200, claim=size, headers=tuple(fields))
        if "range" not in request.headers:
            return Reply(200, body=b"x" * size, headers=tuple(fields))
        first, last = map(int, request.headers["range"][6:].split("-"))
        last = min(last, size - 1)
        fields.append(("Content-Range", f"bytes {first}-{last}/{size}"))
        return Reply(206, body=b"x" * (last - first + 1), headers=tuple(fields))

    def delete(self, request: Request, path: str, query: str) -> Reply:
        said: dict[str, Any] = {"Response Status": "200 OK", "Number Not Found": 0, "Errors": []}
        there = self.sizes.pop(path, None) is not None
        if "multipart-manifest=delete" not in query:
            return Reply(204 if there else 404)
        if not there:
            said |= {"Number Deleted": 0, "Number Not Found": 1}
        elif path not in self.static:
            self.sizes[path] = 1
            said |= {"Response Status": "400 Bad Request", "Errors": [[path, "Not an SLO manifest"]]}
        else:
            parts = self.static.pop(path)
            gone = [self.sizes.pop(each, None) is not None for each in parts]
            said |= {"Number Deleted": 1 + sum(gone), "Number Not Found": gone.count(False)}
        return Reply(200, body=json.dumps(said).encode())


@pytest.fixture
def store() -> SegmentStore:
    return SegmentStore()


@pytest.fixture
def server(store: SegmentStore) -> Iterator[FaultServer]:
    with FaultServer(rule=store) as running:
        yield running


@pytest.fixture
def perform(server: FaultServer) -> Perform:
    """Carry out an operation on an object in segments of 10 bytes."""

    def carry_out(
        name: str,
        size: int = 0,
        *,
        dynamic: bool = False,
        spent: Spent | None = None,
        settings: tuple[OperationSettings, ...] = (),
        retries: int = 0,
    ) -> RequestOutcome:
        run = WorkerRun(
            RunParameters(
                RUN_ID,
                storage_urls=[server.url],
                token="t",
                size_classes=["tiny"],
                size_ranges=[(20, 40)],
                segments=[(10, dynamic)],
                owners=["mine"],
                requests=RequestOptions(retries=retries),
                scenario=make_sent(container_base="base", delete_after=60, operations=settings),
            ),
            16,
        )
        with closing(run):
            return run.perform((1, OPERATIONS.named(name).code, 0, 2, 7, size), spent)[0]

    return carry_out


def left_by(found: RequestOutcome) -> int:
    return 0 if found.rare is None else found.rare.left


def steps_of(found: RequestOutcome) -> int:
    return 0 if found.rare is None else len(found.rare.steps)


BOTH = pytest.mark.parametrize("dynamic", [False, True])


@BOTH
def test_an_object_is_created_in_segments(
    perform: Perform, server: FaultServer, store: SegmentStore, dynamic: bool
) -> None:
    found = perform("create", 25, dynamic=dynamic)
    assert (found.cause, found.detail, found.status) == (None, "", 201)
    *segments, manifest = server.requests
    assert sorted((each.target, each.body and len(each.body)) for each in segments) == [
        (f"{FIRST}/{number:08d}", size) for number, size in enumerate((10, 10, 5))
    ]
    assert found.size == 25 + len(manifest.body)
    assert {each.headers["x-delete-after"] for each in server.requests} == {"60"}
    assert {each.headers["x-object-meta-ssbench-owner"] for each in server.requests} == {"mine"}
    if dynamic:
        assert (manifest.target, manifest.body) == (OBJECT, b"")
        assert manifest.headers["x-object-manifest"] == f"{FIRST.removeprefix('/v1/AUTH_test/')}/"
    else:
        assert manifest.target == f"{OBJECT}?multipart-manifest=put"
        assert [(row["path"], row["size_bytes"]) for row in json.loads(manifest.body)] == [
            (f"{FIRST.removeprefix('/v1/AUTH_test')}/{number:08d}", size)
            for number, size in enumerate((10, 10, 5))
        ]
    assert steps_of(found) == 2
    assert found.rare is not None
    assert sum(found.rare.steps) == pytest.approx(found.last_byte)


def test_one_user_sends_some_segments_at_once(perform: Perform, server: FaultServer) -> None:
    assert perform("create", 400).cause is None
    # Each has a connection of its own as long as it is under way, which later ones use again.
    assert server.connections == 10


@BOTH
def test_an_update_replaces_segments(
    perform: Perform, server: FaultServer, store: SegmentStore, dynamic: bool
) -> None:
    perform("create", 40, dynamic=dynamic)
    server.requests.clear()
    store.told = 0
    found = perform("update", 25, dynamic=dynamic)
    assert (found.cause, found.status, steps_of(found)) == (None, 201, 4)
    asked = [
        f"{each.method} {'segment' if SEGMENTS in each.target else 'object'}" for each in server.requests
    ]
    look = ["HEAD object", "GET segment" if dynamic else "GET object"]
    assert asked == [*look, *["PUT segment"] * 3, "PUT object", *["DELETE segment"] * 4]
    there = [each for each in store.sizes if SEGMENTS in each]
    assert len(there) == 3
    assert not any(each.startswith(FIRST) for each in there)
    # The bytes of all requests: segments, manifests, and the listing by which dynamic segments are found.
    assert found.size == 25 + len(server.requests[5].body) + store.told


@pytest.mark.parametrize("body", [b"", b"[]", b"x" * 40, b'[{"bytes": 1}]'])
def test_an_update_finds_old_segments_where_the_store_does_not_show_the_manifest(
    perform: Perform, store: SegmentStore, body: bytes
) -> None:
    """Ceph's gateway answers 200 without a body: each update left the segments of the one before."""
    perform("create", 40)
    store.sizes[f"{SEGMENTS}/tiny_000008/segments/abc/00000000"] = 3
    store.fault = lambda request: Reply(200, body=body) if "manifest=get" in request.target else None
    for _ in range(4):
        assert perform("update", 25).cause is None
    assert Counter(each.split("/")[4] for each in store.sizes if SEGMENTS in each) == {
        "tiny_000007": 3,
        "tiny_000008": 1,
    }


def test_a_manifest_that_is_refused_ends_the_update_before_anything_is_sent(
    perform: Perform, server: FaultServer, store: SegmentStore
) -> None:
    perform("create", 40)
    server.requests.clear()
    store.fault = lambda request: Reply(403) if "manifest=get" in request.target else None
    assert perform("update", 25).cause == "HTTP 403"
    assert [each.method for each in server.requests] == ["HEAD", "GET"]


@BOTH
def test_an_object_goes_with_its_segments(
    perform: Perform, server: FaultServer, store: SegmentStore, dynamic: bool
) -> None:
    perform("create", 25, dynamic=dynamic)
    server.requests.clear()
    found = perform("delete", dynamic=dynamic)
    assert (found.cause, found.detail, store.sizes) == (None, "", {})
    assert len(server.requests) == (6 if dynamic else 1)


def test_an_object_in_one_piece_is_deleted_as_any(perform: Perform, store: SegmentStore) -> None:
    store.sizes[OBJECT] = 7
    assert (perform("delete").cause, store.sizes) == (None, {})


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ({"Response Status": "200 OK", "Number Deleted": 3, "Number Not Found": 0, "Errors": []}, None),
        ({"Response Status": "200 OK", "Number Deleted": 0, "Number Not Found": 1}, "HTTP 404"),
        ({"Response Status": "404 Not Found"}, "HTTP 404"),
        ({"Response Status": "200 OK", "Number Deleted": 2, "Number Not Found": 1}, "wrong verdict"),
        ({"Response Status": "200 OK", "Number Deleted": 2, "Errors": [["/a", "500"]]}, "wrong verdict"),
        ({"Response Status": "201 Created", "Number Deleted": 2, "Errors": [["/a", "500"]]}, "wrong verdict"),
        ({"Response Status": "202 Accepted", "Number Deleted": 3, "Number Not Found": 0}, None),
        ({"Response Status": "200 OK", "Number Deleted": 0, "Number Not Found": 0}, "wrong verdict"),
        ({"Response Status": "200 OK"}, "wrong verdict"),
        ({"Response Status": "400 Bad Request", "Errors": [["/a", "503 x"]]}, "HTTP 400"),
        ({}, "wrong verdict"),
    ],
)
def test_what_the_answer_to_a_deletion_says_decides(
    perform: Perform, store: SegmentStore, said: dict[str, Any], cause: str | None
) -> None:
    store.fault = lambda request: (
        Reply(200, body=json.dumps(said).encode()) if request.method == "DELETE" else None
    )
    found = perform("delete")
    assert (found.cause, found.last_byte is None) == (cause, cause is not None)
    assert found.spent is None or found.spent > 0


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_deletion_that_a_lost_worker_may_have_made_finds_nothing(perform: Perform, dynamic: bool) -> None:
    assert perform("delete", dynamic=dynamic, spent=(0, None, None, True)).cause is None
    assert perform("delete", dynamic=dynamic).cause == "HTTP 404"


@BOTH
def test_the_clean_up_finds_segments_without_a_manifest(
    perform: Perform, store: SegmentStore, dynamic: bool
) -> None:
    perform("create", 25, dynamic=dynamic)
    store.sizes |= {f"{SEGMENTS}/tiny_000007/segments/old/00000000": 3, f"{SEGMENTS}/tiny_000008/x": 4}
    assert perform("remove", dynamic=dynamic).cause is None
    assert store.sizes == {f"{SEGMENTS}/tiny_000008/x": 4}
    assert perform("remove", dynamic=dynamic).cause is None


@BOTH
@pytest.mark.parametrize("name", ["remove", "delete", "update"])
def test_a_store_that_ignores_the_prefix_loses_no_segment_of_another_object(
    perform: Perform, store: SegmentStore, dynamic: bool, name: str
) -> None:
    perform("create", 25, dynamic=dynamic)
    other = f"{SEGMENTS}/tiny_000008/segments/x/00000000"
    store.sizes[other] = 4
    store.ignores_prefix = True
    cause = perform(name, 25, dynamic=dynamic).cause
    assert other in store.sizes
    assert cause == ("wrong listing" if dynamic or name == "remove" else None)


@pytest.mark.parametrize(
    ("name", "failing", "status", "left", "there"),
    [
        ("create", "PUT segment", 503, 0, 0),
        ("update", "PUT segment", 503, 0, 4),
        ("create_only", "PUT object", 412, 0, 0),
        ("update", "PUT object", 422, 0, 4),
        # It may be written yet; what a create leaves goes after the run.
        ("create", "PUT object", 503, 0, 3),
        ("update", "PUT object", 503, 3, 7),
        ("update", "HEAD object", 500, 0, 4),
        ("update", "DELETE segment", 500, 4, 7),
    ],
)
def test_what_a_write_that_fails_leaves(
    perform: Perform, store: SegmentStore, name: str, failing: str, status: int, left: int, there: int
) -> None:
    if name == "update":
        perform("create", 40)
    method, kind = failing.split()
    once = Counter[str]()

    def fault(request: Request) -> Reply | None:
        if request.method != method or (SEGMENTS in request.target) != (kind == "segment"):
            return None
        once[method] += 1
        return Reply(status) if method != "PUT" or kind == "object" or once[method] == 2 else None

    store.fault = fault
    found = perform(name, 25)
    assert found.cause == ("exists already" if status == 412 else f"HTTP {status}")
    assert (left_by(found), steps_of(found)) == (left, 0)
    assert sum(SEGMENTS in each for each in store.sizes) == there


def test_segments_that_another_program_made_stay(
    perform: Perform, server: FaultServer, store: SegmentStore
) -> None:
    """An initial object takes the name of an object whose manifest is of data elsewhere."""
    elsewhere = ["/v1/AUTH_test/data/a", f"{SEGMENTS}/tiny_000009/segments/x/00000000"]
    store.sizes |= dict.fromkeys(elsewhere, 5) | {OBJECT: 10}
    store.static[OBJECT] = elsewhere
    found = perform("upload_if_missing", 25)
    assert (found.cause, found.status, found.found, found.size) == (None, 201, 10, 25)
    assert all(each in store.sizes for each in elsewhere)
    assert "DELETE" not in {each.method for each in server.requests}


@BOTH
def test_an_initial_object_that_is_there_is_reused(
    perform: Perform, server: FaultServer, store: SegmentStore, dynamic: bool
) -> None:
    found = perform("upload_if_missing", 25, dynamic=dynamic)
    assert (found.cause, found.status, found.found, found.size) == (None, 201, None, 25)
    assert not any("x-delete-after" in each.headers for each in server.requests)
    server.requests.clear()
    found = perform("upload_if_missing", 30, dynamic=dynamic)
    assert (found.cause, found.status, found.found, found.size) == (None, 200, 25, 25)
    assert [each.method for each in server.requests] == ["HEAD"]


def test_a_create_that_is_made_again_overwrites_its_segments(perform: Perform, store: SegmentStore) -> None:
    store.fault = lambda request: Reply(401) if "multipart" in request.target else None
    found = perform("create", 25)
    assert (found.cause, found.unauthorized) == ("HTTP 401", True)
    store.fault = lambda _: None
    now = time.monotonic()
    found = perform("create", 25, spent=(1, now - 5.0, now - 3.0, False))
    assert (found.cause, found.retries) == (None, 1)
    assert len([each for each in store.sizes if SEGMENTS in each]) == 3


def test_the_etag_of_the_whole_is_that_of_its_segments(perform: Perform, store: SegmentStore) -> None:
    store.fault = lambda request: (
        Reply(201, headers=(("ETag", f'"{"0" * 32}"'),))
        if "multipart-manifest=put" in request.target
        else None
    )
    assert perform("create", 25).cause == "wrong ETag"


@BOTH
@pytest.mark.parametrize("size", [25, 0])
def test_parts_are_read_one_after_the_other(
    perform: Perform, server: FaultServer, dynamic: bool, size: int
) -> None:
    perform("create", 25, dynamic=dynamic)
    server.requests.clear()
    found = perform("parts", size, dynamic=dynamic)
    assert (found.cause, found.size, steps_of(found)) == (None, 25, 2)
    ranges = [each.headers["range"] for each in server.requests if each.method == "GET"]
    assert ranges == ["bytes=0-9", "bytes=10-19", "bytes=20-24"]
    # A size that is not known is asked for.
    assert [each.method for each in server.requests][: 4 - len(ranges)] == (["GET"] if size else ["HEAD"])


def test_a_part_that_fails_is_the_last(perform: Perform, server: FaultServer, store: SegmentStore) -> None:
    perform("create", 25)
    store.fault = lambda request: Reply(503) if request.headers.get("range") == "bytes=10-19" else None
    found = perform("parts", 25)
    assert (found.cause, found.size) == ("HTTP 503", 0)
    assert server.requests[-1].headers["range"] == "bytes=10-19"
    store.fault = lambda request: Reply(404) if request.method == "HEAD" else None
    assert perform("parts").cause == "HTTP 404"


def test_reads_are_as_those_of_any_object(perform: Perform, server: FaultServer) -> None:
    perform("create", 25)
    assert [perform(name, 25).cause for name in ("read", "head", "range")] == [None, None, None]


@BOTH
def test_a_sequence_on_an_object_of_its_own_leaves_no_segment(
    perform: Perform, store: SegmentStore, dynamic: bool
) -> None:
    steps = OperationSettings("sequence", values={"steps": ["create", "update", "parts"]})
    found = perform("sequence", 25, dynamic=dynamic, settings=(steps,))
    assert (found.cause, store.sizes, left_by(found)) == (None, {}, 0)
