"""The verdict of a run in each output."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from delivered_runs import closed, kept, overloaded

from ssbench.base.errors import ExitCode
from ssbench.reports import junit
from ssbench.reports import writing as reports
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.operations import OPERATIONS
from ssbench.statistics.run_verdict import Outcome, verdict_of

#: What a report says of each outcome: the mark of Markdown, the colour of the page.
SHOWN = {
    Outcome.GOOD: ("\u2705", "good"),
    Outcome.WARNED: ("\u26a0\ufe0f", "doubtful"),
    Outcome.UNDECIDED: ("\u26a0\ufe0f", "doubtful"),
    Outcome.NOT_DELIVERED: ("\u274c", "bad"),
    Outcome.FAILED: ("\u274c", "bad"),
    Outcome.INTERRUPTED: ("\u274c", "bad"),
}
CASES = {
    "good": (closed(), [], ExitCode.OK, Outcome.GOOD),
    "rate kept": (kept(), ["read.p99 > 200ms"], ExitCode.OK, Outcome.GOOD),
    "warning": (closed(warnings=("hot",)), [], ExitCode.OK, Outcome.WARNED),
    "rate not kept": (overloaded(), [], ExitCode.NOT_DELIVERED, Outcome.NOT_DELIVERED),
    "as little was allowed": (overloaded(), ["undelivered > 90%"], ExitCode.OK, Outcome.WARNED),
    "less was allowed": (overloaded(), ["undelivered > 50%"], ExitCode.THRESHOLD, Outcome.FAILED),
    "threshold": (overloaded(), ["read.p99 > 200ms"], ExitCode.THRESHOLD, Outcome.FAILED),
    "undecided": (closed(), ["read.p99.99 > 1s"], ExitCode.UNDECIDED, Outcome.UNDECIDED),
    "interrupted": (closed(interrupted=True), [], ExitCode.INTERRUPTED, Outcome.INTERRUPTED),
    "interrupted open loop": (
        replace(overloaded(), interrupted=True),
        ["read.p99 > 200ms"],
        ExitCode.INTERRUPTED,
        Outcome.INTERRUPTED,
    ),
    "Swift gone": (closed(ended_early=True, error_code=3), [], ExitCode.CLUSTER, Outcome.FAILED),
    "of a later version": (closed(ended_early=True, error_code=99), [], ExitCode.FAILED, Outcome.FAILED),
    "killed": (closed(complete=False), [], ExitCode.FAILED, Outcome.FAILED),
    "no upload": (closed(trouble=True), [], ExitCode.FAILED, Outcome.FAILED),
}


@pytest.mark.parametrize("case", CASES)
def test_every_output_shows_the_same_verdict(case: str) -> None:
    numbers, conditions, code, outcome = CASES[case]
    options = ReportOptions(fail_if=tuple(map(parse_condition, conditions)))
    found = verdict_of(numbers, options.fail_if)
    assert (found.exit_code, found.outcome) == (code, outcome)
    mark, tone = SHOWN[outcome]
    assert make_run_report("summary_md", numbers, options).startswith(f"### {mark} ")
    assert f"<div class='verdict {tone}'" in make_run_report("html", numbers, options)
    made = json.loads(reports.make_run_report("json", numbers, options))["verdict"]
    assert (made["exit_code"], made["outcome"]) == (int(code), outcome.value)
    assert [each["text"] for each in made["reasons"]] == [each.text for each in found.reasons]
    (suite,) = ElementTree.fromstring(junit.make_run_junit(numbers, options))
    assert (suite.get("failures") != "0") is (code not in {ExitCode.OK, ExitCode.UNDECIDED})
    assert (suite.get("skipped") != "0") is (
        case in {"undecided", "as little was allowed", "less was allowed"}
    )
    word = outcome.value.upper()
    first = next(
        line for line in make_run_report("summary", numbers, options).splitlines() if "ops/s;" in line
    )
    assert first.startswith(f"{word}: ")
    assert max(map(len, make_run_report("summary", numbers, options).splitlines())) <= 80


@pytest.mark.parametrize(("missing", "outcome"), [(40, Outcome.GOOD), (400, Outcome.WARNED)])
def test_what_had_no_object_is_a_reason_in_every_output(missing: int, outcome: Outcome) -> None:
    numbers = closed(not_sendable=((OPERATIONS.named("delete"), "tiny", missing),))
    found = verdict_of(numbers)
    assert (found.outcome, found.exit_code) == (outcome, ExitCode.OK)
    share = {40: "0.83", 400: "7.69"}[missing]
    text = (
        f"{missing} of {4804 + missing:,} operations ({share} %) were not sent, because no object existed:"
        f" {missing} x DELETE"
    )
    assert [each.text for each in found.reasons] == [text]
    options = ReportOptions()
    mark = "! " if outcome is Outcome.WARNED else ""
    assert f" errors {mark}{text}" in " ".join(make_run_report("summary", numbers, options).split())
    for name in ("html", "json", "junit"):
        assert text in reports.make_run_report(name, numbers, options)
