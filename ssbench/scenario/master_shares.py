"""A scenario for several masters at once: the portion of each, and what all of them do together.

Users, rates, numbers of operations and initial objects are shared out, to the last one. All else is the same
for each master: sizes, weights, times. Two portions fit if they differ in nothing but how much they have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeVar

from ssbench.base.errors import UsageError

if (
    TYPE_CHECKING
):  # the model of scenarios is an eighth of what --help would load, which reads `MasterShare` only
    from ssbench.scenario.model import Scenario, SizeClass, UserGroup

#: A fleet of more masters is a mistake.
_MAX_MASTERS = 1000

#: Shares of size classes are the same if they differ by no more than this.
_SHARE_TOLERANCE = 1e-9

#: What may differ between portions: how much each has, how the file was written, where its objects are.
_OWN_FIELDS = {"size_classes", "groups", "stages", "user_count", "operation_count", "rate", "data", "fail_if"}
_OWN_FIELDS |= {"container_base", "phase", "events"}

#: What groups of one name need not have in common.
_OWN_GROUP_FIELDS = {"size_classes", "stages", "user_count", "rate", "container_base"}

_Loaded = TypeVar("_Loaded", "Scenario", "UserGroup")


@dataclass(frozen=True, slots=True)
class MasterShare:
    """Which of how many portions a master carries out, from 1 on."""

    number: int
    of: int
    #: When all masters begin, in seconds since 1970; None: each as soon as it can.
    start_at: float | None = None

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def tag(self) -> str:
        """What keeps the names of its objects apart from those of the others."""
        return f"part{self.number}of{self.of}"

    @property
    def others(self) -> list[MasterShare]:
        """The portions of all other masters."""
        return [MasterShare(number, self.of) for number in range(1, self.of + 1) if number != self.number]

    def count(self, whole: int) -> int:
        """Return its portion of a number; those of all portions add up to it."""
        return whole * self.number // self.of - whole * (self.number - 1) // self.of


def parse_master_share(text: str) -> MasterShare:
    """Read ``1/4``; raises ValueError."""
    found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    if found:
        portion = MasterShare(int(found[1]), int(found[2]))
        if 1 <= portion.number <= portion.of <= _MAX_MASTERS:
            return portion
    raise ValueError(f"{text!r} is not a part such as 1/4: a number from 1 on, a slash, how many there are")


def take_master_share(scenario: Scenario, portion: MasterShare) -> Scenario:
    """Return what one master does; raises UsageError where there is too little for all of them."""
    operations = scenario.operation_count
    if operations is not None:
        operations = _take_count(portion, operations, "operations")
    groups = tuple(
        replace(
            _take_load(group, portion, f" of the group {group.name}"),
            size_classes=_take_classes(group.size_classes, portion),
        )
        for group in scenario.groups
    )
    own = _take_load(scenario, portion, "")
    return replace(
        own,
        size_classes=_take_classes(scenario.size_classes, portion),
        operation_count=operations,
        user_count=sum(group.user_count for group in groups) or own.user_count,
        groups=groups,
        phase=(portion.number - 1) / portion.of,
        events=scenario.events if portion.number == 1 else (),
    )


def _take_load(whole: _Loaded, portion: MasterShare, where: str) -> _Loaded:
    """Return a scenario or a group with its portion of users and of rates."""
    stages = tuple(
        replace(
            stage,
            users=None
            if stage.users is None
            else (portion.count(stage.users[0]), portion.count(stage.users[1])),
            rate=None if stage.rate is None else (stage.rate[0] / portion.of, stage.rate[1] / portion.of),
        )
        for stage in whole.stages
    )
    rate = None if whole.rate is None else whole.rate / portion.of
    users = _take_count(portion, whole.user_count, f"users{where}")
    return replace(whole, user_count=users, rate=rate, stages=stages)


def _take_count(portion: MasterShare, whole: int, what: str) -> int:
    own = portion.count(whole)
    if whole < portion.of:
        raise UsageError(
            f"--part {portion}: {whole} {what} cannot be shared by {portion.of} masters: expected"
            f" {portion.of} or more"
        )
    return own


def _take_classes(classes: Sequence[SizeClass], portion: MasterShare) -> tuple[SizeClass, ...]:
    """Return size classes with a portion of their initial objects, one at least, and the same shares."""
    return tuple(
        replace(
            each,
            initial_files=max(portion.count(each.initial_files), min(1, each.initial_files)),
            weight=float(each.share),
        )
        for each in classes
    )


def find_scenario_difference(one: Scenario, other: Scenario) -> str:
    """Return in what two scenarios differ besides how much they do; empty where they fit."""
    for field in fields(one):
        if field.name not in _OWN_FIELDS and getattr(one, field.name) != getattr(other, field.name):
            return field.name
    if [each.name for each in one.groups] != [each.name for each in other.groups]:
        return "groups"
    found = _find_load_difference(one, other)
    for ours, theirs in zip(one.groups, other.groups, strict=True):
        found = found or _find_load_difference(ours, theirs)
        names = [field.name for field in fields(ours) if field.name not in _OWN_GROUP_FIELDS]
        if not found and any(getattr(ours, name) != getattr(theirs, name) for name in names):
            found = f"the group {ours.name}"
    return found


def _find_load_difference(ours: _Loaded, theirs: _Loaded) -> str:
    if _stage_kinds(ours) != _stage_kinds(theirs):
        return "stages or rate"
    if _strip_counts(ours.size_classes) != _strip_counts(theirs.size_classes):
        return "sizes"
    shares = zip(_class_shares(ours.size_classes), _class_shares(theirs.size_classes), strict=True)
    if any(abs(our - their) > _SHARE_TOLERANCE for our, their in shares):
        return "the shares of size classes"
    return ""


def _stage_kinds(load: Scenario | UserGroup) -> list[tuple[float, bool, bool]]:
    """Return how long each stage is, and what it says."""
    stages = [(stage.seconds, stage.users is None, stage.rate is None) for stage in load.stages]
    return [(0.0, False, load.rate is None), *stages]


def _strip_counts(classes: Sequence[SizeClass]) -> list[SizeClass]:
    return [replace(each, initial_files=0, weight=None) for each in classes]


def _class_shares(classes: Sequence[SizeClass]) -> list[float]:
    total = sum(each.share for each in classes)
    return [each.share / total if total else 0.0 for each in classes]


def combine_scenarios(scenarios: Sequence[Scenario]) -> Scenario:
    """Return what several masters do together, whose scenarios fit."""
    counts = [each.operation_count for each in scenarios]
    return replace(
        _sum_loads(scenarios),
        size_classes=_sum_classes([each.size_classes for each in scenarios]),
        operation_count=sum(count or 0 for count in counts) if None not in counts else None,
        phase=0.0,
        fail_if=tuple(dict.fromkeys(text for each in scenarios for text in each.fail_if)),
        groups=tuple(
            replace(
                _sum_loads(groups),
                size_classes=_sum_classes([group.size_classes for group in groups]),
            )
            for groups in zip(*(each.groups for each in scenarios), strict=True)
        ),
    )


def _sum_loads(parts: Sequence[_Loaded]) -> _Loaded:
    """Return a scenario or a group with the users and the rates of all."""
    rates = [each.rate for each in parts]
    stages = []
    for own in zip(*(each.stages for each in parts), strict=True):
        users = [stage.users for stage in own if stage.users is not None]
        rate = [stage.rate for stage in own if stage.rate is not None]
        stages.append(
            replace(
                own[0],
                users=(sum(low for low, _ in users), sum(high for _, high in users)) if users else None,
                rate=(sum(low for low, _ in rate), sum(high for _, high in rate)) if rate else None,
            )
        )
    return replace(
        parts[0],
        user_count=sum(each.user_count for each in parts),
        rate=None if None in rates else sum(rate or 0.0 for rate in rates),
        stages=tuple(stages),
    )


def _sum_classes(classes: Sequence[Sequence[SizeClass]]) -> tuple[SizeClass, ...]:
    """Return size classes with the initial objects of all; weights that follow from those are left out."""
    found = [
        replace(same[0], initial_files=sum(each.initial_files for each in same))
        for same in zip(*classes, strict=True)
    ]
    if all(each.weight in {None, each.initial_files} for each in found):
        found = [replace(each, weight=None) for each in found]
    return tuple(found)
