"""How a run went."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssbench.errors import ExitCode, SsbenchError
from ssbench.results import RunSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run went; what its operations took is in the stat file at ``path``.

    ``path`` and ``summary`` are None when the run was interrupted before its benchmark began. ``count``
    operations have a result, of which ``errors`` failed. ``interrupted``: by a signal or
    :meth:`~ssbench.run.bench.Bench.interrupt`, in whatever phase. ``error`` ended the benchmark before its
    time. ``trouble``: something besides the operations failed (initial uploads, writing the stat file,
    deleting what the run created); ``warnings`` say what, and whatever else the report warns of.
    """

    run_id: int
    seed: int
    path: Path | None = None
    count: int = 0
    errors: int = 0
    interrupted: bool = False
    error: SsbenchError | None = None
    trouble: bool = False
    warnings: tuple[str, ...] = ()
    summary: RunSummary | None = None

    @property
    def ended_early(self) -> str | None:
        """Why the run ended before its time; None when it did not."""
        if self.error is not None:
            return str(self.error)
        return "interrupted" if self.interrupted else None

    @property
    def exit_code(self) -> ExitCode:
        """What ``run-scenario`` returns to the shell."""
        if self.error is not None:
            return self.error.exit_code
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return ExitCode.FAILED if self.errors or self.trouble else ExitCode.OK
