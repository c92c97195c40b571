"""Reports of a run: each is a function from its numbers to a text; :mod:`.products` names them all.

What reports can be asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TextIO

from ssbench.document.elements import View
from ssbench.document.gates import Undecided
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.scenario.conditions import Condition
from ssbench.statistics.run_statistics import RunStatistics


@dataclass(frozen=True, slots=True)
class ReportOptions(View):
    """``percentile`` is the one to show in the table, above 0 and up to 100; ``more`` come after it.

    With ``verbose`` the summary has size classes, workers and storage URLs. ``fail_if`` are conditions
    besides those of the scenario, ``undecided`` what one of them counts as that is undecided (None: as the
    run was asked for). ``compare_sides`` compares the two sides of a run by what is known of earlier ones
    (None: by the run alone).
    """

    percentile: float = 95.0
    more: tuple[float, ...] = ()
    fail_if: tuple[Condition, ...] = ()
    undecided: Undecided | None = None
    compare_sides: Callable[[RunStatistics], Any] | None = None


# -- writing -----------------------------------------------------------------------------------


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
