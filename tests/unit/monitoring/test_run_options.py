"""Options of metrics: the addresses that they take."""

from __future__ import annotations

import argparse

import pytest

from ssbench.cli.parser import Parser
from ssbench.monitoring import run_options


def parse(*arguments: str) -> argparse.Namespace:
    parser = Parser()
    run_options.add_metrics_arguments(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize(
    ("arguments", "metrics_port", "statsd"),
    [
        ((), None, None),
        (("--metrics-port", "9102"), ("127.0.0.1", 9102), None),
        (("--metrics-port", "0.0.0.0:9102"), ("0.0.0.0", 9102), None),
        (("--metrics-port", "127.0.0.1:9102"), ("127.0.0.1", 9102), None),
        (("--metrics-port", "[::1]:9102"), ("::1", 9102), None),
        (("--statsd", "graphite"), None, ("graphite", 8125)),
        (("--statsd", "10.0.0.4:1234"), None, ("10.0.0.4", 1234)),
        (("--statsd", "[::1]"), None, ("::1", 8125)),
    ],
)
def test_addresses(
    arguments: tuple[str, ...], metrics_port: tuple[str, int] | None, statsd: tuple[str, int] | None
) -> None:
    found = parse(*arguments)
    assert (found.metrics_port, found.statsd) == (metrics_port, statsd)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--metrics-port", "0", "'0' is not a port number"),
        ("--metrics-port", "x", "'x' is not a port or ADDRESS:PORT"),
        ("--metrics-port", "h:70000", "'70000' is not a port number"),
        ("--metrics-port", "http://h:1", "is not a port or ADDRESS:PORT"),
        ("--statsd", "udp://h", "is not a host or HOST:PORT"),
        ("--statsd", "h:", "is not a host or HOST:PORT"),
        ("--statsd", "h:x", "'x' is not a port number"),
    ],
)
def test_wrong_addresses(option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(option, value)
    assert said in capsys.readouterr().err
