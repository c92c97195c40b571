"""A run as the document of a page: the one of its report, of the results that there are so far."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ssbench.base.errors import StatFileError
from ssbench.comparison.earlier import compare_with_earlier
from ssbench.comparison.entry import ArchiveEntry
from ssbench.comparison.run import make_sided_run_document
from ssbench.document.elements import Document, Note, Tone, Verdict
from ssbench.monitoring.messages import PageMessage
from ssbench.reports import products
from ssbench.reports.options import ReportOptions
from ssbench.reports.verdict import make_verdict_so_far
from ssbench.results.description import RunSummary
from ssbench.results.formats import open_results
from ssbench.results.reading import DamageError
from ssbench.statistics.following import FollowedStatistics
from ssbench.statistics.summary import summarize

#: What the page says until the first benchmark begins.
WAITING_DOCUMENT = Document(
    "ssbench",
    [Note("Workers are waited for, containers are made, initial objects are uploaded. This page follows.")],
    Verdict(Tone.OPEN, "The benchmark has not begun yet"),
)


class LiveDocument:
    """Follows the stat files of runs, one after another.

    ``ended`` is whether the run of :meth:`tell` has ended, and that :meth:`look` has returned all of it.
    The sides of a run are compared by what is known of ``earlier`` ones.
    """

    def __init__(self) -> None:
        self.ended = False
        self.earlier: Sequence[ArchiveEntry] | None = None
        self._counting: FollowedStatistics | None = None
        self._so_far: RunSummary | None = None
        self._broken = False

    @property
    def begun(self) -> bool:
        """Whether there is a run to follow."""
        return self._counting is not None

    def tell(self, message: PageMessage) -> None:
        """Take note of what the master says; another file is another run."""
        if self._counting is None or self._counting.path != message.file:
            if self._counting is not None:
                self._counting.close()
            self._counting = FollowedStatistics(message.file, products.PAGE_GROUPS, over_time=True)
            self._broken, self.ended = False, False
        self._so_far = message.so_far

    def look(self) -> Document:
        """Count what is new, and return the document."""
        counting = self._counting
        if counting is None:
            return WAITING_DOCUMENT
        if not self._broken:
            try:
                while counting.some():
                    pass
            except (DamageError, OSError):
                self._broken = True
        # Of a run whose warm-up is to be found, the figures are known when all is.
        if self._broken or (counting.ended and counting.needs_all_twice):
            return self._whole(counting.path)
        numbers = counting.statistics(self._so_far)
        if numbers is None:
            return WAITING_DOCUMENT
        if not counting.ended:
            return replace(
                make_sided_run_document(numbers, self._options),
                verdict=make_verdict_so_far(numbers, self._options),
            )
        self.ended = True
        return make_sided_run_document(numbers, self._options)

    @property
    def _options(self) -> ReportOptions:
        if self._counting is None:
            return ReportOptions()
        return ReportOptions(compare_sides=partial(compare_with_earlier, self.earlier, self._counting.path))

    def without_end(self) -> Document | None:
        """Return the document of a run whose end never came; None where no report can be made of it."""
        if self._counting is None:
            return None
        try:
            return make_sided_run_document(
                summarize(open_results(self._counting.path), products.PAGE_GROUPS, over_time=True),
                self._options,
            )
        except StatFileError:
            return None

    def _whole(self, path: Path) -> Document:
        """Return the document of a file that is complete, read from its beginning."""
        try:
            results = open_results(path)
            numbers = summarize(results, products.PAGE_GROUPS, over_time=True)
        except StatFileError:
            return WAITING_DOCUMENT
        self.ended = numbers.complete
        made = make_sided_run_document(numbers, self._options)
        return made if self.ended else replace(made, verdict=make_verdict_so_far(numbers, self._options))
