"""Whose the objects of a run are: what their metadata says, so that another scenario does not reuse them.

Two scenarios may have a size class of the same name. The sizes of both may overlap, so the size of an object
does not tell which of them it is of.
"""

from __future__ import annotations

from hashlib import blake2b
from urllib.parse import quote, unquote

from ssbench.scenario.model import Scenario, SizeClass

#: Swift takes 256 bytes of a value.
_MAX_OWNER_BYTES = 200


def make_owner(scenario: Scenario, size_class: SizeClass) -> str:
    """Return what the metadata of the objects of a size class says: a digest, and the scenario's name.

    It is the same as long as the scenario, the class, its sizes, the bodies and the metadata are; users,
    weights and the number of objects do not matter.
    """
    parts = [scenario.name, size_class.name, str(size_class.size_min), str(size_class.size_max)]
    if size_class.shape is not None:
        parts.append(repr(size_class.shape))
    if scenario.body is not None and scenario.body.identity:
        parts.append(scenario.body.identity)
    if scenario.metadata is not None:
        parts.append(repr(scenario.metadata))
    digest = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{digest} {quote(scenario.name, ' ', errors='replace')}"[:_MAX_OWNER_BYTES].rstrip()


def parse_owner_name(owner: str) -> str:
    """Return the name of the scenario that the metadata of an object says it is of."""
    return unquote(owner.partition(" ")[2])[:_MAX_OWNER_BYTES]


def explain_replacement(replaced: int, of_others: int, *, verified: bool = False, exact: bool = False) -> str:
    """Return why initial objects were uploaded although there were some of their names; or nothing.

    So many were ``replaced``, of which so many were objects ``of_others``. ``exact``: each has to have the
    size that is prepared, and not any of its class.
    """
    if not replaced:
        return ""
    if verified:
        return "to verify their content"
    size = "size not the one to prepare" if exact else "size outside the range of their class"
    if not of_others:
        return size
    others = "objects of another scenario"
    return others if of_others == replaced else f"{of_others} {others}, {replaced - of_others} {size}"
