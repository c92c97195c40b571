"""What operations do to the objects of a run, by their codes."""

from __future__ import annotations

from ssbench.operation import Effect
from ssbench.operations import OPERATIONS
from ssbench.scenario.model import Scenario


class Effects:
    """The effects of operations as a population tells them apart.

    ``by_code`` is a list, which is faster than a dict. In it a change is a rewrite, with its code in
    ``same_data``; a copy needs no object, so that the usual operations need not look for it, with its code in
    ``copies``. ``silent`` are those of the scenario that leave the object as it is and do not return it.
    """

    def __init__(self, scenario: Scenario) -> None:
        effects = {operation.code: operation.effect for operation in OPERATIONS.drawn}
        self.same_data = {code for code, effect in effects.items() if effect is Effect.CHANGES}
        self.copies = {code for code, effect in effects.items() if effect is Effect.COPIES}
        seen = (
            effects | dict.fromkeys(self.same_data, Effect.REWRITES) | dict.fromkeys(self.copies, Effect.NONE)
        )
        self.by_code = [seen.get(code) for code in range(OPERATIONS.length_by_code)]
        self.silent = {
            row.code
            for row in OPERATIONS.drawn
            if row.effect is Effect.READS
            and not row.returns_object
            and any(each.weights.get(row.name) for each in scenario.size_classes)
        }
