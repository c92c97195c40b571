"""The options that show a run to others: to monitoring systems, and in a browser while it is running."""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ssbench.base import own_processes
from ssbench.base.errors import UsageError
from ssbench.base.version import describe_install
from ssbench.cli import archives
from ssbench.cli.archives import ResultsDirAsked
from ssbench.cli.asked import Asked
from ssbench.cli.options import Argument, OptionParser, ValueKind, add_options, port_number

if TYPE_CHECKING:
    from ssbench.monitoring.run_metrics import RunMonitor
    from ssbench.monitoring.sink import LivePage
    from ssbench.results.block import Sink
    from ssbench.run.bench import Bench
    from ssbench.scenario.model import Scenario

_log = logging.getLogger(__name__)

_STATSD_PORT = 8125
_ADDRESS_PATTERN = re.compile(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^:/@\s\[\]]+))(?::([^:/]*))?\Z")


def add_metrics_arguments(parser: OptionParser) -> None:
    """Add the options."""
    add_options(
        parser.add_argument_group("monitoring", "See doc/metrics.rst."),
        Argument(
            "--metrics-port",
            ValueKind("[ADDRESS:]PORT", parse_listen_address),
            "serve counters and histograms for Prometheus at this port while the program runs; other"
            " hosts can reach it only if ADDRESS is given, such as 0.0.0.0:9102 for all",
            default_text="none",
        ),
        Argument(
            "--statsd",
            ValueKind("HOST[:PORT]", _parse_server),
            f"send figures to this statsd server, at port {_STATSD_PORT} unless one is given",
            default_text="none",
        ),
        Argument(
            "--metrics-push",
            ValueKind("URL", _make_url_parser("http://10.0.0.4:9091")),
            "push the metrics of --metrics-port to this Prometheus Pushgateway after a benchmark, if"
            " nothing can scrape this host",
            default_text="none",
        ),
        Argument(
            "--otlp",
            ValueKind("URL", _make_url_parser("http://10.0.0.4:4318")),
            "send the same metrics to this OpenTelemetry collector every 5 s, as in http://10.0.0.4:4318"
            " (OTLP over HTTP; needs: pip install opentelemetry-exporter-otlp-proto-http; default: none)",
        ),
    )


def parse_listen_address(text: str) -> tuple[str, int]:
    """Read ``[ADDRESS:]PORT``; raises what argparse turns into a line."""
    if text.isdigit():
        return "127.0.0.1", port_number(text)
    found = _ADDRESS_PATTERN.match(text)
    if found is None or not found[3]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port or ADDRESS:PORT, such as 127.0.0.1:8080")
    return found[1] or found[2], port_number(found[3])


def _parse_server(text: str) -> tuple[str, int]:
    found = _ADDRESS_PATTERN.match(text)
    if found is None or found[3] == "":
        raise argparse.ArgumentTypeError(f"{text!r} is not a host or HOST:PORT, such as 10.0.0.4:8125")
    return found[1] or found[2], port_number(found[3]) if found[3] else _STATSD_PORT


def _make_url_parser(example: str) -> Callable[[str], str]:
    """Return what reads a URL of http or https, and names ``example`` where a text is none."""

    def read(text: str) -> str:
        try:
            found = urlsplit(text)
            right = found.scheme in {"http", "https"} and bool(found.hostname) and found.port != 0
        except ValueError:
            right = False
        if not right or found.query or found.fragment or not text.isprintable() or " " in text:
            raise argparse.ArgumentTypeError(f"{text!r} is not a URL such as {example}")
        if found.username is not None:
            raise argparse.ArgumentTypeError("a URL with a user name or a password is logged: leave them out")
        return text

    return read


@dataclass(frozen=True, kw_only=True)
class MetricsAsked(Asked):
    """Which monitoring systems are to know of runs."""

    metrics_port: tuple[str, int] | None
    metrics_push: str | None
    otlp: str | None
    statsd: tuple[str, int] | None
    label: str | None

    def open(self) -> AbstractContextManager[_MetricsCompanion | None]:
        """Return a context of what shows runs to monitoring systems; None where that was not asked for."""
        wanted = self.metrics_port or self.metrics_push or self.otlp or self.statsd
        return nullcontext(_MetricsCompanion(self) if wanted else None)


@dataclass(frozen=True, slots=True)
class _MetricsCompanion:
    """A :class:`~ssbench.run.bench.Companion` that begins anew with each run."""

    asked: MetricsAsked
    #: It does not watch the cluster.
    observer: None = None

    @contextmanager
    def open_sinks(self, scenario: Scenario, bench: Bench) -> Iterator[list[Sink]]:
        """Yield the sinks that were asked for; raises UsageError where one cannot be made."""
        # Only here: a run without them does without HTTP.
        from ssbench.monitoring.run_metrics import RunMonitor

        asked = self.asked
        with ExitStack() as stack:
            made: list[Sink] = []
            source = RunMonitor(bench.workers, bench.so_far)
            if asked.metrics_port or asked.metrics_push or asked.otlp:
                made.append(_open_counting_sink(asked, scenario, source, stack))
            if asked.statsd:
                from ssbench.monitoring.statsd_sender import StatsdSender

                made.append(stack.enter_context(StatsdSender(scenario, source, *asked.statsd)))
            yield made


def _open_counting_sink(
    asked: MetricsAsked, scenario: Scenario, source: RunMonitor, stack: ExitStack
) -> Sink:
    """Return what counts results for all who show or deliver the sums."""
    from ssbench.monitoring.run_metrics import CountingSink

    counting = CountingSink(scenario, source, asked.label)
    if asked.metrics_port:
        from ssbench.monitoring.prometheus import PrometheusExporter

        exporter = stack.enter_context(PrometheusExporter(counting, *asked.metrics_port))
        _log.info("Metrics for Prometheus: http://%s:%d/metrics", asked.metrics_port[0], exporter.port)
    if asked.metrics_push:
        from ssbench.monitoring import prometheus

        stack.enter_context(prometheus.make_push_sender(counting, asked.metrics_push))
    if asked.otlp:
        try:
            from ssbench.monitoring import otlp
        except ImportError as error:
            raise UsageError(
                f"--otlp needs a package that is missing ({error.name}):"
                f" {describe_install('opentelemetry-exporter-otlp-proto-http', 'otlp')}"
            ) from None
        stack.enter_context(otlp.make_otlp_sender(counting, asked.otlp))
    return counting


# -- The page in a browser -------------------------------------------------------------------------------


#: This host alone, at any port that is free.
_LOCAL_ADDRESS = ("127.0.0.1", 0)


def add_web_arguments(parser: OptionParser) -> None:
    """Add the options."""
    add_options(
        parser,
        Argument(
            "--web",
            ValueKind("[ADDRESS:]PORT", parse_listen_address),
            "serve the page of --html while the run lasts, at a URL that is logged; other hosts can"
            " reach it only if ADDRESS is given",
            default_text="no page; without a value, any port of 127.0.0.1",
            settings={"nargs": "?", "const": _LOCAL_ADDRESS},
        ),
        Argument("--web-open", None, "open that page in the browser of this desktop; implies --web"),
    )


@dataclass(frozen=True, slots=True)
class _PageCompanion:
    """A :class:`~ssbench.run.bench.Companion`: one page for all runs."""

    page: LivePage
    #: It does not watch the cluster.
    observer: None = None

    def open_sinks(self, scenario: Scenario, bench: Bench) -> AbstractContextManager[list[Sink]]:
        """Return what tells the page of the runs of a bench."""
        return nullcontext([self.page.sink(bench.so_far)])


@dataclass(frozen=True, kw_only=True)
class WebAsked(ResultsDirAsked):
    """Whether a page is to show runs, and which."""

    web: tuple[str, int] | None
    web_open: bool
    stats_file: Path | None = None
    ab: Sequence[str] | None = None

    @contextmanager
    def open(self) -> Iterator[_PageCompanion | None]:
        """Serve the page where it was asked for; raises UsageError where that is not possible."""
        where = self.web or (_LOCAL_ADDRESS if self.web_open else None)
        if where is None:
            yield None
            return
        given = self.stats_file
        with suppress(OSError):  # which is reported where the file is written
            if given is not None and given.exists() and not given.is_file():
                raise UsageError(f"--web reads the stat file, and {given} is not a regular file")
        # Only here: a run without it does without an HTTP server.
        from ssbench.monitoring.sink import LivePage

        address, port = where
        with LivePage(address, port, archives.choose_folder(self) if self.ab else None) as page:
            _log.info("Live page, for anyone who knows this URL: %s", page.url)
            if self.web_open:
                _open_browser(page.url)
            yield _PageCompanion(page)


def _open_browser(url: str) -> None:
    """Open a URL without waiting for the browser, nor letting it write on the terminal."""
    import webbrowser  # here, as `subprocess` below: the help of a command does without

    try:
        webbrowser.get()
    except webbrowser.Error:
        _log.warning("--web-open: no browser was found; open the page yourself")
        return
    command = [*own_processes.make_python_command("webbrowser"), "-t", url]
    Thread(target=_run_browser, args=(command,), name="browser", daemon=True).start()


def _run_browser(command: list[str]) -> None:
    import subprocess

    quiet = subprocess.DEVNULL
    subprocess.run(  # noqa: S603 - Python's own module
        command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, check=False
    )
