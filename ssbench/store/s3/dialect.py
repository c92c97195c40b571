"""The bytes of requests to an S3 store, and what is in bodies of its answers.

Addresses begin with ``s3+http://`` or ``s3+https://``; a bucket is the first part of the path. Names and
values of what is wanted become fields that begin with ``x-amz-``, or parameters of the query; both are
signed. What Swift has beside that, such as the time after which an object expires, is sent under Swift's
name, which its s3api passes on.

Bodies are XML. What is no such body raises ValueError, so that a page of a proxy is no empty listing.
"""

from __future__ import annotations

import base64
import re
import secrets
from binascii import hexlify
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import md5, sha256
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from msgspec import Struct, structs

from ssbench.base.errors import UsageError
from ssbench.base.text_values import parse_http_url, redact_url
from ssbench.scenario.names import OBJECT_NUMBER_FORMAT
from ssbench.scenario.operations import Header
from ssbench.scenario.store_kinds import S3
from ssbench.scenario.value_rules import PayloadMode
from ssbench.store.contract import ListingPage, ObjectVersion, StoreRequest
from ssbench.store.http.dialect import (
    WITH_LENGTH_METHODS,
    DialectOpener,
    HashedPattern,
    ServerEndpoint,
    check_owner,
    format_header_fields,
    format_usual_fields,
    parse_storage_url,
    quote_name,
)
from ssbench.store.listing_pages import check_prefix
from ssbench.store.s3.signing import (
    CHECKSUM_FIELD,
    CHUNKED_PAYLOAD,
    EMPTY_PAYLOAD,
    PERIOD_SECONDS,
    UNSIGNED_PAYLOAD,
    Crc32,
    RequestSigner,
    SigningKeys,
    begin_chunk,
    end_chunks,
    format_query,
    frame_chunks,
    make_canonical_request,
    measure_chunks,
    round_moment,
)

if TYPE_CHECKING:
    from ssbench.store.http.bodies import BodyFrames, BodyHash

#: Signatures that a pattern keeps, some 250 bytes each.
_MOST_KEPT = 4096

_METADATA_PREFIX = "x-amz-meta-"
_OWNER_FIELD = "x-amz-meta-ssbench-owner"
_SIGNED_PREFIX = "x-amz-"

#: The fields of a body in chunks: how many bytes the object has, and what comes after them.
_SIZE_FIELD = "x-amz-decoded-content-length"
_CHUNKED_FIELDS = {"x-amz-sdk-checksum-algorithm": "CRC32", "x-amz-trailer": CHECKSUM_FIELD}
_CHUNKED_ENCODING = "aws-chunked"

#: What an upload says when it begins, whose parts are such bodies.
_CHECKSUM_ANNOUNCEMENT = {"x-amz-checksum-algorithm": "CRC32"}

#: Stands for what requests of a pattern do not have in common; nobody can have it in a field.
_VARYING = secrets.token_hex(16)


def parse_s3_url(storage_url: str) -> tuple[ServerEndpoint, str]:
    """Return server and ``Host`` field of the address of an S3 store; raises UsageError."""
    address = storage_url.removeprefix(S3.prefix)
    parts = parse_http_url(address)
    if parts is not None and (parts.path.rstrip("/") or parts.query or parts.fragment):
        raise UsageError(
            f"storage URL {redact_url(storage_url)}: expected {S3.prefix}http://HOST[:PORT] or {S3.prefix}https://...,"
            " without a path, which begins with the name of a bucket"
        )
    endpoint, host, _ = parse_storage_url(address)
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
    part_checksum_field = CHECKSUM_FIELD
    wrong_digest_status = 400

    def __init__(
        self, storage_url: str, trans_id_extra: str | None = None, payload: PayloadMode = "unsigned"
    ) -> None:
        self.endpoint, self._host = parse_s3_url(storage_url)
        self._payload = payload
        self._fields = format_usual_fields(self._host, trans_id_extra)
        self._signers: dict[str, RequestSigner] = {}

    def head(self, request: StoreRequest, credentials: str | None, digest: bytes | None = None) -> bytes:
        """Return a request up to the body that the client makes up; raises UsageError for a wrong field."""
        path, pairs = self._target(request)
        if request.body is None and (body := _make_body(request)) is not None:
            request = structs.replace(request, body=body)
        make_hash = None if credentials is None else self.choose_hash(request, credentials)
        signed, others = self._own_fields(request, chunked=make_hash is Crc32)
        method, body = "PUT" if request.copy_from else request.method, request.body or b""
        length = size = request.size if request.body is None else len(body)
        query = format_query(pairs)
        if credentials is not None:
            signer = self._signer(credentials)
            if digest is None and make_hash is not None:
                digest = make_hash(body).digest()
            if request.signature:
                query = signer.presign(method, path, pairs, int(request.signature))
            elif make_hash is Crc32 and digest is not None:
                signed |= {_SIZE_FIELD: str(size), **_CHUNKED_FIELDS}
                signed = signer.sign(method, path, query, signed, CHUNKED_PAYLOAD)
                length = measure_chunks(size)
                if request.body is not None or not size:
                    body = _join_frames(body, frame_chunks(size, digest))
            else:
                said = UNSIGNED_PAYLOAD if digest is None else digest.hex()
                signed = signer.sign(method, path, query, signed, said)
        lines = format_header_fields(tuple(signed.items())) + others
        if method in WITH_LENGTH_METHODS:
            lines += b"Content-Length: %d\r\n" % length
        line = f"{method} {path}?{query}{self._fields}" if query else f"{method} {path}{self._fields}"
        return line.encode() + lines + b"\r\n" + body

    def choose_hash(
        self, request: StoreRequest, credentials: str | None
    ) -> Callable[[bytes], BodyHash] | None:
        """Return what a request says of its body: nothing, or SHA-256, or CRC32 of one that is in chunks.

        In chunks are objects and parts of them; other bodies are signed then, as those of SDKs are.
        """
        payload = request.payload or self._payload
        if payload == "unsigned" or credentials is None or request.signature:
            return None
        of_object = request.method == "PUT" and request.name and not (request.path or request.copy_from)
        return Crc32 if of_object and payload == "chunked" else sha256

    def frame_body(self, request: StoreRequest, digest: bytes) -> BodyFrames:
        """Return a body of an object, or of a part, as it is sent: in chunks, or as it is."""
        chunked = (request.payload or self._payload) == "chunked"
        return frame_chunks(request.size, digest) if chunked else [(b"", request.size)]

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
        elif listing is not None and listing.of == "versions":
            pairs += [("versions", ""), ("encoding-type", "url"), ("max-keys", str(listing.limit))]
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

    def _own_fields(self, request: StoreRequest, *, chunked: bool) -> tuple[dict[str, str], bytes]:
        """Return the fields of a request that are signed, by names in lower case, and the others.

        ``chunked`` is whether its body is in chunks.
        """
        signed = {_METADATA_PREFIX + name.lower(): value for name, value in request.metadata}
        plain = []
        encodings = []
        for name, value in request.headers:
            lower = name.lower()
            if lower.startswith(_SIGNED_PREFIX):
                signed[lower] = value
            elif chunked and lower == "content-encoding":
                encodings.append(value)
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
        if chunked:
            # In the order in which they were applied. Stores keep the others, which are those of the object.
            plain.append(("Content-Encoding", ",".join([*encodings, _CHUNKED_ENCODING])))
        elif request.upload is not None and request.upload.step == "begin":
            payload = request.payload or self._payload
            signed |= _CHECKSUM_ANNOUNCEMENT if payload == "chunked" else {}
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
        in_chunks = self._payload == "chunked" and request.method in WITH_LENGTH_METHODS
        signed, others = self._own_fields(request, chunked=in_chunks)
        kind: type[SignedPattern] = SignedPattern
        said = UNSIGNED_PAYLOAD
        if self._payload != "unsigned":
            said = EMPTY_PAYLOAD
            if request.method in WITH_LENGTH_METHODS:
                kind, said = (ChunkedPattern, CHUNKED_PAYLOAD) if in_chunks else (SummedPattern, _VARYING)
        return kind(
            self._signer(credentials),
            request.method,
            f"{path}/{quote_name(stem)}",
            whole=not stem,
            fields=signed,
            others=self._fields.encode() + others,
            payload=said,
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
            check_prefix((name for name, _ in uploads), request.listing)
            return ListingPage([(name, 0) for name, _ in uploads], ids=[number for _, number in uploads])
        of_versions = request.listing is not None and request.listing.of == "versions"
        page = parse_versions_page(body) if of_versions else parse_listing_page(body)
        limit = request.listing.limit if request.listing is not None and request.container else 0
        if limit and len(page.rows) > limit:
            raise ValueError(f"{len(page.rows)} entries, where {limit} were asked for")
        if request.container:
            check_prefix((name for name, _ in page.rows), request.listing)
        return page

    def read_upload(self, body: bytes) -> str:
        """Return the id of an upload that was begun; raises ValueError for what is no such answer."""
        return parse_upload_id(body)

    def read_failures(self, body: bytes, request: StoreRequest) -> list[tuple[str, str]]:
        """Return which objects were not deleted, and why; raises ValueError for other answers."""
        return [(name, str(fault)) for name, fault in find_deletion_faults(body)]

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
        return make_completion_body(request.upload.etags, request.upload.checksums)
    return None


def _join_frames(body: bytes, frames: BodyFrames) -> bytes:
    """Return a body with what is around it."""
    joined, at = b"", 0
    for before, count in frames:
        joined += before + body[at : at + count]
        at += count
    return joined


class SignedPattern:
    """Requests that differ in the name of their object alone, each with a signature of its own.

    What holds as long as their date does is kept for that: the texts before and after the name, in the
    request and in what is signed, and signatures of requests that may come again. ``payload`` is what they
    say of their bodies.
    """

    __slots__ = (
        "_after",
        "_before",
        "_copy_beginning",
        "_fields",
        "_form",
        "_kept",
        "_method",
        "_moment",
        "_others",
        "_path",
        "_payload",
        "_sends",
        "_sign_digest",
        "_signed_after",
        "_signed_rest",
        "_signer",
        "_whole",
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
        payload: str,
    ) -> None:
        self._signer = signer
        self._method = method
        self._path = path
        self._form = b"%b" if whole else OBJECT_NUMBER_FORMAT.encode()
        self._fields = fields
        self._others = others
        self._payload = payload
        self._sends = method in WITH_LENGTH_METHODS
        self._moment = -PERIOD_SECONDS
        self._kept: dict[int | bytes, bytes] = {}
        self._before = self._after = self._signed_after = self._signed_rest = self._whole = b""
        self._copy_beginning = sha256().copy
        self._sign_digest = signer.sign_digest

    def __mod__(self, values: Any, /) -> bytes:
        """Return a request for an object; of an upload also of its size, with its body."""
        now = time()
        if not 0 <= now - self._moment < PERIOD_SECONDS:
            self._prepare(round_moment(now))
        if self._sends:
            number, size, body = values
            return self._whole % (number, self._kept.get(number) or self._keep(number), size, body)
        return self._whole % (values, self._kept.get(values) or self._keep(values))

    def _keep(self, number: int | bytes) -> bytes:
        """Return the signature of the request for an object, which is kept as long as its date holds."""
        digest = self._copy_beginning()
        digest.update(self._signed_rest % number)
        signature = self._sign_digest(digest.digest())
        # To keep one costs a fifth of making it. Where there are more objects, most of these do not come
        # again in time.
        if len(self._kept) < _MOST_KEPT:
            self._kept[number] = signature
        return signature

    def _prepare(self, moment: int) -> None:
        """Make what holds as long as the date does."""
        signer = self._signer
        signer.tick(moment)
        self._moment = moment
        self._kept.clear()
        signed = signer.signed_fields(self._fields, self._payload)
        text = make_canonical_request(self._method, f"{self._path}\n", "", signed, self._payload)
        before, _, after = text.partition("\n\n\n")
        self._copy_beginning, self._signed_after = sha256(before.encode()).copy, f"\n\n{after}".encode()
        self._sign_digest = signer.sign_digest
        authorization = signer.begin_authorization(";".join(sorted(signed)))
        del signed["host"]
        lines = format_header_fields((*signed.items(), ("authorization", authorization)))
        self._before = f"{self._method} {self._path}".encode()
        self._after = self._others + lines.removesuffix(b"\r\n")
        self._signed_rest = self._form + self._signed_after.replace(b"%", b"%%")
        before_name, after_name = (each.replace(b"%", b"%%") for each in (self._before, self._after))
        ending = b"%b\r\nContent-Length: %d\r\n\r\n%b" if self._sends else b"%b\r\n\r\n"
        self._whole = before_name + self._form + after_name + ending


class SummedPattern(SignedPattern, HashedPattern):
    """Uploads whose bodies are signed: the SHA-256 of each is a field, and is said of its body."""

    def __mod__(self, values: Any, /) -> bytes:
        """Return a request of a name or number, a size, the first bytes of a body, and its digest."""
        number, size, first, digest = values
        return self._with_body(number, hexlify(digest), size, first)

    def _with_body(self, number: int | bytes, own: bytes, length: int, first: bytes) -> bytes:
        """Return a request that has something of its own in its fields, where it varies."""
        now = time()
        if not 0 <= now - self._moment < PERIOD_SECONDS:
            self._prepare(round_moment(now))
        name = self._form % number
        digest = self._copy_beginning()
        digest.update(name + own.join(self._signed_pieces))
        return b"%b%b%b%b\r\nContent-Length: %d\r\n\r\n%b" % (
            self._before,
            name,
            own.join(self._pieces),
            self._sign_digest(digest.digest()),
            length,
            first,
        )

    def _prepare(self, moment: int) -> None:
        super()._prepare(moment)
        self._pieces = self._after.split(_VARYING.encode())
        self._signed_pieces = self._signed_after.split(_VARYING.encode())

    @property
    def make_hash(self) -> Callable[[bytes], BodyHash]:
        """SHA-256."""
        return sha256

    def ending(self, digest: bytes) -> bytes:
        """Return nothing: the body is as it is."""
        return b""


class ChunkedPattern(SummedPattern):
    """Uploads of bodies that are one chunk, with the CRC32 of each after it. Its size is a field."""

    def __init__(self, *arguments: Any, fields: Mapping[str, str], **named: Any) -> None:
        fields = {**fields, _SIZE_FIELD: _VARYING, **_CHUNKED_FIELDS}
        super().__init__(*arguments, fields=fields, **named)

    def __mod__(self, values: Any, /) -> bytes:
        number, size, first, _ = values
        return self._with_body(number, b"%d" % size, measure_chunks(size), begin_chunk(size) + first)

    @property
    def make_hash(self) -> Callable[[bytes], BodyHash]:
        """CRC32."""
        return Crc32

    def ending(self, digest: bytes) -> bytes:
        """Return what ends the chunk, with the checksum."""
        return end_chunks(1, digest)


# -- Bodies ----------------------------------------------------------------------------------------


#: XML may define texts that become longer each time that they are used; S3 has none of these.
_MATCH_DEFINITION = re.compile(rb"<!(?:DOCTYPE|ENTITY)")

#: Characters that XML has no spelling for.
_MATCH_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: No object and no bucket has as many bytes.
_MAX_SIZE = 2**62

_MAX_MESSAGE_CHARACTERS = 300

_BUCKET_PATTERN = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_ADDRESS_PATTERN = re.compile(r"[0-9]+(\.[0-9]+){3}\Z")


class StoreFault(Struct, frozen=True):
    """What the body of an error says."""

    code: str
    message: str
    fields: dict[str, str]  # everything that it says, by the names of elements

    def __str__(self) -> str:
        """Return it as one line."""
        return f"{self.code}: {self.message}" if self.message else self.code


def _parse(body: bytes) -> ElementTree.Element:
    if _MATCH_DEFINITION.search(body[:1000]):
        raise ValueError("XML with definitions")
    try:
        root = ElementTree.fromstring(body)  # noqa: S314 - bounded in size, and without definitions
    except (ElementTree.ParseError, LookupError) as error:
        raise ValueError(f"no XML: {error}") from None
    for each in root.iter():
        each.tag = each.tag.rpartition("}")[2]
    return root


def find_root(body: bytes) -> str | None:
    """Return the name of the outermost element of a body; None where it is no XML."""
    try:
        return _parse(body).tag
    except ValueError:
        return None


def parse_fault(body: bytes) -> StoreFault | None:
    """Return what the body of an error says; None where it is no such body."""
    if b"<Error" not in body:
        return None
    try:
        root = _parse(body)
    except ValueError:
        return None
    found = root if root.tag == "Error" else root.find(".//Error")
    return None if found is None else _make_fault(found)


def _make_fault(element: ElementTree.Element) -> StoreFault:
    fields = {each.tag: each.text or "" for each in element}
    message = " ".join(fields.get("Message", "").split())[:_MAX_MESSAGE_CHARACTERS]
    return StoreFault(fields.get("Code", "no code"), message, fields)


def parse_listing_page(body: bytes) -> ListingPage:
    """Return the entries of a listing of a bucket (version 2), or of the buckets; raises ValueError.

    The names of objects and of common prefixes are in one order, which is that of their bytes.
    """
    root = _parse(body)
    if root.tag == "ListAllMyBucketsResult":
        return ListingPage([(name, 0) for name in _texts(root, "Buckets/Bucket/Name")])
    if root.tag != "ListBucketResult":
        raise ValueError(f"{root.tag} is no listing")
    decode = unquote_plus if root.findtext("EncodingType") == "url" else str
    rows = []
    for each in root.iterfind("Contents"):
        key, size = each.findtext("Key"), int(each.findtext("Size") or 0)
        if key is None or not 0 <= size < _MAX_SIZE:
            raise ValueError("an entry without a key, or of a wrong size")
        rows.append((decode(key), size))
    prefixes = [(decode(name), 0) for name in _texts(root, "CommonPrefixes/Prefix")]
    if prefixes:
        rows = sorted([*rows, *prefixes], key=lambda row: row[0].encode())
    truncated = root.findtext("IsTruncated") == "true"
    following = root.findtext("NextContinuationToken") or ""
    if truncated and not following:
        raise ValueError("a page that is not the last one, and does not say what follows")
    return ListingPage(rows, following if truncated else "")


def parse_versions_page(body: bytes) -> ListingPage:
    """Return the versions of objects, and the marks of deleted ones, of a first page; raises ValueError.

    A store without versions may answer with the objects as they are now: their ids are empty.
    """
    root = _parse(body)
    if root.tag not in {"ListVersionsResult", "ListBucketResult"}:
        raise ValueError(f"{root.tag} is no listing of versions")
    decode = unquote_plus if root.findtext("EncodingType") == "url" else str
    found = [
        (decode(each.findtext("Key") or ""), each.findtext("VersionId") or "")
        for each in root
        if each.tag in {"Version", "DeleteMarker", "Contents"}
    ]
    if not all(name for name, _ in found):
        raise ValueError("an entry without a key")
    return ListingPage([(name, 0) for name, _ in found], ids=[version for _, version in found])


def _texts(root: ElementTree.Element, path: str) -> Iterator[str]:
    for each in root.iterfind(path):
        if each.text is None:
            raise ValueError("an entry without a name")
        yield each.text


# -- Several objects, and parts of one -----------------------------------------------------------


def make_deletion_body(objects: Iterable[ObjectVersion]) -> bytes:
    """Return the body of a request that deletes several objects; the answer is to name failures only."""
    # A reader of XML takes a carriage return that is not spelt for the end of a line.
    spelt = ((escape(key, {"\r": "&#13;"}), escape(version)) for key, version in objects)
    listed = "".join(
        f"<Object><Key>{key}</Key>{f'<VersionId>{version}</VersionId>' if version else ''}</Object>"
        for key, version in spelt
    )
    return f"<Delete><Quiet>true</Quiet>{listed}</Delete>".encode()


def is_xml_text(name: str) -> bool:
    """Whether XML can hold a name; a body with one that it cannot hold is refused as a whole."""
    return _MATCH_NO_XML.search(name) is None


def make_content_md5(body: bytes) -> str:
    """Return the value of ``Content-MD5``, without which Swift takes no such body."""
    return encode_md5(md5(body, usedforsecurity=False).digest())


def encode_md5(digest: bytes) -> str:
    """Return the value of ``Content-MD5`` for a body with this MD5."""
    return base64.b64encode(digest).decode()


def find_deletion_faults(body: bytes) -> list[tuple[str, StoreFault]]:
    """Return the keys of objects that were not deleted, and why; raises ValueError where it says nothing.

    A key is there for each of its versions.
    """
    root = _parse(body)
    if root.tag == "Error":
        raise ValueError(str(_make_fault(root)))
    if root.tag != "DeleteResult":
        raise ValueError(f"{root.tag} is no answer to a deletion")
    return [(each.findtext("Key") or "", _make_fault(each)) for each in root.iterfind("Error")]


def parse_upload_id(body: bytes) -> str:
    """Return the id of a multipart upload that was begun; raises ValueError."""
    root = _parse(body)
    found = root.findtext("UploadId")
    if root.tag != "InitiateMultipartUploadResult" or not found:
        raise ValueError(f"{root.tag} without the id of an upload")
    return found


def parse_uploads(body: bytes) -> list[tuple[str, str]]:
    """Return the key and the id of each unfinished multipart upload of a page; raises ValueError."""
    root = _parse(body)
    if root.tag != "ListMultipartUploadsResult":
        raise ValueError(f"{root.tag} is no list of uploads")
    decode = unquote_plus if root.findtext("EncodingType") == "url" else str
    return [
        (decode(each.findtext("Key") or ""), each.findtext("UploadId") or "")
        for each in root.iterfind("Upload")
    ]


def make_completion_body(etags: Sequence[str], checksums: Sequence[str] = ()) -> bytes:
    """Return the body of a request that makes one object of parts, which have these ETags in order.

    ``checksums`` are their CRC32 as answers said them; an upload that announced these is refused without.
    """
    texts = [f"<ChecksumCRC32>{escape(each)}</ChecksumCRC32>" for each in checksums] or [""] * len(etags)
    parts = "".join(
        f'<Part><PartNumber>{number}</PartNumber><ETag>"{escape(etag)}"</ETag>{checksum}</Part>'
        for number, (etag, checksum) in enumerate(zip(etags, texts, strict=True), start=1)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()


def make_whole_etag(etags: Iterable[str]) -> str:
    """Return the ETag of an object of parts with these ETags; raises ValueError where one is no MD5."""
    digests = [bytes.fromhex(etag) for etag in etags]
    return f"{md5(b''.join(digests), usedforsecurity=False).hexdigest()}-{len(digests)}"


def find_wrong_whole(body: bytes, etags: Iterable[str]) -> str | None:
    """Say what is wrong with the answer to the end of an upload of parts that have these ETags.

    Some stores leave its ETag empty, and parts of encrypted objects have ETags that are no MD5.
    """
    try:
        said = (_parse(body).findtext("ETag") or "").strip('"')
    except ValueError as error:
        return str(error)
    try:
        expected = make_whole_etag(etags)
    except ValueError:
        return None
    return (
        None if said in {"", expected} else f"the answer has the ETag {said}, that of the parts is {expected}"
    )


# -- Names of buckets ----------------------------------------------------------------------------


def is_bucket_name(name: str) -> bool:
    """Whether every S3 store takes a name for a bucket."""
    return (
        _BUCKET_PATTERN.match(name) is not None
        and ".." not in name
        and ".-" not in name
        and "-." not in name
        and not _ADDRESS_PATTERN.match(name)
    )


def explain_wrong_bucket(name: str) -> str:
    """Return why a name is none of a bucket, for people."""
    return (
        f"{name!r} is no name of a bucket: S3 takes 3 to 63 lower-case letters, digits, hyphens and periods,"
        " and no underscore"
    )


DIALECT_CLASS: DialectOpener = S3Dialect
