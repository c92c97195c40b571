"""What uploads of a scenario have: random bytes, zeros, both or the bytes of files; and metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from ssbench.base import quantities
from ssbench.document.columns import format_plural
from ssbench.scenario.body_files import BodyFiles, find_body_files, refuse_outside
from ssbench.scenario.rule import Rule


@dataclass(frozen=True, slots=True)
class Body:
    """Bodies of which a share is ``zeros``, evenly spread; the rest is random. 1: all of it.

    Where there are ``files``, they are of the bytes of these.
    """

    zeros: float
    files: BodyFiles | None = None

    @property
    def identity(self) -> str:
        """What distinguishes objects with such bodies from others; empty for random ones."""
        if self.files is not None:
            return f"files {self.files.digest}"
        return f"Body(zeros={self.zeros!r})" if self.zeros else ""

    def __str__(self) -> str:
        if self.files is not None:
            return str(self.files)
        if self.zeros in {0, 1}:
            return "zero" if self.zeros else "random"
        return f"compressible: {self.zeros:g}"


def _parse_body(value: object) -> object:
    """Return what a scenario says of bodies; a value that says nothing unchanged."""
    match value:
        case "random" | "zero":
            return Body(float(value == "zero"))
        case {"compressible": int() | float() as share, **rest} if not rest and type(share) is not bool:
            return Body(float(share)) if 0 < share < 1 else value
        case {"files": str() as folder, **rest} if not rest and folder and "\0" not in folder:
            return Body(0.0, BodyFiles(folder))
    return value


def read_files_of_body(body: Body, folder: Path, allowed: Sequence[Path] = ()) -> Body:
    """Return bodies whose files, if any, have been read; their path is relative to a folder.

    They have to be in that folder, or in one that is ``allowed``. Raises ValueError.
    """
    if body.files is None:
        return body
    files = folder / body.files.folder
    refuse_outside(files, (folder, *allowed))
    return Body(0.0, find_body_files(files.resolve()))


BODY_RULE = Rule(
    lambda value: isinstance(value, Body),
    "random, zero, {compressible: 0.6}, a share above 0 and below 1, which a compressor saves, or"
    " {files: FOLDER}, whose files are uploaded",
    convert=_parse_body,
)


#: Swift takes 90 items of 256 bytes unless a cluster says otherwise, which is asked before a run.
_MAX_ITEMS, _MAX_BYTES = 1000, 10_000


class Metadata(Struct, frozen=True):
    """``number`` items of metadata of each object, ``size`` bytes of value each."""

    number: int
    size: int

    def __str__(self) -> str:
        """Return it in words."""
        return f"{format_plural(self.number, 'item')} of {format_plural(self.size, 'byte')}"


def _parse_metadata(value: object) -> object:
    """Return what a value means; any wrong value unchanged."""
    match value:
        case {"number": int() as number, "size": int() | str() as given, **others} if not others:
            size = int(quantities.parse_size(given)) if isinstance(given, str) else given
            if type(number) is not bool and type(given) is not bool:
                return Metadata(number, size)
    return value


METADATA_RULE = Rule(
    lambda value: (
        isinstance(value, Metadata) and 1 <= value.number <= _MAX_ITEMS and 1 <= value.size <= _MAX_BYTES
    ),
    f"a mapping with number, a whole number of items from 1 to {_MAX_ITEMS}, and size, the bytes of each"
    f" value from 1 to {_MAX_BYTES}",
    convert=_parse_metadata,
)
