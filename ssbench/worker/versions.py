"""Versions of an object: see :mod:`ssbench.worker.sequences`."""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import urlencode

from msgspec import json, structs

from ssbench.scenario.names import versioned_container
from ssbench.store.causes import NOT_VERSIONED, WRONG_LISTING
from ssbench.store.contract import RequestOutcome, StoreRequest
from ssbench.worker.builders import JobTarget, register_builder
from ssbench.worker.sequences import DECODING_ERRORS, MAX_VERDICT_BYTES, TemporaryObjects

#: Versions and their sizes, unless a scenario says others.
_VERSION_COUNT, _VERSION_SIZES = 3, (1000, 1000)


@register_builder("versions")
def run_versions(target: JobTarget) -> RequestOutcome:
    """PUT versions of an object, GET the first, list all, DELETE the object, then every version by its id.

    They are in a container of their own, because deleting in one leaves versions behind.
    """
    container, values = versioned_container(target.container), target.settings.values
    made = TemporaryObjects(structs.replace(target, container=container))
    low, high = values.get("size", _VERSION_SIZES)
    sizes = [random.randint(low, high) for _ in range(values.get("versions", _VERSION_COUNT))]
    ids = [_make_version(made, made.put("", size=size, headers=target.settings.headers)) for size in sizes]
    made.sequence.step()
    if made.good:
        first = StoreRequest(
            method="GET",
            container=container,
            name=made.prefix,
            query=urlencode({"version-id": ids[0]}),
            content=made.prefix,
            expected=sizes[0],
        )
        made.sequence.perform(first)
        made.sequence.step()
    if made.good:
        found = made.sequence.perform(_listing_request(made))
        made.sequence.step()
        if made.good and (listed := _ids_in(found)) is not None and not set(listed) - set(ids):
            made.sequence.entries = len(listed)
        elif made.good:
            made.wrong = WRONG_LISTING, "no list of the versions of the object"
    # Without an id the object is deleted as it would be anywhere, which adds a version that says so.
    ids.append(
        _make_version(made, StoreRequest(method="DELETE", container=container, name=made.prefix, keep=1))
    )
    made.sequence.step()
    for version in ids:
        if made.good:
            made.sequence.perform(_deletion_request(made, version))
    made.sequence.step()
    if not made.good:
        _delete_versions(made, ids)
    return made.end()


def _make_version(made: TemporaryObjects, request: StoreRequest) -> str:
    """Make a request if all is well; return the id of the version that it made."""
    if not made.good:
        return ""
    reply = made.sequence.perform(request).reply
    found = reply.fields.get("x-object-version-id", "") if reply else ""
    if made.good and not found:
        made.wrong = NOT_VERSIONED, f"the answer to {request.method} has no X-Object-Version-Id"
    return found


def _listing_request(made: TemporaryObjects) -> StoreRequest:
    query = urlencode({"versions": "", "format": "json", "prefix": made.prefix})
    return StoreRequest(method="GET", container=made.target.container, query=query, keep=MAX_VERDICT_BYTES)


def _deletion_request(made: TemporaryObjects, version: str) -> StoreRequest:
    query = urlencode({"version-id": version}) if version else ""
    container = made.target.container
    return StoreRequest(
        method="DELETE", container=container, name=made.prefix, query=query, missing_ok=not query
    )


def _ids_in(outcome: RequestOutcome) -> list[str] | None:
    """Return the ids of versions in a listing; None where it is none."""
    try:
        rows = json.decode(outcome.reply.body if outcome.reply else b"", type=list[dict[str, Any]])
        return [str(row["version_id"]) for row in rows]
    except (*DECODING_ERRORS, KeyError):
        return None


def _delete_versions(made: TemporaryObjects, known: list[str]) -> None:
    """Delete what may be left: the versions that are known, and those in the listing."""
    perform, url, token = made.target.client.perform, made.target.url, made.target.token
    found = _ids_in(perform(url, _listing_request(made), token)) or []
    for version in dict.fromkeys([*found, *filter(None, known)]) or [""]:
        made.clean(_deletion_request(made, version))
