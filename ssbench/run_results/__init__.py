"""Stat files: written while a run is in progress, and read, those of every earlier version too."""

from ssbench.results import RunDescription, RunSummary, WorkerFacts
from ssbench.run_results.formats import open_results
from ssbench.run_results.reading import RunResults
from ssbench.run_results.writer import RunResultsWriter

__all__ = ["RunDescription", "RunResults", "RunResultsWriter", "RunSummary", "WorkerFacts", "open_results"]
