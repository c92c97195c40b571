"""Every figure that is printed of stores whose behaviour is planted, against arithmetic."""

from __future__ import annotations

import pytest
from planted import printed
from planted_stores import STORES, Planted


@pytest.mark.parametrize("planted", STORES, ids=lambda planted: planted.name)
def test_the_report_says_what_was_planted(planted: Planted) -> None:
    wrong = [row[:3] for row in planted.compare() if not row[3]]
    assert not wrong, "(figure, planted, printed)"
    # And the parts add up, in lines of at most 100 columns.
    found = printed(planted.report)
    for figure in ("ops", "ops/s", "MB/s", "failed"):
        parts = [found.get(f"{name} {figure}", 0.0) for name in ("CREATE", "READ", "UPDATE", "DELETE")]
        assert sum(parts) == pytest.approx(found[f"ALL {figure}"], abs=0.02, rel=2e-4), figure
    figures = planted.report.partition("\nFigures\n")[2].partition("\nWarnings\n")[0]
    assert max(map(len, figures.splitlines())) <= 100
