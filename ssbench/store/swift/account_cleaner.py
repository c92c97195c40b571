"""Delete the containers that ssbench made, and everything in them.

Objects are deleted by the worker's fast client on greenlets. Listings and containers, of which there are
few, go through python-swiftclient on gevent's thread pool, because nothing here is monkey-patched.

Listings of Swift are eventually consistent: they may show an object that is deleted, and not show one
that exists. So first the container itself is deleted. Only when Swift answers that it is not empty, one
page of it is listed and deleted, and this is repeated for as long as it makes progress.
"""

from __future__ import annotations

import itertools
import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Self
from urllib.parse import urlencode

import gevent
import gevent.lock
import gevent.pool
import swiftclient

from ssbench.base import interruption
from ssbench.base.errors import ExitCode, SsbenchError
from ssbench.base.measures import Count, Seconds
from ssbench.base.record import JsonHead, JsonRecord
from ssbench.store.contract import StoreRequest
from ssbench.store.http.client import ClientSettings, HttpClient
from ssbench.store.http.client_errors import CLIENT_ERRORS, describe_client_error, status_of_error
from ssbench.store.swift.containers import (
    LISTING_TIMEOUTS,
    ObjectVersion,
    call_persistently,
    list_first_versions,
    open_swift_connection,
)
from ssbench.store.swift.credentials import Session, SessionInUse
from ssbench.store.swift.dialect import SwiftDialect

_log = logging.getLogger(__name__)

#: Seconds before each further attempt to delete a container that is not empty but lists nothing new.
_DELETION_PAUSES = (0.1, 0.3, 1.0, 2.0, 4.0)

#: Failures in a row, of a kind that concerns the whole cluster, after which no more is tried.
_MAX_FAILURES_IN_A_ROW = 20

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
    connect_timeout: float = LISTING_TIMEOUTS[0]
    network_timeout: float = LISTING_TIMEOUTS[1]
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
        self._client = HttpClient(
            ClientSettings(
                connect_timeout=settings.connect_timeout,
                network_timeout=settings.network_timeout,
                max_connections=settings.concurrency,
                insecure=session.insecure,
                ca_certificates=session.ca_certificates,
            ),
            SwiftDialect,
        )
        self._threads = gevent.get_hub().threadpool
        self._threads.maxsize = max(self._threads.maxsize, settings.concurrency)
        self._deletes = gevent.pool.Pool(settings.concurrency)
        self._listed = 0
        self._failures_in_a_row = 0
        self._last_failure = ""
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
        connection = open_swift_connection(self._session, index, self._settings.timeouts)
        try:
            for container in waiting:
                if self._over:
                    return
                try:
                    failure = self._delete_container(connection, container)
                except CLIENT_ERRORS as error:
                    # 404: something else has deleted it.
                    failure = None if status_of_error(error) == 404 else describe_client_error(error)
                if failure and not (self.stopped or self.stood_still):
                    place = f"{connection.url}/" if len(self._session.storage_urls) > 1 else ""
                    self._fail(f"{place}{container}", failure)
        finally:
            connection.close()

    def _delete_container(self, connection: Any, container: str) -> str | None:
        """Delete a container and its objects; return why it still exists, or raise one of CLIENT_ERRORS."""
        pauses = iter(_DELETION_PAUSES)
        previous: list[ObjectVersion] = []
        while not self._over:
            try:
                self._ask(swiftclient.delete_container, connection, container)
            except CLIENT_ERRORS as error:
                if status_of_error(error) != 409:
                    raise
            else:
                self._succeed()
                self.result.containers += 1
                self._advance()
                return None
            names = self._ask(list_first_versions, connection, container)
            self._succeeded_at = time.monotonic()
            if names and names != previous:
                self._listed += len(names)
                self._expect(self._listed)
                delete = partial(self._delete_object, container)
                if failed := sum(self._deletes.imap_unordered(delete, names)):
                    return f"not empty, {failed} of its objects could not be deleted"
            elif (pause := next(pauses, None)) is not None:
                gevent.sleep(pause)
            else:
                return "HTTP 409 Conflict: not empty, although every listed object is deleted"
            previous = names
        return "not finished"

    def _ask(self, function: Callable[..., Any], connection: Any, container: str) -> Any:
        """Call a function of python-swiftclient on a thread; after a 401 again with a new token."""
        place = (connection.parsed_url, connection)

        def attempt(session: Session) -> Any:
            call = partial(function, connection.url, session.token, container, http_conn=place)
            return self._on_thread(partial(call_persistently, call))

        refusals = 0
        while True:
            session = self._session
            try:
                return attempt(session)
            except CLIENT_ERRORS as error:
                refusals += 1
                if status_of_error(error) != 401 or not self._renew(session, refusals):
                    raise

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
        name, version_id = version
        query = urlencode({"version-id": version_id}) if version_id else ""
        request = StoreRequest(method="DELETE", container=container, name=name, query=query, missing_ok=True)
        url = random.choice(self._session.storage_urls)
        for refusals in itertools.count(1):
            session = self._session
            outcome = self._client.perform(url, request, session.token)
            if not (outcome.unauthorized and self._renew(session, refusals)):
                break
        if outcome.cause is not None:
            place = f"{url}/" if len(session.storage_urls) > 1 else ""
            self._fail(f"{place}{container}/{name}", outcome.cause)
            return True
        self._succeed()
        self.result.objects += 1
        self._advance()
        return False

    def _fail(self, name: str, failure: str) -> None:
        # Most 4xx concern one container or object only; they do not predict that the next will fail.
        if not failure.startswith("HTTP 4") or failure.startswith("HTTP 401"):
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


def _result_or_error(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Call it; return what it returns and what it raises."""
    try:
        return call(), None
    except Exception as error:  # noqa: BLE001 - the caller raises it again
        return None, error
