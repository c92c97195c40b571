"""Metadata of objects: values that follow from a seed, the name of the object and a version.

They are ``Ssbench-0`` and so on, in hexadecimal digits; a store has its own beginning for names of such
fields. The first value begins with the version, which is random: so whoever knows the seed can check all of
them (``--verify``).
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import shake_256

from ssbench.scenario.operations import OPERATIONS, Header, OperationSettings
from ssbench.scenario.structured_values import Metadata

#: Number of items, and bytes of the value of each.
MetadataShape = tuple[int, int]

#: The item in which ssbench writes whose an object is.
OWNER_ITEM = "Ssbench-Owner"
_ITEM_PREFIX = "Ssbench-"

#: What a POST sets of an object that was written without metadata.
_POSTED_SHAPE: MetadataShape = (1, 16)

#: The keys of its settings.
_NUMBER_SETTING, _SIZE_SETTING = "metadata", "metadata_bytes"

_VERSION_BYTES = 4

#: Without a flag, so that the constant it begins with is looked for as such.
_LOWER_ITEM_PATTERN = re.compile(rb"\nx-(?:object|amz)-meta-ssbench-\d+[ \t]*:")
_OWNER_PATTERN = re.compile(rb"(?i)\nx-(?:object|amz)-meta-ssbench-owner[ \t]*:([^\r\n]*)")
_ITEM_PATTERN = re.compile(rb"(?i)\nx-(?:object|amz)-meta-ssbench-(\d+)[ \t]*:[ \t]*([^\r\n]*)")


def find_written_shape(metadata: Metadata | None) -> MetadataShape:
    """Return what each upload has, of the key of a scenario."""
    return (0, 0) if metadata is None else (metadata.number, metadata.size)


def find_posting_settings(operations: Iterable[OperationSettings]) -> OperationSettings:
    """Return the settings of the operation that sets metadata, among those of a scenario."""
    name = next(row.name for row in OPERATIONS if _NUMBER_SETTING in row.keys)
    return next((each for each in operations if each.name == name), OperationSettings(name))


def posted_shape(settings: OperationSettings, written: MetadataShape) -> MetadataShape:
    """Return what an operation sets of objects that have been ``written`` with so much."""
    number, size = written if written[0] else _POSTED_SHAPE
    values = settings.values
    return values.get(_NUMBER_SETTING, number), values.get(_SIZE_SETTING, size)


def make_metadata(seed: int, path: str, shape: MetadataShape) -> tuple[Header, ...]:
    """Return the items of a new version of an object at a path (``container/object``)."""
    values = _metadata_values(seed, path, os.urandom(_VERSION_BYTES).hex(), shape)
    return tuple((f"{_ITEM_PREFIX}{number}", value) for number, value in enumerate(values))


def find_owner(head: bytes) -> str | None:
    """Return what the head of an answer says of the owner of an object, None where it does not."""
    found = _OWNER_PATTERN.search(head)
    return None if found is None else found[1].decode("latin-1").strip()


def has_item(head: bytes) -> bool:
    """Whether the head of an answer has any of these fields."""
    return _LOWER_ITEM_PATTERN.search(head.lower()) is not None


def describe_wrong_metadata(
    seed: int, path: str, head: bytes, shapes: Collection[MetadataShape]
) -> str | None:
    """Say what is wrong with the metadata in the head of an answer, which should have one of these shapes."""
    found = {int(number): value.strip() for number, value in _ITEM_PATTERN.findall(head)}
    first = found.get(0, b"").decode("latin-1")
    shape = len(found), len(first)
    if shape not in shapes or found.keys() != set(range(len(found))):
        known = " or ".join(f"{number} of {size} bytes" for number, size in sorted(shapes))
        return f"{shape[0]} items of metadata, the first of {shape[1]} bytes, where {known} were written"
    for number, value in enumerate(_metadata_values(seed, path, first[: 2 * _VERSION_BYTES], shape)):
        if found[number] != value.encode():
            return f"{_ITEM_PREFIX}{number} is another than was written"
    return None


def _metadata_values(seed: int, path: str, version: str, shape: MetadataShape) -> Iterator[str]:
    number, size = shape
    version = version[:size]
    key = struct.pack("<Q", seed % 2**64) + f"{version} {path}".encode("utf-8", "surrogatepass")
    text = version + shake_256(key).hexdigest(number * size // 2 + 1)
    return (text[item * size : (item + 1) * size] for item in range(number))


def find_exceeded_limits(limits: Mapping[str, object], shape: MetadataShape, owner: str) -> Iterator[str]:
    """Say by name which limits of a cluster such metadata exceed, with the item that says whose it is.

    ``limits`` are those of ``swift`` in ``/info``; one that is not there holds nothing back.
    """
    number, size = shape
    of_owner = len(OWNER_ITEM) + len(owner)
    names = sum(len(f"{_ITEM_PREFIX}{each}") for each in range(number))
    needed = {
        "max_meta_count": number + 1,
        "max_meta_value_length": size,
        "max_meta_overall_size": names + number * size + of_owner,
    }
    for name, value in needed.items():
        limit = limits.get(name)
        if type(limit) is int and value > limit:
            yield f"{name} {value:,} (at most {limit:,})"
