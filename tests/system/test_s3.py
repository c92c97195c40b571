"""The S3 API of a real Swift: runs, what botocore reads of them, clean-up, and wrong set-ups."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import swiftclient
from fault_server import FaultServer, Reply, Request
from processes import Fleet
from s3_runs import (
    ALL_OPERATIONS,
    PART,
    SCENARIO,
    Ran,
    check_all_operations,
    check_versions_are_cleaned,
    variables,
)
from said import NOT_S3, OTHER_SECRET

from ssbench.base.errors import AuthenticationError, ClusterError, SsbenchError, UsageError
from ssbench.local_swift import LocalSwift
from ssbench.run.account_cleaner import AccountCleaner, CleanUpSettings
from ssbench.store.contract import MultipartUpload, StoreAccess, StoreRequest
from ssbench.store.credentials import Credentials
from ssbench.store.s3 import signing
from ssbench.store.s3.dialect import parse_upload_id
from ssbench.store.stores import STORE


def url_of(swift: LocalSwift) -> str:
    return f"s3+{swift.address}"


@pytest.fixture
def base(container_base: str) -> str:
    return f"{container_base}-"


def test_a_run_over_s3_is_right_and_what_it_made_is_read_by_botocore(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, base: str
) -> None:
    def look(bucket: str, name: str, answer: dict[str, Any]) -> None:
        """The same is there by Swift's API, under Swift's names."""
        head = account.head_object(bucket, name)
        assert head["x-object-meta-ssbench-owner"] == answer["Metadata"]["ssbench-owner"]

    check_all_operations(fleet, tmp_path, swift, base, look, operation_count=80)
    assert not [each for each in account.get_account()[1] if each["name"].startswith(base)]


#: Bodies that are sent in several pieces, and in several chunks.
LONGER = [
    {"name": "medium", "size_min": 5000, "size_max": 400_000},
    {"name": "long", "size_min": 1_500_000, "size_max": 2_500_000},
]


@pytest.mark.long
@pytest.mark.parametrize("payload", ["signed", "chunked"])
def test_bodies_of_which_the_store_is_told_are_read_by_botocore(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, base: str, payload: str
) -> None:
    def look(_bucket: str, _name: str, answer: dict[str, Any]) -> None:
        assert "ContentEncoding" not in answer

    ran = check_all_operations(
        fleet,
        tmp_path,
        swift,
        base,
        look,
        s3_payload=payload,
        operation_count=80,
        sizes=[*ALL_OPERATIONS["sizes"], *LONGER],
        initial_files={"tiny": 15, "medium": 4, "long": 2, "big": 3},
    )
    assert f"Payload over S3: {payload}" in ran.program.out


def test_a_payload_that_a_store_refuses_is_one_sentence(
    fleet: Fleet, tmp_path: Path, fault_server: FaultServer, base: str
) -> None:
    """As RGW 16 refuses it."""

    def answer(request: Request) -> Reply:
        if request.headers["x-amz-content-sha256"].startswith("STREAMING-"):
            return Reply(400, b"<Error><Code>XAmzContentSHA256Mismatch</Code></Error>")
        if request.method == "GET" and request.target == "/":
            return Reply(200, b"<ListAllMyBucketsResult></ListAllMyBucketsResult>")
        of_bucket = request.method == "GET" and request.target.count("/") == 1
        return Reply(200, b"<ListBucketResult></ListBucketResult>" if of_bucket else b"")

    fault_server.rule = answer
    url = f"s3+http://{urlsplit(fault_server.url).netloc}"
    environment = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s", "HOME": "/nonexistent"}
    ran = Ran(fleet, tmp_path, environment, "-S", url, "--set", "s3_payload=chunked", container_base=base)
    assert ran.code == 2
    said = " ".join(ran.program.err.split())
    assert (
        f"s3_payload: chunked is not possible at {url}, which refuses PUT in chunks with a CRC32 after them"
        " (400): use unsigned or signed"
    ) in said
    assert not [each for each in fault_server.requests if each.method == "PUT" and "tiny" in each.target]


def test_nothing_of_large_objects_stays(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, base: str
) -> None:
    keys = {
        "crud_profile": {"slo": 2, "bulk": 1},
        "operations": [{"name": "slo", "segments": 2, "reads": ["part"]}],
        "operation_count": 6,
        "container_base": base,
    }
    ran = Ran(fleet, tmp_path, variables(swift), "--verify", "-S", url_of(swift), **keys)
    assert (ran.code, ran.errors) == (0, Counter()), ran.program.err
    left = {
        row["name"]
        for each in account.get_account(full_listing=True)[1]
        if each["name"].startswith(base)
        for row in account.get_container(each["name"], full_listing=True)[1]
    }
    assert {name.rpartition("_")[0] for name in left} == {"tiny"}  # the initial objects
    assert len(left) == SCENARIO["initial_files"]["tiny"]


def test_objects_of_a_class_are_in_parts_and_nothing_of_them_stays(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, base: str
) -> None:
    operations = ("create", "create_only", "update", "delete", "read", "range", "parts", "head")
    keys = {
        "sizes": [{"name": "big", "size_min": 6_000_000, "size_max": 11_000_000, "segment_size": PART}],
        "initial_files": {"big": 4},
        "crud_profile": dict.fromkeys(operations, 1),
        "operation_count": 24,
        "user_count": 2,
        "delete_after": 600,
        "operations": [{"name": "update", "etag": True}],
        "container_base": base,
    }
    own = "--verify", "--keep-objects", "-S", url_of(swift)
    ran = Ran(fleet, tmp_path, variables(swift), *own, **keys)
    assert (ran.code, ran.errors) == (0, Counter()), ran.program.err
    assert {row["operation"] for row in ran.rows} == {*operations}
    containers = {each["name"] for each in account.get_account()[1] if each["name"].startswith(base)}
    assert containers == {f"{base}00000{each}{beside}" for each in range(2) for beside in ("", "+segments")}
    expiring = 0
    for bucket in sorted(each for each in containers if not each.endswith("+segments")):
        for row in account.get_container(bucket, full_listing=True)[1]:
            if row["name"].startswith("."):
                continue
            head = account.head_object(bucket, row["name"])
            assert head["x-static-large-object"] == "True"
            assert head["x-object-meta-ssbench-owner"]
            expiring += "x-delete-at" in head
            manifest = json.loads(
                account.get_object(bucket, row["name"], query_string="multipart-manifest=get")[1]
            )
            assert [each["bytes"] for each in manifest[:-1]] == [PART] * (len(manifest) - 1)
            for each in manifest:
                container, _, name = each["name"].strip("/").partition("/")
                segment = account.head_object(container, name)
                assert ("x-delete-at" in segment) == ("x-delete-at" in head)
    assert expiring
    cleaned = fleet.master(
        "cleanup-containers", "--container-base", base, "-S", url_of(swift), environment=variables(swift)
    )
    assert cleaned.end() == 0, cleaned.err
    assert not [each for each in account.get_account()[1] if each["name"].startswith(base)]


@pytest.mark.long
def test_two_apis_of_one_account_are_two_sides(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection
) -> None:
    environment = {"ST_AUTH": swift.auth_url, "ST_USER": swift.user, "ST_KEY": swift.key}
    ran = Ran(fleet, tmp_path, environment, "--verify", "--ab", "swift=@", "s3=@")
    assert (ran.code, ran.errors) == (0, Counter()), ran.program.err
    assert "swift=" in ran.program.out
    assert f"s3={url_of(swift)}" in re.sub(r"\s+", "", ran.program.out)
    assert {row["container"] for row in ran.rows if row["container"]} <= {"ssbench-000000", "ssbench-000001"}
    cleaned = fleet.master("cleanup-containers", "--container-base", "ssbench-", environment=environment)
    assert cleaned.end() == 0
    assert not [each for each in account.get_account()[1] if each["name"].startswith("ssbench-")]


def credentials(swift: LocalSwift, **changes: Any) -> Credentials:
    usual = {"version": "s3", "user": swift.user, "key": swift.key, "storage_urls": (url_of(swift),)}
    return Credentials(**{**usual, **changes})


def test_the_region_is_found(swift: LocalSwift, caplog: pytest.LogCaptureFixture) -> None:
    session = STORE.authenticate(credentials(swift))
    assert signing.SigningKeys.unpack(session.token or "").region == "us-east-1"
    assert STORE.capabilities(StoreAccess(session, (5.0, 5.0))).expires  # because it is a Swift
    assert STORE.clock(session) is not None
    assert not caplog.messages


WRONG: dict[str, tuple[dict[str, Any], type[SsbenchError], str]] = {
    "region": ({"region_name": "mars"}, AuthenticationError, "is 'us-east-1', not 'mars': set AWS_REGION"),
    "secret": ({"key": "x"}, AuthenticationError, f"{OTHER_SECRET} 'test:tester'"),
    "access key": ({"user": "nobody:x"}, AuthenticationError, "does not know this access key"),
    "a query": ({"storage_urls": ("s3+http://127.0.0.1:1/?x",)}, UsageError, r"'s3\+http://.*without a path"),
    "a path": ({"storage_urls": ("s3+http://127.0.0.1:1/v1/AUTH_a",)}, UsageError, "without a path"),
    "nothing there": ({"storage_urls": ("s3+http://127.0.0.1:9",)}, ClusterError, "connect refused"),
    "a token": ({"version": "none", "token": "tk"}, UsageError, "a token is no credential of the S3 API"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_set_up_is_one_sentence(swift: LocalSwift, wrong: str) -> None:
    changes, kind, text = WRONG[wrong]
    with pytest.raises(kind, match=text) as raised:
        STORE.authenticate(credentials(swift, **changes))
    assert str(raised.value).count("\n") == 0


def test_a_clock_that_is_wrong_is_told_in_minutes(swift: LocalSwift, monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = time.time() + 20 * 60
    monkeypatch.setattr(time, "time", lambda: ahead)
    with pytest.raises(AuthenticationError, match="20 minutes ahead of the store's"):
        STORE.authenticate(credentials(swift))


def test_a_proxy_that_changes_requests_is_found(swift: LocalSwift, fault_server: FaultServer) -> None:
    """As it reaches the store under another name."""
    inside = urlsplit(swift.address).netloc

    def forward(request: Request) -> Reply:
        connection = HTTPConnection(inside, timeout=30)
        try:
            fields = {name: value for name, value in request.headers.items() if name.lower() != "host"}
            connection.request(request.method, request.target, headers={**fields, "Host": inside})
            answer = connection.getresponse()
            return Reply(answer.status, answer.read())
        finally:
            connection.close()

    fault_server.rule = forward
    outside = urlsplit(fault_server.url).netloc
    changed = credentials(swift, storage_urls=(f"s3+http://{outside}",))
    expected = f"line that differs is 'host:{outside}' here and 'host:{inside}' there"
    with pytest.raises(AuthenticationError, match=expected):
        STORE.authenticate(changed)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Reply(412, b"Bad URL"), f"HTTP 412 Precondition Failed, {NOT_S3}"),
        (Reply(200, b"<html>A console</html>"), f"a success, {NOT_S3}"),
        (Reply(400, b"The plain HTTP request was sent to HTTPS port"), r"expects TLS there: s3\+https://"),
    ],
)
def test_a_server_without_the_api_is_told(fault_server: FaultServer, answer: Reply, expected: str) -> None:
    fault_server.rule = lambda _request: answer
    wrong = Credentials(
        version="s3", user="a", key="b", storage_urls=(f"s3+http://{urlsplit(fault_server.url).netloc}",)
    )
    with pytest.raises(AuthenticationError, match=expected):
        STORE.authenticate(wrong)


def test_http_where_tls_is_asked_for_is_told(swift: LocalSwift) -> None:
    tls = (url_of(swift).replace("s3+http:", "s3+https:"),)
    with pytest.raises(ClusterError, match=r"TLS error: .*does the server speak TLS there"):
        STORE.authenticate(credentials(swift, storage_urls=tls))


def test_what_s3_does_not_have_is_refused_by_name(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, base: str
) -> None:
    profile = {"read": 5, "post": 1, "symlink": 1, "versions": 1, "dlo": 1, "public": 1, "head_account": 1}
    ran = Ran(
        fleet, tmp_path, variables(swift), "-S", url_of(swift), crud_profile=profile, container_base=base
    )
    assert ran.code == 2
    said = ran.program.err
    for name in ("post", "symlink", "versions", "dlo", "public", "head_account"):
        assert f"{name}: " in said


def test_parts_that_are_too_small_are_refused_before_the_run(
    fleet: Fleet, tmp_path: Path, swift: LocalSwift, base: str
) -> None:
    keys = {
        "crud_profile": {"slo": 1},
        "operations": [{"name": "slo", "segment_size": 1000}],
        "container_base": base,
    }
    ran = Ran(fleet, tmp_path, variables(swift), "-S", url_of(swift), **keys)
    assert ran.code == 2
    assert "parts of less than 5,242,880 bytes" in " ".join(ran.program.err.split())


def test_an_underscore_is_refused_with_a_hint(fleet: Fleet, tmp_path: Path, swift: LocalSwift) -> None:
    ran = Ran(fleet, tmp_path, variables(swift), "-S", url_of(swift), container_base="mine")
    assert ran.code == 2
    assert "'mine_000000' is no name of a bucket" in ran.program.err
    assert "ends in a hyphen" in ran.program.err


def test_a_bucket_with_versions_is_cleaned(
    fleet: Fleet, swift: LocalSwift, account: swiftclient.Connection, base: str
) -> None:
    check_versions_are_cleaned(fleet, swift, base)
    assert not [each for each in account.get_account()[1] if base in each["name"]]


def test_a_bucket_is_emptied_before_it_is_deleted_and_uploads_are_given_up(
    swift: LocalSwift, account: swiftclient.Connection, base: str
) -> None:
    session = STORE.authenticate(credentials(swift))
    bucket = f"{base}000000"
    timeouts = 10.0, 20.0
    STORE.prepare(
        StoreAccess(session, timeouts), [bucket], None, 1, lambda: None, check=lambda: None, headers={}
    )

    def ask(method: str, **fields: Any) -> Any:
        outcome = STORE.ask(
            StoreAccess(session, timeouts), StoreRequest(method=method, container=bucket, **fields)
        )
        assert outcome.cause is None, outcome
        return outcome

    for number in range(3):
        ask("PUT", name=f"a&b/{number}", body=b"x")
    begun = ask("POST", name="large", upload=MultipartUpload("begin"))
    upload = MultipartUpload("part", parse_upload_id(begun.reply.body))
    ask("PUT", name="large", upload=upload, part_number=1, body=b"part")
    assert [name for name, _ in STORE.find_containers(StoreAccess(session, timeouts), base, None)] == [bucket]
    result = AccountCleaner(session, CleanUpSettings(2)).run([bucket])
    assert (result.containers, result.objects, result.failures) == (1, 3, [])
    assert not [each for each in account.get_account()[1] if each["name"].startswith(base)]
