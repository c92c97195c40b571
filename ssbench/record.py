"""Records as JSON: the one way in which they are written, and the schema that follows from their types.

A record is a struct of msgspec or a dataclass. Its fields have their units in their types
(:mod:`ssbench.measures`). What is infinite or not defined is null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, cast

import msgspec
import msgspec.inspect


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen record; all fields are always written."""


def text(record: object) -> str:
    """Return a record as JSON, indented, with a line feed at its end."""
    return _indented(_encode(record)) + "\n"


def schema(kind: type) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a kind of records, as they are written.

    All fields of a record are written, those with a default too, unless it leaves these out.
    """
    found = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(kind)}
    whole = {name for each in _records(msgspec.inspect.type_info(kind)) for name in _names(each)}
    for name, part in found["$defs"].items():
        if name in whole:
            part["required"] = list(part["properties"])
            for field in part["properties"].values():
                field.pop("default", None)
    return cast(dict[str, Any], _plain(found))


def schema_text(kind: type) -> str:
    """Return the schema as JSON, with a line feed at its end."""
    return text(schema(kind))


def _records(part: object, seen: set[type] | None = None) -> Iterator[type]:
    """Yield the classes of the records in a type that write all their fields."""
    seen = set() if seen is None else seen
    if isinstance(part, msgspec.inspect.StructType | msgspec.inspect.DataclassType):
        if part.cls in seen:
            return
        seen.add(part.cls)
        config: msgspec.structs.StructConfig | None = getattr(part.cls, "__struct_config__", None)
        if config is None or not config.omit_defaults:
            yield part.cls
    if isinstance(part, tuple):
        for each in part:
            yield from _records(each, seen)
    elif isinstance(part, msgspec.Struct):
        for name in part.__struct_fields__:
            yield from _records(getattr(part, name), seen)


def _names(kind: type) -> tuple[str, str]:
    """Return what a schema may call a record; the latter where another one has the same name."""
    return kind.__name__, f"{kind.__module__}.{kind.__qualname__}"


def _encode(record: object) -> bytes:
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:  # names in old stat files
        return msgspec.json.encode(_encodable(msgspec.to_builtins(record)))


def _indented(encoded: bytes) -> str:
    return msgspec.json.format(encoded, indent=1).decode()


def _encodable(value: Any) -> Any:
    """Return plain data with what UTF-8 cannot express replaced."""
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case dict():
            return {_encodable(key): _encodable(each) for key, each in value.items()}
        case list() | tuple():
            return [_encodable(each) for each in value]
    return value


def _plain(part: Any) -> Any:
    """Return a part of a schema with descriptions for readers of JSON.

    They are not indented, as docstrings are before Python 3.13, and have null for None.
    """
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        name: re.sub(r"\bNone\b", "null", cleandoc(value))
        if name == "description" and isinstance(value, str)
        else _plain(value)
        for name, value in part.items()
    }
