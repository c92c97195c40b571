"""How a run went."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssbench.base.errors import ExitCode, SsbenchError
from ssbench.document.gates import choose_worst_code
from ssbench.results.description import RunSummary


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
    def ending_code(self) -> ExitCode:
        """The exit code of how it ended, whether or not operations failed."""
        found = [ExitCode.FAILED] if self.trouble else []
        if self.interrupted:
            found.append(ExitCode.INTERRUPTED)
        if self.error is not None:
            found.append(self.error.exit_code)
        return choose_worst_code(found)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code where no conditions, rates and groups are judged (:mod:`ssbench.statistics`)."""
        nothing_ended = self.path is not None and not self.count
        return choose_worst_code(
            [ExitCode.FAILED if self.errors or nothing_ended else ExitCode.OK, self.ending_code]
        )
