"""What is said of a run as a whole: one outcome, the reasons for it, and the exit code that follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from ssbench.base.errors import ExitCode
from ssbench.document.gates import Undecided, choose_worst_code
from ssbench.scenario.conditions import Condition
from ssbench.statistics import reasons
from ssbench.statistics.asked import GroupLoad, Load, asked_load, delivered_load, loads_by_group
from ssbench.statistics.reasons import Kind, Reason
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.thresholds import ConditionJudgment, judge_run


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
    """The verdict on a run. ``reasons`` are those for its outcome, the worst first; none where it is good.

    ``judgments`` are the results of its conditions; ``asked`` and ``delivered`` are set beside each other,
    and so are those of each group of users in ``groups``.
    """

    reasons: tuple[Reason, ...]
    judgments: tuple[ConditionJudgment, ...]
    asked: Load
    delivered: Load
    groups: tuple[GroupLoad, ...] = ()

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
        *reasons.find_ending_reasons(statistics),
        *reasons.find_condition_reasons(judgments, undecided or reasons.undecided_as(statistics)),
        *reasons.find_failure_reasons(statistics, judgments),
        *reasons.find_retry_reasons(statistics, [each for each in judgments if each.condition.group is None]),
        *reasons.find_answer_reasons(statistics),
        *reasons.find_mix_reasons(statistics),
        *reasons.find_delivery_reasons(statistics, judgments),
        *(
            each
            for group in statistics.by_group
            for each in reasons.find_group_reasons(group, statistics, judgments)
        ),
        *reasons.find_warning_reasons(statistics),
    ]
    loads = asked_load(statistics), delivered_load(statistics)
    return RunVerdict(_order_reasons(found), judgments, *loads, loads_by_group(statistics))


def _order_reasons(found: Sequence[Reason]) -> tuple[Reason, ...]:
    """Return reasons with those first that have the worst exit code, then warnings."""
    return tuple(sorted(found, key=lambda each: (-reasons.reason_weight(each), found.index(each))))
