"""What the report says was asked for, beside what was done."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from golden_words import GoldenWords
from planted_stores import STORES

from ssbench.document.elements import Table
from ssbench.reports import run_facts
from ssbench.results.run_description import RunDescription
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_verdict import asked_mix
from ssbench.statistics.summary import make_statistics

CLASSES = (
    SizeClass("small", 1, 9, 30, {"create": 1.0, "read": 3.0, "update": 0.0, "delete": 0.0}),
    SizeClass("big", 10, 90, 10, {"create": 0.0, "read": 1.0, "update": 1.0, "delete": 2.0}),
)


def test_the_mix_asked_for_is_the_one_that_is_drawn() -> None:
    scenario = Scenario("s", CLASSES, user_count=3, operation_count=9)
    draws = Workload(scenario, 7).draws()
    codes = [next(draws)[0] for _ in range(20_000)]
    asked = asked_mix(scenario)
    shares = np.bincount(codes, minlength=4) / len(codes)
    for share, name in zip(shares.tolist(), ("create", "read", "update", "delete"), strict=True):
        assert abs(share - asked[name]) < 0.02, name


def test_the_mix_done_stands_beside_it() -> None:
    (mix,) = (planted for planted in STORES if planted.name == "mix")
    assert (
        "\nRun\n  Load: closed loop, 8 users\n"
        "  Mix in %, asked for/done: CREATE 25.0/25.0, READ 25.0/25.0, UPDATE 25.0/25.0,\n"
        "    DELETE 25.0/25.0\n"
        "\nFigures\n"
    ) in mix.report


def test_the_settings_of_a_local_swift_are_at_the_head_and_among_the_parameters(
    golden_words: GoldenWords,
) -> None:
    class Facts:
        run = RunDescription(Scenario("s", CLASSES, user_count=3, operation_count=9), "1", seed=42)
        summary = None
        size_classes = ("small", "big")
        warnings = ()
        current = True

    def say(options: dict[str, object]) -> tuple[list[str], list[str]]:
        numbers = make_statistics(Collector(), Facts())
        numbers = replace(numbers, run=replace(numbers.run, options=options))
        tables = [each for each in run_facts.make_parameter_elements(numbers) if isinstance(each, Table)]
        [rows] = [each.rows for each in tables if each.columns[0].head == "option"]
        return run_facts.make_run_facts(numbers), ["=".join(map(str, row)) for row in rows]

    slo = {"slo.concurrency": "8"}
    settings = {"filter ratelimit": "added", **slo}
    head, rows = say({"swift_settings": settings})
    assert "Swift with filter ratelimit added, slo.concurrency 8" in head
    golden_words(rows)
    assert "Swift 2.38.3 with slo.concurrency 8" in say({"swift_settings": {"version": "2.38.3", **slo}})[0]
    assert "Swift 2.38.3" in say({"swift_settings": {"version": "2.38.3"}})[0]
    for nothing in ({}, None, "of another kind"):
        head, rows = say({"swift_settings": nothing})
        assert not any("Swift" in each for each in head)
    assert say({"swift_settings": {}})[1] == []


def test_seed_capacity_and_an_interruption_are_told(golden_words: GoldenWords) -> None:
    class Facts:
        run = RunDescription(Scenario("s", CLASSES, user_count=3, operation_count=9), "1", seed=42)
        summary = None
        size_classes = ("small", "big")
        warnings = ()
        current = True

    numbers = make_statistics(Collector(), Facts())
    assert [each.text for each in run_facts.make_load_notes(numbers)] == [
        "Load: closed loop, 3 users",
        "Seed: 42",
    ]
    numbers = replace(numbers, interrupted=True, counters={"capacity": 64, "not_begun": 3})
    # Of operations that were due and never began it knows nothing.
    (counted,) = (
        each
        for each in run_facts.make_parameter_elements(numbers)
        if isinstance(each, Table) and each.columns[0].head == "counted"
    )
    golden_words([*counted.rows])
    golden_words([each.text for each in run_facts.make_load_notes(numbers)])
