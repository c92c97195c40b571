"""Who bounds a store, by Swift's logs of a run with more users than its limit.

That a server is slow does not tell that it bounds the store. It does where the latencies would be far lower
without it: where the 99th percentile of the requests in which it had no part is at most half of that of all
requests. Of several servers that are slow those do together without which it would be, and each of them only
if the others without it would not do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ssbench.cluster.attribution_records import Attribution
from ssbench.cluster.finding_kinds import (
    OneOfSeveral,
    ServedFailures,
    SlowServer,
    SuspectFinding,
    name_any_of,
)
from ssbench.cluster.joined_run import JoinedRun
from ssbench.comparison.store_limits import LoggedRun
from ssbench.document.elements import Verdict

#: The 99th percentile of the others is at most so much of that of all.
_BOUNDING_SHARE = 0.5

#: The fewest servers that served so much of what failed, or more, bound a store whose requests fail.
_FAILING_SHARE = 0.5

#: Of fewer requests it is not known.
_LEAST_REQUESTS = 100

#: Who is slow, and in which operations they had a part.
_Served: TypeAlias = tuple[SuspectFinding, npt.NDArray[np.bool_]]


def conclude_logged_run(
    file: str, joined: JoinedRun, operation: str, found: Attribution, verdict: Verdict
) -> LoggedRun:
    """Return what is said of a run, in which an operation is looked at; ``verdict`` is that of ``found``.

    Servers that a busy load generator may have made slow do not bound a store.
    """
    slow = [each for each in found.findings if isinstance(each, SlowServer | OneOfSeveral)]
    slow = [each for each in slow if each.is_certain or not found.overload]
    code = joined.operation_table.named(operation).code
    looked_at = (joined.operations.code == code) & ~np.isnan(joined.operations.latency)
    served = [(each, _find_served(joined, each)) for each in slow]
    p99 = _measure_p99(joined, looked_at, [])
    most = _BOUNDING_SHARE * p99
    p99_of_others = _measure_p99(joined, looked_at, served)
    needed = served
    # Whose requests do not raise it above that again is not needed: the one that raises it least goes first.
    while needed:
        fewer = [[each for each in needed if each is not one] for one in needed]
        known = [(_measure_p99(joined, looked_at, each), each) for each in fewer]
        left, least = min(known, key=lambda each: math.inf if math.isnan(each[0]) else each[0])
        if not left <= most:
            break
        needed, p99_of_others = least, left
    bounding = needed if p99_of_others <= most else []
    return LoggedRun(
        file=file,
        headline=verdict.title,
        facts=tuple(verdict.facts),
        slow=tuple(name_any_of(each.candidates) for each, _ in bounding),
        failing=_name_failing([each for each in found.findings if isinstance(each, ServedFailures)]),
        p99=p99,
        p99_of_others=p99_of_others if slow else math.nan,
    )


def _name_failing(found: Sequence[ServedFailures]) -> tuple[str, ...]:
    """Return the fewest servers that served enough of what failed; none where all of them did not."""
    names, left = [], _FAILING_SHARE * max((each.failures for each in found), default=0)
    for each in sorted(found, key=lambda each: -each.requests):
        if left > 0:
            names.append(each.name)
            left -= each.requests
    return () if left > 0 else tuple(names)


def _find_served(joined: JoinedRun, finding: SuspectFinding) -> npt.NDArray[np.bool_]:
    """Return in which operations those had a part of whom a finding is, or may be."""
    names = set(finding.candidates)
    served = np.zeros(len(joined.operations.code), np.bool_)
    if finding.level in ("proxy", "proxy process", "container"):
        who, place_of = {
            "proxy": (joined.proxies, joined.proxy),
            "proxy process": (joined.proxy_workers, joined.proxy_worker),
            "container": (joined.containers, joined.operations.container),
        }[finding.level]
        return np.isin(place_of, [place for place, name in enumerate(who) if name in names])
    devices = [place for place, each in enumerate(joined.devices) if str(each) in names or each.node in names]
    processes = [place for place, each in enumerate(joined.processes) if str(each) in names]
    mine = np.isin(joined.lines.device, devices) | np.isin(joined.lines.process, processes)
    served[joined.lines.operation[mine]] = True
    return served


def _measure_p99(joined: JoinedRun, looked_at: npt.NDArray[np.bool_], without: Sequence[_Served]) -> float:
    """Return the 99th percentile of some operations in which none of some servers had a part; or NaN."""
    rows = looked_at.copy()
    for _, served in without:
        rows &= ~served
    seconds = joined.operations.latency[rows]
    return float(np.quantile(seconds, 0.99)) if len(seconds) >= _LEAST_REQUESTS else math.nan
