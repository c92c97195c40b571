"""Objects in segments, as clients of Swift make and use them, and in parts, as those of S3 do.

Objects of a size class with a ``segment_size`` are a manifest in their container, and segments in the one
beside it. A static manifest lists the segments; a dynamic one is empty and has a prefix of their names. Some
segments are sent at once by one user. What replaces an object makes segments of other names, and deletes the
old ones after the manifest. So the object is whole at any time, and what does not come to its end leaves
segments that no manifest has: those of an operation that failed are deleted by it, or counted.

Over the S3 API an object of such a class is an upload of parts, some of which are sent at once. The store has
the parts in its own keeping, and deletes them with the object; what replaces an object is another upload. An
upload that does not come to its end is given up.

Reads are as those of any object, but for ``parts``. With ``--verify`` segments have pieces of one body, so
that the whole and its parts are checked as the body of an object in one piece is.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import unquote

from msgspec import json, structs

from ssbench.scenario.names import segments_container, segments_prefix
from ssbench.store.contract import (
    NO_PRIOR_ATTEMPTS,
    NOT_FOUND,
    UNANSWERED_CAUSES,
    WRONG_ETAG,
    WRONG_LISTING,
    WRONG_VERDICT,
    BodyPiece,
    Listing,
    RequestOutcome,
    StoreReply,
    StoreRequest,
    change_rare_fields,
)
from ssbench.store.http.bodies import start_md5
from ssbench.store.listing_pages import PageOrder
from ssbench.worker.operation_requests import (
    MAX_VERDICT_BYTES,
    JobTarget,
    look_for_initial_object,
    make_body_fields,
    make_write_fields,
    mark_written,
    register_builder,
    send_request,
)
from ssbench.worker.request_sequences import (
    ACCEPT_JSON_HEADERS,
    DECODING_ERRORS,
    MAX_PAGE_BYTES,
    PartsUpload,
    RequestSequence,
    cause_of_verdict,
    decode_verdict,
    end_upload,
)

#: So many segments of an object are sent, or deleted, at once by one user, as the swift command does.
_SEGMENTS_AT_ONCE = 10

#: Entries of a page of a listing of segments.
_LISTED_AT_ONCE = 10_000

#: The largest manifest that Swift takes.
_MAX_MANIFEST_BYTES = 8 * 2**20

_OK_STATUS, _NOT_FOUND_STATUS = 200, 404

#: Container and name of each of some segments.
_Places = list[tuple[str, str]]


# -- Writing ---------------------------------------------------------------------------------------


class _Upload:
    """The segments of a new version of an object, and its manifest.

    ``fields`` are those of a request that writes the object in one piece.
    """

    def __init__(self, sequence: RequestSequence, target: JobTarget, version: str, fields: dict[str, Any]):
        self._dynamic = target.segments[1]
        self.wrong: tuple[str, str] | None = None
        self._sequence, self._target = sequence, target
        self._container = segments_container(target.container)
        self._prefix = f"{segments_prefix(target.name)}{version}/"
        self._fields = {key: value for key, value in fields.items() if key not in {"size", "etag"}}
        self._segments = [
            StoreRequest(
                method="PUT",
                container=self._container,
                name=f"{self._prefix}{number:08d}",
                size=length,
                keep=MAX_VERDICT_BYTES,
                delete_after=fields.get("delete_after"),
                owner=target.owner,
                etag=fields.get("etag", False),
                piece=piece,
            )
            for number, (length, piece) in enumerate(_cut(target))
        ]
        self._etags: list[str] = []

    @property
    def places(self) -> _Places:
        """Where its segments are."""
        return [(each.container, each.name) for each in self._segments]

    def send_segments(self) -> None:
        """PUT the segments, some at once."""
        found = self._sequence.together(self._segments, _SEGMENTS_AT_ONCE)
        self._etags = [_field(each.reply, "etag").strip('"') for each in found]
        self._sequence.step()

    def send_manifest(self) -> RequestOutcome:
        """PUT the manifest, which makes them an object."""
        client, request = self._target.client, self._target.request
        if self._dynamic:
            place = f"{client.quoted(self._container)}/{client.quoted(self._prefix)}"
            headers = (*request().headers, ("X-Object-Manifest", place))
            done = self._sequence.send_manifest(
                request(**self._fields, headers=headers, body=b"", keep=MAX_VERDICT_BYTES)
            )
        else:
            rows = [
                {"path": f"/{each.container}/{each.name}", "etag": etag, "size_bytes": each.size}
                for each, etag in zip(self._segments, self._etags, strict=True)
            ]
            body, query = json.encode(rows), "multipart-manifest=put"
            done = self._sequence.send_manifest(
                request(**self._fields, query=query, body=body, keep=MAX_VERDICT_BYTES)
            )
            whole = start_md5("".join(self._etags).encode()).hexdigest()
            said = _field(done.reply, "etag").strip('"') or whole
            if done.cause is None and said != whole:
                self.wrong = WRONG_ETAG, f"the answer has the ETag {said}, that of the segments is {whole}"
        self._sequence.step()
        return done


def _cut(target: JobTarget) -> list[tuple[int, BodyPiece]]:
    """Return how long each segment of a new body is, and which piece of it."""
    size, body = target.segments[0], int.from_bytes(os.urandom(8), "little")
    path = f"{target.container}/{target.name}"
    return [
        (min(size, target.size - first), BodyPiece(path, body, first))
        for first in range(0, target.size, size)
    ]


def _field(reply: StoreReply | None, name: str) -> str:
    return reply.fields.get(name, "") if reply else ""


@register_builder("create", "create_only", segmented=True)
def create_large_object(target: JobTarget) -> RequestOutcome:
    """PUT the segments of a new object, and its manifest."""
    # Of a job that is made again, because its token was refused, the segments have the same names.
    return _write(target, f"{target.parameters.run_id:x}", make_write_fields(target), replaces=False)


@register_builder("update", segmented=True)
def update_large_object(target: JobTarget) -> RequestOutcome:
    """Look for the segments of the object, PUT new ones and a manifest, and DELETE the old ones."""
    return _write(target, os.urandom(8).hex(), make_write_fields(target), replaces=True)


def _write(target: JobTarget, version: str, fields: dict[str, Any], *, replaces: bool) -> RequestOutcome:
    if target.client.dialect(target.url).uploads_parts:
        return _write_parts(target, fields, replaces=replaces)
    return _write_segments(target, version, fields, replaces=replaces)


def _write_segments(
    target: JobTarget, version: str, fields: dict[str, Any], *, replaces: bool
) -> RequestOutcome:
    sequence = RequestSequence(target)
    old = _find_segments(sequence, target) if replaces else []
    if replaces:
        sequence.step()
    if sequence.cause is not None:
        return sequence.outcome()
    upload = _Upload(sequence, target, version, fields)
    upload.send_segments()
    if sequence.cause is not None:
        return _end_failed(sequence, target, upload.places)
    put = upload.send_manifest()
    if put.cause is not None:
        # One that had no answer, or one of 5xx, may be written later. A new object is deleted after the run.
        refused = put.cause not in UNANSWERED_CAUSES and 400 <= put.status < 500
        left = upload.places if replaces else []
        return _end_failed(sequence, target, upload.places if refused else [], 0 if refused else len(left))
    if upload.wrong is not None:
        return sequence.fault(*upload.wrong)
    if replaces:
        _delete_places(sequence, old)
        sequence.step()
    outcome = sequence.outcome()
    if outcome.cause is not None:
        return change_rare_fields(outcome, left=len(old))
    return structs.replace(outcome, status=put.status, trans_id=put.trans_id)


def _write_parts(target: JobTarget, fields: dict[str, Any], *, replaces: bool) -> RequestOutcome:
    """Write the object as an upload of parts, where a store has these.

    Its steps are those of other stores: to begin it is the look at what there is, the parts are segments, its
    end is the manifest, and what becomes of the old parts is the store's matter.
    """
    sequence = RequestSequence(target)
    more = {key: value for key, value in fields.items() if key not in {"size", "etag"}}
    # The condition of a create is that of the end.
    whole = target.request(**more, headers=target.settings.headers, causes={}, success=frozenset())
    ending = target.request(headers=target.operation.headers, delete_after=more.get("delete_after"))
    upload = PartsUpload(sequence, target.client.dialect(target.url), whole, ending)
    upload.begin()
    if replaces:
        sequence.step()
    if sequence.cause is None:
        upload.send(_cut(target), _SEGMENTS_AT_ONCE, etag=fields.get("etag", False))
        sequence.step()
    sent = sequence.cause is None
    done = upload.end() if sent else None
    if done is not None and done.cause is None:
        sequence.step()
        if replaces:
            sequence.step()
        return sequence.outcome()
    outcome = sequence.outcome()
    # One that had no answer may have begun, or end later. What a create leaves is given up after the run.
    refused = outcome.cause not in UNANSWERED_CAUSES and 400 <= outcome.status < 500
    if not upload.number or (done is not None and not refused):
        return change_rare_fields(outcome, left=int(replaces and not refused))
    given_up = target.client.perform(target.url, upload.abort(), target.token)
    return change_rare_fields(outcome, left=int(given_up.cause is not None))


def _give_up_uploads(sequence: RequestSequence, target: JobTarget) -> None:
    """Give up the uploads of the object that have not ended."""
    listing = Listing(limit=1000, prefix=target.name, of="uploads")
    request = StoreRequest(method="GET", container=target.container, listing=listing, keep=MAX_PAGE_BYTES)
    outcome = sequence.perform(request)
    if outcome.cause is not None:
        return
    try:
        page = target.client.dialect(target.url).read_page(
            outcome.reply.body if outcome.reply else b"", request
        )
    except ValueError as error:
        sequence.spoil(WRONG_LISTING, str(error)[:400])
        return
    own = [number for (name, _), number in zip(page.rows, page.ids, strict=True) if name == target.name]
    if own:
        sequence.together(
            [end_upload(target.container, target.name, each) for each in own], _SEGMENTS_AT_ONCE
        )


def _end_failed(
    sequence: RequestSequence, target: JobTarget, places: _Places, left: int = 0
) -> RequestOutcome:
    """Return the outcome of a write that failed, after its segments were deleted at these places."""
    outcome, cleaning = sequence.outcome(), RequestSequence(structs.replace(target, spent=NO_PRIOR_ATTEMPTS))
    failed = sum(each.cause is not None for each in _delete_places(cleaning, places))
    return change_rare_fields(outcome, left=left + failed)


@register_builder("upload_if_missing", segmented=True)
def upload_large_if_missing(target: JobTarget) -> RequestOutcome:
    """Write the object, unless there is one of this scenario, of a size in the range of its class."""
    found, others, outcome = look_for_initial_object(target)
    if outcome is not None:
        return outcome
    version = os.urandom(8).hex() if found is not None else f"{target.parameters.run_id:x}"
    # Initial objects never expire: no X-Delete-After.
    outcome = _write(target, version, make_body_fields(target), replaces=found is not None)
    size = target.size if outcome.cause is None else 0
    return mark_written(structs.replace(outcome, size=size), found, others)


# -- Finding and deleting segments -----------------------------------------------------------------


def _find_segments(sequence: RequestSequence, target: JobTarget) -> _Places:
    """Return where the segments of the object are, by its manifest; none where it has none or is missing.

    Those that ssbench has not made for it are left out. Where the store does not show the manifest (Ceph's
    gateway answers 200 without a body), they are listed by the beginning of their names.
    """
    of_object = StoreRequest(
        method="HEAD", container=target.container, name=target.name, content="", missing_ok=True, keep=1
    )
    reply = sequence.perform(of_object).reply
    if sequence.cause is not None:
        return []
    if place := _field(reply, "x-object-manifest"):
        container, _, prefix = place.partition("/")
        return _only_own(target, _list_segments(sequence, target, unquote(container), unquote(prefix)))
    if _field(reply, "x-static-large-object").lower() != "true":
        return []
    manifest = sequence.perform(
        structs.replace(
            of_object,
            method="GET",
            query="multipart-manifest=get",
            missing_ok=False,
            keep=_MAX_MANIFEST_BYTES,
        )
    )
    if sequence.cause is not None:
        return []
    try:
        rows = json.decode(manifest.reply.body if manifest.reply else b"[]", type=list[dict[str, Any]])
        places = [str(row["name"]).lstrip("/").partition("/") for row in rows]
    except (*DECODING_ERRORS, KeyError):
        places = []
    if not places:
        return _list_own_segments(sequence, target)
    return _only_own(target, [(container, name) for container, _, name in places])


def _only_own(target: JobTarget, places: _Places) -> _Places:
    own, prefix = segments_container(target.container), segments_prefix(target.name)
    return [(container, name) for container, name in places if container == own and name.startswith(prefix)]


def _list_own_segments(sequence: RequestSequence, target: JobTarget) -> _Places:
    """Return where the segments of all versions of the object are."""
    return _list_segments(
        sequence, target, segments_container(target.container), segments_prefix(target.name)
    )


def _list_segments(sequence: RequestSequence, target: JobTarget, container: str, prefix: str) -> _Places:
    """Return where the segments are whose names begin with a prefix."""
    listing, found, order = Listing(limit=_LISTED_AT_ONCE, prefix=prefix), _Places(), PageOrder()
    dialect = target.client.dialect(target.url)
    while True:
        request = StoreRequest(
            method="GET", container=container, listing=listing, keep=MAX_PAGE_BYTES, missing_ok=True
        )
        outcome = sequence.perform(request)
        if outcome.cause is not None or outcome.status == _NOT_FOUND_STATUS:
            return found
        try:
            page = dialect.read_page(outcome.reply.body if outcome.reply else b"", request)
            order.take([name for name, _ in page.rows])
        except ValueError as error:
            sequence.spoil(WRONG_LISTING, str(error)[:400])
            return found
        found += [(container, name) for name, _ in page.rows]
        if not page.following:
            return found
        listing = structs.replace(listing, following=page.following)


def _delete_places(sequence: RequestSequence, places: _Places) -> list[RequestOutcome]:
    """DELETE segments, some at once; those that are gone already are as good."""
    requests = [
        StoreRequest(method="DELETE", container=container, name=name, missing_ok=True)
        for container, name in places
    ]
    return sequence.together(requests, _SEGMENTS_AT_ONCE) if requests else []


@register_builder("delete", segmented=True)
def delete_large_object(target: JobTarget) -> RequestOutcome:
    """DELETE the object with its segments: one request, or, where these are dynamic, those of a client."""
    if target.client.dialect(target.url).uploads_parts:
        return send_request(target)
    sequence = RequestSequence(target)
    if target.segments[1]:
        places = _find_segments(sequence, target)
        if sequence.cause is None:
            sequence.perform(target.request(missing_ok=target.spent[-1]))
        if sequence.cause is None:
            _delete_places(sequence, places)
        return sequence.outcome()
    _delete_static(sequence, target, missing_ok=target.spent[-1])
    return sequence.outcome()


@register_builder("remove", segmented=True)
def remove_large_object(target: JobTarget) -> RequestOutcome:
    """DELETE the object and all segments of any of its versions; it is as good if there are none."""
    sequence = RequestSequence(target)
    if target.client.dialect(target.url).uploads_parts:
        sequence.perform(target.request(missing_ok=True))
        if sequence.cause is None:
            _give_up_uploads(sequence, target)
        return sequence.outcome()
    if target.segments[1]:
        sequence.perform(target.request(missing_ok=True))
    else:
        _delete_static(sequence, target, missing_ok=True)
    if sequence.cause is None:
        places = _list_own_segments(sequence, target)
        if sequence.cause is None:
            _delete_places(sequence, places)
    return sequence.outcome()


def _delete_static(sequence: RequestSequence, target: JobTarget, *, missing_ok: bool) -> None:
    """DELETE an object with the segments of its manifest; one that has none is deleted as any."""
    outcome = sequence.perform(
        target.request(
            query="multipart-manifest=delete",
            headers=(*target.request().headers, *ACCEPT_JSON_HEADERS),
            keep=MAX_VERDICT_BYTES,
            missing_ok=missing_ok,
        )
    )
    if outcome.cause is not None or outcome.status != _OK_STATUS:
        return
    said = decode_verdict(outcome)
    status, deleted, missing, errors = (
        str(said.get("Response Status", "no verdict")),
        said.get("Number Deleted"),
        said.get("Number Not Found"),
        said.get("Errors"),
    )
    # What an attempt without an answer may have deleted is not there any more for the next one.
    again = outcome.resent or UNANSWERED_CAUSES & (outcome.retried or {}).keys()
    gone = status.startswith("404") or (not deleted and missing)
    if status.startswith("2") and deleted and not errors:
        if missing and not (again or missing_ok):
            sequence.spoil(WRONG_VERDICT, f"{status}, {missing} segments were not there")
        return
    if gone and (missing_ok or again):
        return
    if status.startswith("400") and "SLO manifest" in f"{errors}{said.get('Response Body')}":
        sequence.perform(target.request(missing_ok=missing_ok))  # it is in one piece
        return
    detail = f"{status}, {deleted} deleted, {errors}"
    sequence.spoil(NOT_FOUND if gone else cause_of_verdict(status), detail[:400])


# -- Reading ---------------------------------------------------------------------------------------


@register_builder("parts")
def read_parts(target: JobTarget) -> RequestOutcome:
    """GET the object part after part, each as long as its segments; one without is one part."""
    sequence, size = RequestSequence(target), target.size
    if not size:  # it is not known
        size = _ask_size(sequence, target)
    step = target.segments[0] or max(size, 1)
    for first in range(0, size, step):
        if sequence.cause is not None:
            break
        last = min(first + step, size) - 1
        sequence.ask(part=(first, last), expected=last - first + 1)
        if not first:
            sequence.step()
    if size > step:
        sequence.step()
    return sequence.outcome()


def _ask_size(sequence: RequestSequence, target: JobTarget) -> int:
    """Return how long the object is, by a HEAD."""
    outcome = target.client.perform(
        target.url, target.request(method="HEAD", content=""), target.token, target.spent
    )
    sequence.add(structs.replace(outcome, size=0))
    return outcome.size if outcome.cause is None else 0
