"""The options of ``run-scenario`` for the load: how much of it, what is measured, which objects it hits."""

from __future__ import annotations

import argparse
from pathlib import Path

from ssbench.base.option import OptionGroup
from ssbench.cli import option_table
from ssbench.cli.options import (
    parse_share,
    parse_warm_up,
    parse_whole_seconds,
    positive_int,
    positive_rate,
    positive_seconds,
    seconds_or_0,
)
from ssbench.run.options import RunOptions


def add_load_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
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
        help="end the run when its rate is known to this many per cent (95%% interval, from 30 s on);"
        " -r bounds the time (default: the run does not end early)",
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
    option_table.add_option_arguments(group, RunOptions, OptionGroup.LOAD)
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
