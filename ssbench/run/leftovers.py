"""Deleting what a run created."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Callable, Iterable, Sequence

from msgspec import structs

from ssbench.base import interruption
from ssbench.base.errors import ClusterError, WorkerError
from ssbench.document.columns import format_plural
from ssbench.run import terminal
from ssbench.run.bars import ProgressBar
from ssbench.run.bench_options import RunOptions, RunSide
from ssbench.run.group_run import ContainerSet, GroupRun, merge_container_sets
from ssbench.run.loop import MasterLoop
from ssbench.run.phases import MAX_FAILURES_IN_A_ROW, CleanUp
from ssbench.run.tokens import TokenSource
from ssbench.scenario.model import BENCHMARK_FIELDS, Scenario

_log = logging.getLogger(__name__)

#: Seconds that an interrupted run gives to deleting what it created; one that was given up gives as
#: much to deleting anything at all.
_LAST_DELETION_SECONDS = 10.0

_DELETION_ADVICE = "this deletes them, their containers and the initial objects: "

#: How often a deletion is tried again.
_DELETION_RETRIES = 2


class Leftovers:
    """The objects that the parts of a run created and that may still exist.

    ``accounts`` are the options that tell ``cleanup-containers`` where these are, where that is in several.
    ``has_begun`` returns whether the run may have made anything yet.
    """

    def __init__(
        self,
        parts: Sequence[GroupRun],
        loop: MasterLoop,
        options: RunOptions,
        *,
        local_swift: bool,
        accounts: Sequence[str] = (),
        has_begun: Callable[[], bool] = lambda: True,
    ) -> None:
        self._parts = parts
        self._loop = loop
        self._options = options
        self._local_swift = local_swift
        self._accounts = accounts
        self._has_begun = has_begun
        #: Whether the user was told which objects stay behind.
        self._said = options.noop or options.existing is not None

    def count(self) -> int:
        """Return how many there are."""
        return sum(1 for part in self._parts for _ in part.state.leftovers())

    def _advice(self) -> str:
        places = merge_container_sets(place for part in self._parts for place in part.places)
        advice = describe_deletion(
            places, self._options.sides, local_swift=self._local_swift, options=self._accounts
        )
        return f"{advice} (store {self._options.store})" if self._options.store else advice

    def say_what_stays(self) -> None:
        """Warn of objects that stay behind if a run ends before its clean-up, unless the user was told."""
        if not self._said and (count := self.count()):
            self._said = True
            self._loop.news.warn(f"{_describe(count)} still there; {self._advice()}")

    def say_what_uploads_left(self) -> None:
        """Say what deletes the initial objects of a run that ends before its benchmark."""
        if self._has_begun() and not (self._said or self._local_swift):
            self._said = True
            _log.info(
                "Containers and initial objects that were made stay for the next run; to delete them: %s",
                self._advice().removeprefix(_DELETION_ADVICE),
                extra=terminal.REMAINS,
            )

    def write_last_line(self) -> None:
        """Name the command that deletes the run's objects, if the program ends at once; waits for no lock."""
        if self._said or self._local_swift or not self._has_begun():
            return
        try:
            found = _describe(count) if (count := self.count()) else "initial objects may be"
        except RuntimeError:  # they change at this moment, in the thread that is interrupted
            found = "some objects that the run created are"
        interruption.say_last_line(f"WARNING:{found} still there; {self._advice()}")

    def say_what_is_kept(self) -> int:
        """Log what stays by the wish of the user, and what deletes it; return how many objects that are."""
        count = self.count()
        self._said = True
        _log.info(
            "Keeping the %s that the run created; %s",
            format_plural(count, "object"),
            self._advice(),
            extra=terminal.REMAINS,
        )
        return count

    def say_what_updates_left(self) -> None:
        """Warn of the old parts of objects, which a Swift keeps where these are updated over the S3 API."""
        if not self._local_swift:
            _log.warning(
                "The old parts of objects that were updated are still there, in containers that end in"
                " +segments: Swift's s3api keeps them; %s",
                self._advice(),
            )

    def say_where_sides_are(self) -> None:
        """Log what deletes the containers of two sides: they are not all where those of other runs are."""
        if self._options.sides and not self._local_swift:
            _log.info(
                "Delete the objects of both sides with: %s",
                self._advice().removeprefix(_DELETION_ADVICE),
                extra=terminal.REMAINS,
            )

    def say_what_operations_left(self, unfinished: int) -> None:
        """Warn of objects that operations made and did not delete; the run does not know their names.

        ``unfinished`` operations have no known end.
        """
        failed = sum(part.workers.left for part in self._parts)
        if failed or unfinished:
            self._loop.news.warn(
                f"Operations of several requests may have left objects behind: {failed} deletions failed, "
                f"and {unfinished} such operations did not finish; {self._advice()}"
            )

    def delete(self, *, gave_up: bool, on_begin: Callable[[], None] = lambda: None) -> bool:
        """Delete them, and say what is left; returns whether nothing is.

        A run that was interrupted before, or that ``gave_up`` because nothing succeeded, gets less time.
        Another interruption, after the call of ``on_begin``, ends it.
        """
        count = self.count()
        if not count:
            return True
        loop, fleet = self._loop, self._loop.fleet
        interrupted = loop.interrupted.is_set()
        ends_at = time.monotonic() + _LAST_DELETION_SECONDS if interrupted else float("inf")
        give_up_after = min(loop.give_up_after, _LAST_DELETION_SECONDS) if gave_up else loop.give_up_after
        loop.interrupted.clear()
        on_begin()
        requests = fleet.parameters.requests
        fewer = structs.replace(requests, retries=min(requests.retries, _DELETION_RETRIES))
        fleet.forget_jobs(requests=fewer, **BENCHMARK_FIELDS)
        _log.info(
            "Deleting the %s that the run created%s",
            format_plural(count, "object"),
            " (Ctrl-C leaves them there)" if interrupted else "",
        )

        def stop() -> bool:
            return loop.interrupted.is_set() or time.monotonic() > ends_at

        with ProgressBar("Deleted", count) as bar:
            clean_ups = [CleanUp(part.state.leftovers(), bar, stop) for part in self._parts]
            try:
                loop.run_together(
                    [
                        (clean_up, part.load.closed, part.workers)
                        for clean_up, part in zip(clean_ups, self._parts, strict=True)
                    ],
                    give_up_after,
                )
            except (WorkerError, ClusterError) as error:
                loop.news.warn(f"Clean-up ended early: {error}")
            finally:
                # Also when a second Ctrl-C ends it.
                self._say_what_is_left(count, clean_ups)
        return sum(each.succeeded for each in clean_ups) == count

    def _say_what_is_left(self, count: int, clean_ups: Sequence[CleanUp]) -> None:
        left = count - sum(each.succeeded for each in clean_ups)
        self._said = True
        if not left:
            _log.info("Deleted %s of %s", f"{count:,}", f"{count:,}")
            return
        self._loop.news.warn(
            f"{left:,} of the {format_plural(count, 'object')} that the run created "
            f"{'is' if left == 1 else 'are'} still there"
            + "".join(f" ({each.failure_text()})" for each in clean_ups if each.failed)
            + (
                f"; the clean-up gave up after {MAX_FAILURES_IN_A_ROW} failures in a row"
                if any(each.gave_up for each in clean_ups)
                else ""
            )
            + f"; {self._advice()}"
        )


def _describe(count: int) -> str:
    return f"{format_plural(count, 'object')} that the run created {'is' if count == 1 else 'are'}"


def describe_deletion(
    places: Iterable[ContainerSet],
    sides: Sequence[RunSide],
    *,
    local_swift: bool,
    options: Sequence[str] = (),
) -> str:
    """Return what deletes the objects that a run leaves in some places, for the user.

    ``options`` tell the clean-up in which accounts that is.
    """
    if local_swift:
        return "they are removed with the local Swift"
    command = "; ".join(dict.fromkeys(_deletion_command(place, options) for place in places))
    accounts = " and ".join(side.name for side in sides if side.has_account and not side.api)
    return (
        _DELETION_ADVICE
        + command
        + (f", with the variables of each of the accounts {accounts}" if accounts else "")
    )


def _deletion_command(place: ContainerSet, more: Sequence[str]) -> str:
    options = [*more, "--container-base", place.container_base]
    if place.policy:
        options += ["-p", place.policy]
    if place.storage_url:
        options += ["-S", place.storage_url]
    return f"ssbench-master cleanup-containers {shlex.join(options)}"


def accounts_to_clean(scenario: Scenario, tokens: TokenSource | None) -> list[str]:
    """Return the options by which the clean-up finds several accounts."""
    if scenario.accounts == 1 or tokens is None:
        return []
    if tokens.shared:
        return [f"--accounts={scenario.accounts}", f"--account-base={scenario.account_base}"]
    return ["--credentials", "FILE"]
