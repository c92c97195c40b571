"""What is said of the load generator's own part."""

from __future__ import annotations

import dataclasses
import math

import pytest
from golden_words import GoldenWords
from msgspec import structs
from section_lines import section_lines

from ssbench.document.elements import Section
from ssbench.reports import key_figures
from ssbench.results.run_description import Gap, HostFacts, MasterFacts, RunSummary, WorkerFacts
from ssbench.statistics.load_generator import (
    GeneratorMeasurements,
    LoadGenerator,
    describe_shared_host,
    find_unlike_workers,
    list_generator_warnings,
    summarize_generator,
)

START = 1_700_000_000.0
MEASURED = GeneratorMeasurements(
    start=START, end=START + 60, median=0.01, p99=0.05, busy=0.99, delayed=0, succeeded=200_000
)
WORKER = WorkerFacts(1, "box", "1", cpu_share=0.5, lag_p99=0.002, lag_p50=0.0001, lag_max=0.01)


def said(
    *workers: WorkerFacts, master: MasterFacts | None = None, gaps: tuple[Gap, ...] = (), **measured: object
) -> list[str]:
    these = structs.replace(MEASURED, **measured)
    summary = RunSummary(ended=START + 61, workers=workers, master=master, gaps=gaps)
    return list(list_generator_warnings(summarize_generator(summary, these), these))


def changed(**changes: object) -> WorkerFacts:
    return dataclasses.replace(WORKER, **changes)


def test_nothing_is_said_of_a_generator_that_keeps_up() -> None:
    assert said(changed(cpu_share=0.99), master=MasterFacts(0.97, 0.05)) == []
    assert said() == []
    assert said(changed(lag_p50=0.5), median=math.nan, busy=None) == []  # a no-op run


@pytest.mark.parametrize(
    ("worker", "master"),
    [
        (WORKER, MasterFacts(0.95)),
        (changed(cpu_share=0.97), MasterFacts(0.5)),
        (changed(cpu_share=None), None),
        (WORKER, None),
    ],
)
def test_where_users_were_idle_it_says_what_to_change(
    worker: WorkerFacts, master: MasterFacts | None, golden_words: GoldenWords
) -> None:
    (sentence,) = said(worker, master=master, busy=0.9)
    golden_words(sentence)


def test_where_others_had_the_cpu_nothing_is_advised_but_to_end_them(golden_words: GoldenWords) -> None:
    host = HostFacts("box", 2, other_cpu=0.6, waited=0.3, denied=0.5)
    for master in (MasterFacts(0.95), None):
        summary = RunSummary(ended=START + 61, workers=(WORKER,), master=master, hosts=(host,))
        measured = structs.replace(MEASURED, busy=0.9)
        limit, shared = list_generator_warnings(summarize_generator(summary, measured), measured)
        assert limit == (
            "Load generator overloaded: users were busy for 90.0 % of the window. Others used the"
            " CPU of its host"
        )
        golden_words(shared)


@pytest.mark.parametrize(
    ("load_end", "pressed", "is_shared"),
    [(9.0, 0.81, True), (9.0, 0.79, False), (9.0, None, True), (7.5, None, True), (6.9, None, False)],
)
def test_without_the_waits_of_threads_a_host_is_shared_where_its_run_queue_is_long(
    load_end: float, pressed: float | None, is_shared: bool
) -> None:
    host = HostFacts("box", 2, load_end=load_end, other_cpu=0.6, pressed=pressed, processes=3)
    assert bool(describe_shared_host(host)) == is_shared


@pytest.mark.parametrize(
    ("other", "waited", "denied", "is_shared"),
    [
        (0.26, 0.021, 0.34, True),
        (0.25, 0.021, 0.34, False),
        (0.26, 0.02, 0.34, False),
        (0.26, 0.021, 0.33, False),
        (0.9, None, 0.9, False),
        (None, 0.9, 0.9, False),
    ],
)
def test_a_host_is_shared_where_others_use_a_quarter_of_it_and_the_run_waits_for_a_third_of_what_it_wants(
    other: float | None, waited: float | None, denied: float, is_shared: bool
) -> None:
    host = HostFacts("box", 2, other_cpu=other, waited=waited, denied=denied, load_end=99.0)
    assert bool(describe_shared_host(host)) == is_shared


def test_what_a_hypervisor_takes_is_said_first(golden_words: GoldenWords) -> None:
    busy = HostFacts("box", 2, other_cpu=0.6, waited=0.3, denied=0.5, load_begin=0.25, load_end=3.0)
    assert describe_shared_host(busy) == "other programs used 60.0 % of its CPU"
    assert describe_shared_host(dataclasses.replace(busy, stolen=0.05)) == describe_shared_host(busy)
    stolen = dataclasses.replace(busy, stolen=0.06)
    assert describe_shared_host(stolen) == "a hypervisor gave 6.00 % of its CPU to others"
    for host in (busy, dataclasses.replace(busy, denied=None, load_end=99.0)):
        summary = RunSummary(ended=START + 61, workers=(WORKER,), hosts=(HostFacts("idle", 2), host))
        (sentence,) = list_generator_warnings(summarize_generator(summary, MEASURED), MEASURED)
        golden_words(sentence)
    unknown = dataclasses.replace(stolen, load_begin=None)
    summary = RunSummary(ended=START + 61, workers=(WORKER,), hosts=(unknown,))
    (sentence,) = list_generator_warnings(summarize_generator(summary, MEASURED), MEASURED)
    assert " of the time it wanted a CPU (2 cores). Run nothing else" in sentence


@pytest.mark.parametrize(
    ("master", "worker", "stalls"),
    [
        (0.91, 0.95, True),
        (0.9, 0.95, True),
        (0.9, 0.9, True),
        (0.9, 0.9, False),
    ],
)
def test_users_idle_first_for_a_busy_core_and_then_for_stalls(
    master: float, worker: float, stalls: bool, golden_words: GoldenWords
) -> None:
    workers = changed(cpu_share=None), changed(worker_id=2, cpu_share=worker), changed(cpu_share=0.3)
    gaps = (Gap(1, START + 7.0, 1.0),) if stalls else ()
    *_, sentence = said(*workers, master=MasterFacts(master), gaps=gaps, busy=0.9)
    golden_words(sentence.partition("% of the window. ")[2])


def test_a_summary_of_a_run_is_what_it_says_of_its_generator() -> None:
    """Stalls are those longer than a tenth of a second and than the 99th percentile, within the window."""
    gaps = tuple(
        Gap(1, START + begins, seconds)
        for begins, seconds in ((1.0, 0.1), (2.0, 0.11), (-0.2, 0.2), (-0.2, 0.21), (60.0, 1.0), (59.9, 1.0))
    )
    summary = RunSummary(ended=START + 61, workers=(WORKER,), master=MasterFacts(0.5), gaps=gaps)
    own = summarize_generator(summary, MEASURED)
    assert (own.master, own.workers, own.limits, own.lacking) == (summary.master, (WORKER,), (), ())
    assert own.gaps == (gaps[1], gaps[3], gaps[5])
    assert summarize_generator(summary, structs.replace(MEASURED, p99=math.nan)).gaps == own.gaps
    assert summarize_generator(summary, structs.replace(MEASURED, p99=0.11)).gaps == (gaps[3], gaps[5])
    assert summarize_generator(None, MEASURED) == LoadGenerator()


def test_users_that_wait_for_objects_are_not_idle_because_of_the_generator(golden_words: GoldenWords) -> None:
    golden_words(said(WORKER, master=MasterFacts(0.5), busy=0.375, waited=0.9))
    # Of some operations it is not known how long they took.
    (sentence,) = said(WORKER, busy=0.375, untimed=0.125, waited=0.9)
    golden_words(sentence)
    assert said(WORKER, busy=0.96, waited=1.0) == []
    # So few waits leave no users idle.
    (sentence,) = said(WORKER, busy=0.8, waited=0.1)
    assert "Load generator overloaded: users were busy for 80.0 %" in sentence


def test_a_run_of_less_than_a_second_does_not_say_why_users_were_idle(golden_words: GoldenWords) -> None:
    """It once was good where they did nothing for five sixths of their time."""
    golden_words(said(WORKER, busy=0.17, end=START + 0.0167))
    assert said(WORKER, busy=0.17, waited=1.0, end=START + 0.0167) == []
    assert said(WORKER, busy=0.5, end=START + 0.0167) == []
    assert said(WORKER, busy=0.7, end=START + 0.99) == []
    assert said(WORKER, busy=0.7, waited=1.0, end=START + 0.99) == []
    assert len(said(WORKER, busy=0.7, end=START + 1.0)) == 1


def test_the_tail_is_judged_where_it_is_moved_by_more_than_its_interval() -> None:
    late = changed(lag_p99=0.02)  # by 14 ms at least
    assert said(late, p99=0.05, p99_least=-math.inf) == []  # the run is too short to have an interval
    assert said(late, p99=0.05, p99_least=0.035) == []
    assert len(said(late, p99=0.05, p99_least=0.037)) == 1
    assert said(changed(lag_p99=0.007), p99=0.05, p99_least=0.0499) == []  # less than a tenth


def test_a_loop_is_the_limit_when_it_is_late_by_a_tenth_of_the_median_latency(
    golden_words: GoldenWords,
) -> None:
    assert said(changed(lag_p50=0.00099)) == []
    (sentence,) = said(changed(lag_p50=0.0012))
    golden_words(sentence)
    many = said(*(changed(worker_id=number, lag_p50=0.002 * number) for number in range(1, 9)))
    assert len(many) == 4
    assert [
        f"worker {number} on box" in sentence for number, sentence in zip((8, 7, 6), many, strict=False)
    ] == [True] * 3
    assert many[-1] == "So did 5 more workers"


def test_a_loop_that_is_late_by_a_tenth_of_the_99th_percentile_is_the_limit_of_the_tail(
    golden_words: GoldenWords,
) -> None:
    assert said(changed(lag_p99=0.005 * 2**0.5 - 1e-6)) == []  # it may have been half an octave less
    assert said(changed(lag_p99=0.013), p99=math.nan) == []
    (sentence,) = said(changed(lag_p99=0.013), p99=0.02)
    golden_words(sentence)
    (sentence,) = said(*(changed(worker_id=number, lag_p99=0.01 * number) for number in range(1, 4)))
    assert "worker 3 on box" in sentence
    assert "; 2 more workers did so by less." in sentence
    assert len(said(changed(lag_p99=0.013, lag_p50=0.013))) == 1  # said once


def test_times_in_which_it_stood_still_are_named(golden_words: GoldenWords) -> None:
    gaps = (
        Gap(1, START + 7.0, 1.003),
        Gap(None, START + 20.0, 0.5),
        Gap(1, START + 30.0, 0.04),  # shorter than the 99th percentile
        Gap(1, START - 5.0, 2.0),  # before the window
        Gap(9, START + 59.5, 2.0),
    )
    (sentence,) = said(WORKER, gaps=gaps, delayed=12)
    golden_words(sentence)
    (sentence,) = said(WORKER, gaps=gaps, delayed=1)
    golden_words(sentence)
    (sentence,) = said(WORKER, gaps=gaps, delayed=1234)
    golden_words(sentence)
    assert said(WORKER, gaps=gaps[:1], p99=1.1) == []
    (many,) = said(WORKER, gaps=tuple(Gap(1, START + place, 0.2 + place / 100) for place in range(9)))
    assert "for 0.240 s from 4.000 s on" in many
    assert "for 0.230 s from" not in many
    assert "; 4 more." in many


def test_latencies_that_are_left_out_are_a_reason_above_1_percent_however_short_the_stalls(
    golden_words: GoldenWords,
) -> None:
    short = (Gap(1, START + 1, 0.2),)
    assert said(WORKER, gaps=short, p99=3.0, median=3.0, delayed=20, succeeded=2000) == []
    (sentence,) = said(WORKER, gaps=short, p99=3.0, median=3.0, delayed=2468, succeeded=6900)
    golden_words(sentence)
    stalled, left_out = said(WORKER, gaps=short, delayed=21, succeeded=2000)
    golden_words(stalled)
    assert "(21 of 2,000)" in left_out


def test_clocks_that_drift_or_show_another_time_are_named() -> None:
    assert said(changed(clock_slope=-499e-6, wall_offset=0.09)) == []
    drift, offset = said(changed(clock_slope=-600e-6, wall_offset=-2.5))
    assert drift.startswith("The clock of worker 1 on box is at least 600 ppm fast against")
    assert offset.startswith(
        "Clocks: the time of day of worker 1 on box is at least 2.500 s ahead of the master's"
    )


def test_the_report_shows_those_whose_loops_are_latest(golden_words: GoldenWords) -> None:
    workers = tuple(changed(worker_id=number, lag_p99=number / 1000) for number in range(20))
    own = LoadGenerator(MasterFacts(0.25, 0.0123, 2.5), workers)
    lines = section_lines(Section("", [*key_figures.make_generator_elements(own)]))
    assert lines[1].split() == ["master", "25.0", "-", "-", "12.3"]
    assert lines[2].split() == ["worker", "19", "on", "box", "50.0", "0.100", "19.0", "10.0"]
    golden_words(lines[-3:])
    assert section_lines(Section("", [*key_figures.make_generator_elements(LoadGenerator())])) == []


def test_a_worker_whose_latencies_are_far_below_those_of_the_others_is_named(
    golden_words: GoldenWords,
) -> None:
    fleet = [WorkerFacts(1, "one"), WorkerFacts(2, "two"), WorkerFacts(7, "evil")]
    counts = {1: 400, 2: 500, 7: 39_608}
    (sentence,) = find_unlike_workers({1: 0.005, 2: 0.006, 7: 1e-6}, counts, fleet)
    golden_words(sentence)
    for typical, number in (({1: 0.005, 7: 0.00049}, 1), ({1: 0.005, 7: 0.00051}, 0), ({7: 1e-6}, 0)):
        assert len([*find_unlike_workers(typical, counts, fleet)]) == number
    assert not [*find_unlike_workers({1: 0.005, 7: 1e-6}, {1: 99, 7: 39_608}, fleet)]
    apart = [*fleet[:2], WorkerFacts(7, "near", site="near")]
    assert not [*find_unlike_workers({1: 0.005, 2: 0.006, 7: 1e-6}, counts, apart)]
