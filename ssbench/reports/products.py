"""What commands make, and every format in which each can be written: one registry.

A product is a row that says what makes its document (:mod:`ssbench.document`), a renderer a module in their
folder that writes any document. What is no document, as JSON, is a format of one product: a function in a
module of its own. Modules are imported when a format is asked for, so that the command line knows all names
at once. The kinds of records that commands write as JSON are here too: ``ssbench-master schema`` prints their
schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ssbench.base.errors import UsageError

if TYPE_CHECKING:
    from ssbench.document.elements import View

#: What makes a text of a product, or the parts of one that may be long, given a view besides. That of a run
#: has options of its own, and is needed.
_Format = Callable[..., str | Iterable[str]]


class Product(Enum):
    """What is reported on; the value is what a message calls it."""

    RUN = "a single run"
    COMPARISON = "a comparison"
    CAPACITY = "a sweep or a search"
    CAPACITIES = "sweeps or searches of phases"
    SUITE = "a suite"
    SUITES = "two suites or sweeps"
    NOISE = "equal runs"
    ENVELOPE = "an envelope"
    REPEATED = "repeated runs"
    CONFIGURATIONS = "a table of many runs"
    LIST = "a list of runs"
    TREND = "a trend"
    OUTLOOK = "a check of a scenario"
    CHANGES = "what changed by Swift's logs"
    ATTRIBUTION = "an attribution"
    CONFORMANCE = "what a store does"
    TRAFFIC = "what users do"


#: The fields by which the statistics of a complete report are grouped, as pages need them.
PAGE_GROUPS = ("worker", "storage_url")

#: The module of each product, what its functions are called by, and which formats it has of its own besides
#: its document: ``make_noise_document``, ``make_noise_csv``. Each is given the product and a view.
_MODULES = {
    Product.RUN: ("ssbench.comparison.paired_sides", "sided_run", ""),
    Product.COMPARISON: ("ssbench.comparison.comparison_report", "comparison", "csv json junit"),
    Product.REPEATED: ("ssbench.comparison.run_summaries", "repeated", ""),
    Product.CONFIGURATIONS: ("ssbench.comparison.run_summaries", "configurations", "json"),
    Product.CAPACITY: ("ssbench.comparison.capacity_report", "capacity", "csv json"),
    Product.CAPACITIES: ("ssbench.comparison.capacity_report", "phases", "csv json"),
    Product.SUITE: ("ssbench.comparison.suite_report", "suite", "csv json junit"),
    Product.SUITES: ("ssbench.comparison.family", "family", "csv json junit"),
    Product.NOISE: ("ssbench.comparison.noise_report", "noise", "csv json"),
    Product.ENVELOPE: ("ssbench.comparison.envelope_report", "envelope", "json"),
    Product.LIST: ("ssbench.comparison.runs_list", "runs", "json"),
    Product.TREND: ("ssbench.comparison.runs_list", "trend", "json"),
    Product.OUTLOOK: ("ssbench.reports.scenario_outlook", "outlook", ""),
    Product.CHANGES: ("ssbench.cluster.changes", "changes", "json"),
    Product.ATTRIBUTION: ("ssbench.cluster.attribution_report", "attribution", "json"),
    Product.CONFORMANCE: ("ssbench.reports.conformance_report", "conformance", "json"),
    Product.TRAFFIC: ("ssbench.traffic.traffic_report", "traffic", "json"),
}

#: Where the modules are that write any document, each the format of its name.
_RENDERER_FOLDER = Path(__file__).parents[1] / "document" / "renderers"

#: Other names of renderers, as options have them.
_OTHER_FORMAT_NAMES = {"summary_md": "markdown"}

#: Formats whose functions are elsewhere, or have names of their own.
_OTHER_FORMATS: dict[Product, dict[str, str]] = {
    Product.RUN: {
        "both": "ssbench.reports.run_text:make_summary_and_table",
        "full": "ssbench.reports.run_text:make_full_report",
        "table": "ssbench.reports.run_text:make_table_report",
        "summary": "ssbench.reports.run_text:make_summary_report",
        "csv": "ssbench.reports.csv:make_run_csv",
        "json": "ssbench.reports.json:make_run_json",
        "junit": "ssbench.reports.junit:make_run_junit",
        "requests_per_second": "ssbench.reports.csv:make_requests_per_second_csv",
    },
    Product.OUTLOOK: {"json": "ssbench.reports.json:make_outlook_json"},
}

#: The formats that have an option with a file of their own, and what the help says of them.
FORMAT_FILES: dict[str, str] = {
    "json": "write all figures as JSON (doc/json-report.rst) to FILE",
    "html": "write the report as a page with charts, which opens offline, to FILE",
}

#: Those that CI reads, which share the option ``--ci``, by the endings of files.
CI_FORMATS = {"xml": "junit", "md": "summary_md"}


def format_option(name: str) -> str:
    """Return the option of a format that has a file: ``--json``."""
    return "--ci" if name in CI_FORMATS.values() else f"--{name}"


def parse_ci_file(text: str) -> tuple[str, Path]:
    """Return the format and the file of ``x.md``, or of ``md=x`` where the name does not say it.

    Raises ValueError.
    """
    kind, equals, file = text.partition("=")
    if not equals or kind not in CI_FORMATS:
        kind, file = Path(text).suffix[1:], text
    if kind not in CI_FORMATS or not file:
        raise ValueError(
            f"{text!r} says no format: its name has to end with .xml (JUnit) or .md (Markdown), or begin with"
            " xml= or md="
        )
    return CI_FORMATS[kind], Path(file)


def _name_format(name: str) -> str:
    """Return the option of a format, with the format where it has several: ``--ci (junit)``."""
    return f"{format_option(name)} ({name})" if name in CI_FORMATS.values() else format_option(name)


def format_file_option(name: str, path: Path) -> str:
    """Return what asks for a file in a format: ``--ci=md=x``, ``--json=x``."""
    kind = next((f"{ending}=" for ending, each in CI_FORMATS.items() if each == name), "")
    return f"{format_option(name)}={kind}{path}"


def format_names(product: Product) -> tuple[str, ...]:
    """Return the names of the formats of a product."""
    return (*_renderer_names(), *_MODULES[product][2].split(), *_OTHER_FORMATS.get(product, ()))


def _renderer_names() -> tuple[str, ...]:
    """Return the formats in which any document can be written; no module is imported for that."""
    return tuple(sorted(each.stem for each in _RENDERER_FOLDER.glob("[!_]*.py")))


def find_writer(product: Product, name: str) -> Callable[..., str]:
    """Return what writes a product, given a view besides, loaded.

    Raises KeyError, see :func:`check_format`.
    """
    return partial(_joined, _find_format(product, name))


def _joined(write: _Format, *arguments: object) -> str:
    made = write(*arguments)
    return made if isinstance(made, str) else "".join(made)


def make_product_parts(product: Product, name: str, *arguments: object) -> Iterable[str]:
    """Return the parts of the text of a product in a format; raises KeyError, see :func:`check_format`."""
    made = _find_format(product, name)(*arguments)
    return (made,) if isinstance(made, str) else made


def _find_format(product: Product, name: str) -> _Format:
    module, stem, own = _MODULES[product]
    if (other := _OTHER_FORMATS.get(product, {}).get(name)) is not None:
        return _load_function(other)
    if name in own.split():
        return _load_function(f"{module}:make_{stem}_{name}")
    name = _OTHER_FORMAT_NAMES.get(name, name)
    if name not in format_names(product):
        raise KeyError(name)
    render = _load_function(f"ssbench.document.renderers.{name}:render")
    return partial(_rendered, _load_function(f"{module}:make_{stem}_document"), render)


def _rendered(
    make: Callable[..., Any], render: _Format, product: Any, view: View | None = None
) -> str | Iterable[str]:
    if view is None:
        from ssbench.document.elements import View  # noqa: PLC0415 - the command line imports this module

        view = View()
    return render(make(product, view), view)


def _load_function(path: str) -> _Format:
    module, _, function = path.partition(":")
    found: _Format = getattr(import_module(module), function)
    return found


def has_format(product: Product, name: str) -> bool:
    """Whether a product can be written in a format."""
    return _OTHER_FORMAT_NAMES.get(name, name) in format_names(product) or name in format_names(product)


def check_format(product: Product, wanted: Iterable[str], command: str) -> None:
    """Raise UsageError for a format with a file that a product does not have.

    It is to be called before anything is run: a sweep takes hours. ``command`` is what to leave it out with.
    """
    for name in wanted:
        if not has_format(product, name):
            others = [each.value for each in Product if has_format(each, name)]
            raise UsageError(
                f"{_name_format(name)} is for {' or '.join(others) or 'nothing'}; leave it out with {command}"
            )


# -- Kinds of records ------------------------------------------------------------------------------


#: Name -> (the options that write it, module and class).
JSON_KINDS = {
    "report": ("run-scenario --json, report-scenario --json", "ssbench.reports.json:RunReportRecord"),
    "comparison": ("compare --json", "ssbench.comparison.comparison_report:ComparisonReport"),
    "table": (
        "compare --json, with a table of many runs",
        "ssbench.comparison.run_summaries:FiguresTable",
    ),
    "capacity": (
        "run-scenario --sweep or --find with --json",
        "ssbench.comparison.capacity_report:CapacityReport",
    ),
    "phases": (
        "run-scenario --phases with --sweep or --find and --json",
        "ssbench.comparison.capacity_report:PhasesReport",
    ),
    "suite": ("suite --json, run-scenario --phases --json", "ssbench.comparison.suite_report:SuiteReport"),
    "suites": (
        "compare of suites or envelopes with --json, run-scenario --sweep with --versus and --json",
        "ssbench.comparison.family:FamilyReport",
    ),
    "envelope": ("envelope --json", "ssbench.comparison.envelope_report:EnvelopeReport"),
    "noise": ("noise --json", "ssbench.comparison.noise_report:NoiseReport"),
    "list": ("list --json", "ssbench.comparison.runs_list:RunsList"),
    "trend": ("list --trend --json", "ssbench.comparison.runs_list:Trend"),
    "scenario": ("check-scenario --json", "ssbench.reports.json:OutlookRecord"),
    "attribution": ("attribute --json", "ssbench.cluster.attribution_report:AttributionReport"),
    "changes": ("attribute --compare --json", "ssbench.cluster.changes:ChangesReport"),
    "cleanup": ("cleanup-containers --json", "ssbench.run.account_cleaner:CleanUpReport"),
    "conformance": ("conformance --json", "ssbench.reports.conformance_report:ConformanceReport"),
    "settings": ("config --json", "ssbench.cli.config:ConfigReport"),
    "traffic": ("traffic --json", "ssbench.traffic.traffic_report:TrafficRecord"),
    "workers": ("kill-workers --json", "ssbench.fleet.shutdown:ShutdownReport"),
}


def find_record_class(name: str) -> type:
    """Return the class of a kind of records; raises KeyError."""
    module, _, kind = JSON_KINDS[name][1].partition(":")
    return cast(type, getattr(import_module(module), kind))
