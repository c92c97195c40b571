"""A run, from its options to its outcome.

``with Bench(BenchOptions(...)) as bench: outcome = bench.run(scenario, RunOptions(...))`` carries out any
number of runs with the same workers, token and local Swift; ``doc/api.rst`` has an example.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssbench.run.bench import Bench
    from ssbench.run.benchmark_run import RunOutcome
    from ssbench.run.options import BenchOptions, RunOptions

__all__ = ["Bench", "BenchOptions", "RunOptions", "RunOutcome"]

# Imported when asked for: workers need only small modules of this package, and no numpy.
_MODULES = {
    "Bench": "bench",
    "BenchOptions": "options",
    "RunOptions": "options",
    "RunOutcome": "benchmark_run",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
