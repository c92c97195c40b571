"""The bytes of requests to an S3 store."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ssbench.base.errors import UsageError
from ssbench.base.version import __version__
from ssbench.scenario.names import OBJECT_NUMBER_FORMAT
from ssbench.scenario.value_rules import PayloadMode
from ssbench.store.contract import Listing, MultipartUpload, StoreRequest
from ssbench.store.http.dialect import HashedPattern, quote_name
from ssbench.store.s3 import dialect as dialect_module
from ssbench.store.s3 import signing
from ssbench.store.s3.dialect import S3Dialect, parse_s3_url
from ssbench.store.s3.signing import AccessKey, Crc32, RequestSigner

KEY = AccessKey(access="test:tester", secret="testing")
BEGINNING = f" HTTP/1.1\r\nHost: h:8080\r\nUser-Agent: ssbench/{__version__}\r\n".encode()
NOW = 1_700_000_010
with pytest.MonkeyPatch.context() as patch:
    patch.setattr(time, "time", lambda: float(NOW))
    TOKEN = KEY.pack()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect_module, "time", lambda: float(NOW))
    monkeypatch.setattr(time, "time", lambda: float(NOW))


def made(payload: PayloadMode = "unsigned") -> S3Dialect:
    return S3Dialect("s3+http://h:8080", payload=payload)


def parts(
    request: StoreRequest,
    token: str | None = TOKEN,
    payload: PayloadMode = "unsigned",
    digest: bytes | None = None,
) -> tuple[str, dict[str, str], bytes]:
    """Return the request line, the fields by names in lower case, and the body."""
    head, _, body = made(payload).head(request, token, digest).partition(b"\r\n\r\n")
    line, *lines = head.decode().split("\r\n")
    return line, {name.lower(): value for name, value in (each.split(": ", 1) for each in lines)}, body


@pytest.mark.parametrize(
    ("request_", "line", "expected"),
    [
        (StoreRequest(method="GET"), "GET /", {}),
        (StoreRequest(method="HEAD", container="b-0"), "HEAD /b-0", {}),
        (
            StoreRequest(method="GET", container="b-0", name="a/ü?", part=(3, 9)),
            "GET /b-0/a/%C3%BC%3F",
            {"range": "bytes=3-9"},
        ),
        (
            StoreRequest(method="PUT", container="b-0", name="a", size=7, owner="me", delete_after=60),
            "PUT /b-0/a",
            {"content-length": "7", "x-amz-meta-ssbench-owner": "me", "x-delete-after": "60"},
        ),
        (
            StoreRequest(method="PUT", container="b-0", name="a", metadata=(("Ssbench-0", "f0"),)),
            "PUT /b-0/a",
            {"x-amz-meta-ssbench-0": "f0", "content-length": "0"},
        ),
        (
            StoreRequest(method="COPY", container="b-0", name="new", copy_from="old ä"),
            "PUT /b-0/new",
            {"x-amz-copy-source": "/b-0/old%20%C3%A4", "content-length": "0"},
        ),
        (
            StoreRequest(method="COPY", container="b-0", name="new", copy_from="old", owner="me"),
            "PUT /b-0/new",
            {"x-amz-metadata-directive": "REPLACE", "x-amz-meta-ssbench-owner": "me"},
        ),
        (
            StoreRequest(method="GET", container="b-0", name="a", part_number=2, version="v 1"),
            "GET /b-0/a?partNumber=2&versionId=v%201",
            {},
        ),
        (
            StoreRequest(method="GET", container="b-0", listing=Listing(limit=3, prefix="l/", marker="x")),
            "GET /b-0?encoding-type=url&list-type=2&max-keys=3&prefix=l%2F&start-after=x",
            {},
        ),
        (
            StoreRequest(
                method="GET", container="b-0", listing=Listing(limit=3, marker="x", following="bC8y=")
            ),
            "GET /b-0?continuation-token=bC8y%3D&encoding-type=url&list-type=2&max-keys=3",
            {},
        ),
        (StoreRequest(method="GET", listing=Listing(limit=3)), "GET /", {}),
        (
            StoreRequest(method="GET", container="b-0", listing=Listing(limit=3, of="uploads")),
            "GET /b-0?encoding-type=url&max-uploads=3&uploads=",
            {},
        ),
        (
            StoreRequest(method="GET", container="b-0", listing=Listing(limit=3, of="versions", prefix="l/")),
            "GET /b-0?encoding-type=url&max-keys=3&prefix=l%2F&versions=",
            {},
        ),
        (
            StoreRequest(method="POST", container="b-0", name="a", upload=MultipartUpload("begin")),
            "POST /b-0/a?uploads=",
            {"content-length": "0"},
        ),
        (
            StoreRequest(
                method="PUT", container="b-0", name="a", upload=MultipartUpload("part", "u"), part_number=4
            ),
            "PUT /b-0/a?partNumber=4&uploadId=u",
            {},
        ),
        (
            StoreRequest(method="DELETE", container="b-0", name="a", upload=MultipartUpload("abort", "u")),
            "DELETE /b-0/a?uploadId=u",
            {},
        ),
        (
            StoreRequest(method="GET", path="/b-0/x%20y?acl", headers=(("X-Amz-Other", "1"), ("A", "2"))),
            "GET /b-0/x%20y?acl=",
            {"x-amz-other": "1", "a": "2"},
        ),
    ],
)
def test_what_is_wanted_has_names_in_s3(request_: StoreRequest, line: str, expected: dict[str, str]) -> None:
    found, fields, _ = parts(request_)
    assert found == f"{line} HTTP/1.1"
    assert {name: fields.get(name) for name in expected} == expected
    path, _, query = line.split(" ")[1].partition("?")
    signed = {name: value for name, value in fields.items() if name.startswith("x-amz-")}
    for own in ("x-amz-date", "x-amz-content-sha256"):
        del signed[own]
    again = RequestSigner(KEY, "h:8080").sign(found.split(" ")[0], path, query, signed, now=NOW)
    assert fields["authorization"] == again["authorization"]


def test_bodies_that_a_request_means_are_made() -> None:
    _, fields, body = parts(StoreRequest(method="POST", container="b-0", deletes=(("a", ""), ("b", "v"))))
    assert body.startswith(b"<Delete>")
    assert fields["content-md5"] == base64.b64encode(hashlib.md5(body).digest()).decode()
    assert fields["content-length"] == str(len(body))
    end = MultipartUpload("end", "u", ("e1", "e2"))
    line, _, body = parts(StoreRequest(method="POST", container="b-0", name="a", upload=end))
    assert line.startswith("POST /b-0/a?uploadId=u ")
    assert body.count(b"<Part>") == 2


def test_an_anonymous_request_is_not_signed() -> None:
    _, fields, _ = parts(StoreRequest(method="GET", container="b-0", name="a"), None)
    assert not [name for name in fields if name.startswith("x-amz") or name == "authorization"]


def test_a_signature_in_the_query_takes_the_place_of_fields() -> None:
    line, fields, _ = parts(StoreRequest(method="GET", container="b-0", name="a", signature="900"))
    assert "authorization" not in fields
    query = RequestSigner(KEY, "h:8080").presign("GET", "/b-0/a", [], 900, NOW)
    assert line == f"GET /b-0/a?{query} HTTP/1.1"


UPLOAD = StoreRequest(method="PUT", container="b-0", name="a", size=5, owner="me")
PART = structs.replace(UPLOAD, upload=MultipartUpload("part", "u"), part_number=4, owner=None)


@pytest.mark.parametrize("request_", [UPLOAD, PART])
@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_bodies_are_said_as_botocore_says_them(
    request_: StoreRequest, payload: PayloadMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    botocore_auth = pytest.importorskip("botocore.auth")
    awsrequest = pytest.importorskip("botocore.awsrequest")
    credentials = pytest.importorskip("botocore.credentials")
    hash_, context = (
        (hashlib.sha256, {})
        if payload == "signed"
        else (Crc32, {"checksum": {"request_algorithm": {"in": "trailer"}}})
    )
    line, fields, body = parts(request_, payload=payload, digest=hash_(b"12345").digest())
    assert body == b""
    # Others are not signed.
    own = {name: fields[name] for name in fields if name.startswith("x-amz-") and name != "x-amz-date"}
    del own["x-amz-content-sha256"]
    again = awsrequest.AWSRequest("PUT", f"http://h:8080{line.split(' ')[1]}", headers=own, data=b"12345")
    again.context |= {"client_config": SimpleNamespace(s3={"payload_signing_enabled": True}), **context}
    monkeypatch.setattr(
        botocore_auth, "get_current_datetime", lambda: datetime.fromtimestamp(NOW // 30 * 30, UTC)
    )
    botocore_auth.S3SigV4Auth(credentials.Credentials(KEY.access, KEY.secret), "s3", KEY.region).add_auth(
        again
    )
    for name in ("Authorization", "X-Amz-Content-SHA256", "X-Amz-Date"):
        assert fields[name.lower()] == again.headers[name]
    if payload == "chunked":
        assert fields["content-encoding"] == "aws-chunked"
        assert fields["x-amz-decoded-content-length"] == "5"
        assert fields["x-amz-trailer"] == "x-amz-checksum-crc32"


@pytest.mark.parametrize("own", [{}, {"Content-Encoding": "gzip"}])
def test_an_encoding_of_the_scenario_is_joined_as_botocore_joins_it(own: dict[str, str]) -> None:
    httpchecksum = pytest.importorskip("botocore.httpchecksum")
    whole = structs.replace(UPLOAD, body=b"12345", headers=tuple(own.items()))
    _, fields, body = parts(whole, payload="chunked")
    algorithm = {"algorithm": "crc32", "in": "trailer", "name": signing.CHECKSUM_FIELD}
    header = {"name": "x-amz-sdk-checksum-algorithm", "value": "CRC32"}
    again: dict[str, Any] = {
        "context": {"checksum": {"request_algorithm": algorithm, "request_algorithm_header": header}},
        "headers": dict(own),
        "body": b"12345",
    }
    httpchecksum.apply_request_checksum(again)
    assert body == again["body"].read()
    # With a length there is no transfer coding.
    assert again["headers"].pop("Transfer-Encoding") == "chunked"
    assert {name: fields[name.lower()] for name in again["headers"]} == again["headers"]
    line, *_ = made("chunked").head(whole, TOKEN).split(b"\r\n\r\n")
    assert line.lower().count(b"content-encoding:") == 1
    # Elsewhere it is what the scenario says.
    _, fields, _ = parts(whole, payload="signed")
    assert fields.get("content-encoding") == own.get("Content-Encoding")


@pytest.mark.parametrize(
    ("payload", "expected"), [("unsigned", None), ("signed", None), ("chunked", "CRC32")]
)
def test_an_upload_announces_the_checksums_of_its_parts(payload: PayloadMode, expected: str | None) -> None:
    begin = StoreRequest(
        method="POST",
        container="b-0",
        name="a",
        upload=MultipartUpload("begin"),
        headers=(("Content-Encoding", "gzip"),),
    )
    _, fields, _ = parts(begin, payload=payload)
    assert fields.get("x-amz-checksum-algorithm") == expected
    assert ("x-amz-checksum-algorithm;" in fields["authorization"]) is (expected is not None)
    assert fields["content-encoding"] == "gzip"
    _, fields, _ = parts(PART, payload=payload, digest=bytes(32))
    assert "x-amz-checksum-algorithm" not in fields
    end = MultipartUpload("end", "u", ("e1", "e2"), ("c1", "c2"))
    _, _, body = parts(structs.replace(begin, upload=end), payload=payload)
    assert body.count(b"<ChecksumCRC32>") == 2


@pytest.mark.parametrize(
    ("payload", "request_", "said"),
    [
        ("unsigned", structs.replace(UPLOAD, payload="signed", body=b"x"), hashlib.sha256(b"x").hexdigest()),
        ("signed", StoreRequest(method="GET", container="b-0", name="a"), signing.EMPTY_PAYLOAD),
        ("chunked", StoreRequest(method="GET", container="b-0", name="a"), signing.EMPTY_PAYLOAD),
        ("chunked", structs.replace(UPLOAD, payload="unsigned"), "UNSIGNED-PAYLOAD"),
        ("chunked", structs.replace(UPLOAD, method="COPY", copy_from="b"), signing.EMPTY_PAYLOAD),
        ("chunked", structs.replace(UPLOAD, path="/b-0/a", body=b"x"), hashlib.sha256(b"x").hexdigest()),
        ("signed", structs.replace(UPLOAD, size=0), signing.EMPTY_PAYLOAD),
        ("chunked", structs.replace(UPLOAD, size=0), signing.CHUNKED_PAYLOAD),
        ("chunked", structs.replace(UPLOAD, body=b"xyz"), signing.CHUNKED_PAYLOAD),
    ],
)
def test_only_objects_and_parts_are_in_chunks(
    payload: PayloadMode, request_: StoreRequest, said: str
) -> None:
    _, fields, body = parts(request_, payload=payload)
    assert fields["x-amz-content-sha256"] == said
    own = request_.body or b""
    if said == signing.CHUNKED_PAYLOAD:
        assert int(fields["content-length"]) == len(body)
        assert body.startswith(b"%x\r\n%b" % (len(own), own))
    else:
        assert body == own


@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_what_has_no_credentials_or_a_signature_says_nothing(payload: PayloadMode) -> None:
    assert made(payload).choose_hash(UPLOAD, None) is None
    assert made(payload).choose_hash(structs.replace(UPLOAD, signature="9"), TOKEN) is None
    _, fields, _ = parts(UPLOAD, None, payload)
    assert fields["content-length"] == "5"
    assert "x-amz-content-sha256" not in fields


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20) | st.sampled_from(
    ["%", "%d", "100%25", "a b", "_", "/", "?x", "#", "é", "x HTTP/1.1\r\n", "\n\n"]
)


@given(
    st.sampled_from(get_args(PayloadMode)),
    st.sampled_from(["GET", "HEAD", "PUT", "DELETE"]),
    NAMES | st.just(""),
    st.none() | st.integers(1, 10**9),
    st.none() | st.just("1a2b %s  x"),
    st.lists(
        st.tuples(st.sampled_from(["X-A", "x-amz-acl", "Content-Encoding"]), st.text("a%äbd ", max_size=5)),
        max_size=1,
    ),
    st.integers(0, 10**7),
    st.integers(1, 2**20),
)
def test_a_pattern_makes_the_requests_that_are_made_one_by_one(
    payload: PayloadMode,
    method: str,
    stem: str,
    delete_after: int | None,
    owner: str | None,
    headers: list[tuple[str, str]],
    number: int,
    size: int,
) -> None:
    dialect = made(payload)
    request = StoreRequest(
        method=method,
        container="b-0",
        name=stem + OBJECT_NUMBER_FORMAT % number if stem else f"ä%{number}",
        size=size if method == "PUT" else 0,
        delete_after=delete_after,
        owner=owner,
        headers=tuple(headers),
    )
    pattern = dialect.pattern(structs.replace(request, name="", size=0), stem, TOKEN)
    which: Any = number if stem else quote_name(request.name).encode()
    if not isinstance(pattern, HashedPattern):
        values = (which, size, b"body") if method == "PUT" else which
        expected = dialect.head(request, TOKEN) + (b"body" if method == "PUT" else b"")
        assert sorted((pattern % values).split(b"\r\n")) == sorted(expected.split(b"\r\n"))
        return
    digest = pattern.make_hash(b"body").digest()
    (before, _), *rest = dialect.frame_body(structs.replace(request, size=size), digest)
    expected = dialect.head(request, TOKEN, digest) + before + b"body"
    found = pattern % (which, size, b"body", digest)
    assert sorted(found.split(b"\r\n")) == sorted(expected.split(b"\r\n"))
    assert pattern.ending(digest) == b"".join(each for each, _ in rest)


def test_a_pattern_follows_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    dialect = made()
    request = StoreRequest(method="GET", container="b-0")
    one, two = (dialect.pattern(request, stem, TOKEN) for stem in ("a_", "b_"))
    for moment in (NOW + 1, NOW + 86_400, NOW + 5):  # the clock may be set back
        monkeypatch.setattr(dialect_module, "time", lambda moment=moment: float(moment))
        monkeypatch.setattr(time, "time", lambda moment=moment: float(moment))
        for pattern, stem in ((one, "a_"), (two, "b_")):
            alone = dialect.head(structs.replace(request, name=f"{stem}000001"), TOKEN)
            assert sorted((pattern % 1).split(b"\r\n")) == sorted(alone.split(b"\r\n"))


def test_signatures_are_kept_as_long_as_their_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect_module, "_MOST_KEPT", 2)
    pattern = made().pattern(StoreRequest(method="GET", container="b-0"), "a_", TOKEN)
    requests = [pattern % number for number in (1, 2, 3, 1)]
    assert len({*requests}) == 3
    assert requests[0] == requests[3]
    monkeypatch.setattr(dialect_module, "time", lambda: NOW + 29.9)
    assert pattern % 1 == requests[0]
    monkeypatch.setattr(dialect_module, "time", lambda: NOW + 30.0)
    assert pattern % 1 != requests[0]


@pytest.mark.parametrize("container", ["ssbench_000000", "Ab-0", "x"])
def test_what_is_no_name_of_a_bucket_is_not_sent(container: str) -> None:
    with pytest.raises(UsageError, match="no underscore"):
        made().head(StoreRequest(method="GET", container=container, name="o"), TOKEN)


@pytest.mark.parametrize("url", ["s3+http://h/v1/AUTH_a", "s3+http://", "s3+https://h?x", "s3+ftp://h"])
def test_an_address_is_a_server_without_a_path(url: str) -> None:
    with pytest.raises(UsageError, match="storage URL"):
        parse_s3_url(url)


def test_an_address_has_a_server_and_a_host() -> None:
    assert parse_s3_url("s3+https://h/") == (("https", "h", 443), "h")


def test_a_copy_that_fails_after_its_answer_began_is_a_fault() -> None:
    body = b"<Error><Code>InternalError</Code><Message>try again</Message></Error>"
    copy = StoreRequest(method="COPY", container="b-0", name="a", copy_from="b")
    end = StoreRequest(method="POST", container="b-0", name="a", upload=MultipartUpload("end", "u"))
    for request in (copy, end):
        assert made().find_fault(request, body) == "InternalError: try again"
        assert made().find_fault(request, b"<CopyObjectResult/>") is None
    assert made().find_fault(StoreRequest(method="GET", container="b-0", name="a"), body) is None
    assert made().describe_error(body) == "InternalError: try again"
    assert made().describe_error(b"<html>") == ""


def test_pages_are_of_entries_or_of_uploads() -> None:
    listing = StoreRequest(method="GET", container="b-0", listing=Listing(limit=1))
    two = b"<ListBucketResult>%b</ListBucketResult>" % (b"<Contents><Key>a</Key></Contents>" * 2)
    with pytest.raises(ValueError, match="2 entries, where 1 were asked for"):
        made().read_page(two, listing)
    uploads = StoreRequest(method="GET", container="b-0", listing=Listing(limit=1, of="uploads"))
    body = (
        b"<ListMultipartUploadsResult><Upload><Key>a</Key><UploadId>u</UploadId></Upload>"
        b"</ListMultipartUploadsResult>"
    )
    page = made().read_page(body, uploads)
    assert (page.rows, page.ids) == ([("a", 0)], ["u"])
    deletion = StoreRequest(method="POST", container="b-0", deletes=(("a", ""),))
    failed = b"<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code></Error></DeleteResult>"
    assert made().read_failures(failed, deletion) == [("a", "AccessDenied")]


def test_a_page_of_versions_has_those_that_were_deleted_too(golden_words: GoldenWords) -> None:
    listing = StoreRequest(method="GET", container="b-0", listing=Listing(limit=9, of="versions"))
    body = (
        b"<ListVersionsResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
        b"<DeleteMarker><Key>a%2Fb+c</Key><VersionId>3</VersionId></DeleteMarker>"
        b"<Version><Key>a%2Fb+c</Key><VersionId>null</VersionId><Size>5</Size></Version>"
        b"<CommonPrefixes><Prefix>x</Prefix></CommonPrefixes></ListVersionsResult>"
    )
    page = made().read_page(body, listing)
    assert (page.rows, page.ids) == ([("a/b c", 0), ("a/b c", 0)], ["3", "null"])
    # A store that takes no notice of the question.
    entry = b"<IsTruncated>true</IsTruncated><Contents><Key>a</Key></Contents>"
    plain = b"<ListBucketResult>%b</ListBucketResult>" % entry
    page = made().read_page(plain, listing)
    assert (page.rows, page.ids) == ([("a", 0)], [""])
    for wrong in (b"<ListAllMyBucketsResult/>", b"<ListVersionsResult><Version/></ListVersionsResult>"):
        with golden_words.raises(ValueError):
            made().read_page(wrong, listing)


def test_the_beginning_of_a_head_is_that_of_every_request() -> None:
    head = made().head(StoreRequest(method="GET", container="b-0", name="o"), TOKEN)
    assert head.startswith(b"GET /b-0/o" + BEGINNING)
    assert re.search(rb"\r\nauthorization: AWS4-HMAC-SHA256 Credential=test:tester/20231114/", head)
