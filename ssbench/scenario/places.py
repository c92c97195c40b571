"""How many containers a scenario has, and whether the names of its objects can be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ssbench.scenario.model import SizeClass, UserGroup
from ssbench.scenario.names import object_prefix
from ssbench.scenario.object_names import explain_wrong_template

#: The key in place of container_count.
PER_CONTAINER_KEY = "objects_per_container"


def explain_container_conflict(values: Mapping[str, Any]) -> str:
    """Return why a scenario or a group cannot have these values together; empty where it can."""
    both = values.keys() >= {PER_CONTAINER_KEY, "container_count"}
    return "expected this or container_count, not both" if both else ""


def count_containers(values: Mapping[str, Any], classes: Sequence[SizeClass]) -> dict[str, Any]:
    """Return the values of a scenario or a group that say how many containers it has.

    There are as many as its initial objects fill with ``objects_per_container`` each, one at least.
    """
    if (most := values.get(PER_CONTAINER_KEY)) is not None:
        return {"container_count": max(-(-sum(each.initial_files for each in classes) // most), 1)}
    return {key: values[key] for key in ("container_count",) if key in values}


def classes_without_containers(groups: Sequence[UserGroup]) -> list[SizeClass]:
    """Return the size classes of all groups that do not say how many containers they have."""
    return [each for group in groups if group.container_count is None for each in group.size_classes]


def find_wrong_names(template: str | None, users: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the names of objects, each with the key of the scenario that it is about.

    ``users`` are the groups with each of their size classes; the name of the one group of a scenario without
    groups is empty.
    """
    found: dict[str, tuple[str, str]] = {}
    for group, own in users:
        other, its = found.setdefault(object_prefix(group, own), (group, own))
        if other != group:
            same = f"its {own!r} and {its!r} of the group {other!r} would have objects of the same names"
            yield "groups", f"expected another name than {group!r}: {same}"
    wrong = (explain_wrong_template(template, prefix) for prefix in found) if template is not None else ()
    yield from (("object_names", text) for text in [*filter(None, wrong)][:1])
