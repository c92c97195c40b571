"""Runs as the rows of a suite: what is kept of each, and which rows some stat files have.

Runs that are of no suite are rows, too, by the facts in which they differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path

from ssbench.base.errors import ExitCode, StatFileError, UsageError, choose_worst_code
from ssbench.comparison.change import NOISE_SHARE
from ssbench.comparison.family import FamilyComparison, RowRun, compare_table, make_row_run
from ssbench.comparison.paired_sides import SidedRun, make_sided_run
from ssbench.comparison.run_figures import RunFigures, describe_fact_differences, make_run_figures
from ssbench.comparison.run_table import RunTable, check_sides, make_run_table, name_row_without, split_rows
from ssbench.document.units import format_count
from ssbench.results.reading import open_results
from ssbench.scenario.suite_file import STORE_KEY, GroupCost
from ssbench.statistics.over_time import EventEffect
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import Kind, RunVerdict, verdict_of
from ssbench.statistics.summary import summarize
from ssbench.statistics.thresholds import ConditionJudgment

#: What the names of the files of a call of a suite begin with, up to the time of the call.
_MATCH_CALL = re.compile(r".+\.[0-9]{4}-[0-9]{2}-[0-9]{2}\.[0-9]{6}(?=\.)").match

#: So many calls are named.
_MOST_NAMED_CALLS = 4


@dataclass(frozen=True, slots=True)
class KeptRun:
    """What is kept of a run of a table."""

    file: str
    round: int
    figures: RowRun  # of all operations together
    run: RunFigures  # of each operation too, with the facts of the run
    verdict: RunVerdict
    conditions: tuple[ConditionJudgment, ...] = ()
    #: The exit code of all else than its conditions: how it ended, what failed, what was not delivered.
    code: ExitCode = ExitCode.OK
    reasons: tuple[str, ...] = ()  # why it is not good, in sentences
    warnings: tuple[str, ...] = ()
    storage_url: str = ""  # where it went; several have commas between them
    events: tuple[EventEffect, ...] = ()  # commands that were run meanwhile, in the order of their moments
    sided: SidedRun | None = None  # both sides of a run with two


def make_kept_run(statistics: RunStatistics, file: str, number: int = 1) -> KeptRun:
    """Return what is kept of a run, which is the one of this number of its row."""
    verdict, name = verdict_of(statistics), Path(file).name
    others = [reason for reason in verdict.reasons if reason.kind is not Kind.CONDITION]
    return KeptRun(
        file=file,
        round=number,
        figures=make_row_run(statistics),
        run=make_run_figures(statistics, name.removesuffix(".gz").removesuffix(".stat")),
        verdict=verdict,
        conditions=verdict.judgments,
        code=choose_worst_code(reason.exit_code for reason in others),
        reasons=tuple(reason.text for reason in others if reason.exit_code is not ExitCode.OK),
        warnings=tuple(statistics.warnings),
        storage_url=", ".join(statistics.run.storage_urls),
        events=tuple(sorted(statistics.events, key=lambda each: each.facts.at)),
        sided=make_sided_run(statistics, name) if len(statistics.sides) == 2 else None,
    )


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """A variant, with its runs; none where none was made."""

    name: str
    runs: tuple[KeptRun, ...]
    page: str = ""  # the page of one of its runs, relative to that of the suite; empty: there is none
    store: str = ""  # the name of the store of its runs, where rows name them
    skipped: str = ""  # why it was not run where the others were; empty: it was to be run
    words: Mapping[str, str] = field(default_factory=dict)  # what its name says of each key that varies
    costs: tuple[GroupCost, ...] = ()  # conditions on what groups of users cost the others

    @property
    def short_name(self) -> str:
        """Its name without the store, which has a column of its own."""
        return name_row_without(self.name, self.words, STORE_KEY)

    def choose_typical_run(self) -> KeptRun | None:
        """Return the run with the median rate, the lower one of two; None without any."""
        ordered = sorted(self.runs, key=lambda run: _rate(run.figures))
        return ordered[(len(ordered) - 1) // 2] if ordered else None


def _rate(run: RowRun) -> float:
    return run.figures["rate"].value if "rate" in run.figures else 0.0


def read_suite_files(files: Iterable[Path]) -> list[SuiteRow]:
    """Return the rows of the suites whose runs are among some stat files; raises StatFileError.

    Files that are no runs of a suite, and runs that did not end as they should, are left out. The beginning
    of each file has to be readable.
    """
    return _gather_rows(
        (row, _read_words(options.get("row_words")), run)
        for options, run in _read_whole_runs(files, needed="row")
        if isinstance(row := options.get("row"), str)
    )


def read_varied_files(files: Iterable[Path], key: str) -> list[SuiteRow]:
    """Return the runs of some stat files as rows, of which a fact is the ``key``; raises StatFileError.

    Rows are what differs between runs with the same value of it: what differs along with it tells none apart.
    Runs that did not end as they should are left out.
    """
    runs = []
    sides: dict[str, list[Mapping[str, str]]] = {}
    for _, run in _read_whole_runs(files):
        facts = _list_facts(run)
        runs.append((facts, run))
        sides.setdefault(facts.get(key, ""), []).append(facts)
    differing = [
        fact
        for fact in dict.fromkeys(fact for facts, _ in runs for fact in facts)
        if (fact == key and len(sides) > 1)
        or any(len({facts.get(fact, "") for facts in own}) > 1 for own in sides.values())
    ]
    words = [
        ({fact: f"{fact}={facts.get(fact) or 'none'}" for fact in differing}, run) for facts, run in runs
    ]
    return _gather_rows((" ".join(["runs", *own.values()]), own, run) for own, run in words)


def _list_facts(run: KeptRun) -> dict[str, str]:
    known = {"label": run.run.label, **run.run.facts}
    return {name.replace(" ", "_"): value for name, value in known.items() if name != "seed"}


def _read_whole_runs(
    files: Iterable[Path], needed: str = ""
) -> Iterator[tuple[Mapping[str, object], KeptRun]]:
    """Yield the options of each run that ended as it should, and what is kept of it.

    Runs without the ``needed`` option are not read.
    """
    for file in files:
        with closing(open_results(file)) as results:
            options = results.run.options
            if needed and not isinstance(options.get(needed), str):
                continue
            try:
                statistics = summarize(results)
            except StatFileError:  # killed before its first results
                continue
        if statistics.complete and not statistics.interrupted and not statistics.ended_early:
            number = options.get("round")
            yield options, make_kept_run(statistics, str(file), number if isinstance(number, int) else 1)


def _read_words(found: object) -> dict[str, str]:
    """Return what the name of a row says of each key, by what a stat file has of it."""
    return {str(key): str(word) for key, word in found.items()} if isinstance(found, dict) else {}


def _gather_rows(runs: Iterable[tuple[str, Mapping[str, str], KeptRun]]) -> list[SuiteRow]:
    """Return the rows of runs, each with its row's name and words."""
    found: dict[str, SuiteRow] = {}
    # As they were run, which is the order of the file of a suite.
    for name, words, run in sorted(runs, key=lambda each: each[2].figures.started or 0.0):
        row = found.setdefault(name, SuiteRow(name, (), words=words))
        found[name] = replace(row, runs=(*row.runs, run))
    by_round = attrgetter("round")
    return [replace(row, runs=tuple(sorted(row.runs, key=by_round))) for row in found.values()]


def find_suite_row(file: Path) -> str | None:
    """Return the row of a suite whose run a stat file is of; None without one. Raises StatFileError."""
    with closing(open_results(file)) as results:
        row = results.run.options.get("row")
    return row if isinstance(row, str) else None


def list_suite_files(folder: Path) -> list[Path]:
    """Return the stat files of a folder; raises StatFileError where there are none."""
    files = sorted(folder.glob("*.stat.gz"))
    if not files:
        raise StatFileError(f"{folder}: has no stat files")
    return files


def compare_suites(
    before: tuple[str, Sequence[SuiteRow]], after: tuple[str, Sequence[SuiteRow]], noise: float
) -> FamilyComparison:
    """Compare two suites, given by name and rows; raises UsageError without a row in common."""
    names = before[0], after[0]
    placed = (
        (row.name, place, run)
        for place, (_, rows) in enumerate((before, after))
        for row in rows
        for run in row.runs
    )
    table = make_run_table(names, placed)
    if not any(all(sides) for sides in table.rows.values()):
        raise UsageError(f"{' and '.join(names)}: no rows of suites in common")
    warnings = [
        f"only {side}: {', '.join(rows)}"
        for side, rows in (("before", table.list_rows_without(1)), ("after", table.list_rows_without(0)))
        if rows
    ]
    for name, (_, rows) in zip(names, (before, after), strict=True):
        warnings += _describe_calls(name, rows)
    warnings += _describe_differences(table, ("seed ", "storage URL "))
    return compare_suite_table(table, noise, warnings)


def compare_rows_between(table: RunTable[KeptRun], key: str, noise: float) -> FamilyComparison:
    """Compare the sides that the values of a key are; warns of what else differs, and of missing runs."""
    warnings = [
        f"no runs with {key}={side}: {name_rows(rows)}"
        for place, side in enumerate(table.sides)
        if (rows := table.list_rows_without(place))
    ]
    warnings += _describe_differences(table, ("seed ", f"{key.replace('_', ' ')} "))
    return compare_suite_table(table, noise, warnings)


def _describe_differences(table: RunTable[KeptRun], ignored: tuple[str, ...]) -> Iterator[str]:
    """Yield which facts differ from the first side to others, and in which rows, but for ``ignored`` ones."""
    compared = [
        (name, [[run.run.facts for run in side] for side in (first, second)])
        for name, (first, *others) in table.rows.items()
        for second in others
        if first and second
    ]
    differing: dict[str, list[str]] = {}
    for name, (before, after) in compared:
        for text in describe_fact_differences(before, after):
            if not text.startswith(ignored):
                differing.setdefault(text, []).append(name)
    for text, rows in differing.items():
        yield f"{text} ({name_rows(rows, len(compared))})"


def compare_suite_table(
    table: RunTable[KeptRun], noise: float = NOISE_SHARE, warnings: Sequence[str] = ()
) -> FamilyComparison:
    """Compare the sides of a table of runs of suites, row by row."""
    return compare_table(table.reduced(lambda run: run.figures), noise, warnings)


def _describe_calls(name: str, rows: Sequence[SuiteRow]) -> Iterator[str]:
    """Say that the runs of a side are of several calls of a suite, whose rounds count as those of one."""
    rounds = Counter((row.name, run.round) for row in rows for run in row.runs)
    if (calls := max(rounds.values(), default=1)) < 2:
        return
    files = [Path(run.file) for row in rows for run in row.runs]
    begun = sorted({match[0] for file in files if (match := _MATCH_CALL(file.name))})
    which = f" ({', '.join(begun)})" if 1 < len(begun) <= _MOST_NAMED_CALLS else ""
    example = f"{files[0].parent / begun[-1]}.*.stat.gz" if begun else "A.*.stat.gz"
    yield (
        f"{name}: runs of {calls} calls of a suite are taken together{which}; to compare one alone, give its"
        f" files, as in: compare {example} --to ..."
    )


def name_rows(rows: Sequence[str], of: int | None = None) -> str:
    """Return some rows in words, or that they are all ``of`` so many."""
    if len(rows) == of:
        return "all rows"
    return ", ".join(rows[:3]) + (f" and {format_count(len(rows) - 3)} more" if len(rows) > 3 else "")


def split_files_between(files: Sequence[Path], key: str) -> RunTable[KeptRun]:
    """Return the runs of a suite, or others, with the values of a key as sides.

    Raises StatFileError, and UsageError where no runs differ in the key alone.
    """
    rows = read_suite_files(files) or read_varied_files(files, key)
    values = {_list_facts(run).get(key) for row in rows for run in row.runs}
    check_sides([row.words for row in rows], key, values.pop() if len(values) == 1 else None)
    table = split_suite_rows(rows, key)
    if not any(first and any(others) for first, *others in table.rows.values()):
        raise UsageError(f"--between {key}: no runs differ in that alone: {' and '.join(table.rows)}")
    return table


def split_suite_rows(rows: Sequence[SuiteRow], key: str) -> RunTable[KeptRun]:
    """Return the runs of some rows with the values of a key as sides."""
    return split_rows([(row.name, row.words, row.runs) for row in rows], key)
