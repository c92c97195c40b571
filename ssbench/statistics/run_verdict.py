"""The verdict on a run: one outcome, the reasons for it, and the exit code that follows.

:func:`verdict_of` sets what the run was asked for beside what it delivered, in the same figures, and collects
the reasons why it is not simply good, each with its exit code.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

import msgspec

from ssbench.base.errors import SEVERITY, ExitCode, Undecided, choose_worst_code
from ssbench.base.record import Count, PerSecond, Seconds, Share
from ssbench.document.units import (
    format_latency,
    format_number,
    format_percent,
    format_run_length,
    format_share,
)
from ssbench.scenario.conditions import Condition
from ssbench.scenario.model import Scenario
from ssbench.scenario.operations import (
    LARGE_BYTES,
    LARGE_SAMPLE_INTERVAL,
    SAMPLE_INTERVAL,
)
from ssbench.statistics.latency_parts import LATE_START_SECONDS
from ssbench.statistics.run_statistics import RunPart, RunStatistics
from ssbench.statistics.set_limits import describe_met_limits
from ssbench.statistics.thresholds import ConditionJudgment, judge_run

#: What is said of runs with ``--noop``.
NOTHING_SENT = "nothing was sent to Swift"


class Load(msgspec.Struct, frozen=True, rename={"rate": "ops_per_second"}):
    """A load, as it was asked for or as it was; null for what was not asked for, or is not known."""

    rate: PerSecond | None = None  # operations that ended
    #: Operations that were under way at once, of an open loop and of stages at most.
    users: float | None = None
    seconds: Seconds | None = None  # for how long operations were sent
    operations: Count | None = None  # operations in all
    mix: dict[str, Share] = {}  # the share of each operation, by its name


class GroupLoad(msgspec.Struct, frozen=True):
    """The load that a group of users was asked for, and what it was."""

    group: str
    asked: Load
    delivered: Load


def loads_by_group(statistics: RunStatistics) -> tuple[GroupLoad, ...]:
    """Return the loads of each group of users, none of a run without."""
    return tuple(
        GroupLoad(each.name, asked_load(each.numbers), delivered_load(each.numbers))
        for each in statistics.by_group
    )


def asked_load(statistics: RunStatistics) -> Load:
    """Return what the scenario asks for; of an open loop, as many operations as were due."""
    scenario, delivery = statistics.run.scenario, statistics.delivery
    by_rate = delivery is not None and not scenario.is_mixed
    rates = [each.rate for each in scenario.groups]
    return Load(
        rate=sum(each or 0.0 for each in rates) if rates and None not in rates else scenario.rate,
        users=float(scenario.user_count),
        seconds=scenario.run_seconds,
        operations=delivery.due if by_rate and delivery else scenario.operation_count or None,
        mix=asked_mix(scenario),
    )


def delivered_load(statistics: RunStatistics) -> Load:
    """Return what was done: operations that ended, those of the warm-up and failed ones too."""
    total, course, scenario = statistics.total, statistics.course, statistics.run.scenario
    ended = total.count + total.failed
    users = None
    if course and course.busy is not None and not scenario.is_open and not scenario.is_staged:
        users = course.busy * scenario.user_count
    seconds = statistics.sending
    if seconds is not None and course and not scenario.run_seconds:
        # All may be handed out at once, and begun by workers later.
        seconds = max(seconds, course.window.seconds)
    rate = total.requests_per_second
    return Load(
        rate=rate if math.isfinite(rate) else None,
        users=users,
        seconds=statistics.duration if seconds is None else seconds,
        operations=ended + statistics.warmed_up,
        mix={
            section.operation.name: (section.count + section.failed) / ended
            for section in statistics.sections
            if section.operation and ended
        },
    )


def asked_mix(scenario: Scenario) -> dict[str, float]:
    """Return the share of each operation that a scenario asks for; nothing where each group has its own."""
    if scenario.groups:
        return {}
    files = sum(each.share for each in scenario.size_classes)
    shares: dict[str, float] = {}
    for each in scenario.size_classes:
        total = sum(each.weights.values())
        for name, weight in each.weights.items():
            if files and total and each.share and weight:
                shares[name] = shares.get(name, 0.0) + each.share / files * weight / total
    # The sum of the shares of size classes may come out as the next number above 1.
    return {
        each.name: min(1.0, shares[each.name])
        for each in scenario.operation_table.drawn
        if each.name in shares
    }


# -- Reasons ---------------------------------------------------------------------------------------


#: More of what was due than this share, late or never begun, is a warning.
LATE_SHARE = 0.01

#: More of what was due than this share, never begun, means that the rate was not delivered.
UNDELIVERED_SHARE = 0.01

#: More of what was drawn than this share, without an object to work on, means that the mix was another.
_NOT_SENDABLE_SHARE = 0.01

#: The share of an operation is another one where it differs by more than this, and by more than so many
#: times its standard deviation.
_MIX_TOLERANCE = 0.05
_CHANCE_DEVIATIONS = 4.0

#: More of all requests than this share, retried after one failed, is a warning.
_RETRIED_SHARE = 0.01

#: Listings that lack more of the names that exist than this share do not only lag. A healthy Swift of three
#: replicas lacked none at all, with a container server slow or stopped for a while at most 0.3 %, with one
#: that was down for 5 to 50 s 2 to 9 %.
_MISSING_SHARE = 0.01

#: How many ETags were looked at is known to this share: more lacked their MD5 in nearly all.
_NEARLY_ALL_SHARE = 0.8

_MAX_NAMED_CAUSES = 3

#: A run of which more than this share failed is one that failed, whatever share is allowed.
_MAX_FAILED_SHARE = 0.5


class Kind(Enum):
    """What a reason is about."""

    ENDING = "ending"
    CONDITION = "condition"
    OPERATIONS = "operations"
    RETRIES = "retries"
    MIX = "mix"
    DELIVERY = "delivery"
    STALL = "stall"
    LIMIT = "limit"
    WARNINGS = "warnings"


class Reason(msgspec.Struct, frozen=True, rename={"kind": "about"}):
    """A reason for the verdict."""

    kind: Kind  # what it is about
    text: str  # one sentence without a full stop
    exit_code: ExitCode = ExitCode.OK  # the one that it leads to; 0 of a warning or a remark
    warns: bool = True  # False of what was allowed
    group: str | None = None  # the group of users that it is about; None: all

    @property
    def in_summary(self) -> bool:
        """Whether the summary has its sentence.

        Its first line, rows and warnings say how the run ended, conditions, failures and warnings. What
        answers lacked is nowhere else.
        """
        if self.group is not None:
            return True
        if self.kind is Kind.OPERATIONS:
            return self.warns and self.exit_code is ExitCode.OK
        return self.kind not in {Kind.ENDING, Kind.CONDITION, Kind.WARNINGS}


def reason_weight(reason: Reason) -> int:
    """Return how bad a reason is."""
    return 2 * SEVERITY.index(reason.exit_code) + reason.warns


def undecided_as(statistics: RunStatistics) -> Undecided:
    """Return what the run was asked to count undecided conditions as."""
    recorded = statistics.run.options.get("undecided")
    return next((each for each in Undecided if each.value == recorded), Undecided.REPORT)


#: Operations that make objects of several requests, of which a killed run may leave some.
_LARGE_OBJECT_OPERATIONS = ("slo", "dlo")


def _makes_large_objects(scenario: Scenario) -> bool:
    return any(
        each.segment_size or any(each.weights.get(name) for name in _LARGE_OBJECT_OPERATIONS)
        for each in scenario.size_classes
    )


def find_ending_reasons(statistics: RunStatistics) -> Iterator[Reason]:
    """Yield why the run did not go on to its end, and what failed besides operations."""
    if statistics.start is None:
        yield Reason(Kind.ENDING, "there is no result", ExitCode.FAILED)
    lasted = f"after {format_run_length(statistics.lasted)} s"
    if not statistics.complete:
        yield Reason(
            Kind.ENDING,
            "the run is still under way, was killed, or its disk was full: this is what it has written so"
            " far",
            ExitCode.FAILED,
        )
        if _makes_large_objects(statistics.run.scenario):
            yield Reason(
                Kind.ENDING,
                "if it was killed, segments without a manifest, or unfinished uploads, may be left, which"
                " 'ssbench-master cleanup-containers' deletes",
                ExitCode.FAILED,
            )
    if statistics.interrupted:
        yield Reason(Kind.ENDING, f"the run was interrupted {lasted}", ExitCode.INTERRUPTED)
    if statistics.ended_early:
        yield Reason(
            Kind.ENDING,
            f"the run ended early, {lasted}; a warning says why",
            _exit_code_of(statistics.error_code),
        )
    if statistics.trouble:
        yield Reason(
            Kind.ENDING, "something besides the operations failed; a warning says what", ExitCode.FAILED
        )


def _exit_code_of(number: int) -> ExitCode:
    try:
        return ExitCode(number) or ExitCode.FAILED
    except ValueError:  # of a later version
        return ExitCode.FAILED


def find_condition_reasons(judgments: Sequence[ConditionJudgment], undecided: Undecided) -> Iterator[Reason]:
    """Yield the conditions that hold, and those that are undecided."""
    codes = {
        Undecided.REPORT: ExitCode.UNDECIDED,
        Undecided.AS_FAILED: ExitCode.THRESHOLD,
        Undecided.AS_PASSED: ExitCode.OK,
    }
    for judgment in judgments:
        if judgment.failed:
            yield Reason(Kind.CONDITION, f"fail-if {judgment.text}", ExitCode.THRESHOLD)
        elif judgment.undecided:
            yield Reason(Kind.CONDITION, f"fail-if {judgment.text}", codes[undecided])


def find_failure_reasons(
    statistics: RunStatistics, judgments: Sequence[ConditionJudgment]
) -> Iterator[Reason]:
    """Yield what failed."""
    total = statistics.total
    ended = total.count + total.failed
    if total.failed:
        causes = _name_causes({name: cause.count for name, cause in statistics.errors.items()})
        text = (
            f"{total.failed:,} of {ended:,} operations failed ({format_share(total.failed, ended)}): {causes}"
        )
        allowed = total.failed <= _MAX_FAILED_SHARE * ended and _is_allowed(
            "errors", [each for each in judgments if each.condition.group is None]
        )
        yield Reason(Kind.OPERATIONS, text, ExitCode.OK if allowed else ExitCode.FAILED, warns=not allowed)
    if not total.count and statistics.start is not None:
        yield Reason(Kind.OPERATIONS, "no operation succeeded", ExitCode.FAILED)
    if failed := statistics.warmed_up_failed:
        left_out = statistics.warmed_up
        yield Reason(
            Kind.OPERATIONS,
            f"{failed:,} of {left_out:,} operations of the warm-up failed "
            f"({format_share(failed, left_out)}); no figure has them",
        )


def _name_causes(causes: Mapping[str, int]) -> str:
    """Return causes of failures with how often each was, the first few of them."""
    named = [f"{times:,} x {name}" for name, times in causes.items()]
    return (
        ", ".join(named[:_MAX_NAMED_CAUSES]) + (", ..." if len(named) > _MAX_NAMED_CAUSES else "")
    ) or "causes unknown"


def count_retried(statistics: RunStatistics) -> tuple[int, int]:
    """Return how many requests were retried after they failed, 0 of a few, and how many there were."""
    total = statistics.total
    again = total.counted["retries"]
    requests = total.count + total.failed + again
    return (again if again > _RETRIED_SHARE * requests else 0), requests


def find_retry_reasons(statistics: RunStatistics, judgments: Sequence[ConditionJudgment]) -> Iterator[Reason]:
    """Yield that many requests were sent again: they failed, and took a user's time, but are in no error."""
    again, requests = count_retried(statistics)
    resent = statistics.total.counted["resent"]
    if resent > _RETRIED_SHARE * (requests + resent):
        yield Reason(
            Kind.RETRIES,
            f"{resent:,} of {requests + resent:,} requests ({format_share(resent, requests + resent)})"
            f" {'was' if resent == 1 else 'were'} sent again on new connections, because kept ones had been"
            " closed",
        )
    if not again:
        return
    course = statistics.course
    pausing = course.pausing if course else 0.0
    pauses = (
        f"; users spent {format_percent(pausing)} % of their time in pauses before that"
        if pausing > 0
        else ""
    )
    repeated = statistics.total.counted["repeated"]
    uploads = f"; {repeated:,} upload{'s' * (repeated > 1)} may have been done twice" if repeated else ""
    yield Reason(
        Kind.RETRIES,
        f"{again:,} of {requests:,} requests ({format_share(again, requests)}) {_describe_retries(again)}:"
        f" {_name_causes(statistics.retries)}{uploads}{pauses}",
        warns=not _is_allowed("retries", judgments),
    )


def _describe_retries(again: int) -> str:
    return "was retried after it failed" if again == 1 else "were retried after they failed"


def find_answer_reasons(statistics: RunStatistics) -> Iterator[Reason]:
    """Yield what answers lacked of which the statuses are those of successes."""
    counted = statistics.total.counted
    missing = counted["missing_names"]
    names = counted["entries"] + missing
    if missing > _MISSING_SHARE * names:
        yield Reason(
            Kind.OPERATIONS,
            f"listings lacked {missing:,} of {names:,} names ({format_share(missing, names)}), of objects "
            "that existed before and after",
        )
    if unsent := counted["unsent"]:
        yield Reason(
            Kind.OPERATIONS,
            f"{_describe_answers(unsent, 'upload')} answered before the body was sent: bytes count only"
            " what was sent",
        )
    if unchecked := counted["unchecked"]:
        yield Reason(
            Kind.OPERATIONS,
            f"the store sent no MD5 as ETag in {unchecked:,} answers, {_describe_unchecked(statistics)} of"
            " those that were looked at: bodies were checked by their length alone",
        )


def _describe_unchecked(statistics: RunStatistics) -> str:
    """Say about how large a share of the ETags that were looked at were none.

    Only operations count that lacked some; how many of theirs were looked at follows from their sizes.
    """
    every = bool(statistics.run.options.get("verify"))
    unchecked, looked_at = 0, 0.0
    for section in statistics.sections:
        for line in section.lines[1:] if section.operation else ():
            if lacking := line.counted["unchecked"]:
                size = line.moved / max(line.count, 1)
                interval = LARGE_SAMPLE_INTERVAL if size > LARGE_BYTES else SAMPLE_INTERVAL
                unchecked += lacking
                # The first body of each worker is looked at, which may have been an initial upload.
                looked_at += line.count if every else line.count / interval + statistics.worker_count / 2
    share = unchecked / looked_at if looked_at else 1.0
    return "about all" if share > _NEARLY_ALL_SHARE else f"about {format_percent(share)} %"


def _describe_answers(number: int, what: str) -> str:
    return f"1 {what} was" if number == 1 else f"{number:,} {what}s were"


def find_mix_reasons(statistics: RunStatistics) -> Iterator[Reason]:
    """Yield how operations were others than the scenario asks for, and which had no object to work on.

    Groups of users are judged each by itself (:func:`find_group_reasons`), here and in
    :func:`find_delivery_reasons`.
    """
    if statistics.by_group:
        return
    if statistics.current and (other := _find_other_mix(statistics)):
        yield Reason(Kind.MIX, f"the mix differed from the scenario's: {other}")
    lacking: Counter[str] = Counter()
    for operation, _, times in statistics.not_sendable:
        lacking[operation.name.upper()] += times
    if missing := lacking.total():
        drawn = statistics.total.count + statistics.total.failed + missing
        names = ", ".join(f"{times:,} x {name}" for name, times in lacking.items())
        yield Reason(
            Kind.MIX,
            f"{missing:,} of {drawn:,} operations ({format_share(missing, drawn)}) were not sent, because no "
            f"object existed: {names}",
            warns=missing > _NOT_SENDABLE_SHARE * drawn,
        )


def _find_other_mix(statistics: RunStatistics) -> str:
    """Return which operations had a clearly different share of all than was asked for; empty without any."""
    asked, delivered = asked_mix(statistics.run.scenario), delivered_load(statistics).mix
    ended = statistics.total.count + statistics.total.failed
    found = []
    for name in dict.fromkeys((*asked, *delivered)):
        wanted, came = asked.get(name, 0.0), delivered.get(name, 0.0)
        chance = _CHANCE_DEVIATIONS * math.sqrt(max(0.0, wanted * (1 - wanted)) / ended) if ended else 1.0
        if abs(came - wanted) > max(_MIX_TOLERANCE, chance):
            found.append(f"{name} {format_percent(came)} of {format_percent(wanted)} %")
    return ", ".join(found)


def find_delivery_reasons(
    statistics: RunStatistics, judgments: Sequence[ConditionJudgment]
) -> Iterator[Reason]:
    """Yield what an open loop did not deliver."""
    delivery = statistics.delivery
    if delivery is None or not delivery.due or statistics.by_group:
        return
    allowed = _is_allowed("undelivered", judgments)
    code = ExitCode.OK if allowed else ExitCode.NOT_DELIVERED
    if delivery.undelivered > UNDELIVERED_SHARE:
        yield Reason(
            Kind.DELIVERY,
            f"{delivery.not_begun:,} of {delivery.due:,} operations that were due never began"
            f" ({format_share(delivery.not_begun, delivery.due)}): the store is too slow,"
            f" or the users are too few",
            code,
        )
    elif delivery.behind > UNDELIVERED_SHARE:
        yield Reason(
            Kind.DELIVERY,
            f"the store fell behind the rate: in the second half {format_share(delivery.behind, 1)} fewer "
            "operations ended than were due",
            code,
        )
    elif delivery.climb > UNDELIVERED_SHARE:
        yield Reason(
            Kind.DELIVERY,
            f"the store fell behind the rate: response times rose by {format_latency(delivery.climb)} each "
            f"second, so that {format_share(delivery.climb, 1)} less was done than was due",
            code,
        )
    elif delivery.late_or_not_begun > LATE_SHARE:
        late = delivery.late + delivery.not_begun
        yield Reason(
            Kind.DELIVERY,
            f"{late:,} of {delivery.due:,} operations due began more than {LATE_START_SECONDS * 1000:g} ms "
            f"late or never ({format_share(late, delivery.due)})",
        )


def find_stall_reasons(statistics: RunStatistics) -> Iterator[Reason]:
    """Yield that the store did not answer for a time."""
    course, stalls = statistics.course, statistics.store_stalls
    if course is None or not stalls:
        return
    lasted, seconds = sum(each.seconds for each in stalls), course.window.seconds
    longest = max(stalls, key=lambda each: each.seconds)
    where = f"from second {longest.start:.1f} on"
    if len(stalls) > 1:
        where = f"in {len(stalls)} stalls, the longest of {longest.seconds:.1f} s {where}"
    text = (
        f"the store did not answer for {lasted:.1f} s of {format_run_length(seconds)}"
        f" ({format_share(lasted, seconds)}), {where}"
    )
    scenario = statistics.run.scenario
    if not scenario.is_open and not scenario.is_staged:
        slow = math.ceil(scenario.user_count) * len(stalls)
        text += f"; a closed loop counts that as {slow:,} slow operation{'s' * (slow > 1)} at most"
    if lasted < seconds:
        rate = statistics.total.window_totals.count / (seconds - lasted)
        text += f"; without it the rate is {format_number(rate)}/s"
    yield Reason(Kind.STALL, text)


def find_group_reasons(
    group: RunPart, statistics: RunStatistics, judgments: Sequence[ConditionJudgment]
) -> Iterator[Reason]:
    """Yield how a group of users did something else than it was asked to, in a run of ``statistics``."""
    numbers = group.numbers
    own = [judgment for judgment in judgments if judgment.condition.group in {None, group.name}]
    found = [*find_mix_reasons(numbers), *find_delivery_reasons(numbers, own)]
    if not statistics.store_stalls:  # a stall of all is one of each group
        found += find_stall_reasons(numbers)
    if not count_retried(statistics)[0]:  # too few of all, but perhaps many of this group
        found += find_retry_reasons(numbers, own)
    if not numbers.total.count:
        found.append(Reason(Kind.OPERATIONS, "no operation succeeded", ExitCode.FAILED))
    known = {*statistics.generator.limits, *statistics.generator.lacking}
    own_part = (*numbers.generator.limits, *numbers.generator.lacking)
    found += [Reason(Kind.WARNINGS, text) for text in own_part if text not in known]
    for each in found:
        yield msgspec.structs.replace(each, text=f"group {group.name}: {each.text}", group=group.name)


def find_side_reasons(statistics: RunStatistics) -> Iterator[Reason]:
    """Yield that many requests of a side were sent again, whatever its latencies say."""
    for side in statistics.sides:
        for each in find_retry_reasons(side.numbers, ()):
            yield msgspec.structs.replace(each, text=f"side {side.name}: {each.text}")


def find_load_reasons(statistics: RunStatistics) -> Iterator[Reason]:
    """Yield warnings that the figures of a run are of another load than was asked for, or of failed requests.

    A comparison takes them along: two runs of which one has such a reason are not alike.
    """
    groups = [each for group in statistics.by_group for each in find_group_reasons(group, statistics, ())]
    for each in (
        *find_retry_reasons(statistics, ()),
        *find_mix_reasons(statistics),
        *find_delivery_reasons(statistics, ()),
        *groups,
    ):
        if each.warns and each.kind in _LOAD_KINDS:
            yield each


_LOAD_KINDS = frozenset({Kind.RETRIES, Kind.MIX, Kind.DELIVERY})


def find_warning_reasons(statistics: RunStatistics) -> Iterator[Reason]:
    """Yield that there are warnings, and that nothing was sent to Swift."""
    if statistics.run.options.get("noop"):
        yield Reason(Kind.WARNINGS, f"this was a no-op run: {NOTHING_SENT}")
    warnings = len(statistics.warnings)
    if warnings:
        yield Reason(
            Kind.WARNINGS, f"there {'is 1 warning' if warnings == 1 else f'are {warnings} warnings'}"
        )


def _is_allowed(figure: str, judgments: Sequence[ConditionJudgment]) -> bool:
    """Whether a condition on a figure of all operations says how much of it there may be."""
    return any(
        judgment.condition.figure == figure and judgment.condition.operation is None for judgment in judgments
    )


# -- The verdict -----------------------------------------------------------------------------------


class Outcome(Enum):
    """How a run was; the value is the word for it in JSON."""

    GOOD = "good"
    WARNED = "warned"
    UNDECIDED = "undecided"
    NOT_DELIVERED = "not delivered"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


_OUTCOMES = {
    ExitCode.UNDECIDED: Outcome.UNDECIDED,
    ExitCode.NOT_DELIVERED: Outcome.NOT_DELIVERED,
    ExitCode.INTERRUPTED: Outcome.INTERRUPTED,
}


class RunVerdict(msgspec.Struct, frozen=True):
    """The verdict on a run."""

    reasons: tuple[Reason, ...]  # those for its outcome, the worst first; none where it is good
    judgments: tuple[ConditionJudgment, ...]  # the results of its conditions
    asked: Load  # the load that it was asked for
    delivered: Load  # the load as it was
    groups: tuple[GroupLoad, ...] = ()  # both loads of each group of users

    @property
    def exit_code(self) -> ExitCode:
        """What ``run-scenario`` returns to the shell."""
        return choose_worst_code(reason.exit_code for reason in self.reasons)

    @property
    def gate_code(self) -> ExitCode:
        """What ``report-scenario`` returns: how the figures were judged, and not how the run ended."""
        return choose_worst_code(
            reason.exit_code for reason in self.reasons if reason.exit_code in _FIGURE_EXIT_CODES
        )

    @property
    def outcome(self) -> Outcome:
        """How the run was."""
        code = self.exit_code
        if code is not ExitCode.OK:
            return _OUTCOMES.get(code, Outcome.FAILED)
        return Outcome.WARNED if any(reason.warns for reason in self.reasons) else Outcome.GOOD

    @property
    def undelivered(self) -> list[tuple[str, ExitCode]]:
        """What an open loop did not deliver, and the exit codes of that."""
        return [(each.text, each.exit_code) for each in self.reasons if each.kind is Kind.DELIVERY]


#: The exit codes of figures that were judged.
_FIGURE_EXIT_CODES = (ExitCode.THRESHOLD, ExitCode.NOT_DELIVERED, ExitCode.UNDECIDED)


def verdict_of(
    statistics: RunStatistics,
    conditions: Iterable[Condition] = (),
    undecided: Undecided | None = None,
) -> RunVerdict:
    """Judge a run by its own statistics, by the conditions of its scenario, and by more conditions.

    ``undecided`` is what a condition counts as that is undecided; None: as the run was asked for.
    """
    judgments = judge_run(statistics, conditions)
    found = [
        *find_ending_reasons(statistics),
        *find_condition_reasons(judgments, undecided or undecided_as(statistics)),
        *find_failure_reasons(statistics, judgments),
        *find_retry_reasons(statistics, [each for each in judgments if each.condition.group is None]),
        *find_answer_reasons(statistics),
        *find_mix_reasons(statistics),
        *find_delivery_reasons(statistics, judgments),
        *find_stall_reasons(statistics),
        *(Reason(Kind.LIMIT, text) for text in describe_met_limits(statistics)),
        *find_side_reasons(statistics),
        *(each for group in statistics.by_group for each in find_group_reasons(group, statistics, judgments)),
        *find_warning_reasons(statistics),
    ]
    loads = asked_load(statistics), delivered_load(statistics)
    return RunVerdict(_order_reasons(found), judgments, *loads, loads_by_group(statistics))


def _order_reasons(found: Sequence[Reason]) -> tuple[Reason, ...]:
    """Return reasons with those first that have the worst exit code, then warnings."""
    return tuple(sorted(found, key=lambda each: (-reason_weight(each), found.index(each))))
