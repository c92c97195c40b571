"""``ssbench-master attribute``: which node was slow, from the logs of Swift.

``--compare`` tells what changed between two runs, by Swift's logs of both. Other options show single
requests: a waterfall of one, and a trace of one or of the slowest for a viewer.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ssbench.base.errors import ExitCode, UsageError
from ssbench.base.text_values import explain_several_runs
from ssbench.cli import archives, output_file
from ssbench.cli.archives import StatFileAsked
from ssbench.cli.asked import UnfitOptions, fit_options
from ssbench.cli.options import (
    FILE,
    FORCE_OPTION,
    RUN_FILE,
    Argument,
    OptionParser,
    ValueKind,
    add_options,
    positive_int,
)
from ssbench.reports import products
from ssbench.reports.products import Product

if TYPE_CHECKING:
    from ssbench.cli.option_table import LoggedSide
    from ssbench.cluster.attribution_records import Attribution
    from ssbench.cluster.joined_run import JoinedRun
    from ssbench.cluster.request_spans import TracedRequest
    from ssbench.comparison.change import FigureChange
    from ssbench.comparison.store_limits import LoggedRun
    from ssbench.logs import log_files
    from ssbench.reports.part_changes import ChangesByPart
    from ssbench.results.run_description import RunSummary
    from ssbench.statistics.waits import Wait

_SIDE_COUNT = 2


class JoinFunction(Protocol):
    """Joins the results of a run, or of one group of users, with logs."""

    def __call__(
        self,
        stats_file: Path,
        logs: list[log_files.LogFile],
        template: str | None,
        transaction: str | None,
        *,
        group: int | None,
    ) -> tuple[JoinedRun, RunSummary | None]:
        """Return the outcome and the summary of the run; raises the command's errors."""


#: Says in what way the load generator was the limit of a run.
OverloadFunction = Callable[["JoinedRun", "RunSummary | None"], "tuple[str, ...]"]


_COMPARE_OPTIONS = (
    Argument(
        "--compare",
        RUN_FILE._replace(metavar="BEFORE"),
        "report what changed since this run instead (a stat file, last-1, @LABEL), by operation,"
        " part, device, node and proxy; given the same run, compare its two sides (--ab)",
    ),
    Argument(
        "--compare-logs",
        ValueKind("LOG"),
        "logs of that run, as --swift-logs",
        default_text="those of --swift-logs have both",
        repeated=True,
        settings={"nargs": "+"},
    ),
)


def check_compare_options(asked: AttributeAsked, stats_file: Path) -> Path | None:
    """Return the run that is compared with; raises UsageError for options that do not go together."""
    if asked.compare is None:
        if asked.compare_logs:
            raise UsageError("--compare-logs are logs of the run of --compare, which is not given")
        return None
    if asked.transaction or asked.trace or asked.otlp:
        raise UsageError("--compare reports on two runs: give it without --transaction, --trace and --otlp")
    found = archives.resolve_references(asked.results_dir, [str(asked.compare)])
    if len(found) != 1:
        raise UsageError(explain_several_runs(str(asked.compare), found))
    before = Path(found[0])
    if output_file.is_same_file(before, stats_file) and not read_sides(before):
        raise UsageError(
            f"{before}: --compare names the run that is to be compared with it, or one with two sides (--ab)"
        )
    return before


def read_sides(path: Path) -> tuple[str, ...]:
    """Return the names of the two sides of a run; empty if it has none."""
    with archives.open_stat_file(path) as results:
        return results.run.sides if len(results.run.sides) == _SIDE_COUNT else ()


def write_changes(
    asked: AttributeAsked, runs: tuple[Path, Path], join: JoinFunction, overload: OverloadFunction
) -> None:
    """Write what changed; raises StatFileError, and UsageError for files that do not belong together."""
    from ssbench.cluster.changes import compare_joined_runs
    from ssbench.logs import log_files

    before, after = runs
    logs = log_files.find_log_files(asked.swift_logs)
    old_logs = log_files.find_log_files(asked.compare_logs) if asked.compare_logs else logs
    names = str(before), str(after)
    groups: tuple[int | None, int | None] = None, None
    if output_file.is_same_file(before, after):
        of_side = [f"{after}, side {name}" for name in read_sides(after)]
        names, groups = (of_side[0], of_side[1]), (0, 1)
    old, old_summary = join(before, old_logs, asked.log_format, None, group=groups[0])
    new, new_summary = join(after, logs, asked.log_format, None, group=groups[1])
    warnings = [
        f"{when}: {sentence}"
        for when, joined, summary in (("before", old, old_summary), ("after", new, new_summary))
        for sentence in overload(joined, summary)
    ]
    warnings += [] if output_file.is_same_file(before, after) else _describe_differences(before, after)
    changes = compare_joined_runs(old, new, names, warnings)
    outputs = [("json", asked.json), ("html", asked.html)]
    to_stdout = any(path and output_file.is_standard_output_name(path) for _, path in outputs)
    if not (to_stdout and output_file.is_standard_output_name(asked.report_file)):
        outputs.append(("text", asked.report_file))
    for name, path in outputs:
        if path:
            with output_file.open_output(path, name, force=asked.force) as out:
                out.writelines(
                    products.make_product_parts(Product.CHANGES, name, changes, output_file.make_view(out))
                )


def find_changes_by_part(
    sides: Sequence[LoggedSide], cpu: Mapping[str, FigureChange], is_shown: bool | None
) -> ChangesByPart:
    """Return what :func:`ssbench.cli.option_table.compare_logged_sides` does."""
    from ssbench.cluster.changes import compare_joined_runs, make_changes_by_part
    from ssbench.cluster.joined_run import concatenate_runs
    from ssbench.logs import log_files

    def join(side: LoggedSide) -> JoinedRun:
        logs, most = log_files.find_log_files([str(side.logs)]), _MAX_RESULTS // len(side.files)
        runs = (_join_run(each, logs, None, None, most, side.group)[0] for each in side.files)
        return reduce(concatenate_runs, runs)

    before, after = sides
    changes = compare_joined_runs(join(before), join(after), (before.name, after.name))
    return make_changes_by_part(changes, cpu, is_shown)


def _describe_differences(before: Path, after: Path) -> list[str]:
    """Say which settings the runs do not have in common."""
    from ssbench.comparison.run_figures import collect_run_facts, describe_fact_differences
    from ssbench.statistics.summary import summarize

    found = []
    for path in (before, after):
        with archives.open_stat_file(path) as results:
            facts = collect_run_facts(summarize(results))
            # Which objects are asked for is chance, which the comparison allows for.
            found.append({name: value for name, value in facts.items() if name != "seed"})
    return [f"The runs are not alike: {each}" for each in describe_fact_differences(found[:1], found[1:])]


def find_logged_limit(
    stats_file: Path, operation: str, *, swift_logs: Sequence[str], template: str | None
) -> LoggedRun:
    """Return what :func:`ssbench.cli.option_table.examine_logged_run` does."""
    from ssbench.cluster.attribution_records import AttributionFacts
    from ssbench.cluster.attribution_report import make_attribution_verdict
    from ssbench.cluster.findings import make_attribution
    from ssbench.cluster.logged_limits import conclude_logged_run
    from ssbench.logs import log_files

    logs = log_files.find_log_files(swift_logs)
    joined, summary = _join_run(stats_file, logs, template, None, _MAX_RESULTS)
    cluster = summary.cluster if summary else None
    facts = AttributionFacts(cluster=cluster, overload=_describe_overload(joined, summary))
    found = make_attribution(joined, facts)
    return conclude_logged_run(stats_file.name, joined, operation, found, make_attribution_verdict(found))


# -- Single requests -------------------------------------------------------------------------------


def _check_transaction_id(text: str) -> str:
    from ssbench.logs.envelopes import TRANS_ID

    if not text.isascii() or not TRANS_ID.match(text.encode()):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no transaction id of Swift: tx, 21 hexadecimal digits, a hyphen and 10 more"
        )
    return text


def check_request_options(asked: AttributeAsked) -> AttributeAsked:
    """Raise UsageError for options that do not go together; return the asked without what is ignored."""
    asked = fit_options(asked, _UNFIT_OPTIONS, None)
    if asked.transaction and (asked.json or asked.html):
        raise UsageError(
            "--transaction prints one request: give it without --json and --html (but --trace, --otlp)"
        )
    return asked


def select_requests(asked: AttributeAsked, joined: JoinedRun) -> list[TracedRequest]:
    """Return the requests that are looked at one by one, those that took longest first."""
    from ssbench.cluster import request_spans
    from ssbench.logs.swift_lines import make_template_parser

    proxy = make_template_parser(asked.log_format) if asked.log_format else None
    return request_spans.trace_requests(joined, proxy)


def write_requests(asked: AttributeAsked, joined: JoinedRun) -> bool:
    """Write what is asked for of single requests; return whether that is all.

    Raises UsageError where no log knows the request.
    """
    from ssbench.cluster import request_spans

    if not asked.transaction and not asked.trace and not asked.otlp:
        return False
    found = select_requests(asked, joined)
    if asked.transaction:
        wanted = asked.transaction[:34]
        found = [request for request in found if request.trans_id == wanted]
        if not found:
            raise UsageError(f"{asked.transaction}: no line of the logs that could be read has this id")
        with output_file.open_output(asked.report_file, force=asked.force) as out:
            out.writelines(f"{line}\n" for line in request_spans.format_waterfall(found[0]))
    for path, write_traces in (
        (asked.trace, request_spans.make_chrome_trace),
        (asked.otlp, request_spans.make_otlp_traces),
    ):
        if path:
            done = output_file.log_written
            with output_file.open_output(path, "json", force=asked.force, done=done) as out:
                out.write(write_traces(found))
                out.write("\n")
    return bool(asked.transaction)


# -- The command -----------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: Results that are joined with logs at most, unless the user asks for another number.
_MAX_RESULTS = 1_000_000

EXAMPLE = "ssbench-master attribute last --swift-logs proxy.log node-*/object.log"

DESCRIPTION = (
    "Join the results of a run with the logs of Swift by transaction id, and say where the time went and "
    "which proxy, node or device made requests slow. doc/which-node.rst says how to collect the logs."
)


@dataclass(frozen=True, kw_only=True)
class AttributeAsked(StatFileAsked):
    """What the command is asked."""

    swift_logs: Sequence[str]
    log_format: str | None
    hosts: Mapping[str, str]
    ring: Sequence[Path]
    report_file: Path
    json: Path | None
    html: Path | None
    sample: int | None
    compare: Path | None
    compare_logs: Sequence[str] | None
    transaction: str | None
    trace: Path | None
    otlp: Path | None
    force: bool


ASKED = AttributeAsked

_UNFIT_OPTIONS: tuple[UnfitOptions[AttributeAsked, None], ...] = (
    UnfitOptions(  # the settings of run-scenario may be those of all sub-commands
        ("--otlp",),
        "attribute writes traces to a file",
        lambda asked, _: str(asked.otlp).startswith(("http:/", "https:/")),
        refusal="--otlp: attribute writes traces to a file; it is run-scenario that sends metrics to a URL",
    ),
)


def add_logs_arguments(parser: OptionParser, *, required: bool = False) -> None:
    """Add the options for logs."""
    add_options(
        parser,
        Argument(
            "--swift-logs",
            ValueKind("LOG"),
            "logs of proxies and storage servers, compressed or not: FILE, a folder, or NODE=FILE if"
            " the lines do not name the node that wrote them",
            default=[],
            repeated=True,
            settings={"nargs": "+", "required": required},
        ),
        Argument(
            "--log-format",
            ValueKind("TEMPLATE", _check_template),
            "the proxies' log_msg_template, if they have one",
        ),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    add_options(parser, *archives.STAT_FILE_ARGUMENTS)
    add_logs_arguments(parser, required=True)
    add_options(
        parser,
        Argument(
            "--hosts",
            ValueKind("NODE=ADDRESS", _parse_hosts),
            "addresses (IP or IP:PORT, with commas between) of nodes as the logs call them, for errors of"
            " proxies, recon and statsd",
            {},
            "known by devices' names where these do not repeat",
            settings={"nargs": "+", "action": _MergeDictionaries},
        ),
        Argument(
            "--ring",
            ValueKind("FILE", _check_ring_file),
            "ring files (object.ring.gz, object-1.ring.gz, container.ring.gz, account.ring.gz) to use"
            " instead of --hosts (needs: pip install swift eventlet)",
            default=[],
            repeated=True,
            settings={"nargs": "+"},
        ),
        Argument("--report-file", FILE, "file for the report", "-", "standard output", old="-f"),
        Argument(
            "--json", FILE, "write everything as JSON to FILE; - is standard output", default_text="none"
        ),
        Argument(
            "--html",
            FILE,
            "write the report of the run as a page with charts, with a section about the logs, to FILE",
        ),
        Argument(
            "--sample",
            ValueKind("N", _parse_result_count),
            "take a random sample of at most N results (about 1 GB of memory per million), or all",
            _MAX_RESULTS,
            f"{_MAX_RESULTS:,}",
        ),
        *_COMPARE_OPTIONS,
        Argument(
            "--transaction",
            ValueKind("TX", _check_transaction_id),
            "print a waterfall of what each server did for this request instead of the report",
        ),
        Argument(
            "--trace",
            FILE,
            "write that request, or the 20 slowest, as a Chrome trace for Perfetto (ui.perfetto.dev) to FILE",
            default_text="none",
        ),
        Argument(
            "--otlp",
            FILE,
            "write the same as OpenTelemetry traces (OTLP in JSON), for Jaeger, say, to FILE",
            default_text="none",
        ),
        FORCE_OPTION,
    )


def _parse_result_count(text: str) -> int | None:
    return None if text == "all" else positive_int(text)


def _check_template(text: str) -> str:
    """Check a template; raises what argparse turns into a line."""
    from ssbench.logs.swift_lines import make_template_parser

    try:
        make_template_parser(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def run(asked: AttributeAsked) -> ExitCode:
    """Print what stands out; raises StatFileError, and UsageError for files that do not belong together."""
    from ssbench.cluster.attribution_records import AttributionFacts
    from ssbench.cluster.attribution_report import AttributedRun
    from ssbench.cluster.findings import make_attribution
    from ssbench.logs import log_files

    asked = check_request_options(asked)
    stats_file = archives.choose_stat_file(asked)
    before = check_compare_options(asked, stats_file)
    others = [path for path in (asked.json, asked.html, asked.trace, asked.otlp) if path]
    outputs = [asked.report_file, *others]
    output_file.check_outputs(outputs, stats_file, force=asked.force)
    on_stdout = sum(map(output_file.is_standard_output_name, others))
    if on_stdout > 1:
        raise UsageError("standard output (-) is given for two outputs")
    logs = log_files.find_log_files(asked.swift_logs)
    output_file.refuse_inputs(outputs, [each.path for each in logs if not each.of_folder])
    if before:
        write_changes(asked, (before, stats_file), partial(_join_run, most=asked.sample), _describe_overload)
        return ExitCode.OK
    joined, summary = _join_run(stats_file, logs, asked.log_format, asked.transaction, asked.sample)
    for count in joined.files:
        if not count.of_run and not count.of_daemons and not count.unread:
            _log.warning("%s: none of its %s lines is of this run", count.path, f"{count.lines:,}")
    if write_requests(asked, joined):
        return ExitCode.OK
    by_ring, unlogged = _read_ring_addresses(asked.ring, joined)
    # An address with a port is looked up before one without.
    by_ring = {key: node for key, node in by_ring.items() if key.rpartition(":")[0] not in asked.hosts}
    hosts = {**by_ring, **asked.hosts}
    cluster = summary.cluster if summary else None
    facts = AttributionFacts(hosts, cluster, _describe_overload(joined, summary), tuple(unlogged))
    found = AttributedRun(make_attribution(joined, facts), _find_waits(joined))
    if not (on_stdout and output_file.is_standard_output_name(asked.report_file)):
        with output_file.open_output(asked.report_file, force=asked.force) as out:
            out.write(products.find_writer(Product.ATTRIBUTION, "text")(found, output_file.make_view(out)))
    if asked.json:
        with output_file.open_output(asked.json, "json", force=asked.force) as out:
            out.write(products.find_writer(Product.ATTRIBUTION, "json")(found))
    if asked.html:
        _write_page(asked.html, stats_file, found.found, select_requests(asked, joined), force=asked.force)
    return ExitCode.OK


def _write_page(
    page_file: Path, stats_file: Path, found: Attribution, requests: list[TracedRequest], *, force: bool
) -> None:
    from ssbench.cluster import attribution_report
    from ssbench.document.renderers import html
    from ssbench.reports.writing import ReportOptions
    from ssbench.statistics.summary import summarize

    with archives.open_stat_file(stats_file) as results:
        statistics = summarize(results, products.PAGE_GROUPS, over_time=True)
    options = ReportOptions()
    made = attribution_report.make_logged_run_document(statistics, options, found, requests)
    page = html.render(made, options)
    done = output_file.log_written
    with output_file.open_output(page_file, force=force, done=done) as out:
        out.write(page)


def _parse_hosts(text: str) -> dict[str, str]:
    """Parse NODE=ADDRESS; raises what argparse turns into a line."""
    from ssbench.cluster.node_addresses import parse_node_addresses

    try:
        return parse_node_addresses([text])
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _check_ring_file(text: str) -> Path:
    """Check the name of a ring file; raises what argparse turns into a line."""
    from ssbench.cluster import ring

    try:
        ring.parse_ring_kind(path := Path(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return path


def _read_ring_addresses(paths: Sequence[Path], joined: JoinedRun) -> tuple[dict[str, str], list[str]]:
    """Return the nodes by address that ring files tell, and the addresses of object servers without a log.

    Raises UsageError for a file that cannot be read.
    """
    if not paths:
        return {}, []
    from ssbench.cluster import node_addresses, ring

    found = node_addresses.match_ring_addresses(joined, partial(ring.find_placed_replicas, paths))
    if unknown := sorted({each.node for each in joined.devices} - set(found.hosts.values())):
        _log.warning(
            "--ring: of %s the addresses are not known: a ring of another cluster, or its devices are always"
            " together with others of the same names; --hosts can tell",
            ", ".join(unknown),
        )
    return found


class _MergeDictionaries(argparse.Action):
    """Put dictionaries together."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: object,
        values: object,
        option_string: str | None = None,
    ) -> None:
        merged = dict(getattr(namespace, self.dest) or {})
        for each in values if isinstance(values, list) else []:
            merged.update(each)
        setattr(namespace, self.dest, merged)


def _describe_overload(joined: JoinedRun, summary: RunSummary | None) -> tuple[str, ...]:
    """Say in what way the load generator was the limit of the run."""
    import numpy as np

    from ssbench.statistics.load_generator import GeneratorMeasurements, summarize_generator

    latency = joined.operations.latency[~np.isnan(joined.operations.latency)]
    if not len(latency):
        return ()
    median, p99 = np.quantile(latency, (0.5, 0.99))
    ended = joined.operations.ended
    # Whether users were idle is not known here.
    measured = GeneratorMeasurements(float(ended[0]), float(ended[-1]), float(median), float(p99), None, 0)
    return summarize_generator(summary, measured).limits


def _join_run(
    stats_file: Path,
    logs: list[log_files.LogFile],
    template: str | None,
    transaction: str | None,
    most: int | None,
    group: int | None = None,
) -> tuple[JoinedRun, RunSummary | None]:
    from ssbench.cluster.join import LogJoin
    from ssbench.cluster.joined_run import NO_INDEX

    with archives.open_stat_file(stats_file) as results:
        join = LogJoin(results, template, transaction, most, group)
        for warning in results.warnings:
            _log.warning("%s: %s", stats_file, warning)
        summary = results.summary
    if not join.identified:
        raise UsageError(
            f"{stats_file}: no result has a transaction id of Swift, so no log can be joined with it"
        )
    join.read(logs)
    joined = join.joined()
    if sentence := joined.taken.describe_taken():
        _log.warning("%s: %s", stats_file, sentence)
    if not len(joined.lines) and not (joined.proxy != NO_INDEX).any():
        raise UsageError(_explain_no_lines(stats_file, joined, template))
    for count in joined.files:
        if count.unread:
            _log.warning("%s: left out: %s", count.path, count.unread)
        if count.damage:
            _log.warning("%s: %s; the lines before that are used", count.path, count.damage)
    return joined, summary


def _explain_no_lines(stats_file: Path, joined: JoinedRun, template: str | None) -> str:
    """Say why not one line is of the run."""
    lines = sum(file.lines for file in joined.files)
    if unread := _explain_unread_lines(joined, lines, template):
        return f"{stats_file}: {unread}"
    text = f"{stats_file}: none of the {lines:,} lines of the logs is of this run"
    first = min((file.first for file in joined.files if file.first is not None), default=None)
    last = max((file.last for file in joined.files if file.last is not None), default=None)
    if first is None or last is None:
        return f"{text}: no line holds a transaction id of Swift"
    if joined.began is None or joined.ended is None:
        return text
    if last < joined.began:
        return f"{text}: they end {joined.began - last:,} s before it"
    if first > joined.ended:
        return f"{text}: they begin {first - joined.ended:,} s after it"
    return f"{text}, though they are of the same time: are they of another cluster, or is log_requests off?"


def _explain_unread_lines(joined: JoinedRun, lines: int, template: str | None) -> str | None:
    """Say what of the lines themselves cannot be read."""
    from ssbench.cluster import attribution_records

    if cut := attribution_records.describe_cut_files(joined):
        return f"no log could be joined with it: {cut[0]}"
    if of_run := sum(file.of_run for file in joined.files):
        hint = (
            "the template that --log-format gives does not fit them"
            if template
            else "if the proxies have a log_msg_template, give it as --log-format"
        )
        return (
            f"{of_run:,} of {lines:,} lines name requests of this run, but none is an access line that could"
            f" be read: {hint}"
        )
    if unclear := [file.path for file in joined.files if file.without_id]:
        return (
            f"no log could be joined with it: the access lines of {unclear[0]} have no whole transaction id"
            " (tx, 21 hexadecimal digits, -, 10 more): was it cut off or masked?"
        )
    return None


def _find_waits(joined: JoinedRun) -> tuple[Wait, ...]:
    """Return the waits in the latencies of the run, operations of a size within a factor of 4 together."""
    import numpy as np

    from ssbench.statistics.latencies import merge_latencies, select_latencies
    from ssbench.statistics.waits import WAIT_LENGTHS, find_latency_waits

    operations = joined.operations
    latency = operations.latency
    size = (np.log2(np.maximum(operations.size, 1)) // 2).astype(np.int64)
    key = operations.code * np.int64(100) + size
    known = latency > 0
    ended = None if np.isnan(operations.ended[known]).any() else operations.ended
    leaves = {}
    for each in np.unique(key[known]).tolist():
        rows = known & (key == each)
        times = select_latencies(latency[rows], None if ended is None else ended[rows])
        leaves[each // 100, each % 100] = (times, merge_latencies(()))
    return find_latency_waits(WAIT_LENGTHS, leaves, joined.operation_table)
