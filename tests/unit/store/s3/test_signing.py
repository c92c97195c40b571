"""Signatures are those that botocore makes."""

from __future__ import annotations

import io
import random
import time
from datetime import UTC, datetime
from hashlib import sha256
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from ssbench.base.errors import UsageError
from ssbench.store.http.dialect import quote_name
from ssbench.store.s3.signing import (
    CHECKSUM_FIELD,
    CHUNK_BYTES,
    UNSIGNED_PAYLOAD,
    AccessKey,
    Crc32,
    RequestSigner,
    SigningKeys,
    format_query,
    frame_chunks,
    measure_chunks,
)

botocore_auth = pytest.importorskip("botocore.auth")
from botocore.awsrequest import AWSRequest  # noqa: E402 - after the check that it is there
from botocore.credentials import Credentials  # noqa: E402
from botocore.httpchecksum import AwsChunkedWrapper, Crc32Checksum  # noqa: E402

CHARACTERS = "abcXYZ019-._~/ +?%&=:@!$'()*,;#[]äß€漢字🗝"
HOST = "127.0.0.1:8080"


class Drawn:
    """One request, drawn at random."""

    def __init__(self, draw: random.Random) -> None:
        def text(most: int) -> str:
            return "".join(draw.choices(CHARACTERS, k=draw.randint(1, most)))

        self.method = draw.choice(["GET", "PUT", "POST", "HEAD", "DELETE"])
        self.path = "/" + quote_name(text(40).lstrip("/"))
        names = draw.sample(["uploads", "prefix", "uploadId", "partNumber", "list-type", "ä b", "X", "x"], 3)
        self.pairs = [(name, draw.choice(["", text(12)])) for name in names[: draw.randint(0, 3)]]
        metadata = [f"x-amz-meta-{draw.randint(0, 99)}" for _ in range(draw.randint(0, 3))]
        self.fields = {name: " ".join(text(10).split()) or "x" for name in metadata}
        self.body = text(20).encode()
        self.payload = draw.choice([UNSIGNED_PAYLOAD, sha256(self.body).hexdigest()])
        self.key = AccessKey(
            access=draw.choice(["test:tester", "AKIDEXAMPLE"]),
            secret=text(40),
            region=draw.choice(["us-east-1", "eu-west-3", ""]) or "RegionOne",
            session=draw.choice(["", "", "session+token/="]),
        )
        self.now = draw.randint(0, 2**32)

    @property
    def url(self) -> str:
        query = format_query(self.pairs)
        return f"http://{HOST}{self.path}" + (f"?{query}" if query else "")


def sign_by_botocore(drawn: Drawn, monkeypatch: pytest.MonkeyPatch, kind: str, **more: Any) -> AWSRequest:
    moment = datetime.fromtimestamp(drawn.now, UTC)
    monkeypatch.setattr(botocore_auth, "get_current_datetime", lambda: moment)
    key = drawn.key
    auth = getattr(botocore_auth, kind)(
        Credentials(key.access, key.secret, key.session or None), "s3", key.region, **more
    )
    fields = {} if "Query" in kind else drawn.fields
    request = AWSRequest(drawn.method, drawn.url, headers=fields, data=b"" if "Query" in kind else drawn.body)
    signs_body = drawn.payload != UNSIGNED_PAYLOAD
    request.context["client_config"] = SimpleNamespace(s3={"payload_signing_enabled": signs_body})
    auth.add_auth(request)
    return request


def test_header_signatures_are_those_of_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(41)
    for _ in range(3_000):
        drawn = Drawn(draw)
        expected = sign_by_botocore(drawn, monkeypatch, "S3SigV4Auth").headers
        found = RequestSigner(drawn.key, HOST).sign(
            drawn.method, drawn.path, format_query(drawn.pairs), drawn.fields, drawn.payload, drawn.now
        )
        assert found["authorization"] == expected["Authorization"], vars(drawn)
        assert found["x-amz-date"] == expected["X-Amz-Date"]


def test_query_signatures_are_those_of_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(42)
    for _ in range(500):
        drawn = Drawn(draw)
        signed = sign_by_botocore(drawn, monkeypatch, "S3SigV4QueryAuth", expires=900)
        found = RequestSigner(drawn.key, HOST).presign(drawn.method, drawn.path, drawn.pairs, 900, drawn.now)
        parts = urlsplit(signed.url)
        assert sorted(parse_qsl(found, True)) == sorted(parse_qsl(parts.query, True)), vars(drawn)


def test_a_signer_follows_the_second_and_the_day() -> None:
    key = AccessKey(access="a", secret="s")
    kept = RequestSigner(key, HOST)
    for moment in (86_399.2, 86_399.9, 86_400.0, 5.0):
        fresh = RequestSigner(key, HOST).sign("GET", "/a/b", now=moment)
        assert kept.sign("GET", "/a/b", now=moment) == fresh
    assert kept.scope.startswith("19700101/")


def test_a_key_passes_as_one_text_without_its_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise of the house: passwords stay with the master. It signs alike for two weeks, and no longer."""
    now = 1_700_000_000
    monkeypatch.setattr(time, "time", lambda: float(now))
    key = AccessKey(access="test:tester", secret="hidden", region="here", session="t")
    text = key.pack()
    assert "hidden" not in text
    assert b"hidden" not in SigningKeys.unpack(text).keys
    found = SigningKeys.unpack(text)
    assert (found.access, found.region, found.session) == ("test:tester", "here", "t")
    assert len(text) < 1000
    for days, equal in ((-2, False), (-1, True), (0, True), (1, True), (14, True), (15, False)):
        moment = now + days * 86_400
        signed, other = (RequestSigner(each, HOST).sign("GET", "/a/b", now=moment) for each in (key, found))
        assert (signed == other) is equal
    for shown in map(repr, (key, found)):
        assert "hidden" not in shown
        assert "session=" not in shown
        assert "keys=" not in shown
    for wrong in ("", "AUTH_tk123", "[1]", '{"access": 1}'):
        with pytest.raises(UsageError, match="none of an S3 store"):
            SigningKeys.unpack(wrong)


@pytest.mark.parametrize(
    "size", [0, 1, 15, 16, 4096, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES, 2_500_000]
)
def test_chunks_are_those_of_botocore(size: int) -> None:
    body = random.Random(size).randbytes(size)
    expected = AwsChunkedWrapper(io.BytesIO(body), Crc32Checksum, CHECKSUM_FIELD).read()
    summed = Crc32(body[:100])
    summed.update(memoryview(body)[100:])
    found, at = b"", 0
    for before, count in frame_chunks(size, summed.digest()):
        found += before + body[at : at + count]
        at += count
    assert (found, at) == (expected, size)
    assert measure_chunks(size) == len(expected)
