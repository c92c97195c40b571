"""The store that runs use. Another one is chosen here, and nowhere else."""

from __future__ import annotations

from ssbench.store.contract import Store
from ssbench.swift.credentials import Credentials, Session
from ssbench.swift.store import Swift

#: The master's side of the store.
STORE: Store[Credentials, Session] = Swift()
