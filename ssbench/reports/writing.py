"""Reports of a run: each is a function from its numbers to a text; :mod:`.products` names them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TextIO

from ssbench.base.errors import Undecided
from ssbench.document.elements import View
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.scenario.conditions import Condition
from ssbench.statistics.run_statistics import RunStatistics


@dataclass(frozen=True, slots=True)
class ReportOptions(View):
    """What reports can be asked for.

    With ``verbose`` the summary has size classes, workers and storage URLs.
    """

    percentile: float = 95.0  # the one to show in the table, above 0 and up to 100
    more: tuple[float, ...] = ()  # percentiles that come after the table
    fail_if: tuple[Condition, ...] = ()  # conditions besides those of the scenario
    #: What an undecided one of them counts as; None: as the run was asked for.
    undecided: Undecided | None = None
    #: Compares the two sides of a run by what is known of earlier ones; None: by the run alone.
    compare_sides: Callable[[RunStatistics], Any] | None = None


def make_run_report(name: str, statistics: RunStatistics, options: ReportOptions) -> str:
    """Return the report of that name; raises KeyError where no report has it."""
    return "".join(make_run_report_parts(name, statistics, options))


def make_run_report_parts(name: str, statistics: RunStatistics, options: ReportOptions) -> Iterable[str]:
    """Return the parts of the report of that name; raises KeyError where no report has it."""
    return products.make_product_parts(Product.RUN, name, statistics, options)


def groups_for(options: ReportOptions) -> tuple[str, ...]:
    """Return by what else :func:`~ssbench.statistics.summary.summarize` keeps results apart."""
    return ("worker", "storage_url") if options.verbose else ()


def write_report(name: str, statistics: RunStatistics, options: ReportOptions, out: TextIO) -> int:
    """Write the report of that name; return how many lines it has.

    Characters that the encoding of ``out`` lacks are replaced. Raises KeyError where no report has the name.
    """
    lines, encoding = 0, out.encoding or "utf-8"
    for text in make_run_report_parts(name, statistics, replace(options, encoding=encoding)):
        out.write(text.encode(encoding, "replace").decode(encoding))
        lines += text.count("\n")
    out.flush()
    return lines
