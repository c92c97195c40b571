"""The stores that runs use: which one, an address tells.

With them come their types, and the names of environment variables with secrets, for modules that only pass
them on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ssbench.base.errors import UsageError
from ssbench.scenario.operations import OperationSettings
from ssbench.scenario.value_rules import PayloadMode
from ssbench.store.contract import (
    Capabilities,
    ClockBounds,
    ReadSignatures,
    RequestOutcome,
    Store,
    StoreRequest,
)
from ssbench.store.credentials import SECRET_VARIABLES, Credentials, Session, is_s3_url
from ssbench.store.swift.store import SwiftStore

if TYPE_CHECKING:
    from ssbench.store.http.client import ClientSettings, HttpClient
    from ssbench.store.http.dialect import HttpDialect

__all__ = ["SECRET_VARIABLES", "STORE", "Credentials", "Session", "is_s3_url"]


def open_dialect(
    storage_url: str, trans_id_extra: str | None = None, payload: PayloadMode = "unsigned"
) -> HttpDialect:
    """Return how a storage URL is spoken to; raises UsageError for one that cannot be used.

    ``payload`` is what requests of the S3 API say of bodies.
    """
    if is_s3_url(storage_url):
        from ssbench.store.s3.dialect import S3Dialect  # noqa: PLC0415 - few runs need it

        return S3Dialect(storage_url, trans_id_extra, payload)
    from ssbench.store.swift.dialect import SwiftDialect  # noqa: PLC0415 - a no-op run does without

    return SwiftDialect(storage_url, trans_id_extra)


def make_store_client(settings: ClientSettings) -> HttpClient:
    """Return the workers' side of the stores."""
    from ssbench.store.http.client import HttpClient  # noqa: PLC0415 - it brings gevent

    return HttpClient(settings, open_dialect)


class AnyStore:
    """The master's side: each call is for the store of an address."""

    def __init__(self) -> None:
        self._swift = SwiftStore()
        #: Made where an address is one of its own, for it brings what other runs do without.
        self._s3: Store[Credentials, Session] | None = None

    def of_url(self, url: str) -> Store[Credentials, Session]:
        """Return the store that a storage URL is for."""
        if not is_s3_url(url):
            return self._swift
        if self._s3 is None:
            from ssbench.store.s3.store import S3Store  # noqa: PLC0415 - see above

            self._s3 = S3Store()
        return self._s3

    def of(self, session: Session) -> Store[Credentials, Session]:
        """Return the store of a session."""
        return self.of_url(session.storage_url)

    def authenticate(self, credentials: Credentials, timeout: float = 10.0) -> Session:
        """Return a session; see :meth:`Store.authenticate`."""
        urls = credentials.storage_urls
        if len({is_s3_url(url) for url in urls}) > 1:
            raise UsageError("storage URLs of Swift's API and of the S3 API are not those of one account")
        return self.of_url(urls[0] if urls else "").authenticate(credentials, timeout)

    def capabilities(self, session: Session, timeouts: tuple[float, float]) -> Capabilities:
        return self.of(session).capabilities(session, timeouts)

    def clock(self, session: Session) -> ClockBounds | None:
        return self.of(session).clock(session)

    def ask(self, session: Session, request: StoreRequest, **named: Any) -> RequestOutcome:
        return self.of(session).ask(session, request, **named)

    def in_account(self, session: Session, name: str) -> Session:
        return self.of(session).in_account(session, name)

    def find_containers(self, session: Session, *arguments: Any, **named: Any) -> Iterable[tuple[str, int]]:
        return self.of(session).find_containers(session, *arguments, **named)

    def container_base(self, session: Session, base: str) -> str:
        return self.of(session).container_base(session, base)

    def explain_lacks(self, session: Session, operations: Iterable[OperationSettings]) -> list[str]:
        return self.of(session).explain_lacks(session, operations)

    def renewal_seconds(self, session: Session) -> float:
        return self.of(session).renewal_seconds(session)

    def has_segment_containers(self, session: Session) -> bool:
        return self.of(session).has_segment_containers(session)

    def warn_of_proxy(self, credentials: Credentials, session: Session) -> None:
        self.of(session).warn_of_proxy(credentials, session)

    def prepare(self, session: Session, *arguments: Any, **named: Any) -> None:
        self.of(session).prepare(session, *arguments, **named)

    def sign(self, session: Session, *arguments: Any) -> ReadSignatures:
        return self.of(session).sign(session, *arguments)

    def objects(self, session: Session, container: str, **named: Any) -> Iterable[tuple[str, int]]:
        return self.of(session).objects(session, container, **named)

    def end(self) -> None:
        """Remove what authenticating has made."""
        if self._s3 is not None:
            self._s3.end()


#: The master's side of the stores.
STORE = AnyStore()
