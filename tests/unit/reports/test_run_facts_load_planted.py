"""What is reported of open loops, stages, warm-up and think time, against arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from golden_words import GoldenWords
from planted import printed
from planted_load import play, stalling
from section_lines import section_lines
from simulated_runs import SCENARIO

from ssbench.document.elements import Section, View
from ssbench.reports import run_facts, run_tables, run_text
from ssbench.reports.writing import ReportOptions
from ssbench.results.run_description import ReplayFacts
from ssbench.scenario import conditions
from ssbench.scenario.key_rules import REPLAY_WORD
from ssbench.scenario.model import Stage
from ssbench.scenario.replay_source import ReplaySource
from ssbench.statistics import thresholds
from ssbench.statistics.run_statistics import RunStatistics

MS = 1e-3

#: Answers in 1 ms, and stalls for a second every ten: from 4 to 5, from 14 to 15, from 24 to 25.
STALLING = stalling(1 * MS, 4.0, 5.0, 10.0)


def shown(statistics: RunStatistics) -> str:
    """The section on the load."""
    return "\n".join(
        section_lines(Section("", [*run_facts.make_load_elements(statistics)]), View(columns=100))
    )


def report(statistics: RunStatistics) -> dict[str, float]:
    return printed(run_text.make_sections_report(statistics, ReportOptions()))


@pytest.mark.parametrize("kind", ["even", "poisson"])
@pytest.mark.parametrize("users", [600, 100])
def test_response_times_of_a_store_that_stalls_are_those_of_the_schedule(kind: str, users: int) -> None:
    """3 of 26 s are stalls: 3/26 of what is due wait, for times that are uniform from 0 to 1 s.

    Longer than t (above 1 ms) are 3/26 (1 - t): p90 is where that is .1, p99 where it is .01.
    """
    found = report(play(STALLING, [Stage(26, (users, users), (500, 500))], arrivals=kind))
    within = 0.05
    assert found["READ resp p50"] == pytest.approx(1, rel=within)
    assert found["READ resp p90"] == pytest.approx(
        1000 * (1 - 0.1 * 26 / 3), rel=0.2 if kind == "poisson" else within
    )
    assert found["READ resp p99"] == pytest.approx(1000 * (1 - 0.01 * 26 / 3), rel=within)
    assert found["READ resp max"] == pytest.approx(1001, rel=within)
    assert found["READ resp n"] == pytest.approx(13_000, rel=0.02)
    assert found["READ last p50"] == pytest.approx(1, rel=within)


def test_the_closed_loop_says_next_to_nothing_of_the_same_store() -> None:
    found = report(play(STALLING, [Stage(26, (8, 8))]))
    assert [found[f"READ last {each}"] for each in ("p50", "p90", "p99", "p99.9")] == [1.0, 1.0, 1.0, 1.0]
    assert found["READ last max"] == pytest.approx(1001, rel=0.01)
    assert "READ resp n" not in found


def test_what_begins_late_for_want_of_users_is_counted() -> None:
    numbers = play(STALLING, [Stage(26, (100, 100), (500, 500))])
    # 100 of the 500 of each stall begin in it, the others when it is over, and some while those are done.
    late = numbers.total.due.late
    assert late == pytest.approx(3 * 400, rel=0.01)
    assert numbers.total.due.lateness.maximum == pytest.approx(0.8, rel=0.01)
    assert (numbers.due, numbers.not_begun) == (13_000, 0)
    section = shown(numbers)
    assert "Open loop: 500 operations a second, evenly, at most 100 in flight; due: 13,000" in section
    assert f"Began more than 1 ms late: {late:,} (9." in section
    assert "not begun" not in section
    # Service time sees nothing of those that waited for a user, response time does.
    found = report(numbers)
    assert found["READ last p99"] == pytest.approx(923, rel=0.2)
    assert found["READ resp p99"] == pytest.approx(1000 * (1 - 0.01 / (3 / 26)), rel=0.05)


def test_what_was_due_and_did_not_begin_by_the_end_is_counted(golden_words: GoldenWords) -> None:
    numbers = play(lambda sent: sent + 1.0, [Stage(10, (5, 5), (50, 50))])
    assert (numbers.due, numbers.total.count, numbers.not_begun) == (500, 50, 450)
    assert "not begun by the end: 450" in shown(numbers)
    (brief,) = (each.text for each in run_facts.make_open_loop_notes(numbers))
    golden_words(brief)
    assert brief.endswith("began late (max 8100 ms), 450 never")
    # An overloaded store: what a rate asks for beyond what it can do waits longer and longer.
    assert numbers.total.requests_per_second == pytest.approx(5, rel=0.12)


def test_a_replay_is_not_said_to_have_the_rate_of_the_log() -> None:
    scenario = replace(SCENARIO, rate=115.6, arrivals=REPLAY_WORD, user_count=64)  # at speed 10, say
    wanted = "115.6 operations a second, timed by the log, at most 64 in flight"
    assert run_facts.describe_load(scenario) == wanted
    assert run_facts.describe_load(replace(scenario, rate=1.0)).startswith("1 operation a second, ")


@pytest.mark.parametrize(("speed", "expected"), [(32_726.97172, "32,727"), (2.0, "2"), (1 / 3, "0.33333")])
def test_the_speed_of_a_replay_has_five_digits(speed: float, expected: str) -> None:
    source = ReplaySource("proxy.log", 1e9, 10.0, 100, 5, 5, 1, 1, 1, 0, 0, ())
    facts = ReplayFacts(source, speed, 0, ())
    numbers = replace(play(STALLING, [Stage(1, (4, 4), (10, 10))]), replay=facts)
    section = section_lines(Section("", [*run_facts.make_replay_elements(numbers)]), View(columns=100))
    assert f"Speed: {expected};" in "\n".join(section)


def test_a_log_that_is_replayed_twice_at_once_keeps_its_own_rate() -> None:
    source = ReplaySource("proxy.log", 1e9, 10.0, 100, 5, 5, 1, 1, 2, 0, 0, ())
    numbers = replace(play(STALLING, [Stage(1, (4, 4), (10, 10))]), replay=ReplayFacts(source, 3.0, 0, ()))
    section = section_lines(Section("", [*run_facts.make_replay_elements(numbers)]), View(columns=200))
    assert "requests a second: 10.0 in the log, 60.0 due, " in "\n".join(section)


def test_stages_are_reported_each_by_itself() -> None:
    plan = [Stage(10, (4, 4)), Stage(10, (4, 4), (100, 100)), Stage(5, (2, 2), (0, 100))]
    numbers = play(lambda sent: sent + 12 * MS, plan)
    first, second, third = (each.numbers for each in numbers.stages)
    assert [each.name for each in numbers.stages] == ["1: 4 users", "2: 100/s", "3: 0..100/s"]
    assert first.total.requests_per_second == pytest.approx(4 / 0.012, rel=0.01)
    assert second.total.requests_per_second == pytest.approx(100, rel=0.01)
    assert third.total.count == 250
    assert (first.due, second.due, third.due, numbers.due) == (None, 1000, 250, 1250)
    assert (first.not_begun, second.not_begun, numbers.not_begun) == (None, 0, 0)
    assert first.course is not None
    assert first.course.busy == pytest.approx(1.0, rel=0.01)
    assert first.total.count + second.total.count + third.total.count == numbers.total.count
    section = (
        run_text.make_sections_report(numbers, ReportOptions())
        .partition("\nStages\n")[2]
        .split("\nConfidence")[0]
    )
    lines = section.splitlines()
    assert max(map(len, lines)) <= 80
    row = next(line.split() for line in lines if line.strip().startswith("2: 100/s"))
    assert row[2:7] == ["9.99", "1,000", "100.0", "0.100", "0"]
    assert row[-2:] == ["1", "0"]
    assert sum(line.strip().startswith("READ resp") for line in lines) == 2
    assert sum(line.strip().startswith("READ last") for line in lines) == 3


def test_the_load_of_a_stage_that_cannot_keep_up_runs_over_into_the_next_one() -> None:
    plan = [Stage(5, (4, 4), (100, 100)), Stage(5, (4, 4), (100, 100)), Stage(1, (4, 4))]
    numbers = play(lambda sent: sent + 50 * MS, plan)
    first, second, _ = (each.numbers for each in numbers.stages)
    # 80 a second can be done: 400 in each stage, all of the first one's by 6.25 s.
    assert (first.total.count, first.not_begun) == (500, 0)
    assert first.total.due.lateness.maximum == pytest.approx(1.25, rel=0.05)
    assert second.total.count == pytest.approx(300, abs=4)
    assert second.not_begun == 500 - second.total.count == numbers.not_begun


def test_the_warm_up_is_left_out_and_its_number_is_shown() -> None:
    slow_at_first = lambda sent: sent + (1.0 if sent < 3 else 10 * MS)  # noqa: E731
    numbers = play(slow_at_first, [Stage(13, (4, 4))], warmup=3.0)
    assert numbers.total.lines[0].last_byte.maximum == pytest.approx(10 * MS)
    assert numbers.warmed_up == 12
    assert numbers.total.requests_per_second == pytest.approx(400, rel=0.01)
    open_ = play(slow_at_first, [Stage(13, (400, 400), (100, 100))], warmup=3.0)
    assert (open_.warmed_up, open_.total.count, open_.due, open_.not_begun) == (300, 1000, 1300, 0)


def test_think_time_is_not_idleness() -> None:
    numbers = play(lambda sent: sent + 10 * MS, [Stage(10, (4, 4))], think_time=0.09)
    assert numbers.total.requests_per_second == pytest.approx(40, rel=0.05)
    full = run_text.make_sections_report(numbers, ReportOptions())
    assert "Think time: 0.09 s after each operation" in full
    assert "busy 10" in full
    assert "they were idle otherwise" not in full


def test_a_closed_loop_has_no_section() -> None:
    numbers = play(lambda sent: sent + 10 * MS, [Stage(2, (4, 4))])
    assert [
        *run_facts.make_load_elements(numbers),
        *run_facts.make_open_loop_notes(numbers),
        *(part for kind in run_tables.BREAKDOWN_KINDS for part in kind.parts(numbers)),
    ] == []
    assert (numbers.due, numbers.not_begun, numbers.stages) == (None, None, ())
    assert math.isnan(numbers.total.due.response.percentile(50))


def test_conditions_on_response_times() -> None:
    numbers = play(STALLING, [Stage(26, (600, 600), (500, 500))])
    # Three stalls are surely more than half a one in as long, and perhaps not more than two and a half.
    for text_, expected, fails in (
        ("read.response_p99 > 500ms", 0.913, True),
        ("read.response_p95 > 500ms", 0.567, False),
        ("response_p50 > 500us", 0.001, True),
        ("response_max < 2s", 1.001, True),
    ):
        (judgment,) = thresholds.judge_conditions(numbers, [conditions.parse_condition(text_)])
        assert judgment.value == pytest.approx(expected, rel=0.01)
        assert (judgment.failed, judgment.undecided) == (fails, not fails)
    closed = play(STALLING, [Stage(6, (8, 8))])
    assert thresholds.figure_value(closed, conditions.parse_condition("response_p99.9 > 1s")) is None
