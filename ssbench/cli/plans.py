"""Plans of the command line: what is asked of the second way to run, and where the report goes."""

from __future__ import annotations

import logging
import shlex
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar
from urllib.parse import quote

from ssbench.base.errors import ExitCode, UsageError, choose_worst_code
from ssbench.cli import option_table, output_file
from ssbench.cli import options as cli_options
from ssbench.cli.asked import get_value, read_more
from ssbench.cli.options import parse_label
from ssbench.cli.own_program import quote_own_command
from ssbench.cli.parser import Origin, Parser
from ssbench.plans.plan_work import Conclusion, PlanWork, carry_out_work
from ssbench.plans.rows_work import PageWriter
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.reports.writing import ReportOptions, make_run_report_parts
from ssbench.results.reading import open_results
from ssbench.run.bench_options import BenchOptions
from ssbench.run.plan import PlanSettings
from ssbench.statistics.summary import summarize

if TYPE_CHECKING:
    from collections.abc import Callable

    from ssbench.cli.option_table import RunAsked, RunScenarioAsked

_log = logging.getLogger(__name__)

#: What a plan keeps of a run.
_Kept = TypeVar("_Kept")


def run_plan(
    asked: RunAsked,
    work: PlanWork[_Kept],
    bench: BenchOptions,
    plan: PlanSettings,
    *,
    complete: Callable[[Conclusion[Any]], Conclusion[Any]] | None = None,
) -> ExitCode:
    """Carry out a plan and report on it; raises SsbenchError where a run cannot begin.

    ``complete`` returns its conclusion with what only the caller can add.
    """
    output = PlanOutput(asked, work.product)
    unwritten: list[ExitCode] = []

    def write(found: Conclusion[Any]) -> None:
        if found.found is not None:
            completed = complete(found) if complete is not None else found
            if not output.try_to_write(completed):
                unwritten.append(ExitCode.FAILED)
        if found.code is ExitCode.INTERRUPTED and asked.stats_file is not None and found.files:
            _log.info("The same command with %s--resume continues", _name_files(asked))

    plan = replace(plan, resumes=asked.resume)
    found = carry_out_work(work, bench, plan, program=quote_own_command(), on_concluded=write)
    return choose_worst_code([found.code, *unwritten])


def _name_files(asked: RunAsked) -> str:
    """Return what lets ``run-scenario`` find its files, where it chose their names; others find them."""
    chosen = asked.find_source("stats_file").origin is Origin.DEFAULT
    if not chosen or not isinstance(asked, option_table.RunScenarioAsked):
        return ""
    instead = " in place of --results-dir" if asked.results_dir else ""
    return f"-s {shlex.quote(str(asked.stats_file))}{instead} and "


class PlanOutput:
    """Where the report of a plan goes: standard output, and files."""

    def __init__(self, asked: RunAsked, product: Product) -> None:
        files = cli_options.choose_report_files(asked)
        files.check([], asked.stats_file)
        self._force = files.force
        self._wanted = [*files.wanted]
        if files.on_standard_output is None and not asked.no_default_report:
            name = "csv" if asked.csv and products.has_format(product, "csv") else "text"
            name = asked.format or name
            self._wanted.insert(0, (name, Path("-")))
        for name, _ in self._wanted:  # before the runs: they may take hours
            products.find_writer(product, name)

    def write(self, found: Conclusion[Any]) -> None:
        """Write all that can be; then raises UsageError, which names those that could not."""
        output_file.write_outputs(self._wanted, partial(_write_conclusion, found), force=self._force)

    def try_to_write(self, found: Conclusion[Any]) -> bool:
        """Write all after runs; log what could not be written, and return whether all was."""
        write = partial(_write_conclusion, found)
        return output_file.try_to_write_outputs(self._wanted, write, force=self._force)


def _write_conclusion(found: Conclusion[Any], name: str, out: TextIO) -> None:
    out.writelines(products.make_product_parts(found.product, name, found.found, output_file.make_view(out)))


#: What both sides share, or what would make more than two of them.
_SHARED_OPTIONS = ("ab", "repeat", "pause", "resume", "versus", "until", "keep_objects", "seed")


class _VersusParser(Parser):
    """A parser of options within an option."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"--versus: {message}")


def parse_second_side(asked: RunScenarioAsked) -> RunScenarioAsked:
    """Return what is asked of the second side: what ``--versus`` names, otherwise the same.

    Raises UsageError.
    """
    try:
        words = shlex.split(asked.versus or "")
    except ValueError as error:
        raise UsageError(f"--versus: {error}") from None
    parser = _VersusParser(prog="--versus", add_help=False)
    parser.add_argument("-f", "--scenario-file")
    parser.add_argument("--label", type=parse_label)
    option_table.add_load_arguments(parser)
    option_table.add_request_arguments(parser)
    parser.add_opposites()
    # Of options of the first side it does not matter where they are from.
    found, unknown = read_more(replace(asked, sources={}), parser, words)
    if unknown:
        raise UsageError(
            f"--versus: {unknown[0]} is no option that can differ: a scenario (-f), load, requests, --label;"
            " or, alone, 'without GROUP'"
        )
    for name in _SHARED_OPTIONS:
        if get_value(found, name) != get_value(asked, name):
            raise UsageError(f"--versus: --{name.replace('_', '-')} is for both sides")
    if bool(found.local_swift) != bool(asked.local_swift):
        raise UsageError("--versus: --local-swift is for both sides, which may have different releases")
    if found.is_given("op_count") and not found.is_given("run_seconds"):
        found = replace(found, run_seconds=None)  # of the first side, which would win
    return replace(found, sources={**asked.sources, **found.sources})


def make_page_writer(page: Path | None, *, force: bool, is_written: bool = False) -> PageWriter | None:
    """Return what writes the pages of rows beside the page of the table; None where there is none.

    ``is_written``: the runs themselves write them.
    """
    if page is None or output_file.is_standard_output_name(page):
        return None
    folder = page.with_name(f"{page.stem}-rows")

    def write(file: str, name: str) -> str:
        if is_written:
            return quote(f"{page.stem}.{name}{page.suffix}")
        path = folder / f"{name}.html"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            _log.error("%s: cannot be written: %s", folder, error.strerror)
            return ""
        written = output_file.try_to_write_output(path, partial(_write_run_page, file), "html", force=force)
        return f"{folder.name}/{quote(path.name)}" if written else ""

    return write


def _write_run_page(file: str, out: TextIO) -> None:
    with closing(open_results(Path(file))) as results:
        statistics = summarize(results, products.PAGE_GROUPS, over_time=True)
    out.writelines(make_run_report_parts("html", statistics, ReportOptions()))
