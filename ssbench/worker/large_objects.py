"""Large objects of segments: see :mod:`ssbench.worker.sequences`."""

from __future__ import annotations

import random

from msgspec import json

from ssbench.store.contract import Outcome, Request
from ssbench.swift.causes import WRONG_ETAG
from ssbench.swift.etags import md5
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

    @property
    def size(self) -> int:
        """Bytes of all together."""
        return sum(each.size for each in self.requests)


def _read(made: Temporary, size: int) -> None:
    """GET the whole."""
    if made.good:
        whole = Request(
            method="GET", container=made.target.container, name=made.prefix, expected=size, content=""
        )
        made.sequence.perform(whole)


@builds("slo")
def slo(target: Target) -> Outcome:
    """PUT segments at once and a manifest of them, GET the whole, DELETE it with its segments."""
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
        etag = md5("".join(segments.etags).encode()).hexdigest()
        said = put.reply.fields.get("etag", "").strip('"') if put.reply else etag
        if said != etag:
            made.wrong = WRONG_ETAG, f"the answer has the ETag {said}, that of the segments is {etag}"
    _read(made, segments.size)
    if made.good:
        gone = Request(
            method="DELETE",
            container=target.container,
            name=made.prefix,
            query="multipart-manifest=delete",
            headers=ACCEPTS_JSON,
            keep=LARGEST_VERDICT,
        )
        made.verdict(made.sequence.perform(gone), "Number Deleted", len(segments.names) + 1)
    return made.end("", *segments.names)


@builds("dlo")
def dlo(target: Target) -> Outcome:
    """PUT segments at once and a manifest of their prefix, GET the whole, DELETE all of them at once.

    The store finds the segments in a listing: one that lags makes the whole too short, which is a failure.
    """
    made = Temporary(target)
    segments = Segments(made)
    if made.good:
        place = f"{target.client.quoted(target.container)}/{target.client.quoted(made.prefix)}/"
        headers = (("X-Object-Manifest", place), *target.settings.headers)
        made.sequence.perform(made.put("", headers=headers))
    _read(made, segments.size)
    if made.good:
        names = ["", *segments.names]
        made.sequence.together(
            [Request(method="DELETE", container=target.container, name=made.prefix + name) for name in names]
        )
    return made.end("", *segments.names)
