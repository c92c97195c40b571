"""A benchmark suite for OpenStack Swift; ``doc/api.rst`` says how to use it from Python."""

from __future__ import annotations

# Nothing is imported here, where Ctrl-C at the start of a command is still a traceback (cli/entry_points.py).
TYPE_CHECKING = False  # type checkers know this name
if TYPE_CHECKING:
    from ssbench.api import (
        RunReport,
        age,
        compare,
        compare_between,
        envelope,
        find,
        isolate,
        load_scenario,
        noise,
        open_results,
        repeat,
        report,
        run_scenario,
        suite,
        sweep,
        versus,
    )
    from ssbench.base.errors import SsbenchError
    from ssbench.base.version import __version__
    from ssbench.run.bench import Bench
    from ssbench.run.bench_options import BenchOptions, RunOptions
    from ssbench.scenario.consistency import override
    from ssbench.scenario.model import Scenario
    from ssbench.store.stores import Credentials

#: Name -> the module that has it, which is imported when the name is asked for: --help and workers need few.
_MODULES = {
    "Bench": "ssbench.run.bench",
    "BenchOptions": "ssbench.run.bench_options",
    "Credentials": "ssbench.store.stores",
    "RunOptions": "ssbench.run.bench_options",
    "RunReport": "ssbench.api",
    "Scenario": "ssbench.scenario.model",
    "SsbenchError": "ssbench.base.errors",
    "__version__": "ssbench.base.version",
    "age": "ssbench.api",
    "compare": "ssbench.api",
    "compare_between": "ssbench.api",
    "envelope": "ssbench.api",
    "find": "ssbench.api",
    "isolate": "ssbench.api",
    "noise": "ssbench.api",
    "repeat": "ssbench.api",
    "suite": "ssbench.api",
    "sweep": "ssbench.api",
    "versus": "ssbench.api",
    "load_scenario": "ssbench.api",
    "override": "ssbench.scenario.consistency",
    "open_results": "ssbench.api",
    "report": "ssbench.api",
    "run_scenario": "ssbench.api",
}

__all__ = [
    "Bench",
    "BenchOptions",
    "Credentials",
    "RunOptions",
    "RunReport",
    "Scenario",
    "SsbenchError",
    "__version__",
    "age",
    "compare",
    "compare_between",
    "envelope",
    "find",
    "isolate",
    "load_scenario",
    "noise",
    "open_results",
    "override",
    "repeat",
    "report",
    "run_scenario",
    "suite",
    "sweep",
    "versus",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - see above

    return getattr(importlib.import_module(_MODULES[name]), name)
