"""Runs against a real Swift, joined with its logs: columns from ``tests/data/swiftlogs/joined.csv.gz``."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from pathlib import Path

import numpy as np

from ssbench.attribution.joined import OBJECT, Device, Joined, Lines, Operations, Process
from ssbench.operations import CREATE, READ

DATA = Path(__file__).parent.parent / "data" / "swiftlogs"


def genuine(run: str) -> Joined:
    """Return a run by its name."""
    with gzip.open(DATA / "joined.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["run"] == run]
    devices: dict[Device, int] = {}
    operation, device, seconds = [], [], []
    for place, row in enumerate(rows):
        for backend in row["backends"].split():
            who, _, time = backend.partition("=")
            node, _, name = who.partition("/")
            operation.append(place)
            device.append(devices.setdefault(Device(node, "object", name), len(devices)))
            seconds.append(float(time))
    nodes = sorted({each.node for each in devices})
    node_of = np.array([nodes.index(each.node) for each in devices])
    count, proxy = len(rows), np.array([int(row["proxy"]) - 1 for row in rows])
    return Joined(
        operations=Operations(
            code=np.array([CREATE.code if row["method"] == "PUT" else READ.code for row in rows], np.uint8),
            size=np.full(count, 8192),
            latency=np.array([float(row["latency_s"]) for row in rows]),
            subject=np.arange(count).astype(np.uint64),
            retries=np.zeros(count, np.int64),
            failed=np.zeros(count, np.bool_),
        ),
        proxies=["p1", "p2"],
        proxy_workers=["127.0.0.1 1", "127.0.0.1 2"],
        devices=list(devices),
        processes=[Process(node, "object", "1") for node in nodes],
        partitions=[(0, 0)],
        proxy=proxy,
        proxy_worker=proxy,
        proxy_seconds=np.array([float(row["proxy_request_time"]) for row in rows]),
        policy=np.zeros(count, np.int64),
        lines=Lines(
            operation=np.array(operation),
            device=np.array(device),
            process=node_of[np.array(device)],
            partition=np.zeros(len(device), np.int64),
            seconds=np.array(seconds),
            status=np.full(len(device), 200),
            of=np.full(len(device), OBJECT, np.uint8),
        ),
        duplicates=0,
        handoffs=np.zeros(count, np.int64),
        errors=Counter(),
        other_errors=Counter(),
        files=[],
        without_id=0,
        began=None,
        ended=None,
    )
