"""Counting results some blocks at a time says what counting them one block at a time says."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import pytest
from golden_words import GoldenWords
from hypothesis import given, settings
from hypothesis import strategies as st
from result_rows import many

from ssbench.results.block import LOST_CAUSE, Failure, ResultBlock, TextColumn, join_blocks
from ssbench.results.result_fields import ResultMark
from ssbench.statistics import collector as collector_module
from ssbench.statistics import latencies
from ssbench.statistics.collector import Collector, ObjectCounts
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.timeline import Window

RANKS = (1, 50, 90, 99, 100)


def blocks(seed: int, sizes: Iterable[int]) -> list[ResultBlock]:
    """Results of workers, URLs and stages, some late, retried, failed or lost; no block has all fields."""
    random = np.random.default_rng(seed)
    made, clock = [], 1.7e9
    for size in sizes:
        last = random.lognormal(-4, 1, size)
        completed = clock + np.cumsum(random.exponential(0.01, size))
        random.shuffle(completed)
        clock = float(completed.max()) + random.choice([0.0, 1.5])
        columns: dict[str, Any] = {
            "operation": random.integers(0, 4, size),
            "size_class": random.integers(0, 3, size),
            "worker": random.integers(0, 3, size),
            "object": random.integers(0, 50, size),
            "size": random.integers(0, 1000, size),
            "first_byte": np.where(random.random(size) < 0.5, last / 2, np.nan),
            "last_byte": last,
            "completed": completed,
            "status": random.choice([200, 404], size),
            "retries": random.integers(0, 2, size),
            "trans_id": TextColumn.of([f"tx{place}" if place % 3 else None for place in range(size)]),
        }
        optional = {
            "started": completed - last - random.choice([0, 0.001], size),
            "due": np.where(random.random(size) < 0.9, completed - last * 1.5, np.nan),
            "attempts": columns["retries"] + 1 + random.integers(0, 2, size),
            "storage_url": random.integers(0, 2, size),
            "stage": random.integers(0, 2, size),
            "marks": random.choice([0, ResultMark.DELAYED, ResultMark.WARM_UP], size, p=[0.8, 0.1, 0.1]),
            "connecting": np.where(random.random(size) < 0.2, last / 4, 0.0),
            "pausing": np.where(random.random(size) < 0.2, last / 8, 0.0),
        }
        columns |= {name: column for name, column in optional.items() if random.random() < 0.6}
        failures = {
            row: Failure(str(random.choice(["HTTP 503", LOST_CAUSE, "reset"])), "", {"reset": 1})
            for row in np.flatnonzero(random.random(size) < 0.1).tolist()
        }
        columns["last_byte"][list(failures)] = np.nan
        made.append(ResultBlock(size, columns, failures))
    return made


def counted(parts: Iterable[ResultBlock], *, one_by_one: bool) -> Collector:
    by = ("worker", "storage_url")
    collector = Collector(by, parts={"stage": [Collector(by, whole=False) for _ in range(2)]}, over_time=True)
    for part in parts:
        collector.add(part)
        if one_by_one:
            collector.settle()
            for stage in collector.parts["stage"]:
                stage.settle()
    collector.settle()
    for stage in collector.parts["stage"]:
        stage.settle()
    return collector


def plain(value: Any) -> Any:
    """Return what is compared: latencies by their percentiles, floats that are sums to 12 digits."""
    if isinstance(value, Latencies):
        own = [value.percentile(rank) for rank in RANKS] if value.count else []
        table = [column.tolist() for column in value.by_second._rows()]
        return value.count, own, plain(value.mean), plain(value.deviation), plain(value.slowest), table
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, float):
        return "-" if math.isnan(value) else float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


def everything(collector: Collector) -> dict[str, Any]:
    timeline = collector.timeline
    assert timeline is not None
    window = timeline.window() or Window(0.0, 2e9)  # of failures alone it may not be known
    groups = collector.groups(window)
    merged = groups.by("operation")
    total = latencies.merge_latencies(figures.last_byte for figures in merged.values())
    return plain(
        {
            "groups": {key: groups.figures[key] for key in sorted(groups.figures)},
            "operations": merged,
            "scalars": [collector.results, collector.due, collector.warmed_up, collector.first_completed],
            "workers": sorted(collector.workers.items()),
            "typical": sorted(collector.typical_latencies().items()),
            "retries": sorted(collector.retries.items()),
            "errors": dict(sorted(collector.errors().items())),
            "seconds": sorted(timeline.seconds().items()),
            "window": window,
            "stalls": timeline.stalls(window, total, 3),
            "slowest": collector.slowest.finish() if collector.slowest else None,
        }
    )


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_how_many_blocks_are_counted_together_changes_nothing(seed: int, sizes: list[int]) -> None:
    parts = blocks(seed, sizes)
    if all(part.marks.all() and (part.marks == ResultMark.WARM_UP).all() for part in parts):
        return
    together, apart = (counted(parts, one_by_one=each) for each in (False, True))
    if not apart.results:
        return
    assert everything(together) == everything(apart)
    for stage, other in zip(together.parts["stage"], apart.parts["stage"], strict=True):
        assert stage.results == other.results
        if stage.results:
            assert everything(stage) == everything(other)


def test_objects_are_counted_for_each_operation_and_size_class() -> None:
    counts = ObjectCounts()
    for operation, size_class, objects in ((0, 0, 2), (0, 1, 5), (1, 1, 10)):
        counts.add(many(np.arange(20) % objects, operation=operation, size_class=size_class))
    assert [counts.effective(*each) for each in ((0, 0), (0, 1), (1, 1))] == [2, 5, 10]
    assert counts.effective(0) == pytest.approx(40**2 / (2 * 14**2 + 3 * 4**2))
    assert counts.effective(1) == counts.effective(size_class=1, operation=1)
    assert counts.effective(1, 0) is None


def test_blocks_wait_until_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_module, "_RESULTS_AT_ONCE", 6)
    collector = Collector()
    settled = []
    for part in blocks(3, [2] * 20):
        collector.add(part)
        settled.append(collector._waiting == 0)
    assert settled == [False, False, True] * 6 + [False, False]
    collector.settle()
    assert collector.results + collector.warmed_up == 40


def test_lost_operations_are_counted_in_their_group() -> None:
    rows = many(range(4), operation=np.array([0, 1, 1, 1]), last_byte=np.array([0.1, 0.1, np.nan, np.nan]))
    rows.failures.update({2: Failure(LOST_CAUSE, "", {}), 3: Failure("HTTP 503", "", {})})
    collector = Collector()
    collector.add(rows)
    found = collector.groups().by("operation")
    assert [(each.count, each.failed, each.lost) for each in found.values()] == [(1, 0, 0), (1, 2, 1)]


def test_many_small_parts_of_latencies_are_put_together() -> None:
    random = np.random.default_rng(1)
    values = [random.lognormal(0, 1, 20) for _ in range(300)]
    found = latencies.merge_latencies(map(latencies.select_latencies, values))
    assert len(found._parts) == 1
    every = np.sort(np.concatenate(values))
    assert found.count == 6000
    assert [found._smallest(place) for place in (1, 77, 3000, 6000)] == every[[0, 76, 2999, 5999]].tolist()


def test_texts_of_several_blocks_are_joined_and_chosen_without_decoding_them() -> None:
    texts = [["a", None, "bcd"], [None, "é"], ["", "xyz"]]
    parts = [
        ResultBlock(len(each), {"completed": np.arange(float(len(each))), "trans_id": TextColumn.of(each)})
        for each in texts
    ]
    both = join_blocks(parts)
    assert isinstance(both.trans_id, TextColumn)
    assert list(both.trans_id) == [text for each in texts for text in each]
    chosen = both.select(np.array([2, 4, 5, 6]))
    assert list(chosen.trans_id) == ["bcd", "é", "", "xyz"]
    again = join_blocks([chosen, both])
    assert (again.trans_id[0], again.trans_id[1], again.trans_id[3], len(again.trans_id)) == (
        "bcd",
        "é",
        "xyz",
        11,
    )


def test_of_results_without_their_objects_nothing_is_known_of_these() -> None:
    counts = ObjectCounts()
    columns = {"container": np.zeros(3), "object": np.array([1, 1, 2]), "operation": np.ones(3, int)}
    counts.add(ResultBlock(3, {**columns, "size_class": np.zeros(3, int)}))
    assert counts.effective() == pytest.approx(9 / 5)
    counts.add(ResultBlock(1, {"completed": np.ones(1)}))
    assert counts.effective() is None


@pytest.mark.parametrize(("objects", "is_known"), [(10_000, True), (10_001, False)])
def test_many_objects_are_not_counted(objects: int, is_known: bool) -> None:
    counts = ObjectCounts()
    for _ in range(2):
        counts.add(many(range(objects), operation=1, container=3, size_class=1))
    assert (counts.effective(1, 1) is not None) is is_known
    assert counts.effective(2) is None


def test_results_are_grouped_by_numbers_alone_and_those_of_the_warm_up_are_none(
    golden_words: GoldenWords,
) -> None:
    for field in ("last_byte", "trans_id", "nothing"):
        with golden_words.raises(ValueError):
            Collector([field])
    collector = Collector(begin=1.7e9 + 1)
    made = many(range(4), operation=1, last_byte=0.5, completed=1.7e9 + np.array([0.9, 1.2, 1.4, 1.49]))
    made.failures[0] = Failure("HTTP 503", "", {})
    collector.add(made)  # all were sent before that
    collector.settle()
    assert (collector.results, collector.warmed_up, collector.warmed_up_failed) == (0, 4, 1)
    assert (collector.first_completed, collector.errors()) == (math.inf, {})
    collector.add(many(range(3), operation=1, last_byte=0.5, completed=1.7e9 + np.array([1.49, 1.5, 2.0])))
    collector.settle()
    assert (collector.results, collector.warmed_up, collector.first_completed) == (2, 5, 1.7e9 + 1.5)
