"""Figures of traffic, against planted numbers."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import MISSING, fields
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st
from logged_traffic import BEGAN, swift_line

from ssbench.base.errors import UsageError
from ssbench.logs.log_files import LogFile
from ssbench.logs.logged_requests import RequestColumns, read_requests
from ssbench.logs.request_formats import find_request_format
from ssbench.scenario.draws import Arrivals
from ssbench.scenario.model import Stage
from ssbench.traffic import object_uses
from ssbench.traffic.made_scenario import find_burst, make_stages
from ssbench.traffic.misfits import FittedArrivals
from ssbench.traffic.traffic_figures import (
    SCAN_READS,
    TRAFFIC_FIGURES,
    Traffic,
    compute_figures,
    find_dispersion,
    find_gini,
    find_listing_order,
    find_scan_share,
    find_surge,
)

#: (method, path, status, when, bytes): two objects live for 20 s, the third is read first after 4 s.
STEPS = [
    ("PUT", "c/a", 201, 0.0, 10),
    ("PUT", "c/b", 201, 1.0, 30),
    ("GET", "c/a", 200, 4.0, 10),
    ("GET", "c/a", 206, 5.0, 3),
    ("GET", "d", 200, 6.0, 99),
    ("DELETE", "c/a", 204, 20.0, 0),
    ("DELETE", "c/b", 204, 21.0, 0),
    ("GET", "c/b", 404, 22.0, 0),
    ("GET", "c/b", 499, 40.0, 0),
    ("HEAD", "d/z", 503, 50.0, 0),
]


@pytest.fixture
def traffic(tmp_path: Path) -> Traffic:
    log = tmp_path / "log"
    log.write_text(
        "".join(
            swift_line(
                BEGAN + when,
                method,
                f"/v1/a/{path}",
                status,
                seconds=2.0,
                **{"received" if method == "PUT" else "sent": size},
            )
            for method, path, status, when, size in STEPS
        )
    )
    return Traffic(read_requests([LogFile(log, "n")], find_request_format("swift")))


def test_figures_of_a_few_requests(traffic: Traffic) -> None:
    found = dict(zip((each.title for each in TRAFFIC_FIGURES), compute_figures(traffic), strict=True))
    assert found["requests a second"] == pytest.approx(10 / 50)
    assert (found["put"], found["range"], found["list"]) == (0.2, 0.1, 0.1)
    assert (found["not found (404)"], found["client gone (499)"]) == (0.1, 0.1)
    assert (found["failed (4xx, 5xx)"], found["failed (5xx)"]) == (0.3, 0.1)
    assert (found["objects"], found["uploads of new objects"]) == (2, 2)
    assert found["size of objects, p50"] == 20
    assert found["size by use, p50"] == 10
    assert found["lifetime, median"] == pytest.approx(20.0)
    assert found["upload to first use, median"] == pytest.approx(12.0)  # 4 and 20
    assert found["containers"] == 2
    assert found["Gini of containers"] == pytest.approx(5 / 14)  # 1 and 6 that went well
    assert found["requests at once (Little)"] == pytest.approx(2.0 * 10 / 50)


def test_a_figure_in_words() -> None:
    by_title = {each.title: each for each in TRAFFIC_FIGURES}
    share, size, ratio = (by_title[each] for each in ("read", "size by use, p50", "dispersion at 1 s"))
    assert share.format(0.1234) == "12.34 %"
    assert share.format_distance(share.distance(0.5, 0.48)) == "-2.00 points"
    assert size.format_distance(size.distance(100, 125)) == "+25.0 %"
    assert ratio.format_distance(ratio.distance(1.5, 2.0)) == "+0.500"
    rate = by_title["requests a second"]
    assert [rate.format(each) for each in (0.351, 14.2, 1234.5)] == ["0.351", "14.2", "1,234"]
    assert [size.format(each) for each in (0, 1, 17)] == ["0 bytes", "1 byte", "17 bytes"]
    assert (ratio.format(math.nan), size.format_distance(size.distance(0, 5))) == ("-", "-")


def test_gini() -> None:
    assert find_gini(np.array([5, 5, 5, 5])) == pytest.approx(0.0)
    assert find_gini(np.array([0, 0, 0, 1])) == pytest.approx(0.75)
    assert math.isnan(find_gini(np.array([0])))


def find_burst_of(traffic: Traffic) -> FittedArrivals:
    return find_burst(traffic, make_stages(traffic))


def arrivals_log(path: Path, kind: str, rate: float, seconds: float) -> Traffic:
    moments = Arrivals([Stage(seconds, rate=(rate, rate))], kind, 3).take(10**6)
    path.write_text("".join(swift_line(BEGAN + moment, "GET", "/v1/a/c/o", sent=1) for moment in moments))
    return Traffic(read_requests([LogFile(path, "n")], find_request_format("swift")))


@pytest.mark.parametrize(("rate", "seconds"), [(4, 2000.0), (40, 300.0)])
def test_bursts_come_back_though_few_arrive_in_a_second(tmp_path: Path, rate: float, seconds: float) -> None:
    found = find_burst_of(arrivals_log(tmp_path / "log", "burst 6", rate, seconds))
    assert isinstance(found, dict)
    assert found["burst"] == pytest.approx(6, rel=0.3)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("rate", "burst"), [(50.0, 6.0), (4.0, 12.0)])
def test_bursts_of_busy_hours_come_back_though_nights_are_quiet(rate: float, burst: float, seed: int) -> None:
    plan = [Stage(200_000 / rate, rate=(each, each)) for each in (rate, rate / 100)]
    found = find_burst_of(traffic_of(np.array(Arrivals(plan, f"burst {burst:g}", seed).take(10**6))))
    assert isinstance(found, dict)
    assert found["burst"] == pytest.approx(burst, rel=0.2)


@pytest.mark.parametrize(("kind", "expected"), [("poisson", "poisson"), ("even", None)])
def test_the_uploads_of_a_second_are_no_bursts(tmp_path: Path, kind: str, expected: str | None) -> None:
    """A benchmark uploads its objects first, as quickly as it can."""
    path = tmp_path / "log"
    arrivals_log(path, kind, 25, 300.0)
    uploads = (BEGAN - 2 + number / 200 for number in range(400))
    path.write_text(
        "".join(swift_line(each, "PUT", "/v1/a/c/o", sent=1) for each in uploads) + path.read_text()
    )
    traffic = Traffic(read_requests([LogFile(path, "n")], find_request_format("swift")))
    assert find_burst_of(traffic) == expected
    surge = find_surge(traffic.rates[:-1])
    assert sum(traffic.rates[traffic.rates >= surge]) == pytest.approx(400, abs=30)


def test_independent_users_and_even_arrivals(tmp_path: Path) -> None:
    assert find_burst_of(arrivals_log(tmp_path / "log", "poisson", 20, 600.0)) == "poisson"
    assert find_burst_of(arrivals_log(tmp_path / "log", "even", 20, 200.0)) is None
    assert find_burst_of(arrivals_log(tmp_path / "log", "poisson", 20, 3.0)) is None  # too short to tell


def traffic_of(moments: np.ndarray) -> Traffic:
    """Return reads at such moments, as if read from a log."""
    began = BEGAN + np.sort(moments)
    columns: dict[str, Any] = {
        field.name: np.zeros(len(began), np.int64)
        for field in fields(RequestColumns)
        if field.default is MISSING
    }
    return Traffic(RequestColumns(**{**columns, "began": began}))


@pytest.mark.parametrize("offset", [0.0, 0.5, 0.9])
def test_a_minute_of_independent_users_has_no_bursts_by_chance(offset: float) -> None:
    """The log begins within a second, and its seconds differ by chance."""
    random = np.random.default_rng(12)
    found = [
        find_burst_of(traffic_of(offset + 60 * random.random(random.poisson(rate * 60))))
        for rate in (5, 60, 500, 2000)
        for _ in range(25)
    ]
    assert found.count("poisson") >= 95


def test_the_second_in_which_a_log_begins_says_nothing_of_bursts() -> None:
    random = np.random.default_rng(13)
    traffic = traffic_of(0.9 + 130 * random.random(130_000))
    assert find_dispersion(traffic, 1) == pytest.approx(1, abs=0.3)
    assert traffic.rates[:-1].min() > 850


@pytest.mark.parametrize("jitter", [0.0, 1.0])
@pytest.mark.parametrize(("rate", "seconds"), [(60.0, 60.0), (20.0, 600.0)])
def test_requests_at_even_distances_are_even(rate: float, seconds: float, jitter: float) -> None:
    random = np.random.default_rng(14)
    moments = (np.arange(rate * seconds) + jitter * random.random(int(rate * seconds))) / rate
    assert find_burst_of(traffic_of(moments)) is None


def test_bursts_within_seconds_do_not_become_waves_of_minutes() -> None:
    """A page with its twenty pictures, by independent users: no scenario's bursts are so short."""
    random = np.random.default_rng(18)
    began = 3600 * random.random(1000)
    traffic = traffic_of((began[:, np.newaxis] + 0.1 * random.random((1000, 20))).ravel())
    match find_burst_of(traffic):
        case {"burst": float(burst)}:
            assert 10 < burst < 60
        case other:
            pytest.fail(str(other))


@pytest.mark.parametrize("kind", ["even", "poisson", "burst 3", "burst 12"])
def test_what_is_made_of_arrivals_is_as_dispersed_at_every_scale(kind: str) -> None:
    def draw(kind: str, seed: int) -> np.ndarray:
        return np.array(Arrivals([Stage(1800.0, rate=(60.0, 60.0))], kind, seed).take(10**6))

    def disperse(moments: np.ndarray, window: float) -> float:
        counts = np.bincount((moments / window).astype(np.int64))[:-1]
        return float(counts.var() / counts.mean())

    log = draw(kind, 15)
    match find_burst_of(traffic_of(log)):
        case None:
            made = "even"
        case {"burst": float(burst)}:
            made = f"burst {burst:g}"
        case other:
            made = str(other)
    assert made.partition(" ")[0] == kind.partition(" ")[0]
    again = draw(made, 16)
    for window in (0.01, 0.1, 1.0):
        assert disperse(again, window) == pytest.approx(disperse(log, window), rel=0.2, abs=0.02), window


def test_a_second_with_few_requests_is_no_surge() -> None:
    assert math.isinf(find_surge(np.array([20] * 10 + [1] + [20] * 10)))
    assert find_surge(np.array([20] * 10 + [90] + [20] * 10)) == 90


def test_a_request_more_than_in_all_other_seconds_is_no_surge() -> None:
    assert math.isinf(find_surge(np.array([30] * 600 + [31])))
    assert math.isinf(find_surge(np.array([1] * 600 + [3])))


def find_surge_at_once(rates: np.ndarray) -> np.ndarray:
    """Return the seconds of a surge, as they are defined, with all seconds in memory."""
    most = max(int(np.count_nonzero(rates)) // 20, 1)
    squares = (rates - np.median(rates)) ** 2.0
    order = np.lexsort((rates, -squares))
    largest, usual = order[:most], squares[order[most]]
    if squares[largest].sum() < 0.8 * squares.sum() or 2 * rates[largest].sum() > rates.sum():
        return np.zeros(0, np.int64)
    least = np.median(rates) + 6 * np.sqrt(max(np.median(rates), 1))
    return np.sort(largest[(squares[largest] > 4 * usual) & (rates[largest] > least)])


@given(
    st.lists(st.integers(0, 30), min_size=10, max_size=90),
    st.lists(st.integers(0, 3000), max_size=6),
    st.randoms(use_true_random=False),
)
def test_a_surge_is_found_as_it_is_defined(usual: list[int], more: list[int], random: Random) -> None:
    numbers = [*usual, *more]
    random.shuffle(numbers)
    rates = np.array(numbers)
    assert np.flatnonzero(rates >= find_surge(rates)).tolist() == find_surge_at_once(rates).tolist()


def test_the_seconds_of_a_year_are_not_in_memory() -> None:
    moments = 365 * 86_400 * np.random.default_rng(17).random(20_000)
    moments[:2000] = np.arange(2000) / 500
    traffic = traffic_of(moments)
    tracemalloc.start()
    try:
        assert find_burst_of(traffic) == "poisson"
        assert find_dispersion(traffic, 60) > 100
        assert int(traffic.rates.sum()) == 20_000
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 30e6


@pytest.mark.parametrize("wrong", [0.0, BEGAN + 900 * 86_400])
def test_a_line_of_a_wrong_clock_is_told(tmp_path: Path, golden_words: GoldenWords, wrong: float) -> None:
    log = tmp_path / "log"
    moments = [BEGAN, BEGAN + 1, BEGAN + 2, wrong]
    log.write_text("".join(swift_line(each, "GET", "/v1/a/c/o", sent=9) for each in moments))
    requests = read_requests([LogFile(log, "n")], find_request_format("swift"))
    with golden_words.raises(UsageError):
        Traffic(requests)


def test_a_log_of_fourteen_months_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(swift_line(BEGAN + each * 43e5, "GET", "/v1/a/c/o", sent=9) for each in range(10)))
    assert Traffic(read_requests([LogFile(log, "n")], find_request_format("swift"))).seconds > 420 * 86_400


def test_listing_order_is_that_of_reads_whatever_else_is_between_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    steps = [
        ("PUT", 900 - number) if part else ("GET", number) for number in range(400) for part in (0, 1, 1)
    ]
    log.write_text(
        "".join(
            swift_line(BEGAN + place, method, f"/v1/a/c/o{number:03}", sent=9, received=9)
            for place, (method, number) in enumerate(steps)
        )
    )
    traffic = Traffic(read_requests([LogFile(log, "n")], find_request_format("swift")))
    assert find_listing_order(traffic) == 1


def scanned_by_hand(steps: list[tuple[str, int, int]]) -> float:
    """Return the share of reads in scans of (method, container, number), looked at one by one."""
    born: dict[tuple[int, int], int] = {}
    latest: dict[int, int] = {}
    runs: dict[int, list[int]] = {}  # steps and reads
    uploads = reads = found = 0
    for method, container, number in steps:
        if method == "PUT":
            uploads += 1
            born[container, number] = uploads
            continue
        reads += 1
        own = runs.setdefault(container, [0, 0])
        before, since = latest.get(container), uploads - born.pop((container, number), -1000)
        latest[container] = number
        if number == before and since > 20:
            own[1] += 1
            continue
        if since <= 20 or (before is not None and number < before):
            found += own[1] if own[0] >= SCAN_READS else 0
            own[:] = 0, 0
        if since <= 20:
            continue
        own[0] += 1
        own[1] += 1
    return (found + sum(each for count, each in runs.values() if count >= SCAN_READS)) / reads


@pytest.mark.parametrize("together", [7, 100, 1 << 17])
def test_scans_are_those_that_are_found_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(object_uses, "_ROWS_AT_ONCE", together)
    random = np.random.default_rng(3)
    at, made = [0] * 4, 500
    steps: list[tuple[str, int, int]] = []
    for kind, container in zip(random.random(6000), random.integers(4, size=6000).tolist(), strict=True):
        if kind < 0.05:
            steps.append(("PUT", container, made))
            made += 1
        elif kind < 0.07 and made > 500:
            steps.append(("GET", *next(each[1:] for each in reversed(steps) if each[0] == "PUT")))
        elif kind < 0.15:
            steps.append(("GET", container, int(random.integers(500))))
        elif kind < 0.25 and steps and steps[-1][0] == "GET":
            steps.append(steps[-1])
        else:
            at[container] = (at[container] + 1) % 500
            steps.append(("GET", container, at[container]))
    log = tmp_path / "log"
    log.write_text(
        "".join(
            swift_line(BEGAN + place, method, f"/v1/a/c{container}/o{number:04}", sent=9, received=9)
            for place, (method, container, number) in enumerate(steps)
        )
    )
    found = find_scan_share(Traffic(read_requests([LogFile(log, "n")], find_request_format("swift"))))
    assert found == pytest.approx(scanned_by_hand(steps))
    assert 0.2 < found < 0.9
