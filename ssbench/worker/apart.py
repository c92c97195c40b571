"""Which jobs have new connections: a share of them, drawn from a seed and their numbers."""

from __future__ import annotations

from hashlib import blake2b

from ssbench.fleet.wire import Job, RunParameters
from ssbench.scenario.operation_table import OPERATIONS
from ssbench.store.swift.objects import SwiftClient

#: Operations that only ssbench itself sends, and that are no part of a benchmark.
_OWN_CODES = frozenset(row.code for row in OPERATIONS if not row.drawn)

_DIGEST_BYTES = 8


class FreshConnections:
    """The jobs that have new connections. ``client`` carries them out."""

    def __init__(self, parameters: RunParameters, client: SwiftClient) -> None:
        self.client = client.without_keeping()
        self._limit = parameters.new_connections * 2 ** (8 * _DIGEST_BYTES)
        self._key = parameters.seed.to_bytes(8, "little")

    def has(self, job: Job) -> bool:
        """Return whether a job is one of them; the same each time for its number."""
        number, code, *_ = job
        drawn = blake2b(number.to_bytes(8, "little"), digest_size=_DIGEST_BYTES, key=self._key).digest()
        return code not in _OWN_CODES and int.from_bytes(drawn, "little") < self._limit
