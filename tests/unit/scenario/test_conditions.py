"""Conditions on figures: what is read, what is refused and with which words, and what comes of them."""

from __future__ import annotations

import logging
import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_load import play
from result_rows import block, row

from ssbench.base.errors import ClusterError, ExitCode, GateResult, ScenarioError, Undecided, UsageError
from ssbench.cli import run_report
from ssbench.cli.master import main
from ssbench.document.units import Unit
from ssbench.results.block import Failure
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.options import ErrorLimit, parse_error_limit
from ssbench.scenario import conditions
from ssbench.scenario.conditions import parse_condition, parse_conditions
from ssbench.scenario.consistency import override
from ssbench.scenario.model import Scenario, SizeClass, Stage
from ssbench.scenario.reading import read_scenario
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import (
    Kind,
    Load,
    Reason,
    RunVerdict,
    find_condition_reasons,
    find_failure_reasons,
)
from ssbench.statistics.summary import summarize
from ssbench.statistics.thresholds import ConditionJudgment, judge_conditions, judge_run

WEIGHTS = (1.0, 1.0, 1.0, 1.0)
CLASSES = (SizeClass("small", 1000, 1000, 1, WEIGHTS), SizeClass("big.one", 9000, 9000, 1, WEIGHTS))


@pytest.mark.parametrize(
    ("text", "subject", "figure", "relation", "limit", "unit"),
    [
        ("read.p99 > 200ms", ("read", None), "p99", ">", 0.2, Unit.SECONDS),
        ("READ.P99>=1m30s", ("read", None), "p99", ">=", 90.0, Unit.SECONDS),
        (" total.rate<500 ", (None, None), "rate", "<", 500.0, Unit.PER_SECOND),
        ("rate < 500/s", (None, None), "rate", "<", 500.0, Unit.PER_SECOND),
        ("errors > 0.1%", (None, None), "errors", ">", 0.001, Unit.SHARE),
        ("all.errors > 3", (None, None), "errors", ">", 3.0, Unit.COUNT),
        (
            "create.mb_per_s <= 100.5MB/s",
            ("create", None),
            "mb_per_s",
            "<=",
            100.5,
            Unit.MEGABYTES_PER_SECOND,
        ),
        ("read.small.p99.9 > 2 s", ("read", "small"), "p99.9", ">", 2.0, Unit.SECONDS),
        ("read.big.one.max > 2s", ("read", "big.one"), "max", ">", 2.0, Unit.SECONDS),
        ("first_p50 > 3ms", (None, None), "first_p50", ">", 0.003, Unit.SECONDS),
        ("delete.retries > 5 %", ("delete", None), "retries", ">", 0.05, Unit.SHARE),
        ("p100 > 1s", (None, None), "p100", ">", 1.0, Unit.SECONDS),
        ("read.response_p99.9 > 1s", ("read", None), "response_p99.9", ">", 1.0, Unit.SECONDS),
    ],
)
def test_what_is_read(text, subject, figure, relation, limit, unit):
    found = parse_condition(text)
    assert (found.operation, found.size_class) == subject
    assert (found.figure, found.relation, found.unit) == (figure, relation, unit)
    assert found.limit == pytest.approx(limit)
    assert parse_condition(found.text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a condition, such as 'read.p99 > 200ms'"),
        ("read.p99", "is not a condition"),
        ("p99 = 3s", "is not a condition"),
        ("p99>200ms and errors>1%", "one condition is expected; give each by itself"),
        (
            "reed.p99 > 1s",
            "did you mean read?",
        ),
        ("read.p9x > 1s", "'p9x' is not a figure"),
        ("read.rat < 5", "did you mean rate?"),
        ("p0 > 1s", "'p0' is not a figure"),
        ("p101 > 1s", "'p101' is not a figure"),
        ("p99 > 200", "the limit of p99 needs a unit"),
        ("p99 > 1e3", "the limit of p99 needs a unit"),
        ("p99 > 5x", "'x' is not a unit of time"),
        ("p99 > 5%", "the limit of p99 needs a unit"),
        ("rate > 5%", "the limit of rate is a number such as 500/s"),
        ("rate > -5", "the limit of rate is a number"),
        ("errors > 101%", "never more than 100%"),
        ("total.small.p99 > 1s", "size classes are of one operation"),
        ("read.small.retries > 1", "not counted by size class"),
        ("read.p99 > +10%", "needs two runs"),
        ("x" * 500 + " > 1s", "is not a condition"),
    ],
)
def test_what_is_refused_is_told_in_one_line(text, words):
    with pytest.raises(ValueError, match=r".") as error:
        parse_condition(text)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_a_change_where_there_are_two_runs():
    found = parse_condition("read.p99 > +10%", relative=True)
    assert found.relative
    assert found.limit == pytest.approx(0.1)
    assert found.holds(0.11)
    assert not found.holds(0.09)
    assert parse_condition("rate < -5%", relative=True).holds(-0.06)
    assert parse_condition("rate < 5", relative=True).unit is Unit.PER_SECOND


def test_several_with_and():
    assert [each.text for each in parse_conditions("read.p99 <= 50ms and errors <= 0.1%")] == [
        "read.p99 <= 50ms",
        "errors <= 0.1%",
    ]


@settings(max_examples=40)
@given(
    st.text(max_size=40)
    | st.from_regex(r"[a-z]{0,6}\.?[a-z_p0-9.]{1,8} ?[<>]=? ?[+-]?[0-9.]{1,5}[a-z%/]{0,3}")
)
def test_any_text_is_a_condition_or_a_line_that_says_why_not(text):
    try:
        found = parse_condition(text, relative=True)
    except ValueError:
        return
    assert parse_condition(found.text, relative=True) == found
    assert found.spell(found.limit)
    assert found.rank is None or 0 < found.rank <= 100


# -- against a run ------------------------------------------------------------------------------


def run(path: Path, fail_if: tuple[str, ...] = ()) -> RunStatistics:
    """1,000 small reads in 100 s of 1 to 1,000 ms, short and long ones mixed; every hundredth failed."""
    scenario = Scenario("s", CLASSES, user_count=1, operation_count=1, fail_if=fail_if)
    writer = RunResultsWriter(path, RunDescription(scenario))
    last = [0.001 * (617 * number % 1000 + 1) for number in range(1000)]
    rows = [
        row(operation=1, size=1000, first_byte=each / 2, last_byte=each, completed=1e9 + each + number / 10)
        for number, each in enumerate(last)
    ]
    failures = {number: Failure("HTTP 503", "", {"HTTP 503": 2}) for number in range(0, 1000, 100)}
    writer.add(block(rows, failures=failures))
    writer.end(RunSummary(ended=1e9 + 100))
    return summarize(open_results(path))


@pytest.mark.parametrize(
    ("text", "value", "failed"),
    [
        ("read.p50 > 400ms", 0.5005, True),
        ("read.p50 > 600ms", 0.5005, False),
        ("read.small.first_max > 0.4s", 0.5, True),
        ("mean < 1ms", 0.5, False),
        ("errors > 0.2%", 0.01, True),
        ("errors > 2%", 0.01, False),
        ("errors > 0%", 0.01, True),
        ("read.errors > 9", 10, True),
        ("count < 991", 990, True),
        ("rate < 8", 9.89, False),
        ("read.mb_per_s < 0.008", 0.00989, False),
    ],
)
def test_a_run_is_judged(tmp_path, text, value, failed):
    (judgment,) = judge_conditions(run(tmp_path / "run.stat.gz"), [parse_condition(text)])
    assert judgment.value == pytest.approx(value, rel=0.02)
    assert judgment.failed is failed
    assert judgment.text.startswith(f"{text}: {'FAILED' if failed else 'ok'} (")


@pytest.mark.parametrize(
    "text",
    [
        "create.p99 > 1s",
        "read.response_p99 > 1s",
        "read.big.one.p99 > 1s",
        "create.errors > 1%",
        "undelivered > 0",
    ],
)
def test_what_was_not_measured_fails(tmp_path, text):
    (judgment,) = judge_conditions(run(tmp_path / "run.stat.gz"), [parse_condition(text)])
    assert judgment.failed
    assert judgment.text == f"{text}: FAILED (not measured)"


def test_a_percentile_of_few_operations_is_undecided(tmp_path):
    texts = ["p99.9 > 5s", "p95 > 5s", "p99.9 > 998ms", "p99.9 > 100ms", "p99.9 < 5s"]
    rare, usual, near, clear, below = judge_conditions(
        run(tmp_path / "run.stat.gz"), map(parse_condition, texts)
    )
    assert rare.text == "p99.9 > 5s: undecided (1s, of 990 operations; about 4,600 would decide)"
    assert usual.text == "p95 > 5s: ok (951ms)"
    # 2 of 990 are beyond the limit where one is allowed, which chance explains; 890 it does not.
    assert near.undecided
    # None of 990 is beyond it, and of as many whose 1,000th is, none is in 37 of 100 cases.
    assert below.undecided
    assert clear.text == "p99.9 > 100ms: FAILED (1s, of 990 operations)"


@pytest.mark.parametrize(
    ("texts", "options", "code"),
    [
        (["p99.9 > 5s"], [], 6),
        (["p99.9 > 5s"], ["--undecided", "fail"], 5),
        (["p99.9 > 5s"], ["--undecided", "pass"], 0),
        (["p99.9 > 5s", "p95 > 5ms"], ["--undecided", "pass"], 5),
        (["p99.9 > 5s", "p95 > 5ms"], [], 5),
        (["p95 > 5s"], ["--undecided", "fail"], 0),
    ],
)
def test_an_undecided_condition_has_an_exit_code_of_its_own(tmp_path, texts, options, code, capsys):
    path = tmp_path / "run.stat.gz"
    run(path, ("errors > 5%",))
    conditions = [word for text in texts for word in ("--fail-if", text)]
    assert main(["report-scenario", "-s", str(path), "--report", "summary", *conditions, *options]) == code
    out, err = capsys.readouterr()
    if "p99.9 > 5s" in texts:
        assert "fail-if p99.9 > 5s: undecided (1s, of 990 operations; about 4,600 would decide" in out
        assert "WARNING:fail-if p99.9 > 5s: undecided" in err


def test_percentiles_of_what_never_began_fail_pass_or_are_undecided():
    numbers = play(lambda sent: sent + 0.0114, [Stage(5.0, (3, 3), (2000.0, 2000.0))])
    texts = [
        "read.p99 > 200ms",
        "read.response_p99 > 200ms",
        "read.service_p99 > 200ms",
        "p50 > 3s",
        "p5 > 5s",
        "p99 < 200ms",
        "mean > 1s",
        "max > 10s",
        "undelivered > 1%",
        "undelivered > 9000",
    ]
    found = [judgment.text for judgment in judge_conditions(numbers, map(parse_condition, texts))]
    assert found[0].startswith("read.p99 > 200ms: FAILED (at least 4.3")
    assert found[1].startswith("read.response_p99 > 200ms: FAILED (at least 4.3")
    assert found[2] == "read.service_p99 > 200ms: ok (11.4ms)"
    assert found[3].startswith("p50 > 3s: undecided (at least 2.1")
    assert found[3].endswith("s, because operations that were due never began)")
    assert re.fullmatch(r"p5 > 5s: ok \(at least 2\d\dms\)", found[4])
    assert found[5].startswith("p99 < 200ms: ok (at least 4.3")
    assert found[6].startswith("mean > 1s: FAILED (at least 2.1")
    assert found[7].startswith("max > 10s: undecided (at least 4.3")
    assert re.fullmatch(r"undelivered > 1%: FAILED \(86\.\d%\)", found[8])
    assert re.fullmatch(r"undelivered > 9000: ok \(868\d\)", found[9])


def test_a_rate_that_was_kept_delivers_all():
    numbers = play(lambda sent: sent + 0.0114, [Stage(5.0, (30, 30), (200.0, 200.0))])
    (judgment,) = judge_conditions(numbers, [parse_condition("undelivered > 0")])
    assert judgment.text == "undelivered > 0: ok (0)"
    with pytest.raises(ValueError, match="undelivered is of all operations together"):
        parse_condition("read.undelivered > 1%")


def test_conditions_of_the_scenario_are_judged_again_and_once(tmp_path):
    found = run(tmp_path / "run.stat.gz", ("errors > 5%", "no condition at all"))
    first, unknown, second = judge_run(found, [parse_condition("errors > 5%"), parse_condition("rate < 1")])
    assert first.text == "errors > 5%: ok (1%)"
    assert second.text.startswith("rate < 1: ok (")
    assert unknown.failed  # a gate that nobody can read is not open
    assert unknown.text == "'no condition at all': FAILED (this version of ssbench cannot read it)"


def test_report_scenario_exits_with_5_and_prints_each(tmp_path, capsys):
    path = tmp_path / "run.stat.gz"
    run(path, ("errors > 5%",))
    command = ["report-scenario", "-s", str(path), "--report", "summary"]
    assert main(command) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[-1] == "fail-if errors > 5%: ok (1%)"
    assert main([*command, "--fail-if", "read.p50 > 100ms", "--fail-if", "rate < 1"]) == ExitCode.THRESHOLD
    out, err = capsys.readouterr()
    assert out.splitlines()[-3:-1] == [
        "fail-if errors > 5%: ok (1%)",
        "fail-if read.p50 > 100ms: FAILED (501ms)",
    ]
    assert "ERROR:fail-if read.p50 > 100ms: FAILED (501ms)\n" in err
    assert "rate < 1" not in err
    assert main([*command[:3], "--csv", "--fail-if", "rate < 1"]) == ExitCode.OK
    assert "INFO:fail-if rate < 1: ok (" in capsys.readouterr().err


def test_a_size_class_that_does_not_exist_is_a_wrong_command_line(tmp_path, capsys):
    path = tmp_path / "run.stat.gz"
    run(path)
    assert main(["report-scenario", "-s", str(path), "--fail-if", "read.smal.p99 > 1s"]) == ExitCode.USAGE
    assert "'smal' is not a size class (small, big.one); did you mean small?" in capsys.readouterr().err


# -- scenarios, exit codes ----------------------------------------------------------------------


SCENARIO = """\
name: s
sizes: [{name: small, size_min: 1, size_max: 1}]
initial_files: {small: 1}
operation_count: 1
user_count: 1
crud_profile: [1, 1, 1, 1]
"""


def scenario(path: Path, fail_if: str) -> Scenario:
    file = path / "scenario.yaml"
    file.write_text(f"{SCENARIO}fail_if: {fail_if}\n")
    return read_scenario(str(file))


def test_a_scenario_has_conditions_and_the_command_line_adds_to_them(tmp_path):
    assert scenario(tmp_path, "errors > 1%").fail_if == ("errors > 1%",)
    found = scenario(tmp_path, "[READ.p99 >2s, read.small.max > 5s]")
    assert found.fail_if == ("read.p99 > 2s", "read.small.max > 5s")
    assert override(found, fail_if=["read.p99 > 2s", "rate < 1"]).fail_if == (*found.fail_if, "rate < 1")
    assert scenario(tmp_path, "").fail_if == ()
    with pytest.raises(UsageError, match="'x' is not a size class"):
        override(found, fail_if=["read.x.p99 > 2s"])


@pytest.mark.parametrize(
    ("fail_if", "words"),
    [
        ("[p99 > 200]", "scenario.yaml:7: fail_if: 'p99 > 200': the limit of p99 needs a unit"),
        ("3", "scenario.yaml:7: fail_if: expected a list of conditions, such as 'read.p99 > 200ms', not 3"),
        ("[3]", "expected a list of conditions"),
        ("[read.big.p99 > 1s]", "'big' is not a size class (small)"),
    ],
)
def test_a_wrong_condition_in_a_scenario_has_its_line(tmp_path, fail_if, words):
    with pytest.raises(ScenarioError) as error:
        scenario(tmp_path, fail_if)
    assert words in str(error.value)


def judgment(text: str, value: float) -> ConditionJudgment:
    condition = parse_condition(text)
    return ConditionJudgment(
        condition, value, GateResult.FAILED if condition.holds(value) else GateResult.PASSED
    )


@pytest.mark.parametrize(
    ("outcome", "judgments", "code"),
    [
        ({}, [], ExitCode.OK),
        ({"errors": 1}, [], ExitCode.FAILED),
        ({}, [judgment("rate < 5", 4)], ExitCode.THRESHOLD),
        ({"errors": 1}, [judgment("rate < 5", 6)], ExitCode.FAILED),
        ({"errors": 1}, [judgment("errors > 1%", 0.001)], ExitCode.OK),
        ({"errors": 1}, [judgment("read.errors > 1%", 0.001)], ExitCode.FAILED),
        ({"errors": 1, "trouble": True}, [judgment("errors > 1%", 0.001)], ExitCode.FAILED),
        ({"interrupted": True}, [judgment("rate < 5", 4)], ExitCode.INTERRUPTED),
        ({"error": ClusterError("gone")}, [judgment("rate < 5", 4)], ExitCode.CLUSTER),
    ],
)
def test_exit_codes(outcome, judgments, code):
    done = RunOutcome(run_id=1, seed=1, **outcome)
    total = SimpleNamespace(count=9, failed=done.errors)
    reasons = [
        *find_condition_reasons(judgments, Undecided.REPORT),
        *find_failure_reasons(
            SimpleNamespace(
                total=total, errors={}, start=1.0, not_sendable=(), current=False, warmed_up_failed=0
            ),
            judgments,
        ),
    ]
    found = RunVerdict(tuple(reasons), tuple(judgments), Load(), Load())
    assert run_report.choose_final_code(found, done) == code
    # A run whose figures are not judged.
    assert run_report.choose_final_code(None, done) == done.exit_code


def test_what_no_report_shows_is_logged(caplog):
    with caplog.at_level(logging.INFO):
        judgments = (judgment("rate < 5", 6), judgment("rate < 5", 4))
        reasons = (Reason(Kind.DELIVERY, "9 never began", ExitCode.NOT_DELIVERED),)
        run_report.log_thresholds(RunVerdict(reasons, judgments, Load(), Load()), in_report=False)
    assert caplog.messages == [
        "fail-if rate < 5: ok (6/s)",
        "fail-if rate < 5: FAILED (4/s)",
        "9 never began",
    ]
    assert [each.levelname for each in caplog.records] == ["INFO", "ERROR", "ERROR"]


# -- --max-errors -------------------------------------------------------------------------------


def test_how_many_errors_a_run_may_have():
    assert parse_error_limit("0") == ErrorLimit(count=0)
    assert parse_error_limit("0").exceeded(1, 1)
    assert not parse_error_limit("10").exceeded(10, 10)
    share = parse_error_limit("1 %")
    assert share == ErrorLimit(share=0.01)
    assert str(share) == "1%"
    assert not share.exceeded(99, 99)
    assert not share.exceeded(1, 100)
    assert share.exceeded(2, 100)
    for wrong in ("", "-1", "1.5", "101%", "%", "x", "1e3", "٣"):
        with pytest.raises(ValueError, match=r"such as 100 or 0\.5%"):
            parse_error_limit(wrong)


def test_all_examples_are_conditions():
    for text in conditions.CONDITION_EXAMPLES.split("'")[1::2]:
        assert parse_condition(text)


def test_measured_values_have_three_digits_or_what_tells_them_from_the_limit():
    near = parse_condition("read.p99 > 200ms")
    assert near.spell_measured(0.0143544) == "14.4ms"
    assert near.spell_measured(0.2) == "200ms"
    assert near.spell_measured(0.2000123) == "200.01ms"
    assert near.spell_measured(math.inf) == "inf"
    assert parse_condition("rate < 500").spell_measured(12345.67) == "12346/s"
    assert parse_condition("errors > 3").spell_measured(1234567) == "1234567"
    assert parse_condition("errors > 0.1%").spell_measured(0.00123456) == "0.123%"
