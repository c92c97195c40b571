"""``ssbench-master envelope``: what a store can do, by size and operation, in a time that is given."""

from __future__ import annotations

import argparse

from ssbench.base.text_values import parse_size
from ssbench.cli import option_table
from ssbench.cli.option_table import EnvelopeAsked
from ssbench.cli.options import (
    MINUTES,
    UNDECIDED_OPTION,
    Argument,
    ValueKind,
    add_options,
    make_argument_type,
)
from ssbench.cli.own_program import run_later
from ssbench.cli.suite import BRIEF_OF_PLANS, add_arguments_of_plans, make_store_option
from ssbench.reports.products import Product

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
    *BRIEF_OF_PLANS,
)

DESCRIPTION = (
    "Measure what a store can do: for objects of some sizes, and for write, read, delete and list, the most"
    " users at which a condition holds and their rate, and then all together at 70 % of that. The time goes"
    " to what is known least. See doc/capacity.rst."
)

ASKED = EnvelopeAsked


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
    add_arguments_of_plans(parser, Product.ENVELOPE)


run = run_later("run_envelope")
