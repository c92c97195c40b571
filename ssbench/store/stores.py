"""The stores that runs use: which one, an address tells.

With them come their types, and the names of environment variables with secrets, for modules that only pass
them on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssbench.store.contract import Store
from ssbench.store.swift.credentials import SECRET_VARIABLES, Credentials, Session
from ssbench.store.swift.store import SwiftStore

if TYPE_CHECKING:
    from ssbench.store.http.client import ClientSettings, HttpClient
    from ssbench.store.http.dialect import HttpDialect

__all__ = ["SECRET_VARIABLES", "STORE", "Credentials", "Session"]

#: The master's side of the store.
STORE: Store[Credentials, Session] = SwiftStore()


def open_dialect(storage_url: str, trans_id_extra: str | None = None) -> HttpDialect:
    """Return how a storage URL is spoken to; raises UsageError for one that cannot be used."""
    from ssbench.store.swift.dialect import SwiftDialect  # noqa: PLC0415 - a no-op run does without

    return SwiftDialect(storage_url, trans_id_extra)


def make_store_client(settings: ClientSettings) -> HttpClient:
    """Return the workers' side of the stores."""
    from ssbench.store.http.client import HttpClient  # noqa: PLC0415 - it brings gevent

    return HttpClient(settings, open_dialect)
