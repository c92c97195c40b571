"""Deleting what a run created."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Iterable, Sequence

from msgspec import structs

from ssbench.errors import ClusterError, WorkerError
from ssbench.fleet.fleet import Fleet
from ssbench.run.loop import Loop
from ssbench.run.news import News
from ssbench.run.options import Side
from ssbench.run.part import Part
from ssbench.run.phases import TOO_MANY_FAILURES, CleanUp
from ssbench.run.places import Place
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


def what_deletes(places: Iterable[Place], sides: Sequence[Side], *, local_swift: bool) -> str:
    """Return what deletes the objects that a run leaves in some places, for the user."""
    if local_swift:
        return "they go with the local Swift, which is removed"
    command = " and ".join(dict.fromkeys(map(_command, places)))
    accounts = " and ".join(side.name for side in sides if not side.storage_url and not side.policy)
    return (
        _ADVICE + command + (f", with the variables of each of the accounts {accounts}" if accounts else "")
    )


def _command(place: Place) -> str:
    options = ["--container-base", place.container_base]
    if place.policy:
        options += ["-p", place.policy]
    if place.storage_url:
        options += ["-S", place.storage_url]
    return f"ssbench-master cleanup-containers {shlex.join(options)}"


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
