"""Figures of a run for a statsd server, with names after Swift's convention, over UDP.

Swift's proxies send ``object.GET.200.timing`` and so on; here ``ssbench.`` stands before that, so that what
the client met can be laid over what the proxies say. Counters are summed up for half a second. Of timings,
so many are sent that the server learns the distribution; ``@0.1`` says that every tenth was.
"""

from __future__ import annotations

import logging
import math
import re
import socket
from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ssbench.base.errors import UsageError
from ssbench.monitoring.run_metrics import METRICS, BatchingSink, MetricSums, RunMonitor, group_by_fields
from ssbench.results.block import ResultBlock, leave_out_delayed
from ssbench.results.run_description import RunSummary
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import OperationTable

_log = logging.getLogger(__name__)

#: Timings of one name that are sent of half a second, at most.
_MAX_TIMINGS = 200

#: Bytes of a datagram: as many as go through any network in one piece.
_MAX_DATAGRAM_BYTES = 1400

_NOT_IN_NAMES_PATTERN = re.compile(r"[^A-Za-z0-9_-]+")


class StatsdSender(BatchingSink):
    """A sink that sends datagrams and never waits; a context manager, which closes the socket.

    Raises UsageError where the host has no address. What cannot be sent is dropped, and reported at the end.
    """

    def __init__(self, scenario: Scenario, source: RunMonitor, host: str, port: int) -> None:
        super().__init__(scenario, source)
        try:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        except OSError as error:
            raise UsageError(f"--metrics statsd: {host}: {error.strerror}") from None
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._address = address
        self._dropped = 0
        self._measured = MetricSums(scenario.user_count)

    def __enter__(self) -> StatsdSender:
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()

    def begun(self) -> None:
        """Count the beginning of the benchmark."""
        self._send(["ssbench.run.start:1|c"])

    def ended(self, _summary: RunSummary) -> None:
        """Count the end of the benchmark."""
        self._send(["ssbench.run.end:1|c"])
        if self._dropped:
            _log.warning("statsd: %s lines could not be sent", f"{self._dropped:,}")

    def take(self, block: ResultBlock | None) -> None:
        """Send the results of half a second."""
        lines = [f"{name}:{value:.12g}|g" for name, value in self._gauges()]
        if block is not None:
            lines += _format_requests(block, self.operations)
            lines += self._errors(block)
        self._send(lines)

    def _gauges(self) -> Iterator[tuple[str, float]]:
        """Yield what is measured; of the workers the greatest values."""
        self.measure(self._measured)
        for metric in METRICS:
            samples = metric.samples(self._measured) if metric.statsd else ()
            known = [
                value for _, value in samples if isinstance(value, float | int) and not math.isnan(value)
            ]
            if known:
                yield f"ssbench.{metric.statsd}", max(known)

    def _errors(self, block: ResultBlock) -> Iterator[str]:
        causes = Counter(
            self.cause(failure.cause) for failure in block.failures.values() if failure.cause is not None
        )
        for cause, times in causes.items():
            yield f"ssbench.errors.{_NOT_IN_NAMES_PATTERN.sub('_', cause)[:60]}:{times}|c"

    def _send(self, lines: list[str]) -> None:
        for datagram, count in _split_into_datagrams(lines):
            try:
                self._socket.sendto(datagram, self._address)
            except OSError:  # no process listens there, or the queue of the socket is full
                self._dropped += count


def _format_requests(block: ResultBlock, operations: OperationTable) -> Iterator[str]:
    """Yield the lines of Swift's convention for the requests of operations."""
    failed = block.failed
    first_byte = leave_out_delayed(block, block.first_byte)
    whole = leave_out_delayed(block, block.completed - block.started)
    for (code, status), rows in group_by_fields(block, "operation", "status"):
        operation = operations.get(code)
        if operation is None:
            continue
        name = f"ssbench.object.{operation.method}.{max(status, 0)}"
        succeeded = rows[~failed[rows]]
        yield from _format_timings(f"{name}.timing", whole[rows])
        yield from _format_timings(f"{name}.first-byte.timing", first_byte[succeeded])
        moved = int(np.maximum(block.size[succeeded], 0).sum())
        if moved:
            yield f"{name}.xfer:{moved}|c"


def _format_timings(name: str, seconds: npt.NDArray[np.float64]) -> Iterator[str]:
    seconds = seconds[~np.isnan(seconds)]
    step = -(-len(seconds) // _MAX_TIMINGS) or 1
    sampled = f"|@{1 / step:.6g}" if step > 1 else ""
    for value in (1000 * seconds[::step]).tolist():
        yield f"{name}:{value:.3f}|ms{sampled}"


def _split_into_datagrams(lines: list[str]) -> Iterator[tuple[bytes, int]]:
    """Yield datagrams of whole lines, and how many lines each has."""
    gathered: list[bytes] = []
    size = 0
    for line in lines:
        data = line.encode("ascii", "replace")
        if gathered and size + len(data) + 1 > _MAX_DATAGRAM_BYTES:
            yield b"\n".join(gathered), len(gathered)
            gathered, size = [], 0
        gathered.append(data)
        size += len(data) + 1
    if gathered:
        yield b"\n".join(gathered), len(gathered)
