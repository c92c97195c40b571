"""What is in the bodies that a scenario uploads: random bytes, zeros, both, or the bytes of files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssbench.body_files import BodyFiles, find
from ssbench.rule import Rule


@dataclass(frozen=True, slots=True)
class Body:
    """Bodies of which a share is ``zeros``, evenly spread; the rest is random. 1: all of it.

    Where there are ``files``, they are of the bytes of these.
    """

    zeros: float
    files: BodyFiles | None = None

    @property
    def identity(self) -> str:
        """What tells objects with such bodies from others; empty for random ones."""
        if self.files is not None:
            return f"files {self.files.digest}"
        return f"Body(zeros={self.zeros!r})" if self.zeros else ""

    def __str__(self) -> str:
        if self.files is not None:
            return str(self.files)
        if self.zeros in {0, 1}:
            return "zero" if self.zeros else "random"
        return f"compressible: {self.zeros:g}"


def _body(value: object) -> object:
    """Return what a scenario says of bodies; a value that says nothing unchanged."""
    match value:
        case "random" | "zero":
            return Body(float(value == "zero"))
        case {"compressible": int() | float() as share, **rest} if not rest and type(share) is not bool:
            return Body(float(share)) if 0 < share < 1 else value
        case {"files": str() as folder, **rest} if not rest and folder and "\0" not in folder:
            return Body(0.0, BodyFiles(folder))
    return value


def with_files(body: Body, folder: Path) -> Body:
    """Return bodies whose files, if any, have been read; their path is relative to a folder.

    Raises ValueError.
    """
    if body.files is None:
        return body
    return Body(0.0, find((folder / body.files.folder).resolve()))


BODY = Rule(
    lambda value: isinstance(value, Body),
    "random, zero, {compressible: 0.6}, a share above 0 and below 1, which a compressor saves, or"
    " {files: FOLDER}, whose files are uploaded",
    convert=_body,
)
