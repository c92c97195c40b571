"""A run that conditions are judged on, and scenarios that have conditions."""

from __future__ import annotations

from pathlib import Path

from result_rows import block, row

from ssbench.base.errors import GateResult
from ssbench.results.block import Failure
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize
from ssbench.statistics.thresholds import ConditionJudgment

WEIGHTS = (1.0, 1.0, 1.0, 1.0)
CLASSES = (SizeClass("small", 1000, 1000, 1, WEIGHTS), SizeClass("big.one", 9000, 9000, 1, WEIGHTS))


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


def judgment(text: str, value: float) -> ConditionJudgment:
    condition = parse_condition(text)
    return ConditionJudgment(
        condition, value, GateResult.FAILED if condition.holds(value) else GateResult.PASSED
    )
