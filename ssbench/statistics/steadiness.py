"""Whether a run was steady: its drift, the warm-up that it shows."""

from __future__ import annotations

from dataclasses import dataclass

from ssbench.statistics.confidence import Interval, Series, drift, is_steady, warm_up

#: In shorter runs a cut is as likely noise as a warm-up.
_LEAST_FOR_WARM_UP = 60


@dataclass(frozen=True, slots=True)
class Steadiness:
    """What the successes of each second say of a run as a whole.

    ``drift`` is the change of the rate a minute as a share of the mean, None where the run was too short.
    ``warm_up`` is how many seconds MSER-5 would leave out at the beginning, None where that is not known:
    the run was shorter than a minute, or not steady by its half.
    """

    drift: Interval | None
    steady: bool
    warm_up: int | None

    def warning(self) -> str | None:
        """Say that the run was not steady; None where it was, or nothing is known."""
        if self.steady or self.drift is None:
            return None
        change = 50 * (self.drift.low + self.drift.high)
        return (
            f"the run was not steady by its end: its rate {'rose' if change > 0 else 'fell'} by"
            f" {abs(change):.0f} % a minute; a longer run, or --warmup, would say more"
        )


def steadiness(series: Series) -> Steadiness:
    """Judge the successes of whole seconds."""
    cut = warm_up(series) if len(series) >= _LEAST_FOR_WARM_UP else None
    return Steadiness(drift(series), is_steady(series), cut)
