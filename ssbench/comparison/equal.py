"""Earlier runs of an archive that are equal to others but for what each run draws: their noise floor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ssbench.comparison.entry import ArchiveEntry, make_earlier_run
from ssbench.comparison.floor import EarlierRun, NoiseFloors

#: What equal runs need not have in common; a local Swift listens elsewhere each time.
_FREE_FACTS = ("seed",)
_FREE_FACTS_IF_LOCAL = ("storage URL",)

#: Verdicts of runs that did not end as they should.
_EXCLUDED_VERDICTS = ("interrupted", "incomplete")


def find_equal_run_floors(
    entries: Iterable[ArchiveEntry], configurations: Sequence[Mapping[str, str]], compared: Iterable[str]
) -> NoiseFloors:
    """Return what runs of some configurations say, which are facts of runs, without those that are compared.

    ``compared`` are the names of their files.
    """
    wanted = [_essential_facts(facts) for facts in configurations]
    found: list[list[EarlierRun]] = [[] for _ in wanted]
    left_out = {Path(name).name for name in compared}
    for entry in entries:
        if Path(entry.file).name in left_out or entry.verdict in _EXCLUDED_VERDICTS:
            continue
        facts = json.loads(entry.facts)
        essence = _essential_facts(facts) if isinstance(facts, dict) else None
        if essence in wanted:
            found[wanted.index(essence)].append(make_earlier_run(entry))
    return NoiseFloors(found)


def _essential_facts(facts: Mapping[str, str]) -> dict[str, str]:
    free = _FREE_FACTS + (_FREE_FACTS_IF_LOCAL if facts.get("local swift") else ())
    return {name: value for name, value in facts.items() if name not in free and value}
