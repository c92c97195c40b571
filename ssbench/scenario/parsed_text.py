"""From the text of a scenario file to plain data, and the line of each key.

Both YAML and the JSON of ssbench 0.x are read; a text that starts with ``{`` is read as JSON. (JSON is not
a subset of the YAML that PyYAML reads: tabs, ``1e3`` and ``\\ud83d\\ude00`` differ.) Faults of the text are
data: a list of :class:`Fault`, so that all of them can be reported at once.

The text is not trusted, so its cost is bounded. The nesting is counted before anything recursive reads it
(libyaml's composer overflows the C stack), and so are the values that aliases expand to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import yaml

#: Maximum nesting: deeper than any scenario, and far less than the stack allows.
MAX_DEPTH = 20
#: Values in one file, counted after aliases have been expanded.
MAX_VALUES = 200_000
#: Faults of a file that are said, and characters of each.
_MAX_FAULTS, _MAX_FAULT_CHARACTERS = 20, 4000
#: Characters of a number, a date and the like; what is much longer Python does not even print.
MAX_SCALAR_CHARACTERS = 400

#: The place of a value: keys of mappings and indices of lists, from the top.
KeyPath = tuple[object, ...]

_Loader: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE_TAG = "tag:yaml.org,2002:merge"
_TEXT_TAG = "tag:yaml.org,2002:str"
_LIST_TAG = "tag:yaml.org,2002:seq"
_MAPPING_TAG = "tag:yaml.org,2002:map"


class Fault(NamedTuple):
    """A fault in a scenario; ``line`` counts from 1, and is None where it is unknown."""

    line: int | None
    text: str


@dataclass(slots=True)
class ParsedText:
    """The content of a text."""

    data: object = None  # None: it is invalid
    lines: dict[KeyPath, int] = field(default_factory=dict)  # the line of each path
    faults: list[Fault] = field(default_factory=list)


def format_faults(name: str, faults: Sequence[Fault]) -> str:
    """Return the first faults of a file of this name, one on a line, and how many more there are."""
    ordered = list(dict.fromkeys(sorted(faults, key=lambda fault: fault.line or 0)))
    shown = [
        f"{name}{'' if line is None else f':{line}'}: {text[:_MAX_FAULT_CHARACTERS]}"
        for line, text in ordered[:_MAX_FAULTS]
    ]
    more = len(ordered) - len(shown)
    return "\n".join(shown + ([f"{name}: and {more:,} more faults"] if more else []))


def spell_path(path: KeyPath) -> str:
    """Spell a path for a message: ``("sizes", 0, "name")`` as ``sizes[0].name``."""
    parts = [f"[{part}]" if type(part) is int else f".{part}" for part in path]
    return "".join(parts).removeprefix(".")


def parse_scenario_text(text: str) -> ParsedText:
    """Read YAML or JSON, distinguished by content. An invalid text has faults and no data."""
    if not text.lstrip().startswith("{"):
        return _parse_yaml(text)
    document = ParsedText()
    try:
        document.data = json.loads(
            text, object_pairs_hook=lambda pairs: _make_mapping(pairs, document.faults)
        )
    except (ValueError, RecursionError) as error:
        # A mapping in the flow style of YAML begins with a brace as well.
        other = _parse_yaml(text)
        if other.data is not None:
            return other
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return ParsedText(faults=[Fault(line, f"expected JSON or YAML, but it is broken: {reason}")])
    # The JSON parser does not tell line numbers; the YAML parser does, where it can read the text.
    in_yaml = _parse_yaml(text)
    document.lines = in_yaml.lines
    if in_yaml.data is not None:
        document.faults = in_yaml.faults
    return document


def _make_mapping(pairs: list[tuple[str, object]], faults: list[Fault]) -> dict[str, object]:
    mapping: dict[str, object] = {}
    for key, value in pairs:
        if key in mapping:
            faults.append(Fault(None, f"{key}: expected once, found again in the same mapping"))
        mapping[key] = value
    return mapping


def _parse_yaml(text: str) -> ParsedText:
    document = ParsedText()
    try:
        _check_depth(text)
        builder = _DataBuilder(text, document)
        document.data = builder.build_all()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
        if "nest" in reason:  # newer versions of PyYAML have a limit of their own, and words for it
            reason = f"nested deeper than {MAX_DEPTH} levels"
        document.data = None
        line = mark.line + 1 if mark is not None else None
        document.faults.append(Fault(line, f"expected YAML or JSON, but it is broken: {reason}"))
    return document


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _make_error(f"nested deeper than {MAX_DEPTH} levels", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _make_error(problem: str, where: yaml.Node | yaml.Event) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=where.start_mark)  # type: ignore[arg-type]


class _DataBuilder:
    """Turns the nodes of a YAML text into plain data, and notes lines and repeated keys."""

    def __init__(self, text: str, document: ParsedText) -> None:
        self._loader = _Loader(text)
        self._document = document
        self._values_left = MAX_VALUES

    def build_all(self) -> object:
        try:
            node = self._loader.get_single_node()
            return None if node is None else self._build(node, ())
        finally:
            self._loader.dispose()

    def _build(self, node: yaml.Node, path: KeyPath) -> object:
        self._values_left -= 1
        if self._values_left < 0 or len(path) > MAX_DEPTH:
            raise _make_error(f"aliases expand to more than {MAX_VALUES} values or {MAX_DEPTH} levels", node)
        self._document.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if isinstance(node, yaml.SequenceNode) and node.tag == _LIST_TAG:
            return [self._build(child, (*path, index)) for index, child in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING_TAG:
            return self._mapping(node, path)
        raise _make_error(f"unexpected tag {node.tag}", node)

    def _scalar(self, node: yaml.ScalarNode) -> object:
        if len(node.value) > MAX_SCALAR_CHARACTERS and node.tag != _TEXT_TAG:
            raise _make_error(f"a value of {node.tag} with {len(node.value):,} characters", node)
        try:
            value: object = self._loader.construct_object(node)
        except (ValueError, ArithmeticError, LookupError, AttributeError):
            # Such as a date with month 13, or a value that is not a number with the tag of a number.
            raise _make_error(f"{node.value[:40]!r} is no value of {node.tag}", node) from None
        return value

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[object, object]:
        mapping: dict[object, object] = {}
        merged: dict[object, object] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise _make_error("a key must be plain text", key_node)
            if key_node.tag == _MERGE_TAG:
                for source in self._merge_sources(value_node, path):
                    merged = source | merged
                continue
            key = self._scalar(key_node)
            if key in mapping:
                self._document.faults.append(
                    Fault(line, f"{key}: expected once, found again in the same mapping")
                )
            self._document.lines[(*path, key)] = line
            mapping[key] = self._build(value_node, (*path, key))
        return merged | mapping

    def _merge_sources(self, node: yaml.Node, path: KeyPath) -> list[dict[object, object]]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        sources = [self._build(child, (*path, "<<")) for child in nodes]
        if not all(isinstance(source, dict) for source in sources):
            raise _make_error("<< takes mappings", node)
        return [source for source in sources if isinstance(source, dict)]
