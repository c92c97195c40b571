"""Ends a run when figures are known precisely enough (``--until 'rate 2% and read.p99 5%'``).

The intervals are looked at after a minute, and then at times that are each 1.25 times later, until all of
them are narrow. A run knows little of how long its noise lasts, at its first looks least, and that is part of
the interval: what seconds have in common is taken to fade, at any speed, beside noise of each second's own,
and each such model counts as much as it explains the run (Whittle's likelihood of the series' spectrum). Such
a posterior is what it is however often it has been looked at.

What is claimed in the end is what was asked for, not the narrower interval that a run may happen to have: the
figure is within 5 % (an interval of fixed width, as of Chow and Robbins, 1965). ``doc/methods.rst`` says how
often that is right.
"""

# ruff: noqa: D102 - the methods of a sink are documented in Sink

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ssbench.base.text_values import format_duration
from ssbench.document.figures import count_needed_results
from ssbench.document.units import format_change_size, format_run_length
from ssbench.results.block import ResultBlock, leave_out_delayed
from ssbench.results.result_fields import ResultMark
from ssbench.results.run_description import PrecisionFacts, RunSummary
from ssbench.scenario.conditions import find_precision_figure
from ssbench.scenario.value_rules import Precision
from ssbench.statistics.by_second import LatencyTable
from ssbench.statistics.confidence import MIN_SECONDS, Series
from ssbench.statistics.latencies import measured_latencies

FIRST_LOOK_SECONDS = 60.0
LOOK_GROWTH = 1.25

_CONFIDENCE_SHARE = 0.95
_NORMAL_QUANTILE = 1.959964

#: Which share of the variance of the seconds fades, and how many times are tried after which a 1/e of it is
#: left: from a second to the length of the run. Longer ones are less probable beforehand, by this power.
_FADING_SHARES = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0])[:, None, None]
_FADING_TIMES, _FADING_POWER = 12, -0.25

#: Models that explain a run less well than this, beside the best one, are left out.
_LEAST_ODDS = 1e-5

#: Intervals of time of a run at most, a second each at first.
_MAX_BINS = 1024

#: Latencies that are gathered before they are counted.
_MAX_PENDING = 1 << 16

#: Results of the last seconds may still be on their way.
_SECONDS_UNDER_WAY = 2

#: A shorter run is never ended.
SHORTEST_RUN_SECONDS = math.ceil(FIRST_LOOK_SECONDS) + _SECONDS_UNDER_WAY + 1


def estimate_half_width(series: Series) -> float:
    """Return half the width of the interval of the mean that may end a run; infinite of too few values."""
    count = len(series)
    if count < MIN_SECONDS:
        return math.inf
    if not float(np.ptp(series)) > 0:
        return 0.0
    power = np.abs(np.fft.rfft(series - series.mean())[1:]) ** 2 / count
    turns = np.cos(2 * np.pi * np.arange(1, len(power) + 1) / count)
    times = np.geomspace(1.0, count, _FADING_TIMES)[:, None]
    left = np.exp(-1 / times)  # of what fades, after a second
    # Spectra of the models, and the variance of the mean of as many values, both as multiples of the level.
    fading = (1 - left**2) / (1 - 2 * left * turns + left**2)
    spectra = 1 + _FADING_SHARES * (fading - 1)
    summed = (1 + left) / (1 - left) - 2 * left * (1 - left**count) / (count * (1 - left) ** 2)
    levels = (power / spectra).mean(axis=2, keepdims=True)
    odds = -np.log(spectra).sum(axis=2, keepdims=True) - len(power) * np.log(levels)
    odds = np.exp(odds - odds.max()) * times**_FADING_POWER
    errors = np.sqrt(levels * (1 + _FADING_SHARES * (summed - 1)) / count)
    known = odds > _LEAST_ODDS * odds.max()
    weights, scales = (odds / odds[known].sum())[known].tolist(), (math.sqrt(2) * errors[known]).tolist()
    low, high = 0.0, 10 * float(max(scales))
    for _ in range(30):
        half = (low + high) / 2
        outside = sum(w * math.erfc(half / each) for w, each in zip(weights, scales, strict=True))
        low, high = (half, high) if outside > 1 - _CONFIDENCE_SHARE else (low, half)
    return high


class StoppingRule:
    """Decides at growing lengths of a run whether it may end; ``targets`` are half widths, as shares.

    ``reached`` is whether all were narrow enough, ``seen`` the length of the run at the last look, in
    seconds, ``widths`` the half widths then.
    """

    def __init__(self, targets: Sequence[float]) -> None:
        self.targets = tuple(targets)
        self.reached = False
        self.seen = 0.0
        self.widths: tuple[float, ...] = (math.inf,) * len(self.targets)
        self.next_look = FIRST_LOOK_SECONDS

    def look(self, seconds: float, estimate: Callable[[float], Sequence[float]]) -> bool:
        """Look at a run of this length, if it is time; return whether it may end.

        ``estimate`` returns the half widths of its first so many seconds. Each look sees the seconds up to
        its time, however late it comes.
        """
        while not self.reached and seconds >= self.next_look:
            self.seen, self.widths = self.next_look, tuple(estimate(self.next_look))
            self.reached = all(
                width <= target for width, target in zip(self.widths, self.targets, strict=True)
            )
            self.next_look *= LOOK_GROWTH
        return self.reached

    def needed(self, place: int) -> float:
        """Return after how many seconds one of the widths would be narrow.

        Half widths shrink with the square root of the length. Infinite where nothing is known yet.
        """
        width, target = self.widths[place], self.targets[place]
        if not self.seen or math.isinf(width):
            return math.inf
        look = self.seen
        while look < self.seen * (width / target) ** 2:
            look *= LOOK_GROWTH
        return look


# -- What is known of a figure ---------------------------------------------------------------------


class _Evidence(ABC):
    """Results of the operations that a figure is of, by the number of their interval of time."""

    def __init__(self, asked: Precision, numbers: Mapping[tuple[str, str], int]) -> None:
        wanted = (("operation", asked.operation), ("size_class", asked.size_class), ("group", asked.group))
        self._wanted = {field: numbers[field, name] for field, name in wanted if name is not None}

    def _rows(self, block: ResultBlock, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        for name, value in self._wanted.items():
            wanted = wanted & (getattr(block, name) == value)
        return np.flatnonzero(wanted)

    @abstractmethod
    def add(self, block: ResultBlock, measured: npt.NDArray[np.bool_], bins: npt.NDArray[np.int64]) -> None:
        """Count the ``measured`` rows of a block; ``bins`` are those of all rows."""

    @abstractmethod
    def halve(self) -> None:
        """Put each two intervals of time together."""

    @abstractmethod
    def half_width(self, count: int) -> float:
        """Return that of the interval, as a share of the figure, by the first so many intervals of time."""


class _RatioEvidence(_Evidence):
    """A sum of some value of results by the number of results, or by time."""

    def __init__(self, asked: Precision, numbers: Mapping[tuple[str, str], int]) -> None:
        super().__init__(asked, numbers)
        row = find_precision_figure(asked)
        self._key, self._kind = row.key, row.kind
        self._sums, self._counts = np.zeros(_MAX_BINS), np.zeros(_MAX_BINS)

    def add(self, block: ResultBlock, measured: npt.NDArray[np.bool_], bins: npt.NDArray[np.int64]) -> None:
        rows = self._rows(block, measured if self._key == "errors" else measured & ~block.failed)
        if self._kind:
            values = _take_latencies(block, self._kind)[rows]
            rows, values = rows[~np.isnan(values)], values[~np.isnan(values)]
        elif self._key == "errors":
            values = block.failed[rows].astype(np.float64)
        else:
            values = np.maximum(block.size[rows], 0) if self._key == "mb_per_s" else np.ones(len(rows))
        self._sums += np.bincount(bins[rows], values, _MAX_BINS)
        self._counts += np.bincount(bins[rows], minlength=_MAX_BINS)

    def halve(self) -> None:
        for each in (self._sums, self._counts):
            each[: _MAX_BINS // 2] = each[::2] + each[1::2]
            each[_MAX_BINS // 2 :] = 0

    def half_width(self, count: int) -> float:
        sums = self._sums[:count]
        counts = np.ones(count) if self._key in {"rate", "mb_per_s"} else self._counts[:count]
        total = float(sums.sum())
        if not total:
            return math.inf
        return estimate_half_width(sums - total / float(counts.sum()) * counts) * count / total


class _PercentileEvidence(_Evidence):
    """Latencies in parts of an octave."""

    def __init__(self, asked: Precision, numbers: Mapping[tuple[str, str], int]) -> None:
        super().__init__(asked, numbers)
        row = find_precision_figure(asked)
        self._kind = row.kind
        rank = row.rank or 0.0
        self._share, self._fewest = rank / 100, count_needed_results(rank)
        self._table = LatencyTable()
        self._pending: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = []
        self._pending_count = 0

    def add(self, block: ResultBlock, measured: npt.NDArray[np.bool_], bins: npt.NDArray[np.int64]) -> None:
        rows = self._rows(block, measured & ~block.failed)
        values = _take_latencies(block, self._kind)[rows]
        known = values > 0  # not of those without any
        self._pending.append((bins[rows][known], values[known]))
        self._pending_count += len(rows)
        if self._pending_count >= _MAX_PENDING:
            self._count_pending()

    def _count_pending(self) -> None:
        bins, values = (np.concatenate(each) for each in zip(*self._pending, strict=True))
        self._pending.clear()
        self._pending_count = 0
        if len(values):
            new = LatencyTable.of(bins.astype(np.float64), values)
            self._table = LatencyTable.merged((self._table, new)).compacted()

    def halve(self) -> None:
        if self._pending:
            self._count_pending()
        self._table = self._table.halved()

    def half_width(self, count: int) -> float:
        if self._pending:
            self._count_pending()
        table, share = self._table.cut(count)[0], self._share
        found = table.below(share)
        if found is None:
            return math.inf
        _, below, every = found
        total = float(every.sum())
        if total < self._fewest:
            return math.inf
        chance = share * (1 - share)
        residuals = below - float(below.sum()) / total * every
        half = estimate_half_width(residuals) * len(every) / total
        half = max(half, _NORMAL_QUANTILE * math.sqrt(chance / total))
        if not (share - half > 0 and share + half < 1 - 1 / total):
            return math.inf
        low, value, high = (table.percentile(each) for each in (share - half, share, share + half))
        return (high - low) / 2 / value


def _take_latencies(block: ResultBlock, kind: str) -> npt.NDArray[np.float64]:
    """Return the latencies that a figure is of (:class:`~ssbench.document.figures.Figure`); NaN: none."""
    if kind == "first":
        return leave_out_delayed(block, block.first_byte)
    since_due = np.full(len(block), np.nan)
    if kind != "service" and "due" in block.given:
        since_due = block.completed - block.due
    if kind == "response":
        return since_due
    return np.where(np.isnan(since_due), measured_latencies(block), since_due)


# -- The sink --------------------------------------------------------------------------------------


class StoppingSink:
    """A sink that looks now and then at how precisely figures are known. A :class:`Goal`.

    ``asked`` is what is to be known; ``numbers`` are those by which results refer to operations, size classes
    and groups, by the name of the field and their own. Seconds count from the first whole one; those of a
    warm-up do not.

    A look costs the same after ten hours as after ten minutes: results are counted in at most
    :data:`_MAX_BINS` intervals of time, whose length doubles when there are more.
    """

    def __init__(self, asked: Sequence[Precision], numbers: Mapping[tuple[str, str], int]) -> None:
        self._asked = tuple(asked)
        self._rule = StoppingRule([each.share for each in asked])
        self._evidence = [
            (_RatioEvidence if find_precision_figure(each).rank is None else _PercentileEvidence)(
                each, numbers
            )
            for each in asked
        ]
        self._width = 1  # of an interval of time, in seconds
        self._first: int | None = None
        self._last = 0

    def reached(self) -> bool:
        """Whether the run may end."""
        return self._rule.reached

    def add(self, block: ResultBlock) -> None:
        measured = np.full(len(block), fill_value=True)
        if "marks" in block.given:
            measured &= block.marks & ResultMark.WARM_UP == 0
        seconds = np.floor(block.completed).astype(np.int64)
        if self._first is None:
            if not (measured & ~block.failed).any():
                return
            self._first = int(seconds[measured & ~block.failed].min()) + 1
        measured &= seconds >= self._first
        if not measured.any():
            return
        self._last = max(self._last, int(seconds[measured].max()))
        while self._last - self._first >= _MAX_BINS * self._width:
            self._width *= 2
            for each in self._evidence:
                each.halve()
        bins = (seconds - self._first) // self._width
        for each in self._evidence:
            each.add(block, measured, bins)

    @property
    def _seconds(self) -> float:
        """How much of the run is known."""
        return 0.0 if self._first is None else float(self._last - _SECONDS_UNDER_WAY - self._first)

    def tick(self, now: float) -> None:
        self._rule.look(self._seconds, self._estimate)

    def _estimate(self, seconds: float) -> list[float]:
        count = int(seconds) // self._width
        return [each.half_width(count) for each in self._evidence]

    def end(self, summary: RunSummary) -> None:
        """Do nothing; :meth:`facts` returns the result."""

    def facts(self) -> tuple[PrecisionFacts, ...]:
        """Return what was asked for, and what is known of it."""
        rule = self._rule
        return tuple(
            PrecisionFacts(
                figure=each.subject,
                asked=each.share,
                width=None if math.isinf(width) else width,
                seconds=float(int(rule.seen)),
                reached=rule.reached,
                needed=None if rule.reached or math.isinf(rule.needed(place)) else rule.needed(place),
            )
            for place, (each, width) in enumerate(zip(self._asked, rule.widths, strict=True))
        )

    def missing(self) -> str:
        """Say which figure takes longest, and about how long."""
        rule = self._rule
        if not rule.seen or rule.reached:
            return ""
        place = max(range(len(self._asked)), key=rule.needed)
        subject, needed = self._asked[place].subject, rule.needed(place)
        if math.isinf(needed):
            return f"{subject} not known yet"
        left = format_duration(_round_up_time(max(needed - self._seconds, 1.0)))
        return f"{subject} known to {format_change_size(rule.widths[place])} %, about {left} more"


def _round_up_time(seconds: float) -> float:
    """Return a time to ten seconds, from two minutes on to minutes."""
    step = 10 if seconds <= 120 else 60
    return step * math.ceil(seconds / step)


def describe_precision(facts: Sequence[PrecisionFacts]) -> str:
    """Return a sentence on how ``--until`` ended a run, or on why it did not."""
    seconds = format_run_length(facts[0].seconds)
    if facts[0].reached:
        known = (
            f"{each.figure} is known to +-{_spell_share(each.asked)} (estimate: "
            f"{format_change_size(each.width or 0.0)} %)"
            for each in facts
        )
        return f"--until ended the run after {seconds} s: {', '.join(known)}"
    if not facts[0].seconds:
        least = format_duration(SHORTEST_RUN_SECONDS)
        return f"The run was too short for --until: it takes {least} or more"
    missing = [_describe_missing(each) for each in facts if each.width is None or each.width > each.asked]
    if not missing:  # a file of when they had to be so at two looks
        missing = ["all figures were as precise as asked for at the last look only"]
    needed = [each.needed for each in facts]
    advice = ""
    if None not in needed:
        longest = _round_up_time(max(each or 0.0 for each in needed) + _SECONDS_UNDER_WAY + 1)
        advice = f"; about {format_duration(longest)} would do (-r {longest:g})"
    return f"The run ended before --until did: after {seconds} s {', '.join(missing)}{advice}"


def _describe_missing(facts: PrecisionFacts) -> str:
    asked = _spell_share(facts.asked)
    if facts.width is None:
        return f"it is not known how precise {facts.figure} is, of which {asked} was asked for"
    return f"{facts.figure} is known to +-{format_change_size(facts.width)} %, not to {asked}"


def _spell_share(share: float) -> str:
    return f"{100 * share:g} %"
