"""Processes that are watched from outside: what they say, what they cost, what they hold open."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Look:
    """One look at a process: resident bytes, open descriptors, TCP connections to a port."""

    when: float
    resident: int
    descriptors: int
    connections: int


def _sockets_to(port: int) -> set[str]:
    """What /proc calls the sockets that have a connection to a port."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[2].rpartition(":")[2], 16) == port:
            found.add(f"socket:[{fields[9]}]")
    return found


class Watched:
    """A program of ssbench as a child process; standard output and error go to files."""

    def __init__(self, folder: Path, name: str, module: str, arguments: Sequence[object]) -> None:
        self.name = name
        self.looks: list[Look] = []
        self._out, self._err = folder / f"{name}.out", folder / f"{name}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def said(self) -> str:
        """Its standard error so far."""
        return self._err.read_text(errors="replace")

    @property
    def printed(self) -> str:
        """Its standard output so far."""
        return self._out.read_text(errors="replace")

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def look(self, port: int) -> Look | None:
        """Take a reading and keep it; None when the process has ended."""
        folder = Path(f"/proc/{self.process.pid}")
        try:
            resident = int((folder / "statm").read_text().split()[1]) * _PAGE
            sockets = _sockets_to(port)
            links = []
            for entry in (folder / "fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    links.append(str(entry.readlink()))
        except OSError:
            return None
        look = Look(time.monotonic(), resident, len(links), len(sockets.intersection(links)))
        self.looks.append(look)
        return look

    def early_and_late(self, what: str) -> tuple[float, float]:
        """Medians of the first and the last quarter of the readings after the first fifth."""
        looks = self.looks[len(self.looks) // 5 :]
        quarter = max(1, len(looks) // 4)
        early, late = (
            statistics.median(getattr(look, what) for look in part)
            for part in (looks[:quarter], looks[-quarter:])
        )
        return early, late

    def wait_for(self, text: str, patience: float) -> None:
        """Wait until it says so; ends the program when it does not."""
        end = time.monotonic() + patience
        while text not in self.said:
            if not self.runs or time.monotonic() > end:
                sys.exit(f"{self.name} did not say {text!r}:\n{self.said}")
            time.sleep(0.05)

    def end(self) -> None:
        """Kill it, if it still runs."""
        self.process.kill()
        self.process.wait()
