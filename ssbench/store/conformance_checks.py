"""What a store does of what it is asked: done, refused, or ignored.

A status is no proof: some stores answer 201 to ``PUT`` with ``If-None-Match: *`` and overwrite what is there.
So each :class:`Check` makes objects of its own, asks for one thing, and looks at the effect. Runs make those
first that their scenarios need (:func:`find_needed_checks`); ``ssbench-master conformance`` makes all.

All requests go through :class:`~ssbench.store.contract.StoreClient`. A check that needs more than one
container, or signatures, asks the master's side by way of :class:`TrialGround`.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from hashlib import md5
from typing import Any, Generic, Protocol
from urllib.parse import quote

from msgspec import Struct

from ssbench.base.errors import SsbenchError
from ssbench.scenario.model import SCENARIO_KEYS, Scenario
from ssbench.scenario.names import versioned_container
from ssbench.scenario.operations import TEMPURL, Header, resolve_steps
from ssbench.scenario.value_rules import PayloadMode
from ssbench.store.contract import (
    Listing,
    ReadSignatures,
    RequestOutcome,
    SessionT,
    Store,
    StoreAccess,
    StoreClient,
    StoreRequest,
)
from ssbench.store.http.dialect import HttpDialect


class StoreVerdict(Enum):
    """What became of a request."""

    DONE = "done"
    REFUSED = "refused"
    IGNORED = "ignored"  # the answer was a success, and the effect is missing


class Finding(Struct, frozen=True):
    """What a check found."""

    verdict: StoreVerdict
    detail: str = ""  # a few words: why it is not done, or how it is


DONE = Finding(StoreVerdict.DONE)


class StoreAnswer(Struct, frozen=True):
    """An answer, whatever its status is."""

    status: int
    fields: Mapping[str, str]
    body: bytes
    detail: str  # of a request without an answer: what went wrong

    @property
    def succeeded(self) -> bool:
        """Whether its status is one of success."""
        return 200 <= self.status < 300

    def refusal(self) -> Finding:
        """Return the finding that it was refused, with the status."""
        return Finding(StoreVerdict.REFUSED, f"{self.status or self.detail}")


class TrialGround(Protocol):
    """What checks need of the master's side of a store."""

    def make_container(self, name: str, headers: Mapping[str, str]) -> None:
        """Make a container, which is removed with the others. Raises ClusterError."""

    def sign(self, container: str) -> str:
        """Return the signature of reads without a token in a container. Raises SsbenchError."""


class StoreGround(Generic[SessionT]):
    """Containers and signatures of one account, from the master's side of a store.

    :meth:`end` has to be called.
    """

    def __init__(self, store: Store[Any, SessionT], access: StoreAccess[SessionT]) -> None:
        self._store = store
        self._access = access
        self._signed: list[ReadSignatures] = []
        self.containers: list[str] = []

    def make_container(self, name: str, headers: Mapping[str, str]) -> None:
        """Make a container; raises ClusterError."""
        self._store.prepare(self._access, [name], None, 1, lambda: None, check=lambda: None, headers=headers)
        self.containers.append(name)

    def sign(self, container: str) -> str:
        """Return the signature of signed reads in a container; raises SsbenchError."""
        until = int(time.time()) + _SIGNATURE_SECONDS
        signed = self._store.sign(self._access, until)
        self._signed.append(signed)
        features = self._store.capabilities(self._access).features
        return signed.queries([container], features.get(TEMPURL.needs, {}), lambda: False)[0]

    def end(self, client: StoreClient) -> None:
        """Take signatures back, and remove the containers, which are empty."""
        session = self._access.session
        for each in self._signed:
            each.end()
        for name in self.containers:
            request = StoreRequest(method="DELETE", container=name, missing_ok=True)
            client.perform(session.storage_urls[0], request, session.token)


class TrialClient(StoreClient, Protocol):
    """A client that says how an address is spoken to."""

    def dialect(self, storage_url: str) -> HttpDialect:
        """Return how a storage URL is spoken to."""


#: Statuses that are answers here: all that are not tried again.
_ANSWERS = frozenset({*range(200, 500)} - {401, 408, 429, 498})

#: Statuses of answers to what a store does not take.
_REFUSING = frozenset({*range(400, 500), 501})

#: What the names of objects begin with that checks make.
TRIAL_PREFIX = "ssbench-trial-"

#: How long a signature is good.
_SIGNATURE_SECONDS = 3600

#: An object that expires after a second is looked at so often in this time.
_EXPIRY_LOOKS, _EXPIRY_SECONDS = 12, 3.0

#: Answers of checks are short.
_MOST_BYTES = 1 << 20

_BODY = b"0123456789" * 10
_OTHER_BODY = b"abcdefghij" * 9


class StoreTrial:
    """The requests of checks, in one container, for objects whose names no other has.

    ``ground`` is None where there is only this container.
    """

    def __init__(
        self,
        client: TrialClient,
        address: str,
        token: str | None,
        container: str,
        ground: TrialGround | None = None,
    ) -> None:
        self.container = container
        self.ground = ground
        self.last: RequestOutcome | None = None
        self._client = client
        self._address = address
        self._token = token
        self._prefix = f"{TRIAL_PREFIX}{os.urandom(8).hex()}/"
        self._made: set[tuple[str, str]] = set()

    def name(self, what: str) -> str:
        """Return the name of an object of this trial."""
        return self._prefix + what

    def ask(self, method: str, what: str = "", *, container: str | None = None, **fields: Any) -> StoreAnswer:
        """Make a request for an object of this trial, a container, or (where that is empty) the account."""
        container = self.container if container is None else container
        name = self.name(what) if what else ""
        if method in {"PUT", "COPY"} and name:
            self._made.add((container, name))
        request = StoreRequest(
            **{
                "method": method,
                "container": container,
                "name": name,
                "success": _ANSWERS,
                "content": "",  # it is compared here
                "keep": _MOST_BYTES,
                **fields,
            }
        )
        self.last = outcome = self._client.perform(
            self._address, request, None if request.anonymous else self._token
        )
        if outcome.reply is None:
            return StoreAnswer(outcome.status, {}, b"", f"{outcome.cause}: {outcome.detail}")
        return StoreAnswer(outcome.status, outcome.reply.fields, outcome.reply.body, "")

    def read_names(self, answer: StoreAnswer, listing: Listing, *, of_account: bool = False) -> list[str]:
        """Return the names of a listing of the container, or of the account; none where it is no listing."""
        # S3 lists all buckets of an account, with other names and more of them than were asked for.
        container = "" if of_account else self.container
        request = StoreRequest(method="GET", container=container, listing=listing)
        try:
            page = self._client.dialect(self._address).read_page(answer.body, request)
        except ValueError:
            return []
        return [name for name, _ in page.rows]

    def write(self, what: str, body: bytes = _BODY, **fields: Any) -> StoreAnswer:
        """PUT an object."""
        return self.ask("PUT", what, body=body, **fields)

    def announce(self, body: bytes) -> tuple[Header, int]:
        """Return the field by which the MD5 of a body is announced, and the status where it is another's."""
        dialect = self._client.dialect(self._address)
        return dialect.digest_field(bytes.fromhex(_md5(body))), dialect.wrong_digest_status

    def pause(self, seconds: float) -> None:
        """Let other greenlets run for a time."""
        import gevent  # noqa: PLC0415 - the client brings it, and the table of checks does without

        gevent.sleep(seconds)

    def wrote(self, what: str, container: str | None = None) -> None:
        """Note an object that another request has made."""
        self._made.add((self.container if container is None else container, self.name(what)))

    def removed(self, what: str, container: str) -> None:
        """Note that a check has removed an object itself."""
        self._made.discard((container, self.name(what)))

    def remove(self) -> None:
        """Delete all objects of this trial."""
        for container, name in sorted(self._made):
            self._client.perform(
                self._address,
                StoreRequest(method="DELETE", container=container, name=name, missing_ok=True),
                self._token,
            )
        self._made.clear()


@dataclass(frozen=True, slots=True)
class Check:
    """Something that is asked of a store, and how its effect is found."""

    name: str  # the operation, or the setting of operations
    what: str  # the request in words
    make: Callable[[StoreTrial], Finding]
    instead: str = ""  # what happens in a run where it is ignored
    basic: bool = False  # no run is possible without it
    only_over: str = ""  # the kind of store that alone has such a request; empty: all
    otherwise: str = ""  # no run is possible where it is not done; what to ask for in its place

    def run(self, trial: StoreTrial) -> Finding:
        """Find out; objects that it made are deleted."""
        try:
            return self.make(trial)
        except SsbenchError as error:
            return Finding(StoreVerdict.REFUSED, str(error))
        finally:
            with suppress(SsbenchError):
                trial.remove()


def _compare(found: bool, why: str) -> Finding:
    return DONE if found else Finding(StoreVerdict.IGNORED, why)


# -- The checks ------------------------------------------------------------------------------------


def _create(trial: StoreTrial) -> Finding:
    answer = trial.write("a")
    if not answer.succeeded:
        return answer.refusal()
    right = answer.fields.get("etag", "").strip('"') == _md5(_BODY)
    return DONE if right else Finding(StoreVerdict.DONE, "the ETag is not the MD5 of the body")


def _read(trial: StoreTrial) -> Finding:
    trial.write("a")
    answer = trial.ask("GET", "a")
    return _compare(answer.body == _BODY, "other bytes") if answer.succeeded else answer.refusal()


def _update(trial: StoreTrial) -> Finding:
    trial.write("a")
    answer = trial.write("a", _OTHER_BODY)
    if not answer.succeeded:
        return answer.refusal()
    return _compare(trial.ask("GET", "a").body == _OTHER_BODY, "the object has its first content")


def _head(trial: StoreTrial) -> Finding:
    trial.write("a")
    answer = trial.ask("HEAD", "a")
    if not answer.succeeded:
        return answer.refusal()
    return _compare(trial.last is not None and trial.last.size == len(_BODY), "another length")


def _delete(trial: StoreTrial) -> Finding:
    trial.write("a")
    answer = trial.ask("DELETE", "a")
    return (
        _compare(trial.ask("HEAD", "a").status == 404, "it is still there")
        if answer.succeeded
        else answer.refusal()
    )


def _range(trial: StoreTrial) -> Finding:
    trial.write("a")
    answer = trial.ask("GET", "a", part=(10, 14))
    if not answer.succeeded:
        return answer.refusal()
    return _compare(
        answer.status == 206 and answer.body == _BODY[10:15], f"{answer.status}, {len(answer.body)} bytes"
    )


def _two_ranges(trial: StoreTrial) -> Finding:
    trial.write("a")
    answer = trial.ask("GET", "a", headers=(("Range", "bytes=0-4,20-24"),))
    if not answer.succeeded:
        return answer.refusal()
    both = "multipart" in answer.fields.get("content-type", "")
    return _compare(both, f"{answer.status}, {len(answer.body)} bytes")


def _conditional(trial: StoreTrial) -> Finding:
    trial.write("a")
    answer = trial.ask("GET", "a", headers=(("If-None-Match", "*"),))
    return _unless(answer, 304)


def _conditional_etag(trial: StoreTrial) -> Finding:
    etag = trial.write("a").fields.get("etag", "").strip('"')
    return _unless(trial.ask("GET", "a", headers=(("If-None-Match", f'"{etag}"'),)), 304)


def _if_match(trial: StoreTrial) -> Finding:
    trial.write("a")
    return _unless(trial.ask("GET", "a", headers=(("If-Match", f'"{_md5(b"")}"'),)), 412)


def _if_modified(trial: StoreTrial) -> Finding:
    trial.write("a")
    written = trial.ask("HEAD", "a").fields.get("last-modified", "")
    return _unless(trial.ask("GET", "a", headers=(("If-Modified-Since", written),)), 304)


def _create_only(trial: StoreTrial) -> Finding:
    new = trial.write("a", headers=(("If-None-Match", "*"),))
    if not new.succeeded:
        return new.refusal()
    again = trial.write("a", _OTHER_BODY, headers=(("If-None-Match", "*"),))
    return _unless(again, 412, "an object that exists is overwritten")


def _etag(trial: StoreTrial) -> Finding:
    field, status = trial.announce(b"")
    return _unless(trial.write("a", headers=(field,)), status, f"a wrong {field[0]} is taken")


def _signed_payload(trial: StoreTrial) -> Finding:
    return _write_with_payload(trial, "signed")


def _chunked_payload(trial: StoreTrial) -> Finding:
    return _write_with_payload(trial, "chunked")


def _write_with_payload(trial: StoreTrial, payload: PayloadMode) -> Finding:
    answer = trial.write("a", payload=payload)
    if not answer.succeeded:
        # What fails for another reason fails in the run too.
        refusal, refused = answer.refusal(), answer.status in _REFUSING
        return refusal if refused else Finding(StoreVerdict.DONE, f"not known: {refusal.detail}")
    read = trial.ask("GET", "a")
    if read.body != _BODY:
        return Finding(StoreVerdict.IGNORED, "other bytes come back")
    encoding = read.fields.get("content-encoding")
    return Finding(StoreVerdict.DONE, f"Content-Encoding: {encoding} comes back") if encoding else DONE


def _unless(answer: StoreAnswer, wanted: int, why: str = "") -> Finding:
    """Return the finding of a request whose condition does not hold, so that it has to have a status."""
    if answer.status == wanted:
        return DONE
    return (
        Finding(StoreVerdict.IGNORED, f"{answer.status}{why and ': ' + why}")
        if answer.succeeded
        else answer.refusal()
    )


def _list(trial: StoreTrial) -> Finding:
    return _list_with(trial, ["a", "b/c", "d"])


def _list_prefix(trial: StoreTrial) -> Finding:
    return _list_with(trial, ["b/c"], prefix=trial.name("b/"))


def _list_delimiter(trial: StoreTrial) -> Finding:
    return _list_with(trial, ["a", "b/", "d"], delimiter="/")


def _list_marker(trial: StoreTrial) -> Finding:
    return _list_with(trial, ["b/c", "d"], marker=trial.name("a"))


def _list_limit(trial: StoreTrial) -> Finding:
    return _list_with(trial, ["a", "b/c"], limit=2)


def _list_with(trial: StoreTrial, expected: list[str], **fields: Any) -> Finding:
    for each in ("a", "b/c", "d"):
        trial.write(each)
    listing = Listing(**{"limit": 1000, "prefix": trial.name(""), **fields})
    answer = trial.ask("GET", listing=listing)
    if not answer.succeeded:
        return answer.refusal()
    names = trial.read_names(answer, listing)
    return _compare(names == [trial.name(each) for each in expected], f"{len(names)} names")


def _head_container(trial: StoreTrial) -> Finding:
    answer = trial.ask("HEAD")
    return DONE if answer.succeeded else answer.refusal()


def _head_account(trial: StoreTrial) -> Finding:
    answer = trial.ask("HEAD", container="")
    return DONE if answer.succeeded else answer.refusal()


def _list_account(trial: StoreTrial) -> Finding:
    listing = Listing(limit=1000, prefix=trial.container)
    answer = trial.ask("GET", container="", listing=listing)
    if not answer.succeeded:
        return answer.refusal()
    there = trial.container in trial.read_names(answer, listing, of_account=True)
    return _compare(there, "the container is not listed")


def _metadata(trial: StoreTrial) -> Finding:
    answer = trial.write("a", metadata=(("Trial", "one"),))
    if not answer.succeeded:
        return answer.refusal()
    found = trial.ask("HEAD", "a").fields
    there = "one" in {found.get("x-object-meta-trial"), found.get("x-amz-meta-trial")}
    return _compare(there, "they are not there")


def _post(trial: StoreTrial) -> Finding:
    trial.write("a", metadata=(("Trial", "one"),))
    answer = trial.ask("POST", "a", metadata=(("Other", "two"),))
    if not answer.succeeded:
        return answer.refusal()
    found = trial.ask("HEAD", "a").fields
    if found.get("x-object-meta-other") != "two":
        return Finding(StoreVerdict.IGNORED, "the new metadata are not there")
    kept = "x-object-meta-trial" in found
    return Finding(StoreVerdict.DONE, "earlier metadata stay") if kept else DONE


def _delete_after(trial: StoreTrial) -> Finding:
    answer = trial.write("a", delete_after=86400)
    if not answer.succeeded:
        return answer.refusal()
    if "x-delete-at" in trial.ask("HEAD", "a").fields:
        return DONE
    # The S3 API of Swift heeds it, and does not show it.
    trial.write("b", delete_after=1)
    for _ in range(_EXPIRY_LOOKS):
        trial.pause(_EXPIRY_SECONDS / _EXPIRY_LOOKS)
        if trial.ask("HEAD", "b").status == 404:
            return DONE
    return Finding(StoreVerdict.IGNORED, "it is not deleted")


def _copy(trial: StoreTrial) -> Finding:
    trial.write("a")
    answer = trial.ask("COPY", "b", copy_from=trial.name("a"))
    if not answer.succeeded:
        return answer.refusal()
    return _compare(trial.ask("GET", "b").body == _BODY, "there is no copy")


def _symlink(trial: StoreTrial) -> Finding:
    trial.write("a")
    place = f"{quote(trial.container, '')}/{quote(trial.name('a'), '/')}"
    answer = trial.write("b", b"", headers=(("X-Symlink-Target", place),))
    if not answer.succeeded:
        return answer.refusal()
    return _compare(trial.ask("GET", "b").body == _BODY, "the link is an empty object")


def _write_slo(trial: StoreTrial) -> StoreAnswer:
    """Write a large object of two segments."""
    manifest = []
    for each, body in (("s/1", _BODY), ("s/2", _OTHER_BODY)):
        trial.write(each, body)
        path = f"/{trial.container}/{trial.name(each)}"
        manifest.append({"path": path, "etag": _md5(body), "size_bytes": len(body)})
    return trial.write("a", json.dumps(manifest).encode(), query="multipart-manifest=put")


def _slo(trial: StoreTrial) -> Finding:
    answer = _write_slo(trial)
    if not answer.succeeded:
        return answer.refusal()
    return _compare(
        trial.ask("GET", "a").body == _BODY + _OTHER_BODY, "the whole is not that of its segments"
    )


def _slo_manifest(trial: StoreTrial) -> Finding:
    answer = _write_slo(trial)
    if not answer.succeeded:
        return answer.refusal()
    read = trial.ask("GET", "a", query="multipart-manifest=get")
    if not read.succeeded:
        return read.refusal()
    rows = _parse_json(read.body)
    named = [each.get("name") if isinstance(each, dict) else None for each in rows or ()]
    expected = [f"/{trial.container}/{trial.name(each)}" for each in ("s/1", "s/2")]
    return _compare(named == expected, f"{read.status}, {len(read.body)} bytes")


def _slo_part(trial: StoreTrial) -> Finding:
    answer = _write_slo(trial)
    if not answer.succeeded:
        return answer.refusal()
    part = trial.ask("GET", "a", part_number=2)
    if not part.succeeded:
        return part.refusal()
    return _compare(part.status == 206 and part.body == _OTHER_BODY, f"{part.status}, {len(part.body)} bytes")


def _slo_delete(trial: StoreTrial) -> Finding:
    answer = _write_slo(trial)
    if not answer.succeeded:
        return answer.refusal()
    deleted = trial.ask("DELETE", "a", query="multipart-manifest=delete")
    if not deleted.succeeded:
        return deleted.refusal()
    return _compare(trial.ask("HEAD", "s/1").status == 404, "its segments stay")


def _dlo(trial: StoreTrial) -> Finding:
    for each, body in (("s/1", _BODY), ("s/2", _OTHER_BODY)):
        trial.write(each, body)
    place = f"{quote(trial.container, '')}/{quote(trial.name('s/'), '/')}"
    answer = trial.write("a", b"", headers=(("X-Object-Manifest", place),))
    if not answer.succeeded:
        return answer.refusal()
    return _compare(
        trial.ask("GET", "a").body == _BODY + _OTHER_BODY, "the whole is not that of its segments"
    )


def _bulk_upload(trial: StoreTrial) -> Finding:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("bulk")
        entry.size = len(_BODY)
        tar.addfile(entry, io.BytesIO(_BODY))
    answer = trial.write(
        "x", archive.getvalue(), query="extract-archive=tar", headers=(("Accept", "application/json"),)
    )
    trial.wrote("x/bulk")
    if not answer.succeeded:
        return answer.refusal()
    return _compare(trial.ask("GET", "x/bulk").body == _BODY, "no object was made")


def _bulk_delete(trial: StoreTrial) -> Finding:
    trial.write("a")
    body = f"/{quote(trial.container, '')}/{quote(trial.name('a'), '/')}\n".encode()
    fields = (("Content-Type", "text/plain"), ("Accept", "application/json"))
    answer = trial.ask("POST", container="", query="bulk-delete", body=body, headers=fields)
    if not answer.succeeded:
        return answer.refusal()
    return _compare(trial.ask("HEAD", "a").status == 404, "it is still there")


def _public(trial: StoreTrial) -> Finding:
    container = f"{trial.container}-public"
    _ground(trial).make_container(container, {"X-Container-Read": ".r:*"})
    trial.write("a", container=container)
    answer = trial.ask("GET", "a", container=container, anonymous=True)
    return _compare(answer.body == _BODY, "other bytes") if answer.succeeded else answer.refusal()


def _tempurl(trial: StoreTrial) -> Finding:
    trial.write("a")
    query = _ground(trial).sign(trial.container)
    answer = trial.ask("GET", "a", signature=query)
    if not answer.succeeded:
        return answer.refusal()
    return _compare(answer.body == _BODY, "other bytes")


def _versions(trial: StoreTrial) -> Finding:
    container = versioned_container(trial.container)
    _ground(trial).make_container(container, {"X-Versions-Enabled": "true"})
    first = trial.write("a", container=container)
    second = trial.write("a", _OTHER_BODY, container=container)
    if not second.succeeded:
        return second.refusal()
    version = first.fields.get("x-object-version-id")
    if version is None:
        return Finding(StoreVerdict.IGNORED, "there is no X-Object-Version-Id")
    found = trial.ask("GET", "a", container=container, version=version).body == _BODY
    trial.ask("DELETE", "a", container=container)
    for each in (version, second.fields.get("x-object-version-id")):
        trial.ask("DELETE", "a", container=container, version=each or "")
    listed = _parse_json(trial.ask("GET", container=container, query="versions=&format=json").body)
    for each in listed if isinstance(listed, list) else []:
        trial.ask("DELETE", "a", container=container, version=str(each.get("version_id")))
    trial.removed("a", container)  # another DELETE would leave a version that says so
    return _compare(found, "the first version cannot be read")


def _ground(trial: StoreTrial) -> TrialGround:
    if trial.ground is None:
        raise ValueError("this check needs more than a container")
    return trial.ground


def _md5(data: bytes) -> str:
    return md5(data, usedforsecurity=False).hexdigest()


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


#: All checks, in the order of the table.
CHECKS = (
    Check("create", "PUT of a new object", _create, basic=True),
    Check("read", "GET of it", _read, basic=True),
    Check("update", "PUT of one that exists", _update, basic=True),
    Check("head", "HEAD of it", _head, basic=True),
    Check("delete", "DELETE of it", _delete, basic=True),
    Check("range", "GET of a part", _range),
    Check("two ranges", "GET of two parts", _two_ranges),
    Check("head_container", "HEAD of a container", _head_container),
    Check("head_account", "HEAD of the account", _head_account),
    Check("list", "GET of a listing", _list),
    Check("list prefix", "names that begin so", _list_prefix),
    Check("list delimiter", "folders in place of their names", _list_delimiter),
    Check("list marker", "names after one", _list_marker),
    Check("list limit", "so many names", _list_limit),
    Check("list_account", "GET of the listing of the account", _list_account),
    Check(
        "conditional",
        "GET with If-None-Match: *",
        _conditional,
        instead="operations send the ETag of the object",
    ),
    Check("conditional ETag", "GET with If-None-Match: ETag", _conditional_etag),
    Check("if match", "GET with If-Match: another ETag", _if_match),
    Check("if modified", "GET with If-Modified-Since: its time", _if_modified),
    Check(
        "create_only",
        "PUT with If-None-Match: * of one that exists",
        _create_only,
        instead="operations may overwrite objects that exist",
    ),
    Check(
        "etag",
        "PUT with the MD5 of another body",
        _etag,
        instead="bodies that were damaged are not refused",
    ),
    Check(
        "payload signed",
        "PUT with the SHA-256 of the body",
        _signed_payload,
        only_over="s3",
        otherwise="unsigned",
    ),
    Check(
        "payload chunked",
        "PUT in chunks with a CRC32 after them",
        _chunked_payload,
        only_over="s3",
        otherwise="unsigned or signed",
    ),
    Check("metadata", "PUT with metadata", _metadata, instead="objects have no metadata"),
    Check("post", "POST of other metadata", _post, instead="operations change nothing"),
    Check("delete_after", "PUT with a time to live", _delete_after, instead="objects do not expire"),
    Check("copy", "COPY to a new object", _copy),
    Check("public", "GET without credentials", _public, only_over="swift"),
    Check("tempurl", "GET by temporary URL", _tempurl),
    Check("symlink", "GET through a symbolic link", _symlink, only_over="swift"),
    Check("slo", "GET of a static large object", _slo, only_over="swift"),
    Check(
        "slo manifest",
        "GET of its manifest",
        _slo_manifest,
        instead="updates of objects in segments list these",
        only_over="swift",
    ),
    Check("slo part", "GET of one of its segments", _slo_part, only_over="swift"),
    Check("slo delete", "DELETE of it with its segments", _slo_delete, only_over="swift"),
    Check("dlo", "GET of a dynamic large object", _dlo, only_over="swift"),
    Check("bulk upload", "PUT of an archive that is extracted", _bulk_upload, only_over="swift"),
    Check("bulk delete", "POST of names that are deleted", _bulk_delete, only_over="swift"),
    Check("versions", "GET of an earlier version", _versions, only_over="swift"),
)


def find_needed_checks(scenarios: Iterable[Scenario]) -> list[Check]:
    """Return the checks of what scenarios ask for and would not notice if the store ignored it."""
    wanted: set[str] = set()
    for each in scenarios:
        used = [own for own in each.operations if own.name in each.operation_names]
        steps = [step for own in used for step in resolve_steps(own.values.get("steps", ()), each.operations)]
        used += [step.settings for step in steps]
        rows = [*map(each.operation_table.named, each.operation_names), *(step.row for step in steps)]
        wanted |= {row.check for row in rows}
        values = [(key.check, getattr(each, key.name)) for key in SCENARIO_KEYS if key.check]
        wanted |= {check.format(value) for check, value in values if value is not None}
        static = any(its.segment_size and its.segments == "static" for its in each.size_classes)
        wanted |= {"slo manifest"} if static and "update" in each.operation_names else set()
        wanted |= {"etag"} if any(own.values.get("etag") for own in used) else set()
    return [check for check in CHECKS if check.name in wanted]
