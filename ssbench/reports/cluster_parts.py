"""What a report has of the cluster beside the run: made by a package that is found by its name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Protocol, cast

from ssbench.document.elements import Chart, Element, Section
from ssbench.results.cluster_observation import Observation
from ssbench.statistics.run_statistics import RunStatistics

_CLUSTER_MODULE = "ssbench.cluster.report"


class ClusterReport(Protocol):
    """The functions of that module."""

    @staticmethod
    def section(observation: Observation | None) -> Section | None:
        """Return the section of text; None where there is nothing to say."""

    @staticmethod
    def elements(statistics: RunStatistics) -> Iterator[Element]:
        """Yield sentences and tables; none where the cluster was not observed."""

    @staticmethod
    def charts(statistics: RunStatistics) -> list[Chart]:
        """Return charts over the time of the run; none where the cluster was not observed."""


def find_cluster_report() -> ClusterReport:
    """Return what makes the parts of a report that are about the cluster."""
    return cast(ClusterReport, importlib.import_module(_CLUSTER_MODULE))
