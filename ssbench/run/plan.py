"""A plan: runs over one bench that a rule chooses, each with a stat file of its own.

A :class:`PlanCell` is one way to run, a :class:`PlanTrial` one run of it. A :class:`PlanRule` says what to
run next, given what has been done, and :func:`carry_out_plan` is the one loop over all rules: names of files,
pauses, messages, what happens after an interruption. All trials have the workers, the token, the local Swift
and, where their scenarios allow it, the initial objects of the bench.

The stat files are the memory of a plan: with ``resumes`` a trial that has a complete one is not run again.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import fmean, median_low
from typing import Any, Generic, Protocol, TypeVar

from ssbench.base import interruption
from ssbench.base.errors import (
    ClusterError,
    ExitCode,
    LackingStoreError,
    SsbenchError,
    StatFileError,
    TooManyErrorsError,
    UsageError,
    choose_worst_code,
)
from ssbench.base.option import record_options
from ssbench.base.text_values import format_duration
from ssbench.results.reading import open_results
from ssbench.results.run_description import EVENTS_OPTION, RunDescription
from ssbench.run.bench import Bench
from ssbench.run.bench_options import ObjectFill, RunOptions
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.folders import check_labels_unused, label_stats_path
from ssbench.run.group_run import make_users_even
from ssbench.scenario.forecast import guess_seconds_beside
from ssbench.scenario.model import Scenario, make_upload_scenario
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

_log = logging.getLogger(__name__)

#: What a rule keeps of a run.
Kept = TypeVar("Kept")

#: What does not tell runs of two plans apart: the text of a scenario, names of containers that a store may
#: have chosen, header fields that may be secret and are in no stat file, and what judges a run afterwards.
_NOT_COMPARED_KEYS = {
    "data",
    "container_base",
    "container_put_headers",
    "container_concurrency",
    "fail_if",
    "warmup",
}
_KEYS_OF_EXISTING = {"size_classes", "container_count", "object_names", "policy"}
_NOT_COMPARED_OPTIONS = {"label", "start_at", "part"}

#: What is said of keys whose values are long.
_KEY_WORDS = {"size_classes": "other sizes, weights or initial objects", "groups": "other groups of users"}

#: Seconds that a run takes beside its time, at least, for its drain and the deletion of what it created.
RUN_OVERHEAD_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PlanCell:
    """One way to run: what the trials of a plan differ in, besides their numbers."""

    name: str  # it is in the names of stat files: ``run``, ``a``, ``users-4``
    scenario: Scenario
    options: RunOptions
    value: Any = None  # what the rule knows it by
    row: str = ""  # of the table of all runs; empty: there is but one
    side: str = ""  # of that table; empty: there is but one
    workers: int | None = None  # local workers from here on; None: as before
    is_counted: bool = True  # the first run of it has a number in its name too
    fill: ObjectFill | None = None  # how objects are made for a run that has them prepared; None: not here
    may_be_skipped: bool = False  # where its store cannot carry it out, the other cells are run without it


@dataclass(frozen=True, slots=True)
class PlanTrial:
    """A run that is to be made."""

    cell: PlanCell
    number: int = 1  # how often the cell is run with this one
    seed_offset: int = 0  # added to the seed of the plan, for a run that is to draw other operations

    @property
    def label(self) -> str:
        """What distinguishes its stat file from those of the other trials: ``run-2``, ``users-4.2``."""
        if self.cell.is_counted:
            return f"{self.cell.name}-{self.number}"
        return self.cell.name if self.number == 1 else f"{self.cell.name}.{self.number}"


@dataclass(frozen=True, slots=True)
class DoneTrial(Generic[Kept]):
    """A trial that has its stat file."""

    trial: PlanTrial
    path: Path
    kept: Kept
    ending_code: ExitCode = ExitCode.OK  # that of how the run ended; OK of one that an earlier call made
    ended_early: str | None = None  # why the run ended before its time


class PlanRule(Protocol[Kept]):
    """What makes the list of runs of a plan."""

    @property
    def labels(self) -> Sequence[str]:
        """What the labels of all its trials begin with."""

    @property
    def count(self) -> int | None:
        """How many trials it has, as far as that is known before; None: it depends on what they find."""

    @property
    def cells(self) -> Sequence[PlanCell]:
        """Ways to run that are known before the first run: where each of them can begin, all others can."""

    def next(self, done: Sequence[DoneTrial[Kept]]) -> PlanTrial | None:
        """Return the next trial after those that are done, None where there is none."""

    def keep(self, trial: PlanTrial, statistics: RunStatistics, ended: EndedRun) -> Kept:
        """Return what is kept of a run; the statistics themselves, which are large, are dropped."""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """What is known of a run besides its statistics."""

    path: Path
    room: int | None = None  # how many operations all workers could run at once; None: not known
    ended_early: str | None = None  # why it ended before its time


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSettings:
    """How a plan is carried out, whatever its rule."""

    pause: float = 0.0  # seconds between two runs
    resumes: bool = False  # trials that have a complete stat file are not run again
    is_quiet: bool = True  # only the first run has messages on its phases
    #: Whether any run that ends before its time ends the plan; otherwise not one of too many errors.
    stops_on_errors: bool = False
    #: What carries out one trial with these options: with what receives its results, and what may end it.
    carry_out: Callable[[PlanTrial, RunOptions, Bench], RunOutcome] | None = None
    #: What is called with all that is done after each run.
    on_done: Callable[[Sequence[DoneTrial[Any]]], object] | None = None


@dataclass(slots=True)
class PlanEnd(Generic[Kept]):
    """What came of a plan; filled while it is carried out, so that all there is can be reported."""

    done: list[DoneTrial[Kept]] = field(default_factory=list)
    why: str = ""  # why it ended before its time; empty where it did not
    code: ExitCode = ExitCode.OK  # how the runs ended, and the plan
    resumed: int = 0  # trials that an earlier call had done
    skipped: dict[str, str] = field(default_factory=dict)  # why cells were not run, by their names


def carry_out_plan(
    rule: PlanRule[Kept], bench: Bench, settings: PlanSettings, end: PlanEnd[Kept] | None = None
) -> PlanEnd[Kept]:
    """Carry out the trials of a rule, one after another, and return what came of them.

    What has been done is in ``end`` too, where that is given, while it goes on. Raises SsbenchError where a
    trial cannot begin, and KeyboardInterrupt between two trials; ``end`` then says why.
    """
    end = PlanEnd() if end is None else end
    runs = _PlanRuns(bench, settings)
    took: list[float] = []  # seconds of each run that was made, with what was uploaded for it
    try:
        while (trial := rule.next(end.done)) is not None:
            if not end.done:
                runs.check_names(trial, rule)
            if (found := runs.find(trial)) is not None:
                statistics, ended = found
                end.done.append(DoneTrial(trial, ended.path, rule.keep(trial, statistics, ended)))
                end.resumed += 1
                _log.info("Done already: %s", ended.path)
                continue
            if runs.skips(trial, rule, end.skipped):
                continue
            runs.prepare(is_first=not took)
            _say_number(rule, trial, len(end.done) + runs.left_out, took, settings.pause)
            began = time.monotonic()
            outcome = runs.run(trial, is_first=not took)
            took.append(time.monotonic() - began)
            if outcome.path is None:
                end.code = choose_worst_code([end.code, outcome.exit_code])
                end.why = "interrupted"
                break
            statistics = runs.read(trial, outcome.path)
            ended = EndedRun(outcome.path, bench.capacity(), _explain_missing_results(outcome))
            end.done.append(
                DoneTrial(
                    trial,
                    outcome.path,
                    rule.keep(trial, statistics, ended),
                    outcome.ending_code,
                    ended.ended_early,
                )
            )
            if outcome.trouble:
                end.code = choose_worst_code([end.code, ExitCode.FAILED])
            end.why, code = _explain_end(outcome, settings)
            end.code = choose_worst_code([end.code, code])
            if settings.on_done is not None:
                settings.on_done(end.done)
            if end.why:
                break
    except (SsbenchError, KeyboardInterrupt) as error:
        end.why = str(error) or "interrupted"
        end.code = error.exit_code if isinstance(error, SsbenchError) else ExitCode.INTERRUPTED
        raise
    return end


def read_statistics(path: Path) -> tuple[RunStatistics, int]:
    """Return the statistics of a stat file, and how many results it lacks that could not be written.

    Raises StatFileError.
    """
    with closing(open_results(path)) as results:
        return summarize(results), results.results_lost


def _explain_end(outcome: RunOutcome, settings: PlanSettings) -> tuple[str, ExitCode]:
    """Return why no trial can follow a run, and the exit code of that; nothing where one can."""
    too_many = isinstance(outcome.error, TooManyErrorsError)
    if outcome.error is not None and (settings.stops_on_errors or not too_many):
        return str(outcome.error), outcome.error.exit_code
    if outcome.results_lost and not outcome.interrupted:  # so would be those of the next run
        return _explain_missing_results(outcome) or "", ExitCode.FAILED
    return ("interrupted", ExitCode.INTERRUPTED) if outcome.interrupted else ("", ExitCode.OK)


def _explain_missing_results(outcome: RunOutcome) -> str | None:
    """Return why the stat file does not have all results of as long a run as was asked for; None: it has."""
    lost = f"{outcome.results_lost:,} results could not be written" if outcome.results_lost else None
    return outcome.ended_early or lost


def _say_number(
    rule: PlanRule[Kept], trial: PlanTrial, before: int, took: Sequence[float], pause: float
) -> None:
    """Say which of how many runs begins, after so many others, and how long the rest will take.

    That is told by the median of those that were made, because the first ones upload initial objects. Where
    further objects are uploaded between runs, that may take most of the time.
    """
    if rule.count is None:
        return
    left = (rule.count - before) * (median_low(took) + pause) if took else 0.0
    besides = ", besides uploads" * (trial.cell.fill is not None)
    more = f"; about {format_duration(left)} left{besides}" if left else ""
    _log.info("Run %d of %d%s", before + 1, rule.count, more)


def describe_time_needed(scenarios: Sequence[Scenario], count: int, pause: float = 0.0) -> str:
    """Return how long ``count`` runs take, as many of each scenario, in words; first uploads come on top.

    ``pause`` are the seconds between two of them.
    """
    bounds = [bound_run_seconds(each) for each in scenarios]
    if not all(each.run_seconds for each in scenarios):
        return "as long as their operations take"
    least, most = (
        format_duration(count * fmean(seconds) + (count - 1) * pause) for seconds in zip(*bounds, strict=True)
    )
    return f"about {least}" if least == most else f"about {least} to {most}"


def bound_run_seconds(scenario: Scenario) -> tuple[float, float]:
    """Return how many seconds a run takes at least, and at most as a rule, with its clean-up."""
    seconds = scenario.run_seconds or 0.0
    return seconds + RUN_OVERHEAD_SECONDS, seconds + guess_seconds_beside(scenario)


class _PlanRuns:
    """The runs of a plan, with their names and seeds."""

    def __init__(self, bench: Bench, settings: PlanSettings) -> None:
        self._bench = bench
        self._settings = settings
        self._seed: int | None = None
        self._began = time.time()
        #: The first run of each way to choose a store, with its storage URLs.
        self._stores: dict[object, tuple[Path, tuple[str, ...]]] = {}
        self._checked = False
        #: The scenario whose objects the last fill made.
        self._filled: Scenario | None = None
        #: Trials of cells that are skipped.
        self.left_out = 0

    def check_names(self, first: PlanTrial, rule: PlanRule[Any]) -> None:
        """Raise SsbenchError where a stat file of another plan would be overwritten, or none can be found."""
        options, settings = first.cell.options, self._settings
        if options.stats_file is None and settings.resumes:
            raise UsageError("--resume needs -s/--stats-file: the name of the files that are there")
        if options.stats_file is not None and not options.force and not settings.resumes:
            for label in rule.labels:
                check_labels_unused(options.stats_file, label)

    def skips(self, trial: PlanTrial, rule: PlanRule[Any], skipped: dict[str, str]) -> bool:
        """Return whether a trial is left out, because its cell is ``skipped``.

        Before the first run, this finds those cells, and raises SsbenchError where runs could not begin. That
        asks the store, which the report of a plan whose runs are all done does not need.
        """
        if not self._checked:
            self._checked = True
            skipped |= self._find_skipped(rule)
        self.left_out += trial.cell.name in skipped
        return trial.cell.name in skipped

    def _find_skipped(self, rule: PlanRule[Any]) -> dict[str, str]:
        """Return why cells are skipped, by their names; raise SsbenchError where runs could not begin."""
        skipped: dict[str, str] = {}
        for row in dict.fromkeys(cell.row for cell in rule.cells):
            self._bench.start_swifts(
                [(each.scenario, each.options) for each in rule.cells if each.row == row]
            )
        for place, cell in enumerate(rule.cells):
            try:
                with silence_runs(place > 0):
                    self._bench.check(cell.scenario, cell.options)
            except LackingStoreError as error:
                if not cell.may_be_skipped:
                    raise
                skipped[cell.name] = str(error)
        reasons: dict[str, list[str]] = {}
        for name, why in skipped.items():
            reasons.setdefault(why, []).append(name)
        if len(skipped) == len(rule.cells):
            raise LackingStoreError("; ".join(reasons))
        for why, names in reasons.items():
            _log.warning("Skipped %d of %d (%s): %s", len(names), len(rule.cells), ", ".join(names), why)
        return skipped

    def prepare(self, *, is_first: bool) -> None:
        """Pause before a run that is made, but for the first."""
        if not is_first and self._settings.pause:
            _log.info("Waiting for %g s before the next run", self._settings.pause)
            interruption.sleep_interruptibly(self._settings.pause)

    def find(self, trial: PlanTrial) -> tuple[RunStatistics, EndedRun] | None:
        """Return a trial that an earlier call has carried out to its end; None where it is to be run.

        Raises UsageError where there is a complete run of something else.
        """
        path = self._path(trial)
        if not self._settings.resumes or not path.exists():
            return None
        try:
            statistics, lost = read_statistics(path)
        except StatFileError:  # such as one that was reserved when the program was killed
            return None
        if lost or not statistics.complete or statistics.interrupted or statistics.ended_early:
            return None
        if wrong := _describe_difference(statistics.run, trial.cell.scenario, trial.cell.options):
            raise UsageError(f"{path}: is a run with {wrong}; --resume needs the options of the first call")
        given = trial.cell.options.seed
        if given is not None and statistics.run.seed not in {None, given + trial.seed_offset}:
            raise UsageError(
                f"{path}: is a run with seed {statistics.run.seed}, not {given + trial.seed_offset};"
                " --resume needs the options of the first call"
            )
        self._check_store(trial, path, statistics)
        if self._seed is None and statistics.run.seed is not None:
            self._seed = statistics.run.seed - trial.seed_offset
        return statistics, EndedRun(path)

    def read(self, trial: PlanTrial, path: Path) -> RunStatistics:
        """Return the statistics of a run that was just made; raises UsageError where it went elsewhere."""
        statistics, _ = read_statistics(path)
        self._check_store(trial, path, statistics)
        return statistics

    def _check_store(self, trial: PlanTrial, path: Path, statistics: RunStatistics) -> None:
        """Raise UsageError where a run of a plan that is gone on with went to another store than one before.

        Which store it is is known from its run alone. A local Swift has another port in each call.
        """
        if not self._settings.resumes or statistics.run.options.get("local_swift"):
            return
        run = statistics.run
        options = trial.cell.options
        key = (tuple(map(str, options.sides)), options.store, trial.cell.scenario.accounts)
        first, urls = self._stores.setdefault(key, (path, run.storage_urls))
        if urls != run.storage_urls:
            raise UsageError(
                f"{path}: went to {', '.join(run.storage_urls)}, and {first} to {', '.join(urls)}; --resume"
                " needs the store of the first call: delete the files of one of both"
            )

    def run(self, trial: PlanTrial, *, is_first: bool) -> RunOutcome:
        """Carry out a trial."""
        cell, settings = trial.cell, self._settings
        if cell.workers is not None:
            self._bench.use_local_workers(cell.workers)
        place = cell.options.suite_place
        counted: tuple[tuple[str, float], ...] = ()
        if cell.fill is not None and self._filled != (upload := _drop_weights(cell.scenario)):
            outcome = self._bench.prepare(
                cell.scenario, replace(cell.options, prepared=False, fill=cell.fill)
            )
            if outcome.trouble:
                raise ClusterError("not all objects could be uploaded; --resume uploads the others")
            if outcome.interrupted:
                return outcome
            self._filled, counted = upload, outcome.counted
        options = replace(
            cell.options,
            suite_place=place and replace(place, round=trial.number),
            plan_began=self._began,
            stats_file=self._path(trial),
            seed=self._choose_seed(cell.options) + trial.seed_offset,
            force=cell.options.force or settings.resumes,
            filled=counted,
        )
        with silence_runs(settings.is_quiet and not is_first):
            if settings.carry_out is not None:
                return settings.carry_out(trial, options, self._bench)
            return self._bench.run(cell.scenario, options)

    def _choose_seed(self, options: RunOptions) -> int:
        """Return the seed of the plan: the one that is given, that of earlier runs, or a new one."""
        if self._seed is None:
            self._seed = secrets.randbits(32) if options.seed is None else options.seed
        return self._seed

    def _path(self, trial: PlanTrial) -> Path:
        cell = trial.cell
        return label_stats_path(cell.options.stats_file, cell.scenario, trial.label, self._began)


def _drop_weights(scenario: Scenario) -> Scenario:
    """Return what is the same of scenarios that need the same initial objects."""
    classes = tuple(replace(each, crud_profile={}) for each in scenario.size_classes)
    return make_upload_scenario(replace(scenario, size_classes=classes, fail_if=()))


def _describe_difference(there: RunDescription, wanted: Scenario, options: RunOptions) -> str:
    """Return what a run that is there has otherwise than the one that is wanted, if anything."""
    wanted = make_users_even(wanted) if options.sides else wanted
    left_out = _NOT_COMPARED_KEYS | (_KEYS_OF_EXISTING if options.existing is not None else set())
    for key in (each.name for each in fields(Scenario)):
        value, other = getattr(there.scenario, key), getattr(wanted, key)
        if key in left_out or value == other:
            continue
        is_short = isinstance(other, str | int | float | None)
        return f"{key} {value}, not {other}" if is_short else _KEY_WORDS.get(key, f"other {key}")
    asked = {**record_options(options.requests), **record_options(options)}
    if (names := tuple(side.name for side in options.sides)) != there.sides:
        return f"the sides {', '.join(there.sides) or 'none'}, not {', '.join(names) or 'none'}"
    events = [str(each) for each in (*wanted.events, *options.events)]
    if (there.options.get(EVENTS_OPTION) or []) != events:
        return "other commands at moments of the run"
    if there.options.get("store") != options.store:
        return f"store {there.options.get('store')}, not {options.store}"
    for key, other in asked.items():
        if key not in _NOT_COMPARED_OPTIONS and there.options.get(key, other) != other:
            return f"{key} {there.options[key]}, not {other}"
    return ""


@contextmanager
def silence_runs(quiet: bool) -> Iterator[None]:
    """Leave out the messages of runs on their phases in this context; warnings and -v stay."""
    loggers = [logging.getLogger(f"ssbench.{each}") for each in ("run", "store", "fleet")]
    own = logging.getLogger(__name__)
    before = [each.level for each in loggers]
    quiet = quiet and not own.isEnabledFor(logging.DEBUG)
    try:
        for each in loggers if quiet else ():
            each.setLevel(logging.WARNING)
        yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)
