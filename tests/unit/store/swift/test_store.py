"""Swift as a store: what a server says that it can do, or does not get to say."""

from __future__ import annotations

import json

import pytest
from fault_server import FaultServer, Reply

from ssbench.store.contract import Capabilities, StoreAccess
from ssbench.store.credentials import Session
from ssbench.store.swift.store import SwiftStore

INFO = json.dumps({"swift": {"version": "2"}, "slo": None}).encode()


def capabilities(reply: Reply) -> Capabilities:
    with FaultServer(rule=lambda _: reply) as server:
        return SwiftStore().capabilities(StoreAccess(Session((server.url,), "t"), (5.0, 0.5)))


def test_what_a_server_says() -> None:
    assert capabilities(Reply(200, body=INFO)).features == {"swift": {"version": "2"}, "slo": {}}


@pytest.mark.parametrize(
    "reply",
    [
        Reply(404),
        Reply(200, body=b"[]"),
        Reply(200, body=INFO, claim=10 * len(INFO)),
        Reply(200, body=INFO, stall=True),
        Reply(200, raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        Reply(200, body=INFO, headers=(("Content-Encoding", "gzip"),)),
    ],
    ids=["missing", "list", "short", "stalled", "chunk", "gzip"],
)
def test_an_answer_that_cannot_be_read_says_nothing(reply: Reply) -> None:
    """Faults within the body were a traceback before the run had begun."""
    assert capabilities(reply) == Capabilities()
