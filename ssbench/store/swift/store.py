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
    StoreAccess,
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

    def capabilities(self, access: StoreAccess[Session]) -> Capabilities:
        """Read ``/info``, which is at the root of the server, or beside the storage URL (Ceph)."""
        import json

        import requests
        import urllib3

        from ssbench.store.http.redirects import OriginSession, RedirectRefusedError

        session = access.session
        verify: str | bool = False if session.insecure else (session.ca_file or True)
        for url in find_info_urls(session.storage_url):
            try:
                with (
                    OriginSession() as sender,
                    sender.get(url, timeout=access.timeouts, verify=verify, stream=True) as answer,
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
        self, access: StoreAccess[Session], request: StoreRequest, retry_seconds: float | None = None
    ) -> RequestOutcome:
        from ssbench.store.http.master_requests import ask_over_http
        from ssbench.store.swift.dialect import SwiftDialect

        dialect = SwiftDialect(access.session.storage_url, access.trans_id_extra)
        return ask_over_http(dialect, access, request, retry_seconds)

    def in_account(self, session: Session, name: str) -> Session:
        return session_in_account(session, name)

    def find_containers(
        self, access: StoreAccess[Session], base: str, policy: str | None, *, longer: bool = False
    ) -> Iterable[tuple[str, int]]:
        from ssbench.store.swift.containers import find_containers

        return find_containers(access, base, policy, longer=longer)

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
        access: StoreAccess[Session],
        containers: Iterable[str],
        policy: str | None,
        concurrency: int,
        advance: Callable[[], None],
        *,
        check: Callable[[], None],
        headers: Mapping[str, str],
    ) -> None:
        from ssbench.store.swift.containers import ensure_containers

        ensure_containers(access, containers, policy, concurrency, advance, check=check, headers=headers)

    def sign(self, access: StoreAccess[Session], until: int) -> ReadSignatures:
        from ssbench.store.swift.tempurl import TemporaryKey

        return TemporaryKey(access, until)

    def objects(
        self, access: StoreAccess[Session], container: str, *, expect: Callable[[int], None]
    ) -> Iterable[tuple[str, int]]:
        from ssbench.store.swift.containers import ContainerListing

        return ContainerListing(access, container).objects(expect)


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
