"""Reads the key ``groups`` of a scenario, and makes a scenario of the groups of users there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

from ssbench.base.errors import UsageError, did_you_mean
from ssbench.scenario import consistency
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.key_rules import INITIAL_FILES_RULE, SHARE_RULE, read_segments
from ssbench.scenario.model import (
    GROUP_RULES,
    STRUCTURED_GROUP_KEYS,
    Scenario,
    SizeClass,
    Stage,
    UserGroup,
    Weights,
)
from ssbench.scenario.operations import OPERATIONS, OperationSettings
from ssbench.scenario.parsed_text import KeyPath, spell_path
from ssbench.scenario.value_rules import Rule, shorten_value

#: Keys of a group whose values a :class:`UserGroup` takes as they are.
_COPIED_KEYS = tuple(
    key
    for key in GROUP_RULES
    if key in {each.name for each in fields(UserGroup)} and key not in {"name", "container_count"}
)

#: Operations of which a group may have settings of its own, under the name of each; the key that it sets.
_OPERATION_KEYS = {row.name: row.group_key for row in OPERATIONS if row.group_key}


@dataclass(slots=True)
class GroupEntry:
    """A group as the file gives it."""

    values: dict[str, Any]  # those that are valid
    entry: Mapping[str, Any]  # its entry in the file
    path: KeyPath  # that of the entry
    stages: tuple[Stage, ...]
    profile: Any
    sizes: dict[str, float] | None = None  # weights of size classes; None: it names none
    initial_files: dict[str, int] = field(default_factory=dict)  # its own numbers

    @property
    def name(self) -> str:
        """Its name; empty where that is missing or wrong."""
        return str(self.values.get("name", ""))

    @property
    def has_profile(self) -> bool:
        """Whether the file gives it a profile, a valid one or not."""
        keys = ("profile", "crud_profile", *_OPERATION_KEYS)
        return any(self.entry.get(key) is not None for key in keys)

    @property
    def operations(self) -> tuple[OperationSettings, ...]:
        """The valid settings of operations that it has of its own."""
        return tuple(
            OperationSettings(name, values={key: self.values[name]})
            for name, key in _OPERATION_KEYS.items()
            if name in self.values
        )

    def uses(self, size_class: str) -> bool:
        """Whether it names a size class among its own, or has initial files of it and names none."""
        named = self.initial_files if self.sizes is None else self.sizes
        return bool(named.get(size_class))

    def may_use(self, size_class: str) -> bool:
        """Whether it uses a size class that the scenario uses."""
        return self.sizes is None or self.uses(size_class)

    def group(
        self,
        used: Sequence[Mapping[str, Any]],
        initial: Mapping[str, int],
        default: Any,
        weights: Callable[[Any], Weights],
    ) -> UserGroup:
        """Return the group, where all values are valid.

        ``used`` are the size classes of the scenario, ``initial`` its initial files and ``default`` its
        profile; ``weights`` makes weights of a profile.
        """
        classes = []
        for entry in used:
            name = entry["name"]
            weight = None if self.sizes is None else float(self.sizes.get(name, 0.0))
            files = self.initial_files.get(name, initial.get(name, 0)) if weight is None or weight else 0
            profile = next(
                each for each in (self.profile, entry.get("crud_profile"), default) if each is not None
            )
            ends = entry["size_min"], entry["size_max"]
            parts = read_segments(entry)
            classes.append(SizeClass(name, *ends, files, weights(profile), entry["shape"], weight, *parts))
        return UserGroup(
            self.name,
            tuple(classes),
            consistency.count_most_users(self.stages, self.values.get("users")),
            stages=self.stages,
            operations=self.operations,
            **consistency.count_containers(self.values, classes),
            **{key: self.values[key] for key in _COPIED_KEYS if key in self.values},
        )


class _Values(Protocol):
    def __call__(
        self,
        mapping: dict[str, Any],
        path: KeyPath,
        rules: dict[str, Rule],
        structures: tuple[str, ...] = (),
    ) -> dict[str, Any]: ...


class GroupReader:
    """Reads the groups of a file with the means of its checker.

    ``values`` returns the valid values of a mapping, ``require`` and ``fault`` add faults, ``stages`` reads
    stages, ``profile`` takes the weights out of values.
    """

    def __init__(
        self,
        values: _Values,
        require: Callable[[dict[str, Any], KeyPath, tuple[str, ...], dict[str, Rule]], None],
        fault: Callable[[KeyPath, str], None],
        stages: Callable[[dict[str, Any], KeyPath], list[dict[str, Any]]],
        profile: Callable[[dict[str, Any], KeyPath], Any],
    ) -> None:
        self._values = values
        self._require = require
        self._fault = fault
        self._stages = stages
        self._profile = profile

    def groups(self, data: Mapping[str, Any]) -> list[GroupEntry]:
        """Return the groups with their valid values, none of a scenario without."""
        groups = data.get("groups")
        if groups is None:
            return []
        if not isinstance(groups, list) or not 0 < len(groups) <= consistency.MAX_GROUPS:
            expected = f"a list of 1 to {consistency.MAX_GROUPS} groups of users"
            self._fault(("groups",), f"groups: expected {expected}, not {shorten_value(groups)}")
            return []
        found: list[GroupEntry] = []
        operations = data.get("operations")
        # Those of other scenarios that were read do not matter.
        defined = {
            each.get("name")
            for each in (operations if isinstance(operations, list) else ())
            if isinstance(each, dict)
        }
        for index, entry in enumerate(groups):
            path: KeyPath = ("groups", index)
            if not isinstance(entry, dict):
                self._fault(path, f"{spell_path(path)}: expected a mapping, not {shorten_value(entry)}")
                continue
            group = self._group(entry, path)
            if group.name and group.name in [each.name for each in found]:
                wrong = f"expected a name of its own, {group.name!r} is taken"
                self._fault((*path, "name"), f"{spell_path(path)}.name: {wrong}")
            if group.name and group.name.lower() in defined:
                wrong = f"expected a name that is not that of an operation, not {group.name!r}"
                self._fault((*path, "name"), f"{spell_path(path)}.name: {wrong}")
            found.append(group)
        return found

    def _group(self, entry: dict[str, Any], path: KeyPath) -> GroupEntry:
        values = self._values(entry, path, GROUP_RULES, STRUCTURED_GROUP_KEYS)
        stages = self._stages(entry, path)
        with_users = bool(stages) and all(stage["has_users"] for stage in stages)
        self._require(entry, path, ("name",) if with_users else ("name", "users"), GROUP_RULES)
        valid = tuple(
            Stage(each["seconds"], each.get("users"), each.get("rate"))
            for each in stages
            if "seconds" in each
        )
        profile = self._profile(values, path)
        own = [name for name in _OPERATION_KEYS if name in values]
        if own and profile is None:
            profile = dict.fromkeys(own, 1)
        for name in own:
            if not (isinstance(profile, dict) and profile.get(name)):
                place = (*path, name)
                self._fault(
                    place, f"{spell_path(place)}: expected a weight of {name} in profile, or no profile"
                )
        return GroupEntry(values, entry, path, valid, profile)

    def check_sizes(
        self,
        groups: Sequence[GroupEntry],
        classes: Sequence[Mapping[str, Any]],
        initial: Mapping[str, int],
    ) -> None:
        """Check ``sizes`` and ``initial_files`` of each group, and add their valid values to it.

        ``initial`` are the initial files of the scenario.
        """
        names = [entry["name"] for entry in classes if "name" in entry]
        for group in groups:
            sizes = self._numbers(group, "sizes", SHARE_RULE, names)
            if sizes is not None and not any(sizes.values()):
                path = (*group.path, "sizes")
                self._fault(path, f"{spell_path(path)}: expected a number above 0 for one class or more")
            group.sizes = sizes
            own = group.initial_files = self._numbers(group, "initial_files", INITIAL_FILES_RULE, names) or {}
            if own and sizes is None and not any((dict(initial) | own).values()):
                path = (*group.path, "initial_files")
                expected = "a number above 0 for one class or more, or sizes, which say what the group uses"
                self._fault(path, f"{spell_path(path)}: expected {expected}")
            used = ", ".join(name for name in names if group.uses(name))
            for name in [
                each for each in own if used and each in names and own[each] and not group.uses(each)
            ]:
                path = (*group.path, "initial_files", name)
                self._fault(
                    path,
                    f"{spell_path(path)}: expected a size class that the sizes of group {group.name!r} have"
                    f" ({used}), or 0",
                )

    def _numbers(
        self, group: GroupEntry, key: str, rule: Rule, names: Sequence[str]
    ) -> dict[str, Any] | None:
        """Return the valid numbers of size classes under a key; None where it is not there."""
        given = group.entry.get(key)
        path = (*group.path, key)
        if given is None:
            return None
        if not isinstance(given, dict) or not given:
            self._fault(
                path,
                f"{spell_path(path)}: expected a mapping of size classes to numbers, not"
                f" {shorten_value(given)}",
            )
            return {}
        given = {name: rule.read(value) for name, value in given.items()}
        for name, value in given.items():
            where = f"{spell_path((*path, name))}: expected "
            if name not in names:
                known = f"the name of a size class in sizes ({', '.join(names)}), not {name!r}"
                self._fault((*path, name), f"{where}{known}{did_you_mean(str(name), names)}")
            elif not rule.accepts(value):
                self._fault((*path, name), f"{where}{rule.expected}, not {shorten_value(value)}")
        return {name: value for name, value in given.items() if rule.accepts(value)}


def combine_groups(groups: Sequence[UserGroup], **values: Any) -> Scenario:
    """Return a scenario of these groups; ``values`` are what it says besides."""
    values.setdefault(
        "run_seconds", max(sum(stage.seconds for stage in group.stages) for group in groups) or None
    )
    return Scenario(**_add_up_groups(groups), **values)


def _add_up_groups(groups: Sequence[UserGroup]) -> dict[str, Any]:
    """Return the values of a scenario that follow from its groups."""
    size_classes = tuple(
        replace(classes[0], initial_files=sum(each.initial_files for each in classes), weight=None)
        for classes in zip(*(group.size_classes for group in groups), strict=True)
    )
    users = sum(group.user_count for group in groups)
    return {"size_classes": size_classes, "user_count": users, "groups": tuple(groups)}


def refuse_unknown_group(scenario: Scenario, name: str) -> None:
    """Raise UsageError where a scenario has no such group."""
    names = [each.name for each in scenario.groups]
    if not names:
        raise UsageError(f"{name}: the scenario {scenario.name!r} has no groups of users")
    if name not in names:
        raise UsageError(
            f"{name} is not a group of users of the scenario {scenario.name!r}, which has"
            f" {', '.join(names)}{did_you_mean(name, names)}"
        )


def leave_out_group(scenario: Scenario, name: str) -> Scenario:
    """Return a scenario without one of its groups of users, and without the conditions on that group.

    Raises UsageError where it has no such group, or no other one.
    """
    refuse_unknown_group(scenario, name)
    if len(scenario.groups) == 1:
        raise UsageError(f"scenario {scenario.name} has no users but those of group {name!r}")
    defined = scenario.defined_operations
    return replace(
        scenario,
        **_add_up_groups([each for each in scenario.groups if each.name != name]),
        fail_if=tuple(
            each for each in scenario.fail_if if parse_condition(each, defined, grouped=True).group != name
        ),
    )
