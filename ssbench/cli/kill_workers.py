"""``ssbench-master kill-workers``: tell every worker that connects to exit."""

from __future__ import annotations

import argparse
import logging
from dataclasses import dataclass

from ssbench.base.errors import ExitCode
from ssbench.cli import options
from ssbench.cli.options import JsonAsked, SocketAsked

_log = logging.getLogger(__name__)

EXAMPLE = "ssbench-master kill-workers --zmq-key fleet.key"

DESCRIPTION = (
    "Bind the ports that workers connect to, tell each worker that connects to exit, and list those"
    " that did. Ends 2.5 s after the last worker exited (a little later on a busy host), or after five"
    " seconds without a message from any worker."
)

_DEFAULT_IP = "0.0.0.0"  # noqa: S104 - the documented default


@dataclass(frozen=True, kw_only=True)
class KillWorkersAsked(SocketAsked, JsonAsked):
    """What the command is asked."""


ASKED = KillWorkersAsked


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    options.add_zmq_arguments(parser, _DEFAULT_IP)
    options.add_options(parser, *options.JSON_OPTIONS)


def run(asked: KillWorkersAsked) -> ExitCode:
    """Tell the workers to exit; raises UsageError when the sockets cannot be bound.

    The exit code says whether all that connected have exited.
    """
    from ssbench.base.own_processes import check_memory_available
    from ssbench.fleet.shutdown import MAX_NAMED_WORKERS, Shutdown
    from ssbench.fleet.sockets import MasterSockets

    options.check_json_output(asked)
    address = options.make_bind_address(asked, _DEFAULT_IP)
    check_memory_available()
    with MasterSockets(address, options.read_chosen_key(asked)) as sockets:
        shutdown = Shutdown(sockets)
        shutdown.run()
    left = [*shutdown.remaining.items()]
    for instance, name in left[:MAX_NAMED_WORKERS]:
        if instance in shutdown.told:
            _log.warning("%s did not exit", name)
        else:
            _log.warning("%s was not told to exit: it has no connection to the work port", name)
    exited, more = len(shutdown.exited), max(0, len(left) - MAX_NAMED_WORKERS) + len(shutdown.turned_away)
    if more:
        _log.warning("%d more worker%s did not exit", more, "" if more == 1 else "s")
    if invalid := shutdown.invalid_messages:
        _log.warning("%d invalid message%s dropped", invalid, " was" if invalid == 1 else "s were")
    if exited:
        _log.info("%d worker%s exited", exited, "" if exited == 1 else "s")
    elif not left and not more:
        _log.info("No worker connected")
    options.write_json_output(asked, shutdown.report())
    return shutdown.exit_code
