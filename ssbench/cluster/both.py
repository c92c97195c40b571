"""Two runs joined with their logs as one: what the same servers did in both has the same place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ssbench.cluster.joined import NO_INDEX, Joined, Lines, Operations
from ssbench.cluster.ranks import Places

Thing = TypeVar("Thing")


def both(before: Joined, after: Joined) -> Joined:
    """Put the operations of one run behind those of the other.

    Devices, processes and proxies of the same names are the same. Objects are not: those of two runs may
    share a number, so each operation has an object of its own.
    """
    devices, device_of = _merged(before.devices, after.devices)
    processes, process_of = _merged(before.processes, after.processes)
    partitions, partition_of = _merged(before.partitions, after.partitions)
    proxies, proxy_of = _merged(before.proxies, after.proxies)
    workers, worker_of = _merged(before.proxy_workers, after.proxy_workers)
    first = len(before.operations.code)
    moved = {
        "operation": after.lines.operation + first,
        "device": device_of[after.lines.device],
        "process": process_of[after.lines.process],
        "partition": partition_of[after.lines.partition],
    }
    lines = {
        name: np.concatenate((getattr(before.lines, name), moved.get(name, getattr(after.lines, name))))
        for name in Lines.__slots__
    }
    operations = {
        field.name: _one_after_other(before.operations, after.operations, field.name)
        for field in fields(Operations)
    }
    operations["subject"] = np.arange(len(operations["code"]), dtype=np.uint64)
    return Joined(
        operations=Operations(**operations),
        proxies=proxies,
        proxy_workers=workers,
        devices=devices,
        processes=processes,
        partitions=partitions,
        proxy=np.concatenate((before.proxy, _renumbered(after.proxy, proxy_of))),
        proxy_worker=np.concatenate((before.proxy_worker, _renumbered(after.proxy_worker, worker_of))),
        proxy_seconds=_one_after_other(before, after, "proxy_seconds"),
        policy=_one_after_other(before, after, "policy"),
        lines=Lines(**lines),
        duplicates=before.duplicates + after.duplicates,
        handoffs=_one_after_other(before, after, "handoffs"),
        errors=before.errors + after.errors,
        other_errors=before.other_errors + after.other_errors,
        files=[*before.files, *after.files],
        without_id=before.without_id + after.without_id,
        began=before.began,
        ended=after.ended,
        results=before.results + after.results,
    )


def _one_after_other(before: object, after: object, name: str) -> npt.NDArray[Any]:
    return np.concatenate((getattr(before, name), getattr(after, name)))


def _merged(before: Sequence[Thing], after: Sequence[Thing]) -> tuple[list[Thing], npt.NDArray[np.int64]]:
    """Return what is in either, and the places there of those after."""
    places = {thing: place for place, thing in enumerate(dict.fromkeys([*before, *after]))}
    return list(places), np.array([places[thing] for thing in after], np.int64)


def _renumbered(places: Places, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    found = np.full(len(places), NO_INDEX, np.int64)
    known = places != NO_INDEX
    found[known] = numbers[places[known]]
    return found
