"""What the sub-commands share: types of values, and options that several have.

Among them are the scenario, FILE or ``-f FILE`` as ``run-scenario`` has it, and the options of the two
sockets between a master and its workers, for the parsers of either side.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ssbench.base import text_values
from ssbench.base.errors import UsageError
from ssbench.cli.parser import set_completion_kind
from ssbench.document.gates import Undecided
from ssbench.fleet.addresses import DEFAULT_RESULTS_PORT, DEFAULT_WORK_PORT, BindAddress
from ssbench.reports import products
from ssbench.reports.products import Product

if TYPE_CHECKING:
    from ssbench.fleet.keys import FleetKey
    from ssbench.scenario.conditions import Condition

_Value = TypeVar("_Value")


def _make_number_type(
    convert: Callable[[str], float], low: float, high: float, expected: str
) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
        return value

    return parse


def make_argument_type(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """Return a type of values whose error is what the ValueError of ``parse`` says."""

    def checked(text: str) -> _Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


positive_int = _make_number_type(int, 1, 2**62, "a whole number of 1 or more")
non_negative_int = _make_number_type(int, 0, 2**62, "a whole number of 0 or more")
positive_seconds = _make_number_type(
    text_values.parse_seconds, 1e-9, 1e9, f"a time above 0, {text_values.TIME_EXAMPLES}"
)
seconds_or_0 = _make_number_type(
    text_values.parse_seconds, 0, 1e9, f"a time of 0 or more, {text_values.TIME_EXAMPLES}"
)
positive_size = _make_number_type(
    text_values.parse_size, 1, 2**62, f"a number of bytes, {text_values.SIZE_EXAMPLES}"
)
positive_rate = _make_number_type(float, 1e-6, 1e7, "a number of operations a second above 0")
port_number = _make_number_type(int, 1, 65535, "a port number from 1 to 65535")
percentile_number = _make_number_type(float, 1, 100, "a percentile from 1 to 100")


#: The word for a time that is derived from the results.
AUTOMATIC_WORD = "auto"


def parse_warm_up(text: str) -> float | str:
    """Parse a time of 0 or more, or ``auto``."""
    return text if text == AUTOMATIC_WORD else float(seconds_or_0(text))


def parse_label(text: str) -> str:
    """Parse a word that names runs."""
    if not text or len(text) > 100 or not text.isprintable() or text != text.strip() or text.startswith("@"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a label: a printable text without @ before it")
    return text


def parse_urls(text: str) -> list[str]:
    """Parse URLs with spaces between them: the value of a variable that a shell may not split, as zsh."""
    if not (found := text.split()):
        raise argparse.ArgumentTypeError("expected a URL, not an empty text")
    return found


def parse_share(text: str) -> float:
    """Parse a percentage above 0 and below 100, as in 2% or 2, and return it as a share."""
    parsed: float = _make_number_type(float, 1e-6, 99.999999, "a percentage such as 2%")(
        text.strip().removesuffix("%")
    )
    return parsed / 100


def parse_whole_seconds(text: str) -> int:
    """Parse a time that Swift takes, which knows no fractions."""
    value: float = seconds_or_0(text)
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds")
    return int(value)


def parse_percentiles(text: str) -> list[float]:
    """Parse percentiles with commas between them."""
    return [percentile_number(part) for part in text.split(",")]


def add_renamed_option(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, name: str, old: str, **settings: Any
) -> None:
    """Add an option, and an ``old`` letter for it that scripts may use but the help does not show.

    A letter that the help shows means the same for every sub-command.
    """
    parser.add_argument(name, **settings)
    hidden = {**settings, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
    parser.add_argument(old, dest=name[2:].replace("-", "_"), **hidden)


def add_percentiles_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--pctile``; see :func:`choose_percentiles`."""
    parser.add_argument(
        "--pctile",
        type=parse_percentiles,
        action="extend",
        metavar="N[,N...]",
        help="percentiles of latencies to report, from 1 to 100, as in 95,99.9; the first is that of the"
        " table (default: 95)",
    )


def add_report_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--report`` and ``--csv``; see :func:`choose_report`."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--report",
        choices=("both", "table", "summary", "full"),
        help="what to print: the table of ssbench 0.3.9, the summary, both, or full: the table, all sections"
        " and a longer summary (default: both; full with -v)",
    )
    choice.add_argument("--csv", action="store_true", help="print the report as CSV")


def choose_report(arguments: argparse.Namespace) -> tuple[str, bool]:
    """Return the name of the report that was asked for, and whether its summary is to be long."""
    if arguments.csv:
        return "csv", False
    name = arguments.report or ("full" if arguments.verbose else "both")
    return name, arguments.verbose or name == "full"


def _parse_condition(text: str) -> Condition:
    """Parse a condition of ``--fail-if``."""
    from ssbench.scenario import conditions  # here, because it brings the tables of operations and of figures

    return conditions.parse_condition(text, grouped=True)


def add_fail_if_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--fail-if``."""
    parser.add_argument(
        "--fail-if",
        type=make_argument_type(_parse_condition),
        action="append",
        default=[],
        metavar="CONDITION",
        help="exit with code 5 if CONDITION is true: 'read.p99 > 200ms', 'errors > 0.1%%',"
        " 'rate < 500', 'create.mb_per_s < 100'; see doc/reports.rst; may be repeated, and adds to those of"
        " the scenario (default: none)",
    )


def add_undecided_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--undecided``; see :func:`choose_undecided`."""
    parser.add_argument(
        "--undecided",
        choices=[each.value for each in Undecided],
        help="what a condition of --fail-if counts as where too few operations or runs leave it undecided:"
        " fail (exit code 5), pass (0), or report, which ends with exit code 6 (default: report)",
    )


def choose_undecided(arguments: argparse.Namespace) -> Undecided:
    """Return what an undecided condition counts as."""
    return Undecided(arguments.undecided or Undecided.REPORT.value)


def choose_percentiles(arguments: argparse.Namespace) -> tuple[float, tuple[float, ...]]:
    """Return the percentile of the table, and the others that were asked for."""
    first, *more = dict.fromkeys(arguments.pctile or [95.0])
    return first, tuple(more)


def add_force_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--force`` for a sub-command that writes files."""
    parser.add_argument("--force", action="store_true", help="overwrite existing files")


def add_format_option(parser: argparse.ArgumentParser, product: Product) -> None:
    """Add ``--format`` with the formats of a product."""
    parser.add_argument(
        "--format",
        choices=products.format_names(product),
        default="text",
        help="how it is written (default: %(default)s)",
    )


def add_output_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--output`` for a sub-command that writes one file."""
    add_renamed_option(
        parser,
        "--output",
        "-o",
        type=Path,
        default="-",
        metavar="FILE",
        help="file to write (default: standard output)",
    )


def choose_named_once(arguments: argparse.Namespace, option: str, twice: str, none: str) -> object:
    """Return what FILE or an option that is the same names; raises UsageError unless one of them does.

    ``twice`` and ``none`` are the messages of that error.
    """
    given = [each for each in (arguments.file, getattr(arguments, option)) if each is not None]
    if len(given) == 2 and option not in arguments.given:
        given.pop()  # of a file or a variable: what the command line names wins
    if len(given) != 1:
        raise UsageError(twice if given else none)
    return given[0]


# -- The scenario file -----------------------------------------------------------------------------


def add_scenario_arguments(parser: argparse.ArgumentParser) -> None:
    """Add both ways to name it; see :func:`choose_scenario_file`."""
    file = parser.add_argument(
        "file", nargs="?", metavar="FILE", help="a scenario in YAML or JSON, or the name of a shipped one"
    )
    set_completion_kind(file, "scenarios")
    option = parser.add_argument(
        "-f", "--scenario-file", metavar="FILE", help="the same, as run-scenario has it"
    )
    set_completion_kind(option, "scenarios")
    add_allow_bodies_option(parser)


def add_allow_bodies_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--allow-bodies``."""
    parser.add_argument(
        "--allow-bodies",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="allow body files from DIR as well as from the folder of the scenario (default: none); may be"
        " repeated",
    )


def choose_scenario_file(arguments: argparse.Namespace) -> str:
    """Return the scenario that was named; raises UsageError where it is not one."""
    return str(
        choose_named_once(
            arguments,
            "scenario_file",
            "a scenario is given twice, as FILE and with -f; one is expected",
            "a scenario is expected: FILE (run-scenario --list-scenarios lists shipped ones)",
        )
    )


# -- The sockets of master and workers -------------------------------------------------------------


def add_zmq_arguments(parser: argparse.ArgumentParser, default_ip: str) -> None:
    """Add the options of a master; ``default_ip`` is for the help."""
    group = parser.add_argument_group("sockets")
    group.add_argument(
        "--zmq-bind-ip", metavar="IP", help=f"address that both sockets bind to (default: {default_ip})"
    )
    add_shared_zmq_arguments(group)


def add_shared_zmq_arguments(group: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add the options that a master and a worker both have."""
    group.add_argument(
        "--zmq-work-port",
        metavar="PORT",
        type=port_number,
        help=f"port of the master's work socket (default: {DEFAULT_WORK_PORT})",
    )
    group.add_argument(
        "--zmq-results-port",
        metavar="PORT",
        type=port_number,
        help=f"port of the master's results socket (default: {DEFAULT_RESULTS_PORT})",
    )
    group.add_argument(
        "--zmq-key",
        metavar="FILE",
        type=Path,
        help="key file that encrypts all messages and lets no worker without it connect, the same on the"
        " master and on every worker; 'ssbench-master keygen' makes one [SSBENCH_ZMQ_KEY]",
    )


def choose_key_file(arguments: argparse.Namespace) -> Path | None:
    """Return the key file of the options or of the environment."""
    variable = os.environ.get("SSBENCH_ZMQ_KEY")
    return arguments.zmq_key or (Path(variable) if variable else None)


def read_chosen_key(arguments: argparse.Namespace) -> FleetKey | None:
    """Read the key file, where there is one; raises KeyFileError."""
    from ssbench.fleet import keys

    path = choose_key_file(arguments)
    return keys.read_fleet_key(path) if path else None


def has_zmq_options(arguments: argparse.Namespace) -> bool:
    """Return whether an option of a master was given, so that workers of other hosts may connect."""
    names = ["zmq_bind_ip", "zmq_work_port", "zmq_results_port"]
    if "zmq_key" in arguments.given:  # one that a file or a variable names is there for all runs
        names.append("zmq_key")
    return any(getattr(arguments, name) is not None for name in names)


def choose_ports(arguments: argparse.Namespace) -> tuple[int, int]:
    """Return the ports for work and for results; raises UsageError when they are the same."""
    work_port = arguments.zmq_work_port or DEFAULT_WORK_PORT
    results_port = arguments.zmq_results_port or DEFAULT_RESULTS_PORT
    if work_port == results_port:
        raise UsageError(f"--zmq-work-port and --zmq-results-port are both {work_port}")
    return work_port, results_port


def make_bind_address(arguments: argparse.Namespace, default_ip: str) -> BindAddress:
    """Return where a master listens; raises UsageError."""
    return BindAddress(arguments.zmq_bind_ip or default_ip, *choose_ports(arguments))
