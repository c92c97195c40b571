"""Plans whose runs are planted: files that say what they were, and ends as they are told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ssbench.base.errors import LackingStoreError, StatFileError
from ssbench.base.option import record_options
from ssbench.plans.plan_rules import GridRule
from ssbench.run import plan
from ssbench.run.bench import Bench
from ssbench.run.bench_options import RunOptions
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.plan import PlanCell, PlanEnd, PlanSettings, carry_out_plan
from ssbench.scenario.scenario_reading import read_scenario

SCENARIO = read_scenario("smoke")


class Planted:
    """Stands for a bench: its runs write files that say what they were, and end as they are told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.options: list[RunOptions] = []
        self.url = "http://one/v1/AUTH_a"
        self.ends: dict[int, dict[str, Any] | BaseException] = {}
        self.files: dict[Path, SimpleNamespace] = {}
        self.checked = 0  # ways to run of which the store was asked
        self.lost: dict[Path, int] = {}  # results that could not be written, by file
        monkeypatch.setattr(plan, "read_statistics", self._read)

    def _read(self, path: Path) -> tuple[SimpleNamespace, int]:
        if path not in self.files:
            raise StatFileError(f"{path}: is empty")
        return self.files[path], self.lost[path]

    def capacity(self) -> int:
        return 7

    def start_swifts(self, _runs: object) -> None:
        pass

    def check(self, scenario: object, options: RunOptions) -> None:
        self.checked += 1
        if options.label == "impossible":
            raise LackingStoreError("not over the S3 API")

    def prepare(self, _scenario: object, options: RunOptions) -> RunOutcome:
        return RunOutcome(run_id=1, seed=options.seed or 0, count=1)

    def run(self, scenario: object, options: RunOptions, **_: Any) -> RunOutcome:
        self.options.append(options)
        end = self.ends.get(len(self.options), {})
        if isinstance(end, BaseException):
            raise end
        path = cast(Path, options.stats_file)
        path.touch()
        run = SimpleNamespace(
            scenario=scenario,
            seed=options.seed,
            options={
                **record_options(options.requests),
                **record_options(options),
                "store": options.store,
            },
            sides=tuple(side.name for side in options.sides),
            storage_urls=(self.url,),
        )
        self.files[path] = SimpleNamespace(
            run=run,
            complete=not end.get("killed"),
            interrupted=bool(end.get("interrupted")),
            ended_early=False,
        )
        self.lost[path] = end.get("results_lost", 0)
        changes = {key: value for key, value in end.items() if key != "killed"}
        outcome = RunOutcome(run_id=1, seed=options.seed or 0, path=path, count=1)
        return replace(outcome, **changes)

    @property
    def names(self) -> list[str]:
        return [cast(Path, each.stats_file).name for each in self.options]


def grid(folder: Path, *names: str, rounds: int = 2, in_turn: bool = True, **options: Any) -> GridRule[str]:
    run = RunOptions(stats_file=folder / "s.stat.gz", **options)
    cells = [PlanCell(name, SCENARIO, run) for name in names]
    return GridRule(cells, rounds, lambda _, name: name, in_turn=in_turn)


def carry_out(rule: Any, bench: Planted, end: PlanEnd[Any] | None = None, **settings: Any) -> PlanEnd[Any]:
    return carry_out_plan(rule, cast(Bench, bench), PlanSettings(**settings), end)
