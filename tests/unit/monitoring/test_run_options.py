"""Options of metrics: the addresses that they take."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ssbench.cli.parser import Parser
from ssbench.monitoring import run_options
from ssbench.monitoring.run_options import MetricsKind, MetricsTarget

#: What is said of a value of --metrics.
NO_PLACE_FOR_METRICS = "is no place for metrics"


def parse(*words: str) -> Sequence[MetricsTarget]:
    parser = Parser()
    run_options.add_metrics_arguments(parser)
    found: Sequence[MetricsTarget] = parser.parse_args(["--metrics", *words]).metrics
    return found


@pytest.mark.parametrize(
    ("word", "kind", "address", "url"),
    [
        ("9102", MetricsKind.PROMETHEUS, ("127.0.0.1", 9102), ""),
        ("0.0.0.0:9102", MetricsKind.PROMETHEUS, ("0.0.0.0", 9102), ""),
        ("[::1]:9102", MetricsKind.PROMETHEUS, ("::1", 9102), ""),
        ("web", MetricsKind.PAGE, ("127.0.0.1", 0), ""),
        ("web:8080", MetricsKind.PAGE, ("127.0.0.1", 8080), ""),
        ("web:[::1]:8080", MetricsKind.PAGE, ("::1", 8080), ""),
        ("statsd://graphite", MetricsKind.STATSD, ("graphite", 8125), ""),
        ("statsd://10.0.0.4:1234", MetricsKind.STATSD, ("10.0.0.4", 1234), ""),
        ("statsd://[::1]", MetricsKind.STATSD, ("::1", 8125), ""),
        ("push+http://gateway:9091", MetricsKind.PUSHGATEWAY, ("", 0), "http://gateway:9091"),
        ("otlp+https://collector/x", MetricsKind.COLLECTOR, ("", 0), "https://collector/x"),
    ],
)
def test_addresses(word: str, kind: MetricsKind, address: tuple[str, int], url: str) -> None:
    assert parse(word) == [MetricsTarget(kind, address, url)]


def test_several_at_once() -> None:
    kinds = [each.kind for each in parse("9102", "statsd://h", "--metrics", "push+http://h")]
    assert kinds == [MetricsKind.PROMETHEUS, MetricsKind.STATSD, MetricsKind.PUSHGATEWAY]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("0", "'0' is not a port number"),
        ("h:70000", "'70000' is not a port number"),
        ("x", f"'x' {NO_PLACE_FOR_METRICS}: expected a port (9102, 0.0.0.0:9102), web (web:8080), or a URL"),
        ("web:port", "'port' is not a port or ADDRESS:PORT"),
        ("webs", NO_PLACE_FOR_METRICS),
        ("http://h:1", NO_PLACE_FOR_METRICS),
        ("udp://h", NO_PLACE_FOR_METRICS),
        ("statsd://h:", NO_PLACE_FOR_METRICS),
        ("statsd://h:x", "'x' is not a port number"),
        ("otlp+collector:4318", NO_PLACE_FOR_METRICS),
        ("push+ftp://h", NO_PLACE_FOR_METRICS),
        ("push+http://", NO_PLACE_FOR_METRICS),
        ("otlp+http://h:x", NO_PLACE_FOR_METRICS),
        ("push+http://h?x=1", NO_PLACE_FOR_METRICS),
        ("push+http://me:secret@h", "a user name or a password is logged"),
    ],
)
def test_wrong_addresses(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(word)
    assert said in capsys.readouterr().err
