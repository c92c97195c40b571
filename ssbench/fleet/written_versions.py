"""The minimum version of each object, by the jobs that wrote it: anything older is stale.

With ``--verify`` the version of a body is the number of the job that wrote it. An object is written by one
job at a time, and by a later one with a higher number; while it is written it is not read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from ssbench.fleet.worker_state import Task
from ssbench.scenario.operations import OPERATIONS
from ssbench.store.contract import JobResult

#: Operations that write an object as a whole, in one request.
_WRITING_CODES = frozenset(OPERATIONS.named(name).code for name in ("create", "update", "create_only"))

#: Instead of a version: one of several attempts may take effect at any time, so the version is unknown.
_UNKNOWN = 2**64 - 1


class WrittenVersions:
    """Keeps the last version of each object that jobs of a group have written, in 8 bytes an object."""

    def __init__(self) -> None:
        #: By size class; 0: not written by such a job.
        self._last: dict[int, array[int]] = {}

    def note_ended(self, ended: Iterable[tuple[Task, JobResult]]) -> None:
        """Note which jobs have ended, and thus which versions are written."""
        for (code, size_class, _, number, _), result in ended:
            if code not in _WRITING_CODES:
                continue
            last = self._last.setdefault(size_class, array("Q"))
            if number >= len(last):
                last.extend([0] * (number + 1 - len(last)))
            sure = result.cause is None and (result.rare is None or not result.rare.repeated)
            if last[number] != _UNKNOWN:
                last[number] = result.job_id if sure else _UNKNOWN

    def find_least(self, tasks: Sequence[Task]) -> list[int]:
        """Return the version that the object of each task has at least, 0 where that is not known.

        Empty where nothing is known of any of them.
        """
        found = [self._find(size_class, number) for _, size_class, _, number, _ in tasks]
        return found if any(found) else []

    def _find(self, size_class: int, number: int) -> int:
        last = self._last.get(size_class, ())
        version = last[number] if number < len(last) else 0
        return 0 if version == _UNKNOWN else version
