"""The containers of a run: made where they are missing, refused where they are not what was asked for."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time

import pytest
from fault_server import Reply, black_hole
from processes import free_ports

from ssbench.base.errors import ClusterError
from ssbench.scenario.names import container_name
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Credentials, Session
from ssbench.store.swift import containers
from ssbench.store.swift.auth import authenticate_swift
from ssbench.store.swift.containers import ensure_containers


@pytest.fixture(scope="module")
def session(swift) -> Session:
    return authenticate_swift(
        Credentials(version="1.0", auth_url=swift.auth_url, user=swift.user, key=swift.key)
    )


@pytest.fixture
def faulty(fault_server) -> Session:
    return Session((fault_server.url,), "token")


@pytest.mark.parametrize("policy", [None, "gold", "silver", "SILVER"])
def test_makes_what_is_missing(swift, session, account, container_base, policy):
    names = [container_name(container_base, number, policy) for number in range(25)]
    account.put_container(names[3], headers={"X-Storage-Policy": policy} if policy else None)
    made = []
    ensure_containers(
        StoreAccess(session), names, policy, 10, lambda: made.append(threading.current_thread())
    )
    assert made == [threading.main_thread()] * 25
    listed = account.get_account(prefix=f"{container_base}_")[1]
    assert [row["name"] for row in listed] == names
    expected = (policy or "gold").lower()
    assert {account.head_container(name)["x-storage-policy"] for name in names} == {expected}
    ensure_containers(StoreAccess(session), names, policy)


def test_no_containers(faulty, fault_server):
    ensure_containers(StoreAccess(faulty), [])
    assert fault_server.connections == 0


def test_another_policy_is_an_error_that_names_both(session, account, container_base):
    account.put_container(container_base)
    with pytest.raises(
        ClusterError, match=f"{container_base}: exists with the storage policy 'gold', not 'silver'"
    ):
        ensure_containers(StoreAccess(session), [container_base], "silver")


def test_an_unknown_policy_is_named(session, container_base):
    with pytest.raises(ClusterError, match=r"HTTP 400 Bad Request: is there no storage policy 'bronze'\?"):
        ensure_containers(StoreAccess(session), [container_base], "bronze")


def test_a_token_that_is_refused(session, container_base):
    refused = Session(session.storage_urls, "AUTH_tkwrong")
    with pytest.raises(ClusterError, match=f"{container_base}: HTTP 401 Unauthorized"):
        ensure_containers(StoreAccess(refused), [container_base])


INFO = {"swift": {"policies": [{"name": "gold", "aliases": "gold, Yellow", "default": True}]}}


@pytest.mark.parametrize(
    ("policy", "info", "accepted"),
    [
        ("yellow", Reply(200, json.dumps(INFO).encode(), (("Content-Type", "application/json"),)), True),
        ("silver", Reply(200, json.dumps(INFO).encode(), (("Content-Type", "application/json"),)), False),
        ("yellow", Reply(200, b"[]", (("Content-Type", "application/json"),)), False),
        ("yellow", Reply(404), False),
    ],
)
def test_aliases_of_policies(faulty, fault_server, policy, info, accepted):
    head = Reply(204, headers=(("X-Storage-Policy", "gold"),))
    fault_server.rule = lambda request: info if request.target == "/info" else head
    if accepted:
        ensure_containers(StoreAccess(faulty), ["c"], policy)
    else:
        with pytest.raises(ClusterError, match=f"'gold', not '{policy}'"):
            ensure_containers(StoreAccess(faulty), ["c"], policy)


def test_each_storage_url_is_used(fault_server):
    second = fault_server.url.replace("127.0.0.1", "localhost")
    hosts, both = set(), threading.Event()

    def answer(request):
        # Each thread has one of them, and one thread alone could make all of the containers.
        hosts.add(request.headers["host"].partition(":")[0])
        if len(hosts) == 2:
            both.set()
        both.wait(10)
        return Reply(204)

    fault_server.rule = answer
    ensure_containers(
        StoreAccess(Session((fault_server.url, second), "token")), ["a", "b"] * 20, concurrency=2
    )
    assert hosts == {"127.0.0.1", "localhost"}
    assert {request.headers["x-auth-token"] for request in fault_server.requests} == {"token"}


@pytest.mark.parametrize("status", [408, 429, 498, 503])
def test_passing_failures_are_tried_again(faulty, fault_server, status, monkeypatch):
    monkeypatch.setattr(containers, "_RETRY_PAUSES", (0.01, 0.01))
    fault_server.script(Reply(status), Reply(404), Reply(status), Reply(status), Reply(201))
    ensure_containers(StoreAccess(faulty), ["c"])
    assert [request.method for request in fault_server.requests] == ["HEAD", "HEAD", "PUT", "PUT", "PUT"]


def test_an_account_that_is_not_everywhere_yet_is_waited_for(faulty, fault_server, monkeypatch):
    monkeypatch.setattr(containers, "_RETRY_PAUSES", (0.01, 0.01))
    fault_server.script(Reply(404), Reply(404), Reply(201))
    ensure_containers(StoreAccess(faulty), ["c"])
    assert [request.method for request in fault_server.requests] == ["HEAD", "PUT", "PUT"]


def test_a_connection_that_is_cut_is_made_anew(faulty, fault_server):
    fault_server.script(Reply(cut=0), Reply(404), Reply(201))
    ensure_containers(StoreAccess(faulty), ["c"])


def test_failures_are_told_and_no_more_is_begun(faulty, fault_server):
    fault_server.rule = lambda request: Reply(404 if request.method == "HEAD" else 403)
    with pytest.raises(ClusterError) as caught:
        ensure_containers(StoreAccess(faulty), [f"c{number}" for number in range(1000)], concurrency=5)
    text = str(caught.value)
    assert f": {fault_server.url}/c" in text
    assert text.count("HTTP 403 Forbidden") == 1
    assert len(fault_server.requests) <= 2 * 5
    put = [request for request in fault_server.requests if request.method == "PUT"]
    assert (f" and {len(put) - 1} more: " in text) == (len(put) > 1)


def test_the_storage_url_that_failed_is_the_one_that_is_named(fault_server, monkeypatch):
    monkeypatch.setattr(containers, "_RETRY_PAUSES", (0.01,))
    fault_server.default = Reply(delay=0.05)
    dead = f"http://127.0.0.1:{free_ports(1)[0]}/v1/AUTH_test"
    with pytest.raises(ClusterError) as caught:
        # More than one thread alone makes while the other one has no turn.
        ensure_containers(
            StoreAccess(Session((fault_server.url, dead), "t")), [f"c{n}" for n in range(400)], concurrency=2
        )
    assert re.search(rf"could not be made: {dead}/c\d+( and 1 more)?: connect refused", str(caught.value))
    assert fault_server.url not in str(caught.value)


@pytest.mark.parametrize("concurrency", [1, 10])
def test_nobody_there_ends_soon(concurrency, monkeypatch):
    monkeypatch.setattr(containers, "_RETRY_SECONDS", 0.5)
    began = time.monotonic()
    with black_hole() as port, pytest.raises(ClusterError, match=r"c\d( and \d more)?: connect timeout"):
        ensure_containers(
            StoreAccess(Session((f"http://127.0.0.1:{port}/v1/AUTH_a",), "t"), (0.6, 0.6)),
            [f"c{number}" for number in range(1000)],
            concurrency=concurrency,
        )
    assert time.monotonic() - began < 30  # all of them would take a minute at least


def test_a_server_that_never_answers_ends_soon(faulty, fault_server, monkeypatch):
    monkeypatch.setattr(containers, "_RETRY_PAUSES", (0.01,))
    fault_server.default = Reply(stall=True)
    with pytest.raises(ClusterError, match="c: read timeout"):
        ensure_containers(StoreAccess(faulty, (1.0, 0.2)), ["c"])


def test_refused(monkeypatch):
    monkeypatch.setattr(containers, "_RETRY_PAUSES", (0.01,))
    with pytest.raises(ClusterError, match="c: connect refused"):
        ensure_containers(StoreAccess(Session(("http://127.0.0.1:1/v1/AUTH_a",), "t")), ["c"])


def test_what_the_caller_raises_ends_it(faulty, fault_server):
    asked = itertools.count(1)
    # In time for the caller, however late its thread has its turn: all of them would take 50 s.
    fault_server.rule = lambda _: Reply(204, delay=0.5 if next(asked) > 10 else 0)

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ensure_containers(StoreAccess(faulty), [f"c{number}" for number in range(1000)], advance=interrupt)
    assert len(fault_server.requests) < 500


def test_a_bug_in_a_thread_is_not_lost(faulty, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(containers, "_ensure_container", fail)
    with pytest.raises(ZeroDivisionError):
        ensure_containers(StoreAccess(faulty), ["c"])
