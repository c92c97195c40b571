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
#: What is not here is in ``ssbench.api``.
_MODULES = {
    "Bench": "ssbench.run.bench",
    "BenchOptions": "ssbench.run.bench_options",
    "Credentials": "ssbench.store.stores",
    "RunOptions": "ssbench.run.bench_options",
    "Scenario": "ssbench.scenario.model",
    "SsbenchError": "ssbench.base.errors",
    "__version__": "ssbench.base.version",
    "override": "ssbench.scenario.consistency",
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
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - see above

    return getattr(importlib.import_module(_MODULES.get(name, "ssbench.api")), name)
