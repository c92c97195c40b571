"""The options of ``run-scenario`` for requests: timeouts, retries, checks, and how many may fail."""

from __future__ import annotations

import argparse

from ssbench.cli.options import non_negative_int, parsed, seconds, seconds_or_0, size
from ssbench.run import error_limit


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("requests")
    group.add_argument(
        "-b",
        "--block-size",
        metavar="BYTES",
        type=size,
        default=65536,
        help="bytes that a worker sends or receives at once (default: %(default)s)",
    )
    _add_timeouts(group)
    _add_retries(group)
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
    _add_limits(group)


def _add_timeouts(group: argparse._ArgumentGroup) -> None:
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


def _add_retries(group: argparse._ArgumentGroup) -> None:
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


def _add_limits(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--max-errors",
        metavar="N",
        type=parsed(error_limit.parse),
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
