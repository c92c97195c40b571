"""The options of run-scenario that let the cluster be watched beside the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.base.errors import UsageError
from ssbench.cli.asked import Asked
from ssbench.cli.options import (
    Argument,
    OptionParser,
    ValueKind,
    add_options,
    parse_urls,
    port_number,
)

if TYPE_CHECKING:
    from ssbench.results.block import Sink
    from ssbench.results.cluster_observation import ClusterObserver
    from ssbench.run.bench import Bench
    from ssbench.scenario.model import Scenario


def add_cluster_arguments(parser: OptionParser) -> None:
    """Add the options."""
    add_options(
        parser.add_argument_group(
            "cluster",
            "What the cluster reports about itself before, during and after the run; see doc/cluster.rst.",
        ),
        Argument(
            "--observe",
            ValueKind("WHERE", _parse_sources),
            "what to ask about the cluster, one or several: the URL of an account, container or object server"
            " (http://10.0.0.4:6200), for recon; a folder with ring files, for all servers in them (needs:"
            " pip install swift eventlet); statsd:8125, the UDP port that Swift sends statsd to",
            [],
            "nothing",
            repeated=True,
            settings={"nargs": "+"},
        ),
    )


def _parse_sources(text: str) -> list[str | int | Path]:
    """Read URLs with spaces between them, a folder, or the port of statsd."""
    if "://" in text:
        return [*parse_urls(text)]
    scheme, _, port = text.partition(":")
    return [port_number(port) if scheme == "statsd" else Path(text)]


@dataclass(frozen=True, slots=True)
class _WatchCompanion:
    """A :class:`~ssbench.run.bench.Companion` that watches and takes no results."""

    observer: ClusterObserver

    def open_sinks(self, scenario: Scenario, bench: Bench) -> AbstractContextManager[list[Sink]]:
        """Return none."""
        return nullcontext([])


@dataclass(frozen=True, kw_only=True)
class ClusterAsked(Asked):
    """How the cluster is to be watched."""

    observe: Sequence[Sequence[str | int | Path]]

    @contextmanager
    def open(self) -> Iterator[_WatchCompanion | None]:
        """Yield what watches the cluster, where that was asked for; raises UsageError where it cannot."""
        if not self.observe:
            yield None
            return
        # Only here: it brings an HTTP client, which a run without it does without.
        from ssbench.cluster import ring
        from ssbench.cluster.observer import Observer

        servers: list[str] = []
        ports: list[int] = []
        for each in (source for several in self.observe for source in several):
            match each:
                case int():
                    ports.append(each)
                case Path():
                    servers += ring.read_ring_servers(each)
                case _:
                    servers.append(each)
        if len(ports) > 1:
            raise UsageError("--observe: one port of statsd is possible")
        with Observer(servers, statsd_port=ports[0] if ports else None) as observer:
            yield _WatchCompanion(observer)
