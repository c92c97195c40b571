"""The stores that runs use: which one, an address tells.

With them come their types, and the names of environment variables with secrets, for modules that only pass
them on. The package of a store is found by the name of its kind (:mod:`ssbench.scenario.store_kinds`): its
``store`` has a ``STORE_CLASS``, its ``dialect`` a ``DIALECT_CLASS``. Few runs need more than one.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ssbench.base.errors import UsageError
from ssbench.scenario.operations import OperationSettings
from ssbench.scenario.store_kinds import STORE_KINDS, find_store_kind
from ssbench.scenario.value_rules import PayloadMode
from ssbench.store.contract import (
    Capabilities,
    ClockBounds,
    ReadSignatures,
    RequestOutcome,
    Store,
    StoreAccess,
    StoreRequest,
)
from ssbench.store.credentials import SECRET_VARIABLES, Credentials, Session

if TYPE_CHECKING:
    from ssbench.store.http.client import ClientSettings, HttpClient
    from ssbench.store.http.dialect import HttpDialect

__all__ = ["SECRET_VARIABLES", "STORE", "Credentials", "Session"]


def open_dialect(
    storage_url: str, trans_id_extra: str | None = None, payload: PayloadMode = "unsigned"
) -> HttpDialect:
    """Return how a storage URL is spoken to; raises UsageError for one that cannot be used.

    ``payload`` is what requests say of bodies, where the API has such a thing.
    """
    module = import_module(f"ssbench.store.{find_store_kind(storage_url).name}.dialect")
    found: HttpDialect = module.DIALECT_CLASS(storage_url, trans_id_extra, payload)
    return found


def make_store_client(settings: ClientSettings) -> HttpClient:
    """Return the workers' side of the stores."""
    from ssbench.store.http.client import HttpClient  # noqa: PLC0415 - it brings gevent

    return HttpClient(settings, open_dialect)


class AnyStore:
    """The master's side: each call is for the store of an address."""

    def __init__(self) -> None:
        self._stores: dict[str, Store[Credentials, Session]] = {}  # by the names of their kinds, once needed

    def of_url(self, url: str) -> Store[Credentials, Session]:
        """Return the store that a storage URL is for."""
        name = find_store_kind(url).name
        if name not in self._stores:
            self._stores[name] = import_module(f"ssbench.store.{name}.store").STORE_CLASS()
        return self._stores[name]

    def of(self, session: Session) -> Store[Credentials, Session]:
        """Return the store of a session."""
        return self.of_url(session.storage_url)

    def authenticate(self, credentials: Credentials, timeout: float = 10.0) -> Session:
        """Return a session; see :meth:`Store.authenticate`."""
        urls = credentials.storage_urls
        found = {*map(find_store_kind, urls)}
        if len(found) > 1:
            apis = " and ".join(f"of {each.api}" for each in STORE_KINDS.values() if each in found)
            raise UsageError(f"storage URLs {apis} are not those of one account")
        return self.of_url(urls[0] if urls else "").authenticate(credentials, timeout)

    def capabilities(self, access: StoreAccess[Session]) -> Capabilities:
        return self.of(access.session).capabilities(access)

    def clock(self, session: Session) -> ClockBounds | None:
        return self.of(session).clock(session)

    def ask(
        self, access: StoreAccess[Session], request: StoreRequest, retry_seconds: float | None = None
    ) -> RequestOutcome:
        return self.of(access.session).ask(access, request, retry_seconds)

    def in_account(self, session: Session, name: str) -> Session:
        return self.of(session).in_account(session, name)

    def find_containers(
        self, access: StoreAccess[Session], *arguments: Any, **named: Any
    ) -> Iterable[tuple[str, int]]:
        return self.of(access.session).find_containers(access, *arguments, **named)

    def container_base(self, session: Session, base: str) -> str:
        return self.of(session).container_base(session, base)

    def explain_lack(self, session: Session, operation: OperationSettings) -> list[str]:
        """Say why an operation is not possible over the kind of the store, or with its values."""
        if why := find_store_kind(session.storage_url).lacks.get(operation.name):
            return [f"{operation.name}: {why}"]
        return self.of(session).explain_lack(session, operation)

    def renewal_seconds(self, session: Session) -> float:
        return self.of(session).renewal_seconds(session)

    def warn_of_route(self, credentials: Credentials, session: Session) -> None:
        self.of(session).warn_of_route(credentials, session)

    def prepare(self, access: StoreAccess[Session], *arguments: Any, **named: Any) -> None:
        self.of(access.session).prepare(access, *arguments, **named)

    def sign(self, access: StoreAccess[Session], until: int) -> ReadSignatures:
        return self.of(access.session).sign(access, until)

    def objects(
        self, access: StoreAccess[Session], container: str, **named: Any
    ) -> Iterable[tuple[str, int]]:
        return self.of(access.session).objects(access, container, **named)

    def end(self) -> None:
        """Remove what authenticating has made."""
        for each in self._stores.values():
            each.end()


#: The master's side of the stores.
STORE = AnyStore()
