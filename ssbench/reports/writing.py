"""Reports of a run: each is a function from its numbers to a text; :mod:`.products` names them all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TextIO

from ssbench.reports import products
from ssbench.reports.options import ReportOptions
from ssbench.reports.products import Product
from ssbench.statistics.run_statistics import RunStatistics


def make_run_report(name: str, statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the report of that name; raises KeyError where no report has it."""
    return "".join(make_run_report_parts(name, statistics, options))


def make_run_report_parts(name: str, statistics: RunStatistics, options: ReportOptions) -> Iterable[str]:
    """Return the parts of the report of that name; raises KeyError where no report has it."""
    return products.make_product_parts(Product.RUN, name, statistics, options)


def groups_for(options: ReportOptions) -> tuple[str, ...]:
    """Return by what else :func:`~ssbench.statistics.summarize` is to keep results apart for a report."""
    return ("worker", "storage_url") if options.verbose else ()


def write_report(name: str, statistics: RunStatistics, options: ReportOptions, out: TextIO) -> None:
    """Write the report of that name; characters that the encoding of ``out`` lacks are replaced.

    Raises KeyError where no report has the name.
    """
    encoding = out.encoding or "utf-8"
    for text in make_run_report_parts(name, statistics, replace(options, encoding=encoding)):
        out.write(text.encode(encoding, "replace").decode(encoding))
    out.flush()
