"""Deleting containers with all that is in them, against an account that is names only."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from fault_server import FaultServer, Reply, Request
from golden_words import GoldenWords
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from said import LISTED_ARE_GONE
from stand_in_account import StandInAccount

from ssbench.base.errors import AuthenticationError, ClusterError
from ssbench.run import account_cleaner
from ssbench.run.account_cleaner import AccountCleaner, CleanUpSettings, _ListingProgress
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Session
from ssbench.store.s3.signing import AccessKey
from ssbench.store.swift import containers
from ssbench.store.swift.containers import ContainerListing, find_containers, parse_listing

SETTINGS = CleanUpSettings(concurrency=2, connect_timeout=5.0, network_timeout=10.0)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_cleaner, "_DELETION_PAUSES", (0.01, 0.01))
    monkeypatch.setattr(account_cleaner, "_TICK_SECONDS", 0.01)
    monkeypatch.setattr(containers, "_RETRY_PAUSES", (0.01,))


@pytest.fixture
def account() -> StandInAccount:
    return StandInAccount(page=3)


@pytest.fixture
def server(account: StandInAccount) -> Iterator[FaultServer]:
    with FaultServer(rule=account) as running:
        yield running


def session(server: FaultServer, token: str = "t") -> Session:
    return Session((server.url,), token)


def test_only_containers_with_such_names_are_found_over_all_pages(
    server: FaultServer, account: StandInAccount
) -> None:
    ours = {f"x_{number:06}": ["o"] * number for number in range(8)}
    account.hold({**ours, "x_000001_gold": [], "x_other": [], "y_000000": [], "x_00001": []})
    found = dict(find_containers(StoreAccess(session(server), SETTINGS.timeouts), "x", None))
    assert {name: found[name] for name in ours} == {name: len(objects) for name, objects in ours.items()}
    assert set(found) <= {*ours, "x_000001_gold"}
    assert [*find_containers(StoreAccess(session(server), SETTINGS.timeouts), "x", "gold")] == [
        ("x_000001_gold", 0)
    ]


@pytest.mark.parametrize(
    "listing",
    [
        *(b"[]]", b'{"a": 1}', b"[1]", b'[{"name": "x_000000"}]', b"null", b'[{"name": 5}]', b"[{}]"),
        *(b'[{"name": null, "count": 1}]', b'[{"name": "x_000000", "count": 1e999}]'),
    ],
)
def test_a_listing_that_makes_no_sense_or_no_progress_is_refused(
    server: FaultServer, listing: bytes, golden_words: GoldenWords
) -> None:
    server.rule = lambda _request: Reply(200, listing, (("Content-Type", "application/json"),))
    with golden_words.raises(ClusterError):
        [*find_containers(StoreAccess(session(server), SETTINGS.timeouts), "x", None)]


def test_everything_in_them_is_deleted_and_counted(server: FaultServer, account: StandInAccount) -> None:
    account.hold({"a": [f"o{number}" for number in range(7)], "b": [], "c": ["ü/x y"], "d": ["stays"]})
    advanced: list[None] = []
    expected: list[int] = []
    cleaner = AccountCleaner(
        session(server), SETTINGS, advance=lambda: advanced.append(None), expect=expected.append
    )
    result = cleaner.run(["a", "b", "c", "gone"])
    assert account.containers == {"d": ["stays"]}
    assert (result.containers, result.objects, result.failed, result.failures) == (3, 8, 0, [])
    assert result.seconds > 0
    assert len(advanced) == 11
    assert max(expected) == 8
    assert (cleaner.gave_up, cleaner.stood_still, cleaner.stopped) == (False, False, False)


def test_what_may_not_be_deleted_is_named_and_the_rest_is_deleted(
    server: FaultServer, account: StandInAccount
) -> None:
    account.hold({"a": ["kept", "o"], "b": ["o"], "locked": []})

    def rule(request: Request) -> Reply:
        if request.method == "DELETE" and request.target.endswith(("/kept", "/locked")):
            return Reply(403)
        return account(request)

    server.rule = rule
    result = AccountCleaner(session(server), SETTINGS).run(["a", "b", "locked"])
    assert account.containers == {"a": ["kept"], "locked": []}
    assert (result.containers, result.objects, result.failed) == (1, 2, 3)
    assert {failure.partition(":")[0] for failure in result.failures} == {"a", "a/kept", "locked"}
    assert any("1 of its objects could not be deleted" in failure for failure in result.failures)


def test_a_container_that_is_not_empty_and_lists_nothing_is_tried_for_some_time(
    server: FaultServer, account: StandInAccount, golden_words: GoldenWords
) -> None:
    account.hold({"a": []})
    conflicts = 2

    def rule(request: Request) -> Reply:
        nonlocal conflicts
        if request.method == "DELETE" and conflicts:
            conflicts -= 1
            return Reply(409)
        return account(request)

    server.rule = rule
    assert AccountCleaner(session(server), SETTINGS).run(["a"]).containers == 1
    account.hold({"a": []})
    conflicts = 100
    result = AccountCleaner(session(server), SETTINGS).run(["a"])
    golden_words(result.failures)


def test_pages_that_come_back_in_turn_are_given_up(server: FaultServer, golden_words: GoldenWords) -> None:
    """They differed from the page before, and so were deleted for ever."""
    pages = [["a", "b"], ["c", "d"]]
    listed = 0

    def rule(request: Request) -> Reply:
        nonlocal listed
        if request.method == "DELETE":
            return Reply(204 if "/x/" in request.target else 409)
        listed += 1
        return Reply(200, json.dumps([{"name": name, "bytes": 1} for name in pages[listed % 2]]).encode())

    server.rule = rule
    result = AccountCleaner(session(server), SETTINGS).run(["x"])
    golden_words(result.failures)
    assert listed < 10


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(pages=st.lists(st.sets(st.tuples(st.sampled_from("abcd"), st.sampled_from("12")), min_size=1)))
def test_no_pages_make_progress_for_ever(pages: list[set[tuple[str, str]]]) -> None:
    progress = _ListingProgress()
    made = sum(progress.is_made_by(sorted(page)) for page in pages * 3)
    assert made <= 16, "each step is a name further, at one end, or a version more of the last"
    whole = sorted(set().union(*pages))
    assert all(_progress_of(whole, size) for size in (1, 3))


def _progress_of(whole: list[tuple[str, str]], size: int) -> bool:
    """Whether each page of a container that is emptied from its beginning is progress."""
    progress = _ListingProgress()
    return all(progress.is_made_by(whole[begin : begin + size]) for begin in range(0, len(whole), size))


@pytest.mark.parametrize("status", [400, 403, 405, 501])
def test_a_store_that_lists_no_versions_is_asked_for_objects(server: FaultServer, status: int) -> None:
    """Over the S3 API; that they were refused is said where something stays."""
    keys = ["a", "b"]
    stays = False

    def rule(request: Request) -> Reply:
        if request.method == "DELETE":
            return Reply(409 if stays else 204)
        if request.method == "POST":
            keys.clear()
            return Reply(200, b"<DeleteResult/>")
        if "versions" in request.target:
            return Reply(status, b"<Error><Code>Refused</Code></Error>")
        if "uploads" in request.target:
            return Reply(200, b"<ListMultipartUploadsResult/>")
        listed = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
        return Reply(200, f"<ListBucketResult>{listed}</ListBucketResult>".encode())

    server.rule = rule
    key = AccessKey(access="a", secret="s", region="us-east-1").pack()
    of_s3 = Session((f"s3+{server.url.partition('/v1')[0]}",), key)
    result = AccountCleaner(of_s3, SETTINGS).run(["b-0"])
    assert (result.containers, result.objects, result.failures) == (1, 2, [])
    stays = True
    (failure,) = AccountCleaner(of_s3, SETTINGS).run(["b-0"]).failures
    reason = f"{LISTED_ARE_GONE}; its versions cannot be listed: HTTP {status}"
    assert reason in failure


def test_no_more_is_tried_after_many_failures_in_a_row(server: FaultServer, account: StandInAccount) -> None:
    names = [f"o{number:02}" for number in range(60)]
    account.page = 100
    account.hold({"a": names})

    def rule(request: Request) -> Reply:
        broken = request.method == "DELETE" and "/a/" in request.target
        return Reply(507) if broken else account(request)

    server.rule = rule
    cleaner = AccountCleaner(session(server), SETTINGS)
    result = cleaner.run(["a"])
    assert cleaner.gave_up
    assert 20 <= result.failed < 40
    assert len(result.failures) == 20
    assert account.containers == {"a": names}


def test_a_new_token_is_fetched_where_one_is_refused(server: FaultServer, account: StandInAccount) -> None:
    account.hold({"a": ["o"], "b": []})
    server.rule = lambda request: account(request) if request.headers["x-auth-token"] == "new" else Reply(401)
    renewed: list[None] = []

    def renew() -> Session:
        renewed.append(None)
        return session(server, "new")

    result = AccountCleaner(session(server), SETTINGS, renew).run(["a", "b"])
    assert (result.containers, result.objects, len(renewed)) == (2, 1, 1)


@pytest.mark.parametrize("renews", [True, False])
def test_a_token_that_cannot_be_renewed_is_a_failure(
    server: FaultServer, account: StandInAccount, renews: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def renew() -> Session:
        raise AuthenticationError("no more")

    server.rule = lambda _request: Reply(401)
    with caplog.at_level(logging.WARNING):
        result = AccountCleaner(session(server), SETTINGS, renew if renews else None).run(["a"])
    assert (result.failed, result.failures[0].startswith("a: HTTP 401")) == (1, True)
    assert caplog.messages == (["no more"] if renews else [])


def test_one_that_is_stopped_starts_nothing_more(server: FaultServer, account: StandInAccount) -> None:
    account.hold({"a": ["o"], "b": ["o"]})
    cleaner = AccountCleaner(session(server), SETTINGS)
    cleaner.stop()
    result = cleaner.run(["a", "b"])
    assert (result.containers, result.failed, len(server.requests)) == (0, 0, 0)


def test_where_nothing_succeeds_for_long_enough_no_more_is_tried(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_cleaner, "_STOP_SECONDS", 0.05)
    server.rule = lambda _request: Reply(stall=True)
    settings = CleanUpSettings(concurrency=1, connect_timeout=5.0, network_timeout=10.0, give_up_after=0.1)
    cleaner = AccountCleaner(session(server), settings)
    result = cleaner.run(["a"])
    assert cleaner.stood_still
    assert (result.containers, result.failed) == (0, 0)


def test_with_several_storage_urls_a_failure_says_where() -> None:
    with FaultServer(default=Reply(403)) as one, FaultServer(default=Reply(403)) as other:
        both = Session((one.url, other.url), "t")
        result = AccountCleaner(both, SETTINGS).run(["a", "b"])
    assert {failure.rpartition("/")[0] for failure in result.failures} == {one.url, other.url}


@pytest.mark.parametrize(
    "listing",
    [
        *(b"null", b'{"a": 1}', b'[{"name": 5, "bytes": 1}]', b'[{"name": "a", "bytes": 1e999}]'),
        *(b'[{"name": "a", "bytes": -1}]', b'[{"name": "a"}]', b'[{"name": "a", "bytes": "1"}]'),
        *(b'[{"name": "\\ud800", "bytes": 1}]', b'[{"name": "a", "bytes": 9999999999999999999999}]'),
    ],
)
def test_what_is_no_listing_of_objects_is_refused(
    server: FaultServer, listing: bytes, golden_words: GoldenWords
) -> None:
    """One of null was the end of the listing, and infinity a traceback."""
    server.rule = lambda _request: Reply(200, listing, (("Content-Type", "application/json"),))
    found = ContainerListing(StoreAccess(session(server), SETTINGS.timeouts), "c")
    with golden_words.raises(ClusterError):
        next(iter(found.objects(lambda _count: None)), None)


def test_rows_of_listings() -> None:
    rows = json.loads('[{"name": "a", "count": 3}, {"name": "b"}]')
    assert parse_listing(rows) == {"a": 3, "b": 0}
