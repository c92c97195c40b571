"""An envelope as text, page and JSON."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from capacity_runs import step as whole_step
from json_records import valid

from ssbench.base.errors import GateResult
from ssbench.comparison.envelope_report import make_envelope_document
from ssbench.comparison.search import SearchAnswer
from ssbench.comparison.store_limits import (
    Envelope,
    EnvelopeStep,
    LoggedRun,
    MixedLoad,
    add_logged_run,
    conclude_cell,
    judge_envelope_condition,
    parse_envelope_condition,
)
from ssbench.document.elements import Tone
from ssbench.document.units import DASH
from ssbench.reports import products
from ssbench.reports.products import Product
from ssbench.scenario.conditions import parse_conditions

OK, NO = GateResult.PASSED, GateResult.FAILED


def make_envelope() -> Envelope:
    cells = []
    for name, answer, last in [
        ("4kB.read", SearchAnswer(20, 16, 25), NO),
        ("1MB.read", SearchAnswer(90), OK),
    ]:
        steps = [
            EnvelopeStep(users, 10.0, 10.0 * users, 0.05, 4e4, 0.01, 0.02, 0.005, 100, 0.0, result)
            for users, result in [(1, OK), *[(10, OK)] * 9, (40, last)]
        ]
        pairs = [(each, whole_step(each.users, each.rate)) for each in steps]
        cells.append(conclude_cell(name, 4000, "read", parse_conditions("read.p99 <= 50ms"), pairs, answer))
    mixed = MixedLoad(
        share=0.7,
        asked=140.0,
        rate=139.0,
        moved=1e6,
        seconds=60.0,
        p50=0.01,
        p99=0.05,
        failed=0.0,
        lasted=True,
    )
    judged = judge_envelope_condition(parse_envelope_condition("envelope.4kB.read.rate < 500"), cells)
    return Envelope(
        tuple(cells),
        (mixed,),
        "read.p99 <= 50ms",
        60.0,
        "http://proxy/v1/AUTH_a",
        command="ssbench-master envelope --minutes 60",
        settings=(("workers", "2"),),
        not_asked=("Not tried: list.",),
        seconds=3590.0,
        conditions=(judged,),
    )


def test_the_text_has_each_limit_and_marks_those_that_were_not_reached() -> None:
    text = "".join(products.make_product_parts(Product.ENVELOPE, "text", make_envelope(), None))
    assert text.startswith("What this store can do\n")
    assert "1 of 2 limits are known: lower bounds: 1; the mixed load lasted" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["4kB", "read", "200.0", "159.5", "to", "250.8", "0.0800", "20", "10.0", "20.0", "10.0"] in lines
    # The limit lies between the runs of 10 and 40 users: the latencies are those of 10.
    assert ["4kB", "read", "20", "16", "to", "25", DASH, "20.0", "10", "10.0", "20.0", "10"] in lines
    assert ["4kB", "read", "5.00", "11"] in lines
    assert next(line[2] for line in lines if line[:2] == ["1MB", "read"]) == ">400.0"
    assert "fail-if envelope.4kB.read.rate < 500: FAILED (159.5 to 250.8)" in " ".join(text.split())
    assert "Make it again with: ssbench-master envelope --minutes 60" in text
    assert "Not tried: list." in text


@pytest.mark.parametrize(("factor", "is_wide"), [(1.9, False), (2.1, True)])
def test_a_rate_that_is_known_to_a_factor_of_two_only_is_not_called_good(
    factor: float, is_wide: bool
) -> None:
    found = make_envelope()
    cell = msgspec.structs.replace(found.cells[0], rate_high=factor * found.cells[0].rate_low)
    found = replace(found, cells=(cell,), conditions=())
    text = "".join(products.make_product_parts(Product.ENVELOPE, "text", found, None))
    wide = "rates known to a factor above 2 only: 1; " * is_wide
    assert f"1 of 1 limits are known: {wide}the mixed load lasted" in " ".join(text.split())
    verdict = make_envelope_document(found).verdict
    assert verdict is not None
    assert verdict.tone is (Tone.DOUBTFUL if is_wide else Tone.GOOD)


def test_what_logs_say_of_the_run_beyond_a_limit_is_told() -> None:
    found = make_envelope()
    logged = LoggedRun(
        file="e.4kB.read-40.stat.gz",
        headline="Slow: d1 on n1",
        facts=("50 ms longer", "33 % of all requests"),
        slow=("d1 on n1",),
        p99=0.2,
        p99_of_others=0.03,
    )
    found = replace(found, cells=(add_logged_run(found.cells[0], logged), found.cells[1]))
    text = "".join(products.make_product_parts(Product.ENVELOPE, "text", found, None))
    words = " ".join(text.split())
    assert "4kB.read the store: latency; by its logs d1 on n1" in words
    assert (
        "4kB.read with 40 users: Slow: d1 on n1 (50 ms longer; 33 % of all requests; p99 200.0 ms, of the"
        " others 30.0 ms); stat file e.4kB.read-40.stat.gz." in words
    )
    assert "is not known" not in words
    record = valid("".join(products.make_product_parts(Product.ENVELOPE, "json", found, None)), "envelope")
    assert record["cells"][0]["by_logs"]["slow"] == ["d1 on n1"]
    assert record["cells"][1]["by_logs"] is None


def test_the_page_has_a_chart() -> None:
    page = "".join(products.make_product_parts(Product.ENVELOPE, "html", make_envelope(), None))
    assert "The highest rate by size of the objects" in page


def test_the_record_is_as_its_schema_says() -> None:
    record = valid(
        "".join(products.make_product_parts(Product.ENVELOPE, "json", make_envelope(), None)), "envelope"
    )
    assert [(each["name"], each["users"], each["at_least"]) for each in record["cells"]] == [
        ("4kB.read", 20, False),
        ("1MB.read", 40, True),
    ]
    assert record["cells"][1]["rate_high"] is None
    assert [each["lasted"] for each in record["mixed"]] == [True]
    assert (record["settings"], record["seconds"]) == ({"workers": "2"}, 3590.0)
    assert record["not_asked"] == ["Not tried: list."]
