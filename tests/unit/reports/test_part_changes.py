"""By which part two sides differ: what every report of them has of it."""

from __future__ import annotations

import json

from ssbench.comparison.comparison_report import make_comparison_json
from ssbench.comparison.run_comparison import Comparison
from ssbench.document.elements import View
from ssbench.reports import products
from ssbench.reports.part_changes import LONGER, NO_CHANGE_SHOWN, ChangesByPart, SliceDifference, TimeChange
from ssbench.reports.products import Product


def change(part: str, seconds: float, verdict: str) -> TimeChange:
    by = SliceDifference(seconds, seconds - 0.001, seconds + 0.001, 0.001)
    return TimeChange("operation", "read", part, (1200, 1300), 0.01, 0.01 + seconds, by, None, verdict)


FOUND = ChangesByPart(
    "READ is 2.00 ms slower: the proxy's own part +2.00 ms (+1.00 to +3.00)",
    (
        change("server", 0.0, NO_CHANGE_SHOWN),
        change("proxy", 0.002, LONGER),
        change("client", 0.002, LONGER),
    ),
    ("before: 3 of 9 operations lack a line",),
)


def test_comparisons_have_the_sentence_and_all_parts_in_each_format() -> None:
    comparison = Comparison("old", "new", (0, 0), (), repeated=True, judgment="", noise=0.01, by_part=FOUND)
    for name in ("text", "html", "markdown"):
        written = " ".join(products.find_writer(Product.COMPARISON, name)(comparison, View()).split())
        assert "READ is 2.00 ms slower" in written, name
        assert "3 of 9 operations lack a line" in written, name
    table = products.find_writer(Product.COMPARISON, "text")(comparison, View())
    rows = [line.split() for line in table.splitlines() if line.startswith(("read ", "  "))]
    rows = [each for each in rows if each[-1] in {LONGER, "-"}]
    assert [each[-1] for each in rows] == ["longer", "longer", "-"]
    made = json.loads(make_comparison_json(comparison))["by_part"]
    assert made["answer"] == FOUND.answer
    assert made["operations"][1]["difference"]["seconds"] == 0.002
