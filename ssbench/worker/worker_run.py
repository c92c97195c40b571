"""A run as a worker sees it: its parameters, its client, and how its jobs are carried out.

What a job asks of the store is in :mod:`ssbench.worker.operation_requests`. There are two ways to carry it
out. :meth:`WorkerRun.perform` is the careful one. The short way (:class:`FastPath`) is for usual jobs: one
request on a kept connection, and its result made at once. It does the same for jobs that need no care: no
history, one storage URL, a request that is sent in one piece, an answer that comes in one. Everything else
goes the careful way: from the start where that can be seen before, or from where the request was sent. Tests
hold both to the same answers.

A share of the jobs, drawn from a seed and their numbers, has new connections (:class:`FreshConnections`).
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct, structs

import ssbench.worker.large_objects
import ssbench.worker.request_sequences  # noqa: F401 - their functions register themselves
from ssbench.base.errors import SsbenchError, WireError
from ssbench.fleet.wire import DRAWN_END, AccountAccess, Job, JobBatch, RunParameters, Spent
from ssbench.scenario.names import (
    OBJECT_NUMBER_FORMAT,
    container_name,
    format_object_name,
    object_stem,
    split_container_number,
)
from ssbench.scenario.operations import OPERATIONS, Effect, OperationKind, OperationSettings, RequestTarget
from ssbench.scenario.structured_values import ConnectionSettings
from ssbench.store.contract import (
    MAX_UNREACHED,
    NO_RARE_FIELDS,
    JobResult,
    RareFields,
    RequestOutcome,
    StoreRequest,
    change_rare_fields,
)
from ssbench.store.http.bodies import (
    PIECE_BYTES,
    MetadataShape,
    find_posting_settings,
    find_written_shape,
    number_stem,
    object_of_stamp,
    posted_shape,
    version_of_stamp,
)
from ssbench.store.http.client import ClientSettings, HttpClient
from ssbench.store.http.connection import HttpConnection
from ssbench.store.http.dialect import HashedPattern, RequestPattern, quote_name
from ssbench.store.http.pool import ConnectionPool
from ssbench.store.stores import make_store_client
from ssbench.worker.operation_requests import (
    LARGE_OBJECT_BUILDERS,
    NO_SETTINGS,
    JobTarget,
    KnownEtags,
    find_builder,
    send_request,
    write_object,
)

#: Operations that only ssbench itself sends, and that are no part of a benchmark.
_OWN_CODES = frozenset(row.code for row in OPERATIONS if not row.drawn)


class FreshConnections:
    """The jobs that have new connections. ``client`` carries them out."""

    def __init__(self, parameters: RunParameters, client: HttpClient) -> None:
        self.client = client.without_keeping()
        connections = parameters.scenario.connections or ConnectionSettings()
        self._limit = connections.new * DRAWN_END
        self._draw = parameters.draw

    def has(self, job: Job) -> bool:
        """Return whether a job is one of them; the same each time for its number."""
        number, code, *_ = job
        return code not in _OWN_CODES and self._draw(number) < self._limit


# -- The careful way -------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: Nothing was spent on a job that is sent for the first time.
_NOTHING_SPENT: Spent = (0, None, None, False)

#: Header fields after which the status of a success may be another one.
_CONDITIONAL_FIELDS = frozenset(
    {"range", "if-none-match", "if-match", "if-modified-since", "if-unmodified-since"}
)

#: Texts from the server are cut to this many characters; the wire allows 4096.
MAX_DETAIL_CHARACTERS = 500

#: An outcome has these fields first, and then some that are for the worker alone.
_RESULT_FIELD_COUNT = len(JobResult.__struct_fields__)


class RequestPlan(Struct, frozen=True, gc=False):
    """How jobs of one operation, size class and container are carried out briefly."""

    template: (
        RequestPattern  # Makes a request of an object's number, or of number, size and body of an upload
    )
    pool: ConnectionPool
    sends: bool  # it is an upload
    reads: bool  # it is a GET
    sized: bool  # the job has the size of the object
    #: Returns a name for a job, which the template takes in place of a number.
    named: Callable[[Job], bytes] | None = None
    #: Returns where the object of a job is; bodies are made and checked by that.
    verified: Callable[[Job], bytes] | None = None
    hashed: HashedPattern | None = None  # the template, where requests say something of their bodies
    #: What the numbers of its objects are added to for stamps; None where these are not in their names.
    place: int | None = None


class WorkerRun:
    """The parameters of a run, its client, and what is derived from them once.

    At most ``concurrency`` requests are in flight at once. Raises UsageError where this host lacks the files
    that bodies are to be of.
    """

    def __init__(self, parameters: RunParameters, concurrency: int) -> None:
        #: Replaced by later ones of the same run, which have a new token, for example.
        self.parameters = parameters
        self.client = make_store_client(
            ClientSettings(
                **structs.asdict(parameters.requests),
                max_connections=concurrency,
                insecure=parameters.insecure,
                ca_certificates=parameters.ca_certificates,
                trans_id_extra=parameters.trans_id_extra,
                verify_seed=parameters.verify_seed,
                every_etag=parameters.every_etag,
                scenario=parameters.scenario,
                shapes=_metadata_shapes(parameters),
            )
        )
        #: What carries out a share of the jobs; None where all use kept connections.
        connections = parameters.scenario.connections
        self.apart = (
            FreshConnections(parameters, self.client) if connections is not None and connections.new else None
        )
        #: The names of objects that cannot be derived, by the ids of the jobs that are for them.
        self.named: dict[int, str] = {}
        #: The version that objects have at least, where that is known, by the ids of jobs for them.
        self.least: dict[int, int] = {}
        #: By operation, size class and container; None for those that are carried out carefully.
        self.plans: dict[tuple[int, int, int], RequestPlan | None] = {}
        self._containers: dict[int, str] = {}
        self._etags = KnownEtags()
        #: The rows of operations, their functions and their settings, by code.
        self._operations = {row.code: (row, find_builder(row), NO_SETTINGS) for row in OPERATIONS}
        for settings in parameters.scenario.operations:
            row = OPERATIONS.of(settings)
            self._operations[row.code] = row, find_builder(row), settings

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

    def expect(self, batch: JobBatch) -> None:
        """Remember which versions the objects of jobs have at least."""
        self.least.update(
            (job[0], least) for job, least in zip(batch.jobs, batch.versions, strict=True) if least
        )

    def forget(self, job_ids: Iterable[int]) -> None:
        """Forget what is known of the objects of jobs that have ended, or were taken back."""
        for job_id in job_ids:
            self.named.pop(job_id, None)
            self.least.pop(job_id, None)

    def is_older(self, job_id: int, stamp: bytes) -> bool:
        """Whether a verified body that begins so is older than the object of a job is at least."""
        return version_of_stamp(stamp) < self.least.get(job_id, 0)

    def perform(
        self, job: Job, history: Spent | None, begun: HttpConnection | None = None
    ) -> tuple[RequestOutcome, int]:
        """Carry out a job; ``history`` is that of its batch, None for a new one.

        ``begun`` is a connection on which its request was sent, to be resumed. Returns how it ended, and the
        place of the storage URL that was used. Raises nothing.
        """
        urls, token = self._account(job[3])
        place = 0 if len(urls) == 1 else random.randrange(len(urls) or 1)
        try:
            outcome = self._perform(job, urls[place], token, history, begun)
            if unreached := self.client.take_failed():
                outcome = change_rare_fields(outcome, unreached=list(unreached[:MAX_UNREACHED]))
            return outcome, place
        except Exception as error:  # noqa: BLE001 - whatever goes wrong, the job ends as data
            if not isinstance(error, SsbenchError):
                _log.exception("A job raised an exception")
            detail = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
            ended = time.monotonic()
            return RequestOutcome(0, None, None, ended, cause="worker error", detail=detail), place

    def _account(self, container_number: int) -> AccountAccess:
        """Return the account that a container is in."""
        parameters = self.parameters
        accounts = parameters.accounts
        if not accounts:
            return parameters.storage_urls, parameters.token
        urls, token = accounts[container_number % len(accounts)]
        return urls, parameters.token if token is None else token

    def _perform(
        self, job: Job, url: str, token: str | None, history: Spent | None, begun: HttpConnection | None
    ) -> RequestOutcome:
        parameters = self.parameters
        _, code, size_class, container_number, _, size = job
        if code not in self._operations:
            raise WireError(f"no operation has the code {code}")
        operation, build, settings = self._operations[code]
        if parameters.segments and parameters.segments[size_class][0]:
            build = find_builder(operation, segmented=True)
        container = self._containers.get(container_number) or self._name_container(container_number)
        name = self.named[job[0]] if self.named else self._derived(job)
        client = self.client if self.apart is None or not self.apart.has(job) else self.apart.client
        spent = history or _NOTHING_SPENT
        return build(
            # Python calls with more keywords than these take seven times as long.
            JobTarget(
                operation,
                client,
                parameters,
                url,
                container=container,
                name=name,
                size=size,
                size_class=size_class,
                spent=spent,
                token=token,
                begun=begun,
                settings=settings,
                container_number=container_number,
                etags=self._etags,
                job_id=job[0],
                least=self.least.get(job[0], 0),
                own=not self.named,
            )
        )

    def plan(self, code: int, size_class: int, container_number: int) -> RequestPlan | None:
        """Return how the usual jobs of an operation are carried out briefly; None where they cannot be.

        They can be where each is a plain request to the one storage URL of the account.
        """
        parameters, scenario = self.parameters, self.parameters.scenario
        operation, build, settings = self._operations.get(code, (None, None, NO_SETTINGS))
        account = self._account(container_number)
        if (
            operation is None
            or (code in LARGE_OBJECT_BUILDERS and parameters.segments and parameters.segments[size_class][0])
            or (build is not write_object and build is not send_request)
            or not _is_plain(operation, settings)
            or len(account[0]) != 1
            or (
                build is write_object
                and (scenario.delete_after_most is not None or scenario.metadata is not None)
            )
        ):
            return None
        container = self._containers.get(container_number) or self._name_container(container_number)
        try:
            template, pool = self.client.pattern(
                account[0][0],
                StoreRequest(
                    method=operation.method,
                    container=container,
                    delete_after=scenario.delete_after if build is write_object else None,
                    owner=parameters.owners[size_class]
                    if build is write_object and parameters.owners
                    else None,
                    headers=settings.headers,
                ),
                ""
                if self.named or scenario.object_names
                else object_stem(parameters.size_classes[size_class]),
                account[1],
            )
        except (SsbenchError, LookupError):
            return None  # each job says why
        reads = operation.method == "GET"
        sized = reads and operation.returns_object
        named: Callable[[Job], bytes] | None = None
        if self.named:
            named = self._quoted
        elif scenario.object_names:
            named = self._quoted_derived
        verified = None
        if self.client.verifier is not None and (reads or build is write_object):
            verified = self._locator(container, size_class)
        hashed = template if isinstance(template, HashedPattern) else None
        place = None
        if named is None:
            place = number_stem(f"{container}/{object_stem(parameters.size_classes[size_class])}")
        return RequestPlan(
            template, pool, build is write_object, reads, sized, named, verified, hashed, place
        )

    def _locator(self, container: str, size_class: int) -> Callable[[Job], bytes]:
        """Return what says where the objects of jobs are: container and name, as they are."""
        if self.named:
            return lambda job: f"{container}/{self.named[job[0]]}".encode()
        if self.parameters.scenario.object_names:
            return lambda job: f"{container}/{self._derived(job)}".encode()
        stem = f"{container}/{object_stem(self.parameters.size_classes[size_class])}".encode()
        form = stem.replace(b"%", b"%%") + OBJECT_NUMBER_FORMAT.encode()
        return lambda job: form % job[4]

    def _quoted(self, job: Job) -> bytes:
        return quote_name(self.named[job[0]]).encode()

    def _quoted_derived(self, job: Job) -> bytes:
        return quote_name(self._derived(job)).encode()

    def _derived(self, job: Job) -> str:
        """Return the name of the object of a job, which follows from numbers."""
        parameters = self.parameters
        return format_object_name(parameters.scenario.object_names, parameters.size_classes[job[2]], job[4])

    def _name_container(self, number: int) -> str:
        parameters = self.parameters
        _, own = split_container_number(number, len(parameters.accounts) or 1)
        name = container_name(parameters.scenario.container_base, own, parameters.scenario.policy)
        self._containers[number] = name
        return name


def _metadata_shapes(parameters: RunParameters) -> frozenset[MetadataShape]:
    """Return which metadata objects may have, where they are verified: as written, or as posted later."""
    operations = parameters.scenario.operations
    written = find_written_shape(parameters.scenario.metadata)
    shapes = {written, posted_shape(find_posting_settings(operations), written)}
    if any(each.defined and OPERATIONS.of(each).effect is Effect.CHANGES for each in operations):
        shapes.add((0, 0))  # a POST of the scenario's own replaces them
    return frozenset(shapes if parameters.verify_seed is not None else ())


def _is_plain(operation: OperationKind, settings: OperationSettings) -> bool:
    """Whether an operation asks for a whole object, or sends one, and takes the usual statuses."""
    return (
        operation.on is RequestTarget.OBJECT
        and not operation.headers
        and not operation.query
        and not operation.success
        and not settings.values
        and all(name.lower() not in _CONDITIONAL_FIELDS for name, _ in settings.headers)
    )


def make_job_result(
    job_id: int, outcome: RequestOutcome, storage_url: int, due: float | None = None
) -> JobResult:
    """Return the result of a job for the master.

    ``storage_url`` is the place of the one it used, ``due`` when it was to begin, by the monotonic clock.
    """
    trans_id, rare = outcome.trans_id, outcome.rare
    told = structs.replace(
        outcome,
        job_id=job_id,
        trans_id=trans_id if trans_id is None else trans_id[:MAX_DETAIL_CHARACTERS],
        detail=outcome.detail[:MAX_DETAIL_CHARACTERS],
        storage_url=storage_url,
        rare=None if rare == NO_RARE_FIELDS else rare,
        late=None if due is None else _lateness_of(outcome, due),
    )
    return JobResult(*structs.astuple(told)[:_RESULT_FIELD_COUNT])


def _lateness_of(outcome: RequestOutcome, due: float) -> float:
    """Return how long after it was due a job began: its first attempt, where there were several."""
    took = outcome.last_byte if outcome.spent is None else outcome.spent
    return max(0.0, outcome.completed - (took or 0.0) - due)


# -- The short way ---------------------------------------------------------------------------------


class FastPath:
    """The short way of one slot, which keeps its connection from one job to the next.

    ``begun`` is the connection on which the request of the last job was sent that did not end this way.
    """

    __slots__ = ("_begin_body", "_begin_verified", "_connection", "_plans", "_run", "_sample", "begun")

    def __init__(self, run: WorkerRun) -> None:
        self.begun: HttpConnection | None = None
        self._run = run
        self._plans = run.plans
        self._begin_body = run.client.payload.begin
        if run.client.verifier is not None:
            self._begin_verified = run.client.verifier.begin
        self._sample = run.client.sample
        self._connection: HttpConnection | None = None

    def perform(self, job: Job, due: float | None) -> JobResult | None:
        """Carry out a job; None where the careful way has to, from ``begun`` on if that is set."""
        job_id, code, size_class, container, number, size = job
        try:
            plan = self._plans[code, size_class, container]
        except KeyError:
            plan = self._plans[code, size_class, container] = self._run.plan(code, size_class, container)
        if (
            plan is None
            or (plan.sends and not 0 < size <= PIECE_BYTES)
            or (self._connection is None and not self._take_kept(plan.pool.idle))
        ):
            return None
        connection, self._connection = self._connection, None
        if TYPE_CHECKING:
            assert connection is not None
        name = number if plan.named is None else plan.named(job)
        path = None if plan.verified is None else plan.verified(job)
        if plan.sends:
            body, offset, digest = (
                self._begin_verified(path, size, job_id)
                if path is not None
                else self._begin_body(size)
                if plan.place is None
                else self._begin_body(size, plan.place + number)
            )
            if plan.hashed is None:
                message = plan.template % (name, size, body)
                head = connection.exchange_briefly(message, digest, size - len(body), offset)
            else:
                message, ending = self._with_digest(plan.hashed, name, size, body, offset)
                head = connection.exchange_briefly(message, digest, size - len(body), offset, ending=ending)
        elif plan.reads:
            expected = size if plan.sized else 0
            sampled = path is None and self._sample(size)
            head = connection.exchange_briefly(plan.template % name, None, 0, 0, expected, path, sampled)
        else:
            head = connection.exchange_briefly(plan.template % name, None)
        if head is None or (
            plan.reads
            and (
                head.status != 200
                or (size != head.length and plan.sized and size)
                or (path is not None and not self._is_right(path, connection, job_id))
                or (sampled and not self._is_own(plan, connection.stamp_of_body(head), number))
            )
        ):
            self.begun = connection
            return None
        self._connection = connection
        sent_at, ended = connection.sent_at, connection.received_at
        trans_id = head.trans_id
        return JobResult(
            job_id=job_id,
            first_byte=None if plan.sends else connection.first_byte_at - sent_at,
            last_byte=ended - sent_at,
            completed=ended,
            size=size if plan.sends else head.length,
            trans_id=trans_id if trans_id is None else trans_id[:MAX_DETAIL_CHARACTERS],
            status=head.status,
            rare=RareFields(address=connection.address, unchecked=int(connection.unchecked))
            if connection.address or connection.unchecked
            else None,
            late=None if due is None else max(0.0, sent_at - due),
        )

    @staticmethod
    def _is_own(plan: RequestPlan, stamp: bytes, number: int) -> bool:
        """Whether a body is of the object of a job, or does not say of which it is."""
        said = object_of_stamp(stamp)
        return said is None or plan.place is None or said == plan.place + number

    def _is_right(self, path: bytes, connection: HttpConnection, job_id: int) -> bool:
        """Whether a verified answer has the metadata of the object, and is not older than it is."""
        run, head = self._run, connection.raw_head
        return run.client.has_right_metadata(path, head) and not (
            run.least and run.is_older(job_id, connection.begin_of_body())
        )

    def _with_digest(
        self, pattern: HashedPattern, name: int | bytes, size: int, body: bytes, offset: int
    ) -> tuple[bytes, bytes]:
        """Return a request that says something of its body, and what comes after the rest of that."""
        found, left = pattern.make_hash(body), size - len(body)
        if left:
            self._run.client.payload.add_to(found, offset, left)
        digest = found.digest()
        message, ending = pattern % (name, size, body, digest), pattern.ending(digest)
        return (message, ending) if left else (message + ending, b"")

    def rest(self) -> None:
        """Give the connection back: its slot waits for something else."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.rest()

    def _take_kept(self, idle: list[HttpConnection]) -> bool:
        """Take a kept connection of the kind whose bytes come from the kernel alone; False without one."""
        if not idle or not idle[-1].stamped:
            return False
        self._connection = connection = idle.pop()
        connection.claim()
        return True


class _KeptFastPath(FastPath):
    """A short way of those jobs alone that use kept connections."""

    __slots__ = ("_apart",)

    def __init__(self, run: WorkerRun, apart: FreshConnections) -> None:
        super().__init__(run)
        self._apart = apart

    def perform(self, job: Job, due: float | None) -> JobResult | None:
        return None if self._apart.has(job) else super().perform(job, due)


def make_fast_path(run: WorkerRun) -> FastPath:
    """Return a short way for one slot of a run."""
    return FastPath(run) if run.apart is None else _KeptFastPath(run, run.apart)
