"""The host that the words before a message name."""

from __future__ import annotations

import pytest

from ssbench.logs.prefixes import host_of_prefix

TIME = "2026-11-21T22:44:33.000206+00:00"


@pytest.mark.parametrize(
    ("prefix", "host"),
    [
        (f"{TIME} stor1 object-server:", "stor1"),
        ("Nov 21 22:44:33 stor1 object-server[12]:", "stor1"),
        ("Nov 21 22:44:33 stor1 docker[1]: object-server:", "stor1"),
        ("stor1 INFO object-server:", "stor1"),
        # RFC 5424, with a priority and without, and with nothing but its least.
        (f"<142>1 {TIME} stor1 object-server 12 - -", "stor1"),
        (f"<142>1 {TIME} stor1 object-server", "stor1"),
        (f"<142>1 {TIME} - object-server 12 - -", ""),
        (f"{TIME} stor1 object-server 12 - -", "stor1"),
        (f"{TIME} stor1 object-server", ""),
        # Of a container runtime.
        (f"{TIME} stdout F {TIME} stor1 object-server:", "stor1"),
        (f"{TIME} stderr P stor1 INFO object-server:", "stor1"),
        (f"{TIME} stderr F stor1-object-1 | object-server:", "stor1-object-1"),
        (f"{TIME} stdout P object-server:", ""),
        (f"{TIME} stdout F", ""),
        ("stor1-object-1 | object-server:", "stor1-object-1"),
        ("[pod/stor1-0/object] object-server:", "stor1-0"),
        ('{app="swift", host="stor1"} object-server:', "stor1"),
        ("object-server:", ""),
        ("", ""),
    ],
)
def test_who_wrote_a_line(prefix: str, host: str) -> None:
    assert host_of_prefix(prefix.encode().split()) == host.encode()
