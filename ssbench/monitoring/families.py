"""The table of metrics: what each is called, what it is a number of, and how it is found in the sums.

A metric is a row, and every form in which metrics are written has it. Names follow from the key and the unit
by the rules with which OpenTelemetry's names become those of Prometheus, so that a Prometheus server has the
same names from a collector (https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from ssbench.base.version import __version__
from ssbench.document.figures import COUNTED, Figure
from ssbench.monitoring.sums import Counting, Histogram, Key, Sums
from ssbench.results.description import WorkerFacts

#: Of more workers than this only the greatest values are reported, as those of the worker "busiest".
MOST_WORKERS = 200
BUSIEST = "busiest"


class Kind(Enum):
    """What is done with the values of a metric: counters and histograms grow, gauges are measured."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Unit(Enum):
    """A unit by its code in UCUM, and the end of Prometheus' names with it."""

    NONE = ("", "")
    SECONDS = ("s", "_seconds")
    BYTES = ("By", "_bytes")
    SHARE = ("1", "_ratio")

    @property
    def code(self) -> str:
        """The code, for OpenTelemetry."""
        return self.value[0]

    @property
    def suffix(self) -> str:
        """The end of a name, for Prometheus."""
        return self.value[1]


Samples = Iterable[tuple[Key, float | Histogram]]


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the table; ``samples`` finds a value for each combination of ``labels`` that there is."""

    key: str
    kind: Kind
    unit: Unit
    text: str
    labels: tuple[str, ...]
    samples: Callable[[Sums], Samples]

    @property
    def dotted(self) -> str:
        """The name for OpenTelemetry."""
        return f"ssbench.{self.key}"

    @property
    def name(self) -> str:
        """The name for Prometheus, to which it adds ``_total`` and so on by itself."""
        return f"ssbench_{self.key.replace('.', '_')}{self.unit.suffix}"


_BY = ("operation", "size_class")
_OF_WORKER = ("worker", "host")


def _one(value: Callable[[Sums], float | None]) -> Callable[[Sums], Samples]:
    """Return the samples of a metric without labels; one that is not known is left out."""

    def found(sums: Sums) -> Iterator[tuple[Key, float]]:
        each = value(sums)
        if each is not None:
            yield (), each

    return found


def _of_workers(value: Callable[[WorkerFacts], float | None]) -> Callable[[Sums], Samples]:
    """Return a sample for each worker, NaN where it is not known yet."""

    def found(sums: Sums) -> Iterator[tuple[Key, float]]:
        values = [value(worker) for worker in sums.facts]
        if len(values) > MOST_WORKERS:
            yield (BUSIEST, ""), max((each for each in values if each is not None), default=math.nan)
            return
        for worker, each in zip(sums.facts, values, strict=True):
            yield (str(worker.worker_id), worker.host), math.nan if each is None else each

    return found


def _of_master(value: str) -> Callable[[Sums], Samples]:
    return _one(lambda sums: math.nan if sums.master is None else (getattr(sums.master, value) or 0.0))


_COUNTER, _GAUGE, _HISTOGRAM = Kind


def _counter(figure: Figure) -> Metric:
    """Return the metric of a counter of results."""
    return Metric(
        figure.key,
        _COUNTER,
        Unit.NONE,
        f"{figure.meaning}.",
        _BY,
        lambda sums: sums.counted[figure.key].items(),
    )


METRICS = (
    Metric(
        "operations",
        _COUNTER,
        Unit.NONE,
        "Successful operations.",
        _BY,
        lambda sums: sums.operations.items(),
    ),
    Metric(
        "errors",
        _COUNTER,
        Unit.NONE,
        "Failed operations.",
        (*_BY, "cause"),
        lambda sums: sums.errors.items(),
    ),
    *map(_counter, COUNTED.values()),
    Metric(
        "moved",
        _COUNTER,
        Unit.BYTES,
        "Bytes of body that successes moved.",
        _BY,
        lambda sums: sums.moved.items(),
    ),
    Metric(
        "latency",
        _HISTOGRAM,
        Unit.SECONDS,
        "Latency to the last byte.",
        _BY,
        lambda sums: sums.last_byte.items(),
    ),
    Metric(
        "first_byte_latency",
        _HISTOGRAM,
        Unit.SECONDS,
        "Latency to the first byte.",
        _BY,
        lambda sums: sums.first_byte.items(),
    ),
    Metric(
        "in_flight",
        _GAUGE,
        Unit.NONE,
        "Operations in flight, or users busy: the mean of the last 5 s over operations that have ended.",
        (),
        _one(lambda sums: sums.in_flight),
    ),
    Metric("users", _GAUGE, Unit.NONE, "Operations in flight at most.", (), _one(lambda sums: sums.users)),
    Metric(
        "workers", _GAUGE, Unit.NONE, "Workers that can get jobs.", (), _one(lambda sums: sums.workers[0])
    ),
    Metric(
        "workers_expected",
        _GAUGE,
        Unit.NONE,
        "Workers that were asked for.",
        (),
        _one(lambda sums: sums.workers[1]),
    ),
    Metric(
        "worker.cpu",
        _GAUGE,
        Unit.SHARE,
        "Share of one core that a worker has used since the benchmark began.",
        _OF_WORKER,
        _of_workers(lambda worker: worker.cpu_share),
    ),
    Metric(
        "worker.lag",
        _GAUGE,
        Unit.SECONDS,
        "How late the event loop of a worker has been, 99th percentile since the benchmark began.",
        _OF_WORKER,
        _of_workers(lambda worker: worker.lag_p99),
    ),
    Metric(
        "master.cpu",
        _GAUGE,
        Unit.SHARE,
        "Share of one core that the master has used since the benchmark began.",
        (),
        _of_master("cpu_share"),
    ),
    Metric(
        "master.lag",
        _GAUGE,
        Unit.SECONDS,
        "How late the loop of the master has been at most since the benchmark began.",
        (),
        _of_master("lag_max"),
    ),
    Metric(
        "run_start_timestamp",
        _GAUGE,
        Unit.SECONDS,
        "When the benchmark began.",
        (),
        _one(lambda sums: sums.started),
    ),
    Metric(
        "run_end_timestamp",
        _GAUGE,
        Unit.SECONDS,
        "When the benchmark ended.",
        (),
        _one(lambda sums: sums.ended),
    ),
)


def facts(counting: Counting) -> dict[str, str]:
    """Return what is known of the run in words; ``run`` is the name of its stat file."""
    return {
        "version": __version__,
        "scenario": counting.scenario.name,
        "label": counting.label,
        "run": counting.shown.run,
    }
