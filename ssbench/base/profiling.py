"""Profiles of the programs, for ``--profile`` and its like."""

from __future__ import annotations

import cProfile
import logging
import os
import tempfile
from pathlib import Path
from types import TracebackType

_log = logging.getLogger(__name__)


class Profiling:
    """A context manager that profiles its thread and writes the profile to a file.

    The file is ``path``, or a new one in the temporary folder whose name begins with ``prefix``. A log
    line names it.
    """

    def __init__(self, prefix: str, path: Path | None = None) -> None:
        if path is None:
            descriptor, name = tempfile.mkstemp(prefix=f"{prefix}-", suffix=".prof")
            os.close(descriptor)
            path = Path(name)
        self._path = path
        self._profiler: cProfile.Profile | None = cProfile.Profile()

    def __enter__(self) -> Profiling:
        if self._profiler is not None:
            self._profiler.enable()
        return self

    def end(self) -> None:
        """Stop and write the profile; without effect when called again."""
        if self._profiler is not None:
            self._profiler.disable()
            profiler, self._profiler = self._profiler, None
            try:
                profiler.dump_stats(self._path)
            except OSError as error:
                _log.warning("The profile could not be written to %s: %s", self._path, error.strerror)
            else:
                _log.info("Profile written to %s", self._path)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
