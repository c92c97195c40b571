"""Reports: each a function from the numbers of a run to a text. :mod:`ssbench.products` names them all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TextIO

from ssbench import products
from ssbench.products import Product
from ssbench.reports.options import ReportOptions
from ssbench.statistics import RunStatistics

__all__ = ["ReportOptions", "groups_for", "parts", "report", "write_report"]


def report(name: str, statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the report of that name; raises KeyError where no report has it."""
    return "".join(parts(name, statistics, options))


def parts(name: str, statistics: RunStatistics, options: ReportOptions) -> Iterable[str]:
    """Return the parts of the report of that name; raises KeyError where no report has it."""
    return products.parts(Product.RUN, name, statistics, options)


def groups_for(options: ReportOptions) -> tuple[str, ...]:
    """Return by what else :func:`~ssbench.statistics.summarize` is to keep results apart for a report."""
    return ("worker", "storage_url") if options.verbose else ()


def write_report(name: str, statistics: RunStatistics, options: ReportOptions, out: TextIO) -> None:
    """Write the report of that name; characters that the encoding of ``out`` lacks are replaced.

    Raises KeyError where no report has the name.
    """
    encoding = out.encoding or "utf-8"
    for text in parts(name, statistics, replace(options, encoding=encoding)):
        out.write(text.encode(encoding, "replace").decode(encoding))
    out.flush()
