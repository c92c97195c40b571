"""Results of operations: rows as they arrive at the master, blocks of columns for all else.

A result is data whether it succeeded or not. The master collects :data:`ResultRow` tuples, which
cost little to make; :class:`ResultBlock` holds thousands of them as numpy columns, which is what
stat files keep, what statistics count and what an export prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Failure(NamedTuple):
    """Why an operation failed, or what went wrong on its way to success.

    ``cause`` is a short label that is counted ("HTTP 503", "connect timeout", "short body",
    "lost worker"), None when the operation succeeded after retries; ``detail`` one line for
    people; ``retried`` maps the cause of each retry to how often it happened.
    """

    cause: str | None
    detail: str
    retried: dict[str, int]


#: (operation code, size-class index, worker id, container number, object number, bytes moved,
#:  first-byte seconds or None, last-byte seconds or None, completion in seconds since 1970 by the
#:  master's clock, retries, transaction id or None, Failure or None)
ResultRow = tuple[
    int,
    int,
    int,
    int,
    int,
    int,
    float | None,
    float | None,
    float,
    int,
    str | None,
    Failure | None,
]


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """Some thousands of results as columns of equal length, in order of arrival.

    Latencies are seconds, NaN where there is none; ``completed`` is seconds since 1970.
    ``worker`` indexes ``workers`` and ``container``/``name`` hold the text where a format has text.
    ``failed`` is True where ``failures`` has a cause for that row.
    """

    operation: npt.NDArray[np.uint8]
    size_class: npt.NDArray[np.uint16]
    worker: npt.NDArray[np.uint16]
    container: npt.NDArray[np.uint32]
    number: npt.NDArray[np.uint32]
    size: npt.NDArray[np.int64]
    first_byte: npt.NDArray[np.float64]
    last_byte: npt.NDArray[np.float64]
    completed: npt.NDArray[np.float64]
    retries: npt.NDArray[np.uint32]
    failed: npt.NDArray[np.bool_]
    trans_ids: list[str | None]
    failures: dict[int, Failure]
