"""Operations of several requests, which are timed as one.

They are listings, symbolic links, bulk uploads, sequences that a scenario defines, large objects of segments,
and versions of an object. Each is a request builder, as in :mod:`ssbench.worker.operation_requests`: a
function that makes its requests with a :class:`RequestSequence`, and returns how the whole ended.
"""

from __future__ import annotations

import io
import os
import random
import tarfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import gevent.pool
from msgspec import MsgspecError, json, structs

from ssbench.fleet.wire import Spent
from ssbench.scenario.names import replace_percent_signs, versioned_container
from ssbench.scenario.operations import (
    DEFAULT_LISTING_LIMIT,
    DEFAULT_READ_MODES,
    EXISTS_CAUSE,
    FOUND_CAUSE,
    LIST,
    MISSING,
    REMOVE,
    Effect,
    OperationSettings,
    SequenceStep,
    find_sequence_effect,
    resolve_steps,
)
from ssbench.store.contract import (
    ADDED_OVER_REQUESTS,
    NO_PRIOR_ATTEMPTS,
    NOT_VERSIONED,
    UNANSWERED_CAUSES,
    WRONG_ETAG,
    WRONG_LISTING,
    WRONG_VERDICT,
    BodyPiece,
    Listing,
    MultipartUpload,
    PriorAttempts,
    RequestOutcome,
    StoreRequest,
    add_rare_fields,
    cause_of_status,
    change_rare_fields,
)
from ssbench.store.http.bodies import start_md5
from ssbench.store.http.dialect import HttpDialect
from ssbench.worker.operation_requests import (
    MAX_VERDICT_BYTES,
    NO_SETTINGS,
    JobTarget,
    find_builder,
    register_builder,
)

#: Objects of archives, and their sizes, unless a scenario says others.
_OBJECT_COUNT, _OBJECT_SIZES = 10, (1000, 1000)

ACCEPT_JSON_HEADERS = (("Accept", "application/json"),)

#: What reading a body as JSON raises: it may also hold bytes that are no UTF-8, or be nested too deeply.
DECODING_ERRORS = (MsgspecError, ValueError, RecursionError)

_NOT_FOUND_STATUS = 404

_LISTING_FIELDS = ("prefix", "delimiter", "marker")
#: Bytes of the largest page of a listing.
MAX_PAGE_BYTES = 64 * 2**20


class RequestSequence:
    """The requests of one operation, one after the other, and their totals as its one outcome.

    It is timed from the first to the end of the last; retries and bytes add up. ``entries`` are those of
    listings.
    """

    def __init__(self, target: JobTarget) -> None:
        self.entries = 0
        self._steps: list[float] = []
        self._target = target
        self._done: list[RequestOutcome] = []

    def ask(self, **more: Any) -> RequestOutcome:
        """Make the request of the operation's row, changed by ``more``."""
        return self.perform(self._target.request(**more))

    def perform(self, request: StoreRequest) -> RequestOutcome:
        """Make a request; one that fails should be the last."""
        target = self._target
        prior = target.spent if not self._done else NO_PRIOR_ATTEMPTS
        outcome = target.client.perform(target.url, request, target.token, prior)
        if request.method == "HEAD":
            outcome = structs.replace(outcome, size=0)  # no body was moved
        self._done.append(outcome)
        return outcome

    def send_manifest(self, request: StoreRequest) -> RequestOutcome:
        """Make a request whose body counts among the bytes."""
        outcome = self.perform(request)
        if outcome.cause is None:
            self._done[-1] = structs.replace(outcome, size=outcome.size + len(request.body or b""))
        return self._done[-1]

    def together(self, requests: list[StoreRequest], most: int | None = None) -> list[RequestOutcome]:
        """Make requests at once, ``most`` of them; after one has failed those are left out that wait."""
        target = self._target
        prior = target.spent if not self._done else NO_PRIOR_ATTEMPTS
        # All began with the operation's first attempt; its retries and its pause count once.
        later = (0, prior[1], None, prior[3])
        perform, url, token = target.client.perform, target.url, target.token
        failed = False

        def carry_out(request: StoreRequest, prior: PriorAttempts) -> RequestOutcome | None:
            nonlocal failed
            if failed and most is not None:
                return None
            outcome = perform(url, request, token, prior)
            failed |= outcome.cause is not None
            return outcome

        pool = gevent.pool.Pool(most)
        begun = [
            pool.spawn(carry_out, request, later if place else prior)
            for place, request in enumerate(requests)
        ]
        outcomes = [found for each in begun if (found := each.get()) is not None]
        # The last one is how it ended: one that failed, else the one that took longest.
        self._done += sorted(outcomes, key=lambda each: (each.cause is not None, each.completed))
        return outcomes

    def step(self) -> None:
        """Let a step end with the last request; it began with the end of the step before."""
        self._steps.append(max(0.0, self._took() - sum(self._steps)))

    def _took(self) -> float:
        """Return the seconds from the beginning of the first request to the end of the last.

        Of requests at once, which are sorted by how they ended, any may have begun first or ended last.
        """
        took = max(each.completed for each in self._done) - min(map(_began, self._done))
        # Sums of floating point numbers: a first byte is not to come some picoseconds after the last one.
        return max(took, self._done[0].first_byte or 0.0)

    def add(self, outcome: RequestOutcome) -> None:
        """Note how a request ended that something else made."""
        self._done.append(outcome)
        self.entries += outcome.rare.entries if outcome.rare else 0

    def spoil(self, cause: str, detail: str) -> None:
        """Let the last request be a failure, because of what its answer says."""
        last = self._done[-1]
        spent = last.last_byte if last.spent is None else last.spent
        self._done[-1] = structs.replace(
            last, cause=cause, detail=detail, first_byte=None, last_byte=None, spent=spent
        )

    @property
    def cause(self) -> str | None:
        """Why the last request failed; None where it succeeded, or there is none yet."""
        return self._done[-1].cause if self._done else None

    def fault(self, cause: str, detail: str) -> RequestOutcome:
        """Return the outcome of an operation whose answers are wrong, although their statuses are not."""
        return self._whole(cause, detail)

    def outcome(self) -> RequestOutcome:
        """Return the outcome of what was done so far, which is that of the last request where it failed."""
        last = self._done[-1]
        return self._whole(last.cause, last.detail)

    def _whole(self, cause: str | None, detail: str) -> RequestOutcome:
        first, last = self._done[0], self._done[-1]
        retried: Counter[str] = Counter()
        for each in self._done:
            retried.update(each.retried or {})
        took = self._took()
        rare = add_rare_fields([each.rare for each in self._done], ADDED_OVER_REQUESTS)
        # What bodies of later requests took before these began is the worker's own time.
        summing = min(self._done, key=_began).summing
        rare.pausing += sum(each.summing for each in self._done) - summing
        # Of requests at once they add up to more than there was.
        rare.connecting = min(took, rare.connecting)
        rare.pausing = min(took - rare.connecting, rare.pausing)
        rare.last_attempt = None
        rare.sending = min(took, max(0.0, _began(last) - min(map(_began, self._done)) + rare.sending))
        rare.entries = self.entries
        rare.steps = list(self._steps) if cause is None else []
        return structs.replace(
            last,
            first_byte=first.first_byte if cause is None else None,
            last_byte=took if cause is None or last.unauthorized else None,
            completed=max(each.completed for each in self._done),
            size=sum(each.size for each in self._done) if cause is None else 0,
            retries=sum(each.retries for each in self._done),
            cause=cause,
            detail=detail,
            retried=dict(retried) or None,
            spent=None if cause is None else took,
            resent=sum(each.resent for each in self._done),
            rare=rare,
            reply=None,
            summing=summing,
        )


def _began(outcome: RequestOutcome) -> float:
    """Return when a request began, by the monotonic clock."""
    return outcome.completed - ((outcome.last_byte or outcome.spent) or 0.0)


class TemporaryObjects:
    """Objects that one operation makes and removes, with the requests for that, and the wrong answer, if any.

    Their names begin with that of the job's object, and are used once. ``left`` is how many could not be
    deleted where something failed.
    """

    def __init__(self, target: JobTarget) -> None:
        self.target = target
        self.sequence = RequestSequence(target)
        self.prefix = f"{target.name}-{os.urandom(8).hex()}"
        self.wrong: tuple[str, str] | None = None
        self.left = 0

    def put(self, name: str, **more: Any) -> StoreRequest:
        """Return a PUT of an object under the prefix; it says whose it is, and may expire."""
        target = self.target
        return StoreRequest(
            method="PUT",
            container=target.container,
            name=self.prefix + name,
            keep=MAX_VERDICT_BYTES,
            delete_after=target.delete_after,
            owner=target.owner,
            **more,
        )

    def verdict(self, outcome: RequestOutcome, count: str, expected: int) -> bool:
        """Whether a body says that all went well, and how many objects it was about; remember if not."""
        said = decode_verdict(outcome)
        status = str(said.get("Response Status", "no verdict"))
        if status.startswith("2") and said.get(count) == expected and not said.get("Errors"):
            return True
        self.wrong = (
            cause_of_verdict(status),
            f"{status}, {count} {said.get(count)} of {expected}, {said.get('Errors')}"[:400],
        )
        return False

    def deleted(self, outcome: RequestOutcome, *names: str, manifest: bool = False) -> bool:
        """Whether a body says that all of these names are gone; remember if not.

        What an attempt without an answer may have deleted is not there any more for the next one. Of a
        ``manifest`` that is gone, the last of the names, the store does not know what else there was.
        """
        expected = len(names)
        if outcome.resent or UNANSWERED_CAUSES & (outcome.retried or {}).keys():
            if outcome.status == _NOT_FOUND_STATUS:
                return True
            said = decode_verdict(outcome)
            number, missing = said.get("Number Deleted"), said.get("Number Not Found")
            if manifest and (number, missing) == (0, 1):
                expected = 0
            elif isinstance(missing, int):
                expected -= missing
        return self.verdict(outcome, "Number Deleted", expected)

    @property
    def good(self) -> bool:
        """Whether all went well so far."""
        return self.wrong is None and self.sequence.cause is None

    def end(self, *names: str) -> RequestOutcome:
        """Return the outcome; where something failed, delete what there may be of these names first."""
        if self.good:
            return self.sequence.outcome()
        outcome = self.sequence.fault(*self.wrong) if self.wrong else self.sequence.outcome()
        for name in names:
            container = self.target.container
            self.clean(StoreRequest(method="DELETE", container=container, name=self.prefix + name))
        return change_rare_fields(outcome, left=self.left)

    def clean(self, request: StoreRequest) -> None:
        """Delete what an operation may have made, or not; count it in ``left`` if that fails."""
        target = self.target
        request = structs.replace(request, missing_ok=True)
        self.left += target.client.perform(target.url, request, target.token).cause is not None


def cause_of_verdict(status: str) -> str:
    """Return the cause of a failure that a body tells of, by the status in it.

    Where all went well, Swift's bodies have 200 for deletions and 201 for archives, and no other 2xx ever
    (``swift/common/middleware/bulk.py``). One beside errors or a wrong number contradicts itself.
    """
    is_failure = status[:3].isdecimal() and status[0] != "2"
    return cause_of_status(int(status[:3])) if is_failure else WRONG_VERDICT


def decode_verdict(outcome: RequestOutcome) -> dict[str, Any]:
    """Return what a body says; empty where it is no such body."""
    try:
        return json.decode(outcome.reply.body if outcome.reply else b"", type=dict[str, Any])
    except DECODING_ERRORS:
        return {}


@register_builder("list", "list_account")
def run_listing(target: JobTarget) -> RequestOutcome:
    """GET a listing, page after page up to the number of ``pages``; all must be in ascending order."""
    values = target.settings.values
    dialect = target.client.dialect(target.url)
    listing = Listing(
        limit=values.get("limit", DEFAULT_LISTING_LIMIT),
        **{key: values[key] for key in _LISTING_FIELDS if key in values},
    )
    sequence = RequestSequence(target)
    last, delimiter = (each.encode() for each in (listing.marker, listing.delimiter))
    for _ in range(values.get("pages", 1)):
        request = target.request(listing=listing, keep=MAX_PAGE_BYTES)
        page = sequence.perform(request)
        if page.cause is not None:
            break
        try:
            found = dialect.read_page(page.reply.body if page.reply else b"", request)
        except ValueError as error:
            return sequence.fault(WRONG_LISTING, str(error)[:400])
        names = [name.encode() for name, _ in found.rows]
        if names != sorted(names):
            return sequence.fault(WRONG_LISTING, f"{len(names)} names, of which some are out of order")
        if names and last and names[0] <= last and not _holds(names[0], delimiter, last):
            return sequence.fault(WRONG_LISTING, "names that do not come after the marker")
        if names:
            # What the last entry of a page stands for is in no page after it.
            last, delimiter = names[-1], b""
        sequence.entries += len(names)
        if not found.following:
            break
        listing = structs.replace(listing, following=found.following)
    return sequence.outcome()


def _holds(rolled_up: bytes, delimiter: bytes, marker: bytes) -> bool:
    """Whether an entry that comes before the marker may stand for names after it: it begins the marker."""
    return bool(delimiter) and rolled_up.endswith(delimiter) and marker.startswith(rolled_up)


@register_builder("symlink")
def run_symlink(target: JobTarget) -> RequestOutcome:
    """PUT a symbolic link to the object, GET the object through it, DELETE the link."""
    made = TemporaryObjects(target)
    place = f"{target.client.quoted(target.container)}/{target.client.quoted(target.name)}"
    made.sequence.perform(made.put("", headers=(("X-Symlink-Target", place), *target.settings.headers)))
    made.sequence.step()
    if made.sequence.cause is None:
        whole = StoreRequest(
            method="GET",
            container=target.container,
            name=made.prefix,
            expected=target.size,
            content=target.name,
        )
        made.sequence.perform(whole)
        made.sequence.step()
    if made.sequence.cause is None:
        link = StoreRequest(method="DELETE", container=target.container, name=made.prefix)
        made.sequence.perform(link)
        made.sequence.step()
    return made.end("")


def _run_bulk_deletion(
    made: TemporaryObjects, dialect: HttpDialect, names: list[str], sizes: tuple[int, int]
) -> RequestOutcome:
    """PUT objects at once, then delete all of them with one request: there are no archives here."""
    made.sequence.together([made.put(name, size=random.randint(*sizes)) for name in names])
    made.sequence.step()
    if made.good:
        deletes = tuple((made.prefix + name, "") for name in names)
        request = StoreRequest(
            method="POST", container=made.target.container, deletes=deletes, keep=MAX_VERDICT_BYTES
        )
        reply = made.sequence.perform(request).reply
        made.sequence.step()
        try:
            failures = dialect.read_failures(reply.body if reply else b"", request) if made.good else []
            if failures:
                text = f"{len(failures)} of {len(names)} not deleted, {failures[0]}"
                made.wrong = WRONG_VERDICT, text[:400]
        except ValueError as error:
            made.wrong = WRONG_VERDICT, str(error)[:400]
    return made.end(*names)


@register_builder("bulk")
def run_bulk(target: JobTarget) -> RequestOutcome:
    """PUT an archive that becomes objects, then delete all of them with one request."""
    made, values, container = TemporaryObjects(target), target.settings.values, target.container
    names = [f"/{number:06d}" for number in range(values.get("objects", _OBJECT_COUNT))]
    low, high = values.get("size", _OBJECT_SIZES)
    dialect = target.client.dialect(target.url)
    if dialect.deletes_at_once > 1:
        return _run_bulk_deletion(made, dialect, names, (low, high))
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in names:
            entry = tarfile.TarInfo(made.prefix + name)
            entry.size = random.randint(low, high)
            tar.addfile(entry, io.BytesIO(os.urandom(entry.size)))
    upload = StoreRequest(
        method="PUT",
        container=container,
        query="extract-archive=tar",
        headers=(*ACCEPT_JSON_HEADERS, *target.settings.headers),
        body=archive.getvalue(),
        keep=MAX_VERDICT_BYTES,
    )
    done = made.sequence.perform(upload)
    made.sequence.step()
    if done.cause is None and made.verdict(done, "Number Files Created", len(names)):
        listed = "\n".join(f"/{target.client.quoted(container + '/' + made.prefix + name)}" for name in names)
        delete = StoreRequest(
            method="POST",
            query="bulk-delete",
            headers=(*ACCEPT_JSON_HEADERS, ("Content-Type", "text/plain")),
            body=listed.encode(),
            keep=MAX_VERDICT_BYTES,
        )
        made.deleted(made.sequence.perform(delete), *names)
        made.sequence.step()
    return made.end(*names)


# -- Sequences of a scenario -----------------------------------------------------------------------


#: Words of the prefix of a listing in a sequence: the name of the object, and what is up to its last slash.
_OBJECT_WORD, _FOLDER_WORD = "{object}", "{folder}"

#: What was spent before on a step that is not the first of an operation that may have been made before.
_MADE_BEFORE: Spent = (0, None, None, True)


@register_builder("sequence")
def run_sequence(target: JobTarget) -> RequestOutcome:
    """Carry out operations on the object of the job, which exists or is new.

    Where they are for an object of their own, what is left of that is deleted afterwards.
    """
    steps = resolve_steps(target.settings.values["steps"], target.parameters.scenario.operations)
    if not target.operation.makes_objects:
        sequence = RequestSequence(target)
        _perform_steps(sequence, target, steps)
        return sequence.outcome()
    made = TemporaryObjects(target)
    _perform_steps(made.sequence, structs.replace(target, name=made.prefix), steps)
    outcome = made.end()
    if not made.good or find_sequence_effect(steps) is Effect.ADDS:
        own = structs.replace(
            target, operation=REMOVE, name=made.prefix, settings=NO_SETTINGS, spent=NO_PRIOR_ATTEMPTS
        )
        made.left += find_builder(REMOVE, segmented=bool(target.segments[0]))(own).cause is not None
    return change_rare_fields(outcome, left=made.left)


def _perform_steps(sequence: RequestSequence, target: JobTarget, steps: list[SequenceStep]) -> None:
    """Carry out steps, up to one that fails."""
    # A job that is made again, because its token was refused, may have done some of them.
    again = target.spent[1] is not None or target.spent[-1]
    spent = (*target.spent[:3], again)
    effect = target.operation.effect
    # The size of a job that replaces an object is that of the new one.
    size = 0 if effect is Effect.REWRITES else target.size
    written = False
    for step in steps:
        written = written or step.row.sends_body
        size = target.size if written else size
        for _ in range(step.times):
            own = structs.replace(
                target,
                operation=step.row,
                settings=_place_prefix(step.settings, target.name) if step.row is LIST else step.settings,
                size=size,
                spent=spent,
            )
            build = find_builder(step.row, segmented=bool(target.segments[0]))
            done = (look_for_missing if step.row is MISSING else build)(own)
            if done.cause == FOUND_CAUSE and effect is Effect.ADDS and not written:
                done = structs.replace(done, cause=EXISTS_CAUSE)  # it is not this run's
            sequence.add(done)
            if done.cause is not None:
                return
            spent = _MADE_BEFORE if again else NO_PRIOR_ATTEMPTS
        sequence.step()


def _place_prefix(settings: OperationSettings, name: str) -> OperationSettings:
    """Return the settings of a listing that follows other requests for an object of a name."""
    prefix = settings.values.get("prefix", _OBJECT_WORD)
    prefix = prefix.replace(_FOLDER_WORD, name[: name.rfind("/") + 1]).replace(_OBJECT_WORD, name)
    return replace(settings, values={**settings.values, "prefix": prefix})


def look_for_missing(target: JobTarget) -> RequestOutcome:
    """HEAD or GET the object, which has to be missing."""
    method = target.settings.values.get("method", target.operation.method)
    # Of a job that is made again the object may be there already.
    already = frozenset({200} if target.spent[-1] else ())
    outcome = target.ask(method=method, content="", done_before=already)
    return structs.replace(outcome, size=0) if method == "HEAD" else outcome


@register_builder("missing")
def run_missing(target: JobTarget) -> RequestOutcome:
    """HEAD or GET an object of a name that no object has."""
    return look_for_missing(structs.replace(target, name=f"{target.name}-{os.urandom(8).hex()}"))


# -- Large objects of segments ---------------------------------------------------------------------


#: Segments and their sizes, unless a scenario says others.
_SEGMENT_COUNT, _SEGMENT_SIZES = 3, (1_000_000, 1_000_000)

#: Sizes of parts, unless a scenario says others: S3 stores take no smaller ones.
_PART_SIZES = (5 * 2**20, 5 * 2**20)


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


def _read_segments(made: TemporaryObjects, sizes: list[int]) -> None:
    """GET the whole, a range of the length of the first segment, or a segment by its number."""
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
                part_number=number + 1,
                success=frozenset({206}),
                expected=sizes[number],
            )
        else:
            read = structs.replace(of_object, expected=sum(sizes))
        made.sequence.perform(read)
        made.sequence.step()


class PartsUpload:
    """The upload of an object in parts. A request that fails should be the last, but for :meth:`abort`.

    ``whole`` is a request for the object, with what it is to have beside its body. Its ``delete_after`` is
    also that of the parts. The end has headers of its own.
    """

    def __init__(
        self, sequence: RequestSequence, dialect: HttpDialect, whole: StoreRequest, ending: StoreRequest
    ) -> None:
        self._sequence, self._dialect = sequence, dialect
        begins = MultipartUpload("begin")
        self._first = structs.replace(whole, method="POST", upload=begins, keep=MAX_VERDICT_BYTES)
        # Where the answer to the end was lost, the upload is not there any more.
        ended = frozenset({_NOT_FOUND_STATUS})
        self._last = structs.replace(ending, method="POST", keep=MAX_VERDICT_BYTES, done_before=ended)
        self._etags: tuple[str, ...] = ()
        self._checksums: tuple[str, ...] = ()
        self.number = ""  # the store's name for it; empty: it has none yet

    def begin(self) -> None:
        """Begin it, which gives it its number."""
        begun = self._sequence.perform(self._first)
        if begun.cause is not None:
            return
        try:
            self.number = self._dialect.read_upload(begun.reply.body if begun.reply else b"")
        except ValueError as error:
            self._sequence.spoil(WRONG_VERDICT, str(error)[:400])

    def send(self, pieces: Sequence[tuple[int, BodyPiece | None]], most: int | None, *, etag: bool) -> None:
        """PUT parts of these sizes at once, ``most`` of them; ``etag`` as in a request."""
        part = StoreRequest(
            method="PUT",
            container=self._first.container,
            name=self._first.name,
            upload=MultipartUpload("part", self.number),
            delete_after=self._first.delete_after,
            keep=MAX_VERDICT_BYTES,
            etag=etag,
        )
        sent = self._sequence.together(
            [
                structs.replace(part, size=size, piece=piece, part_number=place)
                for place, (size, piece) in enumerate(pieces, start=1)
            ],
            most,
        )
        said = [each.reply.fields if each.reply else {} for each in sent]
        self._etags = tuple(each.get("etag", "").strip('"') for each in said)
        checksums = tuple(each.get(self._dialect.part_checksum_field, "") for each in said)
        self._checksums = checksums if all(checksums) else ()

    def end(self) -> RequestOutcome:
        """Let the parts be the object."""
        step = MultipartUpload("end", self.number, self._etags, self._checksums)
        return self._sequence.perform(structs.replace(self._last, upload=step))

    def abort(self) -> StoreRequest:
        """Return the request that gives it up, with all of its parts."""
        return end_upload(self._first.container, self._first.name, self.number)


def end_upload(container: str, name: str, number: str) -> StoreRequest:
    """Return the request that gives up an upload of parts; one that is not there is as good."""
    upload = MultipartUpload("abort", number)
    return StoreRequest(method="DELETE", container=container, name=name, upload=upload, missing_ok=True)


def _run_multipart(made: TemporaryObjects, dialect: HttpDialect) -> RequestOutcome:
    """Upload an object in parts, several at once, GET what was put, DELETE it."""
    target, values = made.target, made.target.settings.values
    low, high = values.get("segment_size", _PART_SIZES)
    sizes = [random.randint(low, high) for _ in range(values.get("segments", _SEGMENT_COUNT))]
    whole = made.put("", headers=target.settings.headers)
    plain = structs.replace(whole, owner=None, headers=())
    upload = PartsUpload(made.sequence, dialect, whole, plain)
    upload.begin()
    if made.good:
        upload.send([(size, None) for size in sizes], None, etag=False)
        made.sequence.step()
    if made.good:
        upload.end()
        made.sequence.step()
    _read_segments(made, sizes)
    if made.good:
        made.sequence.perform(structs.replace(plain, method="DELETE", keep=0, delete_after=None))
        made.sequence.step()
    elif upload.number:
        made.clean(upload.abort())
    return made.end("")


@register_builder("slo")
def run_slo(target: JobTarget) -> RequestOutcome:
    """PUT segments at once and a manifest of them, GET what was put, DELETE it with its segments."""
    made = TemporaryObjects(structs.replace(target, name=replace_percent_signs(target.name)))
    dialect = target.client.dialect(target.url)
    if dialect.uploads_parts:
        return _run_multipart(made, dialect)
    segments = ObjectSegments(made)
    if made.good:
        rows = [
            {"path": f"/{target.container}/{each.name}", "etag": etag, "size_bytes": each.size}
            for each, etag in zip(segments.requests, segments.etags, strict=True)
        ]
        headers = target.settings.headers
        manifest = made.put("", query="multipart-manifest=put", body=json.encode(rows), headers=headers)
        put = made.sequence.send_manifest(manifest)
        made.sequence.step()
        etag = start_md5("".join(segments.etags).encode()).hexdigest()
        said = put.reply.fields.get("etag", "").strip('"') if put.reply else etag
        if said != etag:
            made.wrong = WRONG_ETAG, f"the answer has the ETag {said}, that of the segments is {etag}"
    _read_segments(made, [each.size for each in segments.requests])
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
    _read_segments(made, [each.size for each in segments.requests])
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


# -- Versions of an object -------------------------------------------------------------------------


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
            version=ids[0],
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
    container = made.target.container
    return StoreRequest(
        method="DELETE", container=container, name=made.prefix, version=version, missing_ok=not version
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
