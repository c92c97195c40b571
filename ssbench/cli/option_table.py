"""Options of the command line that follow from records, and those of packages that only some runs need.

An option is said at its field (:mod:`ssbench.base.option`); here it becomes an argument, and records are made
of the values. The packages that only some runs need (``cluster``, ``monitoring``, ``local_swift``) are found
by name, with their options and what these ask for. Nothing else imports them, so that one can be understood,
tested or left out without the others.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Container, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from ssbench.base.option import OptionGroup, OptionRow, OptionUnit, list_options
from ssbench.cli import options
from ssbench.cli.options import (
    parse_share,
    parse_warm_up,
    parse_whole_seconds,
    positive_int,
    positive_rate,
    positive_seconds,
    seconds_or_0,
)
from ssbench.cli.parser import set_completion_kind
from ssbench.run.options import RunOptions
from ssbench.store.request_options import RequestOptions

if TYPE_CHECKING:
    from ssbench.run.bench import Companion, Companions

_METAVARS = {
    OptionUnit.SECONDS: "SECONDS",
    OptionUnit.BYTES: "BYTES",
    OptionUnit.NUMBER: "N",
    OptionUnit.LABEL: "LABEL",
}


def add_option_arguments(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    record: type,
    which: OptionGroup | Container[str],
) -> None:
    """Add the options of a record that are in a group, or those of some names, in the order of its fields."""
    for name, row in list_options(record).items():
        if row.option.group is which if isinstance(which, OptionGroup) else name in which:
            _add_option_argument(parser, row)


def _add_option_argument(parser: argparse.ArgumentParser | argparse._ArgumentGroup, row: OptionRow) -> None:
    option = row.option
    spellings = [*([option.letter] if option.letter else []), row.flag]
    if option.unit is OptionUnit.FLAG:
        action = "store_false" if row.turns_off else "store_true"
        parser.add_argument(*spellings, dest=row.name, action=action, help=option.help)
        return
    argument = parser.add_argument(
        *spellings,
        dest=row.name,
        metavar=option.metavar or _METAVARS[option.unit],
        type=_choose_type(row),
        default=row.default,
        help=option.help + _describe_default(row),
    )
    if option.unit is OptionUnit.LABEL:
        set_completion_kind(argument, "labels")


def _choose_type(row: OptionRow) -> Any:
    """Return what argparse calls to read a value."""
    if row.option.parse is not None:
        return options.make_argument_type(row.option.parse)
    match row.option.unit:
        case OptionUnit.SECONDS:
            return options.positive_seconds if row.above is not None else options.seconds_or_0
        case OptionUnit.BYTES:
            return options.positive_size
        case OptionUnit.LABEL:
            return options.parse_label
    return options.positive_int if row.least else options.non_negative_int


def _describe_default(row: OptionRow) -> str:
    """Return the end of the help."""
    if row.option.default is not None:
        return f" (default: {row.option.default})"
    return "" if row.default is None else f" (default: {row.default:g})"


def read_option_values(record: type, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the values of all options of a record, by the names of their fields."""
    return {name: getattr(arguments, name) for name in list_options(record)}


def read_known_option_values(record: type, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the values of those options of a record that the command has."""
    return {name: getattr(arguments, name) for name in list_options(record) if hasattr(arguments, name)}


def add_request_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``run-scenario`` for requests: timeouts, retries, checks, how many may fail."""
    group = parser.add_argument_group("requests")
    for record in (RequestOptions, RunOptions):
        add_option_arguments(group, record, OptionGroup.REQUESTS)


# -- Packages that only some runs need -------------------------------------------------------------


#: A module of options in a package of this kind, in the order of the help.
CLUSTER_OPTIONS = "ssbench.cluster.run_options"
METRICS_OPTIONS = "ssbench.monitoring.metrics_options"
WEB_OPTIONS = "ssbench.monitoring.web_options"


class _LeafOptions(Protocol):
    """What a module with the options of a leaf has."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
        """Add the options."""

    @staticmethod
    def companion(arguments: argparse.Namespace) -> AbstractContextManager[Companion | None]:
        """Return a context for all runs; None where the options ask for nothing. It raises UsageError."""


def add_leaf_arguments(name: str, parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the options of one of the modules that are named above."""
    _import_options(name).add_arguments(parser)


@contextmanager
def open_companions(arguments: argparse.Namespace) -> Iterator[Companions]:
    """Yield what all of the options ask for; raises UsageError where that is not possible."""
    from ssbench.run.bench import Companions

    with ExitStack() as stack:
        found = [
            stack.enter_context(_import_options(name).companion(arguments))
            for name in (CLUSTER_OPTIONS, METRICS_OPTIONS, WEB_OPTIONS)
        ]
        yield Companions([each for each in found if each is not None])


def _import_options(name: str) -> _LeafOptions:
    return cast(_LeafOptions, importlib.import_module(name))


# -- The options of run-scenario for the load ------------------------------------------------------


def add_load_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the load."""
    group = parser.add_argument_group(
        "load",
        "Each replaces the value in the scenario. SECONDS may have a unit (200ms, 1m30s, 2h), and BYTES too"
        " (4K or 4KiB: 4096, 4kB: 4000).",
    )
    _add_pace(group)
    _add_measurement(group)
    _add_target(group)


def _add_pace(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-u", "--user-count", metavar="N", type=positive_int, help="maximum number of operations in flight"
    )
    group.add_argument("-o", "--op-count", metavar="N", type=positive_int, help="number of operations")
    group.add_argument(
        "-r",
        "--run-seconds",
        metavar="SECONDS",
        type=positive_seconds,
        help="run for this long; overrides a number of operations, that of -o too",
    )
    group.add_argument(
        "--rate",
        metavar="N",
        type=positive_rate,
        help="start N operations per second however fast the store answers (an open loop); -u then limits how"
        " many are in flight (default: each user starts the next when its last one has ended)",
    )
    group.add_argument(
        "--arrivals",
        choices=("even", "poisson"),
        help="when operations are due with --rate: at equal distances, or at random (default: even)",
    )
    group.add_argument(
        "--think-time",
        metavar="SECONDS",
        type=seconds_or_0,
        help="time that a user waits after each operation, without --rate (default: 0)",
    )


def _add_measurement(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--warmup",
        metavar="SECONDS",
        type=parse_warm_up,
        help="leave the results of this first part of the run out of the report; auto: until the rate is"
        " steady, in runs of a minute or more (default: 0)",
    )
    group.add_argument(
        "--until",
        metavar="PERCENT",
        type=parse_share,
        help="end the run once the 95%% interval of its rate is within PERCENT (checked from 30 s on); -r is"
        " the upper limit (default: the run does not end early)",
    )
    group.add_argument(
        "--ab",
        nargs=2,
        metavar="NAME=WHAT",
        help="compare two sides in one run, each with half of the users: two storage URLs, two policies, or"
        " two accounts (NAME=@FILE, a file with ST_AUTH=..., ST_USER=... and so on); see doc/comparing.rst",
    )
    group.add_argument(
        "--repeat",
        metavar="N",
        type=positive_int,
        help="run N times with the same workers, each with a stat file of its own, and print what differs"
        " between the runs, or with --ab between the sides (default: once, with a report)",
    )
    group.add_argument(
        "--versus",
        metavar="OPTIONS",
        help="with --repeat: run N times with these options too, in turn, and compare:"
        " --versus='--block-size 4K', --versus='-f OTHER', --versus='' for equal runs; options of load and"
        " requests, -f, --label",
    )
    group.add_argument(
        "--pause",
        metavar="SECONDS",
        type=seconds_or_0,
        default=5.0,
        help="seconds between the runs of --repeat (default: %(default)g)",
    )


def _add_target(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-c", "--container-count", metavar="N", type=positive_int, help="number of containers")
    group.add_argument(
        "--accounts",
        metavar="N",
        type=positive_int,
        help="number of accounts, to which objects and operations are spread; needs a reseller admin, or a"
        " list (--credentials)",
    )
    group.add_argument(
        "--delete-after",
        metavar="SECONDS",
        type=parse_whole_seconds,
        help="let objects expire after this long (X-Delete-After); 0 means never",
    )
    group.add_argument("-p", "--policy", metavar="NAME", help="storage policy of the containers")
    add_option_arguments(group, RunOptions, OptionGroup.LOAD)
    group.add_argument(
        "--existing",
        metavar="CONTAINER",
        action="append",
        default=[],
        help="only read the objects that this container has already: nothing is prepared, written or deleted,"
        " and a scenario that writes is refused; may be repeated",
    )
    group.add_argument(
        "--existing-list",
        metavar="FILE",
        type=Path,
        help="the same with the objects that a file names, CONTAINER/OBJECT on each line",
    )
    group.add_argument(
        "--local-swift",
        action="store_true",
        help="start a real Swift on this machine for the run, and remove it afterwards"
        " (needs: pip install swift eventlet)",
    )
