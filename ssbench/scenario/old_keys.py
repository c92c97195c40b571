"""Scenario files as ssbench 0.x accepted them: unknown keys, and keys in another case.

What was accepted then is changed to what is expected today before a file is checked, with a line of warning
for each kind; whatever else is wrong with the file remains a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ssbench.base.errors import did_you_mean
from ssbench.scenario.key_rules import CLASS_RULES
from ssbench.scenario.model import SCENARIO_RULES, STRUCTURED_KEYS
from ssbench.scenario.parsed_text import KeyPath, ParsedText, spell_path

_TOP_KEYS = (*SCENARIO_RULES, *STRUCTURED_KEYS)
_CLASS_KEYS = (*CLASS_RULES, "size")

#: The keys of ssbench 0.3.9, of the whole file and of a size class.
_OLD_KEYS = {
    "name",
    "sizes",
    "initial_files",
    "crud_profile",
    "operation_count",
    "run_seconds",
    "user_count",
    "container_base",
    "container_count",
    "container_concurrency",
    "delete_after",
    "policy",
    "size_min",
    "size_max",
}

#: Keys that are named in a warning; the others are counted.
_MAX_NAMED = 4


def accept_old_keys(document: ParsedText, *, is_json: bool) -> list[str]:
    """Change the keys of a document to today's; return warnings about the changes.

    Keys in another case are taken for those in lower case, and names of size classes in ``initial_files`` for
    those in ``sizes``. In a file in JSON without any key that ssbench 0.3.9 did not have, keys that nobody
    knows are left out, as it did; what looks like a known key stays there, and is a fault.
    """
    data = document.data
    if not isinstance(data, dict):
        return []
    renamed: dict[KeyPath, str] = {}
    _rename_keys(data, (), _TOP_KEYS, renamed)
    classes = [(index, each) for index, each in enumerate(_list(data.get("sizes"))) if isinstance(each, dict)]
    for index, each in classes:
        _rename_keys(each, ("sizes", index), _CLASS_KEYS, renamed)
    if isinstance(initial := data.get("initial_files"), dict):
        names = [each["name"] for _, each in classes if isinstance(each.get("name"), str)]
        _rename_keys(initial, ("initial_files",), names, renamed)
    _rename_lines(document, renamed)
    warnings = []
    if renamed:
        pairs = dict.fromkeys(f"{path[-1]} as {name}" for path, name in renamed.items())
        warnings.append(f"read keys in another case: {_name_some([*pairs])}")
    places = [((), data, _TOP_KEYS), *((("sizes", index), each, _CLASS_KEYS) for index, each in classes)]
    if is_json and all(key in _OLD_KEYS for _, each, known in places for key in each if key in known):
        unknown = list(_drop_unknown(places))
        if unknown:
            warnings.append(f"ignored unknown keys, as ssbench 0.3.9 did: {_name_some(unknown)}")
    return warnings


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _rename_keys(
    mapping: dict[Any, Any], path: KeyPath, known: Sequence[str], renamed: dict[KeyPath, str]
) -> None:
    """Rename the keys of a mapping that are known in another case, in their places; note them."""
    by_lower = {name.lower(): name for name in known}
    entries = list(mapping.items())
    for key, _ in entries:
        name = by_lower.get(key.lower()) if isinstance(key, str) and key not in known else None
        if name is not None and name not in mapping and name not in _names_within(renamed, path):
            renamed[(*path, key)] = name
    mapping.clear()
    mapping.update((renamed.get((*path, key), key), value) for key, value in entries)


def _names_within(renamed: Mapping[KeyPath, str], path: KeyPath) -> set[str]:
    return {name for each, name in renamed.items() if each[:-1] == path}


def _rename_lines(document: ParsedText, renamed: Mapping[KeyPath, str]) -> None:
    """Let messages on values find their lines under the new names."""
    tops = {path[0]: name for path, name in renamed.items() if len(path) == 1}
    for old, line in list(document.lines.items()):
        if old:
            path = (tops.get(old[0], old[0]), *old[1:])
            document.lines.setdefault((*path[:-1], renamed.get(path, path[-1])), line)


def _drop_unknown(places: Sequence[tuple[KeyPath, dict[Any, Any], Sequence[str]]]) -> Iterator[str]:
    for path, mapping, known in places:
        for key in [each for each in mapping if each not in known]:
            if not did_you_mean(str(key), known):
                del mapping[key]
                yield spell_path((*path, key))


def _name_some(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f", and {more} more" if more > 0 else "")
