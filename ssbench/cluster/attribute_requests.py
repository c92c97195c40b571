"""Single requests of ``attribute``: a waterfall of one, and a trace of one or of the slowest for a viewer."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base import printable
from ssbench.base.errors import UsageError
from ssbench.cli import output_file, unfit

if TYPE_CHECKING:
    from ssbench.cluster.joined import JoinedRun
    from ssbench.cluster.spans import TracedRequest

_requests_log = logging.getLogger(__name__)


def add_trace_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--transaction",
        type=_check_transaction_id,
        metavar="TX",
        help="print what each server did of this request instead of the report, as a waterfall",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="file for that request, or else for the 20 slowest, as a Chrome trace, which Perfetto"
        " (ui.perfetto.dev) opens (default: none)",
    )
    parser.add_argument(
        "--otlp",
        type=Path,
        metavar="FILE",
        help="file for the same as OpenTelemetry traces (OTLP in JSON), which Jaeger opens (default: none)",
    )


def _check_transaction_id(text: str) -> str:
    from ssbench.cluster.lines import TRANS_ID

    if not text.isascii() or not TRANS_ID.match(text.encode()):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no transaction id of Swift: tx, 21 hexadecimal digits, a hyphen and 10 more"
        )
    return text


def check_request_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    if str(arguments.otlp).startswith(("http:/", "https:/")):
        # The settings of run-scenario may be those of all sub-commands.
        unfit.ignore_options(arguments, "attribute writes traces to a file", "--otlp")
        if arguments.otlp is not None:
            raise UsageError(
                "--otlp: attribute writes traces to a file; it is run-scenario that sends metrics to a URL"
            )
    if arguments.transaction and (arguments.json or arguments.html):
        raise UsageError(
            "--transaction prints one request: give it without --json and --html (but --trace, --otlp)"
        )


def select_requests(arguments: argparse.Namespace, joined: JoinedRun) -> list[TracedRequest]:
    """Return the requests that are looked at one by one, those that took longest first."""
    from ssbench.cluster import spans
    from ssbench.cluster.lines import make_template_parser

    proxy = make_template_parser(arguments.log_format) if arguments.log_format else None
    return spans.trace_requests(joined, proxy)


def write_requests(arguments: argparse.Namespace, joined: JoinedRun) -> bool:
    """Write what is asked for of single requests; return whether that is all.

    Raises UsageError where no log knows the request.
    """
    from ssbench.cluster import waterfall

    if not arguments.transaction and not arguments.trace and not arguments.otlp:
        return False
    found = select_requests(arguments, joined)
    if arguments.transaction:
        wanted = arguments.transaction[:34]
        found = [request for request in found if request.trans_id == wanted]
        if not found:
            raise UsageError(f"{arguments.transaction}: no line of the logs that could be read has this id")
        with output_file.open_output(arguments.report_file, force=arguments.force) as out:
            out.writelines(f"{line}\n" for line in waterfall.format_waterfall(found[0]))
    for path, write_traces in (
        (arguments.trace, waterfall.make_chrome_trace),
        (arguments.otlp, waterfall.make_otlp_traces),
    ):
        if path:
            done = output_file.log_written
            with output_file.open_output(
                path, force=arguments.force, clean=printable.escape_in_json, done=done
            ) as out:
                out.write(write_traces(found))
                out.write("\n")
    return bool(arguments.transaction)
