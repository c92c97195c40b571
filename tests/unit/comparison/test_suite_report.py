"""What a suite has found: the table, its intervals, its conditions, and two suites beside each other."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from golden_words import GoldenWords
from queued_groups import play
from said import ALL_OK
from suite_runs import make_run, row

from ssbench.base.errors import ExitCode, GateResult, Undecided
from ssbench.comparison import suite_report
from ssbench.comparison.comparison_verdict import Word
from ssbench.comparison.run_comparison import Judged
from ssbench.comparison.suite_report import (
    SuiteFindings,
    judge_row,
    judge_suite,
    make_suite_csv,
    make_suite_document,
    make_suite_json,
    make_suite_junit,
)
from ssbench.comparison.suite_rows import KeptRun, SuiteRow
from ssbench.document.elements import Tone, View
from ssbench.reports import products
from ssbench.reports.part_changes import ChangesByPart
from ssbench.reports.products import Product
from ssbench.results.run_description import EventFacts
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.suite_file import GroupCost
from ssbench.statistics.over_time import EventEffect
from ssbench.statistics.thresholds import ConditionJudgment


def findings(*rows: SuiteRow, **more: object) -> SuiteFindings:
    return SuiteFindings("s", rows, **more)


def at_store(name: str, store: str) -> SuiteRow:
    words = {word.partition("=")[0]: word for word in name.split(" ")[1:]}
    return replace(row(name), store=store, words=words)


def judged(run: KeptRun, text: str, value: float, result: GateResult) -> KeptRun:
    return replace(run, conditions=(ConditionJudgment(parse_condition(text), value, result),))


def test_what_was_skipped_is_in_every_format(golden_words: GoldenWords) -> None:
    why = "http://h: not possible over the S3 API: segment_size: too small"
    skipped = [SuiteRow(name, (), skipped=why) for name in ("b", "c")]
    found = findings(row("a"), *skipped, rounds=3, scale="1/64", left_out=4)
    verdict = judge_suite(found)
    assert (verdict.word, verdict.exit_code) == (Word.UNDECIDED, ExitCode.OK)
    golden_words(verdict.headline)
    assert verdict.reasons == (f"Skipped: b, c: {why}",)
    text = " ".join(products.find_writer(Product.SUITE, "text")(found, View()).split())
    for said in (verdict.headline, f"Skipped: b, c: {why}", "scale 1/64", "4 rows of the suite left out"):
        assert said in text
    report = json.loads(make_suite_json(found))
    assert (report["scale"], report["left_out"]) == ("1/64", 4)
    assert [each["skipped"] for each in report["rows"]] == [None, why, why]
    rows = list(csv.DictReader(io.StringIO(make_suite_csv(found))))
    assert [each["result"] for each in rows] == ["ok", "skipped", "skipped"]
    assert make_suite_junit(found).count("<skipped") == 2


def test_a_row_has_each_figure_with_its_interval() -> None:
    found = findings(row("a"), row("b"), rounds=3)
    text = products.find_writer(Product.SUITE, "text")(found, View())
    assert f"2 rows, 6 runs: {ALL_OK}" in text
    line = next(line for line in text.splitlines() if line.startswith("a "))
    assert "+-" in line
    rows = list(csv.DictReader(io.StringIO(make_suite_csv(found))))
    assert [each["row"] for each in rows] == ["a", "b"]
    assert float(rows[0]["p50_low"]) < float(rows[0]["p50"]) < float(rows[0]["p50_high"])
    report = json.loads(make_suite_json(found))
    assert report["format"] == "ssbench suite"
    assert len(report["rows"][0]["stat_files"]) == 3
    html = products.find_writer(Product.SUITE, "html")(found, View())
    assert "Throughput against latency" in html


def test_a_single_round_has_no_intervals() -> None:
    found = findings(row("a", 1))
    assert "+-" not in products.find_writer(Product.SUITE, "text")(found, View())
    assert json.loads(make_suite_json(found))["rows"][0]["figures"]["p50"]["low"] is None


def test_stores_have_a_column() -> None:
    rows = [at_store(f"a store={store} users=2", store) for store in ("swift", "s3")]
    rows[1] = replace(
        rows[1],
        runs=tuple(replace(each, storage_url="s3+http://h") for each in rows[1].runs),
    )
    found = findings(*rows, row("b"), rounds=3)
    text = products.find_writer(Product.SUITE, "text")(found, View(columns=200))
    lines = [line.split()[:3] for line in text.splitlines()]
    assert ["a", "users=2", "swift"] in lines
    assert ["s3"] in [line[:1] for line in lines]  # of the same row as above
    assert any(line[:2] == ["b", "-"] for line in lines)
    assert "store s3: s3+http://h" in text
    table = list(csv.DictReader(io.StringIO(make_suite_csv(found))))
    assert [(each["row"], each["store"]) for each in table][1:] == [("a store=s3 users=2", "s3"), ("b", "")]
    records = json.loads(make_suite_json(found))["rows"]
    assert [each["store"] for each in records] == ["swift", "s3", None]
    assert records[1]["storage_urls"] == ["s3+http://h"]


def test_conditions_that_many_rows_share_are_one_sentence(golden_words: GoldenWords) -> None:
    rows = [
        SuiteRow(name, (judged(make_run(1), "errors > 1%", 0.0, GateResult.UNDECIDED),)) for name in "abcde"
    ]
    reasons = judge_suite(findings(*rows)).reasons
    golden_words([each for each in reasons if "errors > 1%" in each])


def test_rounds_that_follow_each_other_know_no_drift() -> None:
    """Neighbours are alike: what drifts from row to row is in no interval."""

    def write_text(found: SuiteFindings) -> str:
        return " ".join(products.find_writer(Product.SUITE, "text")(found, View()).split())

    rows = row("a"), row("b")
    said = "rounds of a row followed each other"
    assert said in write_text(findings(*rows, rounds=3, in_turn=False))
    assert said not in write_text(findings(*rows, rounds=3))
    assert said not in write_text(findings(rows[0], rounds=3, in_turn=False))


@pytest.mark.parametrize(
    ("codes", "fell", "back"),
    [
        ([0, 0], [True, True], [3.0, 5.0]),
        ([0, 0], [True, False], [3.0, 0.0]),
        ([0, 0], [True, True], [3.0, None]),
        ([0, 0], [False, False], [0.0, 0.0]),
        ([0, 0], [None, None], [None, None]),
        ([0, None], [None, False], [None, 0.0]),
    ],
)
def test_what_commands_did_in_all_rounds(
    codes: list[int | None], fell: list[bool | None], back: list[float | None], golden_words: GoldenWords
) -> None:
    runs = []
    for code, has_fallen, seconds in zip(codes, fell, back, strict=True):
        facts = EventFacts(at=11.0, command="rm x", began=1.0, ended=2.0, exit_code=code)
        effect = EventEffect(facts, 11.0, 5.0, seconds, has_fallen, None, None, None)
        runs.append(replace(make_run(1), events=(effect,)))
    found = findings(SuiteRow("a", tuple(runs)), row("b"))
    text = " ".join(products.find_writer(Product.SUITE, "text")(found, View()).split())
    assert "a: rm x (at 11 s)" in text
    golden_words(text)
    (event,) = json.loads(make_suite_json(found))["rows"][0]["events"]
    assert (event["command"], event["back_after"]) == ("rm x", back)


@pytest.mark.parametrize(
    ("values", "results", "wanted"),
    [
        ([1.2, 1.3, 1.2], "FFF", GateResult.FAILED),
        ([0.2, 0.3, 0.2], "PPP", GateResult.PASSED),
        ([1.2, 0.3, 1.0], "FPU", GateResult.UNDECIDED),
        ([1.2, 1.21, 1.19], "FFU", GateResult.FAILED),
        ([0.8, 0.81, 0.79], "PPU", GateResult.PASSED),
        ([1.01], "U", GateResult.UNDECIDED),
    ],
)
def test_rounds_decide_a_condition_together(values: list[float], results: str, wanted: GateResult) -> None:
    words = {"F": GateResult.FAILED, "P": GateResult.PASSED, "U": GateResult.UNDECIDED}
    runs = [
        judged(make_run(1), "p50 > 1s", value, words[result])
        for value, result in zip(values, results, strict=True)
    ]
    (found,) = judge_row(SuiteRow("a", tuple(runs)))
    assert found.result is wanted


def test_rounds_without_errors_count_together() -> None:
    """Each has 200 operations, too few to tell that at most 1 % fail; all four together have enough."""
    runs = [
        replace(
            make_run(1),
            conditions=(
                ConditionJudgment(parse_condition("errors > 1%"), 0.0, GateResult.UNDECIDED, count=200),
            ),
        )
    ] * 4
    assert [each.result for each in judge_row(SuiteRow("a", tuple(runs)))] == [GateResult.PASSED]
    assert [each.result for each in judge_row(SuiteRow("a", tuple(runs[:1])))] == [GateResult.UNDECIDED]


def test_each_row_is_judged_once_for_all_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def note(row: SuiteRow, rounds: int) -> list[Judged]:
        calls.append(row.name)
        return judge_row(row, rounds)

    monkeypatch.setattr(suite_report, "judge_row", note)
    found = findings(row("a", 2), row("b", 2), rounds=2)
    for make in (judge_suite, make_suite_document, make_suite_csv, make_suite_junit, make_suite_json):
        make(found)
    assert calls == ["a", "b"]


def test_the_exit_code_is_that_of_the_worst_row() -> None:
    good = row("good", 1)
    failed = SuiteRow("bad", (judged(make_run(1), "p50 > 1s", 2.0, GateResult.FAILED),))
    found = findings(good, failed)
    verdict = judge_suite(found)
    assert (verdict.exit_code, verdict.word) == (ExitCode.THRESHOLD, Word.FAILED)
    assert verdict.headline == "2 rows, 2 runs: 1 failed (bad)"
    assert "bad: fail-if p50 > 1s: FAILED (2s)" in verdict.reasons
    junit = make_suite_junit(found)
    assert junit.count("<failure") == 1
    open_row = SuiteRow("open", (judged(make_run(1), "p50 > 1s", 1.0, GateResult.UNDECIDED),))
    codes = [judge_suite(findings(open_row, undecided=each)).exit_code for each in Undecided]
    assert codes == [ExitCode.UNDECIDED, ExitCode.THRESHOLD, ExitCode.OK]
    ended = SuiteRow("c", (replace(make_run(2), code=ExitCode.FAILED, reasons=("3 operations failed",)),))
    assert judge_suite(findings(good, ended)).exit_code is ExitCode.FAILED
    early = judge_suite(findings(good, row("d", 0), why="interrupted", code=ExitCode.INTERRUPTED))
    assert (early.exit_code, early.word) == (ExitCode.INTERRUPTED, Word.UNDECIDED)
    assert "Fewer than 1 run: d." in early.reasons


def write_text(found: SuiteFindings, columns: int = 200) -> str:
    return str(products.find_writer(Product.SUITE, "text")(found, View(columns=columns)))


def test_a_headline_counts_runs_with_warnings(golden_words: GoldenWords) -> None:
    warned = replace(make_run(1), warnings=("Load generator overloaded",))
    calm = replace(make_run(2), warnings=())
    rows = SuiteRow("a", (warned, calm)), SuiteRow("b", (warned, calm))
    assert judge_suite(findings(*rows)).headline == "2 rows, 4 runs: nothing failed; 2 runs with warnings"
    good = SuiteRow("a", (judged(warned, "p50 > 1s", 0.1, GateResult.PASSED),))
    assert judge_suite(findings(good)).headline == "1 row, 1 run: no condition holds; 1 run with warnings"
    unclear = SuiteRow("a", (judged(warned, "p50 > 1s", 1.0, GateResult.UNDECIDED),))
    assert judge_suite(findings(unclear)).headline.endswith(": 1 condition undecided; 1 run with warnings")
    golden_words(judge_suite(findings(SuiteRow("b", (calm,)))).headline)
    tones = [
        suite_report.make_suite_document(each).verdict.tone
        for each in (findings(good), findings(SuiteRow("b", (calm,))))
    ]
    assert tones == [Tone.DOUBTFUL, Tone.GOOD]
    short = judge_suite(findings(SuiteRow("b", (calm,)), rounds=2))
    assert short.headline == "1 row, 1 run: 1 row with fewer than 2 runs"


def test_an_undecided_row_that_lacks_rounds_is_not_good(golden_words: GoldenWords) -> None:
    """Two rounds together would do; a suite that has all its rounds says that it needs them together."""
    condition = ConditionJudgment(parse_condition("errors > 1%"), 0.0, GateResult.UNDECIDED, count=400)
    own = SuiteRow("a", (replace(make_run(1), conditions=(condition,), warnings=()),) * 2)
    whole, early = findings(own, rounds=2), findings(own, rounds=4, why="interrupted")
    assert judge_row(own, 2)[0].result is GateResult.PASSED
    golden_words(judge_suite(whole).headline)
    assert "gate: by all rounds of a row together" in write_text(whole)
    assert "gate: by all rounds of a row together" not in write_text(early)
    (found,) = judge_row(own, 4)
    assert (found.result, found.needs) == (GateResult.UNDECIDED, "the rounds that were not run")
    assert next(csv.DictReader(io.StringIO(make_suite_csv(early))))["result"] == "undecided"
    line = next(line for line in write_text(early).splitlines() if line.startswith("a "))
    assert line.split()[-1] == "?"


@pytest.mark.parametrize(("counts", "said"), [((2, 2), "2"), ((3, 2), "2 to 3"), ((2, 1), "2"), ((1, 1), "")])
def test_intervals_are_of_the_rounds_that_there_are(counts: tuple[int, int], said: str) -> None:
    rows = [row(name, count) for name, count in zip("ab", counts, strict=True)]
    text = " ".join(write_text(findings(*rows, rounds=4, why="interrupted")).split())
    assert (f"mean of {said} rounds" in text) == bool(said)
    assert "mean of 4 rounds" not in text


def two_stores(slow: float, rounds: int = 4, others: int = 0) -> SuiteFindings:
    """Return a suite of five cases at two stores, one of which is slower at the second, run in turn."""
    rows = []
    for place in range(5):
        for side, store in enumerate(("swift", "s3")):
            factor = slow if side and place == 2 else 1.0
            made = row(f"case{place} store={store}", rounds, factor)
            runs = [
                replace(run, figures=replace(run.figures, started=1e9 + 100.0 * number + (side ^ number % 2)))
                for number, run in enumerate(made.runs)
            ]
            rows.append(replace(made, runs=tuple(runs), store=store, words={"store": f"store={store}"}))
    rows += [at_store(f"case0 store=other{number}", f"other{number}") for number in range(others)]
    return findings(*rows, row("elsewhere"), rounds=rounds)


def test_two_stores_have_a_verdict() -> None:
    found = two_stores(1.5)
    compared = found.compare_values()["store"]
    assert (compared.before, compared.after, compared.in_turn) == ("swift", "s3", True)
    assert [(each.name, each.runs) for each in compared.rows] == [(f"case{n}", (4, 4)) for n in range(5)]
    assert {each.name for each, *_ in compared.shown()} == {"case2"}
    text = " ".join(write_text(found).split())
    assert "Stores: s3 against swift: slower: case2 " in text
    assert "Each cell: the change from swift to s3; *" in text
    assert "5 rows with " in text
    stores = json.loads(make_suite_json(found))["stores"]
    assert (stores["before"], stores["after"], stores["verdict"]["word"]) == ("swift", "s3", "slower")
    # What the suite is worth does not depend on which store is faster.
    assert judge_suite(found).exit_code is ExitCode.OK


def test_stores_without_a_difference_or_without_rounds_have_none() -> None:
    assert "Stores: s3 against swift: no difference shown" in " ".join(write_text(two_stores(1.0)).split())
    text = " ".join(write_text(two_stores(1.5, rounds=1)).split())
    assert "Stores: s3 against swift: no verdict." in text
    assert "a verdict needs 3 or more" in text


def test_only_rows_of_two_stores_are_compared() -> None:
    assert not two_stores(1.0, others=1).compare_values()
    assert not findings(row("a"), row("b")).compare_values()
    apart = [at_store(f"{name} store={store}", store) for name, store in (("a", "x"), ("b", "y"))]
    assert not findings(*apart).compare_values()
    assert "Stores:" not in write_text(findings(*apart))
    assert json.loads(make_suite_json(findings(*apart)))["stores"] is None


def test_values_of_any_key_are_compared() -> None:
    """All values beside the first one are of one family."""
    rows = [
        replace(row(f"{name} users={users}", 4, slow), words={"users": f"users={users}"})
        for name in ("kv", "web", "media")
        for users, slow in ((4, 1.0), (8, 1.5), (16, 1.0))
    ]
    found = findings(*rows, rounds=4, between="users")
    (compared,) = found.compare_values().values()
    assert (compared.before, compared.after) == ("4", "8, 16")
    shown = {each.name for each, *_ in compared.shown()}
    assert shown == {"kv: 8", "web: 8", "media: 8"}
    assert compared.tests >= 6 * 6
    assert "users: 8, 16 against 4: slower: " in " ".join(write_text(found).split())
    report = json.loads(make_suite_json(found))
    assert [each["name"] for each in report["between"]["rows"]][:2] == ["kv: 8", "kv: 16"]
    assert report["stores"] is None
    assert judge_suite(found).exit_code is ExitCode.OK
    assert json.loads(make_suite_json(replace(found, between="")))["between"] is None


def test_each_block_of_a_narrow_table_names_stores() -> None:
    names = [(scenario, store) for store in ("swift", "s3") for scenario in ("kv", "web")]
    rows = [at_store(f"{name} store={store} users=2", store) for name, store in names]
    text, _, _ = write_text(findings(*rows, rounds=3), 80).partition("Stores: ")  # which has rows of both
    lines = [line.split()[:3] for line in text.splitlines()]
    blocks = lines.count(["kv", "users=2", "swift"])
    assert blocks > 1
    assert lines.count(["kv", "users=2", "s3"]) == blocks
    assert ["kv", "users=2"] not in [line[:2] for line in lines if line[2:] not in (["swift"], ["s3"])]


COST = "web.read.p99 > +20% with noisy"


@pytest.mark.parametrize(
    ("one_queue", "rounds", "result"),
    [(True, 6, GateResult.FAILED), (False, 6, GateResult.PASSED), (True, 1, GateResult.UNDECIDED)],
)
def test_what_a_group_costs_the_others_is_a_condition_of_a_row(
    one_queue: bool, rounds: int, result: GateResult, golden_words: GoldenWords
) -> None:
    cost = GroupCost(COST, parse_condition("web.read.p99 > +20%", relative=True, grouped=True), "noisy")
    random = np.random.default_rng(5)

    def make_row(name: str, groups: list[str], offset: int) -> SuiteRow:
        made = row(name, rounds)
        figures = [
            play(random, groups, one_queue=one_queue, turn=2 * number + (number + offset) % 2)
            for number in range(rounds)
        ]
        runs = [replace(run, run=own) for run, own in zip(made.runs, figures, strict=True)]
        return replace(made, runs=tuple(runs), costs=(cost,) if offset else ())

    rows = make_row("shop without=noisy", ["web"], 0), make_row("shop", ["web", "noisy"], 1)
    found = findings(*rows, rounds=rounds)
    assert [[each.result for each in judged if each.condition == COST] for judged in found.judged] == [
        [],
        [result],
    ]
    code = {GateResult.FAILED: ExitCode.THRESHOLD, GateResult.UNDECIDED: ExitCode.UNDECIDED}
    assert judge_suite(found).exit_code is code.get(result, ExitCode.OK)
    if result is not GateResult.PASSED:
        golden_words(" ".join(write_text(found).split()))
    none = replace(rows[0], runs=())
    assert findings(none, rows[1], rounds=rounds).judged[1][-1].came == "not measured"


def test_by_which_part_two_stores_differ_is_in_each_row_of_both() -> None:
    rows = [at_store("a store=one", "one"), at_store("a store=two", "two"), at_store("b store=one", "one")]
    found = findings(*rows)
    [(name, cells, changes)] = found.list_store_rows()
    assert (name, cells) == ("a", ("a store=one", "a store=two"))
    assert dict(changes)["p50"].change is not None
    made = replace(found, by_part={"a": ChangesByPart("READ is 2.00 ms slower", ())})
    text = " ".join(products.find_writer(Product.SUITE, "text")(made, View()).split())
    assert "a, by the logs of both: READ is 2.00 ms slower" in text
    assert json.loads(make_suite_json(made))["by_part"]["a"]["answer"] == "READ is 2.00 ms slower"
