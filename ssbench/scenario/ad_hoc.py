"""A scenario in one line, ``size=4kB mix=put,get``, with the load of the command line, as the text of one.

The text is checked as that of a file, so that what is printed can be run again with ``-f``. A
:class:`LoadPhase` is a run of a scenario with one operation alone.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from ssbench.base.errors import UsageError, did_you_mean
from ssbench.scenario import sizes
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.consistency import PER_CONTAINER_KEY
from ssbench.scenario.model import SCENARIO_RULES, Scenario
from ssbench.scenario.operation_settings import find_weight_contradictions
from ssbench.scenario.operations import OPERATIONS, Effect
from ssbench.scenario.scenario_files import read_scenario_text
from ssbench.scenario.scenario_reading import check_scenario_text, read_scenario
from ssbench.scenario.set_values import parse_setting
from ssbench.scenario.value_rules import Rule, shorten_value

#: How a scenario in one line begins.
_LINE_PATTERN = re.compile(r"\s*\w+=")

#: What other programs call operations.
_OTHER_OPERATION_NAMES = {"put": "create", "get": "read", "write": "create", "stat": "head"}

#: Users of a run without ``-u``; seconds of one without ``-o`` and ``-r``, or operations of one that deletes.
_DEFAULT_USERS = 8
_DEFAULT_SECONDS = 30
_DEFAULT_OPERATIONS = 1000

#: Containers that the objects are spread over.
_DEFAULT_CONTAINERS = 20

#: Initial objects at least, and for each user, where operations are for objects that exist.
_LEAST_OBJECTS, _OBJECTS_A_USER = 100, 2

#: Keys of a line besides those of scenarios.
_LINE_KEYS = ("size", "mix", "objects")

#: Keys of which one alone says how long a run is.
_LIMITS = {"operation_count", "run_seconds"}

#: By so many standard deviations more deletions than expected are provided for.
_DEVIATIONS = 4.0


@dataclass(frozen=True, slots=True)
class LoadPhase:
    """A run with one operation alone."""

    name: str  # as the user wrote it
    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdHocLoad:
    """What a line says of a scenario, and the command line; None where they do not."""

    size: str  # a size, or the ends of a range: ``4kB..1MB``
    weights: Mapping[str, float]  # of operations that are drawn together
    phases: Sequence[LoadPhase]  # instead of these weights: operations one after the other
    objects: int | None  # initial objects
    #: Further keys of the file.
    values: Mapping[str, Any]


def parse_mix(text: str) -> dict[str, float]:
    """Return the weights of ``read=9,create=1`` or ``put,get``; raises ValueError."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.strip().partition("=")
        operation = _find_operation(name.strip())
        if operation in found:
            raise ValueError(f"{text!r}: {operation} is there twice")
        try:
            weight = float(number) if equals else 1.0
        except ValueError:
            weight = math.nan
        if not 0 < weight < 1e9:
            raise ValueError(f"{text!r}: {number!r} is not a weight above 0, such as 9 in read=9,create=1")
        found[operation] = weight
    return found


def parse_phases(text: str) -> tuple[LoadPhase, ...]:
    """Return the phases of ``put,get,delete``; raises ValueError."""
    found = tuple(LoadPhase(name, _find_operation(name)) for name in map(str.strip, text.split(",")))
    if len({each.operation for each in found}) < len(found):
        raise ValueError(f"{text!r}: a phase is there twice")
    return found


def _find_operation(name: str) -> str:
    """Return the name that an operation has here; raises ValueError."""
    known = [row.name for row in OPERATIONS.drawn]
    found = _OTHER_OPERATION_NAMES.get(name.lower(), name.lower())
    if found not in known:
        names = ["put", "get", *known]
        meant = did_you_mean(name, names) or f" (there are {', '.join(names)})"
        raise ValueError(f"{name!r} is not an operation{meant}")
    return found


# -- The scenario ----------------------------------------------------------------------------------


def write_ad_hoc_text(load: AdHocLoad) -> str:
    """Return the text of a scenario file; raises UsageError for what needs more than the load says."""
    values = dict(load.values)
    profiles = [{each.operation: 1.0} for each in load.phases] or [dict(load.weights)]
    shrinks = any(each.get("delete", 0.0) > each.get("create", 0.0) for each in profiles)
    values.setdefault("user_count", _DEFAULT_USERS)
    if PER_CONTAINER_KEY not in values:
        values.setdefault("container_count", _DEFAULT_CONTAINERS)
    if "operation_count" not in values and "run_seconds" not in values:
        values |= {"operation_count": _DEFAULT_OPERATIONS} if shrinks else {"run_seconds": _DEFAULT_SECONDS}
    users: Any = SCENARIO_RULES["user_count"].read(values["user_count"])
    operations: Any = None
    if "run_seconds" not in values:
        operations = SCENARIO_RULES["operation_count"].read(values["operation_count"])
    if shrinks and operations is None and load.objects is None:
        raise UsageError(
            "more objects are deleted than created: give a number of operations (-o), not a time, or say"
            " how many objects there are first (objects=1000)"
        )
    objects = load.objects
    if objects is None:
        objects = max(_count_objects(each, users, operations) for each in profiles)
    weights: dict[str, float] = {}
    for each in profiles:
        weights |= each
    name = load.size.replace("..", "-")
    return yaml.safe_dump(
        {
            "name": f"{name} objects",
            "sizes": [{"name": name, "size": load.size}],
            "initial_files": {name: objects},
            "profile": {
                each: int(value) if value == int(value) else value for each, value in weights.items()
            },
            **values,
        },
        sort_keys=False,
        allow_unicode=True,
    )


def _count_objects(weights: Mapping[str, float], users: int, operations: int | None) -> int:
    """Return how many initial objects suffice, for all but one run in some ten thousand."""
    rows = [OPERATIONS.named(each) for each in weights]
    if all(row.effect in {Effect.ADDS, Effect.NONE} for row in rows):
        return 1  # a size class is in use if it has some
    total = sum(weights.values())
    created, deleted = (weights.get(each, 0.0) / total for each in ("create", "delete"))
    fewer = 0.0
    if operations is not None and deleted:
        spread = math.sqrt(operations * (created + deleted - (deleted - created) ** 2))
        fewer = operations * (deleted - created) + _DEVIATIONS * spread
    return max(_LEAST_OBJECTS, _OBJECTS_A_USER * users, math.ceil(fewer))


def make_ad_hoc_scenario(load: AdHocLoad, changes: Sequence[tuple[str, Any]] = ()) -> Scenario:
    """Return the checked scenario; raises UsageError and ScenarioError.

    See :func:`~.reading.read_scenario` for ``changes``.
    """
    return check_scenario_text(write_ad_hoc_text(load), "the command line", changes=changes)


def is_scenario_line(text: str) -> bool:
    """Return whether a text is a scenario in one line, and no file."""
    return bool(_LINE_PATTERN.match(text)) and not os.path.lexists(text)


def parse_scenario_line(
    line: str,
    phases: Sequence[LoadPhase] = (),
    values: Mapping[str, Any] = MappingProxyType({}),
    *,
    has_objects: bool = False,
) -> AdHocLoad:
    """Return what a line says, with ``values`` of further keys, which win; raises UsageError.

    It has no size where ``has_objects``: those exist, and no weights where there are ``phases``.
    """
    try:
        pairs = [word.partition("=")[::2] for word in shlex.split(line)]
        if twice := [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]:
            raise ValueError(f"{twice[0]} is there twice")
        given = dict(pairs)
        for key in given.keys() - {*_LINE_KEYS}:
            _find_rule(key)  # first, so that a misspelt size is named
        size = given.pop("size", "1" if has_objects else "")
        if not size:
            raise ValueError("size is missing: the size of the objects, such as size=4kB or size=4kB..1MB")
        sizes.read_size(size, Path())
        mix, objects = given.pop("mix", ""), given.pop("objects", None)
        if bool(mix) == bool(phases):
            raise ValueError(
                "expected operations, as mix=read=9,create=1 (together) or --phases put,get,delete (one after"
                " the other)"
            )
        if objects is not None and not (objects.isdecimal() and int(objects)):
            raise ValueError(f"objects: {objects!r} is not a whole number of 1 or more")
        own = dict(_read_key(key, value) for key, value in given.items())
        weights = parse_mix(mix) if mix else {}
    except ValueError as error:
        raise UsageError(f"{line!r}: {error}") from None
    if values.keys() & _LIMITS:
        own = {key: value for key, value in own.items() if key not in _LIMITS}
    return AdHocLoad(
        size=size,
        weights=weights,
        phases=phases,
        objects=int(objects) if objects else None,
        values={**own, **values},
    )


def _find_rule(key: str) -> Rule:
    """Return the rule of a key of scenarios; raises ValueError."""
    if (rule := SCENARIO_RULES.get(key)) is None:
        known = (*_LINE_KEYS, *SCENARIO_RULES)
        raise ValueError(f"{key} is not size, mix, objects or a key of scenarios{did_you_mean(key, known)}")
    return rule


def _read_key(key: str, text: str) -> tuple[str, Any]:
    """Return a key of scenarios and its value as a file has it; raises ValueError."""
    rule = _find_rule(key)
    _, value = parse_setting(f"{key}={text}")
    if not rule.accepts(rule.read(value)):
        raise ValueError(f"{key}: expected {rule.expected}, not {shorten_value(value)}")
    return key, value


def read_named_scenario(
    name_or_line: str,
    *,
    limited: bool = False,
    bodies: Sequence[Path] = (),
    changes: Sequence[tuple[str, Any]] = (),
) -> Scenario:
    """Return the scenario of a file, of a name or of a line; see :func:`~.reading.read_scenario`."""
    if is_scenario_line(name_or_line):
        return make_ad_hoc_scenario(parse_scenario_line(name_or_line), changes)
    return read_scenario(name_or_line, limited=limited, bodies=bodies, changes=changes)


def read_named_text(name_or_line: str) -> str:
    """Return the text of a file, or what a line is as one; raises ScenarioError and UsageError."""
    if is_scenario_line(name_or_line):
        return write_ad_hoc_text(parse_scenario_line(name_or_line))
    return read_scenario_text(name_or_line)


# -- Phases ----------------------------------------------------------------------------------------


def split_into_phases(
    scenario: Scenario, phases: Sequence[LoadPhase]
) -> Iterator[tuple[LoadPhase, Scenario]]:
    """Yield each phase with the scenario that has its operation alone; raises UsageError.

    Conditions hold in the phases of their operation, those of all operations in each phase.
    """
    if scenario.groups:
        raise UsageError("--phases: the scenario has groups of users, which say what they do themselves")
    for phase in phases:
        for wrong in find_weight_contradictions({phase.operation: 1.0}, scenario.operations):
            raise UsageError(f"--phases: {wrong}")
        yield (
            phase,
            replace(
                scenario,
                size_classes=tuple(
                    replace(each, crud_profile={phase.operation: 1.0}) for each in scenario.size_classes
                ),
                fail_if=tuple(
                    each
                    for each in scenario.fail_if
                    if parse_condition(each, scenario.defined_operations, grouped=True).operation
                    in {None, phase.operation}
                ),
            ),
        )
