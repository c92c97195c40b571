"""Several runs over one bench: the same initial objects for all of them, a stat file for each."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.results.block import Goal, Sink
from ssbench.run.bench import Bench
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.options import RunOptions
from ssbench.run.stats_path import check_labels_unused, label_stats_path
from ssbench.scenario.model import Scenario

if TYPE_CHECKING:
    from ssbench.results.cluster_observation import ClusterObserver


class Series:
    """Runs that differ as the caller says.

    All have one seed, that of ``options`` or a new one, unless the caller adds to it, so that they have the
    same initial objects where their scenarios do. Their stat files are ``NAME.KIND-WHAT.stat.gz``, NAME being
    the one of ``options`` or a new one; where a run is of the same WHAT as one before, a number follows.

    Raises StatFileError, before anything is run, where a stat file of that NAME and KIND exists and may not
    be overwritten.
    """

    def __init__(self, bench: Bench, options: RunOptions, kind: str) -> None:
        self._bench = bench
        self._options = replace(options, seed=secrets.randbits(32) if options.seed is None else options.seed)
        self._kind = kind
        self._began = time.time()
        self._runs: Counter[str] = Counter()
        #: The stat files of the runs that have one, in their order.
        self.files: list[Path] = []
        if options.stats_file is not None and not options.force:
            check_labels_unused(options.stats_file, f"{kind}-")

    def run(
        self,
        scenario: Scenario,
        what: str,
        *,
        sinks: Sequence[Sink] = (),
        on_measured: Callable[[RunOutcome], None] | None = None,
        observer: ClusterObserver | None = None,
        goal: Goal | None = None,
        seed_offset: int = 0,
    ) -> RunOutcome:
        """Carry out a run and return how it went; see :meth:`ssbench.run.bench.Bench.run`.

        ``seed_offset`` is added to the seed, for a run that is to draw other operations.
        """
        label = f"{self._kind}-{what}"
        self._runs[label] += 1
        if self._runs[label] > 1:
            label += f".{self._runs[label]}"
        path = label_stats_path(self._options.stats_file, scenario, label, self._began)
        outcome = self._bench.run(
            scenario,
            replace(self._options, stats_file=path, seed=(self._options.seed or 0) + seed_offset),
            sinks=sinks,
            on_measured=on_measured,
            observer=observer,
            goal=goal,
        )
        if outcome.path is not None:
            self.files.append(outcome.path)
        return outcome
