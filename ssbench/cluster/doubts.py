"""What is wrong with the logs themselves, as sentences that name the file or the node."""

from __future__ import annotations

import numpy as np

from ssbench.cluster.joined import OBJECT, JoinedRun
from ssbench.cluster.ranks import sort_distinct
from ssbench.scenario.operation import MAX_OPERATION_CODE
from ssbench.scenario.operation_table import OPERATIONS

#: Operations that send each device one request.
_SENT_ONCE = np.isin(
    np.arange(MAX_OPERATION_CODE + 1),
    [each.code for each in OPERATIONS if each.method in ("PUT", "POST", "DELETE")],
)
#: This share of the writes on a node proves that it is several; rare cases may have another reason.
_MIN_MERGED_SHARE = 0.1


def describe_log_faults(joined: JoinedRun) -> list[str]:
    """Return what is wrong, nothing where all is as it should be."""
    return [*_describe_merged_nodes(joined), *_describe_missing_ids(joined)]


def _describe_merged_nodes(joined: JoinedRun) -> list[str]:
    """Find nodes that are several: one device cannot write the replica of an object twice.

    Device names repeat on every node, so that the lines of nodes without names, in one file, look like those
    of one node.
    """
    lines = joined.lines
    mine = np.flatnonzero(
        (lines.of == OBJECT)
        & _SENT_ONCE[joined.operations.code[lines.operation]]
        & (lines.status < 300)
        & (joined.operations.retries[lines.operation] == 0)
    )
    if not len(mine):
        return []
    devices = max(len(joined.devices), 1)
    key = np.sort(lines.operation[mine].astype(np.int64) * devices + lines.device[mine])
    twice = np.bincount(sort_distinct(key[1:][key[1:] == key[:-1]]) % devices, minlength=devices)
    every = np.bincount(sort_distinct(key) % devices, minlength=devices)
    found: dict[str, tuple[str, int]] = {}
    for place in np.flatnonzero(twice > _MIN_MERGED_SHARE * every):
        device = joined.devices[int(place)]
        found.setdefault(device.node, (device.name, int(twice[place])))
    return [
        f"{node} is several nodes: in {count:,} writes {device} has two lines. Give lines that do not name"
        " their host in a file for each node, or as NODE=FILE; until then no device of it can be judged"
        for node, (device, count) in sorted(found.items())
    ]


def _describe_missing_ids(joined: JoinedRun) -> list[str]:
    return [
        f"{file.path}: access lines without a whole transaction id (tx, 21 hexadecimal digits, -, 10 more):"
        " was it cut off or masked? Such lines cannot be joined with a request"
        for file in joined.files
        if file.without_id
    ]
