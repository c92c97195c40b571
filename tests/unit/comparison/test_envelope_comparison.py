"""Envelopes compared: one verdict on the limits of all cells."""

from __future__ import annotations

import json
import re
from math import nan
from pathlib import Path

import pytest
from capacity_runs import step as whole_step
from golden_words import GoldenWords
from json_records import valid
from msgspec import structs

from ssbench.base import record
from ssbench.base.errors import ExitCode, GateResult
from ssbench.cli.master import main
from ssbench.comparison.change import NOISE_SHARE
from ssbench.comparison.envelope_comparison import compare_cells
from ssbench.comparison.envelope_report import make_envelope_json
from ssbench.comparison.family import FamilyComparison, judge_family
from ssbench.comparison.run_table import RunTable
from ssbench.comparison.search import SearchAnswer
from ssbench.comparison.store_limits import Envelope, EnvelopeCell, EnvelopeStep, MixedLoad, conclude_cell
from ssbench.scenario.conditions import parse_conditions

OK, NO = GateResult.PASSED, GateResult.FAILED


def make_cell(
    rate: float, *, limit: int = 50, reached: bool = True, holds: bool = True, name: str = "4kB.read"
) -> EnvelopeCell:
    """Return a cell whose limit is 20 users with a rate, or with a rate that may be higher, or at no load."""
    outcomes = [(1, OK), (10, OK), *[(20, OK)] * 6, (40, NO if reached else OK)]
    if not holds:
        outcomes = [(1, OK), (4, NO), (2, NO)]
    steps = [
        EnvelopeStep(users, 10.0, rate * min(users, 20) / 20, 0.02, 4e4, 0.01, 0.02, 0.005, 5000, 0.0, result)
        for users, result in outcomes
    ]
    pairs = [(each, whole_step(each.users, each.rate)) for each in steps]
    answer = SearchAnswer(20, 19, 21) if holds else SearchAnswer(None)
    return conclude_cell(
        name, 4000, "read", parse_conditions(f"read.p99 <= {limit}ms and errors <= 0.1%"), pairs, answer
    )


def compare(before: list[EnvelopeCell], after: list[EnvelopeCell]) -> FamilyComparison:
    return compare_cells(RunTable(("one", "two"), {"4kB.read": [before, after]}), NOISE_SHARE)


def test_equal_limits_are_called_equal_and_a_lower_one_slower() -> None:
    same = judge_family(compare([make_cell(1000)], [make_cell(1010)]))
    assert same.headline.startswith("no difference shown (detectable: ")
    slower = judge_family(compare([make_cell(1000)], [make_cell(700)]))
    assert slower.headline == "slower: 4kB.read ops/s (-30.0 %)"


def test_other_limits_of_latency_explain_as_much_as_more_users_brought_last() -> None:
    """The rate rose as users did up to the limit, so 43 % more milliseconds may be 43 % more operations."""
    found = compare([make_cell(1000, limit=50)], [make_cell(1300, limit=72)])
    assert judge_family(found).headline.startswith("no difference shown")
    assert judge_family(compare([make_cell(1000)], [make_cell(1300)])).headline.startswith("faster")
    # Fewer operations are no less for it.
    assert judge_family(compare([make_cell(1000)], [make_cell(700, limit=72)])).word == "slower"


def test_conditions_need_no_limit_of_latency() -> None:
    """Not one in common either."""
    first, second = (structs.replace(make_cell(rate), condition="errors <= 1%") for rate in (1000, 700))
    assert judge_family(compare([first], [second])).word == "slower"
    assert judge_family(compare([first], [make_cell(700)])).word == "slower"


def test_a_store_that_fails_all_requests_has_no_figures() -> None:
    step = EnvelopeStep(1, 10.0, nan, None, nan, nan, nan, nan, 0, 1.0, NO)
    failing = conclude_cell("4kB.read", 4000, "read", (), [(step, whole_step(1, 1))] * 2, SearchAnswer(None))
    (row,) = compare([make_cell(1000)], [failing]).rows
    assert "rate" not in row.changes
    assert row.changes["p50"].after is None


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ({"rate": 1000, "reached": False}, {"rate": 700}, "slower"),
        ({"rate": 1000, "reached": False}, {"rate": 1400}, "undecided"),
        ({"rate": 1000}, {"rate": 1400, "reached": False}, "faster"),
        ({"rate": 1000}, {"rate": 700, "reached": False}, "undecided"),
        ({"rate": 1000}, {"rate": 1000, "holds": False}, "slower"),
        ({"rate": 1000, "holds": False}, {"rate": 1000}, "faster"),
        ({"rate": 1000, "reached": False}, {"rate": 1000, "reached": False}, "undecided"),
    ],
)
def test_a_bound_is_judged_where_the_limit_beyond_it_would_be_so_too(
    before: dict[str, float], after: dict[str, float], word: str
) -> None:
    found = compare([make_cell(**before)], [make_cell(**after)])
    assert judge_family(found).word == word
    assert ("not judged, because a limit was not found: 4kB.read" in found.warnings) is (word == "undecided")


def test_of_several_envelopes_each_counts_once(golden_words: GoldenWords) -> None:
    """Their rates differ by more than the interval of each says."""
    before = [make_cell(rate) for rate in (1000, 1250, 800, 1100)]
    after = [make_cell(rate) for rate in (700, 900, 1100, 950)]
    assert judge_family(compare(before[:1], after[:1])).word == "slower"
    found = compare(before, after)
    assert judge_family(found).headline.startswith("no difference shown")
    assert found.rows[0].changes["rate"].between_runs
    assert not found.warnings
    lacks = compare(before, [*after[1:], make_cell(700, reached=False)])
    golden_words(lacks.warnings)


def write(file: Path, *cells: EnvelopeCell) -> Path:
    found = Envelope(cells, (), "the usual", 60.0, "http://proxy/v1/AUTH_a")
    file.parent.mkdir(exist_ok=True)
    file.write_text(make_envelope_json(found))
    return file


def test_compare_has_all_outputs_and_conditions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write(tmp_path / "old" / "a.json", make_cell(1000), make_cell(10, name="1MB.read"))
    two = write(tmp_path / "new" / "b.json", make_cell(700), make_cell(10, name="16MB.read"))
    assert main(["compare", str(one), str(two)]) == ExitCode.OK
    text = " ".join(capsys.readouterr().out.split())
    assert "slower: 4kB.read ops/s (-30.0 %)" in text
    assert "only before: 1MB.read" in text
    assert "only after: 16MB.read" in text
    # Folders of them are the same, and so are compared in all formats.
    folders = ["compare", str(one.parent), "--to", str(two.parent)]
    page, data = tmp_path / "page.html", tmp_path / "data.json"
    assert main([*folders, "--html", str(page), "--json", str(data)]) == ExitCode.OK
    assert " ".join(capsys.readouterr().out.split()).count("slower: 4kB.read") == 1
    assert "slower: 4kB.read" in page.read_text()
    record = valid(data.read_text(), "suites")
    assert record["verdict"]["word"] == "slower"
    assert record["rows"][0]["changes"]["rate"]["change"] == pytest.approx(-0.3)
    for format_, pattern in [
        ("csv", r"4kB\.read,1,1,rate,\d"),
        ("markdown", "slower: 4kB"),
        ("junit", "<testsuite"),
    ]:
        assert main([*folders, "--format", format_]) == ExitCode.OK
        assert re.search(pattern, capsys.readouterr().out)
    assert main([*folders, "--fail-if", "rate < -10%"]) == ExitCode.THRESHOLD


@pytest.mark.parametrize(
    ("condition", "reached", "code"),
    [
        ("envelope.4kB.read.rate < 900", True, ExitCode.THRESHOLD),
        ("envelope.4kB.read.rate < 500", True, ExitCode.OK),
        ("envelope.4kB.read.rate < 700", True, ExitCode.UNDECIDED),
        ("envelope.4kB.read.users < 10", True, ExitCode.OK),
        ("envelope.4kB.read.mb_per_s < 1", True, ExitCode.THRESHOLD),
        # null, which JSON has for no bound.
        ("envelope.4kB.read.rate < 5000", False, ExitCode.UNDECIDED),
        ("envelope.4kB.read.rate < 500", False, ExitCode.OK),
        ("envelope.1MB.read.rate < 500", True, ExitCode.USAGE),
        ("envelope.4kB.read.p99 < 500", True, ExitCode.USAGE),
    ],
)
def test_compare_judges_conditions_on_the_envelope_after(
    condition: str, reached: bool, code: ExitCode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write(tmp_path / "a.json", make_cell(1000))
    two = write(tmp_path / "b.json", make_cell(700, reached=reached))
    assert main(["compare", str(one), str(two), "--fail-if", condition]) == code
    text = " ".join(capsys.readouterr().out.split())
    assert (f"fail-if {condition}: " in text) is (code is not ExitCode.USAGE)


def test_conditions_on_the_envelope_and_on_changes_count_together(tmp_path: Path) -> None:
    one, two = (write(tmp_path / f"{rate}.json", make_cell(rate)) for rate in (1000, 700))
    both = ["--fail-if", "envelope.4kB.read.rate < 500", "--fail-if", "rate < -10%"]
    assert main(["compare", str(one), str(two), *both]) == ExitCode.THRESHOLD
    assert main(["compare", str(one), str(two), *both[:2], "--fail-if", "rate < -50%"]) == ExitCode.OK


def test_what_is_no_envelope_is_not_compared_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    one = write(tmp_path / "a.json", make_cell(1000))
    (tmp_path / "b.json").write_text('{"metrics": {}}')
    assert main(["compare", str(one), str(tmp_path / "b.json")]) == ExitCode.USAGE
    wanted = f"{tmp_path / 'b.json'}: an envelope is compared with another one"
    assert wanted in capsys.readouterr().err
    # Nor is one of several names ignored.
    assert main(["compare", str(one), str(tmp_path / "b.json"), "--to", str(one)]) == ExitCode.USAGE
    assert wanted in capsys.readouterr().err
    assert main(["compare", str(one), str(tmp_path / "e.json")]) == ExitCode.USAGE
    assert f"{tmp_path / 'e.json'}: No such file" in capsys.readouterr().err
    (tmp_path / "c.json").write_text(one.read_text().replace('"cells"', '"cells": 5, "more"'))
    assert main(["compare", str(one), str(tmp_path / "c.json")]) == ExitCode.USAGE
    assert "c.json: Expected `array`, got `int` - at `$.cells`" in capsys.readouterr().err
    other = write(tmp_path / "d.json", make_cell(1000, name="1MB.read"))
    assert main(["compare", str(one), str(other)]) == ExitCode.USAGE
    golden_words(capsys.readouterr().err)


@pytest.mark.parametrize("lasted", [None, True])
def test_an_envelope_of_version_1_is_compared(
    lasted: bool | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It had one mixed load, or null, and nothing of stores."""
    two = write(tmp_path / "b.json", make_cell(700))
    data = json.loads(write(tmp_path / "a.json", make_cell(1000)).read_text())
    del data["stores"]
    mixed = MixedLoad(
        share=0.7, asked=9.0, rate=9.0, moved=9.0, seconds=9.0, p50=1.0, p99=1.0, failed=0.0, lasted=True
    )
    old = json.loads(record.format_json(mixed)) if lasted else None
    (tmp_path / "a.json").write_text(json.dumps({**data, "version": 1, "mixed": old}))
    assert main(["compare", str(tmp_path / "a.json"), str(two)]) == ExitCode.OK
    said = " ".join(capsys.readouterr().out.split())
    assert "slower: 4kB.read ops/s (-30.0 %)" in said
    assert ("mixed load lasted: yes before, not run after" in said) is bool(lasted)
