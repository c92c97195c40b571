"""Runs of successes joined with the lines of object servers, for tests of what is made of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ssbench.cluster.joined_run import (
    NO_INDEX,
    OBJECT,
    Device,
    JoinedLines,
    JoinedOperations,
    JoinedRun,
    Process,
    TakenResults,
)
from ssbench.cluster.rank_tests import FloatArray, IntegerArray


def successes(
    code: np.ndarray,
    size: NDArray[np.int64],
    latency: FloatArray,
    subject: IntegerArray,
    rate: float = 50.0,
    first_byte: FloatArray | None = None,
) -> JoinedOperations:
    """Successful operations, of which so many end in a second."""
    count = len(code)
    return JoinedOperations(
        code=code.astype(np.uint8),
        size=size,
        latency=latency,
        subject=subject.astype(np.uint64),
        retries=np.zeros(count, np.int64),
        failed=np.zeros(count, np.bool_),
        ended=1_795_300_893.0 + np.arange(count) / rate,
        first_byte=np.full(count, np.nan) if first_byte is None else first_byte,
        container=np.full(count, NO_INDEX),
    )


def object_lines(
    devices: list[Device],
    operation: IntegerArray,
    device: IntegerArray,
    partition: IntegerArray,
    seconds: FloatArray,
) -> JoinedLines:
    """Lines of object servers, one on each node, that a proxy asked."""
    nodes = [each.node for each in servers(devices)]
    count = len(operation)
    return JoinedLines(
        operation=operation,
        device=device,
        process=np.array([nodes.index(each.node) for each in devices])[device],
        partition=partition,
        seconds=seconds,
        status=np.full(count, 201),
        of=np.full(count, OBJECT, np.uint8),
        sender=np.full(count, NO_INDEX),
    )


def joined_run(
    operations: JoinedOperations,
    lines: JoinedLines,
    devices: list[Device],
    processes: list[Process],
    proxies: list[str],
    proxy: IntegerArray,
    proxy_seconds: FloatArray,
) -> JoinedRun:
    """Every operation has a line of its proxy, and each proxy one worker."""
    count = len(operations.code)
    return JoinedRun(
        operations=operations,
        taken=TakenResults(count, count),
        proxies=proxies,
        proxy_workers=[f"10.0.0.1 {place}" for place in range(len(proxies))],
        devices=devices,
        processes=processes,
        partitions=[(0, place) for place in range(1024)],
        proxy=proxy,
        proxy_worker=proxy,
        proxy_seconds=proxy_seconds,
        policy=np.zeros(count, np.int64),
        lines=lines,
        duplicates=0,
        handoffs=np.zeros(count, np.int64),
        errors=Counter(),
        other_errors=Counter(),
        files=[],
        without_id=0,
        began=None,
        ended=None,
    )


def servers(devices: list[Device]) -> list[Process]:
    """One object server for each node."""
    return [Process(node, "object", "1") for node in dict.fromkeys(each.node for each in devices)]
