"""Which objects belong to which run when several runs use the same containers.

A run puts a mark into its first container and then looks for marks of other runs. If another run is under way
whose objects may have the same names, the names of this one's objects get a tag, those of its initial objects
too. Of two runs that begin at the same moment both may do so. Runs that only read the same initial objects
share them. After the benchmark a run looks again, so that the first of several runs can also report the
others.

All requests are made one after another on a :class:`RequestThread`, which also renews the mark. So a Swift
that does not answer delays neither the run nor Ctrl-C.
"""

from __future__ import annotations

import logging
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TypeVar

from msgspec.structs import replace

from ssbench.base import interruption
from ssbench.base.errors import SsbenchError
from ssbench.base.interruption import call_concurrently
from ssbench.document.columns import format_plural
from ssbench.run.bench_options import RunOptions
from ssbench.run.group_run import ContainerSet
from ssbench.run.loop import SAY_SECONDS, MasterLoop
from ssbench.run.run_marks import MARKS_UNDER_WAY, RunMark, RunMarks, describe_this_process, is_denied
from ssbench.run.tokens import TokenSource
from ssbench.scenario.model import Scenario, make_owner
from ssbench.scenario.names import format_object_name, tagged_object_stem
from ssbench.scenario.operations import Effect
from ssbench.store.contract import TRANSIENT_STATUSES, AttemptError, StoreAccess

_log = logging.getLogger(__name__)

#: Seconds between two looks at whether to wait on.
_REQUEST_TICK_SECONDS = 0.1

_CallResult = TypeVar("_CallResult")


class NoAnswerError(Exception):
    """There was no answer to a request, or it failed; the text says why."""


class RequestThread:
    """Makes calls on a thread of this ``name`` until :meth:`end`; they look for other runs.

    ``meanwhile`` is called on it where nothing was asked for ``every`` seconds.
    """

    def __init__(self, loop: MasterLoop, name: str, meanwhile: Callable[[], None], every: float) -> None:
        self._loop = loop
        self._name = name
        self._meanwhile = meanwhile
        self._every = every
        self._questions: queue.SimpleQueue[Callable[[], bool]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def ask(self, call: Callable[[], _CallResult], patience: float, *, heed: bool = True) -> _CallResult:
        """Return what a call returns on the thread of the requests; raises NoAnswerError.

        ``heed``: an interruption of the run ends it.
        """
        answers: queue.SimpleQueue[tuple[_CallResult, None] | tuple[None, Exception]] = queue.SimpleQueue()

        def answer() -> bool:
            try:
                answers.put((call(), None))
            except Exception as error:  # noqa: BLE001 - the thread that asks reports it
                answers.put((None, error))
            return True

        self._questions.put(answer)
        began = said_at = time.monotonic()
        while True:
            try:
                result = answers.get(timeout=_REQUEST_TICK_SECONDS)
            except queue.Empty:
                interruption.raise_if_interrupted()
                now = time.monotonic()
                if heed and self._loop.interrupted.is_set():
                    raise NoAnswerError("the run was interrupted") from None
                if now - began > patience:
                    raise NoAnswerError(f"no answer within {patience:g} s") from None
                if now - said_at >= SAY_SECONDS:
                    said_at = now
                    _log.info("Waiting for Swift: looking for other runs for %.0f s", now - began)
                continue
            if result[1] is None:
                return result[0]
            if isinstance(result[1], AttemptError):
                raise NoAnswerError(str(result[1]))
            # The run does not depend on what is asked here.
            _log.debug("%s", self._name, exc_info=result[1])
            raise NoAnswerError(describe_unexpected_error(result[1]))

    def end(self) -> None:
        """End the thread once it has made the calls before."""
        self._questions.put(lambda: False)

    def _serve(self) -> None:
        more = True
        while more:
            try:
                question = self._questions.get(timeout=self._every)
            except queue.Empty:
                self._meanwhile()
            else:
                more = question()


def describe_unexpected_error(error: Exception) -> str:
    """Return what is said of an error that no request should end in."""
    if isinstance(error, SsbenchError):
        return str(error)
    return f"{type(error).__name__}: {error} (please report this)"


# -- The mark of a run, and those of others --------------------------------------------------------


#: Seconds between two renewals of a mark, of which several may fail until it expires.
MARK_RENEWAL_SECONDS = 15.0

#: Seconds to wait for the marks before the run continues without them: at its beginning, and at its end.
_FIRST_MARK_SECONDS = 30.0
_LAST_MARK_SECONDS = 5.0

#: Requests for marks that failed are made again within so many seconds: a run does without, and says so.
_RETRY_SECONDS = 1.0

#: In how many accounts marks are written or looked for at once.
_MARKS_AT_ONCE = 10

#: Other runs that are named, at most.
_MAX_NAMED_RUNS = 5

_Answer = TypeVar("_Answer")


class Ownership:
    """The mark of one run: whom it meets is among the news of its ``loop``.

    Its mark is in the first container of each of the ``places`` of the run. ``run_id`` is the number of the
    run, ``trans_id_extra`` what its transaction ids end in.
    """

    def __init__(
        self,
        scenario: Scenario,
        places: Sequence[ContainerSet],
        options: RunOptions,
        tokens: TokenSource,
        loop: MasterLoop,
        *,
        run_id: int,
        trans_id_extra: str | None,
    ) -> None:
        self._scenario = scenario
        self._places = places
        self._options = options
        self._tokens = tokens
        self._loop = loop
        self._extra = trans_id_extra
        self._warn = loop.news.warn
        #: What it shares with others: a run that verifies replaces the initial objects that it finds.
        self._reads = "" if options.verify else digest_of_shared_reads(scenario)
        self._mark = RunMark(
            run=f"{run_id & 0xFFFFFFFF:08x}",
            host=socket.gethostname()[:255],
            pid=os.getpid(),
            process=describe_this_process(),
            scenario=scenario.name[:100],
            tag=options.part.tag if options.part is not None else "",
        )
        self._part = options.part
        MARKS_UNDER_WAY.add(self._mark.run)
        #: Whether a mark was written; when the last one was.
        self._marked = False
        self._written_at = -float("inf")
        self._failed_to_renew = False
        #: Whether marks of others can be found: not in a store that cannot list containers.
        self._can_look = True
        #: Runs that the user knows of.
        self._known: set[str] = set()
        self._requests = RequestThread(loop, "marks", self._renew, MARK_RENEWAL_SECONDS)

    @property
    def tag(self) -> str:
        """What keeps the names of this run apart; empty where they are the usual ones."""
        return self._mark.tag

    def begin(self) -> str:
        """Put the mark, look for others, and return what keeps the names of this run apart: see :attr:`tag`.

        Warns of runs that are under way. Names can be chosen where no object was uploaded yet.
        """
        try:
            writable, others = self._requests.ask(self._put_and_look, _FIRST_MARK_SECONDS)
        except NoAnswerError as error:
            if not self._loop.interrupted.is_set():
                self._warn(f"Whether other runs use the same containers is not known: {error}")
            return self.tag
        running = self._say_what_was_kept(others)
        clashing = [other for other in running if self._clashes(other)]
        if not clashing:
            self._name(running, self._beside)
        elif not writable:
            self._name(
                clashing,
                lambda other: (
                    f"{other.sentence_start} is under way in the same containers, and this account cannot"
                    " write: operations on objects that it deletes or replaces fail"
                ),
            )
        else:
            self._mark = replace(self._mark, tag=self._mark.run)
            first = tagged_object_stem(self._scenario.size_classes[0].name, self.tag)
            example = format_object_name(self._scenario.object_names, first, 1)
            self._name(
                clashing,
                lambda other: (
                    f"The objects of this run have other names ({example} and so on) because {other} is"
                    " under way in the same containers; its load is in these figures"
                ),
            )
            self._tell_others()
        return self.tag

    def ready(self) -> None:
        """Note that all initial objects are there: from now on others may read them too."""
        if self._reads and not self.tag:
            self._mark = replace(self._mark, reads=self._reads)
            self._tell_others()

    def look(self) -> None:
        """Look for runs that began since; call it after the benchmark, before the report."""
        if not (self._marked and self._can_look):
            return
        try:
            others = self._requests.ask(self._others, _LAST_MARK_SECONDS, heed=False)
        except NoAnswerError as error:
            _log.info("Whether other runs began in the same containers cannot be seen: %s", error)
            return
        self._name(others, self._beside)

    def end(self, kept: int = 0, *, at_once: bool = False) -> None:
        """Take the mark away; the last thing to be called. ``at_once``: wait a second for that at most.

        It stays, as that of a run that has ended, for runs that are still under way, and for as long as the
        ``kept`` objects do.
        """
        MARKS_UNDER_WAY.discard(self._mark.run)
        if self._marked:
            try:
                self._requests.ask(
                    lambda: self._retire(kept), 1.0 if at_once else _LAST_MARK_SECONDS, heed=False
                )
            except NoAnswerError as error:
                _log.info("The mark of this run stays until it expires: %s", error)
        self._requests.end()

    # -- what is said -------------------------------------------------------------------------

    def _clashes(self, other: RunMark) -> bool:
        """Whether both runs may write objects of the same names, or one those that the other one reads."""
        shared = self._reads and other.reads == self._reads
        return other.tag == self.tag and not shared and not other.ended

    def _is_part(self, other: RunMark) -> bool:
        """Whether another run is another part (``--part 1/4``) of what this one is a part of."""
        own, parts = self._mark, self._part.others if self._part is not None else []
        return other.scenario == own.scenario and other.tag in [part.tag for part in parts]

    def _beside(self, other: RunMark) -> str:
        was = "was" if other.ended else "is"
        if other.tag != self.tag:
            return (
                f"{other.sentence_start} {'used' if other.ended else 'is using'} the same containers, with"
                " other object names; its load is in these figures"
            )
        if self._reads and other.reads == self._reads:
            return f"{other.sentence_start} {was} reading the same objects; its load is in these figures"
        return (
            f"{other.sentence_start} used the same object names at the same time: missing objects, and"
            " wrong sizes or contents, may be due to it"
        )

    def _name(self, others: Sequence[RunMark], sentence: Callable[[RunMark], str]) -> None:
        """Warn of runs that were not named yet."""
        new = [other for other in others if other.run not in self._known]
        self._known.update(other.run for other in new)
        for other in new:
            if self._is_part(other):
                _log.info("%s carries out another part of this run", other.sentence_start)
        new = [other for other in new if not self._is_part(other)]
        alike: dict[str, list[RunMark]] = {}
        for other in new:
            alike.setdefault(sentence(other).replace(str(other)[1:], ""), []).append(other)
        for first, *more in alike.values():
            names = ", ".join(other.run for other in more[:_MAX_NAMED_RUNS])
            rest = "" if len(more) <= _MAX_NAMED_RUNS else " and others"
            count = f"; the same holds for {format_plural(len(more), 'more run')} ({names}{rest})"
            self._warn(sentence(first) + (count if more else ""))

    def _say_what_was_kept(self, others: Sequence[RunMark]) -> list[RunMark]:
        """Say what earlier runs left by request; return the marks of the others."""
        for other in others:
            if not other.kept:
                continue
            self._known.add(other.run)
            if not other.tag:
                _log.info(
                    "%d objects that %s created and kept are in these containers; they are overwritten"
                    " where this run needs their names",
                    other.kept,
                    other,
                )
        return [other for other in others if not other.kept]

    # -- requests -----------------------------------------------------------------------------

    def _tell_others(self) -> None:
        """Write the mark as it is now, if there is one."""
        if self._marked:
            try:
                self._requests.ask(self._put, _FIRST_MARK_SECONDS)
            except NoAnswerError as error:
                _log.warning("The mark by which other runs find this one could not be written: %s", error)

    # -- in the thread ------------------------------------------------------------------------

    def _stores(self) -> list[RunMarks]:
        sessions, timeouts = self._tokens.sessions, self._options.requests.timeouts
        return [
            RunMarks(
                StoreAccess(place.session(sessions), timeouts, trans_id_extra=self._extra),
                place.containers[0],
                _RETRY_SECONDS,
            )
            for place in self._places
        ]

    def _each(self, call: Callable[[RunMarks], _Answer]) -> list[_Answer]:
        """Return what a call returns for the marks of each place, of several at once; raises what it does."""
        stores = self._stores()
        if len(stores) == 1:
            return [call(stores[0])]
        return call_concurrently(call, stores, _MARKS_AT_ONCE, "marks")

    def _put(self) -> None:
        self._each(lambda store: store.put(self._mark))
        self._written_at = time.monotonic()

    def _put_and_look(self) -> tuple[bool, list[RunMark]]:
        try:
            self._put()
            self._marked = True
        except AttemptError as error:
            if not is_denied(error):
                raise
            _log.info("This account cannot write, so other runs cannot see this one")
        return self._marked, self._others()

    def _others(self) -> list[RunMark]:
        try:
            marks = self._each(lambda store: [*store.others(self._mark.run)])
        except AttemptError as error:
            # Each attempt takes time, after the last result too.
            self._can_look = error.status in TRANSIENT_STATUSES
            raise
        return list({mark.run: mark for own in marks for mark in own}.values())

    def _renew(self) -> None:
        if self._marked and time.monotonic() - self._written_at >= MARK_RENEWAL_SECONDS / 2:
            try:
                self._put()
            except AttemptError as error:
                _log.debug("the mark of the run was not renewed: %s", error)
            except Exception as error:  # noqa: BLE001 - this thread must go on: the next renewal may succeed
                if not self._failed_to_renew:
                    self._failed_to_renew = True
                    self._warn(
                        f"The mark by which other runs find this one is not renewed:"
                        f" {describe_unexpected_error(error)}"
                    )
                    _log.debug("renewing the mark", exc_info=error)

    def _retire(self, kept: int) -> None:
        self._marked = False
        self._each(lambda store: self._retire_from(store, kept))

    def _retire_from(self, store: RunMarks, kept: int) -> None:
        others = store.others(self._mark.run) if self._can_look else []
        if kept:
            store.put(replace(self._mark, kept=kept, ended=True))
        elif any(not other.ended for other in others):
            store.put(replace(self._mark, ended=True))
            return
        else:
            store.delete(self._mark.run)
        if all(other.ended for other in others):
            # Those for which they stayed have ended too.
            for other in others:
                if not other.kept:
                    store.delete(other.run)


def digest_of_shared_reads(scenario: Scenario) -> str:
    """Return a digest of the initial objects of a scenario that only reads; empty where it writes."""
    harmless = {Effect.READS, Effect.NONE}
    parts = []
    for own in scenario.parts:
        operations = own.operation_table
        for each in own.size_classes:
            for name, weight in each.weights.items():
                if weight and each.share and operations.named(name).effect not in harmless:
                    return ""
        parts += [str(own.accounts)] * (own.accounts > 1)
        parts += ["kept places", str(own.objects_per_container)] if own.keeps_places else []
        parts += [str(own.container_count), *(make_owner(own, each) for each in own.size_classes)]
        parts += [str(each.initial_files) for each in own.size_classes]
    if scenario.object_names is not None:
        parts.append(scenario.object_names)
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
