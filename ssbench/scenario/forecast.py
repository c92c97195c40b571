"""What a scenario would do, in numbers: operations by kind, bytes, containers, and a guess at the time.

And whether the objects of a size class run out, so that operations have none to work on: each class is a
random walk, in which a create adds an object and a delete takes one. After so many operations it is below a
number of objects with twice the chance that its last step is there (the reflection principle: Feller,
volume 1, chapter 3), a little less where more are created than deleted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

import msgspec

from ssbench.base.record import Count, JsonRecord, Seconds, Share
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.names import container_name
from ssbench.scenario.operations import Effect, OperationSettings, OperationTable

#: What the guess at the time takes for granted: seconds a request, and bytes a second in all.
SECONDS_PER_REQUEST = 0.02
BYTES_PER_SECOND = 100e6

#: A walk gets as low as this many standard deviations below its mean with a chance of 5 %; less is not worth
#: a warning.
_MAX_DEVIATIONS = 1.96

#: Effects of operations after which there are more objects or fewer.
_CHANGING_EFFECTS = frozenset({Effect.ADDS, Effect.COPIES, Effect.REMOVES})

#: How many times as long as the mean of all operations uploads and deletions take, at most as a rule.
_CHANGING_FACTOR = 2.0

#: Seconds from a run to the next, at most as a rule, for new local workers, containers and the drain.
_SECONDS_BETWEEN_RUNS = 4.0


class Forecast(JsonRecord, frozen=True, kw_only=True):
    """What a scenario would do.

    With groups of users the mix of all together depends on the store, and so do the bytes of an operation.
    """

    first_container: str  # the name of its first container
    last_container: str  # the name of its last one
    uploads: Count  # objects that are uploaded first, where they are not there yet
    upload_bytes: float  # their bytes in all
    mix: dict[str, Share]  # the share of each operation; empty with groups
    sent_bytes: float | None  # what an operation sends on average; null with groups
    received_bytes: float | None  # what it receives on average; null with groups
    upload_seconds: Seconds  # a guess of what the uploads take
    operation_seconds: Seconds  # a guess of what the operations take
    runs_out: tuple[RunsOut, ...]  # size classes whose objects run out before the end
    groups: dict[str, Forecast] = msgspec.field(default_factory=dict)  # what each group would do, by its name


def forecast_scenario(scenario: Scenario) -> Forecast:
    """Return what a scenario would do."""
    if scenario.groups:
        return _forecast_groups(scenario)
    initial = sum(each.initial_files for each in scenario.size_classes)
    uploaded = sum(each.initial_files * each.mean_size for each in scenario.size_classes)
    sent, received = _mean_bytes(scenario)
    first, last = (
        container_name(scenario.container_base, number, scenario.policy)
        for number in (0, scenario.container_count - 1)
    )
    return Forecast(
        first_container=first,
        last_container=last,
        uploads=initial,
        upload_bytes=uploaded,
        mix=_operation_mix(scenario),
        sent_bytes=sent,
        received_bytes=received,
        upload_seconds=_guess_seconds(initial, uploaded, scenario.user_count),
        operation_seconds=_operation_seconds(scenario, sent + received),
        runs_out=tuple(find_running_out(scenario)),
    )


def _forecast_groups(scenario: Scenario) -> Forecast:
    names = [group.name for group in scenario.groups]
    found = dict(zip(names, map(forecast_scenario, scenario.parts), strict=True))
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
    seconds = max(_guess_seconds(count, count * moved, scenario.user_count), count / (scenario.rate or count))
    return seconds + count / scenario.user_count * scenario.think_time


def _operation_shares(scenario: Scenario) -> Iterator[tuple[str, float, float]]:
    """Yield an operation, its share in all operations and its mean size, for each size class."""
    everything = sum(each.share for each in scenario.size_classes)
    for each in scenario.size_classes:
        total = sum(each.weights.values())
        for name, weight in each.weights.items():
            yield name, each.share / everything * weight / total, each.mean_size


def _operation_mix(scenario: Scenario) -> dict[str, float]:
    shares: dict[str, float] = defaultdict(float)
    for name, share, _ in _operation_shares(scenario):
        if share:
            shares[name] += share
    return {row.name: shares[row.name] for row in scenario.operation_table if row.name in shares}


def _mean_bytes(scenario: Scenario) -> tuple[float, float]:
    """Return the mean bytes that an operation sends and receives."""
    sent = received = 0.0
    settings = {each.name: each for each in scenario.operations}
    operations = scenario.operation_table
    for name, share, size in _operation_shares(scenario):
        operation, own = operations.named(name), settings.get(name, OperationSettings(name))
        sent += share * operation.mean_sent(size, own)
        received += share * operation.mean_received(size, own, scenario.operations)
    return sent, received


def _guess_seconds(requests: int, size: float, users: int) -> float:
    return max(requests * SECONDS_PER_REQUEST / min(users, requests or 1), size / BYTES_PER_SECOND)


def guess_seconds_beside(scenario: Scenario) -> float:
    """Return a guess of the seconds that each of several runs takes beside its own time; rather too many.

    Initial objects are looked for before each run. What it created is deleted, and what it deleted is
    uploaded again: as many requests as changed objects, which take longer than most others.
    """
    seconds = scenario.run_seconds or 0.0
    looked_for = sum(each.initial_files for part in scenario.parts for each in part.size_classes)
    changing = max(
        sum(
            share
            for name, share, _ in _operation_shares(part)
            if part.operation_table.named(name).effect in _CHANGING_EFFECTS
        )
        for part in scenario.parts
    )
    return (
        _SECONDS_BETWEEN_RUNS
        + _guess_seconds(looked_for, 0.0, scenario.user_count)
        + _CHANGING_FACTOR * changing * seconds
    )


@dataclass(frozen=True, slots=True)
class RunsOut:
    """A size class whose objects run out."""

    size_class: str  # its name
    certain: bool  # for certain; else by chance
    operations: int  # after about how many operations of all classes; 0: at any time
    created: float  # how much of the operations of the class creates objects; 1 is all
    deleted: float  # how much of them deletes objects


def find_running_out(scenario: Scenario) -> Iterator[RunsOut]:
    """Yield the size classes whose objects run out before the run ends, as far as that is known."""
    everything = sum(each.share for each in scenario.size_classes)
    for each in scenario.size_classes:
        share = each.share / everything
        if share and each.initial_files and (found := _find_run_out(each, share, scenario)):
            yield found


def _find_run_out(each: SizeClass, share: float, scenario: Scenario) -> RunsOut | None:
    total = sum(each.weights.values())
    created = _sum_weights(each, Effect.ADDS, scenario.operation_table) / total
    deleted = _sum_weights(each, Effect.REMOVES, scenario.operation_table) / total
    if not deleted:
        return None
    # What is being created cannot be used yet.
    objects = max(each.initial_files - scenario.user_count * share * created, 0.0)
    drift, reach = deleted - created, _MAX_DEVIATIONS * math.sqrt(deleted + created)
    most = share * min(_count_due(scenario), scenario.operation_count or math.inf)
    if drift > 1e-9:
        certain, operations = True, objects / drift
    elif drift > -1e-9:
        certain, operations = False, (objects / reach) ** 2
    else:
        # It is lowest after so many operations, if the run has as many.
        lowest = min((reach / 2 / drift) ** 2, most)
        if reach * math.sqrt(lowest) + drift * lowest < objects:
            return None
        certain, operations = False, 0.0
    if operations > most:
        return None
    return RunsOut(each.name, certain, round(operations / share), created, deleted)


def _count_due(scenario: Scenario) -> float:
    """Return how many operations are due in all; infinite where users decide that."""
    return sum(fmean(each.rate) * each.seconds if each.rate else math.inf for each in scenario.plan)


def _sum_weights(each: SizeClass, effect: Effect, operations: OperationTable) -> float:
    return sum(weight for name, weight in each.weights.items() if operations.named(name).effect is effect)
