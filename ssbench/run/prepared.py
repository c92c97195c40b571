"""Initial objects that are prepared once for many runs: what is there of them, and whether that is right.

Their sizes follow from the scenario and not from the seed of a run
(:class:`~ssbench.scenario.draws.Workload`), so that all runs know them. What is there already is found by
listing containers, 10,000 objects a request; only that is looked at one by one, and the others are uploaded
without a look.
"""

from __future__ import annotations

import logging
import random
import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from ssbench.base.errors import ClusterError
from ssbench.fleet.worker_state import Task
from ssbench.run.bars import ProgressBar
from ssbench.run.loop import MasterLoop
from ssbench.run.options import RunOptions
from ssbench.run.part import GroupRun
from ssbench.run.phases import ObjectCheck
from ssbench.run.tokens import TokenSource
from ssbench.scenario.model import Scenario
from ssbench.scenario.names import split_container_number
from ssbench.scenario.object_names import match_object_name
from ssbench.scenario.operation_table import CHECK, CREATE, UPLOAD_IF_MISSING
from ssbench.store.stores import STORE

_log = logging.getLogger(__name__)

#: How many of the prepared objects of a run are looked at before it, drawn at random.
CHECKED_OBJECTS = 1000

#: Rows of listings between two looks at whether the run was interrupted.
_ROWS_BETWEEN_LOOKS = 1000

_MISSING_SIZE = -1


def make_upload_scenario(scenario: Scenario) -> Scenario:
    """Return a scenario as its initial objects are uploaded by themselves, many of them by creates.

    What it says of the operations of a run (lives of objects, settings, new connections) is not for these.
    """
    groups = tuple(replace(group, connections=None) for group in scenario.groups)
    return replace(
        scenario, delete_after=None, delete_after_most=None, operations=(), connections=None, groups=groups
    )


class FoundObjects:
    """The sizes of the initial objects of a part that are in its containers, from their listings."""

    def __init__(self, part: GroupRun) -> None:
        self._workload = part.workload
        self._template = part.scenario.object_names
        self._classes = {name: index for index, name in enumerate(part.names)}
        classes = part.scenario.size_classes
        self._sizes = [array("q", [_MISSING_SIZE]) * (each.initial_files + 1) for each in classes]
        self._places = [part.workload.initial_containers(index) for index in range(len(classes))]
        #: How many are there with another size than they should have; known when all tasks were made.
        self.replaced = 0

    def add(self, container: int, name: str, size: int) -> None:
        """Note an object, which may be any."""
        stem, number = match_object_name(self._template, name)
        index = self._classes.get(stem)
        if index is None or not 0 < number < len(self._sizes[index]):
            return
        if self._places[index][number - 1] == container:
            self._sizes[index][number] = size

    def tasks(self) -> Iterator[Task]:
        """Yield what uploads the objects that are not there, and looks whose the others are."""
        for index, container, number, size in self._workload.initial_objects():
            found = self._sizes[index][number]
            self.replaced += found not in {_MISSING_SIZE, size}
            code = UPLOAD_IF_MISSING.code if found == size else CREATE.code
            yield code, index, container, number, size


def find_prepared_objects(
    part: GroupRun, tokens: TokenSource, options: RunOptions, loop: MasterLoop
) -> FoundObjects:
    """List the containers of a part, until the run is interrupted. Raises ClusterError."""
    found, requests = FoundObjects(part), options.requests
    containers = part.places[0].containers
    with ProgressBar("Listing containers", part.scenario.container_numbers) as bar:
        for number in range(part.scenario.container_numbers):
            account, own = split_container_number(number, part.scenario.accounts)
            place = part.places[account]
            rows = STORE.objects(
                place.session(tokens.sessions),
                containers[own],
                timeouts=(requests.connect_timeout, requests.network_timeout),
                renew=place.renewing(tokens),
                expect=lambda _: None,
            )
            loop.fleet.look_after_descriptors(time.monotonic())
            for row, (name, size) in enumerate(rows):
                if not row % _ROWS_BETWEEN_LOOKS and loop.interrupted.is_set():
                    return found
                found.add(number, name, size)
            bar.advance()
    return found


def check_prepared_objects(parts: Sequence[GroupRun], loop: MasterLoop) -> int:
    """Let all initial objects be there; returns how many were looked at.

    Raises ClusterError where one of these is not as prepared, and what :meth:`MasterLoop.run` raises.
    """
    counts = [sum(each.initial_files for each in part.scenario.size_classes) for part in parts]
    total = sum(counts)
    chosen = sorted(random.sample(range(total), min(total, CHECKED_OBJECTS)))
    _log.info("Looking at %d of the %s prepared objects", len(chosen), f"{total:,}")
    looked = 0
    for part, begins, count in zip(parts, accumulate([0, *counts]), counts, strict=False):
        own = {place - begins for place in chosen if begins <= place < begins + count}
        tasks = []
        for place, each in enumerate(part.workload.initial_objects()):
            index, _, number, size = each
            part.state.add_initial(index, number, size)
            if place in own:
                tasks.append((CHECK.code, *each))
        with ProgressBar("Prepared objects", len(tasks)) as bar:
            phase = ObjectCheck(iter(tasks), bar, loop.interrupted.is_set)
            loop.run(phase, pace=part.load.closed, crew=part.crew)
        looked += len(tasks)
        if phase.failed and not loop.interrupted.is_set():
            raise ClusterError(
                f"--prepared: {phase.failed} of {len(tasks)} initial objects in a sample are not there as"
                f" prepared: {phase.failure_text()} (ssbench-master prepare uploads them)"
            )
    return looked
