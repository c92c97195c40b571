"""Bodies of S3 answers: listings, errors, and what is said of several objects at once; names of buckets.

All of them are XML. What is no such body raises ValueError, so that a page of a proxy is no empty listing.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import md5
from urllib.parse import unquote_plus
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from msgspec import Struct

from ssbench.store.contract import ListingPage

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


def _texts(root: ElementTree.Element, path: str) -> Iterator[str]:
    for each in root.iterfind(path):
        if each.text is None:
            raise ValueError("an entry without a name")
        yield each.text


# -- Several objects, and parts of one -------------------------------------------------------------


def make_deletion_body(keys: Iterable[str]) -> bytes:
    """Return the body of a request that deletes several objects; the answer is to name failures only."""
    # A reader of XML takes a carriage return that is not spelt for the end of a line.
    spelt = (escape(key, {"\r": "&#13;"}) for key in keys)
    listed = "".join(f"<Object><Key>{key}</Key></Object>" for key in spelt)
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


def find_deletion_faults(body: bytes) -> dict[str, StoreFault]:
    """Return why objects were not deleted, by their keys; raises ValueError where it says nothing of them."""
    root = _parse(body)
    if root.tag == "Error":
        raise ValueError(str(_make_fault(root)))
    if root.tag != "DeleteResult":
        raise ValueError(f"{root.tag} is no answer to a deletion")
    return {each.findtext("Key") or "": _make_fault(each) for each in root.iterfind("Error")}


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


# -- Names of buckets ------------------------------------------------------------------------------


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
