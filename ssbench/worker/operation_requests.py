"""What each operation asks of the store: a function for each row of :mod:`ssbench.scenario.operations`.

It is a function of a job (:class:`JobTarget`), makes one request or several through the run's client, and
returns how the job ended. :data:`REQUEST_BUILDERS` holds those of operations that are more than one plain
request; for all others the method decides.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, structs

from ssbench.fleet.wire import RunParameters, Spent
from ssbench.scenario.names import format_object_name
from ssbench.scenario.operations import (
    DEFAULT_PART_LENGTH,
    IGNORED_CAUSE,
    OPERATIONS,
    SEQUENCE,
    Header,
    OperationKind,
    OperationSettings,
    RequestTarget,
)
from ssbench.store.conformance_checks import CHECKS, StoreTrial, StoreVerdict
from ssbench.store.contract import (
    NOT_FOUND,
    OF_ANOTHER_SCENARIO,
    WRONG_SIZE,
    BodyPiece,
    RequestOutcome,
    StoreRequest,
    cause_of_status,
)
from ssbench.store.http.bodies import MetadataShape, find_written_shape, make_metadata, posted_shape

if TYPE_CHECKING:
    from ssbench.store.http.client import HttpClient
    from ssbench.store.http.connection import HttpConnection

NO_SETTINGS = OperationSettings("")

#: What checks find is cut to this many characters.
MAX_FINDING_CHARACTERS = 500

#: The largest body that says how a request went.
MAX_VERDICT_BYTES = 2**20


#: So many ETags are kept, some 200 bytes each.
_MAX_ETAGS = 50_000

#: How often an object is asked for with the ETag that the store told of it last.
_MAX_CONDITIONS = 4


class KnownEtags:
    """ETags of objects, for a store that ignores ``If-None-Match: *``; there it is ``needed``."""

    def __init__(self) -> None:
        self.needed = False
        self._found: dict[str, str] = {}

    def get(self, place: str) -> str | None:
        """Return the ETag of the object at ``CONTAINER/NAME``; None: it is not known."""
        return self._found.get(place)

    def keep(self, place: str, etag: str) -> None:
        """Keep the ETag of an object; that of the object that was kept first is forgotten for it."""
        if place not in self._found and len(self._found) >= _MAX_ETAGS:
            del self._found[next(iter(self._found))]
        self._found[place] = etag


class JobTarget(Struct, frozen=True, gc=False):
    """A job as a request builder sees it."""

    operation: OperationKind
    client: HttpClient
    parameters: RunParameters
    url: str  # the storage URL to use
    container: str
    name: str
    size: int  # bytes to send, or those of the object that is read; 0: not known
    size_class: int  # an index
    spent: Spent  # what was spent on the job before
    token: str | None
    begun: HttpConnection | None = None  # a connection on which its request was sent
    settings: OperationSettings = NO_SETTINGS  # those of its operation
    container_number: int = 0
    etags: KnownEtags = field(default_factory=KnownEtags)  # those of the worker
    job_id: int = 0  # which is the version of what it writes, where bodies are verified
    least: int = 0  # the version that its object has at least
    own: bool = False  # its object has a name that follows from numbers

    def request(self, **more: Any) -> StoreRequest:
        """Return the request that the row of the operation describes, changed by ``more``."""
        row = self.operation
        return StoreRequest(
            **{
                "method": row.method,
                "container": "" if row.on is RequestTarget.ACCOUNT else self.container,
                "name": self.name if row.on is RequestTarget.OBJECT else "",
                "headers": row.headers + self.settings.headers,
                "query": row.query,
                "success": row.success,
                "causes": row.causes,
                "least": self.least,
                "own": self.own,
                **more,
            }
        )

    def ask(self, **more: Any) -> RequestOutcome:
        """Make that request."""
        return self.client.perform(self.url, self.request(**more), self.token, self.spent, self.begun)

    @property
    def delete_after(self) -> int | None:
        """In how many seconds what is written is to expire: drawn, where there are two ends; None: never."""
        scenario = self.parameters.scenario
        least, most = scenario.delete_after, scenario.delete_after_most
        return least if least is None or most is None else random.randint(least, most)

    @property
    def segments(self) -> tuple[int, bool]:
        """How large the segments of the object are (0: it has none), and whether they are dynamic."""
        found = self.parameters.segments
        return found[self.size_class] if found else (0, False)

    @property
    def owner(self) -> str | None:
        """What the object is to say of whose it is; None for nothing."""
        owners = self.parameters.owners
        return owners[self.size_class] if owners else None

    def metadata(self, shape: MetadataShape) -> tuple[Header, ...]:
        """Return new metadata of the object, so much of them."""
        return make_metadata(self.parameters.run_id, f"{self.container}/{self.name}", shape)


RequestBuilder = Callable[[JobTarget], RequestOutcome]

#: Functions of operations that are not one plain request, by code.
REQUEST_BUILDERS: dict[int, RequestBuilder] = {}


#: Functions of operations that are others for objects in segments, by code.
LARGE_OBJECT_BUILDERS: dict[int, RequestBuilder] = {}


def register_builder(*names: str, segmented: bool = False) -> Callable[[RequestBuilder], RequestBuilder]:
    """Let a function make the requests of the operations of these names.

    ``segmented``: for objects in segments only.
    """

    def register(function: RequestBuilder) -> RequestBuilder:
        builders = LARGE_OBJECT_BUILDERS if segmented else REQUEST_BUILDERS
        builders.update({OPERATIONS.named(name).code: function for name in names})
        return function

    return register


def make_body_fields(target: JobTarget) -> dict[str, Any]:
    """Return the body of a request that writes an object, whose it is, and its metadata."""
    found: dict[str, Any] = {"size": target.size, "owner": target.owner}
    metadata = target.parameters.scenario.metadata
    if metadata is not None:
        found["metadata"] = target.metadata(find_written_shape(metadata))
    if not target.segments[0]:
        found["piece"] = BodyPiece(f"{target.container}/{target.name}", target.job_id, 0)
    return found


def make_write_fields(target: JobTarget) -> dict[str, Any]:
    """Return what a request has besides that writes an object."""
    etag = bool(target.settings.values.get("etag"))
    return {"delete_after": target.delete_after, "etag": etag, **make_body_fields(target)}


def write_object(target: JobTarget) -> RequestOutcome:
    """PUT the object."""
    return target.ask(**make_write_fields(target))


#: The one range that a header field of a scenario may ask for: from a byte, to a byte, or the last so many.
_RANGE_PATTERN = re.compile(r"\s*bytes=(?:(\d{1,18})-(\d{1,18})?|-(\d{1,18}))\s*", re.ASCII)


def make_read_fields(target: JobTarget) -> dict[str, Any]:
    """Return how many bytes a read must return, where known: all, or those of a Range field that it has."""
    headers = target.settings.headers
    wanted = next((value for name, value in headers if name.lower() == "range"), None)
    if wanted is None:
        return {"expected": target.size}
    part = _find_part(wanted, target.size)
    if part is None:  # no length to check
        return {"success": frozenset({HTTPStatus.PARTIAL_CONTENT})}
    others = tuple(each for each in headers if each[0].lower() != "range")
    length = part[1] - part[0] + 1 if target.size else 0
    return {"headers": target.operation.headers + others, "part": part, "expected": length}


def _find_part(wanted: str, size: int) -> tuple[int, int] | None:
    """Return the first and the last byte that a Range field asks of an object; None: that is not known.

    A ``size`` of 0 is not known.
    """
    found = _RANGE_PATTERN.fullmatch(wanted)
    if found is None:
        return None
    begin, end, suffix = (None if each is None else int(each) for each in found.groups())
    if size:
        first = max(size - (suffix or 0), 0) if begin is None else begin
        last = size - 1 if end is None else min(end, size - 1)
        return (first, last) if first <= last else None
    return None if begin is None or end is None else (begin, end)


def send_request(target: JobTarget) -> RequestOutcome:
    """Make a request without a body; a read must return the object's bytes, where their number is known."""
    row = target.operation
    return target.ask(
        # A lost worker may have deleted the object, or an attempt whose answer was lost.
        missing_ok=target.spent[-1] and row.method == "DELETE",
        **(make_read_fields(target) if row.returns_object else {}),
    )


def check_object_size(target: JobTarget) -> RequestOutcome:
    """HEAD the object; a size that is told has to be its own. That is not counted: no body was moved."""
    outcome = send_request(target)
    if (
        outcome.cause is None
        and target.operation.on is RequestTarget.OBJECT
        and target.size not in {0, outcome.size}
        and not outcome.unsized
    ):
        detail = f"{target.name}: {outcome.size} bytes, by the answer, of an object of {target.size}"
        return structs.replace(outcome, size=0, cause=WRONG_SIZE, detail=detail)
    return structs.replace(outcome, size=0)


@register_builder("public")
def read_anonymously(target: JobTarget) -> RequestOutcome:
    """GET the whole object without credentials."""
    return target.ask(anonymous=True, **make_read_fields(target))


@register_builder("tempurl")
def read_signed(target: JobTarget) -> RequestOutcome:
    """GET the whole object by temporary URL."""
    signature = target.parameters.signed[target.container_number]
    return target.ask(signature=signature, content=target.name, **make_read_fields(target))


@register_builder("conditional")
def ask_whether_changed(target: JobTarget) -> RequestOutcome:
    """GET an object unless it is still the same, as it has to be.

    Any ETag would do (``*``). A store that ignores that gets the one that the object has, which is asked for
    (HEAD) where it is not known. A store that answers with the object ignored the condition if that has the
    ETag that was sent. Else it was written since, or a replica lags: the ETag of the answer is the next.
    """
    etags, place = target.etags, f"{target.container}/{target.name}"
    if not etags.needed:
        outcome = target.ask()
        if outcome.cause != IGNORED_CAUSE:
            return outcome
        etags.needed = True
    etag = etags.get(place)
    if etag is None:
        looked = _look_for_etag(target)
        etag = _find_etag(looked)
        if not etag:
            return target.ask() if looked.cause is None else looked
    for _ in range(_MAX_CONDITIONS):
        etags.keep(place, etag)
        outcome = _ask_with_etag(target, etag)
        if outcome.cause != IGNORED_CAUSE:
            return outcome
        found = _find_etag(outcome) or _find_etag(_look_for_etag(target))
        if found in {"", etag}:
            return outcome
        etag = found
    cause = cause_of_status(outcome.status)
    return structs.replace(outcome, cause=cause, detail=f"{target.name}: another ETag each time")


def _look_for_etag(target: JobTarget) -> RequestOutcome:
    looked = target.request(method="HEAD", headers=(), success=frozenset(), causes={}, content="", keep=1)
    return target.client.perform(target.url, looked, target.token)


def _find_etag(outcome: RequestOutcome) -> str:
    """Return the ETag of an answer; empty where it has none."""
    return outcome.reply.fields.get("etag", "").strip('"') if outcome.reply is not None else ""


def _ask_with_etag(target: JobTarget, etag: str) -> RequestOutcome:
    others = tuple(each for each in target.operation.headers if each[0] != "If-None-Match")
    return target.ask(headers=(*others, ("If-None-Match", f'"{etag}"'), *target.settings.headers))


@register_builder("first_try")
def try_check(target: JobTarget) -> RequestOutcome:
    """Find out whether the store does something, by the check of the number that the job has as its size."""
    began = time.monotonic()
    trial = StoreTrial(target.client, target.url, target.token, target.container)
    finding = CHECKS[target.size].run(trial)
    now = time.monotonic()
    cause = None if finding.verdict is StoreVerdict.DONE else finding.verdict.value
    return RequestOutcome(
        0, None, now - began, now, cause=cause, detail=finding.detail[:MAX_FINDING_CHARACTERS]
    )


@register_builder("copy")
def copy_object(target: JobTarget) -> RequestOutcome:
    """COPY an object, of the number that the job has in place of a size, to the object of the job."""
    parameters = target.parameters
    source = format_object_name(
        parameters.scenario.object_names, parameters.size_classes[target.size_class], target.size
    )
    whose = {"delete_after": target.delete_after, "owner": target.owner}
    return structs.replace(target.ask(copy_from=source, keep=MAX_VERDICT_BYTES, **whose), size=0, reply=None)


@register_builder("range")
def read_part(target: JobTarget) -> RequestOutcome:
    """GET a part of the object, of a length and from an offset that are drawn; it ends with the object."""
    values, size = target.settings.values, target.size
    length = random.randint(*values.get("length", DEFAULT_PART_LENGTH))
    if "offset" in values:
        first = random.randint(*values["offset"])
    else:
        first = random.randint(0, max(size - length, 0))
    if not size:  # it is not known
        return target.ask(part=(first, first + length - 1))
    first = min(first, size - 1)
    last = min(first + length, size) - 1
    return target.ask(part=(first, last), expected=last - first + 1)


@register_builder("create_only")
def write_new_object(target: JobTarget) -> RequestOutcome:
    """PUT an object that does not exist; 412 is a success where an earlier attempt may have written it."""
    return target.ask(done_before=frozenset({412}), **make_write_fields(target))


@register_builder("post")
def post_metadata(target: JobTarget) -> RequestOutcome:
    """POST new metadata, which replace all others: whose the object is and when it expires go with them."""
    written = find_written_shape(target.parameters.scenario.metadata)
    metadata = target.metadata(posted_shape(target.settings, written))
    return target.ask(metadata=metadata, delete_after=target.delete_after, owner=target.owner)


@register_builder("upload_if_missing")
def upload_if_missing(target: JobTarget) -> RequestOutcome:
    """PUT the object, unless there is one of this scenario, of a size in the range of its class.

    What does not say whose it is, because an earlier version of ssbench wrote it, is taken for this
    scenario's.
    """
    found, others, outcome = look_for_initial_object(target)
    if outcome is not None:
        return outcome
    # Initial objects never expire: no X-Delete-After.
    request = target.request(**make_body_fields(target))
    outcome = target.client.perform(target.url, request, target.token, target.spent)
    return mark_written(outcome, found, others)


def look_for_initial_object(target: JobTarget) -> tuple[int | None, str, RequestOutcome | None]:
    """Return the size of what is there, and whose it is where that is another scenario.

    The third is the outcome where nothing is to be written, because that will do or cannot be known.
    """
    # What it finds may be of an earlier run, and is not checked.
    looked = target.request(method="HEAD", content="")
    outcome = target.client.perform(target.url, looked, target.token)
    if outcome.cause is not None:
        return None, "", outcome if outcome.cause != NOT_FOUND else None
    found = outcome.size
    others = outcome.owner if outcome.owner and outcome.owner != target.owner else ""
    smallest, largest = target.parameters.size_ranges[target.size_class]
    # What an earlier run wrote cannot be checked.
    if smallest <= found <= largest and not others and target.parameters.verify_seed is None:
        return found, others, structs.replace(outcome, found=found)
    return found, others, None


def mark_written(outcome: RequestOutcome, found: int | None, owner: str) -> RequestOutcome:
    """Return the outcome of an initial object that was not only looked at: its status, too, says so.

    S3 stores answer 200 to both. ``found`` is the size of what was there, ``owner`` whose it was.
    """
    status = outcome.status if outcome.cause is not None else HTTPStatus.CREATED.value
    return structs.replace(outcome, status=status, found=found, detail=outcome.detail or owner)


@register_builder("check")
def check_object(target: JobTarget) -> RequestOutcome:
    """HEAD the object, which has to have its size, where that is told, and to be of this scenario."""
    outcome = target.client.perform(target.url, target.request(), target.token, target.spent)
    if outcome.cause is not None:
        return outcome
    cause, detail = None, ""
    if outcome.size != target.size and not outcome.unsized:
        cause, detail = WRONG_SIZE, f"{outcome.size} bytes, where {target.size} were prepared"
    elif outcome.owner and outcome.owner != target.owner:
        cause, detail = OF_ANOTHER_SCENARIO, outcome.owner
    return structs.replace(outcome, size=0, cause=cause, detail=detail and f"{target.name}: {detail}")


@register_builder("remove")
def remove_object(target: JobTarget) -> RequestOutcome:
    """DELETE the object; it is as good if there is none."""
    return target.client.perform(target.url, target.request(missing_ok=True), target.token)


def send_defined_request(target: JobTarget) -> RequestOutcome:
    """Make the request that a scenario defines."""
    values = target.settings.values
    path = values["path"]
    for word, text in (("account", target.client.path(target.url)), ("container", target.container)):
        path = path.replace(f"{{{word}}}", text if word == "account" else target.client.quoted(text))
    path = path.replace("{object}", target.client.quoted(target.name))
    body = values.get("body")
    outcome = target.ask(
        path=path,
        body=None if body is None else body.encode(),
        success=frozenset(values.get("success", ())),
    )
    return structs.replace(outcome, size=0) if target.operation.method == "HEAD" else outcome


#: Plain requests that are more than to ask, by method.
_PLAIN_BUILDERS: dict[str, RequestBuilder] = {"PUT": write_object, "HEAD": check_object_size}


def find_builder(operation: OperationKind, *, segmented: bool = False) -> RequestBuilder:
    """Return the request builder of an operation; ``segmented``: on objects in segments."""
    if segmented and operation.code in LARGE_OBJECT_BUILDERS:
        return LARGE_OBJECT_BUILDERS[operation.code]
    if operation.defined:
        return REQUEST_BUILDERS[SEQUENCE.code] if operation.steps else send_defined_request
    return REQUEST_BUILDERS.get(operation.code) or _PLAIN_BUILDERS.get(operation.method, send_request)
