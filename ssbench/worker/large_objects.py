"""Large objects of segments: see :mod:`ssbench.worker.sequences`."""

from __future__ import annotations

import random

from msgspec import json, structs

from ssbench.scenario.operation import DEFAULT_READ_MODES
from ssbench.store.causes import WRONG_ETAG
from ssbench.store.contract import RequestOutcome, StoreRequest
from ssbench.store.http.etags import start_md5
from ssbench.worker.builders import JobTarget, register_builder
from ssbench.worker.sequences import ACCEPT_JSON_HEADERS, MAX_VERDICT_BYTES, TemporaryObjects

#: Segments and their sizes, unless a scenario says others.
_SEGMENT_COUNT, _SEGMENT_SIZES = 3, (1_000_000, 1_000_000)


class ObjectSegments:
    """The segments of an object, which are put at once; then ``etags`` are those of the answers."""

    def __init__(self, made: TemporaryObjects) -> None:
        values = made.target.settings.values
        low, high = values.get("segment_size", _SEGMENT_SIZES)
        self.names = [f"/{number:06d}" for number in range(values.get("segments", _SEGMENT_COUNT))]
        self.requests = [made.put(name, size=random.randint(low, high)) for name in self.names]
        self.etags = [
            each.reply.fields.get("etag", "").strip('"') if each.reply else ""
            for each in made.sequence.together(self.requests)
        ]
        made.sequence.step()


def _read_segments(made: TemporaryObjects, segments: ObjectSegments) -> None:
    """GET the whole, a range of the length of the first segment, or a segment by its number."""
    sizes = [each.size for each in segments.requests]
    of_object = StoreRequest(method="GET", container=made.target.container, name=made.prefix, content="")
    for how in made.target.settings.values.get("reads", DEFAULT_READ_MODES):
        if not made.good:
            return
        if how == "range":
            first = random.randint(0, sum(sizes) - sizes[0])
            last = first + sizes[0] - 1
            read = structs.replace(of_object, part=(first, last), expected=sizes[0])
        elif how == "part":
            number = random.randrange(len(sizes))
            read = structs.replace(
                of_object,
                query=f"part-number={number + 1}",
                success=frozenset({206}),
                expected=sizes[number],
            )
        else:
            read = structs.replace(of_object, expected=sum(sizes))
        made.sequence.perform(read)
        made.sequence.step()


@register_builder("slo")
def run_slo(target: JobTarget) -> RequestOutcome:
    """PUT segments at once and a manifest of them, GET what was put, DELETE it with its segments."""
    made = TemporaryObjects(target)
    segments = ObjectSegments(made)
    if made.good:
        rows = [
            {"path": f"/{target.container}/{each.name}", "etag": etag, "size_bytes": each.size}
            for each, etag in zip(segments.requests, segments.etags, strict=True)
        ]
        headers = target.settings.headers
        manifest = made.put("", query="multipart-manifest=put", body=json.encode(rows), headers=headers)
        put = made.sequence.perform(manifest)
        made.sequence.step()
        etag = start_md5("".join(segments.etags).encode()).hexdigest()
        said = put.reply.fields.get("etag", "").strip('"') if put.reply else etag
        if said != etag:
            made.wrong = WRONG_ETAG, f"the answer has the ETag {said}, that of the segments is {etag}"
    _read_segments(made, segments)
    if made.good:
        gone = StoreRequest(
            method="DELETE",
            container=target.container,
            name=made.prefix,
            query="multipart-manifest=delete",
            headers=ACCEPT_JSON_HEADERS,
            keep=MAX_VERDICT_BYTES,
        )
        made.deleted(made.sequence.perform(gone), *segments.names, "", manifest=True)
        made.sequence.step()
    return made.end("", *segments.names)


@register_builder("dlo")
def run_dlo(target: JobTarget) -> RequestOutcome:
    """PUT segments at once and a manifest of their prefix, GET what was put, DELETE all of them at once.

    The store finds the segments in a listing: one that lags makes the whole too short, which is a failure.
    """
    made = TemporaryObjects(target)
    segments = ObjectSegments(made)
    if made.good:
        place = f"{target.client.quoted(target.container)}/{target.client.quoted(made.prefix)}/"
        headers = (("X-Object-Manifest", place), *target.settings.headers)
        made.sequence.perform(made.put("", headers=headers))
        made.sequence.step()
    _read_segments(made, segments)
    if made.good:
        names = ["", *segments.names]
        made.sequence.together(
            [
                StoreRequest(method="DELETE", container=target.container, name=made.prefix + name)
                for name in names
            ]
        )
        made.sequence.step()
    return made.end("", *segments.names)
