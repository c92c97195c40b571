"""Deleting what a run created."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Sequence

from msgspec import structs

from ssbench.errors import ClusterError, WorkerError
from ssbench.fleet.fleet import Fleet
from ssbench.run.loop import Loop
from ssbench.run.news import News
from ssbench.run.options import Side
from ssbench.run.part import Part
from ssbench.run.phases import TOO_MANY_FAILURES, CleanUp
from ssbench.scenario.model import Scenario
from ssbench.screen.bars import Bar

_log = logging.getLogger(__name__)

#: Seconds that an interrupted run gives to deleting what it created; one that was given up gives as
#: much to deleting anything at all.
_LAST_SECONDS = 10.0

_ADVICE = "this deletes them, their containers and the initial objects: "

#: How often a deletion is tried again.
_RETRIES = 2


def delete_leftovers(
    parts: Sequence[Part], fleet: Fleet, loop: Loop, news: News, *, gave_up: bool, advice: str
) -> bool:
    """Delete what the parts of a run created, and say what is left; returns whether nothing is.

    A run that was interrupted before, or that ``gave_up`` because nothing succeeded, gets less time. Another
    interruption ends it. ``advice`` says how the rest is deleted; see :func:`what_deletes`.
    """
    count = count_leftovers(parts)
    if not count:
        return True
    interrupted = loop.interrupted.is_set()
    ends_at = time.monotonic() + _LAST_SECONDS if interrupted else float("inf")
    give_up_after = min(loop.give_up_after, _LAST_SECONDS) if gave_up else loop.give_up_after
    loop.interrupted.clear()
    requests = fleet.parameters.requests
    fewer = structs.replace(requests, retries=min(requests.retries, _RETRIES))
    fleet.forget_jobs(requests=fewer, think_time=0.0)
    _log.info(
        "Deleting the %d objects that the run created%s",
        count,
        " (Ctrl-C leaves them there)" if interrupted else "",
    )
    with Bar("Deleted", count) as bar:
        clean_ups = [
            CleanUp(
                part.state.leftovers(), bar, lambda: loop.interrupted.is_set() or time.monotonic() > ends_at
            )
            for part in parts
        ]
        try:
            loop.run_together(
                [
                    (clean_up, part.load.closed, part.crew)
                    for clean_up, part in zip(clean_ups, parts, strict=True)
                ],
                give_up_after,
            )
        except (WorkerError, ClusterError) as error:
            news.warn(f"Clean-up ended early: {error}")
        finally:
            # Also when a second Ctrl-C ends it.
            _say_what_is_left(count, clean_ups, advice, news)
    return sum(each.succeeded for each in clean_ups) == count


def count_leftovers(parts: Sequence[Part]) -> int:
    """Return how many objects the parts of a run created that may still exist."""
    return sum(1 for part in parts for _ in part.state.leftovers())


def what_deletes(scenario: Scenario, sides: Sequence[Side], *, local_swift: bool) -> str:
    """Return what deletes the objects that a run leaves, for the user."""
    if local_swift:
        return "they go with the local Swift, which is removed"
    command = " and ".join(dict.fromkeys(map(_command, scenario.parts)))
    if any(side.policy for side in sides):
        return _ADVICE + command
    urls = [f"{command} -S {shlex.quote(side.storage_url)}" for side in sides if side.storage_url]
    if urls:
        return _ADVICE + " and ".join(urls)
    names = " and ".join(side.name for side in sides)
    return _ADVICE + command + (f", with the variables of each of the accounts {names}" if names else "")


def _command(part: Scenario) -> str:
    command = f"ssbench-master cleanup-containers --container-base {shlex.quote(part.container_base)}"
    return command + (f" -p {shlex.quote(part.policy)}" if part.policy else "")


def _say_what_is_left(count: int, clean_ups: Sequence[CleanUp], advice: str, news: News) -> None:
    left = count - sum(each.succeeded for each in clean_ups)
    if not left:
        _log.info("Deleted %d of %d", count, count)
        return
    news.warn(
        f"{left} of the {count} objects that the run created are still there"
        + "".join(f" ({each.failure_text()})" for each in clean_ups if each.failed)
        + (
            f"; the clean-up gave up after {TOO_MANY_FAILURES} failures in a row"
            if any(each.gave_up for each in clean_ups)
            else ""
        )
        + f"; {advice}"
    )
