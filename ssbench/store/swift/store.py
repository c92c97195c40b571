"""Swift as a :class:`~ssbench.store.contract.Store`.

This is the master's side; workers use :mod:`ssbench.store.swift.dialect`. python-swiftclient and
keystoneauth are imported where they are first needed: they bring 0.3 s that a no-op run does without.
"""

# ruff: noqa: D102, PLC0415 - the methods are documented in Store; see above

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

from ssbench.base.errors import UsageError
from ssbench.scenario.operations import OperationSettings
from ssbench.store.contract import (
    Capabilities,
    ClockBounds,
    ReadSignatures,
    RequestOutcome,
    Store,
    StoreRequest,
)
from ssbench.store.credentials import Credentials, Session

_log = logging.getLogger(__name__)

#: The largest answer that is read for what a cluster can do.
_MAX_INFO_BYTES = 1_000_000


class SwiftStore:
    """OpenStack Swift, and other stores that have its API."""

    def authenticate(self, credentials: Credentials, timeout: float = 10.0) -> Session:
        from ssbench.store.swift.auth import authenticate_swift

        return authenticate_swift(credentials, timeout)

    def capabilities(self, session: Session, timeouts: tuple[float, float]) -> Capabilities:
        """Read ``/info``, which is at the root of the server, or beside the storage URL (Ceph)."""
        import json

        import requests
        import urllib3

        from ssbench.store.http.redirects import OriginSession, RedirectRefusedError

        verify: str | bool = False if session.insecure else (session.ca_file or True)
        for url in find_info_urls(session.storage_url):
            try:
                with (
                    OriginSession() as sender,
                    sender.get(url, timeout=timeouts, verify=verify, stream=True) as answer,
                ):
                    content = answer.raw.read(_MAX_INFO_BYTES, decode_content=True)
                    found = json.loads(content) if answer.status_code == requests.codes.ok else None
            except RedirectRefusedError as error:
                _log.warning("%s: HTTP %d, %s", url, error.status_code, error)
                continue
            # What is read of a body past requests raises what urllib3 does.
            except (
                requests.RequestException,
                urllib3.exceptions.HTTPError,
                OSError,
                ValueError,
                RecursionError,
            ):
                continue
            if isinstance(found, dict) and isinstance(found.get("swift"), dict):
                features = {
                    name: limits if isinstance(limits, dict) else {} for name, limits in found.items()
                }
                return Capabilities(features, known=True)
        return Capabilities()

    def clock(self, session: Session) -> ClockBounds | None:
        from ssbench.store.swift.containers import measure_clock_difference

        verify = False if session.insecure else (session.ca_file or True)
        return measure_clock_difference(find_info_urls(session.storage_url)[0], verify)

    def ask(
        self,
        session: Session,
        request: StoreRequest,
        *,
        timeouts: tuple[float, float],
        trans_id_extra: str | None = None,
        retry_seconds: float | None = None,
    ) -> RequestOutcome:
        from ssbench.store.http.master_requests import ask_over_http
        from ssbench.store.swift.dialect import SwiftDialect

        dialect = SwiftDialect(session.storage_url, trans_id_extra)
        return ask_over_http(dialect, session, request, timeouts, retry_seconds)

    def in_account(self, session: Session, name: str) -> Session:
        return session_in_account(session, name)

    def find_containers(
        self,
        session: Session,
        base: str,
        policy: str | None,
        timeouts: tuple[float, float],
        *,
        longer: bool = False,
    ) -> Iterable[tuple[str, int]]:
        from ssbench.store.swift.containers import find_containers

        return find_containers(session, base, policy, timeouts, longer=longer)

    def container_base(self, session: Session, base: str) -> str:
        return base

    def explain_lack(self, session: Session, operation: OperationSettings) -> list[str]:
        return []

    def renewal_seconds(self, session: Session) -> float:
        return math.inf

    def warn_of_route(self, credentials: Credentials, session: Session) -> None:
        from ssbench.store.swift.auth import warn_of_auth_route

        warn_of_auth_route(credentials, session)

    def end(self) -> None:
        pass

    def prepare(
        self,
        session: Session,
        containers: Iterable[str],
        policy: str | None,
        concurrency: int,
        advance: Callable[[], None],
        *,
        timeouts: tuple[float, float],
        check: Callable[[], None],
        renew: Callable[[], Session] | None,
        trans_id_extra: str | None,
        headers: Mapping[str, str],
    ) -> None:
        from ssbench.store.swift.containers import ensure_containers

        ensure_containers(
            session,
            containers,
            policy,
            concurrency,
            advance,
            timeouts=timeouts,
            check=check,
            renew=renew,
            trans_id_extra=trans_id_extra,
            headers=headers,
        )

    def sign(
        self,
        session: Session,
        renew: Callable[[], Session] | None,
        until: int,
        timeouts: tuple[float, float],
    ) -> ReadSignatures:
        from ssbench.store.swift.tempurl import TemporaryKey

        return TemporaryKey(session, renew, until, timeouts)

    def objects(
        self,
        session: Session,
        container: str,
        *,
        timeouts: tuple[float, float],
        renew: Callable[[], Session] | None,
        expect: Callable[[int], None],
    ) -> Iterable[tuple[str, int]]:
        from ssbench.store.swift.containers import ContainerListing

        return ContainerListing(session, container, timeouts, renew).objects(expect)


def find_info_urls(storage_url: str) -> list[str]:
    """Return where a cluster may say what it can do."""
    parts = urlsplit(storage_url)
    folders = dict.fromkeys(["/", parts.path.partition("/v1")[0].rstrip("/") + "/"])
    return [urlunsplit((parts.scheme, parts.netloc, f"{folder}info", "", "")) for folder in folders]


def session_in_account(session: Session, name: str) -> Session:
    """Return the session of a reseller admin in another account, of this name after the reseller's prefix.

    The prefix is that of the account of its storage URL, such as ``AUTH_``. Raises UsageError where that has
    none.
    """
    urls = []
    for url in session.storage_urls:
        before, _, own = url.rpartition("/")
        prefix, underscore, _ = own.partition("_")
        if not underscore or not before.partition("/v1")[1]:
            raise UsageError(
                f"accounts: {url} does not end in an account such as AUTH_test, from which the names of"
                " others could be made: give a list of credentials (--credentials)"
            )
        urls.append(f"{before}/{prefix}_{name}")
    return replace(session, storage_urls=tuple(urls))


STORE_CLASS: type[Store[Credentials, Session]] = SwiftStore
