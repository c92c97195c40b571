"""Signatures for reads without a token, which the master makes: workers get no key."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ssbench.errors import UsageError
from ssbench.operation import Operation
from ssbench.operations import OPERATIONS
from ssbench.run.options import RunOptions
from ssbench.run.part import Part
from ssbench.run.tokens import TokenSource
from ssbench.scenario.model import Scenario
from ssbench.store.contract import Signed
from ssbench.stores import STORE

#: Each message to a worker holds the signatures of all containers.
MOST_CONTAINERS = 1000

#: A run may take longer than it should; its signatures are of no use once it has ended.
_GRACE = 7 * 86400


def refuse_many(scenario: Scenario) -> None:
    """Raise UsageError where a scenario needs signatures for too many containers, or of several accounts."""
    for part in scenario.parts:
        signed = _signed(part)
        if signed and part.accounts > 1:
            raise UsageError(f"{signed[0].name}: not possible with several accounts: each would need a key")
        if signed and part.container_count > MOST_CONTAINERS:
            raise UsageError(
                f"{signed[0].name}: possible with {MOST_CONTAINERS:,} containers at most,"
                f" not with {part.container_count:,}"
            )


def _signed(scenario: Scenario) -> list[Operation]:
    return [row for row in OPERATIONS if row.signed and row.name in scenario.operation_names]


def sign_reads(
    parts: Sequence[Part], options: RunOptions, tokens: TokenSource, stop: Callable[[], bool]
) -> Signed | None:
    """Give the workers of each part that needs them signatures for its containers.

    Returns what ends them; None where no part needs any. ``stop`` says whether to wait no longer until the
    cluster takes them. Raises UsageError and ClusterError. See :func:`refuse_many`.
    """
    needing = [part for part in parts if _signed(part.scenario)]
    if not needing:
        return None
    session = needing[0].places[0].session(tokens.sessions)
    timeouts = options.requests.connect_timeout, options.requests.network_timeout
    features = STORE.capabilities(session, timeouts).features.get(_signed(needing[0].scenario)[0].needs, {})
    longest = max(part.scenario.run_seconds or 0.0 for part in needing)
    signed = STORE.sign(session, tokens.renewing(0), int(time.time() + longest) + _GRACE, timeouts)
    try:
        for part in needing:
            part.crew.change(signed=signed.queries(part.places[0].containers, features, stop))
    except BaseException:
        signed.end()
        raise
    return signed
