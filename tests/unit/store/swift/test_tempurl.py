"""The key of temporary URLs: which room of the account it takes, what it signs, and how it goes again."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
import swiftclient.utils
from fault_server import FaultServer, Reply, Request
from golden_words import GoldenWords

from ssbench.base.errors import ClusterError, UsageError
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Session
from ssbench.store.swift import tempurl
from ssbench.store.swift.tempurl import TemporaryKey

UNTIL = int(time.time()) + 100_000
FIRST, SECOND = "x-account-meta-temp-url-key", "x-account-meta-temp-url-key-2"


class Account:
    """An account with keys, which takes signatures after it refused some."""

    def __init__(self, server: FaultServer) -> None:
        self.keys: dict[str, str] = {}
        self.refusals = 0
        self.refused_status = 401
        self.signer: Callable[[str], str] | None = None
        self.session = Session((server.url,), "t")
        server.rule = self.answer

    def answer(self, request: Request) -> Reply:
        if request.method == "POST":
            fields = {name.lower(): value for name, value in request.headers.items()}
            self.keys |= {name: fields[name] for name in (FIRST, SECOND) if name in fields}
            return Reply(204)
        if request.method == "HEAD":
            return Reply(204, headers=tuple(self.keys.items()))
        self.refusals -= 1
        wrong = self.signer is not None and self.signer(self.keys[FIRST]) not in request.target
        return Reply(self.refused_status if self.refusals >= 0 or wrong else 404)

    def key(self) -> TemporaryKey:
        return TemporaryKey(StoreAccess(self.session, (5.0, 5.0)), UNTIL)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    monkeypatch.setattr(tempurl, "_PAUSE_SECONDS", 0.0)
    with FaultServer() as server:
        yield Account(server)


@pytest.mark.parametrize(
    ("there", "free"),
    [
        ({}, FIRST),
        ({FIRST: "the user's"}, SECOND),
        ({SECOND: "the user's"}, FIRST),
        ({FIRST: f"ssbench-{UNTIL}-of-another-run"}, SECOND),
        ({FIRST: "the user's", SECOND: "ssbench-1000-of-a-run-that-was-killed"}, SECOND),
    ],
)
def test_a_key_takes_what_is_free_and_leaves_it_free(
    account: Account, there: dict[str, str], free: str
) -> None:
    account.keys = dict(there)
    key = account.key()
    assert account.keys[free].startswith(f"ssbench-{UNTIL}-")
    assert {name: value for name, value in account.keys.items() if name != free} == {
        name: value for name, value in there.items() if name != free
    }
    key.end()
    assert account.keys[free] == ""


def test_an_account_without_room_is_refused(account: Account, golden_words: GoldenWords) -> None:
    account.keys = {FIRST: "a", SECOND: "b"}
    with golden_words.raises(UsageError):
        account.key()
    assert account.keys == {FIRST: "a", SECOND: "b"}


def test_a_key_that_somebody_replaced_stays(account: Account) -> None:
    key = account.key()
    account.keys[FIRST] = "another's"
    key.end()
    assert account.keys[FIRST] == "another's"


@pytest.mark.parametrize(
    ("digests", "digest"), [(["sha1", "sha256"], "sha256"), (None, "sha256"), (["sha1"], "sha1")]
)
def test_signatures_are_those_of_swiftclient(
    account: Account, digests: list[str] | None, digest: str
) -> None:
    account.refusals = 3
    features = {} if digests is None else {"allowed_digests": digests}
    query, _ = account.key().queries(["c_000000", "c_000001"], features, lambda: False)
    path = urlsplit(account.session.storage_url).path
    url = swiftclient.utils.generate_temp_url(
        f"{path}/c_000000/", UNTIL, account.keys[FIRST], "GET", absolute=True, prefix=True, digest=digest
    )
    expected, found = (parse_qs(text, keep_blank_values=True) for text in (urlsplit(url).query, query))
    assert found == expected
    assert account.refusals < 0


@pytest.mark.parametrize("status", [401, 403])
def test_a_cluster_that_does_not_say_its_digests_is_tried(
    account: Account, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As Ceph: SHA-1 alone, and what is signed has all of the path."""
    caplog.set_level("INFO")
    account.session = Session((account.session.storage_url.replace("/v1", "/swift/v1"),), "t")
    account.refused_status = status
    account.signer = lambda key: hmac.digest(
        key.encode(), f"GET\n{UNTIL}\nprefix:/swift/v1/AUTH_test/c/".encode(), "sha1"
    ).hex()
    (query,) = account.key().queries(["c"], {}, lambda: False)
    assert parse_qs(query)["temp_url_sig"] == [account.signer(account.keys[FIRST])]
    assert "signed with sha1" in caplog.text


def test_a_better_digest_is_chosen_though_the_cluster_learnt_of_the_key_in_between(account: Account) -> None:
    account.refusals = 2  # sha256 and sha512
    (query,) = account.key().queries(["c"], {}, lambda: False)
    assert len(parse_qs(query)["temp_url_sig"][0]) == 64


def test_a_cluster_with_other_digests_or_that_never_takes_it_is_refused(
    account: Account, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    with pytest.raises(UsageError, match=r"takes the digests \['md4'\]"):
        account.key().queries(["c"], {"allowed_digests": ["md4"]}, lambda: False)
    monkeypatch.setattr(tempurl, "_PROPAGATION_SECONDS", 0.0)
    account.refusals = 99
    with golden_words.raises(ClusterError):
        account.key().queries(["c"], {}, lambda: False)
