"""What ``import ssbench`` offers: run scenarios, read stat files, compare runs (``doc/api.rst``).

:mod:`ssbench` itself imports this module when one of its names is asked for, because numpy and ZeroMQ take
longer to import than a worker or a help text may take.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from ssbench.base.errors import ExitCode, UsageError, choose_worst_code
from ssbench.base.text_values import explain_several_runs, is_reference
from ssbench.comparison.archive import Archive, read_entry
from ssbench.comparison.compare import Comparison, compare_runs
from ssbench.comparison.run_figures import RunFigures, make_run_figures
from ssbench.results.block import ResultBlock
from ssbench.results.reading import RunResults
from ssbench.results.reading import open_results as _open
from ssbench.results.run_description import RunSummary
from ssbench.run.bench import Bench
from ssbench.run.folders import earlier_folders, results_folder
from ssbench.run.options import BenchOptions, RunOptions
from ssbench.scenario.conditions import Condition, parse_condition, parse_subject
from ssbench.scenario.consistency import override
from ssbench.scenario.model import Scenario
from ssbench.scenario.reading import check_scenario_data, read_scenario
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import RunVerdict, verdict_of
from ssbench.statistics.summary import summarize
from ssbench.statistics.thresholds import find_line, judge_conditions
from ssbench.store.stores import Credentials

#: A scenario, a file of one, the name of one that ships with ssbench, or the content of a file.
AnyScenario = Scenario | str | PathLike[str] | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run that has ended: its stat file, what was counted in it, and what is concluded.

    ``ending_code`` is how it ended, where it was carried out here: its clean-up, which comes after the stat
    file, may have failed.
    """

    path: Path
    statistics: RunStatistics
    verdict: RunVerdict
    ending_code: ExitCode = ExitCode.OK

    @property
    def exit_code(self) -> ExitCode:
        """What ``ssbench-master run-scenario`` would end with; 0 if all went well."""
        return choose_worst_code([self.verdict.exit_code, self.ending_code])

    def figure(self, name: str) -> float | None:
        """Return a figure by its name in conditions: ``read.p95`` (seconds), ``rate``, ``errors``.

        None where the run has none, or where too few operations support it. Raises UsageError for a name
        that is no figure.
        """
        try:
            operation, size_class, row = parse_subject(name, self.statistics.run.scenario.defined_operations)
        except ValueError as error:
            raise UsageError(str(error)) from None
        found = find_line(self.statistics, operation, size_class)
        return None if found is None else row.value(found, self.statistics)

    def holds(self, condition: str) -> bool | None:
        """Say whether a condition such as ``read.p95 > 200ms`` holds; None where that is undecided.

        Of what the run has not measured it holds, as for ``--fail-if``. Raises UsageError for what is no
        condition.
        """
        (judgment,) = judge_conditions(self.statistics, _conditions([condition], self.statistics))
        return None if judgment.undecided else judgment.failed


class _Follower:
    """A sink that calls a function with each block of results."""

    def __init__(self, call: Callable[[ResultBlock], object]) -> None:
        self._call = call

    def add(self, block: ResultBlock) -> None:
        self._call(block)

    def tick(self, now: float) -> None:
        pass

    def end(self, summary: RunSummary) -> None:
        pass


def load_scenario(
    source: AnyScenario, *, limited: bool = False, bodies: Sequence[str | PathLike[str]] = ()
) -> Scenario:
    """Return a checked scenario; raises ScenarioError, whose text lists the first faults.

    ``source`` is a file, the name of a shipped scenario, or a mapping: what a file may contain. UsageError is
    raised for one that no file can contain.

    One that does not say how long it runs is a fault, unless it is ``limited`` otherwise. Body files
    must be in the folder of the scenario's file or in one of ``bodies``.
    """
    if isinstance(source, Scenario):
        return source
    allowed = [Path(each) for each in bodies]
    if isinstance(source, Mapping):
        return check_scenario_data(source, limited=limited, bodies=allowed)
    if not isinstance(source, str | PathLike):
        raise UsageError(f"scenario: expected a Scenario, a file, a name or a mapping, not {source!r:.80}")
    return read_scenario(str(source), limited=limited, bodies=allowed)


def run_scenario(
    source: AnyScenario,
    *,
    users: int | None = None,
    operations: int | None = None,
    seconds: float | None = None,
    rate: float | None = None,
    workers: int = 1,
    credentials: Credentials | None = None,
    local_swift: bool = False,
    options: RunOptions | None = None,
    on_results: Callable[[ResultBlock], object] | None = None,
) -> RunReport:
    """Run a scenario with workers on this machine, and return what came of it.

    ``users``, ``operations``, ``seconds`` and ``rate`` (operations per second, in an open loop) replace what
    the scenario says. Swift is where ``credentials`` say, or one that is started for the run. ``on_results``
    is called with blocks of results during the run; the run waits for it. What it raises ends the run, with
    its stat file and its clean-up, and is raised then. :class:`Bench` has more: several runs with the same
    workers, workers on other hosts.

    Raises SsbenchError where the benchmark could not begin, or was interrupted before it did. What fails
    later is in :attr:`RunReport.verdict` and :attr:`RunReport.exit_code`.
    """
    if credentials is not None and not isinstance(credentials, Credentials):
        raise UsageError(f"credentials: expected ssbench.Credentials, not {type(credentials).__name__}")
    limited = operations is not None or seconds is not None
    chosen = override(
        load_scenario(source, limited=limited),
        user_count=users,
        operation_count=operations,
        run_seconds=seconds,
        rate=rate,
    )
    shared = BenchOptions(workers=workers, credentials=credentials, local_swift=local_swift)
    with Bench(shared) as bench:
        sinks = [_Follower(on_results)] if on_results else []
        outcome = bench.run(chosen, options or RunOptions(), sinks=sinks)
    if outcome.path is None:
        raise outcome.error or UsageError("the run was interrupted before its benchmark began")
    return replace(report(outcome.path), ending_code=outcome.ending_code)


def open_results(path: str | PathLike[str]) -> RunResults:
    """Open a stat file of any version, for its results block by block.

    ``path`` may be ``last``, ``last-1`` and so on, or ``@LABEL``, of the folder in which runs leave
    their files (``SSBENCH_RESULTS_DIR``). Raises StatFileError, and UsageError where it means no run or
    several.
    """
    return _open(_find_file(path))


def report(path: str | PathLike[str], fail_if: Iterable[str] = ()) -> RunReport:
    """Return the report of a stat file of any version, judged by more conditions than its scenario has.

    ``path`` is as for :func:`open_results`. Raises StatFileError, and UsageError for a wrong condition.
    """
    file = _find_file(path)
    statistics = summarize(_open(file), ("worker", "storage_url"), over_time=True)
    return RunReport(file, statistics, verdict_of(statistics, _conditions(fail_if, statistics)))


def _find_file(path: str | PathLike[str]) -> Path:
    """Return the named stat file; raises UsageError if the name stands for several."""
    found = _find_files(path)
    if len(found) > 1:
        raise UsageError(explain_several_runs(str(path), found))
    return found[0]


def _find_files(path: str | PathLike[str]) -> list[Path]:
    """Return the stat files that are meant, the oldest first."""
    if not isinstance(path, str) or not is_reference(path):
        return [Path(path)]
    named = os.environ.get("SSBENCH_RESULTS_DIR")
    folder = Path(named) if named else results_folder()
    earlier = [] if named else [each for each in earlier_folders() if each != folder]
    return Archive(folder, read_entry, earlier).find(path)


def compare(
    before: Sequence[RunReport | str | PathLike[str]],
    after: Sequence[RunReport | str | PathLike[str]],
    *,
    noise: float = 0.01,
) -> Comparison:
    """Compare two groups of runs; a share of ``noise`` (0.01: 1 %) counts as no change.

    ``"@LABEL"`` stands for all runs with a label. Verdicts need four runs a side. Raises StatFileError, and
    UsageError where a side has no run.
    """
    return compare_runs(_figures("before", before), _figures("after", after), noise)


def _figures(side: str, runs: Sequence[RunReport | str | PathLike[str]]) -> list[RunFigures]:
    if isinstance(runs, str | PathLike | RunReport) or not runs:
        raise UsageError(f"{side}: expected a list of runs or stat files, not {runs!r:.80}")
    reports = [
        found
        for each in runs
        for found in ([each] if isinstance(each, RunReport) else map(report, _find_files(each)))
    ]
    return [make_run_figures(each.statistics, each.path.name) for each in reports]


def _conditions(texts: Iterable[str], statistics: RunStatistics) -> list[Condition]:
    defined = statistics.run.scenario.defined_operations
    try:
        return [parse_condition(text, defined) for text in texts]
    except ValueError as error:
        raise UsageError(str(error)) from None
