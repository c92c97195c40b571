"""Redirects of a store and of an authentication service: a second server records whether anything came."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from asked_by_master import ASKED_BY_MASTER, TIMEOUTS, authenticate, origin_of, swift_session
from fault_server import FaultServer, Reply, Request
from golden_words import GoldenWords

from ssbench.base.errors import AuthenticationError, ClusterError, SsbenchError
from ssbench.store.contract import AttemptError, StoreAccess
from ssbench.store.credentials import Credentials
from ssbench.store.swift.auth import authenticate_swift
from ssbench.store.swift.store import SwiftStore

STATUSES = (301, 302, 303, 307, 308)

#: What another host would say: all of it would be believed.
FOREIGN = Reply(
    200,
    json.dumps([{"name": "ssbench_000000", "count": 5, "bytes": 5}]).encode(),
    (
        ("X-Storage-Url", "http://127.0.0.1:9/v1/AUTH_foreign"),
        ("X-Auth-Token", "foreign"),
        ("X-Subject-Token", "foreign"),
        ("Content-Type", "application/json"),
    ),
)


@pytest.fixture
def foreign() -> Iterator[FaultServer]:
    with FaultServer(default=FOREIGN) as server:
        yield server


@pytest.fixture
def store() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("asked", ASKED_BY_MASTER)
def test_no_request_with_credentials_leaves_its_origin_of(
    store: FaultServer, foreign: FaultServer, asked: str, status: int, golden_words: GoldenWords
) -> None:
    """The token or the password went to whatever host a redirect named, and its listing was believed."""
    store.default = Reply(status, headers=(("Location", f"{foreign.url}/elsewhere"),))
    with pytest.raises((SsbenchError, AttemptError)) as raised:
        ASKED_BY_MASTER[asked](store)
    assert foreign.requests == []
    assert len(store.requests) == 1, "a redirect does not pass, so it is not asked again"
    text = str(raised.value)
    assert f"HTTP {status} " in text
    golden_words(text)
    assert "\n" not in text


@pytest.mark.parametrize("asked", ASKED_BY_MASTER)
@pytest.mark.parametrize(
    "location",
    ["http://[::1", "http://a:99999999/", "\\\\evil", "http://\xff\xfe/", "http://" + "x" * 60_000, "\x01"],
)
def test_a_malformed_location_is_one_line(store: FaultServer, asked: str, location: str) -> None:
    """``http://[::1`` was a traceback: requests reads the address also where it follows no redirect."""
    store.default = Reply(302, headers=(("Location", location),))
    with pytest.raises((SsbenchError, AttemptError)) as raised:
        ASKED_BY_MASTER[asked](store)
    assert "HTTP 302" in str(raised.value)
    assert len(str(raised.value)) < 800


@pytest.mark.parametrize("asked", ["containers", "listing", "make", "marks", "tempurl"])
def test_a_store_is_not_followed_within_its_origin_either(store: FaultServer, asked: str) -> None:
    """Another path is another account: its names are not those of this one."""
    store.rule = lambda request: (
        FOREIGN
        if "AUTH_other" in request.target
        else Reply(302, headers=(("Location", "/v1/AUTH_other?format=json"),))
    )
    with pytest.raises((ClusterError, AttemptError)):
        ASKED_BY_MASTER[asked](store)
    assert all("AUTH_other" not in request.target for request in store.requests)


def test_authentication_is_followed_within_its_origin_of(store: FaultServer) -> None:
    def answer(request: Request) -> Reply:
        if request.target == "/auth/v1.0/":
            return Reply(200, headers=(("X-Storage-Url", store.url), ("X-Auth-Token", "t")))
        return Reply(301, headers=(("Location", "/auth/v1.0/"),))

    store.rule = answer
    found = authenticate_swift(
        Credentials(version="1.0", auth_url=f"{origin_of(store)}/auth/v1.0", user="u", key="k")
    )
    assert (found.storage_urls, found.token) == ((store.url,), "t")
    assert [request.headers["x-auth-key"] for request in store.requests] == ["k", "k"]


@pytest.mark.parametrize("location", ["/v3/auth/tokens/", "{origin}/v3/auth/tokens/"])
def test_keystone_is_followed_within_its_origin_of(store: FaultServer, location: str) -> None:
    endpoints = [{"id": "e", "interface": "public", "region": "r", "region_id": "r", "url": store.url}]
    token = {
        "methods": ["password"],
        "expires_at": "2099-01-01T00:00:00.000000Z",
        "catalog": [{"type": "object-store", "id": "1", "name": "swift", "endpoints": endpoints}],
        "user": {"id": "u", "name": "n", "domain": {"id": "d", "name": "d"}},
    }

    def answer(request: Request) -> Reply:
        if request.target.endswith("/"):
            return Reply(201, json.dumps({"token": token}).encode(), (("X-Subject-Token", "t"),))
        return Reply(308, headers=(("Location", location.format(origin=origin_of(store))),))

    store.rule = answer
    authenticate(store, "3")
    assert [request.method for request in store.requests] == ["POST", "POST"]


@pytest.mark.parametrize(
    "make",
    [
        lambda own, foreign: f"{foreign}\\@{own.removeprefix('http://')}/",
        lambda own, foreign: f"{foreign}@{own.removeprefix('http://')}/",
        lambda own, foreign: f"{own}@{foreign.removeprefix('http://')}/",
        lambda own, foreign: f"{own}\\@{foreign.removeprefix('http://')}/",
        lambda own, foreign: own.replace("http:", "https:"),
        lambda own, foreign: own.replace("127.0.0.1", "localhost"),
        lambda own, foreign: f"//{foreign.removeprefix('http://')}/",
    ],
)
def test_an_origin_is_what_all_libraries_take_for_it(
    store: FaultServer, foreign: FaultServer, make: Callable[[str, str], str]
) -> None:
    """urllib3 ends a host at a backslash, urllib.parse does not."""
    store.default = Reply(302, headers=(("Location", make(origin_of(store), origin_of(foreign))),))
    with pytest.raises(AuthenticationError, match="not followed"):
        authenticate(store, "1.0")
    assert foreign.requests == []
    assert len(store.requests) == 1


def test_a_password_in_a_location_is_not_shown(store: FaultServer) -> None:
    store.default = Reply(302, headers=(("Location", "http://user:secret@x/"),))
    with pytest.raises(AuthenticationError) as raised:
        authenticate(store, "1.0")
    assert "secret" not in str(raised.value)


def test_what_a_foreign_server_can_do_is_not_believed(
    store: FaultServer, foreign: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    foreign.default = replace(FOREIGN, body=json.dumps({"swift": {"max_file_size": 5}}).encode())
    store.default = Reply(302, headers=(("Location", f"{origin_of(foreign)}/info"),))
    with caplog.at_level(logging.WARNING):
        assert not SwiftStore().capabilities(StoreAccess(swift_session(store), TIMEOUTS)).known
    assert foreign.requests == []
    assert f"{origin_of(store)}/info: HTTP 302, a redirect to '{origin_of(foreign)}/info'" in caplog.text
