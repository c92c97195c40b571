"""What a request is about, by its method and path.

A path may be one of Swift (``/v1/ACCOUNT/CONTAINER/OBJECT``; at Ceph behind ``/swift``, with an account or
without) or of S3 (``/BUCKET/KEY``). Each format says how often its paths are encoded; it is never tried.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

#: Methods on an object.
_OBJECT_KINDS = {
    b"GET": "read",
    b"PUT": "put",
    b"HEAD": "head",
    b"DELETE": "delete",
    b"POST": "post",
    b"COPY": "copy",
}
#: Methods on what has objects in it: a container, an account.
_CONTAINER_KINDS = {b"GET": "list", b"HEAD": "head_container"}
_ACCOUNT_KINDS = {b"GET": "list_account", b"HEAD": "head_account"}
_PARTIAL_CONTENT = 206
_SWIFT_BEGINS = re.compile(rb"(/swift)?/v1(?:\.0)?(?:/|$)")
#: How the accounts begin that paths of Ceph name.
_CEPH_ACCOUNT = b"AUTH_"
#: What a query of S3 asks for that is neither an object's data nor a list of objects.
_S3_PROPERTIES = frozenset(
    b"accelerate acl analytics attributes cors delete encryption intelligent-tiering inventory legal-hold"
    b" lifecycle location logging metadataTable metrics notification object-lock ownershipControls policy"
    b" policyStatus publicAccessBlock renameObject replication requestPayment restore retention select"
    b" session tagging torrent uploadId uploads versioning website".split()
)


class RequestPlace(NamedTuple):
    """What a request is about, decoded; empty where it names none."""

    account: bytes
    container: bytes
    name: bytes
    query: bytes


def decode_path(path: bytes, times: int) -> bytes:
    """Undo so many percent-encodings."""
    for _ in range(times):
        if b"%" not in path:
            break
        path = unquote_to_bytes(path)
    return path


def split_path(path: bytes, encodings: int, account: bytes = b"") -> RequestPlace:
    """Return what a path is about. All encodings but one also hold for its question mark.

    ``account`` is that of paths that name none. Raises ValueError for what is no path.
    """
    if path[:1] != b"/":
        raise ValueError("expected a path")
    path, _, query = decode_path(path, encodings - 1).partition(b"?")
    begins = _SWIFT_BEGINS.match(path)
    rest = path[begins.end() if begins else 1 :]
    if begins and (not begins[1] or rest.startswith(_CEPH_ACCOUNT)):
        words = rest.split(b"/", 2)
    else:
        words = [account, *rest.split(b"/", 1)]
    words += [b""] * (3 - len(words))
    if encodings and b"%" in path:
        words = [unquote_to_bytes(word) for word in words]
    return RequestPlace(words[0], words[1], words[2], query)


def name_kind(method: bytes, place: RequestPlace, status: int) -> str:
    """Return the kind of a request."""
    if place.query and _asks_for_property(method, place):
        return "other"
    if place.name:
        kind = _OBJECT_KINDS.get(method, "other")
        return "range" if kind == "read" and status == _PARTIAL_CONTENT else kind
    return (_CONTAINER_KINDS if place.container else _ACCOUNT_KINDS).get(method, "other")


def _asks_for_property(method: bytes, place: RequestPlace) -> bool:
    names = {word.partition(b"=")[0] for word in place.query.split(b"&")}
    if method == b"PUT" and place.name and b"uploadId" in names:
        return False  # the data of a part
    return not _S3_PROPERTIES.isdisjoint(names)
