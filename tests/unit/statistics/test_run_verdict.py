"""The verdict on a run: its outcome, its reasons, its exit code, and what each output makes of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from delivered_runs import MS, _closed, closed, kept, overloaded
from golden_words import GoldenWords
from msgspec.structs import replace as replace_struct
from planted import Met, operations, statistics_of
from planted_load import play
from said import NEVER_BEGAN, NO_MD5

from ssbench.base.errors import ExitCode, Undecided
from ssbench.comparison.run_figures import make_run_figures
from ssbench.reports import junit
from ssbench.reports import writing as reports
from ssbench.reports.verdict_words import make_verdict_title
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.block import Failure, ResultBlock
from ssbench.results.result_fields import ResultMark
from ssbench.results.run_description import RunDescription, RunSummary, StageFacts
from ssbench.scenario.conditions import parse_condition
from ssbench.scenario.model import Scenario, SizeClass, Stage
from ssbench.scenario.operations import OPERATIONS
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.statistics.collector import Collector
from ssbench.statistics.run_statistics import PartContext, RunPart, RunStatistics
from ssbench.statistics.run_verdict import (
    Kind,
    Outcome,
    Reason,
    asked_mix,
    delivered_load,
    find_answer_reasons,
    find_load_reasons,
    find_retry_reasons,
    verdict_of,
)
from ssbench.statistics.summary import make_statistics


def test_the_first_line_sets_what_was_delivered_beside_what_was_asked_for() -> None:
    text = " ".join(make_run_report("summary", overloaded(), ReportOptions()).split())
    assert re.search(
        r"NOT DELIVERED: [\d.]+ of 2,000 ops/s; 1,31\d of 10,000 operations; up to 3 users; 5 of 5 s;"
        rf" mix as asked; 0 errors ! 8,68\d of 10,000 {NEVER_BEGAN} \(86\.\d %\)",
        text,
    )
    text = " ".join(make_run_report("summary", closed(), ReportOptions()).split())
    assert "GOOD: 400.0 ops/s; 4,804 operations; 4.00 of 4 users; 12 of 12 s; mix as asked; 0 errors" in text


def test_a_run_whose_jobs_were_all_handed_out_at_once_did_not_last_no_time() -> None:
    """Workers begin jobs that they hold ahead later than the master hands them out."""
    numbers = closed(sending=0.0)
    assert numbers.course is not None
    assert delivered_load(numbers).seconds == 0.0  # a timed run ends with its time
    of_operations = replace(numbers.run.scenario, run_seconds=None, operation_count=9)
    counted = replace(numbers, run=replace(numbers.run, scenario=of_operations))
    assert delivered_load(counted).seconds == numbers.course.window.seconds > 10


def test_percentiles_are_of_response_times_and_say_at_least() -> None:
    numbers = overloaded()
    rows = re.findall(
        r"^(?:READ|ALL) [^>]*(>.*)$", make_run_report("summary", numbers, ReportOptions()), re.MULTILINE
    )
    assert len(rows) == 2
    for row in rows:
        assert re.fullmatch(r">217\d +>41\d\d +>4[23]\d\d +>43\d\d +>43\d\d", row.strip())
    assert "| \\>217" in make_run_report("summary_md", numbers, ReportOptions())
    assert "<td>&gt;217" in re.sub(r"<td [^>]*>", "<td>", make_run_report("html", numbers, ReportOptions()))
    # Those beyond a percentile took at least so long, not those below it.
    assert re.search(
        r"READ: half took 217\d ms or more, 1 % 4[23]\d\d ms or more",
        make_run_report("html", numbers, ReportOptions()),
    )
    whole = json.loads(reports.make_run_report("json", numbers, ReportOptions()))["operations"][0]["figures"]
    since_due = whole["since_due"]
    assert (since_due["count"], since_due["never_begun"]) == (10_000, numbers.not_begun)
    assert since_due["percentiles"]["99"] == pytest.approx(4.3, rel=0.01)
    assert "99" in since_due["at_least"]
    other = json.loads(reports.make_run_report("json", closed(), ReportOptions()))["operations"][0]["figures"]
    assert other["since_due"] is None
    good = make_run_report("summary", kept(), ReportOptions())
    assert re.search(r"^READ .* 11\.4 +11\.4 +11\.4 +- +11\.4$", good, re.MULTILINE)


def test_a_store_that_falls_behind_its_rate_is_not_delivered(golden_words: GoldenWords) -> None:
    late = play(lambda sent: sent + 0.9 * sent, [Stage(20, (4000, 4000), (100, 100))])
    found = verdict_of(late)
    assert found.exit_code is ExitCode.NOT_DELIVERED
    golden_words(found.reasons[0].text)


def queue(rate: float, usual: float, noise: float) -> Callable[[float], float]:
    """Return a store that does so many operations a second, one by one, and takes some time besides."""
    random, free = np.random.default_rng(1), 0.0

    def store(sent: float) -> float:
        nonlocal free
        free = max(free, sent) + random.gamma(1 / noise**2, noise**2 / rate)
        return free + usual

    return store


def test_response_times_that_rise_all_along_are_not_delivered() -> None:
    """7 % less than is due, for 12 s: too little to be seen in what ended in the second half."""
    numbers = play(queue(93, 50 * MS, 0.5), [Stage(12, (500, 500), (100, 100))])
    found = verdict_of(numbers)
    assert found.exit_code is ExitCode.NOT_DELIVERED
    said = re.search(r"response times rose by ([\d.]+) ms each second, so that (\d)", found.reasons[0].text)
    assert said is not None
    assert float(said[1]) == pytest.approx(70, rel=0.2)


@pytest.mark.parametrize("rate", [110, 130, 200])
@pytest.mark.parametrize("arrivals", ["even", "poisson"])
def test_a_busy_store_that_keeps_up_is_delivered(rate: float, arrivals: str) -> None:
    for seconds in (6, 12, 30):
        numbers = play(queue(rate, 50 * MS, 0.5), [Stage(seconds, (500, 500), (100, 100))], arrivals=arrivals)
        assert verdict_of(numbers).exit_code is ExitCode.OK


def test_a_stall_at_the_end_is_no_climb() -> None:
    store = lambda sent: max(sent, 11.5) + 1 * MS if sent >= 10.5 else sent + 1 * MS  # noqa: E731
    numbers = play(store, [Stage(12, (500, 500), (100, 100))])
    assert verdict_of(numbers).exit_code is ExitCode.OK


def test_what_began_late_is_a_warning(golden_words: GoldenWords) -> None:
    """100 users cannot do all that is due in a stall of a second; nothing is left at the end."""
    store = lambda sent: 4.0 if 3 <= sent < 4 else sent + 1 * MS  # noqa: E731
    numbers = replace(play(store, [Stage(20, (100, 100), (500, 500))]), warnings=())
    found = verdict_of(numbers)
    assert (found.outcome, found.exit_code) == (Outcome.WARNED, ExitCode.OK)
    golden_words(found.reasons[0].text)


def test_a_run_remembers_what_an_undecided_condition_counts_as() -> None:
    numbers = closed()
    run = replace(numbers.run, options={"undecided": "fail"})
    conditions = [parse_condition("read.p99.99 > 1s")]
    asked = replace(numbers, run=run)
    assert verdict_of(asked, conditions).exit_code is ExitCode.THRESHOLD
    assert verdict_of(asked, conditions, Undecided.REPORT).exit_code is ExitCode.UNDECIDED
    allowed = verdict_of(asked, conditions, Undecided.AS_PASSED)
    assert (allowed.exit_code, allowed.outcome) == (ExitCode.OK, Outcome.WARNED)
    other = replace(numbers, run=replace(numbers.run, options={"undecided": "whatever comes"}))
    assert verdict_of(other, conditions).exit_code is ExitCode.UNDECIDED


def test_a_mix_that_is_clearly_another_one_is_a_warning(golden_words: GoldenWords) -> None:
    numbers = closed()
    classes = (replace(numbers.run.scenario.size_classes[0], crud_profile=(1.0, 3.0, 0.0, 0.0)),)
    scenario = replace(numbers.run.scenario, size_classes=classes)
    found = verdict_of(replace(numbers, run=replace(numbers.run, scenario=scenario)))
    assert found.outcome is Outcome.WARNED
    golden_words([each.text for each in found.reasons])
    assert found.asked.mix == {"create": 0.25, "read": 0.75}


@pytest.mark.parametrize(("created", "outcome"), [(0.049, Outcome.GOOD), (0.051, Outcome.WARNED)])
def test_a_share_that_differs_by_more_than_a_twentieth_is_another_one(
    created: float, outcome: Outcome
) -> None:
    """Of so many operations chance explains a difference of 1.3 % at most."""
    numbers = closed()
    assert numbers.total.count > 4000
    classes = (replace(numbers.run.scenario.size_classes[0], crud_profile=(created, 1 - created, 0.0, 0.0)),)
    scenario = replace(numbers.run.scenario, size_classes=classes)
    found = verdict_of(replace(numbers, run=replace(numbers.run, scenario=scenario)))
    assert found.outcome is outcome


def test_shares_of_size_classes_add_up_to_no_more_than_all() -> None:
    """50 / 103 * 0.1 / 0.1 twice, and 3 / 103 * 0.1 / 0.1, are a little more than 1."""
    numbers = closed()
    (small,) = numbers.run.scenario.size_classes
    files = {"a": 50, "b": 50, "c": 3}
    classes = tuple(
        replace(small, name=name, initial_files=count, crud_profile=(0.0, 0.1, 0.0, 0.0))
        for name, count in files.items()
    )
    scenario = replace(numbers.run.scenario, size_classes=classes)
    found = verdict_of(replace(numbers, run=replace(numbers.run, scenario=scenario)))
    assert found.outcome is Outcome.GOOD
    assert found.asked.mix == {"read": 1.0}


def test_stages_are_delivered_each_at_its_own_rate() -> None:
    plan = [Stage(5, (4, 4), (50, 50)), Stage(5, (4, 4), (2000, 2000))]
    found = verdict_of(play(lambda sent: sent + 11.4 * MS, plan))
    assert found.exit_code is ExitCode.NOT_DELIVERED
    assert found.asked.operations == 10_250
    assert found.asked.rate is None


def retrying(share: float, pause: float) -> RunStatistics:
    """Return a run of 4 users whose requests fail in ``share`` of 100 operations, once each."""

    def store(place: int, _sent: float) -> Met:
        if place // 4 * 37 % 1000 >= 10 * share:
            return Met(5 * MS, place % 4)
        return Met(10 * MS + pause, place % 4, retried={"HTTP 503": 1}, pausing=pause)

    numbers = statistics_of(operations(store, 4, 20), 4, 20)
    return replace(numbers, warnings=())


def test_many_requests_retried_are_a_warning_in_the_first_line(golden_words: GoldenWords) -> None:
    numbers = retrying(60, 0.2)
    found = verdict_of(numbers)
    assert (found.outcome, found.exit_code) == (Outcome.WARNED, ExitCode.OK)
    (reason,) = found.reasons
    again, requests = round(numbers.total.count * 0.6), round(numbers.total.count * 1.6)
    assert abs(numbers.total.counted["retries"] - again) < 30
    assert reason.text.startswith(f"{numbers.total.counted['retries']:,} of ")
    golden_words(reason.text)
    assert abs(int(reason.text.split()[2].replace(",", "")) - requests) < 30
    # Of 128 ms on average an operation is at the store for 8.
    assert found.delivered.users == pytest.approx(4 * 8 / 128, rel=0.05)
    assert "users spent 9" in reason.text
    skipped = ElementTree.fromstring(junit.make_run_junit(numbers, ReportOptions())).findall(".//skipped")
    assert [each.get("message") for each in skipped] == [reason.text]
    first = " ".join(make_run_report("summary", numbers, ReportOptions()).split())
    assert re.search(r"WARNED: .* of 4 users; .* 0 errors; 3[78]\.\d % of requests retried", first), first


def test_few_requests_retried_are_no_warning() -> None:
    for share, outcome in ((0.9, Outcome.GOOD), (2, Outcome.WARNED)):
        assert verdict_of(retrying(share, 0.0)).outcome is outcome


def test_a_group_whose_requests_are_retried_is_named_where_they_are_few_of_all() -> None:
    """The group does a hundredth of the operations, and its failures are in no error."""
    numbers = retrying(0.0, 0.0)
    group = RunPart("backup", numbers.run.scenario.plan, retrying(60, 0.2))
    numbers_of_group = replace(numbers, by_group=(group,))
    found = verdict_of(numbers_of_group)
    assert found.outcome is Outcome.WARNED
    (text,) = (each.text for each in found.reasons if "retried" in each.text)
    assert text.startswith("group backup: ")
    said = " ".join(make_run_report("summary", numbers_of_group, ReportOptions()).split())
    assert "! group backup: " in said
    # One of all is enough.
    found = verdict_of(replace(retrying(60, 0.2), by_group=(group,)))
    assert len([each for each in found.reasons if "retried" in each.text]) == 1


def test_a_side_whose_requests_are_retried_is_named() -> None:
    numbers = retrying(0.9, 0.0)
    good, bad = (
        RunPart(name, numbers.run.scenario.plan, retrying(s, 0.0)) for name, s in (("a", 0), ("b", 2))
    )
    found = verdict_of(replace(numbers, sides=(good, bad)))
    assert found.outcome is Outcome.WARNED
    (text,) = (each.text for each in found.reasons if "retried" in each.text)
    assert text.startswith("side b: ")


def test_a_comparison_hears_of_requests_retried_of_another_mix_and_of_a_rate_that_was_missed() -> None:
    again = retrying(60, 0.2)
    lacking = closed(not_sendable=((OPERATIONS.named("delete"), "tiny", 400),))
    missed = play(lambda sent: sent + 11.4 * MS, [Stage(5, (4, 4), (2000, 2000))])
    for numbers, words in (
        (again, "were retried"),
        (lacking, "no object existed"),
        (missed, "never began"),
    ):
        alone = RunPart("backup", numbers.run.scenario.plan, numbers)
        for each, start in ((numbers, ""), (replace(closed(), by_group=(alone,)), "group backup: ")):
            (warning,) = (text for text in make_run_figures(each, "r").warnings if words in text)
            assert warning.startswith(f"r: {start}")
    assert not [*find_load_reasons(retrying(0.9, 0.0))]


def test_a_single_request_that_was_retried_is_said_in_the_singular(golden_words: GoldenWords) -> None:
    numbers = retrying(60, 0.2)
    total = replace_struct(numbers.total, count=20, counted={**numbers.total.counted, "retries": 1})
    few = replace(numbers, sections=(total,), retries=Counter({"HTTP 503": 1}))
    (reason,) = find_retry_reasons(few, ())
    golden_words(reason.text)


def test_uploads_that_may_be_done_twice_are_said_with_the_retries(golden_words: GoldenWords) -> None:
    numbers = retrying(60, 0.2)
    total = replace_struct(numbers.total, counted={**numbers.total.counted, "repeated": 1234})
    (reason,) = find_retry_reasons(replace(numbers, sections=(total,)), ())
    golden_words(reason.text)


@pytest.mark.parametrize(("resent", "count", "warns"), [(1, 99, False), (2, 98, True), (1, 20, True)])
def test_more_than_1_percent_sent_again_on_new_connections_is_a_warning(
    resent: int, count: int, warns: bool, golden_words: GoldenWords
) -> None:
    numbers = retrying(0.0, 0.0)
    total = replace_struct(
        numbers.total, count=count, failed=0, counted=numbers.total.counted | {"resent": resent}
    )
    found = [*find_retry_reasons(replace(numbers, sections=(total,)), ())]
    assert [each.warns for each in found] == [True] * warns
    for each in found:
        assert each.text.startswith(f"{resent} of {count + resent} requests (")
        golden_words(each.text)


def test_a_condition_says_how_many_requests_may_be_retried() -> None:
    assert verdict_of(retrying(60, 0.2), [parse_condition("retries > 90%")]).outcome is Outcome.GOOD


@pytest.mark.parametrize(("missing", "outcome"), [(99, Outcome.GOOD), (101, Outcome.WARNED)])
def test_listings_that_lack_more_than_one_name_in_a_hundred_are_a_warning(
    missing: int, outcome: Outcome
) -> None:
    counted = {"entries": 10_000 - missing, "missing_names": missing}
    total = replace_struct(_closed().total, counted={**_closed().total.counted, **counted})
    found = verdict_of(closed(sections=(total, *_closed().sections[1:])))
    said = [each.text for each in found.reasons]
    assert found.outcome is outcome, said
    wrong = f"listings lacked {missing} of 10,000 names (1.01 %), of objects that existed before and after"
    assert said == [wrong] * (outcome is Outcome.WARNED)


def test_the_summary_says_what_answers_lacked() -> None:
    counted = {"entries": 900, "missing_names": 100, "unsent": 2, "unchecked": 3}
    total = replace_struct(_closed().total, counted={**_closed().total.counted, **counted})
    numbers = closed(sections=(total, *_closed().sections[1:]))
    said = " ".join(make_run_report("summary", numbers, ReportOptions()).split())
    assert "! listings lacked 100 of 1,000 names (10.0 %)" in said
    assert "! 2 uploads were answered before the body was sent" in said
    assert f"! {NO_MD5}3 answers, about all of those that were looked at" in said


@pytest.mark.parametrize(
    ("name", "size", "unchecked", "verify", "share"),
    [
        ("read", 4096, 463, False, "about all"),
        ("read", 20_000, 58, False, "about all"),
        ("read", 20_000, 8, False, "about 13."),
        ("create", 4096, 463, False, "about all"),
        ("create", 4096, 70, False, "about 15."),
        ("read", 4096, 463, True, "about 0.7"),
    ],
)
def test_it_is_said_what_share_of_etags_was_none(
    name: str, size: int, unchecked: int, verify: bool, share: str, golden_words: GoldenWords
) -> None:
    usual = _closed()
    total, section = usual.sections[:2]
    counted = {**total.counted, "unchecked": unchecked}
    lines = tuple(
        replace_struct(each, count=59_201, moved=59_201 * size, counted=counted) for each in section.lines
    )
    one = replace_struct(section, operation=OPERATIONS.named(name), lines=lines)
    run = replace(usual.run, options={"verify": verify})
    numbers = replace(usual, run=run, sections=(replace_struct(total, counted=counted), one))
    (text,) = (each.text for each in find_answer_reasons(numbers))
    golden_words(text)


def test_the_summary_has_what_stands_nowhere_else_in_it() -> None:
    kinds = {kind for kind in Kind if Reason(kind, "x").in_summary}
    assert kinds == {Kind.OPERATIONS, Kind.RETRIES, Kind.MIX, Kind.DELIVERY, Kind.STALL, Kind.LIMIT}
    assert not Reason(Kind.OPERATIONS, "x", ExitCode.FAILED).in_summary
    assert not Reason(Kind.OPERATIONS, "failures that are allowed", warns=False).in_summary
    assert Reason(Kind.WARNINGS, "x", group="web").in_summary


def test_users_that_pause_are_not_the_limit_of_the_load_generator() -> None:
    assert not retrying(60, 0.2).generator.limits


def failing(share: float) -> RunStatistics:
    """A run of which this share of operations failed."""
    numbers = _closed()
    total = numbers.total
    section = replace_struct(
        total, count=total.count - round(share * total.count), failed=round(share * total.count)
    )
    return closed(sections=(section, *numbers.sections[1:]))


@pytest.mark.parametrize(
    ("share", "allowed", "code", "outcome"),
    [
        (0.9, "errors > 95%", ExitCode.FAILED, Outcome.FAILED),
        (0.6, "errors > 95%", ExitCode.FAILED, Outcome.FAILED),
        (0.4, "errors > 95%", ExitCode.OK, Outcome.GOOD),
    ],
)
def test_a_run_of_which_most_failed_is_failed_whatever_was_allowed(
    share: float, allowed: str, code: ExitCode, outcome: Outcome
) -> None:
    found = verdict_of(failing(share), [parse_condition(allowed)])
    assert (found.exit_code, found.outcome) == (code, outcome)


def test_the_first_line_speaks_of_what_the_table_has_where_a_warm_up_is_left_out(
    golden_words: GoldenWords,
) -> None:
    count = 1000
    moments = np.linspace(1e9 + 0.1, 1e9 + 20, count)
    marks = np.where(np.arange(count) < 200, int(ResultMark.WARM_UP), 0)
    columns = {"operation": np.ones(count, np.int64), "last_byte": np.full(count, 0.01), "completed": moments}
    failures = {row: Failure("HTTP 503", "no", {}) for row in (3, 5, 500)}
    collector = Collector()
    collector.add(ResultBlock(count, {**columns, "marks": marks}, failures))
    run = RunDescription(Scenario("x", (SizeClass("tiny", 1, 1, 1, (0, 1, 0, 0)),), 4, run_seconds=20.0))
    stages = (StageFacts(1e9, 1e9 + 20, None),)
    summary = RunSummary(1e9 + 20, stages=stages, sent_until=1e9 + 20.0)
    numbers = make_statistics(collector, PartContext(run, ["tiny"], summary))
    assert (numbers.warmed_up, numbers.warmed_up_failed) == (200, 2)
    found = verdict_of(numbers)
    line = make_verdict_title(found, numbers)
    assert "1,000 operations (800 without the warm-up)" in line
    assert "20 of 20 s (15.9 without the warm-up)" in line
    assert line.endswith("1 error and 2 in the warm-up")
    (reason,) = [each for each in found.reasons if "warm-up" in each.text]
    golden_words(reason.text)
    assert (reason.exit_code, reason.warns) == (ExitCode.OK, True)


def test_a_mix_has_no_operations_of_size_classes_that_a_group_does_not_use() -> None:
    pull, push = (asked_mix(part) for part in read_scenario("registry").parts)
    assert set(pull) == {"read", "pull_layer", "pull_manifest"}
    assert "pull_layer" not in push
    assert sum(push.values()) == pytest.approx(1)


def test_what_a_killed_run_of_large_objects_may_have_left_is_said() -> None:
    """Nothing named segments without a manifest, which no listing of the containers shows."""
    killed = closed(complete=False)
    scenario = killed.run.scenario
    classes = [replace(each, segment_size=5_000_000) for each in scenario.size_classes]
    large = replace(scenario, size_classes=tuple(classes))

    def said(numbers: RunStatistics) -> bool:
        return any("segments without a manifest" in each.text for each in verdict_of(numbers).reasons)

    assert not said(killed)
    assert said(replace(killed, run=replace(killed.run, scenario=large)))
    slo = replace(scenario, size_classes=(SizeClass("a", 1, 9, 1, {"slo": 1.0}),))
    assert said(replace(killed, run=replace(killed.run, scenario=slo)))
    assert not said(replace(closed(), run=replace(killed.run, scenario=large)))
