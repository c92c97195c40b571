"""Signatures of S3 requests (AWS Signature Version 4), in header fields and in queries.

Each request has a signature of its own, which is good for 15 minutes. What is constant for a day, the
signing key, and for half a minute, most of the texts, is kept by :class:`RequestSigner`: half of what a
signature takes.
Signed are the method, the path, the query, ``Host`` and the fields that begin with ``x-amz-``. Other fields
of a request need no signature.
"""

from __future__ import annotations

import hmac
import time
from binascii import b2a_base64, crc32, hexlify
from calendar import timegm
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
from msgspec import Struct

from ssbench.base.errors import UsageError

if TYPE_CHECKING:
    from _hashlib import HASH

#: What is said of a body that is not part of a signature.
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
#: What is said of one in chunks, with a checksum after them.
CHUNKED_PAYLOAD = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
#: What is said of a request without a body, where bodies are signed.
EMPTY_PAYLOAD = sha256(b"").hexdigest()
#: For so many seconds requests have one date, which may be 15 minutes old.
PERIOD_SECONDS = 30

#: Days for which workers get keys, from yesterday on: a key is of one day. They get new ones in good time.
_DAYS = 16
_DAY_SECONDS = 86400
RENEWED_AFTER_SECONDS = 7.0 * _DAY_SECONDS
_KEY_BYTES = 32

_ALGORITHM = "AWS4-HMAC-SHA256"

#: Query parameters, in any order.
QueryPairs = Iterable[tuple[str, str]]

#: Bytes of a block of SHA-256, and what HMAC combines the key with (RFC 2104).
_BLOCK_BYTES = 64
_INNER_PAD, _OUTER_PAD = bytes(each ^ 0x36 for each in range(256)), bytes(each ^ 0x5C for each in range(256))


class AccessKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who signs, and for which region."""

    access: str
    secret: str
    region: str = "us-east-1"
    session: str = ""  # the token of temporary credentials; empty: they are none

    def __repr__(self) -> str:
        return f"AccessKey(access={self.access!r}, region={self.region!r})"

    def key_of(self, day: str) -> bytes:
        """Return the key for the signatures of a day (``20260131``)."""
        return derive_signing_key(self.secret, day, self.region)

    def pack(self) -> str:
        """Return what signs with it for two weeks as one text, for workers: the secret is not in it."""
        first = int(time.time()) // _DAY_SECONDS - 1  # clocks of workers may be late
        days = [time.strftime("%Y%m%d", time.gmtime(_DAY_SECONDS * (first + each))) for each in range(_DAYS)]
        keys = SigningKeys(
            access=self.access,
            first=first,
            keys=b"".join(map(self.key_of, days)),
            region=self.region,
            session=self.session,
        )
        return msgspec.json.encode(keys).decode()


class SigningKeys(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What signs for a region on some days; the secret, which signs for all, does not follow from it."""

    access: str
    first: int  # the first day, counted from 1970
    keys: bytes  # those of each day, one after another
    region: str = "us-east-1"
    session: str = ""  # as of an :class:`AccessKey`

    def __repr__(self) -> str:
        return f"SigningKeys(access={self.access!r}, first={self.first!r}, region={self.region!r})"

    def key_of(self, day: str) -> bytes:
        """Return the key of a day; on others none, whose signatures a store refuses."""
        place = timegm(time.strptime(day, "%Y%m%d")) // _DAY_SECONDS - self.first
        return self.keys[place * _KEY_BYTES : (place + 1) * _KEY_BYTES] if place >= 0 else b""

    @classmethod
    def unpack(cls, text: str) -> SigningKeys:
        """Return what :meth:`AccessKey.pack` made a text of; raises UsageError."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.MsgspecError, ValueError):
            raise UsageError("the credentials are none of an S3 store") from None


def format_query(pairs: QueryPairs) -> str:
    """Return a query as it is signed, and as it is to be sent: encoded and sorted."""
    encoded = sorted((quote(name, "~"), quote(value, "~")) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in encoded)


def make_canonical_request(
    method: str, path: str, query: str, fields: Mapping[str, str], payload: str
) -> str:
    """Return the text of a request that is signed.

    ``path`` is quoted, ``query`` of :func:`format_query`. ``fields`` are those that are signed, by names in
    lower case; ``payload`` is what is said of the body.
    """
    names = sorted(fields)
    lines = "".join([f"{name}:{' '.join(fields[name].split())}\n" for name in names])
    return f"{method}\n{path}\n{query}\n{lines}\n{';'.join(names)}\n{payload}"


def round_moment(now: float) -> int:
    """Return the date of requests that are made now, both in Unix time."""
    return int(now) // PERIOD_SECONDS * PERIOD_SECONDS


def derive_signing_key(secret: str, day: str, region: str) -> bytes:
    """Return the key for the signatures of a day (``20260131``)."""
    key = f"AWS4{secret}".encode()
    for text in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, text.encode(), "sha256")
    return key


def _make_signing(inner: HASH, outer: HASH) -> Callable[[bytes], bytes]:
    """Return what ends an HMAC of which these are its two hashes, with the hexadecimal form of its values."""
    # HMAC itself takes 1.3 µs for each, the two hashes 0.6.
    copy_inner, copy_outer = inner.copy, outer.copy

    def sign_digest(digest: bytes) -> bytes:
        within = copy_inner()
        within.update(hexlify(digest))
        around = copy_outer()
        around.update(within.digest())
        return hexlify(around.digest())

    return sign_digest


class RequestSigner:
    """Makes the signatures of one access key, for requests to one ``host`` (as in the field ``Host``)."""

    def __init__(self, key: AccessKey | SigningKeys, host: str) -> None:
        self.key = key
        self.host = host
        #: The moment that is prepared, in whole seconds of Unix time.
        self.second = -1
        self._day = ""
        #: HMAC with the key of the day, as its two hashes, each after its first block.
        self._keyed = self._outer = sha256()
        #: Returns the signature of a canonical request by its SHA-256, of the moment that was prepared when
        #: this was taken from here.
        self.sign_digest = _make_signing(self._keyed, self._outer)
        #: The date of this second.
        self.date = ""
        self.scope = ""

    def tick(self, now: float | None = None) -> int:
        """Prepare the moment that requests have for their date, in Unix time; return it.

        Without one it is that with which this half minute began: requests that are alike have one signature.
        """
        second = round_moment(time.time()) if now is None else int(now)
        if second != self.second:
            self._prepare(second)
        return second

    def _prepare(self, second: int) -> None:
        self.second = second
        self.date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        day = self.date[:8]
        if day != self._day:
            self._day = day
            key = self.key.key_of(day).ljust(_BLOCK_BYTES, b"\0")
            self._keyed, self._outer = sha256(key.translate(_INNER_PAD)), sha256(key.translate(_OUTER_PAD))
            self.scope = f"{day}/{self.key.region}/s3/aws4_request"
        inner = self._keyed.copy()
        inner.update(f"{_ALGORITHM}\n{self.date}\n{self.scope}\n".encode())
        self.sign_digest = _make_signing(inner, self._outer)

    def sign_text(self, canonical: bytes) -> str:
        """Return the signature of a canonical request of the moment that was prepared last."""
        return self.sign_digest(sha256(canonical).digest()).decode()

    def signed_fields(self, fields: Mapping[str, str], payload: str) -> dict[str, str]:
        """Return all fields that are signed, where a request has these of its own that begin with ``x-amz-``.

        They are of the moment that was prepared last.
        """
        own = {"host": self.host, "x-amz-content-sha256": payload, "x-amz-date": self.date}
        if self.key.session:
            own["x-amz-security-token"] = self.key.session
        return own | dict(fields)

    def begin_authorization(self, names: str) -> str:
        """Return the value of ``Authorization`` up to the signature, for signed fields of these names."""
        return f"{_ALGORITHM} Credential={self.key.access}/{self.scope}, SignedHeaders={names}, Signature="

    def sign(
        self,
        method: str,
        path: str,
        query: str = "",
        fields: Mapping[str, str] | None = None,
        payload: str = UNSIGNED_PAYLOAD,
        now: float | None = None,
    ) -> dict[str, str]:
        """Return the fields that a request needs beside ``Host``: the signed ones, and ``authorization``.

        ``path`` is quoted, ``query`` of :func:`format_query`; ``fields`` have names in lower case.
        """
        self.tick(now)
        signed = self.signed_fields(fields or {}, payload)
        canonical = make_canonical_request(method, path, query, signed, payload)
        beginning = self.begin_authorization(";".join(sorted(signed)))
        del signed["host"]
        signed["authorization"] = beginning + self.sign_text(canonical.encode())
        return signed

    def presign(
        self, method: str, path: str, pairs: QueryPairs, seconds: int, now: float | None = None
    ) -> str:
        """Return the query of a request that needs no further credentials for so many seconds."""
        self.tick(now)
        own = {
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{self.key.access}/{self.scope}",
            "X-Amz-Date": self.date,
            "X-Amz-Expires": str(seconds),
            "X-Amz-SignedHeaders": "host",
        }
        if self.key.session:
            own["X-Amz-Security-Token"] = self.key.session
        query = format_query([*pairs, *own.items()])
        canonical = make_canonical_request(method, path, query, {"host": self.host}, UNSIGNED_PAYLOAD)
        return f"{query}&X-Amz-Signature={self.sign_text(canonical.encode())}"


# -- Bodies in chunks ------------------------------------------------------------------------------

CHECKSUM_FIELD = "x-amz-checksum-crc32"

#: Bytes of all chunks but the last, as botocore has them.
CHUNK_BYTES = 1 << 20


class Crc32:
    """CRC32 of a body, as hashes of :mod:`hashlib` are."""

    __slots__ = ("_value",)

    def __init__(self, data: bytes = b"") -> None:
        self._value = crc32(data)

    def update(self, data: bytes | memoryview, /) -> None:
        """Add the next bytes."""
        self._value = crc32(data, self._value)

    def digest(self) -> bytes:
        """Return it."""
        return self._value.to_bytes(4, "big")


def begin_chunk(size: int) -> bytes:
    """Return what comes before a chunk of so many bytes."""
    return b"%x\r\n" % size


def end_chunks(size: int, digest: bytes) -> bytes:
    """Return what comes after the last chunk of a body of that size and that CRC32."""
    checksum = b2a_base64(digest, newline=False)
    return b"%b0\r\n%b:%b\r\n\r\n" % (b"\r\n" if size else b"", CHECKSUM_FIELD.encode(), checksum)


def frame_chunks(size: int, digest: bytes) -> list[tuple[bytes, int]]:
    """Return what comes before each so many bytes of a body, which is in chunks (aws-chunked)."""
    frames = []
    for first in range(0, size, CHUNK_BYTES):
        count = min(CHUNK_BYTES, size - first)
        frames.append(((b"\r\n" if first else b"") + begin_chunk(count), count))
    return [*frames, (end_chunks(size, digest), 0)]


def measure_chunks(size: int) -> int:
    """Return how many bytes such a body of ``size`` bytes has with all that is around it."""
    # Each chunk is followed by the end of a line.
    whole, last = divmod(size, CHUNK_BYTES)
    framing = whole * (len(begin_chunk(CHUNK_BYTES)) + 2) + (len(begin_chunk(last)) + 2 if last else 0)
    return size + framing + len(end_chunks(0, bytes(4)))
