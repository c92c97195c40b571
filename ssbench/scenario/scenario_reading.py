"""Read and check a scenario file: :func:`read_scenario` reads one, or a scenario that ships with ssbench.

The keys of the file are in the table of :mod:`ssbench.scenario.model`.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ssbench.base.errors import ScenarioError, UsageError, did_you_mean
from ssbench.scenario import consistency, key_rules, sizes
from ssbench.scenario import parsed_text as scenario_text
from ssbench.scenario.conditions import find_unknown_subject, parse_condition
from ssbench.scenario.key_rules import (
    CLASS_RULES,
    CRUD_AND_LIST_OPERATIONS,
    CRUD_OPERATIONS,
    INITIAL_FILES_RULE,
    MAX_SEGMENTS,
    STAGE_RULES,
    WEIGHTS_RULE,
)
from ssbench.scenario.model import (
    GROUP_LOAD_KEYS,
    NULLABLE_KEYS,
    SCENARIO_RULES,
    STRUCTURED_KEYS,
    Scenario,
    SizeClass,
    Stage,
    Weights,
)
from ssbench.scenario.old_keys import accept_old_keys
from ssbench.scenario.operation_settings import (
    add_operation_headers,
    find_weight_contradictions,
    read_operation_settings,
)
from ssbench.scenario.operations import (
    OPERATIONS,
    Effect,
    OperationSettings,
    remove_secrets,
    resolve_steps,
)
from ssbench.scenario.parsed_text import Fault, KeyPath, ParsedText, spell_path
from ssbench.scenario.scenario_files import read_scenario_text
from ssbench.scenario.set_values import set_value
from ssbench.scenario.sizes import Shape
from ssbench.scenario.structured_values import read_files_of_body
from ssbench.scenario.user_groups import GroupEntry, GroupReader, combine_groups
from ssbench.scenario.value_rules import MAX_BYTES, Rule, shorten_value

_log = logging.getLogger(__name__)

#: Unknown keys for which a known one is looked for.
_MAX_SUGGESTIONS = 200

_USERS_WORDS = ("users", "vus", "concurrency", "concurrent", "threads", "clients")
_SECONDS_WORDS = ("duration", "seconds", "runtime", "time", "length", "timelimit")

#: What other tools, options and stages call what a key says, without underscores.
_OTHER_WORDS_OF_KEYS = {
    "user_count": _USERS_WORDS,
    "users": (*_USERS_WORDS, "usercount"),
    "run_seconds": _SECONDS_WORDS,
    "seconds": (*_SECONDS_WORDS, "runseconds"),
    "operation_count": ("iterations", "requests", "count", "totalops", "ops"),
    "rate": ("rps", "qps", "target", "throughput", "arrivalrate", "rpslimit"),
    "profile": ("mix", "weights", "ratio", "distribution"),
    "initial_files": ("objects", "files", "initialobjects"),
    "container_count": ("containers", "buckets"),
    "fail_if": ("thresholds", "conditions", "checks"),
    "think_time": ("waittime", "wait", "sleep", "pause", "pacing"),
    "warmup": ("rampup", "warmupseconds"),
}

#: Keys that are few enough to be listed with each unknown one.
_MAX_REPEATED_KEYS = 8

#: The keys of weights: the name of today, and that of ssbench 0.x.
_PROFILE_KEYS = ("profile", "crud_profile")


def read_scenario(
    path_or_name: str,
    *,
    limited: bool = False,
    bodies: Sequence[Path] = (),
    changes: Sequence[tuple[str, Any]] = (),
) -> Scenario:
    """Read and check a scenario: a file, or the bare name of one that ships with ssbench.

    One that does not say how long it runs is a fault, unless it is ``limited`` otherwise:
    :func:`~.consistency.override` then has to say it. Body files must be in the folder of the scenario or in
    one of ``bodies``. ``changes`` are values by their paths (:func:`~.set_values.set_value`), which replace
    those of the file.

    Raises UsageError for a path that is not there, and ScenarioError. Its text lists the first twenty faults,
    one on each line, with the file, the line where it is known, the key and what was expected.
    """
    text = read_scenario_text(path_or_name)
    try:
        document = scenario_text.parse_scenario_text(text)
        for warning in accept_old_keys(document, is_json=text.lstrip().startswith("{")):
            _log.warning("%s: %s", path_or_name, warning)
        _change_values(document, changes)
        return _check_document(document, path_or_name, limited=limited, bodies=bodies)
    except ScenarioError:
        data = scenario_text.parse_scenario_text(text).data
        if isinstance(data, dict) and isinstance(data.get("rows"), dict) and "sizes" not in data:
            command = f"ssbench-master suite {shlex.quote(path_or_name)}"
            raise ScenarioError(f"{path_or_name}: this is a suite: {command}") from None
        raise


def check_scenario_text(
    text: str,
    path_or_name: str,
    *,
    limited: bool = False,
    bodies: Sequence[Path] = (),
    changes: Sequence[tuple[str, Any]] = (),
) -> Scenario:
    """Check the text of a scenario, YAML or JSON.

    Messages begin with ``path_or_name``. See :func:`read_scenario`.
    """
    document = scenario_text.parse_scenario_text(text)
    _change_values(document, changes)
    return _check_document(document, path_or_name, limited=limited, bodies=bodies)


def _change_values(document: ParsedText, changes: Sequence[tuple[str, Any]]) -> None:
    if not isinstance(document.data, dict):
        return
    for path, value in changes:
        try:
            set_value(document.data, path, value)
        except ValueError as error:
            raise UsageError(f"--set {error}") from None


def _check_document(
    document: ParsedText, path_or_name: str, *, limited: bool, bodies: Sequence[Path]
) -> Scenario:
    scenario = (
        None
        if document.data is None and document.faults
        else _ScenarioChecker(document, Path(path_or_name).parent, bodies, limited=limited).scenario()
    )
    if scenario is None or document.faults:
        raise ScenarioError(scenario_text.format_faults(path_or_name, document.faults))
    if scenario.operation_count is not None and scenario.run_seconds is not None:
        _log.warning("%s: both run_seconds and operation_count are given; run_seconds wins", path_or_name)
        return replace(scenario, operation_count=None)
    return scenario


def check_scenario_data(
    data: Mapping[str, object], *, limited: bool = False, bodies: Sequence[Path] = ()
) -> Scenario:
    """Return the checked scenario of what a file may contain; messages begin with ``scenario``.

    Body files must be in the current folder or in one of ``bodies``. Raises ScenarioError, whose text lists
    the first faults, and UsageError for what no file can contain. See :func:`read_scenario`.
    """
    try:
        text = json.dumps(dict(data))
    except (TypeError, ValueError) as error:
        raise UsageError(f"scenario: expected what a scenario file may contain: {error}") from None
    return check_scenario_text(text, "scenario", limited=limited, bodies=bodies)


class _ScenarioChecker:
    """Checks the data of a document against the rules, and adds to its faults."""

    def __init__(self, document: ParsedText, folder: Path, bodies: Sequence[Path], *, limited: bool) -> None:
        self._document = document
        self._folder = folder
        #: Further folders whose files may be bodies.
        self._bodies = bodies
        self._limited = limited
        #: The names of the operations that the scenario defines.
        self._defined: tuple[str, ...] = ()
        #: Keys of mappings that were listed.
        self._listed: set[tuple[str, ...]] = set()

    def scenario(self) -> Scenario | None:
        """Build the scenario; return None when a fault prevents that."""
        data = self._document.data
        if not isinstance(data, dict):
            self._fault((), f"expected a mapping with keys such as name and sizes, not {shorten_value(data)}")
            return None
        # First: weights and conditions name the operations that it defines.
        settings = read_operation_settings(data.get("operations"), self._values, self._fault)
        self._defined = tuple(each.name for each in settings if each.defined is not None)
        values = self._values(data, (), SCENARIO_RULES, structures=STRUCTURED_KEYS)
        reader = GroupReader(self._values, self._require, self._fault, self._stages, self._profile)
        groups = reader.groups(data)
        self._read_files(values)
        stages = self._load(data, values, groups)
        classes = self._sizes(data)
        initial = self._initial_files(data, classes)
        reader.check_sizes(groups, classes, initial)
        default_profile = self._profile(values, ())
        values["operations"] = add_operation_headers(settings, "read", values.pop("get_headers", ()))
        used = [
            entry
            for entry in classes
            if (name := entry.get("name", ""))
            and (initial.get(name) or any(group.uses(name) for group in groups))
        ]
        given = any(data.get(key) is not None for key in _PROFILE_KEYS)
        given |= bool(groups) and all(group.has_profile for group in groups)
        if not given and any(not entry["has_profile"] for entry in used):
            self._fault(
                (), f"crud_profile: missing, expected {WEIGHTS_RULE.expected} (or one in each size class)"
            )
        names = [entry["name"] for entry in used]
        for text in values.get("fail_if", ()):
            if wrong := find_unknown_subject(
                parse_condition(text, self._defined, grouped=True),
                names,
                [group.name for group in groups if group.name],
                self._defined,
            ):
                self._fault(("fail_if",), f"fail_if: {wrong}")
        self._check_profiles(default_profile, used, groups, settings)
        self._check_places(values, groups, names)
        if self._document.faults:
            return None
        values |= key_rules.split_delete_after(values.get("delete_after") or None)
        if groups:
            made = [each.group(used, initial, default_profile, _make_weights) for each in groups]
            values |= consistency.count_containers(values, consistency.classes_without_containers(made))
            values.pop(consistency.PER_CONTAINER_KEY, None)
            return combine_groups(made, data=data, **values)
        if stages:
            values["user_count"] = consistency.count_most_users(stages, values.get("user_count"))
            values["run_seconds"] = sum(stage.seconds for stage in stages)
        size_classes = tuple(
            SizeClass(
                entry["name"],
                entry["size_min"],
                entry["size_max"],
                initial[entry["name"]],
                _make_weights(entry.get("crud_profile", default_profile)),
                entry["shape"],
                None,
                *key_rules.read_segments(entry),
            )
            for entry in used
        )
        values |= consistency.count_containers(values, size_classes)
        return Scenario(size_classes=size_classes, data=data, stages=stages, **values)

    def _check_profiles(
        self,
        default_profile: Any,
        used: list[dict[str, Any]],
        groups: list[GroupEntry],
        settings: tuple[OperationSettings, ...],
    ) -> None:
        """Check what the operations of the size classes that are used, and of groups, need."""
        profiles = [(default_profile, settings), *((entry.get("crud_profile"), settings) for entry in used)]
        profiles += [(group.profile, (*settings, *group.operations)) for group in groups]
        given = self._document.data.get("operations") if isinstance(self._document.data, dict) else None
        entries = [each for each in (given if isinstance(given, list) else ()) if isinstance(each, dict)]
        for profile, known in profiles:
            weights = profile if isinstance(profile, dict) else {}
            for wrong in find_weight_contradictions(weights, known, entries):
                self._fault((), f"profile: {wrong}")
        self._check_dynamic(default_profile, used, groups, settings)
        for entry in [each for each in used if each.get("size_min") == 0]:
            own = [entry.get("crud_profile", default_profile)]
            own += [group.profile for group in groups if group.may_use(entry["name"])]
            weights_given = [each for each in own if isinstance(each, dict)]
            parts = [row.name for row in OPERATIONS.with_defined(settings).drawn if row.reads_part]
            parts += [
                each.name
                for each in (*settings, *(each for group in groups for each in group.operations))
                if not each.defined
                and any(step.row.reads_part for step in resolve_steps(each.values.get("steps", ())))
            ]
            for name in [name for name in parts if any(each.get(name) for each in weights_given)]:
                self._fault((), f"profile: {name} needs objects of 1 byte or more; {entry['name']!r} has 0")

    def _check_dynamic(
        self,
        default_profile: Any,
        used: list[dict[str, Any]],
        groups: list[GroupEntry],
        settings: tuple[OperationSettings, ...],
    ) -> None:
        """Refuse what would make an empty object of one whose segments are found by a prefix."""
        posting = {
            row.name
            for row in OPERATIONS.with_defined(settings).drawn
            if row.effect is Effect.CHANGES or (row.posts and row.has_object)
        }
        for each in (*settings, *(each for group in groups for each in group.operations)):
            if any(step.row.posts for step in resolve_steps(each.values.get("steps", ()))):
                posting.add(each.name)
        for entry in [each for each in used if each.get("segments") == "dynamic"]:
            profiles = [entry.get("crud_profile", default_profile)]
            profiles += [group.profile for group in groups if group.may_use(entry["name"])]
            weights = [each for each in profiles if isinstance(each, dict)]
            for name in sorted(name for name in posting if any(each.get(name) for each in weights)):
                self._fault(
                    (),
                    f"profile: {name} is not possible on objects of {entry['name']!r}, whose segments are"
                    " dynamic: a POST makes an empty object of one",
                )

    def _check_places(self, values: dict[str, Any], groups: list[GroupEntry], names: list[str]) -> None:
        """Check the number of containers, and the names of the objects of these size classes."""
        users = [(group.name, each) for group in groups for each in names if group.may_use(each)]
        template = values.get("object_names")
        for key, wrong in consistency.find_wrong_names(template, users or [("", each) for each in names]):
            self._fault((key,), f"{key}: {wrong}")
        for path, own in [((), values), *((group.path, group.values) for group in groups)]:
            if wrong := consistency.explain_container_conflict(own):
                self._fault(
                    (*path, consistency.PER_CONTAINER_KEY),
                    spell_path((*path, consistency.PER_CONTAINER_KEY)) + ": " + wrong,
                )

    def _load(
        self, data: dict[str, Any], values: dict[str, Any], groups: list[GroupEntry]
    ) -> tuple[Stage, ...]:
        """Return the stages, none where there are none; check how much load there is, and for how long."""
        entries = self._stages(data)
        required = ["name"]
        grouped = data.get("groups") is not None
        if not grouped and (not entries or not all(entry["has_users"] for entry in entries)):
            required.append("user_count")
        self._require(data, (), tuple(required), SCENARIO_RULES)
        if (
            not self._limited
            and data.get("stages") is None
            and data.get("operation_count") is None
            and data.get("run_seconds") is None
            and not any(group.stages for group in groups)
        ):
            expected = (
                "run_seconds: missing, expected this key, or stages in a group"
                if grouped
                else "operation_count: missing, expected this key, run_seconds or stages"
            )
            self._fault((), expected)
        if grouped:
            for key in ("stages", *GROUP_LOAD_KEYS):
                if data.get(key) is not None:
                    self._fault((key,), f"{key}: expected no such key beside groups, which say so themselves")
        for place, group in enumerate(groups):
            for path, wrong in consistency.find_group_contradictions(values, group.values, group.stages):
                self._fault(("groups", place, *path), f"{spell_path(('groups', place, *path))}: {wrong}")
        if not all("seconds" in entry for entry in entries):
            return ()
        stages = tuple(Stage(each["seconds"], each.get("users"), each.get("rate")) for each in entries)
        if groups and values.get("run_seconds") is None:
            took = [sum(each.seconds for each in group.stages) for group in groups]
            values = values | {"run_seconds": max(took) or None}
        for path, wrong in consistency.find_contradictions(values, stages):
            self._fault(path, f"{spell_path(path)}: {wrong}")
        return stages

    def _stages(self, data: dict[str, Any], within: KeyPath = ()) -> list[dict[str, Any]]:
        """Return the valid values of each stage; ``has_users``: whether the file gives it some."""
        stages = data.get("stages")
        if stages is None:
            return []
        if not isinstance(stages, list) or not stages:
            path = (*within, "stages")
            self._fault(
                path, f"{spell_path(path)}: expected a list of one stage or more, not {shorten_value(stages)}"
            )
            return []
        entries = []
        for index, entry in enumerate(stages):
            path = (*within, "stages", index)
            if not isinstance(entry, dict):
                self._fault(path, f"{spell_path(path)}: expected a mapping, not {shorten_value(entry)}")
                continue
            values = self._values(entry, path, STAGE_RULES)
            entries.append(values | {"has_users": "users" in entry})
            self._require(entry, path, ("seconds",), STAGE_RULES)
            if not entry.keys() & {"users", "rate"}:
                self._fault(path, f"{spell_path(path)}: expected users, rate or both")
        return entries

    def _sizes(self, data: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the valid values of each size class; ``has_profile``: whether the file gives it one."""
        entries = data.get("sizes")
        if not isinstance(entries, list) or not entries:
            self._wrong_or_missing(data, "sizes", "a list of one size class or more")
            return []
        classes = []
        names = set()
        for index, entry in enumerate(entries):
            path = ("sizes", index)
            if not isinstance(entry, dict):
                self._fault(path, f"{spell_path(path)}: expected a mapping, not {shorten_value(entry)}")
                continue
            values = self._values(entry, path, CLASS_RULES, structures=("size",))
            values["shape"] = self._shape(entry, path, values)
            self._require(entry, path, ("name",), CLASS_RULES)
            if values.get("size_min", 0) > values.get("size_max", MAX_BYTES):
                self._fault(
                    (*path, "size_min"),
                    f"{spell_path(path)}.size_min: expected at most size_max, which is {values['size_max']},"
                    f" not {values['size_min']}",
                )
            if wrong := _find_wrong_segments(values):
                self._fault((*path, wrong[0]), f"{spell_path((*path, wrong[0]))}: {wrong[1]}")
            name = values.get("name")
            if name in names:
                self._fault(
                    (*path, "name"), f"{spell_path(path)}.name: expected a name of its own, {name!r} is taken"
                )
            elif name is not None:
                names.add(name)
            profile = self._profile(values, path)
            given = any(entry.get(key) is not None for key in _PROFILE_KEYS)
            classes.append(values | {"has_profile": given} | ({"crud_profile": profile} if profile else {}))
        return classes

    def _read_files(self, values: dict[str, Any]) -> None:
        """Read the files that bodies are of."""
        try:
            if values.get("body") is not None:
                values["body"] = read_files_of_body(values["body"], self._folder, self._bodies)
        except ValueError as error:
            self._fault(("body",), f"body: files: {error}")

    def _shape(self, entry: dict[str, Any], path: KeyPath, values: dict[str, Any]) -> Shape | None:
        """Add the ends of the sizes of a class to its values; return the distribution between them."""
        if "size" not in entry:
            self._require(entry, path, ("size_min", "size_max"), CLASS_RULES)
            return None
        path = (*path, "size")
        if entry.keys() & {"size_min", "size_max"}:
            self._fault(path, f"{spell_path(path)}: expected this or size_min and size_max, not both")
        try:
            values["size_min"], values["size_max"], shape = sizes.read_size(entry["size"], self._folder)
        except ValueError as error:
            self._fault(path, f"{spell_path(path)}: {error}")
            return None
        return shape

    def _initial_files(self, data: dict[str, Any], classes: list[dict[str, Any]]) -> dict[str, int]:
        initial = data.get("initial_files")
        if not isinstance(initial, dict) or not initial:
            self._wrong_or_missing(data, "initial_files", "a mapping of size classes to numbers of objects")
            return {}
        faults_before = len(self._document.faults)
        names = list(dict.fromkeys(entry["name"] for entry in classes if "name" in entry))
        initial = {name: INITIAL_FILES_RULE.read(count) for name, count in initial.items()}
        for name, count in initial.items():
            path = ("initial_files", name)
            if names and name not in names:  # without any, that is what is wrong
                self._fault(
                    path,
                    f"initial_files.{name}: expected the name of a size class in sizes ({', '.join(names)}), "
                    f"not {name!r}{did_you_mean(str(name), names)}",
                )
            if not INITIAL_FILES_RULE.accepts(count):
                self._fault(
                    path,
                    f"initial_files.{name}: expected {INITIAL_FILES_RULE.expected}, not"
                    f" {shorten_value(count)}",
                )
        if len(self._document.faults) > faults_before:
            return {name: count for name, count in initial.items() if INITIAL_FILES_RULE.accepts(count)}
        if not any(initial.values()):
            self._fault(("initial_files",), "initial_files: expected a number above 0 for one class or more")
        return initial

    def _profile(self, values: dict[str, Any], path: KeyPath) -> Any:
        """Take the weights out of the values of a mapping, by either name; None where there are none."""
        found = [values.pop(key) for key in _PROFILE_KEYS if key in values]
        if len(found) > 1:
            self._fault(
                (*path, "profile"),
                f"{spell_path((*path, 'profile'))}: expected this or crud_profile, not both",
            )
        return found[0] if found else None

    def _values(
        self,
        mapping: dict[str, Any],
        path: KeyPath,
        rules: dict[str, Rule],
        structures: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """Return the valid values of a mapping; add a fault for each unknown key and invalid value."""
        values = {}
        for key, value in mapping.items():
            where = spell_path((*path, key))
            if key in structures or (value is None and key in NULLABLE_KEYS):
                continue
            if key not in rules:
                self._fault(
                    (*path, key), f"{where}: unknown key{self._suggest_keys(key, (*rules, *structures))}"
                )
                continue
            try:
                number = rules[key].read(value, self._defined)
            except ValueError as error:
                self._fault((*path, key), f"{where}: {error}")
                continue
            if rules[key].accepts(number):
                values[key] = number
            else:
                shown = remove_secrets({key: value})[key]
                self._fault(
                    (*path, key), f"{where}: expected {rules[key].expected}, not {shorten_value(shown)}"
                )
        return values

    def _suggest_keys(self, wrong: object, known: tuple[str, ...]) -> str:
        """Return what was meant, or else all keys, unless these are many and have been listed before."""
        # Of so many nobody meant each, and to look takes time.
        many = len(self._document.faults) > _MAX_SUGGESTIONS
        word = str(wrong).lower().replace("_", "")
        same = [key for key in known if word in _OTHER_WORDS_OF_KEYS.get(key, ())]
        if meant := "" if many else did_you_mean(same[0] if same else str(wrong), known):
            return meant
        if known in self._listed and len(known) > _MAX_REPEATED_KEYS:
            return ""
        self._listed.add(known)
        return f", expected one of {', '.join(known)}"

    def _require(
        self, mapping: dict[str, Any], path: KeyPath, keys: tuple[str, ...], rules: dict[str, Rule]
    ) -> None:
        for key in keys:
            if key not in mapping:
                self._fault(path, f"{spell_path((*path, key))}: missing, expected {rules[key].expected}")

    def _wrong_or_missing(self, data: dict[str, Any], key: str, expected: str) -> None:
        if key in data:
            self._fault((key,), f"{key}: expected {expected}, not {shorten_value(data[key])}")
        else:
            self._fault((), f"{key}: missing, expected {expected}")

    def _fault(self, path: KeyPath, text: str) -> None:
        # A key that is missing has no line, and the first line of the file would mislead.
        line = self._document.lines.get(path) if path else None
        self._document.faults.append(Fault(line, text))


def _find_wrong_segments(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the key of a size class that does not go together with the others, and why."""
    size, kind = key_rules.read_segments(values)
    if "segments" in values and not size:
        return "segments", "expected segment_size beside it, the bytes of each"
    if size and values.get("size_min") == 0:
        return "segment_size", "expected objects of 1 byte or more, because a segment is not empty"
    if size and -(-values.get("size_max", 0) // size) > MAX_SEGMENTS[kind]:
        least = -(-values["size_max"] // MAX_SEGMENTS[kind])
        return "segment_size", f"expected {least} or more: {MAX_SEGMENTS[kind]:,} segments an object at most"
    return None


def _make_weights(profile: list[float] | dict[str, float]) -> Weights:
    if isinstance(profile, dict):
        return {name: float(weight) for name, weight in profile.items()}
    if len(profile) > len(CRUD_OPERATIONS):
        return dict(zip(CRUD_AND_LIST_OPERATIONS, map(float, profile), strict=True))
    create, read, update, delete = map(float, profile)
    return create, read, update, delete
