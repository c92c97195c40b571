"""What commands make, and every format in which each can be written: one table.

A format is a function in a module of its own, and a row here. Modules are imported when a format is asked
for, so that the command line knows all names at once, and Bokeh is loaded only for pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from importlib import import_module
from typing import Any

from ssbench.errors import UsageError

#: What makes a text of a product, or the parts of one that may be long; what else it takes is up to the
#: product.
Format = Callable[..., str | Iterable[str]]


class Product(Enum):
    """What is reported on; the value is what a message calls it."""

    RUN = "a single run"
    COMPARISON = "a comparison"
    CAPACITY = "a sweep or a search"


#: Where the formats of each product are made, by their names: module and function.
_FORMATS: dict[Product, dict[str, str]] = {
    Product.RUN: {
        "both": "ssbench.reports.with_summary:table",
        "full": "ssbench.reports.with_summary:full",
        "table": "ssbench.reports.text:table",
        "summary": "ssbench.reports.summary:report",
        "csv": "ssbench.reports.csv:report",
        "html": "ssbench.reports.html:report",
        "json": "ssbench.reports.json:report",
        "junit": "ssbench.reports.junit:report",
        "summary_md": "ssbench.reports.markdown:report",
        "requests_per_second": "ssbench.reports.requests_per_second:report",
    },
    Product.COMPARISON: {
        "text": "ssbench.comparison.formats:text",
        "csv": "ssbench.comparison.formats:as_csv",
        "markdown": "ssbench.comparison.formats:markdown",
        "json": "ssbench.comparison.formats:as_json",
        "junit": "ssbench.comparison.junit:junit",
    },
    Product.CAPACITY: {
        "text": "ssbench.reports.capacity:text",
        "csv": "ssbench.reports.capacity:as_csv",
        "json": "ssbench.reports.capacity:as_json",
        "html": "ssbench.reports.capacity:page",
    },
}

#: The formats that have an option with a file of their own, and what the help says of them.
FILES: dict[str, str] = {
    "json": "file for every number as JSON (doc/json-report.rst)",
    "html": "file for the report as a page with charts that opens offline (needs: pip install bokeh)",
    "junit": "file for JUnit XML, as for CI: a test case for each condition of --fail-if",
    "summary_md": "file for a short report in Markdown, as for a pull request",
}


def option(name: str) -> str:
    """Return the option of a format that has a file: ``--summary-md``."""
    return f"--{name.replace('_', '-')}"


def names(product: Product) -> tuple[str, ...]:
    """Return the names of the formats of a product."""
    return tuple(_FORMATS[product])


def find(product: Product, name: str) -> Format:
    """Return what writes a product in a format; raises KeyError, see :func:`check`."""
    module, _, function = _FORMATS[product][name].partition(":")
    found: Any = getattr(import_module(module), function)
    return found  # type: ignore[no-any-return]


def parts(product: Product, name: str, *arguments: object) -> Iterable[str]:
    """Return the parts of the text of a product in a format; raises KeyError, see :func:`check`."""
    made = find(product, name)(*arguments)
    return (made,) if isinstance(made, str) else made


def check(product: Product, wanted: Iterable[str], command: str) -> None:
    """Raise UsageError for a format with a file that a product does not have.

    It is to be called before anything is run: a sweep takes hours. ``command`` is what to leave it out with.
    """
    for name in wanted:
        if name not in _FORMATS[product]:
            others = [each.value for each in Product if name in _FORMATS[each]]
            raise UsageError(
                f"{option(name)} is for {' or '.join(others) or 'nothing'}; leave it out with {command}"
            )
