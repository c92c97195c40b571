"""What each operation asks of Swift: a request builder for each row of :mod:`ssbench.operations`.

A builder is a function of the run and of a job (:class:`Target`). It makes one request or several through
the run's client, and returns how the job ended. :data:`BUILDERS` holds those of operations that are more
than one plain request; for all others the method decides.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable

from msgspec import Struct, structs

from ssbench.errors import SsbenchError, WireError
from ssbench.fleet.wire import Job, Rare, Result, RunParameters, Spent
from ssbench.names import container_name, object_name, object_stem, side_of
from ssbench.operations import OPERATIONS, REMOVE, UPLOAD_IF_MISSING, Operation
from ssbench.store.contract import Outcome
from ssbench.swift.causes import NOT_FOUND
from ssbench.swift.connection import Connection
from ssbench.swift.objects import Client, ClientSettings
from ssbench.swift.pool import Pool

_log = logging.getLogger(__name__)

#: Nothing was spent on a job that is sent for the first time.
_NOTHING: Spent = (0, None, None, False)

#: Texts from the server are cut to this many characters; the wire allows 4096.
LONGEST_TEXT = 500


class Target(Struct, frozen=True, gc=False):
    """A job as a request builder sees it.

    ``url`` is the storage URL to use, ``size`` the bytes to send, or those that a read must return
    (0: not known), ``size_class`` an index. ``spent`` is what was spent on the job before. ``begun`` is a
    connection on which its request was sent.
    """

    operation: Operation
    url: str
    container: str
    name: str
    size: int
    size_class: int
    spent: Spent
    token: str | None
    begun: Connection | None = None


class Plan(Struct, frozen=True, gc=False):
    """How jobs of one operation, size class and container are carried out briefly.

    ``template`` makes a request of an object's number, or of number, size and body of an upload, which it is
    if it ``sends``. ``reads``: it is a GET; ``sized``: the job has the size of the object.
    """

    template: bytes
    pool: Pool
    sends: bool
    reads: bool
    sized: bool


class Run:
    """The parameters of a run, its client, and what is derived from them once.

    At most ``concurrency`` requests are in flight at once.
    """

    def __init__(self, parameters: RunParameters, concurrency: int) -> None:
        #: Replaced by later ones of the same run, which have a new token, for example.
        self.parameters = parameters
        self.client = Client(
            ClientSettings(
                **structs.asdict(parameters.requests),
                max_connections=concurrency,
                insecure=parameters.insecure,
                ca_certificates=parameters.ca_certificates,
                trans_id_extra=parameters.trans_id_extra,
                verify_seed=parameters.verify_seed,
            )
        )
        #: By operation, size class and container; None for those that are carried out carefully.
        self.plans: dict[tuple[int, int, int], Plan | None] = {}
        self._containers: dict[tuple[int, int], str] = {}
        self._builders = {row.code: (row, builder(row)) for row in OPERATIONS}

    def close(self) -> None:
        """Close all connections; requests in flight fail at once."""
        self.client.close()

    def update(self, parameters: RunParameters) -> None:
        """Use later parameters of the same run, which have a new token, for example."""
        self.parameters = parameters
        self.plans.clear()

    def perform(
        self, job: Job, history: Spent | None, begun: Connection | None = None
    ) -> tuple[Outcome, int]:
        """Carry out a job; ``history`` is that of its batch, None for a new one.

        ``begun`` is a connection on which its request was sent, to be resumed. Returns how it ended, and the
        place of the storage URL that was used. Raises nothing.
        """
        urls = self.parameters.storage_urls
        if self.parameters.sided and len(urls) > 1:
            place = side_of(job[4])
        else:
            place = 0 if len(urls) == 1 else random.randrange(len(urls) or 1)
        try:
            return self._perform(job, place, history, begun), place
        except Exception as error:  # noqa: BLE001 - whatever goes wrong, the job ends as data
            if not isinstance(error, SsbenchError):
                _log.exception("A job raised an exception")
            detail = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
            return Outcome(None, None, time.monotonic(), 0, 0, None, "worker error", detail), place

    def _perform(self, job: Job, place: int, history: Spent | None, begun: Connection | None) -> Outcome:
        parameters = self.parameters
        _, code, size_class, container_number, number, size = job
        if code not in self._builders:
            raise WireError(f"no operation has the code {code}")
        operation, build = self._builders[code]
        key = container_number, side_of(number) if parameters.side_policies else 0
        container = self._containers.get(key) or self._name_container(*key)
        name = object_name(parameters.size_classes[size_class], number)
        token = parameters.second_token if place and parameters.second_token else parameters.token
        url = parameters.storage_urls[place]
        spent = history or _NOTHING
        return build(self, Target(operation, url, container, name, size, size_class, spent, token, begun))

    def plan(self, code: int, size_class: int, container_number: int) -> Plan | None:
        """Return how the usual jobs of an operation are carried out briefly; None where they cannot be.

        They can be where each is a plain request to the one storage URL of the run, and no body is verified.
        """
        parameters = self.parameters
        operation, build = self._builders.get(code, (None, None))
        if (
            operation is None
            or (build is not send and (build is not ask or operation.method == "HEAD"))
            or len(parameters.storage_urls) != 1
            or parameters.sided
            or parameters.verify_seed is not None
        ):
            return None
        try:
            template, pool = self.client.template(
                parameters.storage_urls[0],
                operation.method,
                self._containers.get((container_number, 0)) or self._name_container(container_number, 0),
                object_stem(parameters.size_classes[size_class]),
                parameters.token,
                parameters.delete_after if build is send else None,
                _owner(self, size_class) if build is send else None,
            )
        except (SsbenchError, LookupError):
            return None  # each job says why
        reads = operation.method == "GET"
        return Plan(template, pool, build is send, reads, reads and operation.returns_object)

    def _name_container(self, number: int, side: int) -> str:
        policies = self.parameters.side_policies
        policy = policies[side] if policies else self.parameters.policy
        name = container_name(self.parameters.container_base, number, policy)
        self._containers[number, side] = name
        return name


Builder = Callable[[Run, Target], Outcome]


def send(run: Run, target: Target) -> Outcome:
    """PUT the object."""
    parameters = run.parameters
    return run.client.request(
        target.url,
        "PUT",
        target.container,
        target.name,
        target.token,
        target.size,
        delete_after=parameters.delete_after,
        owner=_owner(run, target.size_class),
        prior=target.spent,
        begun=target.begun,
    )


def ask(run: Run, target: Target) -> Outcome:
    """Make a request without a body; a read must return the object's bytes, where their number is known."""
    return run.client.request(
        target.url,
        target.operation.method,
        target.container,
        target.name,
        target.token,
        # A lost worker may have deleted the object, or an attempt whose answer was lost.
        missing_ok=target.spent[-1] and target.operation.method == "DELETE",
        expected=target.size if target.operation.returns_object else 0,
        prior=target.spent,
        begun=target.begun,
    )


def look(run: Run, target: Target) -> Outcome:
    """HEAD the object. The size that the answer tells is not counted: no body was moved."""
    return structs.replace(ask(run, target), size=0)


def upload_if_missing(run: Run, target: Target) -> Outcome:
    """PUT the object, unless there is one of this scenario, of a size in the range of its class.

    What does not say whose it is, because an earlier version of ssbench wrote it, is taken for this
    scenario's.
    """
    parameters, request = run.parameters, run.client.request
    url, container, name, token = target.url, target.container, target.name, target.token
    found, owner, others = None, _owner(run, target.size_class), ""
    outcome = request(url, "HEAD", container, name, token)
    if outcome.cause is None:
        found = outcome.size
        others = outcome.owner if outcome.owner and outcome.owner != owner else ""
        smallest, largest = parameters.size_ranges[target.size_class]
        # What an earlier run wrote cannot be checked.
        if smallest <= found <= largest and not others and parameters.verify_seed is None:
            return structs.replace(outcome, found=found)
    elif outcome.cause != NOT_FOUND:
        return outcome
    # Initial objects never expire: no X-Delete-After.
    outcome = request(
        url,
        "PUT",
        container,
        name,
        token,
        target.size,
        owner=owner,
        prior=target.spent,
    )
    return structs.replace(outcome, found=found, detail=outcome.detail or others)


def _owner(run: Run, size_class: int) -> str | None:
    """Return what the object is to say of whose it is; None for nothing."""
    owners = run.parameters.owners
    return owners[size_class] if owners else None


def remove(run: Run, target: Target) -> Outcome:
    """DELETE the object; it is as good if there is none."""
    return run.client.request(
        target.url, "DELETE", target.container, target.name, target.token, missing_ok=True
    )


#: Operations that are not one plain request, by code.
BUILDERS: dict[int, Builder] = {UPLOAD_IF_MISSING.code: upload_if_missing, REMOVE.code: remove}

#: Plain requests that are more than to ask, by method.
_PLAIN: dict[str, Builder] = {"PUT": send, "HEAD": look}


def builder(operation: Operation) -> Builder:
    """Return the request builder of an operation."""
    return BUILDERS.get(operation.code) or _PLAIN.get(operation.method, ask)


def as_result(job_id: int, outcome: Outcome, storage_url: int, due: float | None = None) -> Result:
    """Return the result of a job for the master.

    ``storage_url`` is the place of the one it used, ``due`` when it was to begin, by the monotonic clock.
    """
    trans_id = outcome.trans_id
    rare = None
    if outcome.connecting or outcome.pausing or outcome.last_attempt is not None:
        rare = Rare(outcome.connecting, outcome.pausing, outcome.last_attempt)
    return Result(
        job_id,
        outcome.first_byte,
        outcome.last_byte,
        outcome.completed,
        outcome.size,
        outcome.retries,
        trans_id if trans_id is None else trans_id[:LONGEST_TEXT],
        outcome.cause,
        outcome.detail[:LONGEST_TEXT],
        outcome.retried,
        outcome.unauthorized,
        storage_url,
        outcome.found,
        outcome.status,
        outcome.spent,
        outcome.resent,
        rare,
        None if due is None else _late(outcome, due),
    )


def _late(outcome: Outcome, due: float) -> float:
    """Return how long after it was due a job began: its first attempt, where there were several."""
    took = outcome.last_byte if outcome.spent is None else outcome.spent
    return max(0.0, outcome.completed - (took or 0.0) - due)
