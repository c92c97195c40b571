"""The options of ``ssbench-master run-scenario``.

They are not in :mod:`ssbench.cli.run_scenario` because that imports all that a run needs, which takes much
longer than to print the help.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ssbench import conditions
from ssbench.capacity import variables
from ssbench.capacity.variables import Sweep
from ssbench.cli import archives, auth_options, metrics_options, report_files, zmq_options
from ssbench.cli.loading import loading
from ssbench.cli.options import (
    add_fail_if,
    add_force,
    add_percentiles,
    add_report,
    label,
    non_negative_int,
    port,
    positive_int,
    rate,
    seconds,
    seconds_or_0,
    share,
    size,
    urls,
    warm_up,
    whole_seconds_or_0,
)
from ssbench.conditions import Condition
from ssbench.errors import ExitCode
from ssbench.run import error_limit
from ssbench.run.error_limit import ErrorLimit

USAGE = "%(prog)s -f FILE [option ...]"

EXAMPLE = "ssbench-master run-scenario -f small --workers 2 -u 16 -r 60"

DESCRIPTION = (
    "Run a scenario against Swift, with connected workers or with local ones (--workers), write every result"
    " to a stat file and print a report. Options for Swift and the user are those of the 'swift' command;"
    " --local-swift starts a Swift on this machine."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument(
        "-f",
        "--scenario-file",
        metavar="FILE",
        help="a scenario in YAML or JSON, or the name of a shipped one",
    )
    parser.add_argument("--list-scenarios", action="store_true", help="list the shipped scenarios and exit")
    _add_load(parser)
    _add_capacity(parser)
    _add_requests(parser)
    _add_results(parser)
    _add_cluster(parser)
    metrics_options.add_arguments(parser)
    _add_fleet(parser)
    auth_options.add_arguments(parser)


def _add_load(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "load",
        "Each replaces the value in the scenario. SECONDS may have a unit (200ms, 1m30s, 2h), and BYTES too"
        " (4K or 4KiB: 4096, 4kB: 4000).",
    )
    group.add_argument(
        "-u", "--user-count", metavar="N", type=positive_int, help="maximum number of operations in flight"
    )
    group.add_argument("-o", "--op-count", metavar="N", type=positive_int, help="number of operations")
    group.add_argument(
        "-r",
        "--run-seconds",
        metavar="SECONDS",
        type=seconds,
        help="run for this long; overrides a number of operations",
    )
    group.add_argument(
        "--rate",
        metavar="N",
        type=rate,
        help="operations a second that are due whatever the store does (an open loop); -u then bounds those"
        " in flight (default: a user sends the next when its last one has ended)",
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
    group.add_argument(
        "--warmup",
        metavar="SECONDS",
        type=warm_up,
        help="leave the results of this first part of the run out of the report; auto: until the rate is"
        " steady, in runs of a minute or more (default: 0)",
    )
    group.add_argument(
        "--until",
        metavar="PERCENT",
        type=share,
        help="end the run when its rate is known to this many per cent (95%% interval, from 30 s on);"
        " -r is the limit of time (default: no end but -r)",
    )
    group.add_argument(
        "--ab",
        nargs=2,
        metavar="NAME=WHAT",
        help="compare two sides in one run: each object belongs to one of two storage URLs, of two policies,"
        " or of two accounts (NAME=@FILE, a file with ST_AUTH=..., ST_USER=... and so on); see"
        " doc/comparing.rst",
    )
    group.add_argument(
        "--repeat",
        metavar="N",
        type=positive_int,
        help="run N times with the same workers, each with a stat file of its own, and print what differs"
        " between the runs (default: once, with a report)",
    )
    group.add_argument(
        "--pause",
        metavar="SECONDS",
        type=seconds_or_0,
        default=5.0,
        help="seconds between the runs of --repeat (default: %(default)g)",
    )
    group.add_argument("-c", "--container-count", metavar="N", type=positive_int, help="number of containers")
    group.add_argument(
        "--delete-after",
        metavar="SECONDS",
        type=whole_seconds_or_0,
        help="let objects expire after this long (X-Delete-After); 0 means never",
    )
    group.add_argument("-p", "--policy", metavar="NAME", help="storage policy of the containers")
    group.add_argument(
        "--seed",
        metavar="N",
        type=non_negative_int,
        help="seed of the random draws; the same seed draws the same operations (default: random)",
    )
    group.add_argument("--noop", action="store_true", help="do everything except send requests to Swift")
    group.add_argument(
        "-k", "--keep-objects", action="store_true", help="do not delete the objects that the run created"
    )
    group.add_argument(
        "--local-swift",
        action="store_true",
        help="start a real Swift on this machine for the run, and remove it afterwards"
        " (needs: pip install swift eventlet)",
    )


def _add_capacity(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "capacity", "Many runs with the same workers and initial objects; see doc/capacity.rst."
    )
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--sweep",
        metavar="WHAT=VALUES",
        type=_sweep,
        help="a run for each value of users, rate, size or workers: users=4,8,16 or users=4..512 (doubled);"
        " ends where more load brings nothing, or operations fail",
    )
    which.add_argument(
        "--find",
        metavar="CONDITIONS",
        type=_conditions,
        help="find the most users, or with --rate the highest rate, at which 'read.p99 <= 50ms and errors"
        " <= 0.1%%' holds; begins with -u or --rate, and -r is the time of a step",
    )
    group.add_argument(
        "--find-within",
        metavar="PERCENT",
        type=share,
        help="end --find when the lowest load at which its condition failed is at most this much above the"
        " answer (default: 5%%)",
    )


def _sweep(text: str) -> Sweep:
    try:
        return variables.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _conditions(text: str) -> tuple[Condition, ...]:
    try:
        return conditions.parse_all(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _add_requests(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("requests")
    group.add_argument(
        "-b",
        "--block-size",
        metavar="BYTES",
        type=size,
        default=65536,
        help="bytes that a worker sends or receives at once (default: %(default)s)",
    )
    group.add_argument(
        "--connect-timeout",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="seconds to wait for a connection (default: %(default)g)",
    )
    group.add_argument(
        "--network-timeout",
        metavar="SECONDS",
        type=seconds,
        default=20.0,
        help="seconds to wait for progress of a request (default: %(default)g)",
    )
    group.add_argument(
        "--request-timeout",
        metavar="SECONDS",
        type=seconds,
        help="seconds for a whole attempt of a request; the clock stops while its body moves at 10 kB/s or"
        " faster (default: three times --network-timeout)",
    )
    group.add_argument(
        "--retries",
        metavar="N",
        type=non_negative_int,
        default=10,
        help="maximum number of retries of a request that failed for a transient reason"
        " (default: %(default)s)",
    )
    group.add_argument(
        "--retry-404",
        metavar="N",
        type=non_negative_int,
        default=0,
        help="maximum number of retries of a read or delete that finds no object (default: %(default)s)",
    )
    group.add_argument(
        "--verify",
        action="store_true",
        help="check each read against what was written: length and every byte; initial objects that are there"
        " already are written again",
    )
    group.add_argument(
        "--no-trans-id-extra",
        action="store_true",
        help="send no X-Trans-Id-Extra, by which transaction ids in Swift's logs end in a mark of the run",
    )
    group.add_argument(
        "--max-errors",
        metavar="N",
        type=_error_limit,
        help="end the run when more than N operations have failed, or more than N%% of those that ended"
        " (default: never)",
    )
    group.add_argument(
        "--give-up-after",
        metavar="SECONDS",
        type=seconds_or_0,
        default=60.0,
        help="end the run when nothing has succeeded for this many seconds; 0 means never"
        " (default: %(default)g)",
    )


def _error_limit(text: str) -> ErrorLimit:
    try:
        return error_limit.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _add_results(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("results")
    group.add_argument(
        "-s",
        "--stats-file",
        metavar="FILE",
        type=Path,
        help="file for the results; .gz is appended (default: a new file in /tmp/ssbench-results)",
    )
    archives.add_argument(group, "folder for a new stat file, in which ssbench-master list finds it")
    group.add_argument(
        "--label",
        metavar="LABEL",
        type=label,
        help="a word by which list and compare find this run, as in 'compare @old --to @new'",
    )
    add_force(group)
    group.add_argument("-R", "--no-default-report", action="store_true", help="print no report")
    add_report(group)
    add_percentiles(group)
    add_fail_if(group)
    report_files.add_arguments(group)
    group.add_argument(
        "--progress",
        choices=("line", "characters", "none"),
        default="line",
        help="what to show of the benchmark on standard error: a line (redrawn on a terminal, one each 10 s"
        " elsewhere), a character for each result, or nothing (default: %(default)s)",
    )
    group.add_argument(
        "--live",
        dest="progress",
        action="store_const",
        const="live",
        help="show operations and workers, with their CPU and lag, on a small screen that is redrawn; where"
        " there is no terminal, the same as --progress line",
    )
    group.add_argument(
        "--profile", action="store_true", help="write profiles of the benchmark and of the local workers"
    )


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "cluster", "What the cluster says of itself before, during and after the run; see doc/cluster.rst."
    )
    group.add_argument(
        "--recon",
        metavar="URL",
        type=urls,
        nargs="+",
        action="extend",
        default=[],
        help="account, container and object servers whose recon is asked, as in http://10.0.0.4:6200; several"
        " may also be one argument, with spaces between them",
    )
    group.add_argument(
        "--recon-ring",
        metavar="DIR",
        type=Path,
        help="take the servers from the ring files in this folder (needs: pip install swift eventlet)",
    )
    group.add_argument(
        "--recon-interval",
        metavar="SECONDS",
        type=_recon_interval,
        default=5.0,
        help="seconds from one sample to the next, 0.5 or more (default: %(default)g)",
    )
    group.add_argument(
        "--statsd-listen",
        metavar="PORT",
        type=port,
        help="UDP port at which to take in what Swift sends to a statsd server (default: none)",
    )


def _recon_interval(text: str) -> float:
    interval: float = seconds(text)
    if interval < 0.5:
        raise argparse.ArgumentTypeError(f"{text!r} is not 0.5 s or more")
    return interval


def _batch_size(text: str) -> int | None:
    return None if text == "auto" else positive_int(text)


def _add_fleet(parser: argparse.ArgumentParser) -> None:
    zmq_options.add_arguments(parser, "0.0.0.0, or 127.0.0.1 with --workers")
    group = parser.add_argument_group("fleet")
    group.add_argument("--workers", metavar="N", type=positive_int, help="start N local workers for this run")
    group.add_argument(
        "--batch-size",
        metavar="N",
        type=_batch_size,
        default="auto",
        help="most jobs in one message to a worker, or 'auto': as many as it needs (default: %(default)s)",
    )
    group.add_argument(
        "--expect-workers",
        metavar="N",
        type=positive_int,
        help="number of workers to wait for before the run starts (default: the number of --workers, or 1)",
    )
    group.add_argument(
        "--worker-timeout",
        metavar="SECONDS",
        type=seconds,
        default=60.0,
        help="seconds to wait for them (default: %(default)g)",
    )


def run(arguments: argparse.Namespace) -> ExitCode:
    """Run the benchmark; raises SsbenchError when it cannot begin."""
    with loading():
        from ssbench.cli.run_scenario import run as run_scenario

    return run_scenario(arguments)
