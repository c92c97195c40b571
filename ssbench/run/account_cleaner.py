"""Delete the containers that ssbench made, and everything in them.

All requests are made by the workers' fast client, on greenlets; only a new token is fetched on a thread.

Listings of Swift are eventually consistent: they may show an object that is deleted, and not show one
that exists. So first the container itself is deleted. Only when Swift answers that it is not empty, one
page of it is listed and deleted, and this is repeated for as long as it makes progress. A store that may
delete a full container with all that is in it (some of the S3 API do) is asked only after a listing was
empty; then uploads of parts that have not ended are given up first.
"""

from __future__ import annotations

import itertools
import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Literal, Self

import gevent
import gevent.lock
import gevent.pool
from msgspec import structs

from ssbench.base import interruption
from ssbench.base.errors import ExitCode, SsbenchError
from ssbench.base.record import Count, JsonHead, JsonRecord, Seconds
from ssbench.store.contract import (
    BAD_RESPONSE,
    NOT_FOUND,
    UNAUTHORIZED_CAUSE,
    Listing,
    MultipartUpload,
    ObjectVersion,
    RequestOutcome,
    StoreRequest,
    cause_of_status,
)
from ssbench.store.credentials import Session, SessionInUse
from ssbench.store.http.client import ClientSettings
from ssbench.store.stores import make_store_client

_log = logging.getLogger(__name__)

#: Seconds before each further attempt to delete a container that is not empty but lists nothing new.
_DELETION_PAUSES = (0.1, 0.3, 1.0, 2.0, 4.0)

#: Failures in a row, of a kind that concerns the whole cluster, after which no more is tried.
_MAX_FAILURES_IN_A_ROW = 20

_CONFLICT_STATUS = 409
_NOTHING_STATUS = 204

#: How stores refuse to list the versions of objects: they keep none, or the credentials may not see them.
_NO_VERSIONS_STATUSES = frozenset({400, 403, 405, 501})

#: The largest page of a listing, and the most characters of what is wrong with one.
_MAX_PAGE_BYTES = 128 * 1024 * 1024
_MAX_DETAIL = 200

#: How many failures are kept for the report.
_MAX_KEPT_FAILURES = 20

#: Seconds between two checks of whether to go on waiting, and between two log lines about it.
_TICK_SECONDS = 0.2
_LOG_SECONDS = 5.0

#: Seconds that requests in flight have to finish after :meth:`AccountCleaner.stop`.
_STOP_SECONDS = 2.0


@dataclass(slots=True)
class CleanUpResult:
    """What was deleted."""

    containers: Count = 0  # containers that were deleted
    objects: Count = 0  # objects that were deleted
    seconds: Seconds = 0.0  # how long it took
    failed: Count = 0  # deletes that failed
    failures: list[str] = field(default_factory=list)  # the first of these, a line for each


class CleanedAccount(JsonRecord, frozen=True, kw_only=True):
    """What was deleted of an account."""

    storage_url: str  # its address
    matched: Count  # containers that the names given match
    #: Containers that were left because runs under way use them, each with the number of one of these runs,
    #: in hexadecimal digits.
    in_use: dict[str, str]
    deleted: CleanUpResult  # what was deleted


class CleanUpReport(JsonHead, frozen=True, kw_only=True):
    """A clean-up, of all accounts together."""

    format: Literal["ssbench cleanup"] = "ssbench cleanup"
    version: Literal[1] = 1
    storage_url: str  # that of the first account
    matched: Count  # containers that the names given match
    in_use: dict[str, str]  # as of an account; with their storage URLs where there are several
    deleted: CleanUpResult  # what was deleted
    accounts: list[CleanedAccount]  # each account by itself

    @classmethod
    def of(cls, accounts: list[CleanedAccount], exit_code: ExitCode) -> Self:
        """Return the report on some accounts, one at least."""
        results = [each.deleted for each in accounts]
        several = len(accounts) > 1
        return cls(
            exit_code=exit_code,
            storage_url=accounts[0].storage_url,
            matched=sum(each.matched for each in accounts),
            in_use={
                f"{each.storage_url}/{name}" if several else name: run
                for each in accounts
                for name, run in each.in_use.items()
            },
            deleted=CleanUpResult(
                sum(each.containers for each in results),
                sum(each.objects for each in results),
                sum(each.seconds for each in results),
                sum(each.failed for each in results),
                [text for each in results for text in each.failures][:_MAX_KEPT_FAILURES],
            ),
            accounts=accounts,
        )


@dataclass(frozen=True, slots=True)
class CleanUpSettings:
    """How to delete. Time-outs are in seconds."""

    concurrency: int = 10  # concurrent requests
    connect_timeout: float = 10.0
    network_timeout: float = 60.0
    give_up_after: float = 0.0  # try no more after this many seconds without a success; 0: no limit

    @property
    def timeouts(self) -> tuple[float, float]:
        """The time-outs of connecting and of an answer."""
        return self.connect_timeout, self.network_timeout


class AccountCleaner:
    """Deletes containers with their objects. Make it and call :meth:`run` in the same thread.

    ``renew`` returns a new session after a 401, or raises SsbenchError; None where that is not possible.
    ``advance`` is called for each container or object deleted, ``expect`` with the number of objects
    listed so far.
    """

    def __init__(
        self,
        session: Session,
        settings: CleanUpSettings,
        renew: Callable[[], Session] | None = None,
        advance: Callable[[], None] = lambda: None,
        expect: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.result = CleanUpResult()
        on_a_thread = None if renew is None else partial(self._on_thread, renew)
        self._in_use = SessionInUse(session, on_a_thread, gevent.lock.Semaphore(), gevent.sleep)
        self._settings = settings
        self._advance = advance
        self._expect = expect
        self._client = make_store_client(
            ClientSettings(
                connect_timeout=settings.connect_timeout,
                network_timeout=settings.network_timeout,
                max_connections=settings.concurrency,
                insecure=session.insecure,
                ca_certificates=session.ca_certificates,
            )
        )
        self._threads = gevent.get_hub().threadpool
        self._threads.maxsize = max(self._threads.maxsize, settings.concurrency)
        self._deletes = gevent.pool.Pool(settings.concurrency)
        self._listed = 0
        self._failures_in_a_row = 0
        self._last_failure = ""
        #: How the versions of a container were refused that has been listed without them.
        self._versions_refused: dict[str, str] = {}
        self._succeeded_at = time.monotonic()
        #: Whether :meth:`stop` was called.
        self.stopped = False
        #: Whether the rest was not tried because nothing succeeded for ``give_up_after`` seconds.
        self.stood_still = False

    @property
    def _session(self) -> Session:
        return self._in_use.session

    @property
    def gave_up(self) -> bool:
        """Whether the rest was not tried because too many deletes failed in a row."""
        return self._failures_in_a_row >= _MAX_FAILURES_IN_A_ROW

    @property
    def _over(self) -> bool:
        return self.stopped or self.stood_still or self.gave_up

    def stop(self) -> None:
        """Start no more requests; :meth:`run` returns soon after. A signal handler may call this."""
        self.stopped = True

    def run(self, containers: list[str]) -> CleanUpResult:
        """Delete these containers and everything in them; failures are in the result."""
        began = time.monotonic()
        waiting = iter(containers)
        workers = gevent.pool.Group()
        try:
            for index in range(min(self._settings.concurrency, len(containers))):
                workers.spawn(self._work, index, waiting)
            self._wait(workers)
        finally:
            workers.kill(block=False)
            self._deletes.kill(block=False)
            self._client.close()
            self.result.seconds = time.monotonic() - began
        return self.result

    def _wait(self, workers: gevent.pool.Group) -> None:
        self._succeeded_at = logged_at = time.monotonic()
        stopped_at: float | None = None
        while not workers.join(_TICK_SECONDS, raise_error=True):
            interruption.raise_if_interrupted()
            now = time.monotonic()
            silence = now - self._succeeded_at
            if self._over:
                stopped_at = stopped_at or now
                if now - stopped_at > _STOP_SECONDS:
                    return
            elif self._settings.give_up_after and silence > self._settings.give_up_after:
                self.stood_still = True
            elif now - max(self._succeeded_at, logged_at) >= _LOG_SECONDS:
                logged_at = now
                _log.info(
                    "Waiting for Swift: nothing listed or deleted for %.0f s, %d containers under way%s",
                    silence,
                    len(workers),
                    f"; the last failure: {self._last_failure}" if self._last_failure else "",
                )

    def _succeed(self) -> None:
        self._failures_in_a_row = 0
        self._last_failure = ""
        self._succeeded_at = time.monotonic()

    def _work(self, index: int, waiting: Iterator[str]) -> None:
        urls = self._session.storage_urls
        url = urls[index % len(urls)]
        for container in waiting:
            if self._over:
                return
            try:
                failure = self._delete_container(url, container)
            except _FailedRequestError as error:
                # 404: something else has deleted it.
                failure = None if error.outcome.cause == NOT_FOUND else _describe_failure(error.outcome)
            if failure and not (self.stopped or self.stood_still):
                self._fail(f"{url}/{container}" if len(urls) > 1 else container, failure)

    def _delete_container(self, url: str, container: str) -> str | None:
        """Delete a container and its objects; return why it still exists, or raise _FailedRequestError."""
        pauses = iter(_DELETION_PAUSES)
        progress = _ListingProgress()
        names: list[ObjectVersion] = []
        protected = self._client.dialect(url).protects_full
        while not self._over:
            if not protected:
                self._end_uploads(url, container)
                names = self._list(url, container, "versions")
            if (protected or not names) and self._is_deleted(url, container):
                return None
            if protected:
                names = self._list(url, container, "versions")
            self._succeeded_at = time.monotonic()
            if names and progress.is_made_by(names):
                pauses = iter(_DELETION_PAUSES)
                self._listed += len(names)
                self._expect(self._listed)
                if failed := self._delete_objects(url, container, names):
                    return f"not empty, {failed} of its objects could not be deleted"
            elif (pause := next(pauses, None)) is not None:
                gevent.sleep(pause)
            elif not protected and self._is_deleted(url, container):
                # A SeaweedFS goes on listing marks of deleted objects that are deleted themselves.
                return None
            else:
                refusal = self._versions_refused.get(container)
                why = f"; its versions cannot be listed: {refusal}" if refusal else ""
                return f"HTTP 409 Conflict: not empty, although every listed object is deleted{why}"
        return "not finished"

    def _is_deleted(self, url: str, container: str) -> bool:
        """Delete a container, which may not be empty; return whether it is gone now."""
        outcome = self._ask(url, StoreRequest(method="DELETE", container=container))
        if outcome.cause is not None:
            if outcome.status == _CONFLICT_STATUS:
                return False
            raise _FailedRequestError(outcome)
        self._succeed()
        self.result.containers += 1
        self._advance()
        return True

    def _list(
        self, url: str, container: str, of: Literal["versions", "objects", "uploads"]
    ) -> list[ObjectVersion]:
        """Return the first page of names, each with all versions where the container keeps some."""
        dialect = self._client.dialect(url)
        request = StoreRequest(
            method="GET",
            container=container,
            listing=Listing(limit=dialect.page_entries, of=of),
            keep=_MAX_PAGE_BYTES,
        )
        outcome = self._ask(url, request)
        if of == "versions" and outcome.status in _NO_VERSIONS_STATUSES:
            self._versions_refused[container] = _describe_failure(outcome)
            return self._list(url, container, "objects")
        if outcome.cause is not None:
            raise _FailedRequestError(outcome)
        if outcome.status == _NOTHING_STATUS:
            return []
        try:
            page = dialect.read_page(outcome.reply.body if outcome.reply else b"", request)
        except ValueError as error:
            raise _FailedRequestError(
                structs.replace(outcome, cause=BAD_RESPONSE, detail=str(error)[:_MAX_DETAIL])
            ) from None
        ids = page.ids or [""] * len(page.rows)
        return [(name, each) for (name, _), each in zip(page.rows, ids, strict=True)]

    def _end_uploads(self, url: str, container: str) -> None:
        """Give up uploads of parts that have not ended: these parts are in no listing of objects."""
        for name, number in self._list(url, container, "uploads"):
            upload = MultipartUpload("abort", number)
            self._ask(
                url,
                StoreRequest(method="DELETE", container=container, name=name, upload=upload, missing_ok=True),
            )

    def _delete_objects(self, url: str, container: str, names: list[ObjectVersion]) -> int:
        """Delete objects; return how many could not be."""
        dialect = self._client.dialect(url)
        at_once = dialect.deletes_at_once
        together = [each for each in names if dialect.can_batch(each[0])]
        batches = [tuple(together[place : place + at_once]) for place in range(0, len(together), at_once)]
        alone = [each for each in names if not dialect.can_batch(each[0])]
        failed: int = sum(self._deletes.imap_unordered(partial(self._delete_batch, url, container), batches))
        failed += sum(self._deletes.imap_unordered(partial(self._delete_object, container), alone))
        return failed

    def _delete_batch(self, url: str, container: str, batch: tuple[ObjectVersion, ...]) -> int:
        """Delete objects by one request; return how many could not be."""
        if self._over:
            return len(batch)
        request = StoreRequest(method="POST", container=container, deletes=batch, keep=_MAX_PAGE_BYTES)
        outcome = self._ask(url, request)
        wrong, failures = outcome.cause, list[tuple[str, str]]()
        if wrong is None:
            try:
                body = outcome.reply.body if outcome.reply else b""
                failures = self._client.dialect(url).read_failures(body, request)
            except ValueError as error:
                wrong = f"{BAD_RESPONSE}: {error}"
        if wrong is not None:
            failures = [(name, wrong) for name, _ in batch]
        for name, cause in failures:
            self._fail(f"{container}/{name}", cause)
        for _ in range(len(batch) - len(failures)):
            self._succeed()
            self.result.objects += 1
            self._advance()
        return len(failures)

    def _ask(self, url: str, request: StoreRequest) -> RequestOutcome:
        """Make a request; after a 401 again with a new token."""
        for refusals in itertools.count(1):
            session = self._session
            outcome = self._client.perform(url, request, session.token)
            if not (outcome.unauthorized and self._renew(session, refusals)):
                break
        return outcome

    def _on_thread(self, call: Callable[[], Any]) -> Any:
        """Make this call on a thread, while other greenlets run; return or raise what it does."""
        # gevent prints a traceback when an exception leaves a function on its threads.
        answer, error = self._threads.apply(_result_or_error, (call,))
        if error is not None:
            raise error
        return answer

    def _delete_object(self, container: str, version: ObjectVersion) -> bool:
        """Delete an object, or one version of it; return whether that failed."""
        if self._over:
            return True
        name, number = version
        request = StoreRequest(
            method="DELETE", container=container, name=name, version=number, missing_ok=True
        )
        url = random.choice(self._session.storage_urls)
        outcome = self._ask(url, request)
        if outcome.cause is not None:
            place = f"{url}/" if len(self._session.storage_urls) > 1 else ""
            self._fail(f"{place}{container}/{name}", outcome.cause)
            return True
        self._succeed()
        self.result.objects += 1
        self._advance()
        return False

    def _fail(self, name: str, failure: str) -> None:
        # Most 4xx concern one container or object only; they do not predict that the next will fail.
        if not failure.startswith("HTTP 4") or failure.startswith(UNAUTHORIZED_CAUSE):
            self._failures_in_a_row += 1
        self._last_failure = f"{name}: {failure}"
        self.result.failed += 1
        if len(self.result.failures) < _MAX_KEPT_FAILURES:
            self.result.failures.append(f"{name}: {failure}")

    def _renew(self, refused: Session, refusals: int) -> bool:
        """Renew the token unless that has been done since; return whether to send the request again."""
        try:
            return self._in_use.renew(refused, refusals)
        except SsbenchError as error:
            _log.warning("%s", error)
            return False


class _ListingProgress:
    """Whether the first page of a container that is being emptied gets further.

    Names that were deleted may be listed again for a time, but not for ever: a page that comes back, alone or
    in turn with others, is none that was not there before.
    """

    def __init__(self) -> None:
        self._first = self._last = ""
        self._ids_of_last: set[str] = set()  # of versions of the last name, which may be more than a page

    def is_made_by(self, names: Sequence[ObjectVersion]) -> bool:
        """Take the names of a page, with the ids of their versions; return whether to delete these."""
        first, last = min(names)[0], max(names)[0]
        if last > self._last:
            self._ids_of_last.clear()
        further = first > self._first or last > self._last
        self._first, self._last = max(first, self._first), max(last, self._last)
        ids = {number for name, number in names if name == self._last} - self._ids_of_last
        self._ids_of_last |= ids
        return further or bool(ids)


class _FailedRequestError(Exception):
    """A request has failed for good."""

    def __init__(self, outcome: RequestOutcome) -> None:
        super().__init__(outcome.cause)
        self.outcome = outcome


def _describe_failure(outcome: RequestOutcome) -> str:
    """Return why a request failed, in a few words."""
    known = outcome.status in HTTPStatus.__members__.values() and outcome.cause == cause_of_status(
        outcome.status
    )
    return f"{outcome.cause} {HTTPStatus(outcome.status).phrase}" if known else outcome.cause or ""


def _result_or_error(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Call it; return what it returns and what it raises."""
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001 - the caller raises it again
        return None, error
