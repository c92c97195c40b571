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
from ssbench.document.figures import COUNTED_FIGURES, Figure
from ssbench.monitoring.sums import CountingSink, LatencyHistogram, MetricSums, SampleKey
from ssbench.results.description import WorkerFacts

#: Of more workers than this only the greatest values are reported, as those of the worker "busiest".
MAX_LISTED_WORKERS = 200
BUSIEST_WORKER = "busiest"


class MetricKind(Enum):
    """What is done with the values of a metric: counters and histograms grow, gauges are measured."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class MetricUnit(Enum):
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


MetricSamples = Iterable[tuple[SampleKey, float | LatencyHistogram]]


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """A row of the table; ``samples`` finds a value for each combination of ``labels`` that there is."""

    key: str
    kind: MetricKind
    unit: MetricUnit
    text: str
    labels: tuple[str, ...]
    samples: Callable[[MetricSums], MetricSamples]

    @property
    def dotted(self) -> str:
        """The name for OpenTelemetry."""
        return f"ssbench.{self.key}"

    @property
    def name(self) -> str:
        """The name for Prometheus, to which it adds ``_total`` and so on by itself."""
        return f"ssbench_{self.key.replace('.', '_')}{self.unit.suffix}"


_OPERATION_LABELS = ("operation", "size_class")
_WORKER_LABELS = ("worker", "host")


def _sample_one(value: Callable[[MetricSums], float | None]) -> Callable[[MetricSums], MetricSamples]:
    """Return the samples of a metric without labels; one that is not known is left out."""

    def found(sums: MetricSums) -> Iterator[tuple[SampleKey, float]]:
        each = value(sums)
        if each is not None:
            yield (), each

    return found


def _sample_workers(value: Callable[[WorkerFacts], float | None]) -> Callable[[MetricSums], MetricSamples]:
    """Return a sample for each worker, NaN where it is not known yet."""

    def found(sums: MetricSums) -> Iterator[tuple[SampleKey, float]]:
        values = [value(worker) for worker in sums.facts]
        if len(values) > MAX_LISTED_WORKERS:
            yield (BUSIEST_WORKER, ""), max((each for each in values if each is not None), default=math.nan)
            return
        for worker, each in zip(sums.facts, values, strict=True):
            yield (str(worker.worker_id), worker.host), math.nan if each is None else each

    return found


def _sample_master(value: str) -> Callable[[MetricSums], MetricSamples]:
    return _sample_one(lambda sums: math.nan if sums.master is None else (getattr(sums.master, value) or 0.0))


_COUNTER, _GAUGE, _HISTOGRAM = MetricKind


def _counter_metric(figure: Figure) -> MetricDefinition:
    """Return the metric of a counter of results."""
    return MetricDefinition(
        figure.key,
        _COUNTER,
        MetricUnit.NONE,
        f"{figure.meaning}.",
        _OPERATION_LABELS,
        lambda sums: sums.counted[figure.key].items(),
    )


METRICS = (
    MetricDefinition(
        "operations",
        _COUNTER,
        MetricUnit.NONE,
        "Successful operations.",
        _OPERATION_LABELS,
        lambda sums: sums.operations.items(),
    ),
    MetricDefinition(
        "errors",
        _COUNTER,
        MetricUnit.NONE,
        "Failed operations.",
        (*_OPERATION_LABELS, "cause"),
        lambda sums: sums.errors.items(),
    ),
    *map(_counter_metric, COUNTED_FIGURES.values()),
    MetricDefinition(
        "moved",
        _COUNTER,
        MetricUnit.BYTES,
        "Bytes of body that successes moved.",
        _OPERATION_LABELS,
        lambda sums: sums.moved.items(),
    ),
    MetricDefinition(
        "latency",
        _HISTOGRAM,
        MetricUnit.SECONDS,
        "Latency to the last byte.",
        _OPERATION_LABELS,
        lambda sums: sums.last_byte.items(),
    ),
    MetricDefinition(
        "first_byte_latency",
        _HISTOGRAM,
        MetricUnit.SECONDS,
        "Latency to the first byte.",
        _OPERATION_LABELS,
        lambda sums: sums.first_byte.items(),
    ),
    MetricDefinition(
        "in_flight",
        _GAUGE,
        MetricUnit.NONE,
        "Operations in flight, or users busy: the mean of the last 5 s over operations that have ended.",
        (),
        _sample_one(lambda sums: sums.in_flight),
    ),
    MetricDefinition(
        "users",
        _GAUGE,
        MetricUnit.NONE,
        "Operations in flight at most.",
        (),
        _sample_one(lambda sums: sums.users),
    ),
    MetricDefinition(
        "workers",
        _GAUGE,
        MetricUnit.NONE,
        "Workers that can get jobs.",
        (),
        _sample_one(lambda sums: sums.workers[0]),
    ),
    MetricDefinition(
        "workers_expected",
        _GAUGE,
        MetricUnit.NONE,
        "Workers that were asked for.",
        (),
        _sample_one(lambda sums: sums.workers[1]),
    ),
    MetricDefinition(
        "worker.cpu",
        _GAUGE,
        MetricUnit.SHARE,
        "Share of one core that a worker has used since the benchmark began.",
        _WORKER_LABELS,
        _sample_workers(lambda worker: worker.cpu_share),
    ),
    MetricDefinition(
        "worker.lag",
        _GAUGE,
        MetricUnit.SECONDS,
        "How late the event loop of a worker has been, 99th percentile since the benchmark began.",
        _WORKER_LABELS,
        _sample_workers(lambda worker: worker.lag_p99),
    ),
    MetricDefinition(
        "master.cpu",
        _GAUGE,
        MetricUnit.SHARE,
        "Share of one core that the master has used since the benchmark began.",
        (),
        _sample_master("cpu_share"),
    ),
    MetricDefinition(
        "master.lag",
        _GAUGE,
        MetricUnit.SECONDS,
        "How late the loop of the master has been at most since the benchmark began.",
        (),
        _sample_master("lag_max"),
    ),
    MetricDefinition(
        "run_start_timestamp",
        _GAUGE,
        MetricUnit.SECONDS,
        "When the benchmark began.",
        (),
        _sample_one(lambda sums: sums.started),
    ),
    MetricDefinition(
        "run_end_timestamp",
        _GAUGE,
        MetricUnit.SECONDS,
        "When the benchmark ended.",
        (),
        _sample_one(lambda sums: sums.ended),
    ),
)


def describe_run(counting: CountingSink) -> dict[str, str]:
    """Return what is known of the run in words; ``run`` is the name of its stat file."""
    return {
        "version": __version__,
        "scenario": counting.scenario.name,
        "label": counting.label,
        "run": counting.shown.run,
    }
