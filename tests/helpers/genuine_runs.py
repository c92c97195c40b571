"""Runs against a real Swift, joined with its logs: columns from ``tests/data/swiftlogs/joined.csv.gz``."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
from joined_runs import joined_run, object_lines, servers, successes

from ssbench.cluster.joined_run import Device, JoinedRun
from ssbench.scenario.operations import CREATE, READ

DATA = Path(__file__).parent.parent / "data" / "swiftlogs"


def genuine(run: str) -> JoinedRun:
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
    method, proxy = (np.array([row[name] for row in rows]) for name in ("method", "proxy"))
    latency, proxy_seconds = (
        np.array([float(row[name]) for row in rows]) for name in ("latency_s", "proxy_request_time")
    )
    names, partition = list(devices), np.zeros(len(device), np.int64)
    lines = object_lines(names, np.array(operation), np.array(device), partition, np.array(seconds))
    operations = successes(
        np.where(method == "PUT", CREATE.code, READ.code),
        np.full(len(rows), 8192),
        latency,
        np.arange(len(rows)),
    )
    return joined_run(
        operations, lines, names, servers(names), ["p1", "p2"], proxy.astype(int) - 1, proxy_seconds
    )
