"""What each operation asks of the store: a function for each row of :mod:`ssbench.scenario.operation_table`.

It is a function of a job (:class:`Target`), makes one request or several through the run's client, and
returns how the job ended. :data:`BUILDERS` holds those of operations that are more than one plain request;
for all others the method decides.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from ssbench.fleet.wire import RunParameters, Spent
from ssbench.scenario.object_names import name_of
from ssbench.scenario.operation import PART_LENGTH, Header, On, Operation, Settings
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.store.causes import NOT_FOUND, OF_OTHERS, WRONG_SIZE
from ssbench.store.contract import Outcome, Request
from ssbench.store.http.metadata import Shape, fields, posted

if TYPE_CHECKING:
    from ssbench.store.http.connection import Connection
    from ssbench.store.swift.objects import Client

NO_SETTINGS = Settings("")


class Target(Struct, frozen=True, gc=False):
    """A job as a request builder sees it.

    ``url`` is the storage URL to use, ``size`` the bytes to send, or those of the object that is read
    (0: not known), ``size_class`` an index. ``spent`` is what was spent on the job before. ``begun`` is a
    connection on which its request was sent. ``settings`` are those of its operation.
    """

    operation: Operation
    client: Client
    parameters: RunParameters
    url: str
    container: str
    name: str
    size: int
    size_class: int
    spent: Spent
    token: str | None
    begun: Connection | None = None
    settings: Settings = NO_SETTINGS
    container_number: int = 0

    def request(self, **more: Any) -> Request:
        """Return the request that the row of the operation describes, changed by ``more``."""
        row = self.operation
        return Request(
            **{
                "method": row.method,
                "container": "" if row.on is On.ACCOUNT else self.container,
                "name": self.name if row.on is On.OBJECT else "",
                "headers": row.headers + self.settings.headers,
                "query": row.query,
                "success": row.success,
                "causes": row.causes,
                **more,
            }
        )

    def ask(self, **more: Any) -> Outcome:
        """Make that request."""
        return self.client.perform(self.url, self.request(**more), self.token, self.spent, self.begun)

    @property
    def delete_after(self) -> int | None:
        """In how many seconds what is written is to expire: drawn, where there are two ends; None: never."""
        least, most = self.parameters.delete_after, self.parameters.delete_after_most
        return least if least is None or most is None else random.randint(least, most)

    @property
    def owner(self) -> str | None:
        """What the object is to say of whose it is; None for nothing."""
        owners = self.parameters.owners
        return owners[self.size_class] if owners else None

    def with_metadata(self, shape: Shape) -> tuple[Header, ...]:
        """Return the header fields of a request that gives the object so much metadata."""
        path = f"{self.container}/{self.name}"
        of_object = fields(self.parameters.run_id, path, shape)
        return self.operation.headers + of_object + self.settings.headers


Builder = Callable[[Target], Outcome]

#: Functions of operations that are not one plain request, by code.
BUILDERS: dict[int, Builder] = {}


def builds(*names: str) -> Callable[[Builder], Builder]:
    """Let a function make the requests of the operations of these names."""

    def register(function: Builder) -> Builder:
        BUILDERS.update({OPERATIONS.named(name).code: function for name in names})
        return function

    return register


def _body(target: Target) -> dict[str, Any]:
    """Return the body of a request that writes an object, whose it is, and its metadata."""
    found: dict[str, Any] = {"size": target.size, "owner": target.owner}
    if target.parameters.metadata[0]:
        found["headers"] = target.with_metadata(target.parameters.metadata)
    return found


def _written(target: Target) -> dict[str, Any]:
    """Return what a request has besides that writes an object."""
    etag = bool(target.settings.values.get("etag"))
    return {"delete_after": target.delete_after, "etag": etag, **_body(target)}


def send(target: Target) -> Outcome:
    """PUT the object."""
    return target.ask(**_written(target))


def ask(target: Target) -> Outcome:
    """Make a request without a body; a read must return the object's bytes, where their number is known."""
    row = target.operation
    return target.ask(
        # A lost worker may have deleted the object, or an attempt whose answer was lost.
        missing_ok=target.spent[-1] and row.method == "DELETE",
        expected=target.size if row.returns_object else 0,
    )


def look(target: Target) -> Outcome:
    """HEAD the object, which has to have its size. That is not counted: no body was moved."""
    outcome = ask(target)
    if outcome.cause is None and target.operation.on is On.OBJECT and target.size not in {0, outcome.size}:
        detail = f"{target.name}: {outcome.size} bytes, by the answer, of an object of {target.size}"
        return structs.replace(outcome, size=0, cause=WRONG_SIZE, detail=detail)
    return structs.replace(outcome, size=0)


@builds("public")
def read_anonymously(target: Target) -> Outcome:
    """GET the whole object without credentials."""
    return target.ask(anonymous=True, expected=target.size)


@builds("tempurl")
def read_signed(target: Target) -> Outcome:
    """GET the whole object by temporary URL."""
    query = target.parameters.signed[target.container_number]
    return target.ask(anonymous=True, query=query, content=target.name, expected=target.size)


@builds("copy")
def copy(target: Target) -> Outcome:
    """COPY an object, of the number that the job has in place of a size, to the object of the job."""
    parameters = target.parameters
    source = name_of(parameters.object_names, parameters.size_classes[target.size_class], target.size)
    place = f"{target.client.quoted(target.container)}/{target.client.quoted(target.name)}"
    headers = (("Destination", place), *target.settings.headers)
    whose = {"delete_after": target.delete_after, "owner": target.owner}
    return structs.replace(target.ask(name=source, headers=headers, **whose), size=0)


@builds("range")
def part(target: Target) -> Outcome:
    """GET a part of the object, of a length and from an offset that are drawn; it ends with the object."""
    values, size = target.settings.values, target.size
    length = random.randint(*values.get("length", PART_LENGTH))
    if "offset" in values:
        first = random.randint(*values["offset"])
    else:
        first = random.randint(0, max(size - length, 0))
    if not size:  # it is not known
        return target.ask(part=(first, first + length - 1))
    first = min(first, size - 1)
    last = min(first + length, size) - 1
    return target.ask(part=(first, last), expected=last - first + 1)


@builds("create_only")
def create_only(target: Target) -> Outcome:
    """PUT an object that does not exist; 412 is a success where an earlier attempt may have written it."""
    return target.ask(done_before=frozenset({412}), **_written(target))


@builds("post")
def post(target: Target) -> Outcome:
    """POST new metadata, which replace all others: whose the object is and when it expires go with them."""
    headers = target.with_metadata(posted(target.settings, target.parameters.metadata))
    return target.ask(headers=headers, delete_after=target.delete_after, owner=target.owner)


@builds("upload_if_missing")
def upload_if_missing(target: Target) -> Outcome:
    """PUT the object, unless there is one of this scenario, of a size in the range of its class.

    What does not say whose it is, because an earlier version of ssbench wrote it, is taken for this
    scenario's.
    """
    found, others = None, ""
    # What it finds may be of an earlier run, and is not checked.
    looked = target.request(method="HEAD", content="")
    outcome = target.client.perform(target.url, looked, target.token)
    if outcome.cause is None:
        found = outcome.size
        others = outcome.owner if outcome.owner and outcome.owner != target.owner else ""
        smallest, largest = target.parameters.size_ranges[target.size_class]
        # What an earlier run wrote cannot be checked.
        if smallest <= found <= largest and not others and target.parameters.verify_seed is None:
            return structs.replace(outcome, found=found)
    elif outcome.cause != NOT_FOUND:
        return outcome
    # Initial objects never expire: no X-Delete-After.
    request = target.request(**_body(target))
    outcome = target.client.perform(target.url, request, target.token, target.spent)
    return structs.replace(outcome, found=found, detail=outcome.detail or others)


@builds("check")
def check(target: Target) -> Outcome:
    """HEAD the object, which has to have its size, and to be of this scenario."""
    outcome = target.client.perform(target.url, target.request(), target.token, target.spent)
    if outcome.cause is not None:
        return outcome
    cause, detail = None, ""
    if outcome.size != target.size:
        cause, detail = WRONG_SIZE, f"{outcome.size} bytes, where {target.size} were prepared"
    elif outcome.owner and outcome.owner != target.owner:
        cause, detail = OF_OTHERS, outcome.owner
    return structs.replace(outcome, size=0, cause=cause, detail=detail and f"{target.name}: {detail}")


@builds("remove")
def remove(target: Target) -> Outcome:
    """DELETE the object; it is as good if there is none."""
    return target.client.perform(target.url, target.request(missing_ok=True), target.token)


def defined(target: Target) -> Outcome:
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
_PLAIN: dict[str, Builder] = {"PUT": send, "HEAD": look}


def builder(operation: Operation) -> Builder:
    """Return the request builder of an operation."""
    if operation.defined:
        return defined
    return BUILDERS.get(operation.code) or _PLAIN.get(operation.method, ask)
