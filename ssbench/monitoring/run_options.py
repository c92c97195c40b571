"""The option that shows a run to others: to monitoring systems, and in a browser while it is running."""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from ssbench.base.errors import UsageError
from ssbench.base.version import describe_install
from ssbench.cli import archives
from ssbench.cli.archives import ResultsDirAsked
from ssbench.cli.options import Argument, OptionParser, ValueKind, add_options, port_number

if TYPE_CHECKING:
    from ssbench.monitoring.run_metrics import CountingSink
    from ssbench.monitoring.sink import LivePage
    from ssbench.results.block import Sink
    from ssbench.run.bench import Bench
    from ssbench.scenario.model import Scenario

_log = logging.getLogger(__name__)

_STATSD_PORT = 8125
_ADDRESS_PATTERN = re.compile(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^:/@\s\[\]]+))(?::([^:/]*))?\Z")


class MetricsKind(Enum):
    """What takes metrics; the value is how its address begins."""

    PROMETHEUS = ""  # comes for them
    PUSHGATEWAY = "push+"
    COLLECTOR = "otlp+"
    STATSD = "statsd"
    PAGE = "web"  # comes for the page of the report


class MetricsTarget(NamedTuple):
    """Where metrics go."""

    kind: MetricsKind
    address: tuple[str, int] = ("", 0)  # of Prometheus and browsers, where this program listens; of statsd
    url: str = ""  # of the others


def add_metrics_arguments(parser: OptionParser) -> None:
    """Add the options."""
    add_options(
        parser.add_argument_group("monitoring", "See doc/metrics.rst."),
        Argument(
            "--metrics",
            ValueKind("WHERE", parse_metrics_target),
            "where metrics of the run go, one or several: a port such as 9102 or 0.0.0.0:9102, at which"
            " Prometheus can scrape them; push+http://10.0.0.4:9091, a Pushgateway; otlp+http://10.0.0.4:4318,"
            " an OpenTelemetry collector; statsd://10.0.0.4:8125; web, web:8080 or web:0.0.0.0:8080, the page"
            " of --html while the run lasts, at a URL that is logged; other hosts can reach it only if an"
            " address is given",
            [],
            "none",
            repeated=True,
            settings={"nargs": "+"},
        ),
    )


#: This host alone, at any port that is free.
_LOCAL_ADDRESS = ("127.0.0.1", 0)


def parse_metrics_target(text: str) -> MetricsTarget:
    """Read where metrics go; raises what argparse turns into a line."""
    word, _, address = text.partition(":")
    if word == MetricsKind.PAGE.value:
        listening = parse_listen_address(address) if address else _LOCAL_ADDRESS
        return MetricsTarget(MetricsKind.PAGE, listening)
    scheme, _, rest = text.rpartition("://")
    match scheme:
        case "" if text.isdigit() or (":" in text and "+" not in text and _ADDRESS_PATTERN.match(text)):
            return MetricsTarget(MetricsKind.PROMETHEUS, parse_listen_address(text))
        case "statsd" if (found := _ADDRESS_PATTERN.match(rest)) and found[3] != "":
            port = port_number(found[3]) if found[3] else _STATSD_PORT
            return MetricsTarget(MetricsKind.STATSD, (found[1] or found[2], port))
    kind = next((each for each in MetricsKind if each.value and text.startswith(each.value)), None)
    if kind in {MetricsKind.PUSHGATEWAY, MetricsKind.COLLECTOR} and (
        url := _check_url(text.removeprefix(kind.value))
    ):
        return MetricsTarget(kind, url=url)
    raise argparse.ArgumentTypeError(
        f"{text!r} is no place for metrics: expected a port (9102, 0.0.0.0:9102), web (web:8080), or a URL"
        " such as push+http://10.0.0.4:9091, otlp+http://10.0.0.4:4318 or statsd://10.0.0.4:8125"
    )


def parse_listen_address(text: str) -> tuple[str, int]:
    """Read ``[ADDRESS:]PORT``; raises what argparse turns into a line."""
    if text.isdigit():
        return "127.0.0.1", port_number(text)
    found = _ADDRESS_PATTERN.match(text)
    if found is None or not found[3]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port or ADDRESS:PORT, such as 127.0.0.1:8080")
    return found[1] or found[2], port_number(found[3])


def _check_url(text: str) -> str:
    """Return a URL of http or https as it is; empty where it is none."""
    try:
        found = urlsplit(text)
        right = found.scheme in {"http", "https"} and bool(found.hostname) and found.port != 0
    except ValueError:
        return ""
    if right and found.username is not None:
        raise argparse.ArgumentTypeError("a URL with a user name or a password is logged: leave them out")
    plain = text.isprintable() and " " not in text and not found.query and not found.fragment
    return text if right and plain else ""


@dataclass(frozen=True, kw_only=True)
class MetricsAsked(ResultsDirAsked):
    """Who is to know of runs."""

    metrics: Sequence[MetricsTarget]
    label: str | None
    stats_file: Path | None = None
    ab: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Refuse at once what only the beginning of a run would notice; raises UsageError."""
        if sum(each.kind is MetricsKind.PAGE for each in self.metrics) > 1:
            raise UsageError("--metrics web: one page is possible")

    @property
    def counts_operations(self) -> bool:
        """Whether figures are counted by the operations of one scenario, so that all runs have the same."""
        return any(each.kind is not MetricsKind.PAGE for each in self.metrics)

    @contextmanager
    def open(self) -> Iterator[_MonitoringCompanion | None]:
        """Yield what shows runs to others, None where that was not asked for; raises UsageError."""
        pages = [each.address for each in self.metrics if each.kind is MetricsKind.PAGE]
        with ExitStack() as stack:
            page = stack.enter_context(self._open_page(*pages[0])) if pages else None
            yield _MonitoringCompanion(self, page) if self.metrics else None

    @contextmanager
    def _open_page(self, address: str, port: int) -> Iterator[LivePage]:
        """Serve the page; raises UsageError where that is not possible."""
        given = self.stats_file
        with suppress(OSError):  # which is reported where the file is written
            if given is not None and given.exists() and not given.is_file():
                raise UsageError(f"--metrics web reads the stat file, and {given} is not a regular file")
        # Only here: a run without it does without an HTTP server.
        from ssbench.monitoring.sink import LivePage

        with LivePage(address, port, archives.choose_folder(self.results_dir) if self.ab else None) as page:
            _log.info("Live page, for anyone who knows this URL: %s", page.url)
            yield page


@dataclass(frozen=True, slots=True)
class _MonitoringCompanion:
    """A :class:`~ssbench.run.bench.Companion` that counts anew with each run; one page is for all."""

    asked: MetricsAsked
    page: LivePage | None
    #: It does not watch the cluster.
    observer: None = None

    @contextmanager
    def open_sinks(self, scenario: Scenario, bench: Bench) -> Iterator[list[Sink]]:
        """Yield the sinks that were asked for; raises UsageError where one cannot be made."""
        with ExitStack() as stack:
            made: list[Sink] = []
            if self.asked.counts_operations:
                # Only here: a run without them does without HTTP.
                from ssbench.monitoring.run_metrics import CountingSink, RunMonitor

                source = RunMonitor(bench.workers, bench.so_far)
                kinds = {each.kind for each in self.asked.metrics}
                # One counts for all who show or deliver the sums; statsd gets each result.
                if kinds - {MetricsKind.STATSD, MetricsKind.PAGE}:
                    made.append(counting := CountingSink(scenario, source, self.asked.label))
                for target in self.asked.metrics:
                    match target.kind:
                        case MetricsKind.PAGE:
                            pass
                        case MetricsKind.STATSD:
                            from ssbench.monitoring.statsd_sender import StatsdSender

                            made.append(stack.enter_context(StatsdSender(scenario, source, *target.address)))
                        case _:
                            stack.enter_context(_open_delivery(counting, target))
            if self.page is not None:
                made.append(self.page.sink(bench.so_far))
            yield made


def _open_delivery(counting: CountingSink, target: MetricsTarget) -> AbstractContextManager[object]:
    """Return a context in which the sums are shown or delivered; raises UsageError where that cannot be."""
    if target.kind is MetricsKind.COLLECTOR:
        try:
            from ssbench.monitoring import otlp
        except ImportError as error:
            raise UsageError(
                f"--metrics otlp+http needs a package that is missing ({error.name}):"
                f" {describe_install('opentelemetry-exporter-otlp-proto-http', 'otlp')}"
            ) from None
        return otlp.make_otlp_sender(counting, target.url)
    from ssbench.monitoring import prometheus

    if target.kind is MetricsKind.PUSHGATEWAY:
        return prometheus.make_push_sender(counting, target.url)
    exporter = prometheus.PrometheusExporter(counting, *target.address)
    _log.info("Metrics for Prometheus: http://%s:%d/metrics", target.address[0], exporter.port)
    return exporter
