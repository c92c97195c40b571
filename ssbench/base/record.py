"""Records as JSON: the one way in which they are written, and the schema that follows from their types.

A record is a struct of msgspec or a dataclass. Its fields have their units in their types
(:data:`Seconds` and so on), which msgspec takes into the schema; to Python they are plain numbers. What is
infinite or not defined is null.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from inspect import cleandoc, getsource
from io import StringIO
from textwrap import dedent
from tokenize import COMMENT, generate_tokens
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import msgspec
import msgspec.inspect
from msgspec import Meta

from ssbench.base.errors import ExitCode
from ssbench.base.version import __version__

Seconds = Annotated[float, Meta(description="seconds")]
Moment = Annotated[float, Meta(description="seconds since 1970")]
Offset = Annotated[float, Meta(description="seconds after window.start")]
Bytes = Annotated[int, Meta(description="bytes", ge=0)]
PerSecond = Annotated[float, Meta(description="operations a second", ge=0)]
BytesPerSecond = Annotated[float, Meta(description="bytes a second", ge=0)]
Share = Annotated[float, Meta(description="share, 1 is all")]
Percent = Annotated[float, Meta(description="per cent, 100 is all")]
Count = Annotated[int, Meta(description="number", ge=0)]

# JSON has no number for what is infinite or not defined: msgspec writes null. In Python these are floats.
if TYPE_CHECKING:
    PerhapsNumber = float
    PerhapsSeconds = float
    PerhapsMoment = float
    PerhapsShare = float
    PerhapsPerSecond = float
    PerhapsBytesPerSecond = float
else:
    PerhapsNumber = float | None
    PerhapsSeconds = Seconds | None
    PerhapsMoment = Moment | None
    PerhapsShare = Share | None
    PerhapsPerSecond = PerSecond | None
    PerhapsBytesPerSecond = BytesPerSecond | None

#: So many items of a list are written at once, and each on one line where there are more than so many:
#: indentation is half of a long list.
_ITEMS_AT_ONCE = 10_000
_MAX_INDENTED_ITEMS = 100


def _convert_sequence(value: Any) -> Any:
    """Return an array of numpy, or another sequence than a list or a tuple, as a list."""
    return value.tolist() if hasattr(value, "tolist") else list(value)


_encoder = msgspec.json.Encoder(enc_hook=_convert_sequence)


class JsonRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen record; all fields are always written."""


_MISSING = object()
_JsonRecordType = TypeVar("_JsonRecordType", bound=JsonRecord)


def make_record_from(kind: type[_JsonRecordType], source: object, **own: Any) -> _JsonRecordType:
    """Return a record whose fields are those given, and for the others what ``source`` has by their names."""
    others = {
        name: value
        for name in kind.__struct_fields__
        if name not in own and (value := getattr(source, name, _MISSING)) is not _MISSING
    }
    return kind(**others, **own)


class JsonHead(JsonRecord, frozen=True, kw_only=True):
    """What the JSON of each command begins with."""

    format: str  # what this is
    #: Rises when a field is renamed, removed or changes its meaning; fields may be added under the same one.
    version: Annotated[int, Meta(ge=1)]
    made_by: Annotated[str, Meta(description="version of ssbench that wrote this")] = __version__
    exit_code: ExitCode = ExitCode.OK  # that of the command


def format_json(record: object) -> str:
    """Return a record as JSON, indented, with a line feed at its end."""
    return _indent_record(record) + "\n"


def iterate_json(record: msgspec.Struct) -> Iterator[str]:
    """Yield the same in parts, so that long lists in its fields are never in memory as text."""
    before = "{"
    for name, public in zip(record.__struct_fields__, record.__struct_encode_fields__, strict=True):
        yield f'{before}\n "{public}": '
        before = ","
        value = getattr(record, name)
        if isinstance(value, Sequence) and not isinstance(value, str) and len(value) > _MAX_INDENTED_ITEMS:
            yield from _iterate_list(value)
        else:
            yield _indent_record(value).replace("\n", "\n ")
    yield "\n}\n"


def _iterate_list(items: Sequence[object]) -> Iterator[str]:
    before = "[\n  "
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        yield before + ",\n  ".join(
            _encode_record(each).decode() for each in items[start : start + _ITEMS_AT_ONCE]
        )
        before = ",\n  "
    yield "\n ]"


def make_json_schema(kind: type) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a kind of records, as they are written.

    All fields of a record are written, those with a default too, unless it leaves these out. Descriptions
    are docstrings, and for fields their comments and their units.
    """
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(kind)}
    records = {
        name: each for each in _find_records(msgspec.inspect.type_info(kind)) for name in _schema_names(each)
    }
    for name, part in found["$defs"].items():
        if name in records:
            _describe_fields(records[name], part["properties"])
            if not _leaves_out_defaults(records[name]):
                part["required"] = list(part["properties"])
                for field in part["properties"].values():
                    field.pop("default", None)
    return cast(dict[str, Any], _make_plain_schema(found))


def format_json_schema(kind: type) -> str:
    """Return the schema as JSON, with a line feed at its end."""
    return format_json(make_json_schema(kind))


def _find_records(part: object, seen: set[type] | None = None) -> Iterator[type]:
    """Yield the classes of the records in a type."""
    seen = set() if seen is None else seen
    if isinstance(part, msgspec.inspect.StructType | msgspec.inspect.DataclassType):
        if part.cls in seen:
            return
        seen.add(part.cls)
        yield part.cls
    if isinstance(part, tuple):
        for each in part:
            yield from _find_records(each, seen)
    elif isinstance(part, msgspec.Struct):
        for name in part.__struct_fields__:
            yield from _find_records(getattr(part, name), seen)


def _leaves_out_defaults(kind: type) -> bool:
    config: msgspec.structs.StructConfig | None = getattr(kind, "__struct_config__", None)
    return config is not None and config.omit_defaults


def _describe_fields(kind: type, properties: dict[str, dict[str, Any]]) -> None:
    """Put what comments say of the fields of a record before their units."""
    public = {}
    if issubclass(kind, msgspec.Struct):
        public = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    for each in reversed(kind.__mro__):
        for name, said in _read_field_comments(each).items():
            if (part := properties.get(public.get(name, name))) is not None:
                unit = part.get("description", "")
                part["description"] = f"{said}; {unit}" if unit else said


@cache
def _read_field_comments(kind: type) -> dict[str, str]:
    """Return the comment of each field of a class: at the end of its line, or with ``#:`` before it."""
    try:
        source = dedent(getsource(kind))
    except (OSError, TypeError):  # the program was installed without its source
        return {}
    comments = {
        token.start[0]: token.string
        for token in generate_tokens(StringIO(source).readline)
        if token.type == COMMENT
    }
    found = {}
    definition = cast(ast.ClassDef, ast.parse(source).body[0])
    for field in definition.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            lines, before = [comments.get(field.end_lineno or 0, "")], field.lineno - 1
            if not lines[0]:
                while comments.get(before, "").startswith("#:"):
                    lines.insert(0, comments[before])
                    before -= 1
            if said := " ".join(line.lstrip("#:").strip() for line in lines).strip():
                found[field.target.id] = said.removesuffix(".")
    return found


def _schema_names(kind: type) -> tuple[str, str]:
    """Return what a schema may call a record; the latter where another one has the same name."""
    return kind.__name__, f"{kind.__module__}.{kind.__qualname__}"


def _encode_record(record: object) -> bytes:
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError:  # names in old stat files
        return _encoder.encode(_make_encodable(msgspec.to_builtins(record, enc_hook=_convert_sequence)))


def _indent_record(record: object) -> str:
    return msgspec.json.format(_encode_record(record), indent=1).decode()


def _make_encodable(value: Any) -> Any:
    """Return plain data with what UTF-8 cannot express replaced."""
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case dict():
            return {_make_encodable(key): _make_encodable(each) for key, each in value.items()}
        case list() | tuple():
            return [_make_encodable(each) for each in value]
    return value


def _clean_docstring(docstring: str) -> str:
    """Return a docstring for readers of JSON."""
    text = re.sub(r"\b(None|NaN)\b", "null", cleandoc(docstring))
    text = re.sub(r"\bTrue\b", "true", re.sub(r"\bFalse\b", "false", text))
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"``\1``", text)


def _make_plain_schema(part: Any) -> Any:
    """Return a part of a schema with descriptions for readers of JSON.

    They are not indented, as docstrings are before Python 3.13, and have null for None.
    """
    if isinstance(part, list):
        return [_make_plain_schema(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        name: _clean_docstring(value)
        if name == "description" and isinstance(value, str)
        else _make_plain_schema(value)
        for name, value in part.items()
    }
