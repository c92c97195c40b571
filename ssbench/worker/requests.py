"""A run as a worker sees it: its parameters, its client, and what becomes of a job.

What a job asks of the store is in :mod:`ssbench.worker.builders`.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable

from msgspec import Struct, structs

import ssbench.worker.large_objects
import ssbench.worker.versions  # noqa: F401 - its functions register themselves
from ssbench.base.errors import SsbenchError, WireError
from ssbench.fleet.wire import Account, Job, JobBatch, Rare, Result, RunParameters, Spent
from ssbench.scenario.names import container_name, in_account, object_stem
from ssbench.scenario.object_names import name_of
from ssbench.scenario.operation import Effect, On, Operation, Settings
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.store.contract import Outcome
from ssbench.store.http.connection import Connection
from ssbench.store.http.metadata import Shape, posted, posting
from ssbench.store.http.pool import Pool
from ssbench.store.swift.objects import Client, ClientSettings
from ssbench.store.swift.target import quoted
from ssbench.worker.apart import Apart
from ssbench.worker.builders import NO_SETTINGS, Target, ask, builder, send

_log = logging.getLogger(__name__)

#: Nothing was spent on a job that is sent for the first time.
_NOTHING: Spent = (0, None, None, False)

#: Header fields after which the status of a success may be another one.
_CONDITIONS = frozenset({"range", "if-none-match", "if-match", "if-modified-since", "if-unmodified-since"})

#: More connections that failed are not reported with one result.
_MOST_UNREACHED = 1000

#: Texts from the server are cut to this many characters; the wire allows 4096.
LONGEST_TEXT = 500


class Plan(Struct, frozen=True, gc=False):
    """How jobs of one operation, size class and container are carried out briefly.

    ``template`` makes a request of an object's number, or of number, size and body of an upload, which it is
    if it ``sends``. ``reads``: it is a GET; ``sized``: the job has the size of the object. Where there is
    ``named``, the template takes the name that this returns for a job in place of a number.
    """

    template: bytes
    pool: Pool
    sends: bool
    reads: bool
    sized: bool
    named: Callable[[Job], bytes] | None = None


class Run:
    """The parameters of a run, its client, and what is derived from them once.

    At most ``concurrency`` requests are in flight at once. Raises UsageError where this host lacks the files
    that bodies are to be of.
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
                every_etag=parameters.every_etag,
                zeros=parameters.zeros,
                files=parameters.files,
                shapes=_shapes(parameters),
                tls_resume=parameters.tls_resume,
            )
        )
        #: What carries out a share of the jobs; None where all use kept connections.
        self.apart = Apart(parameters, self.client) if parameters.new_connections else None
        #: The names of objects that cannot be derived, by the ids of the jobs that are for them.
        self.named: dict[int, str] = {}
        #: By operation, size class and container; None for those that are carried out carefully.
        self.plans: dict[tuple[int, int, int], Plan | None] = {}
        self._containers: dict[int, str] = {}
        #: The rows of operations, their functions and their settings, by code.
        self._operations = {row.code: (row, builder(row), NO_SETTINGS) for row in OPERATIONS}
        for settings in parameters.operations:
            row = OPERATIONS.of(settings)
            self._operations[row.code] = row, builder(row), settings

    def close(self) -> None:
        """Close all connections; requests in flight fail at once."""
        self.client.close()

    def update(self, parameters: RunParameters) -> None:
        """Use later parameters of the same run, which have a new token, for example."""
        self.parameters = parameters
        self.plans.clear()

    def name(self, batch: JobBatch) -> None:
        """Remember where the objects of jobs are."""
        for job, path in zip(batch.jobs, batch.paths, strict=True):
            container, _, self.named[job[0]] = path.partition("/")
            self._containers[job[3]] = container

    def forget_names(self, job_ids: Iterable[int]) -> None:
        """Forget the names of objects of jobs that have ended, or were taken back."""
        for job_id in job_ids:
            self.named.pop(job_id, None)

    def perform(
        self, job: Job, history: Spent | None, begun: Connection | None = None
    ) -> tuple[Outcome, int]:
        """Carry out a job; ``history`` is that of its batch, None for a new one.

        ``begun`` is a connection on which its request was sent, to be resumed. Returns how it ended, and the
        place of the storage URL that was used. Raises nothing.
        """
        urls, token = self._account(job[3])
        place = 0 if len(urls) == 1 else random.randrange(len(urls) or 1)
        try:
            outcome = self._perform(job, urls[place], token, history, begun)
            if unreached := self.client.take_failed():
                outcome = structs.replace(outcome, unreached=unreached)
            return outcome, place
        except Exception as error:  # noqa: BLE001 - whatever goes wrong, the job ends as data
            if not isinstance(error, SsbenchError):
                _log.exception("A job raised an exception")
            detail = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
            return Outcome(None, None, time.monotonic(), 0, 0, None, "worker error", detail), place

    def _account(self, container_number: int) -> Account:
        """Return the account that a container is in."""
        parameters = self.parameters
        accounts = parameters.accounts
        if not accounts:
            return parameters.storage_urls, parameters.token
        urls, token = accounts[container_number % len(accounts)]
        return urls, parameters.token if token is None else token

    def _perform(
        self, job: Job, url: str, token: str | None, history: Spent | None, begun: Connection | None
    ) -> Outcome:
        parameters = self.parameters
        _, code, size_class, container_number, _, size = job
        if code not in self._operations:
            raise WireError(f"no operation has the code {code}")
        operation, build, settings = self._operations[code]
        container = self._containers.get(container_number) or self._name_container(container_number)
        name = self.named[job[0]] if self.named else self._derived(job)
        client = self.client if self.apart is None or not self.apart.has(job) else self.apart.client
        spent = history or _NOTHING
        return build(
            Target(
                operation,
                client,
                parameters,
                url,
                container,
                name,
                size,
                size_class,
                spent,
                token,
                begun,
                settings,
                container_number,
            )
        )

    def plan(self, code: int, size_class: int, container_number: int) -> Plan | None:
        """Return how the usual jobs of an operation are carried out briefly; None where they cannot be.

        They can be where each is a plain request to the one storage URL of the account, and no body is
        verified.
        """
        parameters = self.parameters
        operation, build, settings = self._operations.get(code, (None, None, NO_SETTINGS))
        account = self._account(container_number)
        if (
            operation is None
            or (build is not send and build is not ask)
            or not _is_plain(operation, settings)
            or len(account[0]) != 1
            or parameters.verify_seed is not None
            or (build is send and (parameters.delete_after_most is not None or parameters.metadata[0]))
        ):
            return None
        try:
            template, pool = self.client.template(
                account[0][0],
                operation.method,
                self._containers.get(container_number) or self._name_container(container_number),
                ""
                if self.named or parameters.object_names
                else object_stem(parameters.size_classes[size_class]),
                account[1],
                parameters.delete_after if build is send else None,
                parameters.owners[size_class] if build is send and parameters.owners else None,
                settings.headers,
            )
        except (SsbenchError, LookupError):
            return None  # each job says why
        reads = operation.method == "GET"
        sized = reads and operation.returns_object
        named: Callable[[Job], bytes] | None = None
        if self.named:
            named = self._quoted
        elif parameters.object_names:
            named = self._quoted_derived
        return Plan(template, pool, build is send, reads, sized, named)

    def _quoted(self, job: Job) -> bytes:
        return quoted(self.named[job[0]]).encode()

    def _quoted_derived(self, job: Job) -> bytes:
        return quoted(self._derived(job)).encode()

    def _derived(self, job: Job) -> str:
        """Return the name of the object of a job, which follows from numbers."""
        parameters = self.parameters
        return name_of(parameters.object_names, parameters.size_classes[job[2]], job[4])

    def _name_container(self, number: int) -> str:
        parameters = self.parameters
        _, own = in_account(number, len(parameters.accounts) or 1)
        name = container_name(parameters.container_base, own, parameters.policy)
        self._containers[number] = name
        return name


def _shapes(parameters: RunParameters) -> frozenset[Shape]:
    """Return which metadata objects may have, where they are verified: as written, or as posted later."""
    shapes = {parameters.metadata, posted(posting(parameters.operations), parameters.metadata)}
    if any(each.defined and OPERATIONS.of(each).effect is Effect.CHANGES for each in parameters.operations):
        shapes.add((0, 0))  # a POST of the scenario's own replaces them
    return frozenset(shapes if parameters.verify_seed is not None else ())


def _is_plain(operation: Operation, settings: Settings) -> bool:
    """Whether an operation asks for a whole object, or sends one, and takes the usual statuses."""
    return (
        operation.on is On.OBJECT
        and not operation.headers
        and not operation.query
        and not operation.success
        and not settings.values
        and all(name.lower() not in _CONDITIONS for name, _ in settings.headers)
    )


def as_result(job_id: int, outcome: Outcome, storage_url: int, due: float | None = None) -> Result:
    """Return the result of a job for the master.

    ``storage_url`` is the place of the one it used, ``due`` when it was to begin, by the monotonic clock.
    """
    trans_id = outcome.trans_id
    rare = None
    if (
        outcome.connecting
        or outcome.pausing
        or outcome.last_attempt is not None
        or outcome.entries
        or outcome.steps
        or outcome.left
        or outcome.address
        or outcome.unreached
        or outcome.unchecked
    ):
        rare = Rare(
            outcome.connecting,
            outcome.pausing,
            outcome.last_attempt,
            entries=outcome.entries,
            steps=list(outcome.steps),
            left=outcome.left,
            address=outcome.address,
            unreached=list(outcome.unreached[:_MOST_UNREACHED]),
            connections=outcome.connections,
            resumed=outcome.resumed,
            unchecked=outcome.unchecked,
        )
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
