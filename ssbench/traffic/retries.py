"""Requests that were made again because they had failed a moment before.

They are the work of clients, not what their users want: a run of ssbench makes retries of its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ssbench.logs.column_files import NamelessFile
from ssbench.logs.logged_requests import REQUEST_KINDS, RequestColumns
from ssbench.traffic import object_uses
from ssbench.traffic.object_uses import Marks, Numbers

#: A retry begins at most so many seconds after the failure.
MAX_RETRY_SECONDS: Final = 5.0
#: Clients try again after these, and after all from 500 on. After 499 they rarely do: who jumps to another
#: place of a video ends a request and makes the next.
_TRIED_AGAIN, FIRST_SERVER_ERROR = (408, 429, 498), 500
#: Logs have durations in whole milliseconds at worst, so that a retry seems to begin before the failure ends.
_ROUNDING = 0.001
_READ, _RANGE = REQUEST_KINDS.index("read"), REQUEST_KINDS.index("range")


def find_retries(requests: RequestColumns) -> Numbers:
    """Return the rows of retries, which are in a file.

    The request before it with the same operation on the same object (or container, or account) has failed,
    and ended at most :data:`MAX_RETRY_SECONDS` before it began. Who asks is not known: of an object that many
    ask for while the store fails, requests of others are among them.

    Only what failed a moment ago is in memory.
    """
    found = NamelessFile()
    keys, ends = np.zeros(0, np.int64), np.zeros(0)
    for rows in object_uses.split_into_blocks(len(requests)):
        part = requests.take(rows)
        own, have_failed = _make_keys(part), _have_failed(part)
        some = np.flatnonzero(np.isin(own, np.concatenate([keys, own[have_failed]])))
        ended = np.where(have_failed, part.began + np.nan_to_num(part.seconds), -np.inf)
        began = np.concatenate([np.full(len(keys), np.nan), part.began[some]])
        number = len(keys)
        keys, ends = np.concatenate([keys, own[some]]), np.concatenate([ends, ended[some]])
        if not len(keys):
            continue
        order = np.argsort(keys, kind="stable")
        goes_on = np.diff(keys[order]) == 0
        since = began[order[1:]] - ends[order[:-1]]
        is_retry = goes_on & (since >= -_ROUNDING) & (since <= MAX_RETRY_SECONDS)
        found.append(rows.start + some[np.sort(order[1:][is_retry]) - number])
        last = order[np.append(~goes_on, True)]
        last = last[ends[last] >= part.began[-1] - MAX_RETRY_SECONDS]
        keys, ends = keys[last], ends[last]
    return found.map(np.dtype(np.int64))


def _have_failed(requests: RequestColumns) -> Marks:
    """Return which requests failed in a way after which clients try again."""
    return (requests.status >= FIRST_SERVER_ERROR) | np.isin(requests.status, _TRIED_AGAIN)


def _make_keys(requests: RequestColumns) -> Numbers:
    """Return numbers that are alike for the same operation on the same object.

    Of a request for a range that failed nothing says that it was one.
    """
    kinds = np.where(requests.kind == _RANGE, _READ, requests.kind).astype(np.int64)
    containers = requests.container.astype(np.int64) << 32 | requests.account
    return np.where(requests.item != 0, requests.item, containers) * len(REQUEST_KINDS) + kinds
