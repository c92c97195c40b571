"""``ssbench-master traffic``: what users do by the logs of their store, and a scenario that does the same."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import archives, options, output_file
from ssbench.cli.archives import RESULTS_DIR_OPTION, ResultsDirAsked
from ssbench.cli.options import FILE, JSON_OPTIONS, Argument, JsonAsked, ValueKind, add_options
from ssbench.logs.request_formats import (
    REQUEST_FORMATS,
    RequestFormat,
    find_request_format,
    suggest_format,
)
from ssbench.reports import products
from ssbench.reports.products import Product

if TYPE_CHECKING:
    from ssbench.logs.logged_requests import RequestColumns

EXAMPLE = "ssbench-master traffic proxy.log.*.gz -o mine.yaml"

DESCRIPTION = (
    "Say what the users of a store do, from its logs: operations, sizes, how often and how soon again objects"
    " are used, arrivals, each beside the log's own halves; and write a scenario that does the same. See"
    " doc/own-traffic.rst."
)


@dataclass(frozen=True, kw_only=True)
class TrafficAsked(ResultsDirAsked, JsonAsked):
    """What the command is asked."""

    logs: tuple[str, ...]
    format: str
    log_format: str | None
    output: Path | None  # for a scenario
    html: Path | None
    compare: tuple[str, ...] | None  # other logs
    compare_format: str | None
    compare_log_format: str | None
    share: bool


ASKED = TrafficAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(
        parser,
        Argument(
            "logs",
            ValueKind("LOG"),
            "logs of proxies, gateways or load balancers, compressed or not: files, or folders;"
            " or the stat file of a run (also last, last-1, @LABEL)",
            settings={"nargs": "+"},
        ),
        Argument("--format", tuple(REQUEST_FORMATS), "what wrote the logs", "swift"),
        Argument(
            "--log-format",
            ValueKind("TEMPLATE"),
            "how its lines are configured: log_msg_template of Swift's proxies, log-format of HAProxy,"
            " log_format of nginx",
            default_text="the default of each",
        ),
        Argument("-o --output", FILE, "write a scenario that does the same to FILE; - is standard output"),
        Argument("--html", FILE, "write the report as a page with charts, which opens offline, to FILE"),
        Argument(
            "--compare",
            ValueKind("LOG"),
            "compare with these logs: those of a run of the scenario, or of another store; or with the stat"
            " file of a run (also last, last-1, @LABEL)",
            settings={"nargs": "+"},
        ),
        Argument(
            "--compare-format", tuple(REQUEST_FORMATS), "what wrote these", default_text="that of --format"
        ),
        Argument(
            "--compare-log-format",
            ValueKind("TEMPLATE"),
            "how their lines are configured",
            default_text="that of --log-format, or of --compare-format the default",
        ),
        RESULTS_DIR_OPTION,
        Argument("--share", None, "leave out lines and names of files, so that the report may go to others"),
        *JSON_OPTIONS,
    )


def run(asked: TrafficAsked) -> ExitCode:
    """Print what users do; raises StatFileError, and UsageError for logs without requests."""
    from ssbench.run.bars import ProgressBar
    from ssbench.traffic.made_scenario import make_scenario
    from ssbench.traffic.traffic_figures import Traffic
    from ssbench.traffic.traffic_report import TrafficReport

    outputs = [path for path in (asked.output, asked.html, asked.json) if path]
    output_file.check_outputs(outputs, None, force=asked.force)
    on_stdout = sum(map(output_file.is_standard_output_name, outputs))
    if on_stdout > 1:
        raise UsageError("standard output (-) is given for two outputs")
    if asked.compare and asked.output:
        raise UsageError("--output makes a scenario of one log: give it without --compare")
    form = find_request_format(asked.format, asked.log_format)
    other_form = _find_other_format(asked, form)
    requests = _read_logs(asked, outputs, asked.logs, form, "--format {}")
    other = None
    if asked.compare:
        other = _read_logs(asked, outputs, asked.compare, other_form, "--compare-format {}")
    report = TrafficReport(Traffic(requests), other, shared=asked.share)
    if asked.output:
        with ProgressBar("Making the scenario", None):
            made = make_scenario(report.traffic, _choose_name(asked.output))
        report = replace(report, remarks=made.remarks)
        with output_file.open_output(asked.output, force=asked.force) as out:
            out.write(made.text)
    if asked.html:
        with output_file.open_output(asked.html, "html", force=asked.force) as out:
            out.writelines(products.make_product_parts(Product.TRAFFIC, "html", report))
    options.write_json_output(asked, products.make_product_parts(Product.TRAFFIC, "json", report))
    if not on_stdout:
        with output_file.open_standard_output() as out:
            view = output_file.make_view(out)
            out.writelines(products.make_product_parts(Product.TRAFFIC, "text", report, view))
    return ExitCode.OK


def _find_other_format(asked: TrafficAsked, form: RequestFormat) -> RequestFormat:
    """Return the format of the logs of ``--compare``, which is that of the others if nothing else is said."""
    if asked.compare_format is None and asked.compare_log_format is None:
        return form
    if not asked.compare:
        raise UsageError("--compare-format and --compare-log-format are about the logs of --compare")
    name = asked.format if asked.compare_format is None else asked.compare_format
    return find_request_format(name, asked.compare_log_format)


def _read_logs(
    asked: TrafficAsked, outputs: Sequence[Path], logs: Sequence[str], form: RequestFormat, option: str
) -> RequestColumns:
    """Return the requests of logs, or of the stat file of a run; ``option`` gives the format of these."""
    from ssbench.logs.log_files import find_log_files
    from ssbench.logs.logged_requests import read_requests
    from ssbench.run.bars import ProgressBar
    from ssbench.traffic.run_requests import has_stat_file_name, read_run_requests

    logs = archives.resolve_references(asked.results_dir, logs)
    runs = [each for each in map(Path, logs) if has_stat_file_name(each)]
    if runs and len(logs) > 1:
        raise UsageError(f"{runs[0]}: give one stat file of a run alone, or logs")
    output_file.refuse_inputs(outputs, runs)
    if runs:
        return read_run_requests(runs[0])
    files = find_log_files(logs)
    output_file.refuse_inputs(outputs, [each.path for each in files if not each.of_folder])
    with ProgressBar("Lines read", None) as bar:
        return read_requests(files, form, bar.advance, partial(suggest_format, option=option))


def _choose_name(output: Path) -> str:
    """Return the name of a scenario: that of its file, or a usual one."""
    is_file = not output_file.is_standard_output_name(output)
    return output.stem if is_file and output.stem.isprintable() and len(output.stem) <= 200 else "traffic"
