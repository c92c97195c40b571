"""``ssbench-master list``: the runs in a folder of stat files."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from ssbench.cli import archives, output_file
from ssbench.cli.options import positive_int
from ssbench.errors import ExitCode

if TYPE_CHECKING:
    from ssbench.archive import Entry

EXAMPLE = "ssbench-master list --results-dir ~/runs --label before-upgrade"

DESCRIPTION = (
    "List the runs of a folder of stat files, the newest last: when each began, its scenario and label, its"
    " rate and 99th percentile, and how it went. compare takes 'last', 'last-1' and '@LABEL' for them."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    archives.add_argument(parser, "the folder")
    parser.add_argument("--label", metavar="LABEL", help="only runs with this label")
    parser.add_argument("--scenario", metavar="NAME", help="only runs of the scenario of this name")
    parser.add_argument(
        "-n",
        "--number",
        metavar="N",
        type=positive_int,
        default=50,
        help="the newest N (default: 50)",
    )


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print the list; raises UsageError where there is no folder."""
    archive = archives.open_archive(arguments)
    entries = [
        entry
        for entry in archive.entries()
        if arguments.label in {None, entry.label} and arguments.scenario in {None, entry.scenario}
    ]
    archives.warn(archive)
    with output_file.standard_output() as out:
        text = "".join(f"{line}\n" for line in _lines(entries[-arguments.number :]))
        out.write(text.encode(out.encoding, "replace").decode(out.encoding))
    return ExitCode.OK


def _lines(entries: list[Entry]) -> list[str]:
    from ssbench.reports.figures import printable

    form = "{:<16}  {:<28.28}  {:<16.16}{:>6}{:>11}{:>9}  {:<12}  {}"
    lines = [form.format("begun", "scenario", "label", "users", "ops/s", "p99 ms", "verdict", "file")]
    for entry in entries:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.started))
        rate = "-" if entry.rate is None else f"{entry.rate:.1f}"
        p99 = "-" if entry.p99 is None else f"{entry.p99 * 1e3:.1f}"
        line = form.format(
            when, entry.scenario, entry.label or "", entry.users, rate, p99, entry.verdict, entry.file
        )
        lines.append(printable(line))
    return lines if entries else ["no runs"]
