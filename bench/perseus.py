"""Perseus (FAST 2023) on the logs of a run, to hold ``ssbench-master attribute`` against.

It looks for drives that are slow for their throughput: latency is regressed on throughput among the peers
of a node, and a drive is named whose latency stays above the upper bound of the prediction. There it has
months of entries of 15 s from the drives themselves; here an entry is a slice of a run, its latency the mean
of the object server's own times of reads and deletes (which wait for no other server), its throughput
how many there were. Outliers are left out of the fit by their distance from the first principal component,
where Perseus also clusters (DBSCAN); of a window of 5 entries the median ratio to the bound has to exceed 1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ssbench.cluster import operation_times, own_times
from ssbench.cluster.joined_run import OBJECT, JoinedRun

#: Entries of a run, and of a window; an entry has at least so many requests.
ENTRIES, WINDOW, IN_ENTRY = 24, 5, 2
#: The upper bound is so many standard deviations above the prediction: 99.9 %.
ABOVE = 3.09
#: An entry is an outlier so many median absolute deviations from the principal component.
FAR = 3 * 1.4826


def named(joined: JoinedRun, *, by_node: bool) -> set[str]:
    """Return the devices that it names; the peers are those of the node, or of the cluster."""
    devices = [place for place, each in enumerate(joined.devices) if each.server == "object"]
    groups: dict[str, list[int]] = {}
    for place in devices:
        groups.setdefault(joined.devices[place].node if by_node else "", []).append(place)
    entries = _entries(joined)
    return {
        str(joined.devices[place])
        for group in groups.values()
        if len(group) > 1
        for place in _slow({place: entries[place] for place in group})
    }


def _entries(joined: JoinedRun) -> dict[int, np.ndarray]:
    """Return rows of (throughput, latency) of each device; NaN for slices with too few requests."""
    complete = operation_times.count_completeness(joined)
    fine = ~joined.operations.failed & (joined.operations.retries == 0)
    usable = own_times.UsableOperations(fine, fine & complete.complete & ~complete.concurrent)
    at = np.flatnonzero(own_times.is_own_time(joined, usable) & (joined.lines.of == OBJECT))
    seconds = own_times.subtract_update_times(joined)[at]
    moment = joined.lines.operation[at]
    part = np.minimum(moment * ENTRIES // max(len(joined.operations.code), 1), ENTRIES - 1)
    found = {}
    for place in range(len(joined.devices)):
        mine = joined.lines.device[at] == place
        counts = np.bincount(part[mine], minlength=ENTRIES)
        sums = np.bincount(part[mine], seconds[mine], ENTRIES)
        latency = np.where(counts >= IN_ENTRY, sums / np.maximum(counts, 1), np.nan)
        found[place] = np.column_stack((counts, latency))
    return found


def _slow(entries: dict[int, np.ndarray]) -> Iterator[int]:
    every = np.concatenate(list(entries.values()))
    every = every[~np.isnan(every[:, 1])]
    if len(every) < 2 * WINDOW:
        return
    kept = every[_near(every)]
    degree = 2 if len(np.unique(kept[:, 0])) > 2 else 0
    fitted = np.polyfit(kept[:, 0], kept[:, 1], degree)
    spread = float(np.std(kept[:, 1] - np.polyval(fitted, kept[:, 0]), ddof=degree + 1))
    for place, rows in entries.items():
        rows = rows[~np.isnan(rows[:, 1])]  # noqa: PLW2901 - those without latency are not used
        bound = np.polyval(fitted, rows[:, 0]) + ABOVE * spread
        ratio = rows[:, 1] / np.maximum(bound, 1e-9)
        if len(ratio) >= WINDOW:
            windows = np.lib.stride_tricks.sliding_window_view(ratio, WINDOW)
            if (np.median(windows, axis=1) > 1).any():
                yield place


def _near(entries: np.ndarray) -> np.ndarray:
    """Return which entries lie near the first principal component."""
    scaled = (entries - entries.mean(0)) / np.maximum(entries.std(0), 1e-12)
    _, vectors = np.linalg.eigh(np.cov(scaled.T))
    across = scaled @ vectors[:, 0]
    distance = np.abs(across - np.median(across))
    near: np.ndarray = distance <= FAR * max(float(np.median(distance)), 1e-12)
    return near
