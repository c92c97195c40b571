"""How many operations of a run may fail before it ends (``--max-errors``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Operations that must have ended before a share is looked at: the first failure is 100 % of one operation.
LEAST_ENDED = 100

_COUNT = re.compile(r"\d{1,18}\Z", re.ASCII)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*%\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class ErrorLimit:
    """At most ``count`` failures, or at most ``share`` of the operations that ended; the other is None."""

    count: int | None = None
    share: float | None = None

    def exceeded(self, failed: int, ended: int) -> bool:
        """Return whether more have failed, of so many that have ended."""
        if self.count is not None:
            return failed > self.count
        return self.share is not None and ended >= LEAST_ENDED and failed > self.share * ended

    def __str__(self) -> str:
        return f"{100 * (self.share or 0.0):.6g}%" if self.count is None else str(self.count)


def parse(text: str) -> ErrorLimit:
    """Return what ``100`` or ``0.5%`` says; raises ValueError."""
    if _COUNT.match(text):
        return ErrorLimit(count=int(text))
    share = _SHARE.match(text)
    if share is None or float(share[1]) > 100:
        raise ValueError(f"{text!r} is not a number of operations or a share of them, such as 100 or 0.5%")
    return ErrorLimit(share=float(share[1]) / 100)
