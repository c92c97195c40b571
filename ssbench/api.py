"""What ``import ssbench`` offers: run scenarios, read stat files, compare runs (``doc/api.rst``).

:mod:`ssbench` itself imports this module when one of its names is asked for, because numpy and ZeroMQ take
longer to import than a worker or a help text may take.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

from ssbench.base.errors import ExitCode, UsageError, choose_worst_code, did_you_mean
from ssbench.base.text_values import explain_several_runs, is_reference
from ssbench.comparison.archive import Archive, read_entry
from ssbench.comparison.capacity_report import Capacity, PhaseCapacities
from ssbench.comparison.equal_runs import NoiseFindings
from ssbench.comparison.family import FamilyComparison
from ssbench.comparison.run_comparison import Comparison, compare_runs
from ssbench.comparison.run_figures import RunFigures, make_run_figures
from ssbench.comparison.store_limits import Envelope
from ssbench.comparison.suite_report import SuiteFindings
from ssbench.comparison.suite_rows import compare_rows_between, split_files_between
from ssbench.comparison.sweep_variables import parse_sweep
from ssbench.plans.age_work import AGE_OPERATIONS, make_age_work
from ssbench.plans.envelope_work import ENVELOPE_OPERATIONS, ENVELOPE_SIZES, EnvelopeWork
from ssbench.plans.noise_work import NoiseWork, choose_equal_runs
from ssbench.plans.plan_work import Conclusion, PlanSide, PlanWork, carry_out_work, fit_bench
from ssbench.plans.repeat_work import RepeatWork, leave_out_side_group
from ssbench.plans.rows_work import SuiteWork, make_suite_cells
from ssbench.plans.steps_work import SearchWork, SweepWork
from ssbench.results.block import ResultBlock
from ssbench.results.reading import RunResults
from ssbench.results.reading import open_results as _open
from ssbench.results.run_description import RunSummary
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.folders import earlier_folders, results_folder
from ssbench.run.plan import DoneTrial, PlanSettings
from ssbench.scenario.ad_hoc import parse_phases
from ssbench.scenario.conditions import Condition, parse_condition, parse_conditions, parse_subject
from ssbench.scenario.consistency import override
from ssbench.scenario.model import Scenario
from ssbench.scenario.scenario_reading import check_scenario_data, read_scenario
from ssbench.scenario.suite_file import read_suite
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import RunVerdict, verdict_of
from ssbench.statistics.summary import summarize
from ssbench.statistics.thresholds import find_line, judge_conditions
from ssbench.store.stores import Credentials

#: A scenario, a file of one, the name of one that ships with ssbench, or the content of a file.
AnyScenario = Scenario | str | PathLike[str] | Mapping[str, object]

#: What a list has.
_Each = TypeVar("_Each")
_PATHS = (str, PathLike)


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
    raised for one that no file can contain. One that does not say how long it runs is a fault, unless it is
    ``limited`` otherwise. Body files must be in the folder of the scenario's file or in one of ``bodies``.
    """
    if isinstance(source, Scenario):
        return source
    allowed = [Path(each) for each in _check_list("bodies", bodies, "files or folders", _PATHS)]
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


# -- Many runs -------------------------------------------------------------------------------------


class PlanKeywords(TypedDict, total=False):
    """How many runs are carried out, whatever their plan; all of it may be left out."""

    bench: BenchOptions  # the workers and the store of all; by default one worker, and no credentials
    options: RunOptions  # of each run; stat files have the name of its ``stats_file``, with what each run is
    pause: float  # seconds between two runs
    resumes: bool  # runs that have a complete stat file are not made again
    on_run: Callable[[DoneTrial[Any]], object]  # is called after each run


def repeat(source: AnyScenario, count: int, **how: Unpack[PlanKeywords]) -> Conclusion[list[RunFigures]]:
    """Run a scenario several times, and return the figures of the runs that ended as they should.

    All functions for many runs raise SsbenchError where a run cannot begin, and UsageError for a wrong value.
    """
    return _carry_out(RepeatWork([_make_side(source, how)], _check_count(count), _pause(how)), how)


def versus(
    source: AnyScenario,
    other: AnyScenario,
    rounds: int,
    *,
    other_options: RunOptions | None = None,
    **how: Unpack[PlanKeywords],
) -> Conclusion[Comparison]:
    """Run two scenarios in turn, and return what differs; verdicts need four rounds.

    ``other_options`` are those of the other one, where its options differ too.
    """

    second = how.copy()
    if other_options is not None:
        second["options"] = other_options
    sides = [_make_side(source, how), _make_side(other, second)]
    return _carry_out(RepeatWork(sides, _check_count(rounds), _pause(how)), how)


def isolate(
    source: AnyScenario, group: str, rounds: int, **how: Unpack[PlanKeywords]
) -> Conclusion[Comparison]:
    """Run a scenario without one of its groups of users and with it, in turn, and return what differs.

    Verdicts need four rounds. Raises UsageError where the scenario has no such group, or no other one.
    """
    side = _make_side(source, how)
    sides = [leave_out_side_group(side, group), side]
    return _carry_out(RepeatWork(sides, _check_count(rounds), _pause(how)), how)


def sweep(
    source: AnyScenario, values: str, *, repeats: int = 1, **how: Unpack[PlanKeywords]
) -> Conclusion[Capacity]:
    """Run a scenario with each of some loads, as ``users=4,8,16`` or ``rate=100..1600``, and return them.

    The values are those of ``run-scenario --sweep``.
    """
    try:
        found = parse_sweep(values)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return _carry_out(SweepWork([_make_side(source, how)], found, _check_count(repeats), _pause(how)), how)


def find(
    source: AnyScenario,
    conditions: str,
    *,
    within: float | None = None,
    repeats: int = 1,
    **how: Unpack[PlanKeywords],
) -> Conclusion[Capacity]:
    """Search for the most users, or the highest rate, at which ``read.p99 <= 50ms`` holds, and return it.

    ``within`` is how exactly that is to be known, as a share (0.1: 10 %).
    """
    try:
        wanted = parse_conditions(conditions, grouped=True)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if within is not None:
        _check_share("within", within)
    side = _make_side(source, how)
    return _carry_out(SearchWork(side, wanted, within, _check_count(repeats), _pause(how)), how)


def suite(
    source: str | PathLike[str],
    *,
    seconds: float | None = None,
    between: str = "",
    **how: Unpack[PlanKeywords],
) -> Conclusion[SuiteFindings]:
    """Run the rows of a suite, a file or one that ships with ssbench, and return its table.

    ``seconds`` is the time of each run, in place of that of the file. The values of the key ``between``,
    which varies, are compared: ``compare_values()`` of the table has that.
    """
    read, pause = read_suite(str(source), seconds=seconds), _pause(how)
    between = between or read.between
    cells = make_suite_cells(read, how.get("options", RunOptions()))
    return _carry_out(SuiteWork(read, cells, pause, None, between=between), how)


def age(
    objects: str,
    *,
    object_size: str = "4kB",
    operations: Sequence[str] = AGE_OPERATIONS,
    users: int = 8,
    seconds: float = 60.0,
    fill_rate: float | None = None,
    **how: Unpack[PlanKeywords],
) -> Conclusion[PhaseCapacities]:
    """Fill a container, measure operations at each number of objects, and return from how many they change.

    ``objects`` are six numbers or more, as ``1e4..1e6`` (doubled) or ``1e5,2e5,...``. Each operation is
    measured alone for some ``seconds``; ``fill_rate`` is how many uploads a second begin, None: as fast as
    the users can. Raises UsageError for a wrong value.
    """
    try:
        numbers = parse_sweep(f"objects={objects}")
        phases = parse_phases(",".join(_check_list("operations", operations)))
        if users < 1 or (fill_rate is not None and not fill_rate > 0):
            raise ValueError("expected 1 user or more, and a fill_rate above 0")
        values = {"user_count": users, "run_seconds": _check_number("seconds", seconds)}
        work = make_age_work(
            numbers,
            how.get("options", RunOptions()),
            size=object_size,
            operations=phases,
            values=values,
            fill_rate=fill_rate,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None
    return _carry_out(work, how)


def noise(
    source: AnyScenario, *, minutes: float = 15.0, detect: float = 0.05, **how: Unpack[PlanKeywords]
) -> Conclusion[NoiseFindings]:
    """Make equal runs for some minutes, and return what they say of comparisons on this store.

    ``detect`` is the change, as a share, that the plan of the report is to detect.
    """
    _check_share("detect", detect)
    side = _make_side(source, how)
    seconds, pairs = choose_equal_runs(side.scenario, _check_number("minutes", minutes), _pause(how))
    side = replace(side, scenario=override(side.scenario, run_seconds=seconds))
    return _carry_out(NoiseWork(side, pairs, _pause(how), detect), how)


def envelope(
    *,
    minutes: float = 60.0,
    sizes: Sequence[str] = ENVELOPE_SIZES,
    operations: Sequence[str] = ENVELOPE_OPERATIONS,
    holds: str = "",
    **how: Unpack[PlanKeywords],
) -> Conclusion[Envelope]:
    """Return the most users, and their rate, at which a condition holds, by size (``4kB``) and operation.

    Operations are ``write``, ``read``, ``delete`` and ``list``. Without ``holds``, as ``p99 <= 50ms``, the
    p99 may be ten times that of one user, and 0.1 % of the operations may fail. Raises UsageError for a wrong
    value, and where ``minutes`` are too few.
    """
    try:
        wanted = parse_conditions(holds, grouped=True) if holds else ()
    except ValueError as error:
        raise UsageError(str(error)) from None
    minutes = _check_number("minutes", minutes)
    work = EnvelopeWork(
        how.get("options", RunOptions()),
        minutes,
        sizes=_check_list("sizes", sizes),
        operations=_check_list("operations", operations),
        wanted=wanted,
    )
    return _carry_out(work, how)


#: What each of :class:`PlanKeywords` is, and how that is called.
_KEYWORD_TYPES: dict[str, tuple[Any, str]] = {
    "bench": (BenchOptions, "ssbench.BenchOptions"),
    "options": (RunOptions, "ssbench.RunOptions"),
    "pause": (int | float, "a number of seconds"),
    "resumes": (bool, "True or False"),
    "on_run": (Callable | None, "a function"),
}


def _pause(how: PlanKeywords) -> float:
    """Return the seconds between two runs; raises UsageError if any of the keywords is wrong."""
    for name, value in how.items():
        if name not in _KEYWORD_TYPES:
            raise UsageError(f"{name}: no plan has this keyword{did_you_mean(name, _KEYWORD_TYPES)}")
        kind, words = _KEYWORD_TYPES[name]
        if not isinstance(value, kind):
            raise UsageError(f"{name}: expected {words}, not {value!r:.80}")
    return _check_number("pause", how.get("pause", 0.0))


def _check_number(name: str, value: float) -> float:
    """Return a finite number of 0 or more; raises UsageError for what is none."""
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UsageError(f"{name}: expected a number of 0 or more, not {value!r:.80}")
    return value


def _check_share(name: str, value: float) -> float:
    """Return a share; raises UsageError for what is none."""
    if not isinstance(value, int | float) or not 0 < value < 1:
        raise UsageError(f"{name}: expected a share above 0 and below 1, as 0.05, not {value!r:.80}")
    return value


def _check_list(
    name: str, value: Iterable[_Each], what: str = "texts", kinds: tuple[type, ...] = (str,)
) -> list[_Each]:
    """Return a list of some kinds of values; raises UsageError for what is none, such as a single text."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        found = list(value)
        if all(isinstance(each, kinds) for each in found):
            return found
    raise UsageError(f"{name}: expected a list of {what}, not {value!r:.80}")


def _check_count(count: int) -> int:
    """Return a number of runs; raises UsageError for one that is below 1."""
    if not isinstance(count, int) or count < 1:
        raise UsageError(f"expected 1 run or more, not {count!r}")
    return count


def _make_side(source: AnyScenario, how: PlanKeywords) -> PlanSide:

    return PlanSide(load_scenario(source), how.get("options", RunOptions()))


def _carry_out(work: PlanWork[Any], how: PlanKeywords) -> Conclusion[Any]:

    on_run = how.get("on_run")
    settings = PlanSettings(
        pause=_pause(how),
        resumes=how.get("resumes", False),
        on_done=None if on_run is None else lambda done: on_run(done[-1]),
    )
    policies = [cell.scenario.policy for cell in work.rule.cells]
    bench = fit_bench(
        how.get("bench", BenchOptions(workers=1)), work.list_users(), policies, first_room=work.first_room
    )
    return carry_out_work(work, bench, settings)


def open_results(path: str | PathLike[str]) -> RunResults:
    """Open a stat file of any version, for its results block by block.

    ``path`` may be ``last``, ``last-1`` and so on, or ``@LABEL``, of the folder in which runs leave their
    files (``SSBENCH_RESULTS_DIR``). Raises StatFileError, and UsageError where it means no run or several.
    """
    return _open(_find_file(path))


def report(path: str | PathLike[str], fail_if: Iterable[str] = ()) -> RunReport:
    """Return the report of a stat file of any version, judged by more conditions than its scenario has.

    ``path`` is as for :func:`open_results`. Raises StatFileError, and UsageError for a wrong condition.
    """
    file = _find_file(path)
    texts = _check_list("fail_if", fail_if)
    statistics = summarize(_open(file), ("worker", "storage_url"), over_time=True)
    return RunReport(file, statistics, verdict_of(statistics, _conditions(texts, statistics)))


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


def compare_between(
    runs: Sequence[str | PathLike[str]], key: str, *, noise: float = 0.01
) -> FamilyComparison:
    """Compare the rows of a suite, or runs that differ, by the values of a key such as ``"users"``.

    ``runs`` are stat files, or ``"@LABEL"`` for all with a label. Raises StatFileError, and UsageError where
    no runs differ in the key alone.
    """
    files = [file for each in _check_list("runs", runs, "stat files", _PATHS) for file in _find_files(each)]
    return compare_rows_between(split_files_between(files, key), key, noise)


def _figures(side: str, runs: Sequence[RunReport | str | PathLike[str]]) -> list[RunFigures]:
    what = "runs or stat files"
    if not runs:
        raise UsageError(f"{side}: expected a list of {what}, not {runs!r:.80}")
    reports = [
        found
        for each in _check_list(side, runs, what, (RunReport, *_PATHS))
        for found in ([each] if isinstance(each, RunReport) else map(report, _find_files(each)))
    ]
    return [make_run_figures(each.statistics, each.path.name) for each in reports]


def _conditions(texts: Iterable[str], statistics: RunStatistics) -> list[Condition]:
    defined = statistics.run.scenario.defined_operations
    try:
        return [parse_condition(text, defined) for text in texts]
    except ValueError as error:
        raise UsageError(str(error)) from None
