"""What commands make, and every format in which each can be written: one registry.

A product is a row that says what makes its document (:mod:`ssbench.document`), a renderer a module in
their folder that writes any document. What is no document, as JSON, is a format of one product: a function in
a module of its own. Modules are imported when a format is asked for, so that the command line knows all names
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    REPEATED = "repeated runs"
    CONFIGURATIONS = "a table of many runs"
    LIST = "a list of runs"
    TREND = "a trend"
    OUTLOOK = "a check of a scenario"
    CHANGES = "what changed by Swift's logs"
    ATTRIBUTION = "an attribution"


#: The fields by which the statistics of a complete report are grouped, as pages need them.
GROUPS = ("worker", "storage_url")

#: What makes the document of each product, given the product and a view: module and function.
_DOCUMENTS = {
    Product.RUN: "ssbench.comparison.run:document",
    Product.COMPARISON: "ssbench.comparison.document:document",
    Product.REPEATED: "ssbench.comparison.group:document",
    Product.CONFIGURATIONS: "ssbench.comparison.listing:document",
    Product.CAPACITY: "ssbench.comparison.capacity_report:document",
    Product.LIST: "ssbench.comparison.runs_list:document",
    Product.TREND: "ssbench.comparison.trend:document",
    Product.OUTLOOK: "ssbench.reports.outlook:document",
    Product.CHANGES: "ssbench.cluster.changes_report:document",
    Product.ATTRIBUTION: "ssbench.cluster.attribution_report:document",
}

#: Where the modules are that write any document, each the format of its name.
_RENDERERS = Path(__file__).parents[1] / "document" / "renderers"

#: Other names of renderers, as options have them.
_ALSO = {"summary_md": "markdown"}

#: Formats of one product each, which are written without a document.
_OWN: dict[Product, dict[str, str]] = {
    Product.RUN: {
        "both": "ssbench.reports.text:both",
        "full": "ssbench.reports.text:full",
        "table": "ssbench.reports.text:table",
        "summary": "ssbench.reports.text:summary",
        "csv": "ssbench.reports.csv:report",
        "json": "ssbench.reports.json:report",
        "junit": "ssbench.reports.junit:report",
        "requests_per_second": "ssbench.reports.csv:requests_per_second",
    },
    Product.COMPARISON: {
        "csv": "ssbench.comparison.formats:as_csv",
        "json": "ssbench.comparison.formats:report",
        "junit": "ssbench.comparison.formats:junit",
    },
    Product.CONFIGURATIONS: {"json": "ssbench.comparison.formats:table"},
    Product.LIST: {"json": "ssbench.comparison.runs_list:runs"},
    Product.TREND: {"json": "ssbench.comparison.runs_list:trend"},
    Product.OUTLOOK: {"json": "ssbench.reports.json_run:outlook"},
    Product.CHANGES: {"json": "ssbench.cluster.changes_report:as_json"},
    Product.ATTRIBUTION: {"json": "ssbench.cluster.json_record:report"},
    Product.CAPACITY: {
        "csv": "ssbench.comparison.capacity_report:as_csv",
        "json": "ssbench.comparison.conclusion:report",
    },
}

#: The formats that have an option with a file of their own, and what the help says of them.
FILES: dict[str, str] = {
    "json": "file for every number as JSON (doc/json-report.rst)",
    "html": "file for the report as a page with charts that opens offline",
    "junit": "file for JUnit XML, as for CI: a test case for each condition of --fail-if",
    "summary_md": "file for a short report in Markdown, as for a pull request",
}


def option(name: str) -> str:
    """Return the option of a format that has a file: ``--summary-md``."""
    return f"--{name.replace('_', '-')}"


def names(product: Product) -> tuple[str, ...]:
    """Return the names of the formats of a product."""
    return (*(_renderers() if product in _DOCUMENTS else ()), *_OWN.get(product, ()))


def _renderers() -> tuple[str, ...]:
    """Return the formats in which any document can be written; no module is imported for that."""
    return tuple(sorted(each.stem for each in _RENDERERS.glob("[!_]*.py")))


def find(product: Product, name: str) -> Callable[..., str]:
    """Return what writes a product, given a view besides, loaded; raises KeyError, see :func:`check`."""
    return partial(_joined, _format(product, name))


def _joined(write: _Format, *arguments: object) -> str:
    made = write(*arguments)
    return made if isinstance(made, str) else "".join(made)


def parts(product: Product, name: str, *arguments: object) -> Iterable[str]:
    """Return the parts of the text of a product in a format; raises KeyError, see :func:`check`."""
    made = _format(product, name)(*arguments)
    return (made,) if isinstance(made, str) else made


def _format(product: Product, name: str) -> _Format:
    own = _OWN.get(product, {}).get(name)
    if own is not None:
        return _function(own)
    name = _ALSO.get(name, name)
    if name not in names(product):
        raise KeyError(name)
    render = _function(f"ssbench.document.renderers.{name}:render")
    return partial(_rendered, _function(_DOCUMENTS[product]), render)


def _rendered(
    make: Callable[..., Any], render: _Format, product: Any, view: View | None = None
) -> str | Iterable[str]:
    if view is None:
        from ssbench.document.elements import View  # noqa: PLC0415 - the command line imports this module

        view = View()
    return render(make(product, view), view)


def _function(path: str) -> _Format:
    module, _, function = path.partition(":")
    found: _Format = getattr(import_module(module), function)
    return found


def has(product: Product, name: str) -> bool:
    """Whether a product can be written in a format."""
    return _ALSO.get(name, name) in names(product) or name in names(product)


def check(product: Product, wanted: Iterable[str], command: str) -> None:
    """Raise UsageError for a format with a file that a product does not have.

    It is to be called before anything is run: a sweep takes hours. ``command`` is what to leave it out with.
    """
    for name in wanted:
        if not has(product, name):
            others = [each.value for each in Product if has(each, name)]
            raise UsageError(
                f"{option(name)} is for {' or '.join(others) or 'nothing'}; leave it out with {command}"
            )
