"""Making the containers of a run: HEAD, and PUT with X-Storage-Policy where one is missing.

Threads over python-swiftclient, because the master has no gevent. They are daemons, so a server
that does not answer holds up neither Ctrl-C nor the end of the program.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import swiftclient

from ssbench.errors import ClusterError
from ssbench.swift.causes import TRANSIENT_STATUSES
from ssbench.swift.client_errors import CLIENT_ERRORS, status, why
from ssbench.swift.credentials import Session

#: Pauses before the second and later attempts, in seconds.
_PAUSES = (0.2, 0.5, 1.0, 2.0)

#: No further attempt is begun so long after the first, in seconds: whoever waited for a time-out
#: to pass once knows enough.
_ENOUGH = 8.0

#: How many failures an error's text tells in full.
_TOLD = 3


def connect(session: Session, index: int, timeouts: tuple[float, float]) -> Any:
    """Open a keep-alive connection of python-swiftclient, to one of the storage URLs by turns.

    ``timeouts`` are those of connecting and of each wait for an answer, in seconds.
    """
    _, connection = swiftclient.http_connection(
        session.storage_urls[index % len(session.storage_urls)],
        insecure=session.insecure,
        cacert=session.ca_file,
        timeout=timeouts,
    )
    return connection


def persistently(call: Callable[[], Any]) -> Any:
    """Return what ``call`` does, after some more attempts where the failure may be gone by then.

    Raises what the last attempt raised.
    """
    began = time.monotonic()
    for pause in _PAUSES:
        try:
            return call()
        except CLIENT_ERRORS as error:
            code = status(error)
            if code is not None and code not in TRANSIENT_STATUSES:
                raise
            if time.monotonic() - began + pause > _ENOUGH:
                raise
        time.sleep(pause)
    return call()


def ensure_containers(
    session: Session,
    names: Iterable[str],
    policy: str | None = None,
    concurrency: int = 10,
    advance: Callable[[], None] = lambda: None,
    *,
    timeouts: tuple[float, float] = (10.0, 20.0),
) -> None:
    """Make sure that the containers are there, ``concurrency`` at once.

    ``advance`` is called in this thread for each that is. Raises ClusterError that tells of those that
    could not be made, or that exist with another policy; after the first failure no further one is begun.
    ``timeouts`` are those of connecting and of each wait for an answer, in seconds.
    """
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    # A container and why it failed, if it did; or the end of a thread, and what ended it if it was a bug.
    ended: queue.SimpleQueue[tuple[str, str | None] | BaseException | None] = queue.SimpleQueue()
    stop = threading.Event()
    total = 0
    for name in names:
        waiting.put(name)
        total += 1
    threads = min(concurrency, total)
    running = threads

    def work(index: int) -> None:
        bug = None
        try:
            with contextlib.closing(connect(session, index, timeouts)) as connection:
                while not stop.is_set():
                    name = waiting.get_nowait()
                    failure = _ensure(session, connection, name, policy)
                    if failure is not None:
                        stop.set()
                    ended.put((f"{connection.url}/{name}", failure))
        except queue.Empty:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            bug = error
        ended.put(bug)

    failures: list[str] = []
    try:
        for index in range(threads):
            threading.Thread(target=work, args=(index,), name=f"containers-{index}", daemon=True).start()
        while running:
            news = ended.get()
            if isinstance(news, BaseException):
                raise news
            if news is None:
                running -= 1
                continue
            container, failure = news
            if failure is None:
                advance()
            else:
                failures.append(f"{container}: {failure}")
    finally:
        stop.set()
    if failures:
        raise ClusterError(_tell(failures))


def _ensure(session: Session, connection: Any, name: str, policy: str | None) -> str | None:
    """Make one container; return why that failed."""
    url, token, place = connection.url, session.token, (connection.parsed_url, connection)

    def head() -> dict[str, str] | None:
        try:
            found: dict[str, str] = swiftclient.head_container(url, token, name, http_conn=place)
            return found
        except swiftclient.ClientException as error:
            if error.http_status == 404:
                return None
            raise

    headers = {"X-Storage-Policy": policy} if policy else {}

    def put() -> None:
        swiftclient.put_container(url, token, name, headers=headers, http_conn=place)

    try:
        found = persistently(head)
        if found is None:
            persistently(put)
            return None
        actual = found.get("x-storage-policy")
        if policy and actual and not _same_policy(policy, actual, connection):
            return f"exists with the storage policy {actual!r}, not {policy!r}"
    except CLIENT_ERRORS as error:
        if policy and status(error) == 400:
            return f"HTTP 400 Bad Request: is there no storage policy {policy!r}?"
        return why(error)
    return None


def _same_policy(asked: str, actual: str, connection: Any) -> bool:
    """Whether two names are of one policy: names know no case, and a policy may have aliases."""
    if asked.casefold() == actual.casefold():
        return True
    try:
        known = swiftclient.get_capabilities((connection.parsed_url._replace(path="/info"), connection))
        policies = known["swift"]["policies"]
        names = [
            {name.strip().casefold() for name in [one["name"], *one.get("aliases", "").split(",")]}
            for one in policies
        ]
    except (*CLIENT_ERRORS, KeyError, TypeError, ValueError, AttributeError):
        return False  # a cluster that does not tell
    return any({asked.casefold(), actual.casefold()} <= each for each in names)


def _tell(failures: Sequence[str]) -> str:
    told = "; ".join(failures[:_TOLD])
    more = f"; and {len(failures) - _TOLD} more" if len(failures) > _TOLD else ""
    return f"containers could not be made: {told}{more}"
