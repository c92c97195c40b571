"""Records of JSON that log collectors wrap lines in: which text is the message, and whose it is."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ssbench.logs.envelopes import EnclosedMessage, find_json_messages

NEEDLE = re.compile(rb"tx\d")


def found(record: Any, before: str = "") -> list[EnclosedMessage]:
    return find_json_messages(before.encode() + json.dumps(record).encode(), NEEDLE)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"id": "tx1", "message": "GET tx1"}, "GET tx1"),
        ({"message": "GET tx1", "MESSAGE": "PUT tx1"}, "PUT tx1"),  # of two such names the more telling one
        ({"log": "GET tx1\r\n", "path": "/var/log/a-long-name-of-a-file-tx1"}, "GET tx1"),
        ({"one": "GET tx1", "other": "GET /v1/a tx1"}, "GET /v1/a tx1"),  # or else the longest
        ({"message": "nothing of it", "deep": {"er": ["", "GET tx1"]}}, "GET tx1"),
    ],
)
def test_the_message_is_the_text_that_names_the_transaction(record: Any, message: str) -> None:
    assert found(record) == [EnclosedMessage(message.encode(), b"")]
    assert found(record, "Nov 21 22:44:33 h collector: ") == found(record)


def test_of_records_within_records_the_innermost_comes_first_and_has_a_host() -> None:
    inner = json.dumps({"message": "GET tx1", "hostname": "inner"})
    bare = json.dumps({"message": "GET tx1"})
    assert found({"log": inner, "host": "outer"}) == [
        EnclosedMessage(b"GET tx1", b"inner"),
        EnclosedMessage(inner.encode(), b"outer"),
    ]
    assert found({"log": bare, "host": "outer"})[0] == EnclosedMessage(b"GET tx1", b"outer")


@pytest.mark.parametrize(
    ("record", "host"),
    [
        ({"host": {"name": "a", "hostname": "b"}}, "a"),
        ({"host": "a", "hostname": "b"}, "a"),
        ({"_HOSTNAME": "a"}, "a"),
        ({"labels": {"node_name": "a"}}, "a"),
        ({"kubernetes": {"node": {"name": "a"}}}, "a"),
        ({"_source": {"hostname": "a"}, "host": "b"}, "a"),
        ({"host": "", "node": "a"}, "a"),
        ({"host": 7}, ""),
    ],
)
def test_hosts_have_many_names(record: dict[str, Any], host: str) -> None:
    assert found(record | {"message": "GET tx1"}) == [EnclosedMessage(b"GET tx1", host.encode())]


@pytest.mark.parametrize(
    "line", [b"", b"tx1", b'{"message": "tx1"', b'{"message": "none"}', b"{tx1}", b'{"tx1"}']
)
def test_other_lines_hold_nothing(line: bytes) -> None:
    assert find_json_messages(line, NEEDLE) == []
