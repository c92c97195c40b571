"""Two runs joined with their logs as one: what the same servers did in both has the same place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ssbench.cluster.joined import NO_INDEX, JoinedLines, JoinedOperations, JoinedRun
from ssbench.cluster.ranks import IntegerArray

_ItemT = TypeVar("_ItemT")


def concatenate_runs(before: JoinedRun, after: JoinedRun) -> JoinedRun:
    """Put the operations of one run behind those of the other.

    Devices, processes and proxies of the same names are the same. Objects are not: those of two runs may
    share a number, so each operation has an object of its own.
    """
    devices, device_of = _merge_lists(before.devices, after.devices)
    processes, process_of = _merge_lists(before.processes, after.processes)
    partitions, partition_of = _merge_lists(before.partitions, after.partitions)
    proxies, proxy_of = _merge_lists(before.proxies, after.proxies)
    workers, worker_of = _merge_lists(before.proxy_workers, after.proxy_workers)
    first = len(before.operations.code)
    moved = {
        "operation": after.lines.operation + first,
        "device": device_of[after.lines.device],
        "process": process_of[after.lines.process],
        "partition": partition_of[after.lines.partition],
    }
    lines = {
        name: np.concatenate((getattr(before.lines, name), moved.get(name, getattr(after.lines, name))))
        for name in JoinedLines.__slots__
    }
    operations = {
        field.name: _concatenate_field(before.operations, after.operations, field.name)
        for field in fields(JoinedOperations)
    }
    operations["subject"] = np.arange(len(operations["code"]), dtype=np.uint64)
    return JoinedRun(
        operations=JoinedOperations(**operations),
        proxies=proxies,
        proxy_workers=workers,
        devices=devices,
        processes=processes,
        partitions=partitions,
        proxy=np.concatenate((before.proxy, _renumber(after.proxy, proxy_of))),
        proxy_worker=np.concatenate((before.proxy_worker, _renumber(after.proxy_worker, worker_of))),
        proxy_seconds=_concatenate_field(before, after, "proxy_seconds"),
        policy=_concatenate_field(before, after, "policy"),
        lines=JoinedLines(**lines),
        duplicates=before.duplicates + after.duplicates,
        handoffs=_concatenate_field(before, after, "handoffs"),
        errors=before.errors + after.errors,
        other_errors=before.other_errors + after.other_errors,
        files=[*before.files, *after.files],
        without_id=before.without_id + after.without_id,
        began=before.began,
        ended=after.ended,
        results=before.results + after.results,
    )


def _concatenate_field(before: object, after: object, name: str) -> npt.NDArray[Any]:
    return np.concatenate((getattr(before, name), getattr(after, name)))


def _merge_lists(
    before: Sequence[_ItemT], after: Sequence[_ItemT]
) -> tuple[list[_ItemT], npt.NDArray[np.int64]]:
    """Return what is in either, and the places there of those after."""
    places = {thing: place for place, thing in enumerate(dict.fromkeys([*before, *after]))}
    return list(places), np.array([places[thing] for thing in after], np.int64)


def _renumber(places: IntegerArray, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    found = np.full(len(places), NO_INDEX, np.int64)
    known = places != NO_INDEX
    found[known] = numbers[places[known]]
    return found
