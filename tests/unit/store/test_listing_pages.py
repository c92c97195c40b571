"""Listings of a store that ignores what it was asked for: what is read is in order, ours, and ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

import pytest
from fault_server import FaultServer, Reply, Request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ssbench.base.errors import ClusterError
from ssbench.run.run_marks import RunMarks
from ssbench.store import listing_pages
from ssbench.store.contract import AttemptError, Listing, StoreAccess
from ssbench.store.credentials import Session
from ssbench.store.listing_pages import PageOrder, WrongPageError, check_prefix
from ssbench.store.s3.signing import AccessKey
from ssbench.store.s3.store import S3Store
from ssbench.store.swift import containers
from ssbench.store.swift.containers import ContainerListing, find_containers

TIMEOUTS = (5.0, 5.0)

#: Names of all kinds: of marks, of containers, of others, more than one of some.
NAMES = st.one_of(
    st.sampled_from([".ssbench-run-1a", ".ssbench-run-notes", ".ssbench-run-", "ssbench_000000", "other"]),
    st.integers(0, 99).map("ssbench_{:06}".format),
    st.text("ab/é\U0001f600", min_size=1, max_size=3),
)
PAGES = st.lists(st.lists(NAMES, max_size=5), max_size=6)


class WrongStore:
    """Answers listings with these pages in turn, again and again, whatever is asked; objects are missing."""

    def __init__(self) -> None:
        self.pages: list[list[str]] = []
        self.asked = 0

    def __call__(self, request: Request) -> Reply:
        path = urlsplit(request.target).path.strip("/")
        if request.method == "HEAD":
            return Reply(204)
        if request.method != "GET" or path.count("/") > (2 if path.startswith("v1/") else 0):
            return Reply(404)
        page = self.pages[self.asked % len(self.pages)] if self.pages else []
        self.asked += 1
        if "format=json" in request.target:
            return Reply(200, json.dumps([{"name": name, "bytes": 1, "count": 1} for name in page]).encode())
        rows = "".join(f"<Contents><Key>{escape(name)}</Key><Size>1</Size></Contents>" for name in page)
        more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{self.asked}</NextContinuationToken>"
        return Reply(200, f"<ListBucketResult>{rows}{more}</ListBucketResult>".encode())


@pytest.fixture(scope="module")
def wrong() -> WrongStore:
    return WrongStore()


@pytest.fixture(scope="module")
def server(wrong: WrongStore) -> Iterator[FaultServer]:
    with FaultServer(rule=wrong) as running:
        yield running


def session(server: FaultServer) -> Session:
    return Session((server.url,), "t")


def read_swift(server: FaultServer) -> Iterator[tuple[str, int]]:
    return ContainerListing(StoreAccess(session(server), TIMEOUTS), "c").objects(lambda count: None)


def read_s3(server: FaultServer) -> Iterator[tuple[str, int]]:
    url = f"s3+{server.url.partition('/v1')[0]}"
    key = AccessKey(access="a", secret="s", region="r").pack()
    return S3Store().objects(StoreAccess(Session((url,), key), TIMEOUTS), "bucket", expect=lambda count: None)


def read_account(server: FaultServer) -> Iterator[tuple[str, int]]:
    return find_containers(StoreAccess(session(server), TIMEOUTS), "ssbench", None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(pages=PAGES)
@pytest.mark.parametrize("read", [read_swift, read_s3, read_account])
def test_what_is_read_of_any_pages_is_in_order_and_ends(
    server: FaultServer,
    wrong: WrongStore,
    read: Callable[[FaultServer], Iterator[tuple[str, int]]],
    pages: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A listing of 18,066 pages was not given up, and one of two pages in turn was read for ever."""
    monkeypatch.setattr(listing_pages, "_MOST_THIN_PAGES", 20)
    monkeypatch.setattr(containers, "_RETRY_PAUSES", ())
    wrong.pages, wrong.asked = pages, 0
    found = []
    with suppress(ClusterError):
        for name, _ in read(server):
            found.append(name)
    assert found == sorted(set(found), key=str.encode)
    assert wrong.asked <= 21
    if read is read_account:
        assert all(name.startswith("ssbench_") for name in found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(names=st.lists(NAMES, max_size=8))
def test_only_marks_are_looked_at_and_deleted_whatever_a_listing_has(
    server: FaultServer, wrong: WrongStore, names: list[str]
) -> None:
    """A store that ignores ``prefix`` lost each object that it could not read at the moment."""
    wrong.pages, wrong.asked = [names], 0
    server.requests.clear()
    wanted = all(name.startswith(".ssbench-run-") for name in names)
    refused = pytest.raises(AttemptError, match=r"prefix '\.ssbench-run-'")
    with nullcontext() if wanted else refused:
        RunMarks(StoreAccess(session(server), TIMEOUTS), "c").others()
    touched = {request.target.partition("?")[0].rpartition("/")[2] for request in server.requests}
    assert touched <= {"c", ".ssbench-run-1a"}
    assert wrong.asked == 1, "a store that ignores what it is asked does so again"


@given(names=st.lists(st.text(max_size=3), max_size=5), prefix=st.text(max_size=2))
def test_a_prefix_is_that_of_all_names(names: list[str], prefix: str) -> None:
    if all(name.startswith(prefix) for name in names):
        check_prefix(names, Listing(limit=9, prefix=prefix))
    else:
        with pytest.raises(WrongPageError, match="do not begin with the prefix"):
            check_prefix(names, Listing(limit=9, prefix=prefix))


@given(names=st.lists(st.text(min_size=1), unique=True), size=st.integers(1, 5))
def test_pages_in_order_are_taken(names: list[str], size: int) -> None:
    whole = sorted(names)
    order = PageOrder()
    for begin in range(0, len(whole), size):
        order.take(whole[begin : begin + size])
    if whole:
        with pytest.raises(WrongPageError, match="a page does not come after"):
            order.take(whole[-1:])


def test_a_listing_that_goes_on_for_ever_is_given_up() -> None:
    def take_pages(order: PageOrder, count: int, names: int) -> None:
        for number in range(count):
            order.take([f"{number:06}{row}" for row in range(names)])

    with pytest.raises(WrongPageError, match="it does not end after 1,000 pages with 1,000 names"):
        take_pages(PageOrder(), 100_000, names=1)
    with pytest.raises(WrongPageError, match="it does not end after 6 pages with 60 names"):
        take_pages(PageOrder(most_names=50), 100, names=10)
    take_pages(PageOrder(), 5_000, names=10)
