"""Folders of runs that are only texts, and histories of runs: for tests of archives and of lists."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asked_commands import ask

from ssbench.base.errors import StatFileError
from ssbench.cli.archives import StatFileAsked
from ssbench.cli.parser import Origin, ValueSource
from ssbench.comparison.archive import Archive, ArchiveEntry


class Folder:
    """A folder of files that are text: when the run began, and its label."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read: list[str] = []
        self.archive = Archive(path, self._read)

    def write(self, name: str, started: float | str, label: str = "") -> None:
        (self.path / name).write_text(f"{started},{label}")

    def _read(self, path: Path) -> ArchiveEntry:
        self.read.append(path.name)
        try:
            started, found = path.read_text().split(",")
        except ValueError:
            raise StatFileError(f"{path}: not a stat file of ssbench") from None
        status = path.stat()
        return ArchiveEntry(
            path.name,
            status.st_size,
            status.st_mtime_ns,
            float(started),
            "s",
            found or None,
            4,
            10.0,
            None,
            "ok",
        )


def arguments(**values: Any) -> Any:
    """Return what ``list`` is asked, or another command that reads a stat file."""
    if values.keys() & {"file", "stats_file"}:
        given = values.pop("given", ())
        sources = dict.fromkeys(given, ValueSource(Origin.LINE))
        return StatFileAsked(**{"file": None, "stats_file": None, **values}, sources=sources)
    return ask("list", **{"verbose": True, **values})


def history(rates: Sequence[float | None], **facts: Sequence[Any]) -> list[ArchiveEntry]:
    """An entry for each rate; ``facts`` are lists of what each run had."""
    return [
        ArchiveEntry(
            f"{number}.stat.gz",
            1,
            1,
            1e9 + 86400 * number,
            "s",
            None,
            4,
            rate,
            None if rate is None else 10 / rate,
            "ok",
            json.dumps({name: values[number] for name, values in facts.items()}),
        )
        for number, rate in enumerate(rates)
    ]
