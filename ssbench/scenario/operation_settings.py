"""Reads the key ``operations`` of a scenario: settings of operations, and those that it defines itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ssbench.base.errors import did_you_mean
from ssbench.scenario.operations import (
    FIRST_DEFINED_CODE,
    MAX_OPERATION_CODE,
    OPERATIONS,
    STEPS_RULE,
    Effect,
    Header,
    OperationSettings,
    find_sequence_effect,
    resolve_steps,
)
from ssbench.scenario.parsed_text import KeyPath
from ssbench.scenario.value_rules import HEADERS_RULE, LABEL_RULE, Rule, shorten_value

_NAME_RULE = Rule(
    lambda value: isinstance(value, str) and re.fullmatch("[a-z][a-z0-9_]{0,30}", value) is not None,
    "a name of lower-case letters, digits and _",
)
_ALLOWED_METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "COPY", "OPTIONS")
_MAX_DEFINED = MAX_OPERATION_CODE + 1 - FIRST_DEFINED_CODE
_ALLOWED_EFFECTS = (Effect.NONE, Effect.READS, Effect.CHANGES)

#: The keys of an operation that a scenario defines itself, which has a method.
_DEFINITION_RULES = {
    "name": _NAME_RULE,
    "method": Rule(lambda value: value in _ALLOWED_METHODS, f"one of {', '.join(_ALLOWED_METHODS)}"),
    "path": Rule(
        lambda value: (
            isinstance(value, str)
            and 0 < len(value) <= 2000
            and value.isascii()
            and value.isprintable()
            and " " not in value
            and value.startswith(("/", "{account}"))
        ),
        "a path of printable ASCII that begins with / or {account}, without blanks",
    ),
    "headers": HEADERS_RULE,
    "body": Rule(lambda value: isinstance(value, str) and len(value) <= 65536, "a text of at most 65,536"),
    "success": Rule(
        lambda value: (
            isinstance(value, list)
            and bool(value)
            and all(type(each) is int and 200 <= each <= 599 for each in value)
        ),
        "a list of statuses from 200 to 599",
    ),
    "effect": Rule(
        lambda value: value in [each.value for each in _ALLOWED_EFFECTS],
        f"one of {', '.join(each.value for each in _ALLOWED_EFFECTS)}",
    ),
}

#: Reports what is wrong at a place of the file.
ReportFault = Callable[[KeyPath, str], None]
#: Returns the valid values of a mapping, and reports the others.
ReadValues = Callable[[dict[str, Any], KeyPath, dict[str, Rule]], dict[str, Any]]


def read_operation_settings(
    entries: object, values: ReadValues, fault: ReportFault
) -> tuple[OperationSettings, ...]:
    """Return the settings in the list of a file; the operations that it defines have codes in their order."""
    if entries is None:
        return ()
    if not isinstance(entries, list):
        fault(
            ("operations",),
            f"operations: expected a list of mappings with a name, not {shorten_value(entries)}",
        )
        return ()
    found: dict[str, OperationSettings] = {}
    codes = iter(range(FIRST_DEFINED_CODE, MAX_OPERATION_CODE + 1))
    for index, entry in enumerate(entries):
        path: KeyPath = ("operations", index)
        where = f"operations[{index}]"
        if not isinstance(entry, dict):
            fault(path, f"{where}: expected a mapping, not {shorten_value(entry)}")
            continue
        name = entry.get("name")
        if not isinstance(name, str):
            fault(path, f"{where}.name: expected {_NAME_RULE.expected}, not {shorten_value(name)}")
        elif name in found:
            fault((*path, "name"), f"{where}.name: expected once, {name!r} is there already")
        elif settings := _find_reader(entry)(entry, path, values, fault):
            if settings.defined is not None:
                code = next(codes, None)
                if code is None:
                    fault(path, f"{where}: more than {_MAX_DEFINED} operations of their own")
                    break
                settings = replace(settings, defined=(*settings.defined[:2], code))
            found[name] = settings
    return tuple(found.values())


def _find_reader(
    entry: dict[str, Any],
) -> Callable[[dict[str, Any], KeyPath, ReadValues, ReportFault], OperationSettings | None]:
    """Return what reads an entry: settings of an operation, or a request or a sequence of its own."""
    known = next((row for row in OPERATIONS if row.name == entry["name"]), None)
    if "method" in entry and not (known and "method" in known.keys):
        return _read_defined
    return _read_sequence if "steps" in entry and known is None else _read_known


def _read_known(
    entry: dict[str, Any], path: KeyPath, values: ReadValues, fault: ReportFault
) -> OperationSettings | None:
    rows = {row.name: row for row in OPERATIONS.drawn}
    row = rows.get(entry["name"])
    if row is None:
        meant = did_you_mean(entry["name"], rows) or f" (there are {', '.join(sorted(rows))})"
        fault(
            (*path, "name"),
            f"operations[{path[1]}].name: expected the name of an operation, or a method or steps, which"
            f" define one, not {entry['name']!r}{meant}",
        )
        return None
    given = values(entry, path, {"name": LABEL_RULE, "headers": HEADERS_RULE, **row.keys})
    return _make_settings(given)


def _read_defined(
    entry: dict[str, Any], path: KeyPath, values: ReadValues, fault: ReportFault
) -> OperationSettings | None:
    given = values(entry, path, _DEFINITION_RULES)
    if any(row.name == entry["name"] for row in OPERATIONS):
        fault((*path, "name"), f"operations[{path[1]}].name: {entry['name']!r} is an operation of ssbench")
        return None
    if "path" not in entry:
        fault(path, f"operations[{path[1]}].path: missing, expected {_DEFINITION_RULES['path'].expected}")
    if not given.keys() >= {"name", "method", "path"}:
        return None
    method, effect = given.pop("method"), given.pop("effect", Effect.NONE.value)
    if effect == Effect.NONE.value and "{object}" in given["path"]:
        fault(
            (*path, "path"),
            f"operations[{path[1]}].path: {{object}} needs an effect on an object: reads or changes",
        )
        return None
    return _make_settings(given, (method, effect, 0))


def _read_sequence(
    entry: dict[str, Any], path: KeyPath, values: ReadValues, fault: ReportFault
) -> OperationSettings | None:
    given = values(entry, path, {"name": _NAME_RULE, "steps": STEPS_RULE})
    if "name" not in given:
        return None
    # One with wrong steps is defined too, so that the weight that it has is no fault of its own.
    given.setdefault("steps", ["head"])
    steps = resolve_steps(given["steps"])
    return _make_settings(given, (steps[-1].row.method, find_sequence_effect(steps).value, 0))


def _make_settings(values: dict[str, Any], defined: tuple[str, str, int] | None = None) -> OperationSettings:
    others = {key: value for key, value in values.items() if key not in {"name", "headers"}}
    return OperationSettings(values["name"], values.get("headers", ()), others, defined)


def add_operation_headers(
    settings: tuple[OperationSettings, ...], name: str, headers: tuple[Header, ...]
) -> tuple[OperationSettings, ...]:
    """Return settings in which an operation has header fields, before those of its own."""
    if not headers:
        return settings
    own = next((each for each in settings if each.name == name), OperationSettings(name))
    merged = tuple({**dict(headers), **dict(own.headers)}.items())
    others = tuple(each for each in settings if each is not own)
    return (*others, OperationSettings(name, merged, own.values, own.defined))


def find_weight_contradictions(
    weights: Mapping[str, float],
    settings: tuple[OperationSettings, ...],
    entries: Iterable[Mapping[str, Any]] = (),
) -> Iterator[str]:
    """Yield what is wrong with weights beside settings: an operation lacks a key that it needs.

    ``entries`` are those of the file that have these settings, also the wrong ones: of a key that is wrong no
    more is said.
    """
    for row in OPERATIONS.drawn:
        given = [key for each in settings if each.name == row.name for key in each.values]
        given += [key for each in entries if each.get("name") == row.name for key in each]
        missing = [key for key in row.required if key not in given]
        if weights.get(row.name) and missing:
            example = f"operations: [{{name: {row.name}, {missing[0]}: {row.required[missing[0]]}}}]"
            more = f", or {row.name}: in a group" if row.group_key in missing else ""
            yield f"{row.name} needs {' and '.join(missing)}: {example}{more}"
