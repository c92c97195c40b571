"""What is the same of all plans: what is said before the first run, and what comes of them."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ssbench.base.errors import UsageError
from ssbench.comparison.suite_rows import KeptRun
from ssbench.comparison.sweep_variables import Sweep, Variable
from ssbench.fleet import wire
from ssbench.plans import plan_work
from ssbench.plans.plan_work import (
    Conclusion,
    PlanSide,
    PlanWork,
    check_containers,
    fit_bench,
    tabulate_trials,
)
from ssbench.plans.repeat_work import RepeatWork
from ssbench.plans.rows_work import PhasesWork
from ssbench.plans.steps_work import SweepWork
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.plan import DoneTrial, PlanEnd, PlanRule, PlanSettings
from ssbench.scenario.scenario_reading import read_scenario

SCENARIO = read_scenario("very_small")


def ways(*labels: str) -> list[PlanSide]:
    return [PlanSide(SCENARIO, RunOptions(label=label)) for label in labels]


def test_too_few_runs_for_a_verdict_are_said_before_the_first(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Closed:
        def __init__(self, _options: object) -> None:
            raise UsageError("no run may begin")

    monkeypatch.setattr(plan_work, "Bench", Closed)
    phases = [(name, ways("a", "b")) for name in ("create", "read")]
    sweep = Sweep(Variable.USERS, (1, 2, 4))

    for work, said in (
        (RepeatWork(ways("a", "b"), 3, 0.0), "--repeat 3: a verdict on two sides needs 4 runs or more"),
        (RepeatWork(ways("a", "b"), 4, 0.0), ""),
        (RepeatWork(ways("a"), 2, 0.0), ""),
        (PhasesWork(phases, 3, 0.0, None), "--repeat 3: a verdict on 2 phases needs 4 rounds or more"),
        (PhasesWork(phases, 4, 0.0, None), ""),
        (PhasesWork([("read", ways("a"))], 1, 0.0, None), ""),
        (
            SweepWork(ways("a", "b"), sweep, 2, 0.0),
            "--repeat 2: a verdict on 3 steps needs 3 rounds",
        ),
        (SweepWork(ways("a", "b"), sweep, 3, 0.0), ""),
        (SweepWork(ways("a"), sweep, 1, 0.0), ""),
    ):
        caplog.clear()
        with pytest.raises(UsageError, match="no run may begin"):
            plan_work.carry_out_work(work, BenchOptions(workers=1), PlanSettings())
        assert [record.message for record in caplog.records if record.levelname == "WARNING"] == (
            [f"{said}{'' if said.endswith('more') else ' or more'}; changes will be shown without one"]
            if said
            else []
        )


@pytest.mark.parametrize("noop", [False, True])
def test_a_plan_says_that_its_runs_sent_nothing(noop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []

    class Told(RepeatWork):
        def conclude(self, end: PlanEnd[KeptRun], took: str) -> Conclusion[Any]:
            said.append(took)
            return Conclusion(self.product, None)

    def make_one(rule: PlanRule[Any], _bench: object, _settings: object, end: PlanEnd[Any]) -> None:
        trial = rule.next([])
        assert trial is not None
        end.done.append(DoneTrial(trial, Path("x.stat.gz"), None))

    monkeypatch.setattr(plan_work, "Bench", nullcontext)
    monkeypatch.setattr(plan_work, "carry_out_plan", make_one)
    side = PlanSide(SCENARIO, RunOptions(noop=noop))
    plan_work.carry_out_work(Told([side], 2, 0.0), BenchOptions(workers=1), PlanSettings())
    assert [each.startswith("no-op runs: nothing was sent to Swift; took ") for each in said] == [noop]


def test_two_ways_do_not_share_containers_that_are_made_differently() -> None:
    """The first run would make them, and all others use them as they are: no difference would be shown."""
    plain, other = ways("a", "b")
    headers = (("X-Versions-Enabled", "true"),)
    versions = replace(other, scenario=replace(SCENARIO, container_put_headers=headers))
    said = "container_put_headers: a and b use the same containers, .* another container_base than ssbench"
    with pytest.raises(UsageError, match=said):
        plan_work.carry_out_work(
            RepeatWork([plain, versions], 4, 0.0), BenchOptions(workers=1), PlanSettings()
        )
    apart = replace(versions, scenario=replace(versions.scenario, container_base="versions"))
    noop = replace(versions, options=replace(versions.options, noop=True))
    for sides in ([plain, plain], [versions, versions], [plain, apart], [plain, noop]):
        check_containers(RepeatWork(sides, 4, 0.0).rule.cells)


@pytest.mark.parametrize(
    ("work", "sides", "rows"),
    [
        (RepeatWork(ways("x"), 2, 0.0), ("run",), {"": [["run-1", "run-2"]]}),
        (RepeatWork(ways("x", "y"), 2, 0.0), ("a", "b"), {"": [["a-1", "a-2"], ["b-1", "b-2"]]}),
        (
            PhasesWork([("put", ways("x", "y")), ("get", ways("x", "y"))], None, 0.0, None),
            ("a", "b"),
            {"put": [["a.put"], ["b.put"]], "get": [["a.get"], ["b.get"]]},
        ),
    ],
)
def test_runs_of_a_plan_are_a_table(
    work: PlanWork[str], sides: tuple[str, ...], rows: dict[str, list[list[str]]]
) -> None:
    done: list[DoneTrial[str]] = []
    while (trial := work.rule.next(done)) is not None:
        done.append(DoneTrial(trial, Path(), trial.label))
    table = tabulate_trials(work.rule, done)
    assert (table.sides, table.rows) == (sides, rows)
    # A plan that ended early has all of its sides.
    assert tabulate_trials(work.rule, done[:1]).sides == sides


def test_local_workers_have_room_for_the_largest_of_some_runs() -> None:
    bench = BenchOptions(workers=3)
    assert fit_bench(bench, [4, 10], ["gold", None]) == BenchOptions(
        workers=3, concurrency=4, policies=("gold",)
    )
    assert fit_bench(bench, []).concurrency is None  # as the runs need
    assert fit_bench(bench, [10**9]).concurrency == wire.MAX_JOBS
