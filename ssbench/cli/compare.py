"""``ssbench-master compare``: two groups of runs, or a table of many."""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

from ssbench.base.errors import (
    ExitCode,
    GateResult,
    StatFileError,
    Undecided,
    UsageError,
    choose_exit_code,
    choose_worst_code,
)
from ssbench.base.text_values import is_foreign_name
from ssbench.cli import archives, options, output_file
from ssbench.cli.archives import ResultsDirAsked
from ssbench.cli.asked import UnfitOptions, fit_options
from ssbench.cli.options import (
    FILE,
    FORCE_OPTION,
    OUTPUT_OPTION,
    PERCENT,
    UNDECIDED_OPTION,
    Argument,
    JsonAsked,
    ValueKind,
    add_options,
    choose_undecided,
)
from ssbench.reports import products
from ssbench.reports.products import Product

if TYPE_CHECKING:
    from ssbench.comparison.comparison_report import RunCurves
    from ssbench.comparison.family import FamilyComparison
    from ssbench.comparison.run_comparison import ComparedSide, Comparison
    from ssbench.comparison.run_figures import RunFigures
    from ssbench.document.elements import View
    from ssbench.results.reading import RunResults
    from ssbench.scenario.conditions import Condition
    from ssbench.statistics.run_statistics import RunStatistics

_log = logging.getLogger(__name__)

#: What is drawn of the runs of each side.
_Curves: TypeAlias = "tuple[list[RunCurves], list[RunCurves]]"

USAGE = "%(prog)s BEFORE ... --to AFTER ... [option ...]"

EXAMPLE = "ssbench-master compare old-*.stat.gz --to new-*.stat.gz"

DESCRIPTION = (
    "Compare runs: what changed from BEFORE to AFTER, by how much, and how certain that is. Two names alone,"
    " of files, labels or folders with several runs, are the two sides; more names without --to make a table"
    " with a line for each configuration. Verdicts need four runs a side, because a single run does not show"
    " what differs from run to run; see doc/comparing.rst. Two folders, or labels, of suites are compared row"
    " by row; see doc/suites.rst. So are two envelopes, by their JSON files or folders of them."
)


@dataclass(frozen=True, kw_only=True)
class CompareAsked(ResultsDirAsked, JsonAsked):
    """What the command is asked."""

    before: Sequence[str]
    to: Sequence[str]
    sides: bool
    between: str | None
    format: str
    output: Path
    noise: float
    fail_if: Sequence[str]
    undecided: str | None
    html: Path | None


ASKED = CompareAsked

_UNFIT_FOR_BETWEEN: tuple[UnfitOptions[CompareAsked, None], ...] = (
    UnfitOptions(
        ("--to", "--sides"),
        "--between finds the sides among all runs that are named",
        lambda asked, _: asked.between is not None,
    ),
)

_TABLE_FORMATS = f"a table of many runs is {' or '.join(products.format_names(Product.CONFIGURATIONS))}"

_UNFIT_FOR_TABLE: tuple[UnfitOptions[CompareAsked, None], ...] = (
    UnfitOptions(
        ("--format",),
        _TABLE_FORMATS,
        lambda asked, _: not products.has_format(Product.CONFIGURATIONS, asked.format),
        is_refused=False,
    ),
    UnfitOptions(
        ("--fail-if", "--html"),
        "a table of many runs is no comparison, which --to or two files alone make",
        lambda _, __: True,
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        Argument(
            "before",
            ValueKind("BEFORE", completes="runs"),
            "stat files of any version, or folders of them; last, last-1, @LABEL; or results of other tools"
            " (doc/comparing.rst)",
            settings={"nargs": "+"},
        ),
        Argument(
            "--to",
            ValueKind("AFTER", completes="runs"),
            "the runs to compare them with",
            default=[],
            repeated=True,
            settings={"nargs": "+"},
        ),
        Argument(
            "--sides", None, "compare the two sides of several runs of run-scenario --ab, instead of the runs"
        ),
        Argument(
            "--between",
            ValueKind("KEY"),
            "compare the rows of a suite, or runs that differ, by the values of a key: --between users",
        ),
        Argument(
            "--format",
            products.format_names(Product.COMPARISON),
            "format of the comparison",
            "text",
            old="-f",
        ),
        OUTPUT_OPTION,
        Argument(
            "--noise", PERCENT, "call a figure changed only if its whole interval is beyond this", 0.01, "1%%"
        ),
        Argument(
            "--fail-if",
            ValueKind("CONDITION"),
            "exit with code 5 if CONDITION is true for the whole interval of the change, or for AFTER:"
            " 'read.p99 > +10%%', 'rate < -5%%', 'errors > 0.1%%'; with 6 if only for a part of the"
            " interval; may be repeated",
            default=[],
            repeated=True,
        ),
        UNDECIDED_OPTION,
        Argument("--html", FILE, "file for a page with charts of the runs laid over each other"),
        options.JSON_OPTION,
        archives.make_results_dir_option(
            "folder to find last and @LABEL in and, if given, earlier equal runs for the noise floor"
        ),
        FORCE_OPTION,
    )


def run(asked: CompareAsked) -> ExitCode:
    """Print the comparison; raises StatFileError, and UsageError for a file that cannot be written."""
    # Here, because it imports numpy, which --help does without.
    from ssbench.comparison.suite_rows import (
        compare_rows_between,
        compare_suites,
        read_suite_files,
        split_files_between,
    )

    asked = fit_options(asked, _UNFIT_FOR_BETWEEN, None)
    if (compared := _compare_envelopes(asked)) is not None:
        of_changes = [each for each in asked.fail_if if not _is_on_envelope(each)]
        return _report_rows(replace(asked, fail_if=of_changes), compared)
    folders = {
        name: _list_folder_files(Path(name)) for name in (*asked.before, *asked.to) if Path(name).is_dir()
    }
    if asked.between is not None:
        files = [Path(each) for each in _find_files(asked, asked.before, folders)]
        table = split_files_between(files, asked.between)
        if len(table.rows) > 1 or len(table.sides) > 2:
            compared = compare_rows_between(table, asked.between, asked.noise)
            return _report_rows(asked, replace(compared, before=f"{asked.between}={compared.before}"))
        before, after = ([run.file for run in side] for side in next(iter(table.rows.values())))
        return _compare_groups(asked, before, after, [f"{asked.between}={side}" for side in table.sides])
    if (suites := _find_suites(asked, folders)) is not None:
        one, two = ((name, read_suite_files(own)) for name, own in suites)
        return _report_rows(asked, compare_suites(one, two, asked.noise))
    before, after = (_find_files(asked, names, folders) for names in _name_sides(asked))
    if asked.sides and asked.to:
        raise UsageError("--sides compares within each run: leave out --to")
    if not after and len(before) == 2 and not asked.sides:
        before, after = before[:1], before[1:]
    return _compare_groups(asked, before, after)


def _compare_groups(
    asked: CompareAsked, before: Sequence[str], after: Sequence[str], labels: Sequence[str] = ()
) -> ExitCode:
    """Print what changed between two groups of files, or within one; ``labels`` are names of both groups."""
    from ssbench.comparison.comparison_report import ComparisonView
    from ssbench.comparison.comparison_verdict import judge_comparison

    if not (after or len(before) == 1 or asked.sides):
        asked = fit_options(asked, _UNFIT_FOR_TABLE, None)
        if not products.has_format(Product.CONFIGURATIONS, asked.format):
            raise UsageError(f"{_TABLE_FORMATS}: give --to to compare two groups")
    conditions = _parse_conditions(asked.fail_if)
    outputs = _choose_outputs(asked)
    drawn = any(format_ == "html" for format_, _ in outputs)
    curves: _Curves | None = ([], []) if drawn else None
    files = _Files()
    comparison = _make_comparison(asked, files, before, after, curves)
    if comparison is None:
        for warning in _describe_repeated(before):
            _log.warning("%s", warning)
        runs = _read_runs(files, before)
        _write(asked, outputs, Product.CONFIGURATIONS, runs, lambda view: replace(view, wide=True))
        _log.info(
            "This table compares nothing. What changed: ssbench-master compare BEFORE ... --to AFTER ..."
        )
    else:
        comparison = _judge_comparison(
            comparison, _bind_to_runs(conditions, comparison), choose_undecided(asked.undecided)
        )
        warnings = (*_describe_repeated([*before, *after]), *files.notes, *comparison.warnings)
        named = [replace(side, label=name) for side, name in zip(comparison.sides, labels, strict=False)]
        sides = tuple(named) or _name_by_folders(comparison.sides, before, after)
        comparison = replace(comparison, warnings=warnings, sides=sides)
        drawn_runs = curves or ((), ())
        _write(
            asked,
            outputs,
            Product.COMPARISON,
            comparison,
            lambda view: ComparisonView(*drawn_runs, columns=view.columns, encoding=view.encoding),
        )
    code = ExitCode.OK if comparison is None else judge_comparison(comparison).exit_code
    return choose_worst_code([code, ExitCode.OK if files.are_whole else ExitCode.FAILED])


#: The stat files of each folder that was named, each with its row of a suite.
_Folders: TypeAlias = "Mapping[str, Sequence[tuple[Path, str | None]]]"


def _name_sides(asked: CompareAsked) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names given for each side: two names without --to are one for each."""
    if asked.sides or asked.to or len(asked.before) != 2:
        return asked.before, asked.to
    return asked.before[:1], asked.before[1:]


def _find_files(asked: CompareAsked, names: Sequence[str], folders: _Folders) -> list[str]:
    """Return the stat files of names of files, folders and labels; raises UsageError."""
    found: list[str] = []
    for name in names:
        if name in folders:
            found += [str(file) for file, _ in folders[name]]
        else:
            found += archives.resolve_references(asked.results_dir, [name])
    return found


def _name_by_folders(
    sides: Sequence[ComparedSide], before: Sequence[str], after: Sequence[str]
) -> tuple[ComparedSide, ...]:
    """Label two sides by the names of their folders, unless they have labels."""
    folders = [{Path(name).resolve().parent.name for name in names} for names in (before, after)]
    if [*map(len, folders)] != [1, 1] or folders[0] == folders[1] or any(side.label for side in sides):
        return tuple(sides)
    return tuple(replace(side, label=min(names)) for side, names in zip(sides, folders, strict=False))


def _list_folder_files(folder: Path) -> list[tuple[Path, str | None]]:
    """Return the stat files of a folder; raises SsbenchError if there are none.

    One that cannot be read, such as that of a run that was killed before its benchmark, is named.
    """
    from ssbench.comparison.suite_rows import find_suite_row, list_suite_files

    found = []
    for file in list_suite_files(folder):
        try:
            found.append((file, find_suite_row(file)))
        except StatFileError as error:
            _log.warning("%s; it is left out", error)
    if not found:
        raise UsageError(f"{folder}: has no stat files that can be read")
    return found


# -- Suites ----------------------------------------------------------------------------------------


#: The name of each suite with its stat files.
_SuiteSides: TypeAlias = "list[tuple[str, list[Path]]]"


def _find_suites(asked: CompareAsked, folders: _Folders) -> _SuiteSides | None:
    """Return the two suites that are to be compared; None where it is about runs.

    Suites are folders, labels of their runs, or stat files of which one side has several rows.
    """
    from ssbench.comparison.suite_rows import find_suite_row

    names = _name_sides(asked)
    are_files = not any(name in folders or name.startswith("@") for side in names for name in side)
    if asked.sides or not names[1] or (are_files and max(map(len, names)) < 2):
        return None
    sides: _SuiteSides = []
    rows: list[set[str | None]] = []
    try:
        for side in names:
            found = {Path(file): find_suite_row(Path(file)) for file in _find_files(asked, side, folders)}
            name = Path(side[0]).name + " ..." * (len(side) > 1) if are_files else " ".join(side)
            sides.append((name, [file for file, row in found.items() if row is not None]))
            rows.append({*found.values()})
    except StatFileError:  # which is said where it is read
        return None
    if are_files and (None in set().union(*rows) or max(map(len, rows)) < 2):
        return None
    return sides if all(files for _, files in sides) else None


def _compare_envelopes(asked: CompareAsked) -> FamilyComparison | None:
    """Compare two envelopes, or groups of them; None where the names are of something else.

    Conditions on an envelope are judged by those after.
    """
    from ssbench.comparison.envelope_comparison import (
        compare_envelopes,
        judge_envelopes,
        list_envelope_files,
        read_envelope,
    )
    from ssbench.comparison.store_limits import parse_envelope_condition

    names = _name_sides(asked)
    of_names = [[list_envelope_files(Path(name)) for name in side] for side in names]
    found = [[file for files in side for file in files] for side in of_names]
    if asked.sides or asked.between is not None or not any(found):
        return None
    wrong = [
        name
        for side, own in zip(names, of_names, strict=True)
        for name, files in zip(side, own, strict=True)
        if not files
    ]
    if wrong or not all(found):
        where = f"{wrong[0]}: " if wrong else ""
        if wrong and not Path(wrong[0]).exists():
            raise UsageError(f"{where}No such file or directory")
        raise UsageError(
            f"{where}an envelope is compared with another one: expected the JSON of envelope, or folders"
        )
    before, after = (
        (" ".join(side), [*map(read_envelope, files)]) for side, files in zip(names, found, strict=True)
    )
    try:
        conditions = [parse_envelope_condition(each) for each in asked.fail_if if _is_on_envelope(each)]
    except ValueError as error:
        raise UsageError(f"--fail-if {error}") from None
    compared = compare_envelopes(before, after, asked.noise)
    return replace(compared, conditions=judge_envelopes(after[1], conditions))


def _report_rows(asked: CompareAsked, compared: FamilyComparison) -> ExitCode:
    """Print a comparison row by row."""
    from ssbench.comparison.family import judge_family, judge_rows

    found = judge_rows(compared, _parse_conditions(asked.fail_if))
    _write(asked, _choose_outputs(asked), Product.SUITES, found)
    undecided = choose_undecided(asked.undecided)
    if undecided is Undecided.REPORT:
        return judge_family(found).exit_code
    return choose_exit_code([each.result for each in found.conditions], undecided)


class _Files:
    """The stat files that are compared."""

    def __init__(self) -> None:
        #: Whether each could be read to its end, of a run that has ended.
        self.are_whole = True
        #: What cannot be known of the results of other tools, each sentence once.
        self.notes: dict[str, None] = {}

    @contextmanager
    def opened(self, name: str) -> Iterator[RunResults]:
        """Open one; raises StatFileError."""

        with archives.open_stat_file(Path(name)) as results:
            yield results
            self.are_whole &= results.is_whole


def _make_comparison(
    asked: CompareAsked, files: _Files, before: Sequence[str], after: Sequence[str], curves: _Curves | None
) -> Comparison | None:
    """Compare two groups of runs, or the sides of runs, and add their curves; None: a table is to be made."""
    from ssbench.comparison.run_comparison import compare_runs

    if after:
        one, two = curves or (None, None)
        first, second = _read_runs(files, before, one), _read_runs(files, after, two)
        configurations = [run.facts for run in (first[0], second[0])]
        floors = archives.find_noise_floors(asked.results_dir, configurations, [*before, *after])
        return compare_runs(first, second, asked.noise, floors)
    if len(before) == 1:
        return _compare_sides_of_run(files, before[0], asked, curves)
    return _compare_sides_of_runs(files, before, asked.noise) if asked.sides else None


def _judge_comparison(
    comparison: Comparison, conditions: Sequence[Condition], undecided: Undecided
) -> Comparison:
    """Return a comparison with its conditions, judged."""
    from ssbench.comparison.comparison_verdict import judge_change_condition

    judged = [judge_change_condition(comparison, condition) for condition in conditions]
    if undecided is Undecided.AS_FAILED:
        judged = [replace(each, result=GateResult.FAILED) if each.undecided else each for each in judged]
    return replace(comparison, conditions=tuple(judged), undecided=undecided)


def _write(
    asked: CompareAsked,
    outputs: Iterable[tuple[str, Path]],
    product: Product,
    found: object,
    fit_view: Callable[[View], View] = lambda view: view,
) -> None:
    """Write a product in all formats that were asked for."""

    def write(format_: str, out: TextIO) -> None:
        view = fit_view(output_file.make_view(out))
        out.writelines(products.make_product_parts(product, format_, found, view))

    output_file.write_outputs(outputs, write, force=asked.force)


def _describe_repeated(names: Sequence[str]) -> list[str]:
    """Say which files were given more than once."""
    counts = Counter(Path(name).resolve() for name in names)
    return [f"{path.name} was given {count} times" for path, count in counts.items() if count > 1]


def _choose_outputs(asked: CompareAsked) -> list[tuple[str, Path]]:
    """Return each format that is asked for with its file; raises UsageError."""
    outputs = [(asked.format, asked.output)]
    if asked.html:
        outputs.append(("html", asked.html))
    if asked.json:
        if options.is_json_alone(asked) and output_file.is_standard_output_name(asked.output):
            outputs.pop(0)
        outputs.append(("json", asked.json))
    output_file.check_outputs([path for _, path in outputs], None, force=asked.force)
    return outputs


def _compare_sides_of_run(
    files: _Files, name: str, asked: CompareAsked, curves: _Curves | None
) -> Comparison:
    """Compare the two sides of one run, whose curves are added; raises UsageError where it has none."""
    from ssbench.comparison.paired_sides import compare_sides
    from ssbench.comparison.run_figures import collect_run_facts
    from ssbench.statistics.summary import summarize

    if is_foreign_name(name):
        return _compare_foreign_sides(files, name, asked.noise)
    with files.opened(name) as results:
        if not results.run.sides:
            raise UsageError(
                f"{Path(name).name}: this run does not have two sides (--ab); to compare two runs name both,"
                " as in 'ssbench-master compare last-1 last'"
            )
        statistics = summarize(results)
    if curves is not None:
        from ssbench.comparison.comparison_report import make_side_curves

        for side, own in zip(curves, make_side_curves(statistics), strict=True):
            side.extend(own)
    return compare_sides(
        statistics,
        asked.noise,
        archives.find_noise_floors(asked.results_dir, [collect_run_facts(statistics)], [name]),
    )


def _compare_foreign_sides(files: _Files, name: str, noise: float) -> Comparison:
    """Compare the two sides of a file of another tool; raises UsageError where it has another number."""
    from ssbench.comparison.foreign_results import read_foreign_results
    from ssbench.comparison.run_comparison import compare_runs

    found = read_foreign_results(Path(name))
    if len(found.sides) != 2:
        raise UsageError(
            f"{name}: has {len(found.sides)} side{'s' * (len(found.sides) != 1)}, expected two; give --to to"
            " compare it with another file"
        )
    files.notes[found.note] = None
    before, after = found.sides.values()
    return compare_runs(before, after, noise)


def _read_foreign_runs(files: _Files, name: str) -> Sequence[RunFigures]:
    """Return the runs of a file of another tool, which has one side."""
    from ssbench.comparison.foreign_results import read_foreign_results

    found = read_foreign_results(Path(name))
    if len(found.sides) != 1:
        raise UsageError(f"{name}: has {len(found.sides)} sides, which are compared without --to")
    files.notes[found.note] = None
    return next(iter(found.sides.values()))


def _compare_sides_of_runs(files: _Files, names: Sequence[str], noise: float) -> Comparison:
    """Compare the two sides of several runs; raises UsageError where one has none, or others."""
    from ssbench.comparison.paired_sides import compare_sided, make_sided_run
    from ssbench.statistics.summary import summarize

    runs = []
    for name in names:
        with files.opened(name) as results:
            try:
                runs.append(make_sided_run(summarize(results), _shorten_name(name)))
            except ValueError as error:
                raise UsageError(f"--sides: {Path(name).name}: {error} (--ab)") from None
    try:
        return compare_sided(runs, noise)
    except ValueError as error:
        raise UsageError(f"--sides: {error}") from None


def _is_on_envelope(text: str) -> bool:
    return text.lstrip().startswith("envelope.")


def _parse_conditions(texts: Sequence[str]) -> list[Condition]:
    """Parse all; raises UsageError."""
    from ssbench.comparison.comparison_verdict import check_change_condition
    from ssbench.scenario.conditions import parse_conditions

    conditions: list[Condition] = []
    for text in texts:
        if _is_on_envelope(text):
            raise UsageError(
                f"--fail-if {text!r} is for the command 'envelope' and for two of its JSON files; runs are"
                " compared by conditions on figures and changes, such as 'read.p99 > +20%'"
            )
        try:
            conditions += parse_conditions(text, relative=True, grouped=True)
            for condition in conditions:
                check_change_condition(condition)
        except ValueError as error:
            raise UsageError(f"--fail-if {error}") from None
    return conditions


def _bind_to_runs(conditions: Sequence[Condition], comparison: Comparison) -> list[Condition]:
    """Return conditions as they are read where it is known which operations the runs define.

    Raises UsageError for one on an operation, or on a group of users, that no run has.
    """
    from ssbench.scenario.conditions import parse_condition

    operations, groups = comparison.operations(), comparison.groups()
    try:
        return [
            parse_condition(each.text, operations, relative=True, grouped=each.group in groups)
            for each in conditions
        ]
    except ValueError as error:
        raise UsageError(f"--fail-if {error}") from None


def _read_runs(
    files: _Files, names: Sequence[str], curves: list[RunCurves] | None = None
) -> list[RunFigures]:
    """Return the figures of stat files; only they stay in memory, and what of ``curves`` is asked for."""
    from ssbench.comparison.run_figures import make_run_figures
    from ssbench.statistics.summary import summarize

    runs: list[RunFigures] = []
    for name in names:
        if is_foreign_name(name):
            runs += _read_foreign_runs(files, name)
            continue
        with files.opened(name) as results:
            statistics = summarize(results, over_time=curves is not None)
            runs.append(make_run_figures(statistics, _shorten_name(name)))
        if curves is not None:
            curves += _make_curves(statistics, name, len(curves))
    return runs


def _make_curves(statistics: RunStatistics, name: str, drawn: int) -> list[RunCurves]:
    """Return the curves of a run in a list, which is empty where enough are drawn already."""
    from ssbench.comparison.comparison_report import MAX_DRAWN_RUNS, make_run_curves

    return [make_run_curves(statistics, _shorten_name(name))] if drawn < MAX_DRAWN_RUNS else []


def _shorten_name(name: str) -> str:
    """Return a short name of a stat file."""
    return Path(name).name.removesuffix(".gz").removesuffix(".stat")
