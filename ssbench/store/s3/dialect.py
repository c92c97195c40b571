"""The bytes of requests to an S3 store, and what is in bodies of its answers.

Addresses begin with ``s3+http://`` or ``s3+https://``; a bucket is the first part of the path. Names and
values of what is wanted become fields that begin with ``x-amz-``, or parameters of the query; both are
signed. What Swift has beside that, such as the time after which an object expires, is sent under Swift's
name, which its s3api passes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from time import time
from typing import Any
from urllib.parse import parse_qsl

from msgspec import structs

from ssbench.base.errors import UsageError
from ssbench.scenario.names import OBJECT_NUMBER_FORMAT
from ssbench.scenario.operations import Header
from ssbench.store.contract import ListingPage, StoreRequest
from ssbench.store.credentials import S3_PREFIX
from ssbench.store.http.dialect import (
    WITH_LENGTH_METHODS,
    ServerEndpoint,
    check_owner,
    format_header_fields,
    format_usual_fields,
    parse_storage_url,
    quote_name,
)
from ssbench.store.s3.answers import (
    encode_md5,
    explain_wrong_bucket,
    find_deletion_faults,
    find_wrong_whole,
    is_bucket_name,
    is_xml_text,
    make_completion_body,
    make_content_md5,
    make_deletion_body,
    parse_fault,
    parse_listing_page,
    parse_upload_id,
    parse_uploads,
)
from ssbench.store.s3.signing import (
    PERIOD_SECONDS,
    UNSIGNED_PAYLOAD,
    RequestSigner,
    SigningKeys,
    format_query,
    make_canonical_request,
    round_moment,
)

#: Signatures that a pattern keeps, some 250 bytes each.
_MOST_KEPT = 4096

_METADATA_PREFIX = "x-amz-meta-"
_OWNER_FIELD = "x-amz-meta-ssbench-owner"
_SIGNED_PREFIX = "x-amz-"


def parse_s3_url(storage_url: str) -> tuple[ServerEndpoint, str]:
    """Return server and ``Host`` field of the address of an S3 store; raises UsageError."""
    endpoint, host, path = parse_storage_url(storage_url.removeprefix(S3_PREFIX))
    if path:
        raise UsageError(
            f"storage URL {storage_url}: expected {S3_PREFIX}http://HOST[:PORT] or {S3_PREFIX}https://...,"
            " without a path, which begins with the name of a bucket"
        )
    return endpoint, host


class S3Dialect:
    """Requests to the address of an S3 store, whose credentials are packed :class:`SigningKeys`."""

    #: There is one account, that of the key.
    path = ""

    #: A SeaweedFS deletes a bucket with all that is in it.
    protects_full = False
    deletes_at_once = 1000
    page_entries = 1000
    uploads_parts = True
    wrong_digest_status = 400

    def __init__(self, storage_url: str, trans_id_extra: str | None = None) -> None:
        self.endpoint, self._host = parse_s3_url(storage_url)
        self._fields = format_usual_fields(self._host, trans_id_extra)
        self._signers: dict[str, RequestSigner] = {}

    def head(self, request: StoreRequest, credentials: str | None) -> bytes:
        """Return a request up to the body that the client makes up; raises UsageError for a wrong field."""
        path, pairs = self._target(request)
        if request.body is None and (body := _make_body(request)) is not None:
            request = structs.replace(request, body=body)
        signed, others = self._own_fields(request)
        method = "PUT" if request.copy_from else request.method
        query = format_query(pairs)
        if credentials is not None:
            signer = self._signer(credentials)
            if request.signature:
                query = signer.presign(method, path, pairs, int(request.signature))
            else:
                signed = signer.sign(method, path, query, signed, UNSIGNED_PAYLOAD)
        lines = format_header_fields(tuple(signed.items())) + others
        if method in WITH_LENGTH_METHODS:
            size = request.size if request.body is None else len(request.body)
            lines += b"Content-Length: %d\r\n" % size
        line = f"{method} {path}?{query}{self._fields}" if query else f"{method} {path}{self._fields}"
        return line.encode() + lines + b"\r\n" + (request.body or b"")

    def _signer(self, credentials: str) -> RequestSigner:
        signer = self._signers.get(credentials)
        if signer is None:
            if len(self._signers) > 1:
                self._signers.clear()  # those before are of no more use
            signer = self._signers[credentials] = RequestSigner(SigningKeys.unpack(credentials), self._host)
        return signer

    def _target(self, request: StoreRequest) -> tuple[str, list[tuple[str, str]]]:
        """Return the path of a request, and its query."""
        pairs = parse_qsl(request.query, keep_blank_values=True)
        if request.path:
            path, _, query = request.path.partition("?")
            return path, pairs + parse_qsl(query, keep_blank_values=True)
        if request.container and not is_bucket_name(request.container):
            raise UsageError(explain_wrong_bucket(request.container))
        path = f"/{request.container}"
        if request.name:
            path += f"/{quote_name(request.name)}"
        if request.part_number:
            pairs.append(("partNumber", str(request.part_number)))
        if request.version:
            pairs.append(("versionId", request.version))
        if request.upload is not None:
            step = request.upload
            pairs.append(("uploads", "") if step.step == "begin" else ("uploadId", step.id))
        if request.deletes:
            pairs.append(("delete", ""))
        listing = request.listing
        if listing is not None and listing.of == "uploads":
            pairs += [("uploads", ""), ("encoding-type", "url"), ("max-uploads", str(listing.limit))]
            pairs += [("prefix", listing.prefix)] if listing.prefix else []
        # A listing of all buckets has no pages.
        elif listing is not None and request.container:
            pairs += [("list-type", "2"), ("encoding-type", "url"), ("max-keys", str(listing.limit))]
            pairs += [
                (name, value)
                for name, value in (
                    ("prefix", listing.prefix),
                    ("delimiter", listing.delimiter),
                    ("start-after", "" if listing.following else listing.marker),
                    ("continuation-token", listing.following),
                )
                if value
            ]
        return path, pairs

    def _own_fields(self, request: StoreRequest) -> tuple[dict[str, str], bytes]:
        """Return the fields of a request that are signed, by names in lower case, and the others."""
        signed = {_METADATA_PREFIX + name.lower(): value for name, value in request.metadata}
        plain = []
        for name, value in request.headers:
            lower = name.lower()
            if lower.startswith(_SIGNED_PREFIX):
                signed[lower] = value
            else:
                plain.append((name, value))
        if request.owner is not None and request.method in WITH_LENGTH_METHODS:
            signed[_OWNER_FIELD] = check_owner(request.owner)
        if request.copy_from:
            signed["x-amz-copy-source"] = f"/{request.container}/{quote_name(request.copy_from)}"
            if request.owner is not None or request.metadata:
                signed["x-amz-metadata-directive"] = "REPLACE"
        if request.deletes and request.body is not None:
            plain.append(("Content-MD5", make_content_md5(request.body)))
        if request.part is not None:
            plain.append(("Range", f"bytes={request.part[0]}-{request.part[1]}"))
        if request.delete_after is not None:
            plain.append(("X-Delete-After", str(request.delete_after)))
        return signed, format_header_fields(tuple(plain))

    def pattern(self, request: StoreRequest, stem: str, credentials: str | None) -> SignedPattern:
        """Return what makes requests of an object's number, of a PUT also of its size and its body.

        Without a ``stem``, which names begin with, it takes the whole name, quoted, in place of a number.
        """
        if credentials is None:
            raise UsageError("an S3 store without credentials")
        path, pairs = self._target(structs.replace(request, name=""))
        if pairs:
            raise UsageError("a pattern of requests with a query")
        signed, others = self._own_fields(request)
        return SignedPattern(
            self._signer(credentials),
            request.method,
            f"{path}/{quote_name(stem)}",
            whole=not stem,
            fields=signed,
            others=self._fields.encode() + others,
        )

    def can_batch(self, name: str) -> bool:
        """Whether an object can be one of those that a request deletes."""
        return is_xml_text(name)

    def digest_field(self, digest: bytes) -> Header:
        """Return the field by which the MD5 of a body is announced."""
        return "Content-MD5", encode_md5(digest)

    def read_page(self, body: bytes, request: StoreRequest) -> ListingPage:
        """Return the entries of a listing; raises ValueError for what is none."""
        if request.listing is not None and request.listing.of == "uploads":
            uploads = parse_uploads(body)
            return ListingPage([(name, 0) for name, _ in uploads], ids=[number for _, number in uploads])
        page = parse_listing_page(body)
        limit = request.listing.limit if request.listing is not None and request.container else 0
        if limit and len(page.rows) > limit:
            raise ValueError(f"{len(page.rows)} entries, where {limit} were asked for")
        return page

    def read_upload(self, body: bytes) -> str:
        """Return the id of an upload that was begun; raises ValueError for what is no such answer."""
        return parse_upload_id(body)

    def read_failures(self, body: bytes, request: StoreRequest) -> dict[str, str]:
        """Return why objects were not deleted; raises ValueError for what is no such answer."""
        return {name: str(fault) for name, fault in find_deletion_faults(body).items()}

    def find_fault(self, request: StoreRequest, body: bytes) -> str | None:
        """Say what went wrong with a request that is answered before it has ended, and failed after all."""
        ends = request.upload is not None and request.upload.step == "end"
        if not (request.copy_from or ends):
            return None
        fault = parse_fault(body)
        if fault is None and request.upload is not None:
            return find_wrong_whole(body, request.upload.etags)
        return None if fault is None else str(fault)

    def describe_error(self, body: bytes) -> str:
        """Return code and message of an error; empty where the body has none."""
        return str(parse_fault(body) or "")


def _make_body(request: StoreRequest) -> bytes | None:
    """Return the body of a request that is made of what it wants."""
    if request.deletes:
        return make_deletion_body(request.deletes)
    if request.upload is not None and request.upload.step == "end":
        return make_completion_body(request.upload.etags)
    return None


class SignedPattern:
    """Requests that differ in the name of their object alone, each with a signature of its own.

    What holds as long as their date does is kept for that: the texts before and after the name, in the
    request and in what is signed, and signatures of requests that may come again.
    """

    __slots__ = (
        "_after",
        "_before",
        "_fields",
        "_form",
        "_kept",
        "_method",
        "_moment",
        "_others",
        "_path",
        "_sends",
        "_signed_after",
        "_signed_before",
        "_signer",
    )

    def __init__(
        self,
        signer: RequestSigner,
        method: str,
        path: str,
        *,
        whole: bool,
        fields: Mapping[str, str],
        others: bytes,
    ) -> None:
        self._signer = signer
        self._method = method
        self._path = path
        self._form = b"%b" if whole else OBJECT_NUMBER_FORMAT.encode()
        self._fields = fields
        self._others = others
        self._sends = method in WITH_LENGTH_METHODS
        self._moment = -PERIOD_SECONDS
        self._kept: dict[int | bytes, bytes] = {}
        self._before = self._after = self._signed_after = b""
        self._signed_before = sha256()

    def __mod__(self, values: Any, /) -> bytes:
        """Return a request for an object; of an upload also of its size, with its body."""
        now = time()
        if not 0 <= now - self._moment < PERIOD_SECONDS:
            self._prepare(round_moment(now))
        number = values[0] if self._sends else values
        name = self._form % number
        signature = self._kept.get(number) or self._sign(number, name)
        if self._sends:
            return b"%b%b%b%b\r\nContent-Length: %d\r\n\r\n%b" % (
                self._before,
                name,
                self._after,
                signature,
                values[1],
                values[2],
            )
        return b"%b%b%b%b\r\n\r\n" % (self._before, name, self._after, signature)

    def _sign(self, number: int | bytes, name: bytes) -> bytes:
        """Return the signature of the request for an object, which is kept as long as its date holds."""
        if self._signer.second != self._moment:
            self._signer.tick(self._moment)
        digest = self._signed_before.copy()
        digest.update(name + self._signed_after)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        signature = self._kept[number] = self._signer.sign_digest(digest.digest())
        return signature

    def _prepare(self, moment: int) -> None:
        """Make what holds as long as the date does."""
        signer = self._signer
        signer.tick(moment)
        self._moment = moment
        self._kept.clear()
        signed = signer.signed_fields(self._fields, UNSIGNED_PAYLOAD)
        text = make_canonical_request(self._method, f"{self._path}\n", "", signed, UNSIGNED_PAYLOAD)
        before, _, after = text.partition("\n\n\n")
        self._signed_before, self._signed_after = sha256(before.encode()), f"\n\n{after}".encode()
        authorization = signer.begin_authorization(";".join(sorted(signed)))
        del signed["host"]
        lines = format_header_fields((*signed.items(), ("authorization", authorization)))
        self._before = f"{self._method} {self._path}".encode()
        self._after = self._others + lines.removesuffix(b"\r\n")
