"""What is said of a run as a whole: one outcome, the reasons for it, and the exit code that follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from ssbench.base.errors import ExitCode
from ssbench.document.gates import Undecided, worst
from ssbench.scenario.conditions import Condition
from ssbench.statistics import reasons
from ssbench.statistics.asked import GroupLoad, Load, asked_of, delivered_of, loads_by_group
from ssbench.statistics.reasons import Kind, Reason
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.thresholds import Judgment, judge_run


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


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on a run. ``reasons`` are those for its outcome, the worst first; none where it is good.

    ``judgments`` are the results of its conditions; ``asked`` and ``delivered`` are set beside each other,
    and so are those of each group of users in ``groups``.
    """

    reasons: tuple[Reason, ...]
    judgments: tuple[Judgment, ...]
    asked: Load
    delivered: Load
    groups: tuple[GroupLoad, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """What ``run-scenario`` returns to the shell."""
        return worst(reason.exit_code for reason in self.reasons)

    @property
    def gate_code(self) -> ExitCode:
        """What ``report-scenario`` returns: how the figures were judged, and not how the run ended."""
        return worst(reason.exit_code for reason in self.reasons if reason.exit_code in _OF_FIGURES)

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
_OF_FIGURES = (ExitCode.THRESHOLD, ExitCode.NOT_DELIVERED, ExitCode.UNDECIDED)


def verdict_of(
    statistics: RunStatistics,
    conditions: Iterable[Condition] = (),
    undecided: Undecided | None = None,
) -> Verdict:
    """Judge a run by its own statistics, by the conditions of its scenario, and by more conditions.

    ``undecided`` is what a condition counts as that is undecided; None: as the run was asked for.
    """
    judgments = judge_run(statistics, conditions)
    found = [
        *reasons.of_ending(statistics),
        *reasons.of_conditions(judgments, undecided or reasons.undecided_as(statistics)),
        *reasons.of_operations(statistics, judgments),
        *reasons.of_retries(statistics, [each for each in judgments if each.condition.group is None]),
        *reasons.of_answers(statistics),
        *reasons.of_mix(statistics),
        *reasons.of_delivery(statistics, judgments),
        *(each for group in statistics.by_group for each in reasons.of_group(group, statistics, judgments)),
        *reasons.of_warnings(statistics),
    ]
    loads = asked_of(statistics), delivered_of(statistics)
    return Verdict(_ordered(found), judgments, *loads, loads_by_group(statistics))


def _ordered(found: Sequence[Reason]) -> tuple[Reason, ...]:
    """Return reasons with those first that have the worst exit code, then warnings."""
    return tuple(sorted(found, key=lambda each: (-reasons.weight(each), found.index(each))))
