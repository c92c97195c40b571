"""Read and check a scenario file: :func:`read_scenario` reads one, or a scenario that ships with ssbench.

The keys of the file are in the table of :mod:`ssbench.scenario.model`.

The key ``operations`` of a scenario: settings of operations, and operations that it defines itself.

Groups of users in a scenario file: reads ``groups``, and makes a scenario of them.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Protocol

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
    SHARE_RULE,
    STAGE_RULES,
    WEIGHTS_RULE,
)
from ssbench.scenario.model import (
    GROUP_LOAD_KEYS,
    GROUP_RULES,
    NULLABLE_KEYS,
    SCENARIO_RULES,
    STRUCTURED_GROUP_KEYS,
    STRUCTURED_KEYS,
    Scenario,
    SizeClass,
    Stage,
    UserGroup,
    Weights,
)
from ssbench.scenario.old_keys import accept_old_keys
from ssbench.scenario.operations import (
    FIRST_DEFINED_CODE,
    MAX_OPERATION_CODE,
    OPERATIONS,
    STEPS_RULE,
    Effect,
    Header,
    OperationSettings,
    find_sequence_effect,
    remove_secrets,
    resolve_steps,
)
from ssbench.scenario.parsed_text import Fault, KeyPath, ParsedText, spell_path
from ssbench.scenario.scenario_files import read_scenario_text
from ssbench.scenario.sizes import Shape
from ssbench.scenario.structured_values import read_files_of_body
from ssbench.scenario.value_rules import HEADERS_RULE, LABEL_RULE, MAX_BYTES, Rule, shorten_value

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


# -- Groups of users -------------------------------------------------------------------------------


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
    size_classes = tuple(
        replace(classes[0], initial_files=sum(each.initial_files for each in classes), weight=None)
        for classes in zip(*(group.size_classes for group in groups), strict=True)
    )
    users = sum(group.user_count for group in groups)
    return Scenario(size_classes=size_classes, user_count=users, groups=tuple(groups), **values)


# -- The whole file --------------------------------------------------------------------------------


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


def read_scenario(path_or_name: str, *, limited: bool = False, bodies: Sequence[Path] = ()) -> Scenario:
    """Read and check a scenario: a file, or the bare name of one that ships with ssbench.

    One that does not say how long it runs is a fault, unless it is ``limited`` otherwise:
    :func:`~.consistency.override` then has to say it. Body files must be in the folder of the scenario or in
    one of ``bodies``.

    Raises ScenarioError. Its text lists the first twenty faults, one on each line, with the file, the line
    where it is known, the key and what was expected.
    """
    text = read_scenario_text(path_or_name)
    try:
        document = scenario_text.parse_scenario_text(text)
        for warning in accept_old_keys(document, is_json=text.lstrip().startswith("{")):
            _log.warning("%s: %s", path_or_name, warning)
        return _check_document(document, path_or_name, limited=limited, bodies=bodies)
    except ScenarioError:
        data = scenario_text.parse_scenario_text(text).data
        if isinstance(data, dict) and isinstance(data.get("rows"), dict) and "sizes" not in data:
            command = f"ssbench-master suite {shlex.quote(path_or_name)}"
            raise ScenarioError(f"{path_or_name}: this is a suite: {command}") from None
        raise


def check_scenario_text(
    text: str, path_or_name: str, *, limited: bool = False, bodies: Sequence[Path] = ()
) -> Scenario:
    """Check the text of a scenario, YAML or JSON.

    Messages begin with ``path_or_name``. See :func:`read_scenario`.
    """
    document = scenario_text.parse_scenario_text(text)
    return _check_document(document, path_or_name, limited=limited, bodies=bodies)


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
                *read_segments(entry),
            )
            for entry in used
        )
        values |= consistency.count_containers(values, size_classes)
        values.pop(consistency.PER_CONTAINER_KEY, None)
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
            if name not in names:
                self._fault(
                    path,
                    f"initial_files.{name}: expected the name of a size class in sizes"
                    f" ({', '.join(names)}), not {name!r}{did_you_mean(str(name), names)}",
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


def read_segments(entry: Mapping[str, Any]) -> tuple[int, Literal["static", "dynamic"]]:
    """Return the size and the kind of the segments of a size class."""
    return entry.get("segment_size", 0), entry.get("segments", "static")


def _find_wrong_segments(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the key of a size class that does not go together with the others, and why."""
    size, kind = read_segments(values)
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
