"""``ssbench-master list``: the runs in a folder of stat files."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from ssbench.cli import archives, output_file
from ssbench.cli.options import completes, positive_int
from ssbench.errors import ExitCode
from ssbench.figures import FIGURES

if TYPE_CHECKING:
    from ssbench.archive import Entry

EXAMPLE = "ssbench-master list --results-dir ~/runs --label before-upgrade"

DESCRIPTION = (
    "List the runs of a folder of stat files, the newest last: what other sub-commands call each (last-1;"
    " @LABEL means all with a label), when it began, its scenario and label, its rate and 99th percentile,"
    " and the verdict; with -v the names in full, and the files."
    " --trend shows how rate and 99th percentile of each scenario developed, and what changed meanwhile."
)


_HEADS = ("run", "begun (UTC)", "scenario", "label", "users", "ops/s", "p99 ms", "verdict", "file")
#: Columns that are aligned to the right.
_NUMBERS = ("users", "ops/s", "p99 ms")
#: Names are not cut to fewer columns.
_LEAST_NAME = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    archives.add_argument(parser, "the folder")
    label = parser.add_argument("--label", metavar="LABEL", help="only runs with this label")
    completes(label, "labels")
    parser.add_argument("--scenario", metavar="NAME", help="only runs of the scenario of this name")
    parser.add_argument(
        "-n",
        "--number",
        metavar="N",
        type=positive_int,
        default=50,
        help="the newest N (default: 50)",
    )
    parser.add_argument(
        "--trend",
        action="store_true",
        help="show with bars how runs of each scenario developed, where a new level began, and where version,"
        " machines, seed or load changed",
    )


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print the list; raises UsageError for what is no folder."""
    archive = archives.open_archive(arguments)
    everything = archive.entries()
    entries = [
        (_reference(back), entry)
        for back, entry in zip(reversed(range(len(everything))), everything, strict=True)
        if arguments.label in {None, entry.label} and arguments.scenario in {None, entry.scenario}
    ]
    archives.warn(archive)
    entries = entries[-arguments.number :]
    with output_file.standard_output() as out:
        text = (
            _trends([entry for _, entry in entries], out.encoding)
            if arguments.trend
            else _list(entries, verbose=arguments.verbose)
        )
        out.write(text.encode(out.encoding, "replace").decode(out.encoding))
    return ExitCode.OK


def _reference(back: int) -> str:
    """Return what a run is called that has so many after it."""
    return f"last-{back}" if back else "last"


def _trends(entries: list[Entry], encoding: str) -> str:
    # Here, because it imports numpy, which --help does without.
    from ssbench.archive.trend import trends

    return trends(entries, encoding)


def _list(entries: list[tuple[str, Entry]], *, verbose: bool) -> str:
    if not entries:
        return "no runs\n"
    # Here, because it imports numpy, which --help does without.
    from ssbench.archive.entry import NO_P99
    from ssbench.printable import printable
    from ssbench.reports.columns import cut, width

    rows = [_HEADS, *(tuple(map(printable, (name, *_cells(entry)))) for name, entry in entries)]
    left_out = {"label"} if not any(entry.label for _, entry in entries) else set()
    left_out |= set() if verbose else {"file"}
    columns = {head: cells for head, *cells in zip(*rows, strict=True) if head not in left_out}
    widths = {head: max(map(width, (head, *cells))) for head, cells in columns.items()}
    if not verbose:
        _narrow(widths)
    lines = []
    for row in zip(*((head, *cells) for head, cells in columns.items()), strict=True):
        shown = (cut(cell, room) for cell, room in zip(row, widths.values(), strict=True))
        padded = (
            " " * (room - width(cell)) + cell if head in _NUMBERS else cell + " " * (room - width(cell))
            for cell, (head, room) in zip(shown, widths.items(), strict=True)
        )
        lines.append("  ".join(padded).rstrip())
    if any(entry.p99 is None for _, entry in entries):
        lines.append(NO_P99)
    return "".join(f"{line}\n" for line in lines)


def _cells(entry: Entry) -> tuple[str, ...]:
    """Return the lines below the heads."""
    return (
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(entry.started)),
        entry.scenario,
        entry.label or "",
        str(entry.users),
        FIGURES["rate"].unit.text(entry.rate),
        FIGURES["p99"].unit.text(entry.p99),
        entry.verdict,
        entry.file,
    )


def _narrow(widths: dict[str, int]) -> None:
    """Give the scenario and the label less room, until a line fits the terminal, or 80 columns."""
    from ssbench.cli.report_width import columns
    from ssbench.reports.columns import WIDTH

    names = [head for head in ("scenario", "label") if head in widths]
    over = sum(widths.values()) + 2 * (len(widths) - 1) - max(columns() or 0, WIDTH)
    while over > 0 and any(widths[head] > _LEAST_NAME for head in names):
        widths[max(names, key=lambda head: widths[head])] -= 1
        over -= 1
