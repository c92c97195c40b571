"""Messages of the master to the process that serves the page."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ssbench.results.run_description import RunSummary


class PageMessage(msgspec.Struct, frozen=True):
    """The stat file that is written, as bytes of its name, and what only the master knows of the run."""

    path: bytes
    so_far: RunSummary

    @classmethod
    def of(cls, path: Path, so_far: RunSummary) -> PageMessage:
        """Make one."""
        return cls(os.fsencode(path), so_far)

    @property
    def file(self) -> Path:
        """The stat file."""
        return Path(os.fsdecode(self.path))


def encode_message(message: PageMessage) -> str:
    """Return a line."""
    return msgspec.json.encode(message).decode() + "\n"


def decode_message(line: bytes) -> PageMessage:
    """Return the message of a line."""
    return msgspec.json.decode(line, type=PageMessage)
