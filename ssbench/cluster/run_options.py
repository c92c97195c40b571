"""The options of run-scenario that let the cluster be watched beside the run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ssbench.cli.asked import Asked
from ssbench.cli.options import (
    FOLDER,
    PORT,
    Argument,
    OptionParser,
    ValueKind,
    add_options,
    parse_urls,
    positive_seconds,
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
            "--recon",
            ValueKind("URL", parse_urls),
            "account, container and object servers to query by recon, as in http://10.0.0.4:6200; several"
            " may also be one argument, with spaces between them",
            default=[],
            repeated=True,
            settings={"nargs": "+"},
        ),
        Argument(
            "--recon-ring",
            FOLDER,
            "take the servers from the ring files in this folder (needs: pip install swift eventlet)",
        ),
        Argument(
            "--recon-interval",
            ValueKind("SECONDS", _parse_recon_interval),
            "seconds from one sample to the next, 0.5 or more",
            5.0,
        ),
        Argument(
            "--statsd-listen",
            PORT,
            "UDP port at which to receive what Swift sends to a statsd server",
            default_text="none",
        ),
    )


def _parse_recon_interval(text: str) -> float:
    interval: float = positive_seconds(text)
    if interval < 0.5:
        raise argparse.ArgumentTypeError(f"{text!r} is not 0.5 s or more")
    return interval


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

    recon: Sequence[Sequence[str]]
    recon_ring: Path | None
    recon_interval: float
    statsd_listen: int | None

    @contextmanager
    def open(self) -> Iterator[_WatchCompanion | None]:
        """Yield what watches the cluster, where that was asked for; raises UsageError where it cannot."""
        if not self.recon and self.recon_ring is None and self.statsd_listen is None:
            yield None
            return
        # Only here: it brings an HTTP client, which a run without it does without.
        from ssbench.cluster import ring
        from ssbench.cluster.observer import Observer

        servers = [url for several in self.recon for url in several]
        if self.recon_ring:
            servers += ring.read_ring_servers(self.recon_ring)
        with Observer(servers, interval=self.recon_interval, statsd_port=self.statsd_listen) as observer:
            yield _WatchCompanion(observer)
