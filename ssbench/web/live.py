"""A run as the document of a page: the one of its report, of the results that there are so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from ssbench import products
from ssbench.archive import Entry
from ssbench.comparison.run import document
from ssbench.document import Document, Note, Tone, Verdict
from ssbench.earlier import compare_with
from ssbench.errors import StatFileError
from ssbench.reports import ReportOptions
from ssbench.reports.verdict import so_far
from ssbench.results import RunDescription, RunSummary
from ssbench.run_results import open_results
from ssbench.run_results.current import Following
from ssbench.run_results.reading import DamageError
from ssbench.statistics import Collector, make_statistics, summarize
from ssbench.statistics.facts import OwnFacts
from ssbench.statistics.steadiness import AUTOMATIC
from ssbench.statistics.summary import collector_of
from ssbench.web.messages import Message

#: What the page says until the first benchmark begins.
WAITING = Document(
    "ssbench",
    [Note("Workers are waited for, containers are made, initial objects are uploaded. This page follows.")],
    Verdict(Tone.OPEN, "The benchmark has not begun yet"),
)


class Live:
    """Follows the stat files of runs, one after another.

    ``ended`` is whether the run of :meth:`tell` has ended, and that :meth:`look` has returned all of it.
    The sides of a run are compared by what is known of ``earlier`` ones.
    """

    def __init__(self) -> None:
        self.ended = False
        self.earlier: Sequence[Entry] | None = None
        self._following: Following | None = None
        self._collector: Collector | None = None
        self._so_far: RunSummary | None = None
        self._broken = False

    @property
    def begun(self) -> bool:
        """Whether there is a run to follow."""
        return self._following is not None

    def tell(self, message: Message) -> None:
        """Take note of what the master says; another file is another run."""
        if self._following is None or self._following.path != message.file:
            if self._following is not None:
                self._following.close()
            self._following = Following(message.file)
            self._collector, self._broken, self.ended = None, False, False
        self._so_far = message.so_far

    def look(self) -> Document:
        """Count what is new, and return the document."""
        following = self._following
        if following is None:
            return WAITING
        if not self._broken:
            try:
                self._count(following)
            except (DamageError, OSError):
                self._broken = True
        if self._broken:
            return self._whole(following)
        if following.run is None or self._collector is None:
            return WAITING
        if following.summary is None:
            return self._running(following.run, self._collector)
        self.ended = True
        if following.run.options.get("warmup") == AUTOMATIC:  # which is found when all is known
            return self._whole(following)
        facts = _facts(following.run, following.summary, following.warnings)
        return document(make_statistics(self._collector, facts), self._options)

    @property
    def _options(self) -> ReportOptions:
        following = self._following
        if following is None:
            return ReportOptions()
        return ReportOptions(compare_sides=partial(compare_with, self.earlier, following.path))

    def without_end(self) -> Document | None:
        """Return the document of a run whose end never came; None where no report can be made of it."""
        if self._following is None:
            return None
        try:
            return document(
                summarize(open_results(self._following.path), products.GROUPS, over_time=True), self._options
            )
        except StatFileError:
            return None

    def _count(self, following: Following) -> None:
        blocks = [*following.blocks()]
        if self._collector is None and following.run is not None:
            facts = _facts(following.run, None, ())
            self._collector = collector_of(facts, products.GROUPS, over_time=True)
        if self._collector is not None:
            for block in blocks:
                self._collector.add(block)

    def _running(self, run: RunDescription, collector: Collector) -> Document:
        known = self._so_far
        numbers = make_statistics(collector, _facts(run, known, known.warnings if known else ()))
        return replace(document(numbers, self._options), verdict=so_far(numbers, self._options))

    def _whole(self, following: Following) -> Document:
        """Return the document of a file that is complete, read from its beginning."""
        try:
            results = open_results(following.path)
            numbers = summarize(results, products.GROUPS, over_time=True)
        except StatFileError:
            return WAITING
        self.ended = numbers.complete
        made = document(numbers, self._options)
        return made if self.ended else replace(made, verdict=so_far(numbers, self._options))


def _facts(run: RunDescription, summary: RunSummary | None, warnings: Iterable[str]) -> OwnFacts:
    names = [each.name for each in run.scenario.size_classes]
    return OwnFacts(run, names, summary, [*warnings])
