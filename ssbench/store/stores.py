"""The store that runs use. Another one is chosen here, and nowhere else.

With it come its types, and the names of environment variables with its secrets, for modules that only pass
them on.
"""

from __future__ import annotations

from ssbench.store.contract import Store
from ssbench.store.swift.credentials import SECRET_VARIABLES, Credentials, Session
from ssbench.store.swift.store import SwiftStore

__all__ = ["SECRET_VARIABLES", "STORE", "Credentials", "Session"]

#: The master's side of the store.
STORE: Store[Credentials, Session] = SwiftStore()
