"""Large objects of segments: see :mod:`ssbench.worker.sequences`."""

from __future__ import annotations

import random

from msgspec import json, structs

from ssbench.scenario.operation import READS
from ssbench.store.causes import WRONG_ETAG
from ssbench.store.contract import Outcome, Request
from ssbench.store.http.etags import md5
from ssbench.worker.builders import Target, builds
from ssbench.worker.sequences import ACCEPTS_JSON, LARGEST_VERDICT, Temporary

#: Segments and their sizes, unless a scenario says others.
_SEGMENTS, _SEGMENT = 3, (1_000_000, 1_000_000)


class Segments:
    """The segments of an object, which are put at once; then ``etags`` are those of the answers."""

    def __init__(self, made: Temporary) -> None:
        values = made.target.settings.values
        low, high = values.get("segment_size", _SEGMENT)
        self.names = [f"/{number:06d}" for number in range(values.get("segments", _SEGMENTS))]
        self.requests = [made.put(name, size=random.randint(low, high)) for name in self.names]
        self.etags = [
            each.reply.fields.get("etag", "").strip('"') if each.reply else ""
            for each in made.sequence.together(self.requests)
        ]
        made.sequence.step()


def _read(made: Temporary, segments: Segments) -> None:
    """GET the whole, a range of the length of the first segment, or a segment by its number."""
    sizes = [each.size for each in segments.requests]
    of_object = Request(method="GET", container=made.target.container, name=made.prefix, content="")
    for how in made.target.settings.values.get("reads", READS):
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


@builds("slo")
def slo(target: Target) -> Outcome:
    """PUT segments at once and a manifest of them, GET what was put, DELETE it with its segments."""
    made = Temporary(target)
    segments = Segments(made)
    if made.good:
        rows = [
            {"path": f"/{target.container}/{each.name}", "etag": etag, "size_bytes": each.size}
            for each, etag in zip(segments.requests, segments.etags, strict=True)
        ]
        headers = target.settings.headers
        manifest = made.put("", query="multipart-manifest=put", body=json.encode(rows), headers=headers)
        put = made.sequence.perform(manifest)
        made.sequence.step()
        etag = md5("".join(segments.etags).encode()).hexdigest()
        said = put.reply.fields.get("etag", "").strip('"') if put.reply else etag
        if said != etag:
            made.wrong = WRONG_ETAG, f"the answer has the ETag {said}, that of the segments is {etag}"
    _read(made, segments)
    if made.good:
        gone = Request(
            method="DELETE",
            container=target.container,
            name=made.prefix,
            query="multipart-manifest=delete",
            headers=ACCEPTS_JSON,
            keep=LARGEST_VERDICT,
        )
        made.deleted(made.sequence.perform(gone), *segments.names, "", manifest=True)
        made.sequence.step()
    return made.end("", *segments.names)


@builds("dlo")
def dlo(target: Target) -> Outcome:
    """PUT segments at once and a manifest of their prefix, GET what was put, DELETE all of them at once.

    The store finds the segments in a listing: one that lags makes the whole too short, which is a failure.
    """
    made = Temporary(target)
    segments = Segments(made)
    if made.good:
        place = f"{target.client.quoted(target.container)}/{target.client.quoted(made.prefix)}/"
        headers = (("X-Object-Manifest", place), *target.settings.headers)
        made.sequence.perform(made.put("", headers=headers))
        made.sequence.step()
    _read(made, segments)
    if made.good:
        names = ["", *segments.names]
        made.sequence.together(
            [Request(method="DELETE", container=target.container, name=made.prefix + name) for name in names]
        )
        made.sequence.step()
    return made.end("", *segments.names)
