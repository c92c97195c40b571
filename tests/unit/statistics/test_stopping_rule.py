"""Ending a run when figures are known precisely enough."""

from __future__ import annotations

import math
import pickle

import numpy as np
import numpy.typing as npt
import pytest
from counted import failed
from golden_words import GoldenWords
from noise import correlated
from simulated_steps import RATE, bursty_rates, rates, until_known

from ssbench.results.block import Failure, ResultBlock
from ssbench.results.result_fields import ResultMark
from ssbench.results.run_description import PrecisionFacts
from ssbench.scenario.conditions import parse_precisions
from ssbench.scenario.operations import OPERATIONS
from ssbench.statistics.stopping_rule import (
    StoppingRule,
    StoppingSink,
    describe_precision,
    estimate_half_width,
)

START = 1e9
CODES = {each.name: each.code for each in OPERATIONS.drawn}


def look(rule: StoppingRule, seconds: float, *widths: float) -> bool:
    return rule.look(seconds, lambda _: widths)


def second_of(
    second: int,
    count: int = 10,
    failures: dict[int, Failure] | None = None,
    **columns: npt.NDArray[np.float64],
) -> ResultBlock:
    moments = START + second + np.linspace(0.0, 0.9, count)
    return ResultBlock(count, {"completed": moments, **columns}, failures=failures or {})


NUMBERS = {("operation", each.name): each.code for each in OPERATIONS.drawn}
NUMBERS |= {("size_class", "tiny"): 1, ("group", "web"): 1}


def make_sink(text: str) -> StoppingSink:
    return StoppingSink(parse_precisions(text), NUMBERS)


def make_times(seed: int, seconds: int, count: int = 200, spread: float = 0.6) -> npt.NDArray[np.float64]:
    return 0.01 * np.random.default_rng(seed).lognormal(0, spread, (seconds, count))


def feed(sink: StoppingSink, times: npt.NDArray[np.float64], **columns: float) -> int:
    """Hand over the latencies of one second after the other; return how many it took."""
    for second, each in enumerate(times):
        more = {name: np.full(len(each), value) for name, value in columns.items()}
        sink.add(second_of(second, len(each), last_byte=each, **more))
        sink.tick(0.0)
        if sink.reached():
            return second + 1
    return len(times)


# -- When it looks ---------------------------------------------------------------------------------


def test_it_looks_at_its_times_however_late_they_come() -> None:
    rule = StoppingRule([0.02])
    assert not look(rule, 59.9, 0.01)
    assert (rule.seen, rule.widths) == (0.0, (math.inf,))
    assert not look(rule, 74.9, 0.03)
    assert (rule.seen, rule.widths, rule.next_look) == (60.0, (0.03,), 75.0)
    assert look(rule, 75, 0.01)
    assert rule.seen == 75.0
    late = StoppingRule([0.02])
    seen: list[float] = []
    assert late.look(1000.0, lambda seconds: [seen.append(seconds) or 1.2 / seconds])  # both looks at once
    assert seen == [60.0]


def test_all_figures_have_to_be_precise_at_the_same_look() -> None:
    rule = StoppingRule([0.02, 0.05])
    assert not look(rule, 60, 0.01, 0.06)
    assert not look(rule, 75, 0.03, 0.05)
    assert look(rule, 93.75, 0.02, 0.04)


def test_the_time_that_is_needed_grows_with_the_square_of_what_is_missing() -> None:
    rule = StoppingRule([0.05])
    assert rule.needed(0) == math.inf
    look(rule, 60, 0.1)
    assert rule.needed(0) == pytest.approx(60 * 1.25**7)  # four times as long would be 240 s
    look(rule, 75, 0.05)
    assert rule.needed(0) == 75


@pytest.mark.parametrize(("phi", "target"), [(0.0, 0.02), (0.9, 0.02), (0.95, 0.1), (None, 0.05)])
def test_the_rate_of_a_run_that_ended_itself_is_as_near_as_was_asked(
    phi: float | None, target: float
) -> None:
    """In 93 of 100 runs of an hour and more, of bursts (None) too; chance takes some of 60."""
    series = bursty_rates(1, 60, 3600) if phi is None else rates(1, 60, 3600, phi=phi)
    truth = RATE * (1.0157 if phi is None else math.exp(0.05**2 / 2))
    ended, right = until_known(series, truth, target)
    assert ended >= 45
    assert right >= 0.87 * ended


# -- How wide an interval is -----------------------------------------------------------------------


@pytest.mark.parametrize(("phi", "factor"), [(0.0, 1.0), (0.9, 19.0)])
def test_the_interval_knows_how_much_seconds_have_in_common(phi: float, factor: float) -> None:
    """Of many seconds it is that of the process, which is known; of few it is wider."""
    many, few = (
        np.median([estimate_half_width(each) for each in correlated(np.random.default_rng(1), 9, count, phi)])
        for count in (1000, 60)
    )
    known = 1.96 * math.sqrt(factor / 1000)
    assert known < many < 1.4 * known
    assert few > math.sqrt(1000 / 60) * known


def test_a_run_that_changes_all_the_time_is_hardly_known_nor_are_few_seconds() -> None:
    assert estimate_half_width(np.linspace(90.0, 110.0, 60)) > 10
    assert math.isinf(estimate_half_width(np.ones(9)))
    assert estimate_half_width(np.ones(60)) == 0.0
    assert 0 < estimate_half_width(100 + np.tile([1.0, -1.0], 30)) < 1


# -- What it counts --------------------------------------------------------------------------------


def test_the_first_second_and_the_last_two_are_not_whole() -> None:
    sink = make_sink("2%")
    for second in range(63):
        sink.add(second_of(second, count=7 if second == 0 else 10))
        sink.tick(float(second))
        assert not sink.reached()  # the first look is at 60 s
    sink.add(second_of(63, marks=np.full(10, ResultMark.WARM_UP)))
    sink.tick(63.0)
    assert not sink.reached()
    sink.add(second_of(63, count=1))
    sink.tick(63.0)
    assert sink.reached()
    assert sink.facts() == (PrecisionFacts("rate", 0.02, 0.0, 60.0, reached=True),)


def test_failures_are_no_part_of_the_rate() -> None:
    """Each second begins with failures: the first is the first in which something succeeded."""
    plain, mixed = make_sink("2%"), make_sink("2%")
    mixed.add(second_of(-5, failures=failed(*range(10))))
    for second in range(79):
        count = 10 + second % 3
        plain.add(second_of(second, count))
        mixed.add(second_of(second, count + 3, failures=failed(*range(second % 4, second % 4 + 3))))
    for sink in (plain, mixed):
        sink.tick(0.0)
    assert mixed.facts() == plain.facts()
    assert mixed.facts()[0].seconds == 75.0


def test_a_percentile_takes_as_long_as_its_chance_says() -> None:
    """It needs 1.96^2 p (1 - p) / (precision x density)^2 independent latencies, and the rule some more."""
    sink = make_sink("read.p99 5%")
    took = feed(sink, make_times(1, 600), operation=CODES["read"])
    density = 0.0267 / 0.6  # of the logarithm, at its 99th percentile
    least = 1.96**2 * 0.99 * 0.01 / (0.05 * density) ** 2 / 200
    assert least < took < 6 * least
    (facts,) = sink.facts()
    assert facts.reached
    assert 0.02 < (facts.width or 0) <= 0.05


def test_only_the_results_that_a_figure_is_of_count() -> None:
    sink = make_sink("web.read.tiny.p50 10%")
    for second in range(64):
        count = 400
        place = np.arange(count)
        operation = np.where(place % 2, CODES["read"], CODES["create"])
        size_class, group = place // 2 % 2, place // 4 % 2
        own = (place % 8) == 7
        last_byte = np.where(own, 0.01, np.random.default_rng(second).lognormal(0, 3, count))
        columns = {"operation": operation, "size_class": size_class, "group": group, "last_byte": last_byte}
        sink.add(second_of(second, count, **columns))
    sink.tick(0.0)
    (facts,) = sink.facts()
    assert facts.figure == "web.read.tiny.p50"
    assert facts.width == pytest.approx(0.0, abs=0.005)  # to the width of a bucket


@pytest.mark.parametrize(
    ("figure", "truth"),
    [("mean", 0.6 * 0.74), ("errors", math.sqrt(0.9 / 0.1)), ("mb_per_s", 0.5 / math.sqrt(1 / 12) / 3)],
)
def test_means_and_shares_have_intervals_too(figure: str, truth: float) -> None:
    """Of independent operations: ``truth`` is their spread as a share of the mean, or about so."""
    random = np.random.default_rng(2)
    sink = make_sink(f"{figure} 1%")
    for second in range(64):
        bad = np.flatnonzero(random.random(400) < 0.1)
        columns = {"last_byte": random.lognormal(0, 0.6, 400), "size": 1000 * random.uniform(0, 1, 400)}
        sink.add(second_of(second, 400, failed(*bad.tolist()), **columns))
    sink.tick(0.0)
    width = sink.facts()[0].width or 0.0
    least = 1.96 * truth / math.sqrt(60 * 400)
    assert least < width < 3 * least


@pytest.mark.parametrize("due", [False, True])
def test_latencies_of_an_open_loop_count_from_when_they_were_due(due: bool) -> None:
    sink = make_sink("p50 2% and service_p50 2%")
    for second in range(64):
        took = np.full(100, 0.01)
        waited = np.random.default_rng(second).lognormal(0, 1, 100)
        columns = {"due": START + second + np.linspace(0.0, 0.9, 100) - waited} if due else {}
        sink.add(second_of(second, 100, last_byte=took, **columns))
    sink.tick(0.0)
    users, service = (facts.width or 0.0 for facts in sink.facts())
    assert service < 0.005
    assert (users > 0.02) is due


def test_a_long_run_is_known_in_longer_intervals_of_time() -> None:
    """After an hour of seconds, it is as if they had been intervals of four seconds from the beginning."""
    counts = np.random.default_rng(3).poisson(20, 3601)
    sink = make_sink("rate 0.01% and p50 0.01%")
    for second, count in enumerate(counts):
        sink.add(second_of(second, count, last_byte=np.full(count, 0.01 * (1 + second % 7))))
    sink.tick(0.0)
    rate, p50 = sink.facts()
    looked = 60 * 1.25**18
    series = counts[1 : 1 + int(looked) // 4 * 4].reshape(-1, 4).sum(axis=1).astype(float)
    assert rate.seconds == int(looked)
    assert rate.width == pytest.approx(estimate_half_width(series) / series.mean())
    assert p50.width is not None
    assert len(pickle.dumps(sink)) < 150_000  # of a second each it would be 300,000


# -- What it says ----------------------------------------------------------------------------------


def test_what_is_missing_is_the_figure_that_takes_longest() -> None:
    sink = make_sink("rate 50% and p99 3%")
    assert sink.missing() == ""
    feed(sink, make_times(4, 65))
    said = sink.missing()
    assert said.startswith("p99 known to ")
    assert said.endswith(" min more")
    never = make_sink("delete.p99 5%")
    feed(never, make_times(4, 65), operation=CODES["read"])
    assert never.missing() == "delete.p99 not known yet"


def test_how_it_ended_is_said_with_what_would_do(golden_words: GoldenWords) -> None:
    ended = [
        PrecisionFacts("rate", 0.02, 0.0163, 141.0, reached=True),
        PrecisionFacts("read.p99", 0.05, 0.042, 141.0, reached=True),
    ]
    golden_words(describe_precision(ended))
    short = [PrecisionFacts("rate", 0.02, None, 0.0, reached=False)]
    golden_words(describe_precision(short))
    missing = [
        PrecisionFacts("rate", 0.02, 0.01, 141.0, reached=False, needed=141.0),
        PrecisionFacts("read.p99", 0.05, 0.08, 141.0, reached=False, needed=430.0),
    ]
    golden_words(describe_precision(missing))
    unknown = [PrecisionFacts("read.p99", 0.05, None, 141.0, reached=False)]
    assert describe_precision(unknown).endswith("how precise read.p99 is, of which 5 % was asked for")
    once = [PrecisionFacts("rate", 0.02, 0.01, 60.0, reached=False, needed=75.0)]  # of an older file
    assert "at the last look only" in describe_precision(once)
