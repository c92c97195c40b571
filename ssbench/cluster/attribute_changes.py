"""``attribute --compare``: what changed between two runs, by Swift's logs of both."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base import printable
from ssbench.base.errors import UsageError
from ssbench.cli import archives, output_file
from ssbench.cli.parser import set_completion_kind
from ssbench.reports import products
from ssbench.reports.products import Product

if TYPE_CHECKING:
    from ssbench.cluster import files
    from ssbench.cluster.joined import JoinedRun
    from ssbench.results.description import RunSummary

#: Joins the results of a run with logs.
JoinFunction = Callable[
    [Path, "list[files.LogFile]", "str | None", None], "tuple[JoinedRun, RunSummary | None]"
]
#: Says in what way the load generator was the limit of a run.
OverloadFunction = Callable[["JoinedRun", "RunSummary | None"], "tuple[str, ...]"]


def add_compare_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    before = parser.add_argument(
        "--compare",
        type=Path,
        metavar="BEFORE",
        help="report instead what changed since this run (a stat file, last-1, @LABEL): by operation, part,"
        " device, node and proxy",
    )
    set_completion_kind(before, "runs")
    parser.add_argument(
        "--compare-logs",
        nargs="+",
        action="extend",
        metavar="LOG",
        help="logs of that run, as --swift-logs (default: those of --swift-logs have both)",
    )


def check_compare_options(arguments: argparse.Namespace) -> Path | None:
    """Return the run that is compared with; raises UsageError for options that do not go together."""
    if arguments.compare is None:
        if arguments.compare_logs:
            raise UsageError("--compare-logs are logs of the run of --compare, which is not given")
        return None
    if arguments.transaction or arguments.trace or arguments.otlp:
        raise UsageError("--compare reports on two runs: give it without --transaction, --trace and --otlp")
    found = archives.resolve_references(arguments, [str(arguments.compare)])
    if len(found) != 1:
        raise UsageError(f"{arguments.compare}: {len(found)} runs have this label; one is expected")
    before = Path(found[0])
    if before.exists() and arguments.stats_file.exists() and before.samefile(arguments.stats_file):
        raise UsageError(f"{before}: --compare names the run that is to be compared with it")
    return before


def write_changes(
    arguments: argparse.Namespace, before: Path, join: JoinFunction, overload: OverloadFunction
) -> None:
    """Write what changed; raises StatFileError, and UsageError for files that do not belong together."""
    from ssbench.cluster import files
    from ssbench.cluster.changes import compare_joined_runs

    after: Path = arguments.stats_file
    logs = files.find_log_files(arguments.swift_logs)
    old_logs = files.find_log_files(arguments.compare_logs) if arguments.compare_logs else logs
    old, old_summary = join(before, old_logs, arguments.log_format, None)
    new, new_summary = join(after, logs, arguments.log_format, None)
    warnings = [
        f"{when}: {sentence}"
        for when, joined, summary in (("before", old, old_summary), ("after", new, new_summary))
        for sentence in overload(joined, summary)
    ]
    warnings += _describe_differences(before, after)
    changes = compare_joined_runs(old, new, (str(before), str(after)), warnings)
    outputs = [("json", arguments.json), ("html", arguments.html)]
    to_stdout = any(path and output_file.is_standard_output_name(path) for _, path in outputs)
    if not (to_stdout and output_file.is_standard_output_name(arguments.report_file)):
        outputs.append(("text", arguments.report_file))
    for name, path in outputs:
        if path:
            with output_file.open_output(
                path, force=arguments.force, clean=printable.choose_cleaner(name)
            ) as out:
                out.writelines(
                    products.make_product_parts(Product.CHANGES, name, changes, output_file.make_view(out))
                )


def _describe_differences(before: Path, after: Path) -> list[str]:
    """Say which settings the runs do not have in common."""
    from ssbench.cli.stat_file import open_stat_file
    from ssbench.comparison.facts import collect_run_facts, describe_fact_differences
    from ssbench.statistics.summary import summarize

    found = []
    for path in (before, after):
        with open_stat_file(path) as results:
            found.append(collect_run_facts(summarize(results)))
    return [f"The runs are not alike: {each}" for each in describe_fact_differences(found[:1], found[1:])]
