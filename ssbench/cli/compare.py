"""``ssbench-master compare``: two groups of runs, or a table of many."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.cli import output_file
from ssbench.cli.options import add_force, share
from ssbench.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from ssbench.comparison import RunFigures
    from ssbench.conditions import Condition

_log = logging.getLogger(__name__)

USAGE = "%(prog)s BEFORE [BEFORE ...] --to AFTER [AFTER ...] [option ...]"

EXAMPLE = "ssbench-master compare old-*.stat.gz --to new-*.stat.gz"

DESCRIPTION = (
    "Compare runs: what changed from BEFORE to AFTER, by how much, and how sure that is. Two files alone are"
    " one of each; more files without --to are a table with a line for each configuration. Verdicts need four"
    " runs a side, because what differs from run to run is in no single one; see"
    " doc/comparing.rst."
)

#: The keys of :data:`ssbench.comparison.formats.FORMATS`.
_FORMATS = ("text", "csv", "markdown", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("before", metavar="BEFORE", nargs="+", help="stat files, of any version")
    parser.add_argument(
        "--to", metavar="AFTER", nargs="+", action="extend", default=[], help="what they are compared with"
    )
    parser.add_argument("-f", "--format", choices=_FORMATS, default="text", help="(default: %(default)s)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default="-",
        metavar="FILE",
        help="file to write (default: standard output)",
    )
    parser.add_argument(
        "--noise",
        type=share,
        default=0.01,
        metavar="PERCENT",
        help="a change is shown where its whole interval is beyond this (default: 1%%)",
    )
    parser.add_argument(
        "--fail-if",
        metavar="CONDITION",
        action="append",
        default=[],
        help="exit with 5 where this holds of the change, or of AFTER: 'read.p99 > +10%%', 'rate < -5%%',"
        " 'errors > 0.1%%'; several times for several",
    )
    add_force(parser)


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print the comparison; raises StatFileError, and UsageError for a file that cannot be written."""
    # Here, because they import numpy, which --help does without.
    from ssbench.comparison import compare, listing
    from ssbench.comparison.conditions import judge
    from ssbench.comparison.formats import FORMATS

    before, after = arguments.before, arguments.to
    if not after and len(before) == 2:
        before, after = before[:1], before[1:]
    output: Path = arguments.output
    conditions = _conditions(arguments.fail_if)
    output_file.check_all([output], None, force=arguments.force)
    if not after and len(before) == 1:
        raise UsageError("compare needs two stat files at least")
    sides = _read(before), _read(after)
    judged = []
    if not after:
        if arguments.format != "text":
            raise UsageError("a table of many runs is text: give --to to compare two groups")
        if conditions:
            raise UsageError("--fail-if needs --to, or two files alone")
        text = listing.as_text(listing.listing(sides[0]))
    else:
        comparison = compare(*sides, arguments.noise)
        judged = [judge(comparison, condition) for condition in conditions]
        text = FORMATS[arguments.format](replace(comparison, conditions=tuple(judged)))
    with output_file.writing(output, force=arguments.force) as out:
        out.write(text.encode(out.encoding, "replace").decode(out.encoding))
    return ExitCode.THRESHOLD if any(each.failed for each in judged) else ExitCode.OK


def _conditions(texts: Sequence[str]) -> list[Condition]:
    """Parse all; raises UsageError."""
    from ssbench.comparison.conditions import check
    from ssbench.conditions import parse_all

    conditions: list[Condition] = []
    for text in texts:
        try:
            conditions += parse_all(text, relative=True)
            for condition in conditions:
                check(condition)
        except ValueError as error:
            raise UsageError(f"--fail-if {error}") from None
    return conditions


def _read(names: Sequence[str]) -> list[RunFigures]:
    """Return the figures of stat files; only they stay in memory."""
    from ssbench.cli.stat_file import reading
    from ssbench.comparison import figures_of
    from ssbench.statistics import summarize

    runs = []
    for name in names:
        with reading(Path(name)) as results:
            runs.append(figures_of(summarize(results), _called(name)))
    return runs


def _called(name: str) -> str:
    """Return a short name of a stat file."""
    return Path(name).name.removesuffix(".gz").removesuffix(".stat")
