"""The envelope of a store: by size and operation, the most load at which a condition holds.

Users send one operation after the other. So the highest rate is that of the most users at which the condition
holds: where a store is full, more users do not raise it, and where it slows down, they lower it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import msgspec
import numpy as np

from ssbench.base import record
from ssbench.base.errors import ExitCode, GateResult, UsageError, combine_gate_results
from ssbench.base.record import (
    Bytes,
    BytesPerSecond,
    Count,
    PerhapsBytesPerSecond,
    PerhapsNumber,
    PerhapsPerSecond,
    PerhapsSeconds,
    PerSecond,
    Seconds,
    Share,
)
from ssbench.comparison.comparison_verdict import judge_interval
from ssbench.comparison.family import FamilyComparison
from ssbench.comparison.run_comparison import Judged
from ssbench.comparison.search import (
    LOAD_JITTERS,
    NEAR_FACTOR,
    ObjectiveFinding,
    SearchAnswer,
    judge_objective,
)
from ssbench.comparison.sweep import SweepStep, estimate_knee, find_knee
from ssbench.comparison.sweep_variables import Variable
from ssbench.document.units import Unit, format_number, format_percent
from ssbench.scenario.conditions import RELATIONS, Condition
from ssbench.statistics.load_generator import is_network_full
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.thresholds import find_line

#: A limit whose rate is known to a larger factor only is not known well: more runs would say more.
WIDE_FACTOR = 2.0

#: By so much a rate may be off where the runs were too short to tell.
_UNKNOWN_RATE_ERROR = 0.1

#: The causes by which a store says that more was sent than it allows: 498 is that of Swift's ratelimit.
#: Over the S3 API it may be 503 too, as that of Swift's s3api is for its own 498 and for any overload.
_RATE_LIMITED = re.compile(r"\b(498|429)\b")
_PERHAPS_RATE_LIMITED = re.compile(r"\b503\b")

#: What of a store ends what it can do, besides a limit that it sets.
_LATENCY, _FAILURES, _RETRIES = "latency", "failures", "retries"

#: A mixed load has lasted where so much of it was carried out, and no more than so many operations failed
#: unless a condition allows more of them.
_LASTED_SHARE, _LASTED_ERRORS = 0.95, 0.001

#: Those of each curve of :func:`estimate_knee`.
_CURVE_PARAMETERS = 3


class EnvelopeStep(record.JsonRecord, frozen=True):
    """What a run says of the operation of a cell; null where it had none of these."""

    users: Count  # that were to send operations all the time
    seconds: Seconds  # how long they did
    rate: PerhapsPerSecond  # successes of the operation a second
    #: Half of the 95 % interval of the rate, as a share of it; None: the run was too short.
    error: Share | None
    moved: PerhapsBytesPerSecond  # bytes of the operation
    p50: PerhapsSeconds  # latency to the last byte
    p99: PerhapsSeconds  # the same; of fewer than 1,000 operations only an estimate
    first_byte: PerhapsSeconds  # the median latency to the first byte
    count: Count  # successes of the operation
    failed: Share  # of all operations of the run
    result: GateResult = GateResult.PASSED  # whether the condition holds
    generator_full: bool = False  # the workers could do no more
    full_networks: tuple[str, ...] = ()  # hosts of the load generator with a network card that was full
    #: How often each cause failed an operation, or led to a retry.
    refusals: dict[str, Count] = msgspec.field(default_factory=dict)
    sent_again: Count = 0  # retries


def make_envelope_step(
    statistics: RunStatistics,
    operation: str | None,
    step: SweepStep,
    findings: Sequence[ObjectiveFinding] = (),
) -> EnvelopeStep:
    """Return what a run says of an operation, None: of all; ``step`` is the run, judged by ``findings``."""
    line = find_line(statistics, operation, None)
    section = next(
        (s for s in statistics.sections if (s.operation.name if s.operation else None) == operation),
        statistics.total,
    )
    every = step.count + step.failed
    known = line is not None and line.count > 0
    interval = section.rate_interval if known else None
    rate = section.requests_per_second if known else math.nan
    failures = Counter({cause: each.count for cause, each in statistics.errors.items()})
    results = [each.verdict for each in findings] + [GateResult.FAILED] * (step.ended_early is not None)
    return EnvelopeStep(
        users=step.users,
        seconds=step.seconds,
        rate=rate,
        error=interval.half_width / rate if interval and rate else None,
        moved=section.moved_per_second if known else math.nan,
        p50=line.last_byte.percentile(50) if known and line else math.nan,
        p99=line.last_byte.percentile(99) if known and line else math.nan,
        first_byte=line.first_byte.percentile(50) if known and line and line.first_byte.count else math.nan,
        count=line.count if line else 0,
        failed=step.failed / every if every else 1.0,
        result=combine_gate_results(results),
        generator_full=step.generator_full,
        full_networks=tuple(each.host for each in statistics.generator.hosts if is_network_full(each)),
        refusals=dict(Counter(statistics.retries) + failures),
        sent_again=sum(statistics.retries.values()),
    )


class LoggedRun(record.JsonRecord, frozen=True, kw_only=True):
    """What the logs of Swift say of a run beyond a limit."""

    file: str  # the name of its stat file
    headline: str  # the answer of ``attribute``, or why the logs tell nothing
    facts: tuple[str, ...] = ()  # by how much, in which share of the requests and since when
    #: Who makes the tail of the latencies (:mod:`ssbench.cluster.logged_limits`); none: nobody is shown to.
    slow: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()  # the fewest that served half of the requests that failed, or more
    p99: PerhapsSeconds = math.nan  # latency of the operation
    #: The same of requests in which none of ``slow`` had a part, or, where there are none, nobody who is
    #: slower than others; null: nobody is, or too few are left.
    p99_of_others: PerhapsSeconds = math.nan


class EnvelopeCell(record.JsonRecord, frozen=True, kw_only=True):
    """The limit of an operation on objects of a size; null where it is not known."""

    name: str  # as conditions have it: 4kB.read
    size: Bytes  # of each object
    operation: str  # write, read, delete or list; deletions have as many writes beside them
    condition: str  # what holds up to the limit; empty: not even one user was tried
    users: Count | None  # the most at which it holds; None: at none
    users_low: Count  # lower end of the 95 % interval of that
    users_high: Count  # upper end of it
    at_least: bool  # no load was tried at which it does not hold
    rate: PerhapsPerSecond  # that of the operation with so many users
    rate_low: PerhapsPerSecond  # lower end of the 95 % interval of that
    rate_high: PerhapsPerSecond  # upper end of it; null: not known
    moved: PerhapsBytesPerSecond  # with so many users
    knee: PerhapsNumber  # users from which on more bring hardly more; null: none was found
    bounded_by: str  # what ends it, in words
    one_user: EnvelopeStep | None  # the run of one user
    half: EnvelopeStep | None  # that with the users nearest to half of the most
    limit: EnvelopeStep | None  # that with the users nearest to the most, and no more
    runs: Count  # that were made
    store: str = ""  # the name of its store; empty: there is one
    beyond: EnvelopeStep | None = None  # the nearest run with more at which it did not hold
    by_logs: LoggedRun | None = None  # what logs say of that; None: none were given, or it was not asked
    #: What of the store ends it: ``latency``, ``failures`` or ``retries``; empty: something else, or unknown.
    limited_by: str = ""

    @property
    def is_vague(self) -> bool:
        """Whether the interval of the limit is wider than what was tried, although some of that failed."""
        return bool(self.users) and not self.at_least and not math.isfinite(self.rate_high)

    @property
    def is_wide(self) -> bool:
        """Whether the ends of the interval of the rate are further apart than :data:`WIDE_FACTOR`."""
        return bool(self.users) and not self.at_least and self.rate_high > WIDE_FACTOR * self.rate_low

    @property
    def size_name(self) -> str:
        """The size as it was asked for."""
        return self.name.removeprefix(f"{self.store}." if self.store else "").rpartition(".")[0]


def name_cell(size: str, operation: str, store: str = "") -> str:
    """Return the name of a cell, as conditions have it: ``4kB.read``, of a store ``old.4kB.read``."""
    return ".".join(filter(None, (store, size, operation)))


def conclude_cell(
    name: str,
    size: int,
    operation: str,
    conditions: Sequence[Condition],
    runs: Sequence[tuple[EnvelopeStep, SweepStep]],
    answer: SearchAnswer,
    *,
    slows_by_503: bool = False,
) -> EnvelopeCell:
    """Return what the runs of a cell say, of which the first has one user; ``answer`` is its search's.

    ``slows_by_503``: the store answers so for a rate limit too.
    """
    steps = [step for step, _ in runs]
    searched = steps[1:]
    failing = [each for each in searched if each.result is GateResult.FAILED]
    at_least = bool(searched) and (answer.at_least or not failing)
    value = answer.value
    if at_least and not failing:
        value = max(each.users for each in searched)
    tried = bool(searched)
    if value is not None and value > max((each.users for each in steps), default=0):
        # Few runs leave the interval so wide that its middle says nothing.
        value = max((each.users for each in steps if each.result is not GateResult.FAILED), default=None)
    if not tried:
        value = None
    low, high = (min(answer.low, value), max(answer.high, value)) if value else (0, answer.high)
    groups = _group_runs(steps, value or 0)
    beyond = _find_nearest([each for each in failing if each.users > (value or 0)], value or 0)
    lasting = [each for each in groups if not _falls(each[0], value or 0)] or groups
    rates = [
        _find_rate(own, users) if users else math.nan
        for own, users in ((lasting, value), (groups, low), (groups, high))
    ]
    is_beyond = high > max((each.users for each in steps), default=0)  # of which no rate is known
    limit = _find_nearest([each for each in steps if each.users <= (value or 0)], value or 0)
    error = find_rate_error(groups) if groups else math.nan
    # The rate there, and how many users there are, are off by chances of their own.
    below, above = (math.hypot(error, math.log(each(rates) / rates[0])) for each in (min, max))
    knee = find_knee(Variable.USERS, [step for _, step in runs])
    shared = any(whole.shared for step, whole in runs[1:] if step.result is GateResult.FAILED)
    size_share = (limit.moved / limit.rate) if limit is not None and limit.rate else math.nan
    limited_by, bounded_by = _find_bound(
        steps,
        failing,
        at_least=at_least,
        tried=tried,
        value=value,
        shared=shared,
        by_store=_find_store_bound([beyond] if beyond else failing, conditions, slows_by_503=slows_by_503),
    )
    return EnvelopeCell(
        name=name,
        size=size,
        operation=operation,
        condition=" and ".join(each.text for each in conditions),
        users=value,
        users_low=low,
        users_high=high,
        at_least=at_least,
        rate=rates[0],
        rate_low=rates[0] / math.exp(below),
        rate_high=math.inf if at_least or is_beyond else rates[0] * math.exp(above),
        moved=rates[0] * size_share,
        knee=knee.value if knee is not None and knee.reached else math.nan,
        bounded_by=bounded_by,
        one_user=steps[0] if steps else None,
        half=_find_nearest(steps, value / 2) if value else None,
        limit=limit,
        runs=len(runs),
        beyond=beyond,
        limited_by=limited_by,
    )


def _group_runs(steps: Sequence[EnvelopeStep], users: float) -> list[list[EnvelopeStep]]:
    """Return groups of runs whose rates differ by chance only; the first is nearest to a number of users.

    Runs near the limit are one group: each of them alone is off by as much as runs differ.
    """
    groups: dict[float, list[EnvelopeStep]] = {}
    for each in steps:
        place: float = each.users
        if users / NEAR_FACTOR <= each.users <= users * NEAR_FACTOR:
            place = users * NEAR_FACTOR if _falls(each, users) else users
        if each.rate > 0:
            groups.setdefault(place, []).append(each)
    return [groups[place] for place in sorted(groups, key=lambda place: abs(place - users))]


def _falls(step: EnvelopeStep, users: float) -> bool:
    """Whether a run says nothing of the rate with fewer users: where operations fail, it may fall at once."""
    return step.users > users and step.failed > _LASTED_ERRORS


def _find_rate(groups: Sequence[Sequence[EnvelopeStep]], users: float) -> float:
    """Return the rate with so many users, between those of groups of runs."""
    points = sorted(
        (fmean(math.log(each.users) for each in group), fmean(math.log(each.rate) for each in group))
        for group in groups
    )
    if not points:
        return math.nan
    loads, rates = zip(*points, strict=True)
    return math.exp(float(np.interp(math.log(max(users, 1)), loads, rates)))


def find_rate_error(groups: Sequence[Sequence[EnvelopeStep]]) -> float:
    """Return half of the 95 % interval of the rate of the first group of runs, of its logarithm.

    By how much runs differ is learnt from all of them, as in the search for the limit: before, each of
    :data:`LOAD_JITTERS` is as probable, and so are all rates.
    """
    squares, freedom = _measure_scatter(groups)
    weights = -freedom * np.log(LOAD_JITTERS) - squares / (2 * LOAD_JITTERS**2)
    weights = np.exp(weights - weights.max())
    count = len(groups[0])
    spreads = LOAD_JITTERS * math.sqrt(2 / count)

    def find_tail(thousandths: int) -> float:
        tails = [math.erfc(thousandths / 1000 / each) for each in spreads]
        return float(weights @ tails / weights.sum())

    between = bisect(range(2000), -0.05, key=lambda each: -find_tail(each)) / 1000
    within = fmean(_UNKNOWN_RATE_ERROR if each.error is None else each.error for each in groups[0])
    return math.hypot(between, within / math.sqrt(count))


def _measure_scatter(groups: Sequence[Sequence[EnvelopeStep]]) -> tuple[float, int]:
    """Return by how much runs differ, of the logarithms of their rates: the sum of squares and its freedom.

    Where few runs are near each other, the curve of a store that becomes full with users says more.
    """
    logs = [[math.log(each.rate) for each in group] for group in groups]
    squares = sum((each - fmean(group)) ** 2 for group in logs for each in group)
    freedom = sum(len(group) - 1 for group in logs)
    # Where operations fail, the rate is off the curve.
    smooth = [each for group in groups for each in group if each.failed <= _LASTED_ERRORS]
    left = len(smooth) - _CURVE_PARAMETERS
    if left > freedom:
        users, rates, errors = zip(*((each.users, each.rate, each.error) for each in smooth), strict=True)
        if (knee := estimate_knee(users, rates, errors)) is not None:
            return len(smooth) * knee.error**2, left
    return squares, freedom


def add_logged_run(cell: EnvelopeCell, found: LoggedRun) -> EnvelopeCell:
    """Return a cell with what logs say of the run beyond its limit.

    Those who are slow bound a limit of latency, those whose requests fail one of failures.
    """
    servers = {_LATENCY: found.slow, _FAILURES: found.failing}.get(cell.limited_by)
    bounded_by = f"{cell.bounded_by}; by its logs {', '.join(servers)}" if servers else cell.bounded_by
    return msgspec.structs.replace(cell, by_logs=found, bounded_by=bounded_by)


def _find_nearest(steps: Sequence[EnvelopeStep], users: float) -> EnvelopeStep | None:
    """Return the longest of the runs whose users are nearest to a number; None of none."""
    return min(steps, key=lambda each: (abs(each.users - users), -each.seconds), default=None)


def _find_bound(
    steps: Sequence[EnvelopeStep],
    failing: Sequence[EnvelopeStep],
    *,
    at_least: bool,
    tried: bool,
    value: int | None,
    shared: bool,
    by_store: tuple[str, str],
) -> tuple[str, str]:
    """Return what of the store ends the loads at which the condition holds, and what ends them in words.

    ``by_store`` is that where it is the store.
    """
    if not tried:
        return "", "not tried" if not steps else "one user alone was tried"
    if networks := sorted({host for each in (failing or steps) for host in each.full_networks}):
        return "", f"the network card of {', '.join(networks)}"
    if at_least:
        is_full = any(each.generator_full for each in steps)
        return "", "the load generator" if is_full else "not reached in the time"
    limited_by, what = by_store
    if any(each.generator_full for each in failing):
        limited_by, what = "", "the store or the load generator, which was full"
    elif shared:
        what += ", on a shared host"
    return limited_by, what if value else f"{what}, from one user on"


def _find_store_bound(
    beyond: Sequence[EnvelopeStep], conditions: Sequence[Condition], *, slows_by_503: bool
) -> tuple[str, str]:
    """Return the same of a store, with the most frequent cause where operations fail or are sent again.

    ``beyond`` is the run of which logs are read too: far beyond a limit other things may happen.
    """
    limits = [each.limit for each in conditions if each.figure == "errors" and each.unit is Unit.SHARE]
    allowed = min(limits, default=_LASTED_ERRORS)
    causes: Counter[str] = Counter()
    for each in beyond:
        causes.update(each.refusals)
    fail = any(each.failed > allowed for each in beyond)
    sent_again, succeeded = (sum(getattr(each, what) for each in beyond) for what in ("sent_again", "count"))
    if not fail and sent_again <= _LASTED_ERRORS * succeeded:
        return _LATENCY, "the store: latency"
    cause = causes.most_common(1)[0][0] if causes else ""
    if _RATE_LIMITED.search(cause):
        return "", f"the rate limit of the store ({cause})"
    if slows_by_503 and _PERHAPS_RATE_LIMITED.search(cause):
        cause += ", over S3 also the answer of a rate limit"
    of = f" ({cause})" if cause else ""
    if fail:
        return _FAILURES, f"the store: requests fail{of}"
    return _RETRIES, f"the store: requests are sent again{of}"


class MixedLoad(record.JsonRecord, frozen=True, kw_only=True):
    """All sizes and operations together at a part of their limits."""

    share: Share  # of what the limits allow
    asked: PerSecond  # operations a second
    rate: PerhapsPerSecond  # successes a second
    moved: BytesPerSecond  # by successes
    seconds: Seconds  # how long
    p50: PerhapsSeconds  # latency from when operations were due
    p99: PerhapsSeconds  # the same
    failed: Share  # of all operations
    lasted: bool  # nothing speaks against it
    store: str = ""  # the name of its store; empty: there is one
    shortfalls: tuple[str, ...] = ()  # what did not last, each in words


def conclude_mixed(
    share: float,
    asked: float,
    statistics: RunStatistics,
    conditions: Sequence[Condition] = (),
    store: str = "",
) -> MixedLoad:
    """Return what the run of a mixed load says, in which some conditions are to hold."""
    total, met = statistics.total, statistics.total.latency
    failed = total.failed / max(1, total.count + total.failed)
    shortfalls = tuple(_list_shortfalls(asked, failed, statistics, conditions))
    return MixedLoad(
        share=share,
        asked=asked,
        rate=total.requests_per_second,
        moved=total.moved_per_second,
        seconds=statistics.duration,
        p50=met.supported_percentile(50) or math.nan,
        p99=met.supported_percentile(99) or math.nan,
        failed=failed,
        lasted=not shortfalls,
        store=store,
        shortfalls=shortfalls,
    )


def _list_shortfalls(
    asked: float, failed: float, statistics: RunStatistics, conditions: Sequence[Condition]
) -> Iterator[str]:
    """Yield what speaks against it that a mixed load lasts."""
    rate = statistics.total.requests_per_second
    if not rate >= _LASTED_SHARE * asked:
        yield f"{format_number(rate)} of {format_number(asked)} ops/s were reached"
    if failed > _LASTED_ERRORS and not any(each.figure == "errors" for each in conditions):
        yield f"{format_percent(failed)} % failed"
    for each in judge_objective(statistics, conditions):
        if each.verdict is GateResult.FAILED:
            subject, _, wanted = each.condition.text.partition(" ")
            came = each.text if each.value is None else each.condition.spell_measured(each.value)
            yield f"{subject} {came} (expected {wanted})"
    if statistics.course is not None:
        yield from statistics.course.steadiness.describe_decline()


@dataclass(frozen=True, slots=True)
class Envelope:
    """What was found of a store."""

    cells: tuple[EnvelopeCell, ...]
    mixed: tuple[MixedLoad, ...]  # that of each store; none where it was not run
    condition: str  # the condition of all cells, in words
    minutes: float  # that were asked for
    storage_url: str
    settings: tuple[tuple[str, str], ...] = ()  # all of the runs, by name
    command: str = ""  # the line that makes it again; empty: no command line made it
    conditions: tuple[Judged, ...] = ()  # those of --fail-if
    notes: tuple[str, ...] = ()  # what could not be tried, and why it ended before its time
    not_asked: tuple[str, ...] = ()  # what was not tried because nobody asked for it
    took: str = ""  # how long, in words
    seconds: float = 0.0  # that all of its calls took, to the end of their last runs
    is_shared: bool = False  # other programs took the load generator's CPU in some run
    stores: FamilyComparison | None = None  # the second of two stores against the first
    exit_code: ExitCode = ExitCode.OK


# -- Conditions ------------------------------------------------------------------------------------


_CONDITION = re.compile(
    r"\s*envelope\.(?P<cell>[\w.-]+)\.(?P<figure>rate|users|mb_per_s)"
    r"\s*(?P<relation><=?|>=?)\s*(?P<limit>[\d.]+)\s*\Z",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class EnvelopeCondition:
    """A condition on a figure of a cell, under which the command fails: ``envelope.4kB.read.rate < 5000``."""

    text: str
    cell: str
    figure: str
    relation: str
    limit: float

    def holds(self, value: float) -> bool:
        """Whether it is true of a value."""
        return RELATIONS[self.relation](value, self.limit)


def parse_envelope_condition(text: str) -> EnvelopeCondition:
    """Parse ``envelope.4kB.read.rate < 5000``; raises ValueError."""
    found = _CONDITION.match(text)
    try:
        limit = float(found["limit"]) if found else math.nan
    except ValueError:
        limit = math.nan
    if found is None or math.isnan(limit):
        raise ValueError(
            f"{text!r} is not a condition on an envelope, such as 'envelope.4kB.read.rate < 5000'; figures"
            " are rate, users and mb_per_s"
        )
    return EnvelopeCondition(text.strip(), found["cell"], found["figure"], found["relation"], limit)


def check_envelope_conditions(conditions: Sequence[EnvelopeCondition], cells: Sequence[str]) -> None:
    """Raise UsageError where a condition names no cell of the envelope."""
    for each in conditions:
        if each.cell not in cells:
            raise UsageError(f"--fail-if {each.text!r}: the envelope has {', '.join(cells)}, not {each.cell}")


def judge_envelope_condition(condition: EnvelopeCondition, cells: Sequence[EnvelopeCell]) -> Judged:
    """Judge a condition by the interval of its figure: undecided where only a part of that is beyond it."""
    (cell,) = (each for each in cells if each.name == condition.cell)
    low, high = _find_range(cell, condition.figure)
    if math.isnan(low) or math.isnan(high):
        return Judged(condition.text, "not known", GateResult.UNDECIDED, "more --minutes")
    came = f"{format_number(low)} to {format_number(high)}"
    if math.isinf(high):
        came = f"at least {format_number(low)}"
    return judge_interval(condition.holds, (low, high), condition.text, came, "more --minutes")


def _find_range(cell: EnvelopeCell, figure: str) -> tuple[float, float]:
    if cell.users is None:
        known = cell.runs > 1  # then it holds at no load
        return (0.0, 0.0) if known else (math.nan, math.nan)
    if figure == "users":
        return float(cell.users_low), math.inf if cell.at_least else float(cell.users_high)
    # What JSON has as null is None here, whatever the type says; of the upper end that is no bound.
    low, high = cell.rate_low or math.nan, math.inf if cell.rate_high is None else cell.rate_high
    each = (cell.moved or math.nan) / (cell.rate or math.nan) / 1e6 if figure == "mb_per_s" else 1.0
    return each * low, each * high
