"""Operations of several requests, and listings: what answers say decides, whatever their status is."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import md5
from typing import Any, cast

import pytest
from fault_server import FaultServer, Reply, Request
from hypothesis import given
from hypothesis import strategies as st
from sent_scenarios import make_sent

from ssbench.fleet import wire
from ssbench.fleet.wire import RunParameters, Spent
from ssbench.scenario.operations import OPERATIONS, OperationSettings
from ssbench.store.contract import RareFields, RequestOutcome
from ssbench.store.request_options import RequestOptions
from ssbench.worker.operation_requests import JobTarget
from ssbench.worker.request_sequences import RequestSequence
from ssbench.worker.worker_run import WorkerRun, make_job_result

Rule = Callable[[Request], Reply]
Perform = Callable[..., RequestOutcome]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def asked(server: FaultServer) -> list[Request]:
    """What the server was asked so far."""
    return server.requests


@pytest.fixture
def perform(server: FaultServer) -> Perform:
    """Carry out an operation at a server that answers by a rule."""

    def carry_out(
        name: str, rule: Rule, spent: Spent | None = None, retries: int = 0, **values: Any
    ) -> RequestOutcome:
        server.rule = rule
        run = WorkerRun(
            RunParameters(
                1,
                storage_urls=[server.url],
                token="t",
                size_classes=["tiny"],
                size_ranges=[(10, 20)],
                requests=RequestOptions(retries=retries),
                scenario=make_sent(operations=(OperationSettings(name, values=values),)),
            ),
            4,
        )
        with closing(run):
            return run.perform((1, OPERATIONS.named(name).code, 0, 2, 7, 0), spent)[0]

    return carry_out


def get_rare(outcome: RequestOutcome) -> RareFields:
    return outcome.rare or RareFields()


def page(*names: str) -> Reply:
    return Reply(200, body=json.dumps([{"name": name} for name in names]).encode())


def test_pages_are_listed_until_one_is_not_full(perform: Perform, asked: list[Request]) -> None:
    pages = iter([page("ä ba", "ä bb"), page("ä bc", "ä bé"), page("ä bñ")])
    found = perform("list", lambda _: next(pages), limit=2, pages=9, prefix="ä b")
    assert (found.cause, get_rare(found).entries) == (None, 5)
    assert [each.target.partition("?")[2] for each in asked] == [
        "prefix=%C3%A4+b&format=json&limit=2",
        "prefix=%C3%A4+b&marker=%C3%A4+bb&format=json&limit=2",
        "prefix=%C3%A4+b&marker=%C3%A4+b%C3%A9&format=json&limit=2",
    ]
    assert found.last_byte is not None
    assert found.first_byte is not None
    assert found.last_byte > found.first_byte


@pytest.mark.parametrize(
    "reply",
    [
        page("b", "a"),
        page("a", "b", "c"),
        Reply(200, body=b"a\nb\n"),
        Reply(200, body=b'{"name": "a"}'),
        Reply(200, body=b'[{"bytes": 3}]'),
        Reply(200, body=b'[{"name": "\xff"}]'),
        Reply(204),
    ],
)
def test_what_is_no_listing_in_order_is_a_failure(perform: Perform, reply: Reply) -> None:
    found = perform("list", lambda _: reply, limit=2)
    assert (found.cause, found.size, found.last_byte) == ("wrong listing", 0, None)


@pytest.mark.parametrize(
    ("names", "asked_for", "cause"),
    [
        (["a", "b"], {"pages": 2}, "wrong listing"),  # the second page is the first one again
        (["a", "b"], {"marker": "a"}, "wrong listing"),
        (["b", "c"], {"marker": "a"}, None),
        (["a", "pb"], {"prefix": "p"}, "wrong listing"),
        (["pa", "q"], {"prefix": "p"}, "wrong listing"),
        (["pa", "pb"], {"prefix": "p"}, None),
        (["a/", "b"], {"marker": "a/c", "delimiter": "/"}, None),
        (["a/", "b"], {"marker": "b/c", "delimiter": "/"}, "wrong listing"),
        (["a", "b"], {"marker": "a/c", "delimiter": "/"}, "wrong listing"),  # it is not rolled up
        (["a", "b/"], {"pages": 2, "delimiter": "/"}, "wrong listing"),
        (["a/", "b/"], {"pages": 2, "marker": "a/c", "delimiter": "/"}, "wrong listing"),
    ],
)
def test_a_store_that_lists_what_was_not_asked_for_fails(
    perform: Perform, names: list[str], asked_for: dict[str, str], cause: str | None
) -> None:
    assert perform("list", lambda _: page(*names), limit=2, **asked_for).cause == cause


@pytest.mark.parametrize("more", [("b0", "c/"), ("c",)])
def test_what_a_page_rolled_up_is_in_no_later_one(perform: Perform, more: tuple[str, ...]) -> None:
    pages = iter([page("a/", "b/"), page(*more)])
    found = perform("list", lambda _: next(pages), limit=2, pages=2, marker="a/c", delimiter="/")
    assert (found.cause, get_rare(found).entries) == (None, 2 + len(more))
    pages = iter([page("a/", "b/"), page("b/", "c")])
    found = perform("list", lambda _: next(pages), limit=2, pages=2, marker="a/c", delimiter="/")
    assert found.cause == "wrong listing"


def test_a_page_that_fails_is_how_the_operation_ended(perform: Perform) -> None:
    pages = iter([page("a", "b"), Reply(500)])
    found = perform("list", lambda _: next(pages), limit=2, pages=5)
    assert (found.cause, found.status, found.first_byte, found.last_byte) == ("HTTP 500", 500, None, None)
    assert found.spent is not None


def of_large_objects(asked: list[Request], verdict: dict[str, object], etag: str = "") -> Rule:
    """A store of large objects: the last answer has this verdict."""

    def etag_of_whole() -> str:
        segments = sorted((each for each in asked if each.method == "PUT"), key=lambda each: each.target)
        etags = [md5(each.body).hexdigest() for each in segments if "?" not in each.target]
        return md5("".join(etags).encode()).hexdigest()

    def rule(request: Request) -> Reply:
        if "multipart-manifest=delete" in request.target:
            return Reply(200, body=json.dumps(verdict).encode())
        if "multipart-manifest=put" in request.target:
            return Reply(201, headers=(("ETag", f'"{etag or etag_of_whole()}"'),))
        if request.method == "PUT":
            return Reply(201, etag=lambda digest: digest)
        return Reply(200, body=b"x" * 20) if request.method == "GET" else Reply(204)

    return rule


ALL_GONE = {"Response Status": "200 OK", "Number Deleted": 3, "Number Not Found": 0, "Errors": []}


def test_a_large_object_is_written_read_and_deleted(perform: Perform, asked: list[Request]) -> None:
    found = perform("slo", of_large_objects(asked, ALL_GONE), segments=2, segment_size=[10, 10])
    assert (found.cause, found.detail) == (None, "")
    assert [each.method for each in asked] == ["PUT", "PUT", "PUT", "GET", "DELETE"]
    manifest = json.loads(asked[2].body)
    assert [(row["path"].rpartition("/")[2], row["size_bytes"]) for row in manifest] == [
        ("000000", 10),
        ("000001", 10),
    ]


@pytest.mark.parametrize(
    ("verdict", "cause"),
    [
        ({"Response Status": "400 Bad Request", "Errors": [["/a", "404 Not Found"]]}, "HTTP 400"),
        (ALL_GONE | {"Number Deleted": 2}, "wrong verdict"),
        (ALL_GONE | {"Errors": [["/a", "500"]]}, "wrong verdict"),
        (ALL_GONE | {"Response Status": "201 Created", "Errors": [["/a", "500"]]}, "wrong verdict"),
        ({}, "wrong verdict"),
    ],
)
def test_a_body_that_says_otherwise_under_a_200_is_a_failure(
    perform: Perform, asked: list[Request], verdict: dict[str, object], cause: str
) -> None:
    found = perform("slo", of_large_objects(asked, verdict), segments=2, segment_size=[10, 10])
    assert (found.cause, found.last_byte) == (cause, None)
    # What it made is deleted one by one.
    assert [each.method for each in asked[5:]] == ["DELETE"] * 3


def test_what_was_spent_before_counts_once_for_requests_that_are_made_at_once(
    perform: Perform, asked: list[Request]
) -> None:
    """An operation whose token was refused is made again: its retries are not those of each segment."""
    ended = time.monotonic()
    spent = (1, ended - 5.0, ended - 3.0, False)
    found = perform("slo", of_large_objects(asked, ALL_GONE), spent, segments=2, segment_size=[10, 10])
    assert (found.cause, found.retries) == (None, 1)
    assert found.last_byte is not None
    assert 5.0 < found.last_byte < 8.0
    assert 3.0 < get_rare(found).pausing < 4.0


def test_requests_at_once_spend_no_more_time_than_there_was() -> None:
    """The master takes a result for impossible that says so, and the operation would be a failure."""
    whole = RequestSequence(cast(JobTarget, None))
    for ended in (10.0, 10.1, 10.2):
        whole.add(RequestOutcome(0, 1.0, 4.0, ended, 1, 2, rare=RareFields(2.5, 1.2)))
    found = whole.outcome()
    assert found.last_byte == pytest.approx(4.2)
    assert get_rare(found).connecting + get_rare(found).pausing <= found.last_byte


def test_what_sums_of_bodies_took_after_the_first_request_is_a_pause() -> None:
    whole = RequestSequence(cast(JobTarget, None))
    # The second one began first: its sums were before the operation.
    for ended, took, summing in ((9.0, 1.0, 0.25), (8.5, 4.0, 2.0), (10.0, 3.0, 0.5)):
        whole.add(RequestOutcome(0, None, took, ended, summing=summing))
    found = whole.outcome()
    assert (found.last_byte, found.summing) == (5.5, 2.0)
    assert found.rare is not None
    assert found.rare.pausing == 0.75


def test_a_request_that_failed_before_the_others_began_is_not_before_their_beginning() -> None:
    """Where users have all connections, requests at once follow each other. A negative time is no message."""
    whole = RequestSequence(cast(JobTarget, None))
    whole.add(RequestOutcome(0, 0.5, 1.0, 12.0, 1, 0, None))
    whole.add(RequestOutcome(0, None, None, 10.5, 0, 0, None, "HTTP 503", spent=0.5))
    whole.step()
    found = whole.outcome()
    assert (found.cause, found.spent, found.completed) == ("HTTP 503", 2.0, 12.0)


@given(
    st.lists(
        st.tuples(*[st.floats(0, 1e5) | st.just(0.001)] * 2, st.sampled_from([None, "HTTP 503"])),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_requests_of_any_times_make_a_possible_operation(
    requests: list[tuple[float, float, str | None]], at_once: bool
) -> None:
    whole, now = RequestSequence(cast(JobTarget, None)), 123_456.789
    for wait, took, cause in requests:
        ended = (123_456.789 if at_once else now) + wait + took
        now = max(now, ended)
        timed = (None, None) if cause else (took, took)
        whole.add(RequestOutcome(0, *timed, ended, 1, 0, None, cause, spent=took if cause else None))
    whole.step()
    found = whole.outcome()
    result = make_job_result(1, found, 0)
    message = wire.pack_message(wire.JobResults(1, 1, 1, now, 0, [result]))
    wire.unpack_from_worker(message)
    assert found.last_byte is None or (found.first_byte or 0.0) <= found.last_byte


def test_the_etag_of_a_large_object_is_that_of_its_segments(perform: Perform, asked: list[Request]) -> None:
    found = perform("slo", of_large_objects(asked, ALL_GONE, "0" * 32), segments=2, segment_size=[10, 10])
    assert found.cause == "wrong ETag"
    assert "GET" not in {each.method for each in asked}


@pytest.mark.parametrize(("length", "cause"), [(20, None), (10, "wrong size")])
def test_a_whole_of_which_the_listing_lacks_a_segment_is_a_failure(
    perform: Perform, asked: list[Request], length: int, cause: str | None
) -> None:
    def rule(request: Request) -> Reply:
        if request.method == "PUT":
            return Reply(201, etag=lambda digest: digest)
        return Reply(200, body=b"x" * length) if request.method == "GET" else Reply(204)

    found = perform("dlo", rule, segments=2, segment_size=[10, 10])
    assert (found.cause, found.size) == (cause, 0 if cause else 40)
    row = OPERATIONS.named("dlo")
    assert len(get_rare(found).steps) == (0 if cause else len(row.steps_of(OperationSettings("dlo"))))
    assert cause or sum(get_rare(found).steps) == pytest.approx(found.last_byte)
    manifest = asked[2]
    prefix = manifest.headers["x-object-manifest"]
    assert all(each.target.endswith(f"{prefix}{n:06d}") for n, each in enumerate(sorted(asked[:2])))
    # Whether it succeeds or not, all that was put is deleted.
    assert {each.target for each in asked if each.method == "DELETE"} == {
        each.target for each in asked if each.method == "PUT"
    }


class Versioned:
    """A store that keeps versions; ``hides`` lets listings say that there are others."""

    def __init__(self, *, keeps: bool = True, hides: bool = False) -> None:
        self.keeps, self.hides = keeps, hides
        self.there: list[str] = []

    def __call__(self, request: Request) -> Reply:
        wanted = request.target.partition("version-id=")[2]
        if wanted and request.method == "DELETE":
            if wanted not in self.there:
                return Reply(404)
            self.there.remove(wanted)
        elif request.method in {"PUT", "DELETE"}:
            if not self.keeps:
                return Reply(201)
            self.there.append(f"{len(self.there) + 1}.5")
            return Reply(201, headers=(("X-Object-Version-Id", self.there[-1]),))
        elif "versions=" in request.target:
            ids = ["9.9"] if self.hides else self.there
            rows = [{"name": "n", "version_id": each} for each in ids]
            return Reply(200, body=json.dumps(rows).encode())
        return Reply(200, body=b"x" * 7)


@pytest.mark.parametrize(
    ("store", "cause"),
    [
        (Versioned(), None),
        (Versioned(keeps=False), "not versioned"),
        (Versioned(hides=True), "wrong listing"),
    ],
)
def test_versions_are_made_read_listed_and_deleted(
    perform: Perform, asked: list[Request], store: Versioned, cause: str | None
) -> None:
    found = perform("versions", store, versions=2, size=[7, 7])
    assert (found.cause, get_rare(found).entries) == (cause, 0 if cause else 2)
    assert all("_000002_versions" in each.target for each in asked)
    assert not store.there
    if cause is None:
        assert [each.method for each in asked] == ["PUT", "PUT", "GET", "GET", *["DELETE"] * 4]
    if cause == "not versioned":  # it may be there nevertheless
        assert asked[-1].method == "DELETE"


@pytest.mark.parametrize(
    ("status", "created", "deleted", "cause"),
    [
        ("201 Created", 2, 2, None),
        ("201 Created", 1, 2, "wrong verdict"),
        ("201 Created", 2, 1, "wrong verdict"),
        ("200 OK", 2, 2, None),
        ("200 OK", 1, 2, "wrong verdict"),
        ("502 Bad Gateway", 1, 2, "HTTP 502"),
    ],
)
def test_archives_are_judged_by_what_the_bodies_say(
    perform: Perform, status: str, created: int, deleted: int, cause: str | None
) -> None:
    def rule(request: Request) -> Reply:
        said: dict[str, object] = {
            "Response Status": status,
            "Number Files Created": created,
            "Errors": [],
        }
        if request.method == "POST":
            said = ALL_GONE | {"Number Deleted": deleted}
        return Reply(204) if request.method == "DELETE" else Reply(200, body=json.dumps(said).encode())

    assert perform("bulk", rule, objects=2, size=[5, 5]).cause == cause


@pytest.mark.parametrize("name", ["bulk", "slo"])
@pytest.mark.parametrize(
    ("deleted", "missing", "errors", "cause"),
    [
        (3, 0, [], None),
        (1, 2, [], None),
        (0, 3, [], None),
        (0, 1, [], "wrong verdict"),  # of a manifest: with it all is gone
        (1, 1, [], "wrong verdict"),
        (1, 2, [["/b", "409 Conflict"]], "wrong verdict"),
    ],
)
@pytest.mark.parametrize("lost", [1, 0])
def test_what_an_attempt_without_an_answer_has_deleted_is_not_there_for_the_next(
    perform: Perform,
    asked: list[Request],
    lost: int,
    deleted: int,
    missing: int,
    errors: list[list[str]],
    cause: str | None,
    name: str,
) -> None:
    verdict = ALL_GONE | {"Number Deleted": deleted, "Number Not Found": missing, "Errors": errors}
    usual, attempts = of_large_objects(asked, verdict), itertools.count()
    archive = {"Response Status": "201 Created", "Number Files Created": 3, "Errors": []}

    def rule(request: Request) -> Reply:
        if "bulk-delete" in request.target or "multipart-manifest=delete" in request.target:
            return Reply(cut=0) if next(attempts) < lost else Reply(200, body=json.dumps(verdict).encode())
        if "extract-archive" in request.target:
            return Reply(200, body=json.dumps(archive).encode())
        return usual(request)

    values = {"segments": 2, "segment_size": [7, 7], "reads": []} if name == "slo" else {"objects": 3}
    found = perform(name, rule, retries=1, **values)
    if not lost:
        cause = None if deleted == 3 else "wrong verdict"
    elif name == "slo" and (deleted, missing) == (0, 1):
        cause = None
    assert (found.cause, found.retries + found.resent) == (cause, lost)


def test_a_large_object_that_an_attempt_without_an_answer_deleted_may_be_missing(
    perform: Perform, asked: list[Request]
) -> None:
    usual, attempts = of_large_objects(asked, ALL_GONE), itertools.count()

    def rule(request: Request) -> Reply:
        if "multipart-manifest=delete" in request.target:
            return Reply(404) if next(attempts) else Reply(cut=0)
        return usual(request)

    found = perform("slo", rule, retries=1, segments=2, segment_size=[7, 7], reads=[])
    assert (found.cause, get_rare(found).left) == (None, 0)


@pytest.mark.parametrize(("said", "cause"), [("bytes 3-9/10", None), ("bytes 2-8/10", "wrong content")])
def test_a_part_is_the_one_that_was_asked_for(perform: Perform, said: str, cause: str | None) -> None:
    reply = Reply(206, body=b"x" * 7, headers=(("Content-Range", said),))
    assert perform("range", lambda _: reply, offset=[3, 3], length=[7, 7]).cause == cause


def test_a_sequence_is_on_one_object_that_goes(perform: Perform, asked: list[Request]) -> None:
    def rule(request: Request) -> Reply:
        if request.method == "PUT":
            return Reply(201, etag=lambda digest: digest)
        return Reply(200, body=b"x" * 7) if request.method == "GET" else Reply(204)

    found = perform("sequence", rule, steps=["create", "post", "read"])
    assert found.cause is None
    assert [each.method for each in asked] == ["PUT", "POST", "GET", "DELETE"]
    assert len({each.target for each in asked}) == 1
    assert found.last_byte is not None
    assert len(get_rare(found).steps) == 3
    assert sum(get_rare(found).steps) == pytest.approx(found.last_byte)
    *before, _ = get_rare(found).steps  # until then there was something to send
    assert sum(before) <= get_rare(found).sending <= (found.last_byte or 0)
    asked.clear()
    assert get_rare(perform("sequence", rule, steps=["create", "delete"])).left == 0
    assert [each.method for each in asked] == ["PUT", "DELETE"]


def test_a_step_that_fails_ends_the_sequence(perform: Perform, asked: list[Request]) -> None:
    answers = {"PUT": Reply(201), "POST": Reply(404), "DELETE": Reply(500)}
    found = perform("sequence", lambda request: answers[request.method], steps=["create", "post", "read"])
    assert (found.cause, get_rare(found).steps, get_rare(found).left) == ("HTTP 404", [], 1)
    assert [each.method for each in asked] == ["PUT", "POST", "DELETE"]


@pytest.mark.parametrize(
    ("reads", "names"),
    [
        (None, ("segments", "manifest", "whole", "delete")),
        (["range", "part"], ("segments", "manifest", "range", "part", "delete")),
    ],
)
def test_steps_have_the_names_of_what_is_done(reads: list[str] | None, names: tuple[str, ...]) -> None:
    values = {} if reads is None else {"reads": reads}
    assert OPERATIONS.named("slo").steps_of(OperationSettings("slo", values=values)) == names
    twice = OperationSettings("sequence", values={"steps": ["create", "read", "read"]})
    assert OPERATIONS.named("sequence").steps_of(twice) == ("create", "read 1", "read 2")


def test_large_objects_are_read_by_range_and_by_part(perform: Perform, asked: list[Request]) -> None:
    def read(request: Request) -> Reply:
        if request.method != "GET":
            return of_large_objects(asked, ALL_GONE)(request)
        if "part-number" in request.target:
            return Reply(206, body=b"x" * 10)
        first, last = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
        said = (("Content-Range", f"bytes {first}-{last}/20"),)
        return Reply(206, body=b"x" * (last - first + 1), headers=said)

    found = perform("slo", read, segments=2, segment_size=[10, 10], reads=["part", "range"])
    assert (found.cause, found.detail, len(get_rare(found).steps)) == (None, "", 5)
    assert [each.method for each in asked] == ["PUT", "PUT", "PUT", "GET", "GET", "DELETE"]


@pytest.mark.parametrize("size", [1, 4096, 4097, 3_000_000])
@pytest.mark.parametrize("seed", [None, 5])
def test_a_body_is_announced_with_its_md5(server: FaultServer, size: int, seed: int | None) -> None:
    server.keep_bodies = True
    run = WorkerRun(
        RunParameters(
            1,
            storage_urls=[server.url],
            size_classes=["tiny"],
            verify_seed=seed,
            scenario=make_sent(operations=(OperationSettings("create", values={"etag": True}),)),
        ),
        4,
    )
    try:
        # The second time on the kept connection, the third without, and not the first of a sample.
        for code in ("create", "create", "update"):
            outcome = run.perform((1, OPERATIONS.named(code).code, 0, 2, 7, size), None)[0]
            assert (outcome.cause, outcome.size) == (None, size)
    finally:
        run.close()
    *first, last = [each for each in server.requests if each.method == "PUT"]
    assert [each.headers["etag"] for each in first] == [md5(each.body).hexdigest() for each in first]
    assert "etag" not in last.headers
    assert [len(each.body) for each in (*first, last)] == [size] * 3
