"""``ssbench-master envelope``: what a store can do, by size and operation, in a time that is given."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ssbench.base.errors import ExitCode, UsageError
from ssbench.base.option import list_options
from ssbench.base.text_values import parse_size
from ssbench.cli import option_table, output_file
from ssbench.cli.asked import UnfitOptions, fit_options
from ssbench.cli.option_table import RunAsked
from ssbench.cli.options import (
    MINUTES,
    UNDECIDED_OPTION,
    Argument,
    ValueKind,
    add_options,
    choose_report_files,
    make_argument_type,
)
from ssbench.cli.own_program import import_faster
from ssbench.cli.suite import BRIEF_OF_PLANS, add_arguments_of_plans, make_store_option
from ssbench.reports.products import Product
from ssbench.run.bench_options import RunOptions
from ssbench.run.trial_swift import hide_secret_setting
from ssbench.scenario.conditions import parse_conditions
from ssbench.store.request_options import RequestOptions

USAGE = "%(prog)s [option ...]"

EXAMPLE = "ssbench-master envelope --minutes 60 --workers 2 --html store.html"

#: What the short help shows.
BRIEF = (
    "--minutes",
    "--sizes",
    "--operations",
    "--holds",
    "--fail-if",
    "--store",
    "--swift-logs",
    *BRIEF_OF_PLANS,
)

DESCRIPTION = (
    "Measure what a store can do: for objects of some sizes, and for write, read, delete and list, the most"
    " users at which a condition holds and their rate, and then all together at 70 % of that. The time goes"
    " to what is known least. See doc/capacity.rst."
)


#: Besides what :class:`EnvelopeWork` writes, the options that say what is measured, by the names of their
#: fields: what an envelope is made again with. As whom it is measured is not shown, nor what it writes.
_REPEATED_OPTIONS = (
    *("auth_storage_urls", "auth_option_OS_STORAGE_URL", "auth_insecure", "store", "local_swift"),
    *(name for name in (*list_options(RequestOptions), *list_options(RunOptions)) if name != "label"),
    *("workers", "zmq_bind_ip", "zmq_work_port", "zmq_results_port", "zmq_key", "fail_if", "undecided"),
    *("swift_logs", "log_format"),
)


@dataclass(frozen=True, kw_only=True)
class EnvelopeAsked(RunAsked):
    """What ``envelope`` is asked."""

    minutes: float
    sizes: Sequence[str]  # none: the usual ones
    operations: Sequence[str]  # the same
    holds: str
    fail_if: Sequence[str]
    store: Sequence[str]
    swift_logs: Sequence[str]
    log_format: str | None


ASKED = EnvelopeAsked

_UNFIT_OPTIONS: tuple[UnfitOptions[EnvelopeAsked, None], ...] = (
    UnfitOptions(
        ("--swift-logs",),
        "--local-swift deletes its logs when it ends",
        lambda asked, _: bool(asked.local_swift),
    ),
    UnfitOptions(
        ("--log-format",),
        "it says how the logs of --swift-logs are written",
        lambda asked, _: not asked.swift_logs,
        refusal="--log-format says how the logs of --swift-logs are written: expected these too",
    ),
)


def parse_sizes(text: str) -> tuple[str, ...]:
    """Parse ``4kB,1MB``; raises ValueError."""
    found = tuple(each.strip() for each in text.split(","))
    for each in found:
        parse_size(each)
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    group = parser.add_argument_group("load")
    add_options(
        group,
        Argument(
            "--minutes",
            MINUTES,
            "how long all runs take together",
            60.0,
        ),
        Argument(
            "--sizes",
            ValueKind("SIZES", make_argument_type(parse_sizes)),
            "sizes of the objects",
            (),
            "1kB,4kB,64kB,1MB,16MB",
        ),
        Argument(
            "--operations",
            ValueKind("NAMES", lambda text: tuple(each.strip() for each in text.split(","))),
            "operations to measure: write, read, delete, list",
            (),
            "all of these",
        ),
        Argument(
            "--holds",
            ValueKind("CONDITION"),
            "the condition that must hold up to the limit, such as 'p99 <= 50ms and errors <= 0.1%%'",
            "",
            "p99 <= 10 times that of one user, and errors <= 0.1%%",
        ),
        Argument(
            "--fail-if",
            ValueKind("CONDITION"),
            "exit with 5 if CONDITION is true, such as 'envelope.4kB.read.rate < 5000', with 6 if that is"
            " undecided; may be repeated",
            default=[],
            repeated=True,
        ),
        make_store_option("measure this store", "two are compared"),
        option_table.make_resume_option("continue the last envelope in the folder of results"),
        UNDECIDED_OPTION,
    )
    option_table.add_local_swift_arguments(group)
    option_table.add_logs_arguments(parser.add_argument_group("logs of Swift, for who bounds it"))
    add_arguments_of_plans(parser, Product.ENVELOPE)


def run(asked: EnvelopeAsked) -> ExitCode:
    """Measure what a store can do; raises SsbenchError where a run cannot begin."""
    with import_faster():
        from ssbench.cli.run_scenario import PlanFiles, begin_plan, start_plan
        from ssbench.comparison.store_limits import parse_envelope_condition
        from ssbench.logs.log_files import find_log_files
        from ssbench.plans.envelope_work import ENVELOPE_OPERATIONS, ENVELOPE_SIZES, EnvelopeWork
        from ssbench.run.plan import PlanSettings

    asked, place = begin_plan(asked, asked.store)
    asked = fit_options(asked, _UNFIT_OPTIONS, None)
    logs = find_log_files(asked.swift_logs)  # raises what would be said after an hour
    output_file.refuse_inputs(
        [path for _, path in choose_report_files(asked).wanted],
        [each.path for each in logs if not each.of_folder],
    )
    try:
        wanted = parse_conditions(asked.holds, grouped=True) if asked.holds else ()
    except ValueError as error:
        raise UsageError(f"--holds: {error}") from None
    try:
        conditions = [parse_envelope_condition(text) for text in asked.fail_if]
    except ValueError as error:
        raise UsageError(f"--fail-if: {error}") from None

    def make_work(options: RunOptions) -> EnvelopeWork:
        work = EnvelopeWork(
            options,
            asked.minutes,
            sizes=asked.sizes or ENVELOPE_SIZES,
            operations=asked.operations or ENVELOPE_OPERATIONS,
            wanted=wanted,
            fail_if=conditions,
            stores=[*place.stores],
        )
        work.further_words = [
            *asked.list_words(_REPEATED_OPTIONS),
            *map(hide_secret_setting, asked.list_words(["swift_config"])),
        ]
        if asked.swift_logs:
            work.examine_run = partial(
                option_table.examine_logged_run, swift_logs=asked.swift_logs, template=asked.log_format
            )
        return work

    files = PlanFiles("envelope", "an envelope")
    return start_plan(asked, place, files, make_work, PlanSettings(is_quiet=True))
