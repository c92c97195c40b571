"""Lines of Swift's logs: genuine ones, and whatever else may stand there."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.logs.envelopes import TRANS_ID
from ssbench.logs.swift_lines import (
    NO_POLICY,
    BackendLine,
    CutLine,
    ErrorLine,
    ProxyLine,
    SlowLine,
    _parse_policy,
    make_template_parser,
    parse_swift_line,
)

DATA = Path(__file__).parents[2] / "data" / "swiftlogs"
#: What a proxy writes unless its ``log_msg_template`` says otherwise; older versions end sooner.
DEFAULT_TEMPLATE = (
    "{client_ip} {remote_addr} {end_time.datetime} {method} {path} {protocol} {status_int} {referer}"
    " {user_agent} {auth_token} {bytes_recvd} {bytes_sent} {client_etag} {transaction_id} {headers}"
    " {request_time} {source} {log_info} {start_time} {end_time} {policy_index} {access_user_id}"
)
PUT = (
    b"127.0.0.1 127.0.0.1 21/Nov/2026/22/37/46 PUT /v1/AUTH_test/c/o18081 HTTP/1.0 201 - ssbench%20sample/1.0"
    b" AUTH_tk8e8317d9b... 4096 - - tx2fb49ad9eae8482080275-006b021d3a - 0.0835 - - 1795300666.876998901"
    b" 1795300666.960514307 0 test:tester"
)
BACKEND = (
    b'127.0.0.1 - - [21/Nov/2026:22:37:46 +0000] "PUT /d1/9/AUTH_test/c/o18081" 201 -'
    b' "PUT http://127.0.0.1:18081/v1/AUTH_test/c/o18081" "tx2fb49ad9eae8482080275-006b021d3a"'
    b' "proxy-server 3975" 0.0593 "-" 3972 0'
)


def lines_of(name: str) -> list[bytes]:
    return [line for line in (DATA / name).read_bytes().splitlines() if TRANS_ID.search(line)]


def test_fields_of_both_access_lines() -> None:
    assert parse_swift_line(PUT) == ProxyLine(b"", b"PUT", 201, 0.0835, True, 0)
    assert parse_swift_line(BACKEND) == BackendLine(
        b"",
        b"object",
        b"d1",
        b"9",
        b"PUT",
        201,
        0.0593,
        b"proxy-server",
        (b"127.0.0.1", b"3975"),
        b"3972",
        0,
        b"AUTH_test/c/o18081",
        b"PUT http://127.0.0.1:18081/v1/AUTH_test/c/o18081",
    )


def test_a_genuine_delete_of_the_expirer() -> None:
    found = parse_swift_line(
        b"2026-11-23T08:39:10.688 INFO object-server: 127.0.0.1 - - [23/Nov/2026:08:39:10 +0000]"
        b' "DELETE /d1/123/AUTH_test/c/o0" 204 - "DELETE http://localhost/v1/AUTH_test/c/o0"'
        b' "txb9d8ba2024ab426d849eb-006b03fbae" "Swift Object Expirer" 0.0366 "-" 6321 0'
    )
    assert isinstance(found, BackendLine)
    assert (found.asker, found.device, found.seconds) == (b"object-expirer", b"d1", 0.0366)


@pytest.mark.parametrize(
    ("agent", "asker"),
    [
        (b"object-updater 7", b"object-updater"),
        (b"-", b""),
        (b"Swift Object Expirer", b"object-expirer"),
        (b"Swift Container Reconciler", b"container-reconciler"),
    ],
)
def test_who_asked(agent: bytes, asker: bytes) -> None:
    found = parse_swift_line(BACKEND.replace(b"proxy-server 3975", agent))
    assert isinstance(found, BackendLine)
    assert (found.asker, found.seconds, found.pid) == (asker, 0.0593, b"3972")


@pytest.mark.parametrize("fields", [17, 18, 20, 21, 22])
def test_older_layouts_of_proxies_end_sooner(fields: int) -> None:
    found = parse_swift_line(b"Nov 21 22:37:46 p1 proxy-server: " + b" ".join(PUT.split()[:fields]))
    assert found == ProxyLine(b"p1", b"PUT", 201, 0.0835, True, 0 if fields > 20 else NO_POLICY)


def test_requests_of_middleware_are_not_the_clients() -> None:
    own = Counter(
        found.own for found in map(parse_swift_line, lines_of("proxy.log")) if isinstance(found, ProxyLine)
    )
    sources = (b" VW - ", b"_INFO - ")
    seen = sum(source in line for line in lines_of("proxy.log") for source in sources)
    assert own[False] >= seen > 5
    assert own[True] > 50


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("object.log", {BackendLine: 173, ErrorLine: 6}),
        ("container.log", {BackendLine: 15}),
        ("proxy.log", {ProxyLine: 106, ErrorLine: 31, type(None): 1}),
        ("run-proxy.log", {ProxyLine: 40}),
        ("run-object.log", {BackendLine: 76}),
    ],
)
def test_every_genuine_line_is_understood(name: str, kinds: dict[type, int]) -> None:
    assert Counter(type(parse_swift_line(line)) for line in lines_of(name)) == kinds


@pytest.mark.parametrize("name", ["syslog-traditional.log", "syslog-rfc3339.log", "syslog-rfc5424.log"])
def test_prefixes_of_syslog_name_the_host(name: str) -> None:
    found = [each for each in map(parse_swift_line, lines_of(name)) if each is not None]
    assert {type(each): each.host for each in found} == {ProxyLine: b"", BackendLine: b"vm"}


def test_errors_name_their_node() -> None:
    found = [each for each in map(parse_swift_line, lines_of("proxy.log")) if isinstance(each, ErrorLine)]
    counts = Counter((each.kind, each.address, each.device) for each in found)
    assert counts == {
        ("connection", b"127.0.0.1:18212", b"d2"): 10,
        ("connection", b"127.0.0.1:18211", b"d1"): 4,
        ("connection", b"127.0.0.1:18211", b"d4"): 4,
        ("507", b"127.0.0.1:18212", b"d2"): 3,
        ("timeout", b"127.0.0.1:18213", b"d3"): 3,
        ("refusal", b"", b""): 3,
        ("client", b"", b""): 3,
        ("limited", b"127.0.0.1:18212", b"d2"): 1,
    }
    late = [
        each for each in map(parse_swift_line, lines_of("late-and-hung.log")) if isinstance(each, ErrorLine)
    ]
    assert Counter(each.kind for each in late)["timeout"] == 5
    handoffs = [
        parse_swift_line(line)
        for line in lines_of("handoff-and-shortened.log")
        if b"Handoff requested" in line
    ]
    assert {each.kind for each in handoffs if isinstance(each, ErrorLine)} == {"handoff"}


@pytest.mark.parametrize(
    "line",
    [
        b"proxy-server: ERROR Insufficient Storage 10.0.0.4:6200/d7 (txn: tx5a5fa64ec4504519aa419-006b021d9f",
        b"proxy-server: Node will be error limited for 60.00s: 10.0.0.4:6200/d7, error: ERROR Insufficient"
        b" Storage (txn: tx5a5fa64ec4504519aa419-006b021d9f)",
    ],
)
def test_full_devices_of_old_and_new_swift(line: bytes) -> None:
    assert parse_swift_line(line) == ErrorLine(
        b"",
        "507",
        b"",
        b"10.0.0.4:6200",
        b"d7",
        "" if b"limited" not in line else "ERROR Insufficient Storage",
    )


def test_ipv6_nodes() -> None:
    found = parse_swift_line(
        b"p1 proxy-server: ERROR with Object server [fd00::4]:6200/d7 [[fd00::5]:6300] re: Trying to GET"
        b" /v1/AUTH_test/c/g0: Timeout (3.0s) (txn: tx942fedf6a6ec49a6b36b6-006b021e8d)"
    )
    assert found == ErrorLine(b"p1", "timeout", b"object", b"[fd00::4]:6200", b"d7", "Timeout (3.0s)")


@given(st.integers(0, len(BACKEND)), st.integers(0, len(BACKEND)))
def test_a_cut_line_gives_no_wrong_time(start: int, end: int) -> None:
    first, last = min(start, end), max(start, end)
    whole = parse_swift_line(BACKEND)
    assert isinstance(whole, BackendLine)
    found = parse_swift_line(BACKEND[:first] + b" ... " + BACKEND[last:])
    if isinstance(found, BackendLine):  # what was cut is of no interest
        unused = {"proxy": whole.proxy, "names": whole.names, "referer": whole.referer}
        assert found._replace(host=b"", **unused) == whole
    shorter = parse_swift_line(BACKEND[:last])
    assert not isinstance(shorter, BackendLine) or shorter.seconds == 0.0593


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"/d1/", b"/d1/" + b"9" * 5000),
        (b" 0.0593", b" 0.0593".replace(b"0.", b"9" * 5000 + b".")),
        (b'" 201 ', b'" ' + b"2" * 5000 + b" "),
        (b" 200 ", b" " + b"2" * 5000 + b" "),
        (b" 0\n", b" " + b"0" * 5000),
        (b" -\n", b" " + b"7" * 5000),
    ],
)
def test_a_number_of_thousands_of_digits_is_none(old: bytes, new: bytes) -> None:
    for line in (PUT, BACKEND):
        parse_swift_line((line + b"\n").replace(old, new).rstrip(b"\n"))


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece",
    [b" [", b" [a", b"ERROR with Object server 10.0.0.1:6000 re: x: ", b" 22/Nov/2026/10/00/00 GET ", b"a: "],
)
def test_no_line_takes_long(piece: bytes) -> None:
    for size in (60_000, 10_000_000):
        parse_swift_line(piece * (size // len(piece)) + b'] "tx0123456789abcdef01234')
        parse_swift_line(b'"proxy-server ' + piece * (size // len(piece)))


@given(st.binary(max_size=400))
def test_no_line_raises(line: bytes) -> None:
    for whole in (line, PUT + line, BACKEND + line, line + b'] "' + line, BACKEND.replace(b"d1", line)):
        parse_swift_line(whole)
        parse_swift_line(whole, make_template_parser(DEFAULT_TEMPLATE))


@given(
    st.permutations(
        ["{method}", "{path.anonymized}", "{request_time}", "{transaction_id}", "{source}", "{ttfb}"]
    )
)
def test_templates_in_any_order(fields: list[str]) -> None:
    values = {
        "{method}": b"GET",
        "{path.anonymized}": b"/v1/{SMD5}1/2",
        "{request_time}": b"0.0214",
        "{transaction_id}": b"tx121f2ea6c9b9497b80a46-006b021d3a-ssb-1",
        "{source}": b"-",
        "{ttfb}": b"0.0200",
    }
    line = b"Nov 21 22:37:46 p1 proxy-server: " + b" | ".join(values[field] for field in fields)
    found = parse_swift_line(line, make_template_parser(" | ".join(fields)))
    assert found == ProxyLine(b"p1", b"GET", 0, 0.0214, True, NO_POLICY)


def test_the_default_template_reads_as_without() -> None:
    read = make_template_parser(DEFAULT_TEMPLATE)
    genuine = lines_of("run-proxy.log") + lines_of("syslog-rfc3339.log")
    whole = [line for line in genuine if type(parse_swift_line(line)) is ProxyLine]
    assert len(whole) > 40
    assert [parse_swift_line(line, read) for line in whole] == [parse_swift_line(line) for line in whole]


@pytest.mark.parametrize("missing", ["transaction_id", "request_time", "source"])
def test_a_template_without_what_the_join_needs(missing: str) -> None:
    with pytest.raises(UsageError, match=missing):
        make_template_parser(DEFAULT_TEMPLATE.replace(f"{{{missing}}}", "-"))


def test_cut_access_lines_are_told_from_others() -> None:
    assert isinstance(parse_swift_line(BACKEND[:60] + b" ... " + BACKEND[170:]), CutLine)
    assert (
        parse_swift_line(
            b"proxy-server: autocreate account '/AUTH_test' (txn: txeb8039b540b9445f85aab-006b021d3a)"
        )
        is None
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "ERROR container update failed with 10.0.0.2:6201/db1 (saving for async update later):"
            " ConnectionTimeout (0.5s) (txn: tx6475d8520bea4b2685729-006b021db0)",
            ("update", b"container", b"10.0.0.2:6201", b"db1", "ConnectionTimeout (0.5s)"),
        ),
        (
            "ERROR Container update failed (saving for async update later): 507 response from"
            " 10.0.0.2:6201/db1 (txn: tx6475d8520bea4b2685729-006b021db0)",
            ("update", b"container", b"10.0.0.2:6201", b"db1", ""),
        ),
        (
            "Error connecting to memcached: 10.0.0.9:11211: with key_prefix shard-updating-v2, method get,"
            " time_spent 0.0001, [Errno 111] ECONNREFUSED (txn: tx6475d8520bea4b2685729-006b021db0)",
            ("memcached", b"memcached", b"10.0.0.9:11211", b"", ""),
        ),
        (
            "Timeout talking to memcached: 10.0.0.9:11211: with key_prefix account, method set,"
            " config_timeout 2.0, time_spent 2.0 (txn: tx6475d8520bea4b2685729-006b021db0)",
            ("memcached", b"memcached", b"10.0.0.9:11211", b"", ""),
        ),
    ],
)
def test_errors_of_container_servers_and_of_memcached(text: str, expected: tuple[object, ...]) -> None:
    found = parse_swift_line(f"Nov 21 22:41:33 storage1 object-server: {text}".encode())
    assert isinstance(found, ErrorLine)
    assert (found.kind, found.server, found.address, found.device, found.detail) == expected


#: As swift.common.base_storage_server writes it for the DELETE of swift.obj.server (2.38.3).
SLOW = (
    "Nov 21 22:41:33 storage1 object-server: Slow DELETE (1.234s) for /d1/9/AUTH_test/c/o 1, status 204,"
    " start_time=1795300666.100, diskfile_acquisition=1.100s, metadata_read=0.030s, delete_at_update=0.000s,"
    " tombstone_write=0.100s, container_update=0.004s (txn: tx6475d8520bea4b2685729-006b021db0)"
)


def test_what_an_object_server_calls_slow_has_its_parts() -> None:
    found = parse_swift_line(SLOW.encode())
    assert isinstance(found, SlowLine)
    assert (found.host, found.method, found.device, found.status) == (b"storage1", b"DELETE", b"d1", 204)
    assert (found.seconds, found.began) == (1.234, 1795300666.1)
    assert found.parts[0] == ("diskfile_acquisition", 1.1)
    assert [name for name, _ in found.parts][1:3] == ["metadata_read", "delete_at_update"]
    assert len(found.parts) == 5


def test_a_policy_is_a_number_that_the_columns_of_a_run_can_hold() -> None:
    words = (b"0", b"12", b"999999999", b"1234567890", b"", None, b"-", b"-1", b"1.5", b"\xb2")
    assert [*map(_parse_policy, words)] == [0, 12, 999_999_999] + [NO_POLICY] * 7
