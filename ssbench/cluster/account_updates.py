"""Which account server is slow by its own clock: container servers tell it of a run's containers.

These are requests of a run besides its results, so there is no client's time beside them; each update has one
account server, whose time it is.
"""

from __future__ import annotations

import numpy as np

from ssbench.cluster.culprits import ALPHA, MIN_DELAY_SHARE
from ssbench.cluster.joined import JoinedRun
from ssbench.cluster.ranks import (
    FloatArray,
    IntegerArray,
    Units,
    make_pairs,
    measure_deviates,
    measure_median_interval,
    measure_peer_difference,
    upper_tail,
)
from ssbench.cluster.records import LogFinding

#: What they are called among the times that are one party's.
ACCOUNT_UPDATES_PART = "account updates"


def find_slow_account_servers(joined: JoinedRun, request: float) -> list[LogFinding]:
    """Return the account servers' devices whose updates take longer than the others' do, one after another.

    As for all other times this is said at p < 0.01, adjusted for the devices, and from 5 % of a ``request``
    (seconds).
    """
    device, seconds = joined.account_updates
    found: list[LogFinding] = []
    kept = np.ones(len(device), np.bool_)
    while kept.any():
        finding, place = _find_slowest_device(joined, device[kept], seconds[kept], request)
        if finding is None:
            break
        found.append(finding)
        kept &= device != place
    return found


def _find_slowest_device(
    joined: JoinedRun, device: IntegerArray, seconds: FloatArray, request: float
) -> tuple[LogFinding | None, int]:
    count = len(device)
    units = Units(seconds, np.zeros(count, np.int64), np.zeros(1, np.int64))
    tested = measure_deviates(units, make_pairs(np.arange(count), device, len(joined.devices)), 1).z[-1]
    if np.isnan(tested).all():
        return None, 0
    place = int(np.nanargmax(tested))
    probability = upper_tail(float(tested[place])) * int((~np.isnan(tested)).sum())
    mine = device == place
    measured = measure_peer_difference(units, mine)
    if not probability < ALPHA or not max(measured.median, measured.mean) >= MIN_DELAY_SHARE * request:
        return None, 0
    finding = LogFinding(
        "slow",
        "device",
        str(joined.devices[place]),
        requests=int(mine.sum()),
        share=float(mine.mean()),
        part=ACCOUNT_UPDATES_PART,
        difference=measured,
        interval=measure_median_interval(units, mine),
        request=request,
        probability=min(probability, 1.0),
    )
    return finding, place
