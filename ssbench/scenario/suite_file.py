"""Suites: many runs in one file, a row for each combination of values of a scenario.

A row names a scenario, and values of some of its keys; every combination of these is a variant, which is a
row of the table of results. Keys are paths (``sizes.kv.size``, ``operations.list.limit``): an entry of a list
is found by its name. Variants of one scenario that need other initial objects have containers of their own,
so that no round replaces the objects of another.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from ssbench.base import text_values
from ssbench.base.errors import ScenarioError, UsageError, did_you_mean
from ssbench.document.figures import COMPARED_FIGURES
from ssbench.scenario.conditions import Condition, find_unknown_subject, parse_condition
from ssbench.scenario.model import Scenario, make_owner
from ssbench.scenario.parsed_text import Fault, KeyPath, format_faults, parse_scenario_text, spell_path
from ssbench.scenario.scenario_files import read_scenario_text, read_suite_text
from ssbench.scenario.scenario_reading import check_scenario_text
from ssbench.scenario.set_values import OTHER_NAMES, set_value
from ssbench.scenario.store_kinds import STORE_KINDS, find_store_kind, list_account_apis
from ssbench.scenario.user_groups import leave_out_group
from ssbench.scenario.value_rules import shorten_value
from ssbench.scenario.value_series import LARGEST_IN_SERIES, parse_series

#: How rounds follow each other.
IN_TURN, ONE_AFTER_ANOTHER = "in turn", "one after another"

#: Most variants of a suite, and rounds.
MAX_VARIANTS, MAX_ROUNDS = 500, 1000

#: What is no key of a scenario: which store the runs of a row go to, and several keys that vary together.
STORE_KEY, TOGETHER_KEY = "store", "set"

_SUITE_KEYS = (
    *("name", "rows", "rounds", "order", "seconds", "scenarios", "stores", "between", "vary", "set"),
    "fail_if",
)
_ROW_KEYS = ("scenario", "vary", "set", "fail_if", "seconds")

#: Keys whose values are bytes, which ``--scale`` multiplies.
_BYTE_KEYS = {"size", "size_min", "size_max", "segment_size", "length", "part_size"}

#: The one of them for which a store may have a minimum.
_SEGMENT_KEY = "segment_size"

#: Numbers of initial objects above this are scaled too, down to this.
_LEAST_SCALED_FILES = 1000

_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}\Z")


#: A condition on what a group of users costs the others: ``web.read.p99 > +20% with noisy``.
_COST_PATTERN = re.compile(r"(?P<condition>.+\S)\s+with\s+(?P<group>\S+)\s*\Z")


@dataclass(frozen=True, slots=True)
class GroupCost:
    """A condition on the change from runs without a group of users to runs with it."""

    text: str
    condition: Condition
    group: str

    @property
    def word(self) -> str:
        """What the name of the row that lacks the group says of it."""
        return f"without={self.group}"

    def name_row_without(self, row: str) -> str:
        """Return the name of the row that lacks the group, by that of the one that has it."""
        return f"{row} {self.word}"


@dataclass(frozen=True, slots=True)
class SuiteVariant:
    """A row of the table of a suite."""

    name: str  # ``kv size=8MiB users=4``
    row: str  # the row of the file that it is a variant of
    scenario: Scenario  # with the values of the variant
    store: str | None = None  # the name of the one that its runs go to; None: the account, as it is
    #: What its name says of each key that varies, by the short names of these: ``size=8MiB``, ``put``.
    words: Mapping[str, str] = field(default_factory=dict)
    costs: tuple[GroupCost, ...] = ()  # conditions for which it is run without some groups too

    @property
    def name_anywhere(self) -> str:
        """Its name without the store's."""
        return self.name.replace(f" {STORE_KEY}={self.store}", "")

    @property
    def file_name(self) -> str:
        """What is in the names of its stat files."""
        return re.sub(r"[^A-Za-z0-9._=+-]+", ",", self.name)[:120]


@dataclass(frozen=True, slots=True)
class Suite:
    """The runs of a file."""

    name: str
    variants: tuple[SuiteVariant, ...]
    rounds: int = 1  # how often each variant is run
    in_turn: bool = True  # all variants are run before any of them is run again
    scale: Fraction = Fraction(1)  # what its sizes were multiplied by
    left_out: int = 0  # variants of the file that were not chosen
    between: str = ""  # the key whose values are compared, if the file says so
    #: The Swifts that are started for it, by the names of stores: what --swift-config reads, as texts.
    swifts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def read_suite(
    path_or_name: str,
    *,
    scale: Fraction = Fraction(1),
    seconds: float | None = None,
    bodies: Sequence[Path] = (),
    stores: Mapping[str, str] | None = None,
    storage_url: str = "",
    rows: Sequence[str] = (),
) -> Suite:
    """Read and check a suite: a file, or the name of one that ships with ssbench.

    ``scale`` multiplies sizes in bytes, and numbers of initial objects above 1,000; ``seconds`` is the time
    of each run, in place of that of the file. Rows that name no store are run at each of ``stores``, which
    has an address by each name ("": the account, over the API of that name), without any at
    ``storage_url``. Where such a store has a minimum for segments, a scale makes none smaller than that.
    ``rows`` chooses variants: names of rows or of variants, or patterns of these (``kv*``).
    Raises ScenarioError, whose text lists the first faults, and UsageError where ``rows`` has one of nothing.
    """
    return _SuiteReader(path_or_name, scale, seconds, bodies, stores or {}, storage_url, rows).read()


class _SuiteReader:
    """Reads one file; faults are gathered, so that all of them are reported at once."""

    def __init__(
        self,
        path_or_name: str,
        scale: Fraction,
        seconds: float | None,
        bodies: Sequence[Path],
        stores: Mapping[str, str],
        storage_url: str,
        rows: Sequence[str],
    ) -> None:
        self._name = path_or_name
        self._folder = Path(path_or_name).parent
        self._scale = scale
        self._seconds = seconds
        self._bodies = bodies
        self._stores = stores
        self._swifts: dict[str, Mapping[str, object]] = {}
        self._storage_url = storage_url
        self._rows = rows
        self._document = parse_scenario_text(read_suite_text(path_or_name))
        self._texts: dict[str, Any] = {}

    def read(self) -> Suite:
        data = self._document.data
        if self._document.faults or not isinstance(data, dict):
            if not self._document.faults:
                self._fault((), f"expected a mapping with name and rows, not {shorten_value(data)}")
            raise self._error()
        self._check_keys(data, _SUITE_KEYS, ())
        name = data.get("name")
        if not isinstance(name, str) or not 0 < len(name) <= 100 or not name.isprintable():
            self._fault(("name",), f"name: expected a text of 1 to 100 characters, not {shorten_value(name)}")
        rounds = data.get("rounds", 1)
        if type(rounds) is not int or not 0 < rounds <= MAX_ROUNDS:
            self._fault(("rounds",), f"rounds: expected 1 to {MAX_ROUNDS}, not {shorten_value(rounds)}")
        order = data.get("order", IN_TURN)
        if order not in {IN_TURN, ONE_AFTER_ANOTHER}:
            expected = f"expected '{IN_TURN}' or '{ONE_AFTER_ANOTHER}'"
            self._fault(("order",), f"order: {expected}, not {shorten_value(order)}")
        between = data.get("between", "")
        if not isinstance(between, str):
            self._fault(("between",), f"between: expected a key, not {shorten_value(between)}")
        self._read_swifts(data)
        variants = tuple(self._variants(data))
        if between and not any(between in each.words for each in variants):
            self._fault(("between",), f"between: no row varies {shorten_value(between)}")
        known = {*self._swifts, *self._stores}  # rows that name none run at those of the command line
        if self._swifts and not any(each.store in known for each in variants):
            self._fault(("stores",), "stores: no row has one of them, as in vary: {store: [NAME, ...]}")
        if self._document.faults:
            raise self._error()
        chosen = _choose_variants(_keep_objects_apart(variants), self._rows)
        left_out = len(variants) - len(chosen)
        chosen = tuple(_add_variants_without_groups(chosen))
        swifts = {
            name: each
            for name, each in self._swifts.items()
            if name not in self._stores and any(one.store == name for one in chosen)
        }
        in_turn = order == IN_TURN
        values = {each.words.get(between) for each in chosen} - {None}
        used = between if len(values) > 1 else ""  # --rows may leave one of them
        return Suite(str(name), chosen, rounds, in_turn, self._scale, left_out, used, swifts)

    def _read_swifts(self, data: dict[str, Any]) -> None:
        for name, entry in self._mapping(data, (), "stores").items():
            path = ("stores", name)
            if not _NAME_PATTERN.match(name) or name in list_account_apis():
                self._fault(path, f"stores: expected another name, not {name!r}")
            elif not isinstance(entry, dict):
                self._fault(path, f"{spell_path(path)}: expected a mapping, not {shorten_value(entry)}")
            else:
                self._swifts[name] = _make_texts(entry)

    def _variants(self, data: dict[str, Any]) -> Iterator[SuiteVariant]:
        rows = data.get("rows")
        if not isinstance(rows, dict) or not rows:
            self._fault(
                ("rows",), f"rows: expected a mapping of one row or more by name, not {shorten_value(rows)}"
            )
            return
        count = 0
        names: set[str] = set()  # of variants, and of their files
        for name, entry in rows.items():
            path: KeyPath = ("rows", name)
            if not isinstance(name, str) or not _NAME_PATTERN.match(name):
                self._fault(path, f"rows: expected a name of letters, digits, _ . and -, not {name!r}")
                continue
            if not isinstance(entry, dict):
                self._fault(path, f"{spell_path(path)}: expected a mapping, not {shorten_value(entry)}")
                continue
            self._check_keys(entry, _ROW_KEYS, path)
            for variant in self._row_variants(name, path, entry, data):
                count += 1
                if count > MAX_VARIANTS:
                    self._fault(("rows",), f"rows: more than {MAX_VARIANTS} variants in all")
                    return
                if {variant.name, variant.file_name} & names:
                    self._fault(path, f"{spell_path(path)}: two variants are called {variant.name[:130]!r}")
                    break
                names |= {variant.name, variant.file_name}
                yield variant

    def _row_variants(
        self, name: str, path: KeyPath, entry: dict[str, Any], suite: dict[str, Any]
    ) -> Iterator[SuiteVariant]:
        base = self._scenario_data(name, path, entry, suite)
        if base is None:
            return
        scaling, fixed, varied = self._row_values(path, entry, suite)
        conditions = [*self._list(suite, (), "fail_if"), *self._list(entry, path, "fail_if")]
        seconds = self._seconds or entry.get("seconds", suite.get("seconds"))
        for values in product(*varied.values()):
            chosen = {key: value for key, (_, value) in zip(varied, values, strict=True)}
            made = copy.deepcopy(base)
            store: str | None = None
            together = chosen.pop(TOGETHER_KEY, None) or {}
            try:
                if not isinstance(together, dict):
                    raise ValueError(f"set: expected keys and values, not {shorten_value(together)}")
                for key, value in (*fixed.items(), *chosen.items(), *together.items()):
                    if key == STORE_KEY:
                        store = self._check_store(value)
                    else:
                        set_value(made, key, value)
            except ValueError as error:
                self._fault((*path, "vary"), f"{spell_path(path)}: {error}")
                return
            if seconds is not None:
                made.pop("operation_count", None)
                made["run_seconds"] = seconds
            if plain := [each for each in conditions if not _COST_PATTERN.match(each)]:
                made["fail_if"] = [*(made.get("fail_if") or []), *plain]
            label = " ".join([name, *(word for word, _ in values)])
            where = str(self._folder / f"{Path(self._name).name}: {label}")
            try:
                scaled = made if self._scale == 1 else scaling.apply(made)
                scenario = check_scenario_text(json.dumps(scaled), where, bodies=self._bodies)
            except (ScenarioError, TypeError, ValueError) as error:
                for line in str(error).splitlines():
                    # The text that was checked is no file of the user's: neither its name nor its line tells.
                    text = re.sub(r"^(:\d+)?: ", "", line.removeprefix(where))
                    self._fault_of_variant(path, entry, suite, label, text)
                return
            words = {_shorten_key(key, varied): word for key, (word, _) in zip(varied, values, strict=True)}
            try:
                costs = tuple(_parse_cost(text, scenario) for text in conditions if _COST_PATTERN.match(text))
            except (UsageError, ValueError) as error:
                self._fault((*path, "fail_if"), f"{spell_path((*path, 'fail_if'))}: {error}")
                return
            yield SuiteVariant(label, name, scenario, store, words, costs)

    def _fault_of_variant(
        self, path: KeyPath, entry: dict[str, Any], suite: dict[str, Any], label: str, text: str
    ) -> None:
        """Report a fault of the scenario of a variant, at the key of the suite that gave the value."""
        key, _, what = text.partition(": ")
        for place, data in ((path, entry), ((), suite)):
            if key == "run_seconds" and "seconds" in data and not self._seconds:
                where: KeyPath = (*place, "seconds")
                self._fault(where, f"{spell_path(where)}: {what}")
                return
            for part in ("vary", "set"):
                for given in self._mapping(data, place, part):
                    if OTHER_NAMES.get(given, given) == key:
                        where = (*place, part, given)
                        self._fault(where, f"{spell_path(where)}: {what}")
                        return
        self._fault(path, f"{spell_path(path)}: {label}: {text}")

    def _row_values(
        self, path: KeyPath, entry: dict[str, Any], suite: dict[str, Any]
    ) -> tuple[_SizeScaling, dict[str, Any], dict[str, list[tuple[str, Any]]]]:
        """Return how sizes are scaled, the values of all variants, and those that vary, with their names.

        What is wrong is left out.
        """
        own = self._mapping(entry, path, "set")
        fixed = {**self._mapping(suite, (), "set"), **own}
        common = {key: each for key, each in self._mapping(suite, (), "vary").items() if key not in own}
        varied = {**common, **self._mapping(entry, path, "vary")}
        together = varied.get(TOGETHER_KEY)
        sets = [*together.values()] if isinstance(together, dict) else []
        places = [each for each in (fixed, varied, *sets) if isinstance(each, dict)]
        if self._stores and not any(STORE_KEY in each for each in places):
            if len(self._stores) == 1:
                fixed[STORE_KEY] = next(iter(self._stores))
            else:
                varied[STORE_KEY] = [*self._stores]
        stores = varied.get(STORE_KEY, fixed.get(STORE_KEY))
        named = [*stores.values()] if isinstance(stores, dict) else stores
        named = named if isinstance(named, list) else [named]
        own_stores = [each[STORE_KEY] for each in sets if isinstance(each, dict) and STORE_KEY in each]
        if sets and len(own_stores) == len(sets):
            named = []  # each set replaces them
        least = max(map(self._find_least_part, [*named, *own_stores]), default=0)
        scaling = _SizeScaling(self._scale, least)
        found: dict[str, list[tuple[str, Any]]] = {}
        for key, content in varied.items():
            values = content
            if isinstance(content, str) and _find_series_name(key):
                try:
                    values = _parse_values(key, content)
                except ValueError as error:
                    self._fault((*path, "vary", key), f"{spell_path((*path, 'vary', key))}: {error}")
                    continue
            if isinstance(values, list) and values:
                short = _shorten_key(key, varied)
                words = scaling.spell(key, values)
                found[key] = [(f"{short}={word}", value) for word, value in zip(words, values, strict=True)]
            elif isinstance(values, dict) and values and all(map(_NAME_PATTERN.match, map(str, values))):
                found[key] = [(str(name), value) for name, value in values.items()]
            else:
                where, given = (*path, "vary", key), shorten_value(values)
                self._fault(
                    where,
                    f"{spell_path(where)}: expected a list, or a mapping of names to values"
                    f"{', or a range as of --sweep' * bool(_find_series_name(key))}, not {given}",
                )
        return scaling, fixed, found

    def _find_least_part(self, store: Any) -> int:
        """Return a store's minimum segment size, by the store's name; 0 if unknown."""
        url = self._storage_url if store in {None, "none"} else self._stores.get(str(store), "")
        kind = STORE_KINDS.get(str(store)) if not url else None
        return (kind or find_store_kind(url)).least_part

    def _check_store(self, value: Any) -> str | None:
        """Return the name of a store that is known, None for none; raises ValueError."""
        if value is None or value == "none":
            return None
        known = [*dict.fromkeys([*list_account_apis(), *self._swifts, *self._stores])]
        if value in known:
            return str(value)
        hint = did_you_mean(str(value), known)
        raise ValueError(
            f"store: expected {', '.join(known)} or a name that --store NAME=URL gives, not"
            f" {shorten_value(value)}{hint}"
        )

    def _scenario_data(
        self, name: str, path: KeyPath, entry: dict[str, Any], suite: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Return the content of the scenario of a row: of the suite, of a file, or a shipped one."""
        own = suite.get("scenarios") or {}
        wanted = entry.get("scenario", name)
        if not isinstance(own, dict):
            self._fault(("scenarios",), f"scenarios: expected a mapping, not {shorten_value(own)}")
            return None
        if not isinstance(wanted, str):
            self._fault(path, f"{spell_path(path)}.scenario: expected a name or a file")
            return None
        if isinstance(own.get(wanted), dict):
            return {"name": wanted, **own[wanted]}
        if wanted not in self._texts:
            beside = self._folder / wanted
            file = str(beside) if beside.is_file() else wanted
            try:
                parsed = parse_scenario_text(read_scenario_text(file))
            except ScenarioError as error:
                hint = did_you_mean(wanted, own)
                self._fault((*path, "scenario"), f"{spell_path(path)}.scenario: {error}{hint}")
                return None
            if parsed.faults or not isinstance(parsed.data, dict):
                self._fault(path, f"{spell_path(path)}: {format_faults(file, parsed.faults)}")
                return None
            self._texts[wanted] = parsed.data
        data: dict[str, Any] = self._texts[wanted]
        return data

    def _mapping(self, data: dict[str, Any], path: KeyPath, key: str) -> dict[str, Any]:
        found = data.get(key) or {}
        if not isinstance(found, dict) or not all(isinstance(each, str) for each in found):
            where = spell_path((*path, key))
            self._fault((*path, key), f"{where}: expected a mapping of keys, not {shorten_value(found)}")
            return {}
        return found

    def _list(self, data: dict[str, Any], path: KeyPath, key: str) -> list[str]:
        found = data.get(key) or []
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            where = spell_path((*path, key))
            self._fault((*path, key), f"{where}: expected a list of conditions, not {shorten_value(found)}")
            return []
        for text in found:
            cost = _COST_PATTERN.match(text)
            try:
                parse_condition(cost["condition"] if cost else text, relative=bool(cost), grouped=True)
            except ValueError as error:
                self._fault((*path, key), f"{spell_path((*path, key))}: {error}")
                return []
        return found

    def _check_keys(self, mapping: Mapping[Any, Any], known: Sequence[str], path: KeyPath) -> None:
        for key in mapping:
            if key not in known:
                where = spell_path((*path, key))
                hint = did_you_mean(str(key), known)
                self._fault((*path, key), f"{where}: unknown key, expected one of {', '.join(known)}{hint}")

    def _fault(self, path: KeyPath, text: str) -> None:
        self._document.faults.append(Fault(self._document.lines.get(path) if path else None, text))

    def _error(self) -> ScenarioError:
        return ScenarioError(format_faults(self._name, self._document.faults))


def _parse_cost(text: str, scenario: Scenario) -> GroupCost:
    """Return the condition on what a group costs the others; raises ValueError, and UsageError.

    It is one on a change, and neither on the group itself nor on the users of all groups together.
    """
    found = _COST_PATTERN.match(text)
    if found is None:
        raise ValueError(f"{text!r} is not a condition with a group")
    condition = parse_condition(found["condition"], scenario.defined_operations, relative=True, grouped=True)
    group = found["group"]
    if not condition.relative or condition.figure not in COMPARED_FIGURES:
        raise ValueError(f"{text!r}: expected a change, as in 'web.read.p99 > +20% with {group}'")
    leave_out_group(scenario, group)
    groups = [each.name for each in scenario.groups if each.name != group]
    if condition.group not in groups:
        raise ValueError(f"{text!r}: expected a figure of another group ({', '.join(groups)}) before 'with'")
    classes = [each.name for each in scenario.size_classes]
    if wrong := find_unknown_subject(condition, classes, groups, scenario.defined_operations):
        raise ValueError(wrong)
    return GroupCost(text, condition, group)


def _add_variants_without_groups(variants: Sequence[SuiteVariant]) -> Iterator[SuiteVariant]:
    """Yield variants, before each the same without the groups of users whose costs are judged.

    They have the same objects, so that nothing but the group differs.
    """
    for variant in variants:
        for each in {cost.group: cost for cost in variant.costs}.values():
            scenario = leave_out_group(variant.scenario, each.group)
            words = {**variant.words, "without": each.word}
            name = each.name_row_without(variant.name)
            yield replace(variant, name=name, scenario=scenario, words=words, costs=())
        yield variant


def _find_series_name(path: str) -> str:
    """Return as what sweeps vary the values of a key; empty where they do not."""
    last = path.rpartition(".")[2]
    names = {OTHER_NAMES.get(name, name): name for name in LARGEST_IN_SERIES} | {"users": "users"}
    return names.get(last, "")


def _parse_values(path: str, text: str) -> list[Any]:
    """Return the values of a key that are written as those of a sweep (``1e3..1e6``); raises ValueError."""
    name = _find_series_name(path)
    values = parse_series(name, text, f"{name}={text}")
    return [text_values.spell_size(value) if name == "size" else value for value in values]


def _shorten_key(path: str, others: Mapping[str, Any]) -> str:
    """Return the last part of a path where no other one ends so, and a short word for users."""
    last = path.rpartition(".")[2]
    if sum(each.rpartition(".")[2] == last for each in others) > 1:
        return path
    return {"user_count": "users", "run_seconds": "seconds"}.get(last, last)


def _make_texts(value: Any) -> Any:
    """Return lists and mappings with texts as values, as Swift's configuration has them."""
    if isinstance(value, dict):
        return {str(key): _make_texts(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_make_texts(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _spell_value(value: Any) -> str:
    """Return a value in a word: the operations of a profile, and what a scenario file has."""
    match value:
        case None:
            return "none"
        case dict():
            is_even = len({*map(str, value.values())}) < 2
            return "+".join(str(key) if is_even else f"{key}{each}" for key, each in value.items())
        case list():
            return "/".join(map(str, value))
    return str(value)


@dataclass(frozen=True, slots=True)
class _SizeScaling:
    """What the sizes of a row are multiplied by; segments do not become smaller than ``least_part``."""

    factor: Fraction
    least_part: int

    def apply(self, value: Any, key: str = "") -> Any:
        """Return the content of a scenario, or the value of a key, with other sizes."""
        if isinstance(value, dict):
            if key == "initial_files":
                return {name: _scale_files(count, self.factor) for name, count in value.items()}
            return {name: self.apply(each, str(name)) for name, each in value.items()}
        if isinstance(value, list):
            return [self.apply(each) for each in value]
        if key not in _BYTE_KEYS or isinstance(value, bool) or value is None:
            return value
        if isinstance(value, str) and ".." in value:
            return "..".join(text_values.spell_size(self.apply(each, key)) for each in value.split("..", 1))
        size = text_values.parse_size(value) if isinstance(value, str) else value
        scaled = max(1, round(size * self.factor)) if size else size
        return min(size, self.least_part) if key == _SEGMENT_KEY and scaled < self.least_part else scaled

    def spell(self, path: str, values: Sequence[Any]) -> list[str]:
        """Return a word for each value of a key; sizes are the objects' actual ones, not the file's."""
        words = [_spell_value(each) for each in values]
        key = path.rpartition(".")[2]
        if self.factor == 1 or key not in _BYTE_KEYS:
            return words
        scaled = []
        for each in values:
            try:
                size = self.apply(each, key)
            except ValueError:
                size = each  # it is a fault of the scenario, which is said of that
            scaled.append(text_values.spell_size(size) if type(size) is int else _spell_value(size))
        # Different sizes may become one.
        is_apart = len({*scaled}) == len(scaled)
        return scaled if is_apart else [f"{own}-of-{word}" for own, word in zip(scaled, words, strict=True)]


def _scale_files(count: Any, scale: Fraction) -> Any:
    if type(count) is not int or count <= _LEAST_SCALED_FILES:
        return count
    return min(count, max(_LEAST_SCALED_FILES, round(count * scale)))


def _keep_objects_apart(variants: Sequence[SuiteVariant]) -> tuple[SuiteVariant, ...]:
    """Return variants of which those that need other initial objects have containers of other names.

    The names have hyphens, which the S3 API takes too, so that both APIs see the same objects.
    """
    bases: dict[object, str] = {}
    made = []
    for variant in variants:
        scenario = variant.scenario
        # An object in segments is another one over each API.
        is_apart = any(each.segment_size for part in scenario.parts for each in part.size_classes)
        needed = (scenario.container_base, variant.store if is_apart else None, *_objects_of(scenario))
        if needed not in bases:
            row = re.sub("[^a-z0-9-]", "-", variant.row.lower())
            own = f"{scenario.container_base.rstrip('-')}-{row}-"
            names = (own, *(f"{own}{number}-" for number in range(2, MAX_VARIANTS + 2)))
            bases[needed] = next(name for name in names if name not in bases.values())
        made.append((variant, needed))
    if len(bases) < 2:
        if all(variant.store is None for variant in variants):
            return tuple(variants)
        bases = {needed: f"{variant.scenario.container_base.rstrip('-')}-" for variant, needed in made}
    return tuple(
        replace(variant, scenario=replace(variant.scenario, container_base=bases[needed]))
        for variant, needed in made
    )


def _choose_variants(variants: Sequence[SuiteVariant], patterns: Sequence[str]) -> tuple[SuiteVariant, ...]:
    """Return the variants that some patterns choose, in the order of the file; without patterns all of them.

    Raises UsageError for one that chooses nothing.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        found = [
            each.name
            for each in variants
            if any(fnmatchcase(name, pattern) for name in (each.row, each.name, each.name_anywhere))
        ]
        if not found:
            names = [*dict.fromkeys(each.row for each in variants)]
            hint = did_you_mean(pattern, [*names, *(each.name for each in variants)])
            raise UsageError(f"--rows: {pattern!r} is none of the rows {', '.join(names)}{hint}")
        chosen.update(found)
    return tuple(each for each in variants if not patterns or each.name in chosen)


def _objects_of(scenario: Scenario) -> Iterator[object]:
    """Yield what variants have in common that can use the same initial objects."""
    for part in scenario.parts:
        yield part.name, part.container_count, part.policy, part.container_base, part.object_names
        yield part.container_put_headers  # a container keeps what it was made with, such as versions
        for each in part.size_classes:
            yield each.name, each.initial_files, make_owner(part, each)


def list_container_bases(suite: Suite) -> dict[str, list[str]]:
    """Return what the names of the containers of a suite begin with, by stores; "" is for rows without."""
    found: dict[str, list[str]] = {}
    for each in suite.variants:
        bases = found.setdefault(each.store or "", [])
        if each.scenario.container_base not in bases:
            bases.append(each.scenario.container_base)
    return found
