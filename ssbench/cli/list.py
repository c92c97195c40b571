"""``ssbench-master list``: the runs in a folder of stat files."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TextIO

from ssbench.base.errors import ExitCode
from ssbench.cli import archives, options, output_file
from ssbench.cli.archives import ResultsDirAsked
from ssbench.cli.options import COUNT, LABEL, NAME, Argument, PrintedAsked, add_options, make_format_option
from ssbench.reports.products import Product

if TYPE_CHECKING:
    from ssbench.document.elements import View

EXAMPLE = "ssbench-master list --results-dir ~/runs --label before-upgrade"

DESCRIPTION = (
    "List the runs in a folder of stat files, the newest last: the name for other sub-commands"
    " (last-1; @LABEL means all runs with that label), start, scenario, label, rate, 99th percentile"
    " and verdict; -v adds full names and the files. --trend shows how the rate and 99th percentile of"
    " each scenario changed over time, and what else changed."
)


@dataclass(frozen=True, kw_only=True)
class ListAsked(ResultsDirAsked, PrintedAsked):
    """What the command is asked."""

    label: str | None
    scenario: str | None
    number: int
    trend: bool


ASKED = ListAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        archives.make_results_dir_option("the folder"),
        Argument("--label", LABEL._replace(read=None), "only runs with this label"),
        Argument(
            "--scenario", NAME, "only runs of the scenario of this name, or of SCENARIO: ROW of a suite"
        ),
        Argument("-n --number", COUNT, "the newest N (default: 50)", 50),
        Argument(
            "--trend",
            None,
            "draw how the runs of each scenario changed over time, where a new level began, and where"
            " version, machines, seed or load changed",
        ),
        make_format_option(Product.LIST),
        *options.JSON_OPTIONS,
    )


def run(asked: ListAsked) -> ExitCode:
    """Print the list; raises UsageError for what is no folder."""
    options.check_json_output(asked)
    archive = archives.open_archive(asked.results_dir)
    everything = archive.entries()
    entries = [
        (f"last-{back}" if back else "last", entry)
        for back, entry in zip(reversed(range(len(everything))), everything, strict=True)
        if asked.label in {None, entry.label} and asked.scenario in {None, entry.scenario, entry.title}
    ]
    archives.warn_of_unreadable(archive)
    entries = entries[-asked.number :]
    product, shown = (
        (Product.TREND, [entry for _, entry in entries]) if asked.trend else (Product.LIST, entries)
    )

    def fit_view(view: View, out: TextIO) -> View:
        # A table is no text to read line by line: it may use all of a wide terminal. Nothing is cut for a
        # program that reads names, as from a pipe or a file, which have no width.
        width = output_file.measure_terminal(out)
        wide = (asked.verbose or width is None) and not asked.trend
        return replace(view, columns=max(width or 0, view.columns), wide=wide)

    options.write_product(asked, product, shown, fit_view)
    return ExitCode.OK
