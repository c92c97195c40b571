"""The page of the figures, from the table that conditions, comparisons and reports look them up in."""

from __future__ import annotations

from ssbench.document.figures import FIGURES, Figure

_HEAD = """\
Figures
=======

What ``--fail-if``, ``--find``, ``compare`` and JSON call each figure; `numbers.rst <../numbers.rst>`_ defines
them. Percentiles of any rank (``p99.95``) and, with ``first_``, ``response_`` or ``service_`` before them, of
other latencies are figures too. A figure is shown from so many results on, for so small a part of a run.
Counters have the same keys in CSV, JSON and metrics.

.. list-table::
   :header-rows: 1

   * - key
     - title
     - results
     - better
     - part
     - compared
     - what it counts
"""


def text() -> str:
    """Return the page as reStructuredText."""
    return _HEAD + "".join(map(_row, FIGURES.values()))


def _row(figure: Figure) -> str:
    better = {True: "more", False: "less", None: "neither"}[figure.more_is_better]
    cells = (
        f"``{figure.key}``",
        figure.head,
        f"{max(figure.needs, 1):,}",
        better,
        figure.scope.value,
        "yes" if figure.compared else "no",
        figure.meaning,
    )
    return "".join(f"   {'* -' if place == 0 else '  -'} {cell}\n" for place, cell in enumerate(cells))
