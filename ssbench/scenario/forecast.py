"""What a scenario would do, in numbers: operations by kind, bytes, containers, and a guess at the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from ssbench.measures import Count, Seconds, Share
from ssbench.names import container_name
from ssbench.operation import Settings
from ssbench.operations import OPERATIONS
from ssbench.record import Record
from ssbench.scenario.model import Scenario
from ssbench.scenario.stock import RunsOut, running_out

#: What the guess at the time takes for granted: seconds a request, and bytes a second in all.
SECONDS_A_REQUEST = 0.02
BYTES_A_SECOND = 100e6


class Forecast(Record, frozen=True, kw_only=True):
    """What a scenario would do.

    ``uploads`` objects with ``upload_bytes`` in all are uploaded first, where they are not there yet.
    ``mix`` is the share of each operation. An operation sends and receives so many bytes on average. The
    seconds are a guess: of the uploads, and of the operations. ``runs_out`` has the size classes whose
    objects run out before the end. Where there are groups of users, ``groups`` has what each would do, by its
    name: the mix of all together depends on the store, and so do the bytes of an operation, which are null.
    """

    first_container: str
    last_container: str
    uploads: Count
    upload_bytes: float
    mix: dict[str, Share]
    sent_bytes: float | None
    received_bytes: float | None
    upload_seconds: Seconds
    operation_seconds: Seconds
    runs_out: tuple[RunsOut, ...]
    groups: dict[str, Forecast] = msgspec.field(default_factory=dict)


def forecast(scenario: Scenario) -> Forecast:
    """Return what a scenario would do."""
    if scenario.groups:
        return _of_groups(scenario)
    initial = sum(each.initial_files for each in scenario.size_classes)
    uploaded = sum(each.initial_files * each.mean_size for each in scenario.size_classes)
    sent, received = _moved(scenario)
    first, last = (
        container_name(scenario.container_base, number, scenario.policy)
        for number in (0, scenario.container_count - 1)
    )
    return Forecast(
        first_container=first,
        last_container=last,
        uploads=initial,
        upload_bytes=uploaded,
        mix=_shares(scenario),
        sent_bytes=sent,
        received_bytes=received,
        upload_seconds=_guess(initial, uploaded, scenario.user_count),
        operation_seconds=_operation_seconds(scenario, sent + received),
        runs_out=tuple(running_out(scenario)),
    )


def _of_groups(scenario: Scenario) -> Forecast:
    names = [group.name for group in scenario.groups]
    found = dict(zip(names, map(forecast, scenario.parts), strict=True))
    first = found[names[0]]
    return Forecast(
        first_container=first.first_container,
        last_container=found[names[-1]].last_container,
        uploads=sum(each.uploads for each in found.values()),
        upload_bytes=sum(each.upload_bytes for each in found.values()),
        mix={},
        sent_bytes=None,
        received_bytes=None,
        upload_seconds=sum(each.upload_seconds for each in found.values()),
        operation_seconds=max(each.operation_seconds for each in found.values()),
        runs_out=tuple(out for each in found.values() for out in each.runs_out),
        groups=found,
    )


def _operation_seconds(scenario: Scenario, moved: float) -> float:
    count = scenario.operation_count
    if not count:
        return scenario.run_seconds or 0.0
    seconds = max(_guess(count, count * moved, scenario.user_count), count / (scenario.rate or count))
    return seconds + count / scenario.user_count * scenario.think_time


def _kinds(scenario: Scenario) -> Iterator[tuple[str, float, float]]:
    """Yield an operation, its share in all operations and its mean size, for each size class."""
    everything = sum(each.share for each in scenario.size_classes)
    for each in scenario.size_classes:
        total = sum(each.weights.values())
        for name, weight in each.weights.items():
            yield name, each.share / everything * weight / total, each.mean_size


def _shares(scenario: Scenario) -> dict[str, float]:
    shares: dict[str, float] = defaultdict(float)
    for name, share, _ in _kinds(scenario):
        if share:
            shares[name] += share
    return {operation.name: shares[operation.name] for operation in OPERATIONS if operation.name in shares}


def _moved(scenario: Scenario) -> tuple[float, float]:
    """Return the mean bytes that an operation sends and receives."""
    sent = received = 0.0
    settings = {each.name: each for each in scenario.operations}
    for name, share, size in _kinds(scenario):
        operation = OPERATIONS.named(name)
        sent += share * size if operation.sends_body else 0
        received += share * operation.mean_received(size, settings.get(name, Settings(name)))
    return sent, received


def _guess(requests: int, size: float, users: int) -> float:
    return max(requests * SECONDS_A_REQUEST / min(users, requests or 1), size / BYTES_A_SECOND)
