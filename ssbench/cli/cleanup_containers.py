"""``ssbench-master cleanup-containers``: deletes what benchmarks left in an account."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ssbench.cli import auth_options
from ssbench.cli.options import non_negative_float, positive_float, positive_int
from ssbench.errors import ExitCode
from ssbench.run.interrupts import Interrupts
from ssbench.screen import terminal
from ssbench.screen.bars import Bar
from ssbench.swift.credentials import Session

if TYPE_CHECKING:
    from ssbench.swift.cleanup import CleanUp

DESCRIPTION = (
    "Deletes the containers that ssbench makes for a base name, BASE_000000 and so on, with or without "
    "_POLICY behind, and everything in them. All others are left alone. On a terminal it asks first."
)

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument(
        "-b", "--container-base", metavar="NAME", default="ssbench", help="base name (default: %(default)s)"
    )
    parser.add_argument(
        "-c",
        "--concurrency",
        metavar="N",
        type=positive_int,
        default=10,
        help="requests at once (default: %(default)s)",
    )
    parser.add_argument(
        "-p",
        "--policy",
        metavar="NAME",
        help="only containers whose name ends in _NAME (default: any or none)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask on a terminal")
    parser.add_argument(
        "--connect-timeout",
        metavar="S",
        type=positive_float,
        default=10.0,
        help="seconds (default: %(default)s)",
    )
    parser.add_argument(
        "--network-timeout",
        metavar="S",
        type=positive_float,
        default=60.0,
        help="seconds (default: %(default)s)",
    )
    parser.add_argument(
        "--give-up-after",
        metavar="S",
        type=non_negative_float,
        default=120.0,
        help="end it when nothing has succeeded for so many seconds; 0: never (default: %(default)s)",
    )
    auth_options.add_arguments(parser)


def run(arguments: argparse.Namespace) -> ExitCode:
    """Delete them; raises ClusterError when the account cannot be listed, and what authentication raises."""
    # Here, because they bring gevent and python-swiftclient, which --help does without.
    from ssbench.swift.auth import authenticate
    from ssbench.swift.cleanup import CleanUp, CleanUpSettings, find_containers

    credentials = auth_options.from_arguments(arguments, os.environ)
    session = authenticate(credentials, arguments.connect_timeout)
    auth_options.warn_of_proxy(credentials, session)
    settings = CleanUpSettings(
        arguments.concurrency,
        arguments.connect_timeout,
        arguments.network_timeout,
        arguments.give_up_after,
    )
    found = dict(find_containers(session, arguments.container_base, arguments.policy, settings))
    if not found:
        ending = f"_{arguments.policy}" if arguments.policy else ""
        _log.info("No container is called %s_000000%s or so", arguments.container_base, ending)
        return ExitCode.OK
    if not arguments.yes and not _confirmed(session, list(found)):
        _log.info("Nothing was deleted")
        return ExitCode.OK

    def renew() -> Session:
        return authenticate(credentials, arguments.connect_timeout)

    in_listings = 0
    with ExitStack() as stack, Bar("Cleaning up", len(found) + sum(found.values())) as bar:

        def expect(objects: int) -> None:
            nonlocal in_listings
            in_listings += objects
            bar.expect(len(found) + in_listings)

        clean_up = CleanUp(
            session, settings, renew if credentials.version != "none" else None, bar.advance, expect
        )

        def stop() -> str:
            clean_up.stop()
            return "no more is deleted. Ctrl-C again ends it at once"

        interrupts = stack.enter_context(Interrupts(stop, lambda: False))
        interrupts.armed = True
        try:
            clean_up.run(list(found))
        finally:
            result = clean_up.result
            seconds = max(result.seconds, 1e-3)
            _log.info(
                "Deleted %d containers and %d objects in %.1f s: %.0f containers and %.0f objects a second",
                result.containers,
                result.objects,
                seconds,
                result.containers / seconds,
                result.objects / seconds,
            )
    return _exit_code(clean_up, arguments.give_up_after)


def _exit_code(clean_up: CleanUp, give_up_after: float) -> ExitCode:
    """Say what failed."""
    result = clean_up.result
    for failure in result.failures:
        _log.error("%s", failure)
    if result.failed:
        more = (
            f", {result.failed - len(result.failures)} more than these"
            if result.failed > len(result.failures)
            else ""
        )
        _log.error(
            "%d deletes failed%s; run it again when the cause is gone%s",
            result.failed,
            more,
            " (it gave up after so many in a row)" if clean_up.gave_up else "",
        )
    if clean_up.stopped:
        _log.error("Interrupted; run it again to delete the rest")
        return ExitCode.INTERRUPTED
    if clean_up.stood_still:
        _log.error(
            "Nothing succeeded for %g s (--give-up-after); run it again to delete the rest", give_up_after
        )
        return ExitCode.CLUSTER
    return ExitCode.FAILED if result.failed else ExitCode.OK


def _confirmed(session: Session, names: list[str]) -> bool:
    """Ask, if there is somebody to ask."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    which = names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}"
    sys.stderr.write(f"Delete {len(names)} containers of {session.storage_url} ({which})? [y/N] ")
    terminal.drain()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
