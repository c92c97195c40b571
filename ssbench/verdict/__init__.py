"""The verdict on a run, made once from its statistics; reports and the exit code only show it.

It knows neither files nor screens, and no words but those of its reasons.
"""

from ssbench.verdict.asked import Load, asked_of, delivered_of
from ssbench.verdict.reasons import Kind, Reason, retried
from ssbench.verdict.verdict import Outcome, Verdict, verdict_of

__all__ = [
    "Kind",
    "Load",
    "Outcome",
    "Reason",
    "Verdict",
    "asked_of",
    "delivered_of",
    "retried",
    "verdict_of",
]
