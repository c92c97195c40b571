"""What earlier equal runs say of the noise of a comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from result_rows import many
from simulated_runs import SCENARIO, reads

from ssbench.base.errors import GateResult
from ssbench.cli.master import main
from ssbench.comparison.archive import ArchiveEntry, find_equal_run_floors, make_earlier_run, make_entry
from ssbench.comparison.change import FigureChange, FigureDifference, FigurePlace, judge_change
from ssbench.comparison.comparison_verdict import judge_change_condition
from ssbench.comparison.family import RowRun, compare_table
from ssbench.comparison.noise_floor import (
    CPU_DEVIATION,
    SPEED_DEVIATION,
    EarlierRun,
    NoiseFloors,
    SwiftStarts,
)
from ssbench.comparison.paired_sides import SidedRun, compare_sided, compare_sided_rows
from ssbench.comparison.run_comparison import compare_runs
from ssbench.comparison.run_figures import ALL_KEY, FigureSample, RunFigures
from ssbench.comparison.run_table import make_run_table
from ssbench.document.figures import COMPARED_FIGURES
from ssbench.results.run_description import RunDescription, RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.conditions import parse_condition

PLACE: FigurePlace = (("ALL", None), "p50")
HOUR = 3600.0


def past(
    random: np.random.Generator, sessions: int, runs: int, between: float, within: float
) -> list[EarlierRun]:
    return [
        EarlierRun(day * 24 * HOUR + 60 * run, {PLACE: level + random.normal(0, within)}, {})
        for day, level in enumerate(random.normal(0, between, sessions))
        for run in range(runs)
    ]


def test_the_variances_within_and_between_sessions() -> None:
    random = np.random.default_rng(1)
    found = [NoiseFloors([past(random, 6, 3, 0.04, 0.02)]).of(PLACE) for _ in range(300)]
    floors = [each for each in found if each is not None]
    assert len(floors) == 300
    assert np.mean([each.between for each in floors]) == pytest.approx(0.04**2, rel=0.15)
    assert np.mean([each.within for each in floors]) == pytest.approx(0.02**2, rel=0.15)
    assert (floors[0].between_freedom, floors[0].within_freedom) == (5, 12)
    assert floors[0].of_mean(2) == pytest.approx(floors[0].between + floors[0].within / 2)


def test_few_sessions_say_nothing() -> None:
    random = np.random.default_rng(1)
    assert NoiseFloors([past(random, 3, 9, 0.1, 0.1)]).of(PLACE) is None
    assert NoiseFloors([past(random, 1, 9, 0.1, 0.1)]).of(PLACE) is None
    assert NoiseFloors([]).of(PLACE) is None
    # Of two configurations each has a level of its own.
    two = NoiseFloors([past(random, 3, 1, 0.1, 0.1), past(random, 3, 1, 0.1, 0.1)]).of(PLACE)
    assert two is not None
    assert two.between_freedom == 4


def single(level: float, random: np.random.Generator, day: int) -> list[RunFigures]:
    value = float(np.exp(level + random.normal(0, 0.05)))
    return [RunFigures("r", {("ALL", None): {"p50": FigureSample(value, 0.01)}}, started=day * 24 * HOUR)]


def test_single_runs_have_a_verdict_with_a_history() -> None:
    random = np.random.default_rng(2)

    def shown(level: float) -> int:
        found = [
            compare_runs(
                single(0, random, 100),
                single(level, random, 101),
                floors=NoiseFloors([past(random, 8, 1, 0.05, 0.0)]),
            )
            for _ in range(60)
        ]
        return sum(change.differs for each in found for *_, change in each.changes())

    assert shown(0.0) <= 6
    assert shown(0.3) >= 50
    found = compare_runs(
        single(0, random, 1), single(0.4, random, 2), floors=NoiseFloors([past(random, 9, 1, 0.05, 0)])
    )
    assert found.repeated
    assert "9 earlier equal runs" in found.judgment
    assert (
        judge_change_condition(found, parse_condition("p50 > +10%", relative=True)).result
        is GateResult.FAILED
    )
    alone = compare_runs(single(0, random, 1), single(0.4, random, 2))
    assert (
        judge_change_condition(alone, parse_condition("p50 > +10%", relative=True)).result
        is GateResult.UNDECIDED
    )


def test_groups_of_different_days_differ_by_the_days() -> None:
    random = np.random.default_rng(3)
    history = NoiseFloors([past(random, 12, 4, 0.05, 0.01)])

    def group(day: int, level: float) -> list[RunFigures]:
        return [
            RunFigures(
                "r",
                {("ALL", None): {"p50": FigureSample(float(np.exp(level + random.normal(0, 0.01))))}},
                started=day * 24 * HOUR + 60 * run,
            )
            for run in range(6)
        ]

    wrong = without = 0
    for _ in range(40):
        days = [group(day, random.normal(0, 0.05)) for day in (1, 2)]
        wrong += compare_runs(days[0], days[1], floors=history).changes()[0][2].differs
        without += compare_runs(days[0], days[1]).changes()[0][2].differs
    assert wrong <= 5
    assert without >= 20
    # Within one session the days are no matter.
    near = group(1, 0.0), [replace(run, started=(run.started or 0) + 600) for run in group(1, 0.04)]
    assert (
        compare_runs(*near, floors=history).changes()[0][2].error == compare_runs(*near).changes()[0][2].error
    )


NEW = [
    ("http://h:1", "http://h:2", "http://h:3", "http://h:4"),
    ("http://h:5", "http://h:6", "http://h:7", "http://h:8"),
]
ONCE = [("http://h:1",) * 4, ("http://h:2",) * 4]
ONE = [("http://h:1",) * 4] * 2


@pytest.mark.parametrize(
    ("key", "deviation"), [("proxy_cpu", CPU_DEVIATION), ("p50", SPEED_DEVIATION), ("rate", SPEED_DEVIATION)]
)
def test_servers_that_were_started_once_may_differ_though_their_runs_are_alike(
    key: str, deviation: float
) -> None:
    """Two equal Swifts, of which one is 2 % slower than the other in all runs, by how it was started."""
    random = np.random.default_rng(3)
    values = [[0.002 * random.normal(1 + 0.02 * side, 0.002) for _ in range(4)] for side in (0, 1)]

    def of_runs(urls: Sequence[tuple[str, ...]]) -> tuple[FigureChange | None, str]:
        sides = [
            [
                RunFigures(
                    str(at),
                    {ALL_KEY: {key: FigureSample(value)}},
                    {"storage URL": "a local Swift"},
                    started=60 * at,
                    local_swift=(url,),
                )
                for at, (value, url) in enumerate(zip(*side, strict=True))
            ]
            for side in zip(values, urls, strict=True)
        ]
        found = compare_runs(*sides)
        return found.find(None, None, key), found.judgment

    def of_rows(urls: Sequence[tuple[str, ...]]) -> tuple[FigureChange | None, str]:
        row = [
            [
                RowRun({key: FigureSample(value)}, 60.0 * at, (url,))
                for at, (value, url) in enumerate(zip(*side, strict=True))
            ]
            for side in zip(values, urls, strict=True)
        ]
        found = compare_table(
            make_run_table(
                ["old", "new"], [("row", 0, run) for run in row[0]] + [("row", 1, run) for run in row[1]]
            )
        )
        return found.rows[0].changes[key], " ".join(found.remarks)

    def make_sided_runs(urls: Sequence[tuple[str, ...]]) -> list[SidedRun]:
        place: FigurePlace = (ALL_KEY, key)
        of_sides = zip(zip(*values, strict=True), zip(*urls, strict=True), strict=True)
        return [
            SidedRun(
                str(at), ("old", "new"), {place: pair}, 60.0 * at, local_swifts=tuple((url,) for url in both)
            )
            for at, (pair, both) in enumerate(of_sides)
        ]

    def of_sides(urls: Sequence[tuple[str, ...]]) -> tuple[FigureChange | None, str]:
        found = compare_sided(make_sided_runs(urls))
        return found.find(None, None, key), found.judgment

    def of_sided_rows(urls: Sequence[tuple[str, ...]]) -> tuple[FigureChange | None, str]:
        rows = [(name, make_sided_runs(urls)) for name in ("one", "two")]
        found = compare_sided_rows(rows)
        return found.rows[0].changes[key], " ".join(found.remarks)

    for compared in (of_runs, of_rows, of_sides, of_sided_rows):
        if compared is of_sided_rows and key == "rate":
            continue  # not compared
        (new, said), (once, of_once), (one, _) = (compared(urls) for urls in (NEW, ONCE, ONE))
        assert new is not None
        assert once is not None
        assert new == one
        assert new.differs, compared
        assert not once.differs, compared
        assert once.error == pytest.approx(math.hypot(new.error or 0, deviation * math.sqrt(2)))
        assert "another start" in of_once
        assert "another start" not in said


def added_deviations(
    before: Sequence[str], after: Sequence[str], *, key: str = "p50", between_runs: bool = True
) -> float:
    """Return how many variances of a start are added."""
    found = FigureDifference(1.0, 1.0, 0.0, 0.01, 5.0, between_runs=between_runs)
    starts = SwiftStarts.of(*([[url] if url else [] for url in side] for side in (before, after)))
    added = starts.allow_for(COMPARED_FIGURES[key], found)
    return ((added.error or 0) ** 2 - 0.01**2) / SPEED_DEVIATION**2


def test_an_allowance_makes_no_interval_narrower() -> None:
    """The sum of two variances has more degrees of freedom than the one of a few runs."""
    starts, figure = SwiftStarts.of([["http://h:1"]] * 4, [["http://h:2"]] * 4), COMPARED_FIGURES["p50"]
    for error, is_wider in ((0.03, False), (0.001, True)):
        alone = FigureDifference(1.0, 1.0, 0.0, error, 3.0, between_runs=True, sure=True)
        before, after = (judge_change(figure, each, 0.0) for each in (alone, starts.allow_for(figure, alone)))
        assert ((after.high or 0) > (before.high or 0)) is is_wider
        assert (after.high or 0) >= (before.high or 0)


def test_a_share_of_failures_does_not_follow_from_a_start() -> None:
    assert added_deviations(["http://h:1"] * 3, ["http://h:2"] * 3) == pytest.approx(2)
    assert added_deviations(["http://h:1"] * 3, ["http://h:2"] * 3, key="errors") == pytest.approx(
        0, abs=1e-9
    )


def test_of_another_store_nothing_is_known() -> None:
    assert added_deviations(["http://h:1"] * 3, [""] * 3) == pytest.approx(1)


def test_a_start_weighs_by_its_share_of_the_runs() -> None:
    resumed = ["http://h:1"] * 5 + ["http://h:3"]
    assert added_deviations(resumed, ["http://h:2"] * 6) == pytest.approx(26 / 36 + 1)
    assert added_deviations(["http://h:1"] * 3, ["http://h:2", "http://h:4"]) == pytest.approx(1)


def test_servers_of_runs_are_the_same_by_whatever_account_or_api() -> None:
    account, other = "http://h:1/v1/AUTH_a", "http://h:1/v1/AUTH_b"
    assert added_deviations([account] * 3, [other] * 3) == pytest.approx(0, abs=1e-9)
    assert added_deviations([account] * 3, ["s3+http://h:1"] * 3) == pytest.approx(0, abs=1e-9)
    assert added_deviations([account, other], ["http://h:2"] * 2) == pytest.approx(2)
    assert added_deviations(["", ""], ["", ""]) == pytest.approx(0, abs=1e-9)


def test_the_spread_within_a_run_says_nothing_of_its_start() -> None:
    assert added_deviations(["http://h:1"], ["http://h:2"], between_runs=False) == pytest.approx(2)
    # The floor of earlier runs, in which servers were started too.
    assert added_deviations(["http://h:1"], ["http://h:2"]) == pytest.approx(0, abs=1e-9)


def entries(count: int, **facts: str) -> list[ArchiveEntry]:
    random = np.random.default_rng(4)
    found = []
    for number in range(count):
        entry = make_entry(reads(random, 12), f"{number}.stat.gz", 1, 1)
        known = {**json.loads(entry.facts), "seed": str(number), **facts}
        found.append(replace(entry, started=number * 24 * HOUR, facts=json.dumps(known), verdict="ok"))
    return found


def test_equal_runs_are_found_in_an_archive() -> None:
    known = entries(6)
    facts = json.loads(known[0].facts)
    assert find_equal_run_floors(known, [facts], []).runs == 6
    assert find_equal_run_floors(known, [facts], ["/x/0.stat.gz", "1.stat.gz"]).runs == 4
    assert find_equal_run_floors(known, [{**facts, "users": "99"}], []).runs == 0
    assert (
        find_equal_run_floors([*known, *entries(3, users="99")], [facts, {**facts, "users": "99"}], []).runs
        == 9
    )
    assert (
        find_equal_run_floors([replace(known[0], verdict="interrupted"), *known[1:]], [facts], []).runs == 5
    )
    assert make_earlier_run(known[0]).figures.keys() >= {PLACE, (("READ", None), "rate")}
    assert make_earlier_run(replace(known[0], figures="{")).figures == {}


def test_the_folder_of_results_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(5)
    for day in range(7):
        run = RunDescription(SCENARIO, "1", day, {"retries": 10}, started=1e9 + day * 24 * HOUR)
        writer = RunResultsWriter(tmp_path / f"{day}.stat.gz", run)
        last_byte = (
            0.01 * np.exp(random.normal(0.5 if day == 6 else 0, 0.01)) * (1 + np.arange(1200) % 7 / 50)
        )
        columns = {"completed": (run.started or 0) + np.arange(1200) / 100, "last_byte": last_byte}
        writer.add(many(range(1200), operation=1, **columns))
        writer.end(RunSummary((run.started or 0) + 12))
    files = [str(tmp_path / f"{day}.stat.gz") for day in (5, 6)]
    gate = ("--fail-if", "read.p50 > +20%")
    assert main(["compare", *files, *gate]) == 6
    assert "no verdict" in capsys.readouterr().out
    assert main(["compare", *files, *gate, "--results-dir", str(tmp_path)]) == 5
    out = " ".join(capsys.readouterr().out.split())
    assert "the variation of 5 earlier equal runs" in out
    assert main(["compare", *files, *gate, "--results-dir", str(tmp_path / "none")]) == 6
