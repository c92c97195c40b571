"""Earlier runs of an archive that are equal to others but for what each run draws: their noise floor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ssbench.comparison.entry import Entry, past_of
from ssbench.comparison.floor import Floors, Past

#: What equal runs need not have in common; a local Swift listens elsewhere each time.
_FREE = ("seed",)
_FREE_IF_LOCAL = ("storage URL",)

#: Verdicts of runs that did not end as they should.
_LEFT_OUT = ("interrupted", "incomplete")


def floors_of(
    entries: Iterable[Entry], configurations: Sequence[Mapping[str, str]], compared: Iterable[str]
) -> Floors:
    """Return what runs of some configurations say, which are facts of runs, without those that are compared.

    ``compared`` are the names of their files.
    """
    wanted = [_essence(facts) for facts in configurations]
    found: list[list[Past]] = [[] for _ in wanted]
    left_out = {Path(name).name for name in compared}
    for entry in entries:
        if Path(entry.file).name in left_out or entry.verdict in _LEFT_OUT:
            continue
        facts = json.loads(entry.facts)
        essence = _essence(facts) if isinstance(facts, dict) else None
        if essence in wanted:
            found[wanted.index(essence)].append(past_of(entry))
    return Floors(found)


def _essence(facts: Mapping[str, str]) -> dict[str, str]:
    free = _FREE + (_FREE_IF_LOCAL if facts.get("local swift") else ())
    return {name: value for name, value in facts.items() if name not in free and value}
