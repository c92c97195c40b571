"""Lines of each format as requests: genuine ones of Swift and others, and some as documentation has them."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import REQUEST_KINDS, read_requests
from ssbench.logs.request_formats import (
    REQUEST_FORMATS,
    UNKNOWN_SIZE,
    LoggedRequest,
    find_request_format,
    suggest_format,
)
from ssbench.logs.request_paths import split_path

DATA = Path(__file__).parents[2] / "data" / "swiftlogs"
SWIFT = (
    b"127.0.0.1 127.0.0.1 21/Nov/2026/22/37/46 PUT /v1/AUTH_test/c/o18081 HTTP/1.0 201 - agent AUTH_tk8..."
    b" 4096 - - tx2fb49ad9eae8482080275-006b021d3a - 0.0835 - - 1795300666.876998901 1795300666.960514307 0 -"
)
S3 = (
    b"79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be bucket [06/Feb/2019:00:00:38 +0000]"
    b' 192.0.2.3 arn:aws 3E57427F3EXAMPLE REST.GET.OBJECT a%2520b%252Fc "GET /bucket/a%20b/c HTTP/1.1" 200 -'
    b' 4406583 41754289 280 28 "-" "aws cli \\"1\\"" - host= SigV4 ECDHE AuthHeader bucket.s3 TLSv1.2 - -'
)
RGW = (
    b'[{"bucket":"ccc","time":"2026-11-22T14:24:05.518302Z","time_local":"2026-11-22T14:24:05.518302+0000",'
    b'"remote_addr":"127.0.0.1","object_owner":"test","user":"test","operation":"get_obj",'
    b'"uri":"GET /swift/v1/AUTH_test/ccc/lo%20g HTTP/1.1","http_status":"206","error_code":"",'
    b'"bytes_sent":10,"bytes_received":0,"object_size":100,"total_time":7,"user_agent":"c"},'
)
HAPROXY = (
    b"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in"
    b' static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET /v1/AUTH_a/c/o%20p HTTP/1.1"'
)
NGINX = b'10.0.0.1 - - [06/Feb/2019:01:00:38 +0100] "HEAD /bucket/key HTTP/1.1" 404 0 "-" "curl/8"'
IBM = b"1219008 REST.GET.OBJECT 8d4fcda3d675bac9 1056 0 1055"


def _list_foreign_lines() -> Iterator[tuple[str, str | None, bytes, str]]:
    """Yield format, template, line and what it says of each entry of lines.txt."""
    text = (DATA.parent / "requestlogs" / "lines.txt").read_text(encoding="utf-8")
    for entry in text.strip().split("\n\n# ")[1:]:
        _, form, line, said = entry.split("\n")
        name, _, template = form.partition(" ")
        yield name, template or None, line.encode(), said


FOREIGN_LINES = [*_list_foreign_lines()]


def _say(found: LoggedRequest | None) -> str:
    """Say what was read as lines.txt does."""
    if found is None:
        return "left out"
    size = "?" if found.size == UNKNOWN_SIZE else found.size
    began = datetime.fromtimestamp(found.began, UTC).isoformat(timespec="microseconds")
    began = f"{began[:20]}{round(int(began[20:26]) / 1e3):03}"
    seconds = "?" if math.isnan(found.seconds) else f"{found.seconds:g}"
    place = " ".join(each.decode() or "-" for each in (found.account, found.container, found.name))
    return f"{found.kind} {found.status} {size} {found.moved} {began} {seconds} {place}"


@pytest.mark.parametrize(("name", "template", "line", "said"), FOREIGN_LINES)
def test_lines_of_others(name: str, template: str | None, line: bytes, said: str) -> None:
    assert _say(find_request_format(name, template).read(line)) == said


@pytest.mark.parametrize(
    ("name", "template", "line", "said"), [each for each in FOREIGN_LINES if each[0] not in ("s3", "ibm-cos")]
)
def test_lines_of_others_in_the_log_of_a_container(
    name: str, template: str | None, line: bytes, said: str
) -> None:
    read = find_request_format(name, template).read
    docker = {"log": f"{line.decode()}\n", "stream": "stdout", "time": "2026-11-21T22:37:46.1Z"}
    assert _say(read(json.dumps(docker, separators=(",", ":")).encode())) == said
    assert _say(read(b"2026-11-21T22:37:46.123456789Z stdout F " + line)) == said


@pytest.mark.parametrize("indent", [None, 4])
def test_a_document_of_radosgw_admin_log_show(tmp_path: Path, indent: int | None) -> None:
    records = [
        json.loads(line) for name, _, line, _ in FOREIGN_LINES if name == "rgw" and b"create-bucket" in line
    ]
    document = {"bucket_id": "9adc.1", "bucket": "create-bucket", "log_entries": records, "log_sum": {"n": 3}}
    path = tmp_path / "log"
    path.write_text(json.dumps(document, indent=indent), encoding="utf-8")
    found = read_requests([LogFile(path, "n")], find_request_format("rgw"))
    assert (len(found), found.left_out, found.unreadable) == (len(records), 0, 0)
    path.write_text("\n".join(json.dumps(each, indent=2) for each in records), encoding="utf-8")  # jq
    assert len(read_requests([LogFile(path, "n")], find_request_format("rgw"))) == len(records)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (b"/swift/v1/AUTH_a/c/o", (b"AUTH_a", b"c", b"o")),
        (b"/swift/v1/registry/files/data", (b"user", b"registry", b"files/data")),
        (b"/swift/v1?format=json", (b"user", b"", b"")),
        (b"/v1.0/AUTH_a/c", (b"AUTH_a", b"c", b"")),
        (b"/v1x/key", (b"user", b"v1x", b"key")),
    ],
)
def test_beginnings_of_paths(path: bytes, place: tuple[bytes, ...]) -> None:
    assert split_path(path, 1, b"user")[:3] == place


@pytest.mark.parametrize(
    ("request_words", "kind"),
    [
        (b"GET /bucket?acl", "other"),
        (b"GET /bucket/key?acl&versionId=1", "other"),
        (b"GET /bucket?list-type=2&prefix=acl", "list"),
        (b"GET /bucket?versions", "list"),
        (b"GET /bucket/key?versionId=1", "read"),
        (b"PUT /bucket/key?partNumber=1&uploadId=x", "put"),
        (b"GET /bucket/key?uploadId=x", "other"),
        (b"DELETE /bucket/key?uploadId=x", "other"),
        (b"PUT /bucket/key?tagging", "other"),
        (b"POST /bucket/key?uploads=", "other"),
    ],
)
def test_properties_of_s3_are_no_data_and_no_lists(request_words: bytes, kind: str) -> None:
    found = find_request_format("nginx").read(NGINX.replace(b"HEAD /bucket/key", request_words))
    assert found is not None
    assert found.kind == kind


def test_a_bucket_of_a_tenant_and_a_copy_at_ceph() -> None:
    line = RGW.replace(b'"bucket":"ccc"', b'"bucket":"tenant/ccc"').replace(b"/swift/v1/AUTH_test", b"")
    found = find_request_format("rgw").read(line.replace(b"get_obj", b"copy_obj"))
    assert found is not None
    assert (found.kind, found.container, found.name) == ("copy", b"ccc", b"lo g")


def test_only_whole_names_are_pages_of_the_server() -> None:
    read = find_request_format("nginx").read
    assert read(NGINX.replace(b"/bucket/key", b"/information/key")) is not None
    for path in (b"/info?swiftinfo_sig=1", b"/swift/healthcheck", b"*", b"www.example.org:443"):
        assert read(NGINX.replace(b"/bucket/key", path)) is None


def test_an_upload_without_a_policy_is_a_copy() -> None:
    """One with X-Copy-From, of which no byte comes from the client."""
    line = SWIFT.replace(b" 0 -", b" - -")
    for words, kind in (
        (line.replace(b" 4096 ", b" - "), "copy"),
        (line, "put"),
        (SWIFT.replace(b" 4096 ", b" - "), "put"),
        (line.replace(b" 4096 ", b" - ").replace(b" 201 ", b" 503 "), "put"),
        (line.replace(b" 4096 ", b" - ").replace(b"/v1/AUTH_test/c", b"/bucket"), "put"),  # s3api
    ):
        found = find_request_format("swift").read(words)
        assert found is not None
        assert found.kind == kind


def test_a_line_of_swift_that_is_cut_at_its_beginning() -> None:
    found = find_request_format("swift").read(SWIFT.partition(b" ")[2])
    assert found is not None
    assert found.source == b"127.0.0.1"
    assert find_request_format("swift").read(b" " + SWIFT.split(b" ", 2)[2]) is not None


def test_a_line_of_haproxy_that_syslog_cuts_within_a_long_query() -> None:
    line = HAPROXY.replace(b"%20p HTTP/1.1", b"?X-Amz-Algorithm=AWS4-HMAC-SHA256 HTTP/1.1")
    found = find_request_format("haproxy").read(line[: line.index(b"-SHA")])
    assert found is not None
    assert found.name == b"o"


def test_nginx_that_asks_several_servers_and_haproxy_about_itself() -> None:
    template = "$msec [$upstream_response_time] [$upstream_status] $request_method $request_uri $status"
    line = b"1.500 [0.001, 0.002 : 0.003] [502, 200 : 200] GET /bucket/key 200"
    assert find_request_format("nginx", template).read(line) is not None
    own = HAPROXY.replace(b"static/srv1", b"stats/<STATS>").replace(b"/v1/AUTH_a/c/o", b"/stats")
    assert find_request_format("haproxy").read(own) is None


def test_a_line_of_swift() -> None:
    assert find_request_format("swift").read(b"Nov 21 host proxy-server: " + SWIFT) == LoggedRequest(
        1795300666.876998901, 0.0835, "put", 201, 4096, 4096, b"AUTH_test", b"c", b"o18081", b"127.0.0.1"
    )


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (b"/v1/AUTH_test/c%2520d/%25C3%25BC%253Fx", (b"AUTH_test", b"c d", "ü?x".encode())),
        (b"/v1/AUTH_test/c/o%3Fmultipart-manifest%3Dget", (b"AUTH_test", b"c", b"o")),
        (b"/v1/AUTH_test/c%3Flimit%3D2", (b"AUTH_test", b"c", b"")),
        (b"/bkt/pre/key", (b"", b"bkt", b"pre/key")),  # s3api
    ],
)
def test_paths_of_swift_are_encoded_twice(path: bytes, place: tuple[bytes, ...]) -> None:
    found = find_request_format("swift").read(SWIFT.replace(b"/v1/AUTH_test/c/o18081", path))
    assert found is not None
    assert (found.account, found.container, found.name) == place


def test_every_genuine_access_line_is_read_and_subrequests_are_left_out(tmp_path: Path) -> None:
    lines = (DATA / "proxy.log").read_bytes().splitlines()
    own = [line for line in lines if b" HTTP/1.0 " in line]
    found = read_requests([LogFile(DATA / "proxy.log", "proxy")], find_request_format("swift"))
    subrequests = sum(line.split(b" HTTP/1.0 ")[1].split()[10] != b"-" for line in own)
    others = sum(b" /auth/" in line or b" /info" in line for line in own)
    assert (len(found), found.unreadable) == (len(own) - subrequests - others, 0)
    kinds = Counter(REQUEST_KINDS[kind] for kind in found.kind.tolist())
    assert kinds["copy"] == 2  # one by PUT
    assert kinds["range"] == 1
    assert found.container.max() + 1 == len({*found.container.tolist()})
    assert (found.began[1:] >= found.began[:-1]).all()


def test_a_template_of_swift_without_a_start() -> None:
    template = (
        "{client_ip} {end_time.datetime} {method} {path} {status_int} {bytes_sent} {request_time} {source}"
    )
    read = find_request_format("swift", template).read
    line = b"x proxy: 1.2.3.4 21/Nov/2026/22/37/46 GET /v1/a/c/%25C3%25BC 200 17 0.25 "
    found = read(line + b"-")
    assert found is not None
    assert (found.began, found.seconds, found.size, found.name) == (1795300665.75, 0.25, 17, "ü".encode())
    assert found.whole
    assert read(line + b"SLO") is None


def test_names_that_swift_hashes_are_told_apart_by_account_container_and_object() -> None:
    template = (
        "{account.anonymized} {container.anonymized} {object.anonymized} {method} {status_int} {start_time}"
        " {bytes_sent} {source}"
    )
    form = find_request_format("swift", template)
    hashed = b"{MD5}a3e6bbaee1ad57beecd5958c2442caf3"
    found = form.read(b"p1 proxy-server: " + b"%b c %b GET 200 1795300666.5 17 -" % (hashed, hashed))
    assert found is not None
    assert (found.account, found.container, found.name, found.kind) == (hashed, b"c", hashed, "read")
    listing = form.read(b"%b c - GET 200 1795300666.5 17 -" % hashed)
    assert listing is not None
    assert (listing.kind, listing.name) == ("list", b"")
    assert not any("headers" in each for each in form.doubts)  # Swift counts bodies alone
    assert any("names of objects are hashed" in each for each in form.doubts)
    with pytest.raises(UsageError, match="no field for the method and the path"):
        find_request_format("swift", "{method} {path.anonymized} {status_int} {start_time}")


def test_lines_whose_middle_is_taken_out_are_said_to_be() -> None:
    line = SWIFT[:60] + b" ... " + SWIFT[-60:]
    assert suggest_format(line).startswith("log_max_line_length has taken out the middle of lines")


TEMPLATED = b"1795300666.5 GET /v1/AUTH_test/c/o 200 4096 -"


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        # A cut may leave as many words, and other numbers among them.
        (SWIFT.replace(b" agent AUTH_tk8... 4096 ", b" age ... 96 "), "log_max_line_length"),
        (SWIFT[:27] + b" ... " + SWIFT[-70:], "log_max_line_length"),  # its date is gone as well
        (SWIFT.partition(b" - - 1795300666.8")[0][:-2], "the end of the line is missing"),
        (SWIFT.partition(b"6998901 ")[0], "the end of the line is missing"),
        (SWIFT[:120], "the end of the line is missing"),
        (TEMPLATED, "a proxy with a log_msg_template wrote it"),
        (b"p1 proxy-server: " + TEMPLATED, "a proxy with a log_msg_template wrote it"),
    ],
)
def test_lines_of_a_proxy_that_lack_something_cannot_be_read(line: bytes, advice: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        find_request_format("swift").read(line)
    assert suggest_format(line).startswith(advice)


def test_a_line_in_a_template_whose_middle_is_taken_out_cannot_be_read() -> None:
    template = "{start_time} {method} {path} {client_ip} {status_int} {bytes_sent} {source}"
    read = find_request_format("swift", template).read
    assert read(TEMPLATED.replace(b" 200 ", b" 1.2.3.4 200 ")) is not None
    with pytest.raises(ValueError, match="whole line"):
        read(TEMPLATED.replace(b"o 200 ", b" ... 200 "))


@pytest.mark.parametrize(
    "line",
    [
        b"proxy-server: ERROR with Object server o1:6200/d3 re: Trying to GET /v1/AUTH_a/c/a b 404: Timeout",
        b"proxy-server: STDERR: 10.0.0.1 - - [21/Nov/2026 22:37:46] "
        + b'"GET /v1/AUTH_a/c/o HTTP/1.1" 200 17',
        b"Object update sweep ... completed: 0.40s",
        HAPROXY,
        NGINX.replace(b"/bucket/key", b"/v1/AUTH_a/c/o"),
    ],
)
def test_what_others_write_into_a_log_of_swift_is_left_out(line: bytes) -> None:
    assert find_request_format("swift").read(line) is None


def test_every_line_of_genuine_logs_is_a_request_or_left_out() -> None:
    paths = [path for path in DATA.glob("*.log") if "syslog" not in path.name]
    found = read_requests([LogFile(path, "n") for path in paths], find_request_format("swift"))
    assert len(paths) > 4
    assert (found.unreadable, found.are_few) == (0, False)
    assert found.left_out > len(found)


@pytest.mark.parametrize(
    ("user", "account"),
    [
        (b" test:tester", b"test"),
        (b" 8fa2", b"8fa2"),  # a key of Keystone
        (b" -", b""),
        (b"", b""),  # before Swift 2.36
        (b" (txn: tx2fb49ad9eae8482080275-006b021d3a)", b""),
        (b" host=p1", b""),
    ],
)
def test_the_account_of_a_request_of_s3api_is_found_by_its_user(user: bytes, account: bytes) -> None:
    line = SWIFT.replace(b"/v1/AUTH_test/c/o18081", b"/bkt/key").removesuffix(b" -") + user
    found = find_request_format("swift").read(line)
    assert found is not None
    assert (found.account, found.container, found.name) == (account, b"bkt", b"key")
    found = find_request_format("swift").read(SWIFT.removesuffix(b" -") + user)
    assert found is not None
    assert found.account == b"AUTH_test"


def test_the_account_of_a_request_of_s3api_in_a_template() -> None:
    read = find_request_format(
        "swift", "{access_user_id} {start_time} {method} {path} {status_int} {bytes_sent} {source}"
    ).read
    line = TEMPLATED.replace(b"/v1/AUTH_test/c/o", b"/bkt/key")
    for user, account in ((b"a:b ", b"a"), (b"- ", b"")):
        found = read(user + line)
        assert found is not None
        assert found[6:9] == (account, b"bkt", b"key")


def test_a_line_of_s3_has_the_size_of_a_partly_read_object() -> None:
    found = find_request_format("s3").read(S3)
    assert found is not None
    assert (found.began, found.seconds, found.kind) == (1549411238.0, 0.28, "read")
    assert (found.size, found.moved, found.name) == (41754289, 4406583, b"a b/c")
    assert found.whole
    assert find_request_format("s3").read(S3.replace(b"REST.GET.OBJECT", b"S3.EXPIRE.OBJECT")) is None


def test_a_record_of_ceph_has_the_method_of_its_uri_and_the_size_of_the_object() -> None:
    found = find_request_format("rgw").read(RGW)
    assert found is not None
    assert (found.began, found.seconds, found.kind) == (1795357445.518302, 0.007, "range")
    assert (found.size, found.moved, found.container, found.name) == (100, 10, b"ccc", b"lo g")
    head = find_request_format("rgw").read(RGW.replace(b"GET /swift/v1/AUTH_test/ccc", b"HEAD "))
    assert head is not None
    assert (head.kind, head.container, head.name, head.size) == ("head", b"ccc", b"lo g", 100)


@pytest.mark.parametrize("method", [b"POST", b"DELETE"])
def test_what_changes_no_data_at_ceph_has_no_size(method: bytes) -> None:
    """Ceph says 0 of it."""
    found = find_request_format("rgw").read(
        RGW.replace(b'"GET ', b'"%b ' % method).replace(b'"object_size":100', b'"object_size":0')
    )
    assert found is not None
    assert (found.kind, found.size) == (method.decode().lower(), UNKNOWN_SIZE)


@pytest.mark.parametrize(
    "text",
    [
        b'Server http-in/s1 is DOWN, reason: Layer7 wrong status, code: 503, info: "HTTP/1.1 503".',
        b"Backup Server http-in/s2 is UP, reason: Layer4 check passed, check duration: 0ms.",
        b"Server http-in/s1 was DOWN and now enters maintenance.",
        b"Health check for server http-in/s1 failed, reason: Layer4 timeout, check duration: 2001ms.",
        b"backend http-in/a has no server available!",
        b"Connect from 10.0.1.2:33312 to 10.0.3.31:8012 (www/HTTP)",
    ],
)
def test_what_haproxy_says_of_its_servers_is_no_request(text: bytes) -> None:
    assert find_request_format("haproxy").read(b"Feb  6 12:14:14 localhost haproxy[14389]: " + text) is None


def test_haproxy_and_nginx_by_default_and_by_a_format_of_their_own() -> None:
    found = find_request_format("haproxy").read(HAPROXY)
    assert found is not None
    assert (found.began, found.seconds, found.status, found.moved) == (1233922454.655, 0.109, 200, 2750)
    assert (found.account, found.name, found.source, found.whole) == (b"AUTH_a", b"o p", b"10.0.1.2", False)
    plain = find_request_format("nginx").read(NGINX)
    assert plain is not None
    assert (plain.began, plain.kind, plain.container, plain.name) == (1549411238.0, "head", b"bucket", b"key")
    assert math.isnan(plain.seconds)
    assert plain.whole
    own = find_request_format("nginx", "$msec $request_time $request_method $request_uri $status $bytes_sent")
    timed = own.read(b"1549411238.500 0.250 GET /bucket/key 200 99")
    assert timed is not None
    assert (timed.began, timed.size, timed.whole) == (1549411238.25, 99, False)
    assert any("bytes_sent: headers are counted too" in each for each in own.doubts)


@pytest.mark.parametrize(
    ("field", "text", "began", "whole"),
    [
        ("%T", b"25/Oct/2026:00:59:40 +0000", 1792889980.0, True),
        ("%Tl", b"25/Oct/2026:02:59:40 +0200", 1792889980.0, True),
        ("%trg", b"25/Oct/2026:00:59:40 +0000", 1792889980.0, True),
        ("%trl", b"25/Oct/2026:02:00:40 +0100", 1792890040.0, True),
        ("%Ts", b"1792889980", 1792889980.0, True),
        ("%Ts.%ms", b"1792889980.250", 1792889980.25, False),
    ],
)
def test_each_time_of_haproxy_is_read(field: str, text: bytes, began: float, whole: bool) -> None:
    found = find_request_format("haproxy", f'{{"t":"{field}","m":"%HM","u":"%HU","s":%ST}}').read(
        b'{"t":"%b","m":"GET","u":"/v1/a/c/o","s":200}' % text
    )
    assert found is not None
    assert (found.began, found.whole) == (began, whole)


def test_a_quotation_mark_within_a_quoted_field() -> None:
    """As nginx writes it with ``escape=json``, and a backslash at the end as HAProxy does."""
    read = find_request_format(
        "nginx", '{"t":"$msec","ua":"$http_user_agent","r":"$request","s":"$status"}'
    ).read
    for agent in (rb"a (\"b\")", rb"\"", rb"ends in \\", b"ends in \\"):
        found = read(b'{"t":"1549411238.500","ua":"%b","r":"GET /bucket/key HTTP/1.1","s":"200"}' % agent)
        assert found is not None
        assert (found.began, found.kind) == (1549411238.5, "read")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("nginx", NGINX.replace(b"HEAD /bucket/key HTTP/1.1", rb"\x16\x03 \x01/")),
        ("nginx", NGINX.replace(b"HEAD /bucket/key HTTP/1.1", b"")),
        (
            "haproxy",
            HAPROXY.replace(b"GET /v1/AUTH_a/c/o%20p HTTP/1.1", b"<BADREQ>").replace(b"/30/", b"/-1/"),
        ),
    ],
)
def test_what_is_no_http_is_left_out(name: str, line: bytes) -> None:
    assert find_request_format(name).read(line) is None


@pytest.mark.parametrize(
    ("name", "template", "line"),
    [
        ("nginx", None, NGINX.replace(b"HEAD", b"PUT").replace(b" 404 ", b" 201 ")),
        ("haproxy", None, HAPROXY.replace(b"GET", b"PUT")),
        ("nginx", "$msec $request_method $request_uri $status", b"1.500 GET /bucket/key 200"),
    ],
)
def test_a_size_for_which_there_is_no_field_is_unknown(name: str, template: str | None, line: bytes) -> None:
    found = find_request_format(name, template).read(line)
    assert found is not None
    assert found.size == UNKNOWN_SIZE
    assert found.moved >= 0


@pytest.mark.parametrize(
    ("line", "kind", "size", "moved"),
    [
        (IBM, "read", 1056, 1056),
        (b"1 REST.GET.OBJECT 8d 1056 0 9", "range", 1056, 10),
        (b"1 REST.PUT.OBJECT 8d 1056", "put", 1056, 1056),
        (b"1 REST.HEAD.OBJECT 8d", "head", UNKNOWN_SIZE, 0),
        (b"1 REST.DELETE.OBJECT 8d", "delete", UNKNOWN_SIZE, 0),
        (b"1 REST.COPY.OBJECT 8d 7", "copy", 7, 0),
    ],
)
def test_lines_of_ibm(line: bytes, kind: str, size: int, moved: int) -> None:
    found = find_request_format("ibm-cos").read(line)
    assert found is not None
    assert (found.kind, found.size, found.moved) == (kind, size, moved)


@pytest.mark.parametrize(
    ("name", "template", "lacking"),
    [
        ("swift", "{method} {path} {status_int}", "a time"),
        ("nginx", "$msec $request", "the status"),
        ("haproxy", "%t %ST", "the method and the path"),
        ("s3", "x", "--log-format is for"),
        ("nginx", "", "a time"),
    ],
)
def test_a_template_that_lacks_something_is_refused(name: str, template: str, lacking: str) -> None:
    with pytest.raises(UsageError, match=lacking):
        find_request_format(name, template)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", REQUEST_FORMATS)
@pytest.mark.parametrize("piece", [b' "', b"- ", b"/", b"%25", b"a", b"[06/Feb/2019:00:00:38", b'\\"', b"{"])
def test_no_long_line_takes_long(name: str, piece: bytes) -> None:
    read = find_request_format(name).read
    for line in (SWIFT, S3, RGW, HAPROXY, NGINX):
        for long in (piece * 20_000, line[: len(line) // 2] + piece * 20_000):
            with contextlib.suppress(ValueError, OverflowError):
                read(long)


@pytest.mark.parametrize("name", REQUEST_FORMATS)
@given(data=st.data())
def test_a_damaged_line_is_no_other_error(name: str, data: st.DataObject) -> None:
    line = data.draw(st.sampled_from([SWIFT, S3, RGW, HAPROXY, NGINX, IBM]))
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(line))] * 2)))
    with contextlib.suppress(ValueError, OverflowError):
        find_request_format(name).read(line[:begin] + data.draw(st.binary(max_size=9)) + line[end:])
