"""The options that tell a monitoring system of a run: ``--metrics-port`` and ``--statsd``."""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ssbench.cli.options import port

if TYPE_CHECKING:
    from ssbench.results import Sink
    from ssbench.scenario.model import Scenario

_log = logging.getLogger(__name__)

_STATSD_PORT = 8125
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^:/@\s\[\]]+))(?::([^:/]*))?\Z")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("monitoring", "See doc/metrics.rst.")
    group.add_argument(
        "--metrics-port",
        metavar="[ADDRESS:]PORT",
        type=listen,
        help="serve counters and histograms for Prometheus at this port while the program runs; other hosts"
        " reach it only where an address is given, such as 0.0.0.0:9102 for all (default: none)",
    )
    group.add_argument(
        "--statsd",
        metavar="HOST[:PORT]",
        type=_server,
        help=f"send figures to this statsd server, at port {_STATSD_PORT} unless one is given"
        " (default: none)",
    )


def listen(text: str) -> tuple[str, int]:
    """Read ``[ADDRESS:]PORT``; raises what argparse turns into a line."""
    if text.isdigit():
        return "127.0.0.1", port(text)
    found = _ADDRESS.match(text)
    if found is None or not found[3]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port or ADDRESS:PORT, such as 9102")
    return found[1] or found[2], port(found[3])


def _server(text: str) -> tuple[str, int]:
    found = _ADDRESS.match(text)
    if found is None or found[3] == "":
        raise argparse.ArgumentTypeError(f"{text!r} is not a host or HOST:PORT, such as 10.0.0.4:8125")
    return found[1] or found[2], port(found[3]) if found[3] else _STATSD_PORT


@contextmanager
def sinks(
    arguments: argparse.Namespace, scenario: Scenario, workers: Callable[[], tuple[int, int]]
) -> Iterator[list[Sink]]:
    """Return the sinks that were asked for; raises UsageError where one cannot be made."""
    with ExitStack() as stack:
        made: list[Sink] = []
        if arguments.metrics_port:
            # Only here: a run without it does without an HTTP server.
            from ssbench.metrics.prometheus import PrometheusExporter

            exporter = PrometheusExporter(scenario, workers, *arguments.metrics_port)
            made.append(stack.enter_context(exporter))
            _log.info(
                "Metrics for Prometheus: http://%s:%d/metrics", arguments.metrics_port[0], exporter.port
            )
        if arguments.statsd:
            from ssbench.metrics.statsd import StatsdSender

            made.append(stack.enter_context(StatsdSender(scenario, workers, *arguments.statsd)))
        yield made
