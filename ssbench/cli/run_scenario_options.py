"""The options of ``ssbench-master run-scenario``.

They are apart from :mod:`ssbench.cli.run_scenario` because that imports all that a run needs, which takes
``--help`` five times as long as its own work.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ssbench.cli import auth_options, zmq_options
from ssbench.cli.options import (
    add_force,
    non_negative_float,
    non_negative_int,
    percentile,
    positive_float,
    positive_int,
)
from ssbench.errors import ExitCode

DESCRIPTION = (
    "Runs a scenario against Swift with the workers that are connected, or with local ones (--workers),"
    " writes every result to a stat file, and prints a report. Swift and the user are given as to the"
    " 'swift' command line; --local-swift starts a Swift of its own."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument(
        "-f", "--scenario-file", metavar="FILE", help="scenario in YAML or JSON, or the name of a shipped one"
    )
    parser.add_argument("--list-scenarios", action="store_true", help="list the shipped scenarios and exit")
    _add_load(parser)
    _add_report(parser)
    _add_fleet(parser)
    auth_options.add_arguments(parser)


def _add_load(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("load (in place of what the scenario says)")
    group.add_argument(
        "-u", "--user-count", metavar="N", type=positive_int, help="most operations in flight at once"
    )
    group.add_argument("-o", "--op-count", metavar="N", type=positive_int, help="operations to run")
    group.add_argument(
        "-r", "--run-seconds", metavar="N", type=positive_float, help="run this long instead; wins over -o"
    )
    group.add_argument("-c", "--container-count", metavar="N", type=positive_int, help="containers to use")
    group.add_argument(
        "--delete-after",
        metavar="SECONDS",
        type=non_negative_int,
        help="let objects expire after so long (X-Delete-After); 0 suppresses the scenario's value",
    )
    group.add_argument("-p", "--policy", metavar="NAME", help="storage policy of the containers")
    group.add_argument(
        "-b",
        "--block-size",
        metavar="BYTES",
        type=positive_int,
        default=65536,
        help="what a worker sends or receives at once (%(default)s)",
    )
    group.add_argument(
        "--connect-timeout", metavar="S", type=positive_float, default=10.0, help="seconds (%(default)s)"
    )
    group.add_argument(
        "--network-timeout",
        metavar="S",
        type=positive_float,
        default=20.0,
        help="seconds without any progress of a request (%(default)s)",
    )
    group.add_argument(
        "--request-timeout",
        metavar="S",
        type=positive_float,
        help="seconds for a whole attempt of a request; they do not run while its body moves at"
        " 10 kB/s or faster (three times --network-timeout)",
    )
    group.add_argument(
        "--retries",
        metavar="N",
        type=non_negative_int,
        default=10,
        help="how often a request that failed for a passing reason is tried again (%(default)s)",
    )
    group.add_argument(
        "--retry-404",
        metavar="N",
        type=non_negative_int,
        default=0,
        help="how often a read or delete that finds no object is tried again (%(default)s)",
    )
    group.add_argument(
        "--seed", metavar="N", type=non_negative_int, help="same seed, same operations (random)"
    )
    group.add_argument(
        "--give-up-after",
        metavar="S",
        type=non_negative_float,
        default=60.0,
        help="end the run when nothing has succeeded for so many seconds; 0: never (%(default)s)",
    )
    group.add_argument("--noop", action="store_true", help="do everything but the requests to Swift")
    group.add_argument("-k", "--keep-objects", action="store_true", help="do not delete what the run created")
    group.add_argument(
        "--local-swift",
        action="store_true",
        help="start a real Swift on this machine for the run, and remove it (pip install swift eventlet)",
    )


def _add_report(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("results")
    group.add_argument(
        "-s",
        "--stats-file",
        metavar="FILE",
        type=Path,
        help="where the results go; .gz is added (a new file in /tmp/ssbench-results)",
    )
    add_force(group)
    group.add_argument("-R", "--no-default-report", action="store_true", help="print no report")
    group.add_argument("--csv", action="store_true", help="print the report as CSV")
    group.add_argument(
        "--pctile", metavar="N", type=percentile, default=95.0, help="percentile to report, 1 to 100 (95)"
    )
    group.add_argument("--profile", action="store_true", help="profile the benchmark and the local workers")


def _add_fleet(parser: argparse.ArgumentParser) -> None:
    zmq_options.add_arguments(parser, "0.0.0.0; 127.0.0.1 with --workers")
    group = parser.add_argument_group("fleet")
    group.add_argument("--workers", metavar="N", type=positive_int, help="start N local workers for this run")
    group.add_argument(
        "--batch-size", metavar="N", type=positive_int, default=1, help="jobs a message (%(default)s)"
    )
    group.add_argument(
        "--expect-workers",
        metavar="N",
        type=positive_int,
        help="wait for so many workers before the run starts (1; all of --workers)",
    )
    group.add_argument(
        "--worker-timeout",
        metavar="S",
        type=positive_float,
        default=60.0,
        help="wait so many seconds for them (%(default)s)",
    )


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run the benchmark; raises SsbenchError when it cannot begin."""
    from ssbench.cli.run_scenario import run as run_scenario

    return run_scenario(arguments)
