"""Groups that are counted together have the figures that each has by itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from counted import failed, row
from hypothesis import given, settings
from hypothesis import strategies as st
from result_rows import block

from ssbench.results.block import ResultBlock
from ssbench.results.result_fields import ResultMark
from ssbench.statistics.counted_figures import CountedFigures, FiguresCollector, merge_figures
from ssbench.statistics.latencies import Latencies, select_latencies
from ssbench.statistics.timeline import Window

WINDOW = Window(90.0, 103.5)

#: An operation: size class, latency in eighths of a second, when it ended after 100 s, bytes, and what
#: else is known of it.
OPERATIONS = st.tuples(
    st.integers(0, 4),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(0, 1000),
    st.sets(st.sampled_from(["failed", "lost", "delayed", "due", "connecting", "pausing", "step", "retry"])),
)
_Operation = tuple[int, int, int, int, set[str]]


def made_of(operations: Sequence[_Operation]) -> ResultBlock:
    rows = [
        row(last=last / 8, first=last / 16, completed=100 + ended / 8, retries="retry" in more)
        for _, last, ended, _, more in operations
    ]
    rare = {
        name: {place: value for place, each in enumerate(operations) if key in each[4]}
        for name, key, value in (
            ("marks", "delayed", int(ResultMark.DELAYED)),
            ("due", "due", 99.0),
            ("connecting", "connecting", 0.125),
            ("pausing", "pausing", 0.25),
            ("step_2", "step", 0.5),
        )
    }
    failures = failed(*(place for place, each in enumerate(operations) if "failed" in each[4]))
    made = block(rows, failures=failures, rare={name: own for name, own in rare.items() if own})
    size_class, _, _, size, _ = zip(*operations, strict=True)
    return made.having(size_class=np.array(size_class), size=np.array(size))


def collected(parts: Sequence[Sequence[_Operation]], *keys: str) -> dict[tuple[int, ...], CountedFigures]:
    collector, before = FiguresCollector(keys, mixed=True), 0
    for operations in filter(None, parts):
        made = made_of(operations)
        groups = collector.add(made, made.completed - made.last_byte, before, 102.0)
        collector.add_lost(groups[[place for place, each in enumerate(operations) if "lost" in each[4]]])
        before += len(made)
    return collector.finish(WINDOW)


def latencies_of(figures: CountedFigures) -> dict[str, Latencies]:
    return {
        "first": figures.first_byte,
        "last": figures.last_byte,
        "delayed": figures.delayed,
        "attempt": figures.last_attempt,
        "connecting": figures.connecting,
        "response": figures.due.response,
        "lateness": figures.due.lateness,
        "undue": figures.due.undue,
        **{f"step {place}": each for place, each in enumerate(figures.steps)},
    }


def averages(figures: CountedFigures) -> list[float]:
    return [value for each in latencies_of(figures).values() for value in (each.mean, each.deviation)]


def shown(figures: CountedFigures) -> dict[str, object]:
    """What is compared: the latencies themselves, in order; arrivals differ where others are left out."""
    return {
        "counts": (figures.count, figures.failed, figures.lost, figures.counted, figures.moved),
        "moments": (figures.start, figures.end),
        "window": figures.window_totals,
        "seconds": figures.by_second,
        "parts": figures.parts,
        "late": figures.due.late,
        **{
            name: (
                [each.smallest(place) for place in range(1, each.count + 1)],
                [each.minimum, each.maximum] if each.count else [],
                each.slowest and (each.slowest.latency, each.slowest.completed, each.slowest.size),
                [column.tolist() for column in each.by_second._rows()],
            )
            for name, each in latencies_of(figures).items()
        },
    }


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(OPERATIONS, max_size=12), min_size=1, max_size=3))
def test_each_group_has_the_figures_that_it_has_alone(parts: list[list[_Operation]]) -> None:
    together = collected(parts, "size_class")
    assert set(together) == {(each[0],) for part in parts for each in part}
    for (size_class,), figures in together.items():
        alone = collected([[each for each in part if each[0] == size_class] for part in parts])
        assert shown(figures) == shown(alone[()])
        assert averages(figures) == pytest.approx(averages(alone[()]), rel=1e-12, abs=1e-9, nan_ok=True)


@given(st.lists(st.lists(OPERATIONS, min_size=1, max_size=12), min_size=1, max_size=3))
def test_groups_add_up_to_all_of_them(parts: list[list[_Operation]]) -> None:
    found = shown(merge_figures(collected(parts, "size_class").values()))
    every = shown(collected(parts)[()])
    for name in ("counts", "moments", "seconds", "late"):
        assert found[name] == every[name]
    # Seconds are sums of floating point numbers, which are added in another order.
    totals = [msgspec.structs.astuple(each["window"]) for each in (found, every)]
    assert totals[0] == pytest.approx(totals[1], rel=1e-12, abs=1e-12)
    for name in ("first", "last", "delayed", "response"):
        assert found[name][0] == every[name][0]


def test_a_group_that_has_only_failures_has_no_start() -> None:
    together = collected([[(3, 8, 8, 10, {"failed", "lost"}), (1, 8, 8, 10, set())]], "size_class")
    figures = together[(3,)]
    assert (figures.count, figures.failed, figures.lost, figures.moved) == (0, 1, 1, 0)
    assert (figures.start, figures.end) == (math.inf, 101.0)
    assert figures.last_byte.slowest is None


def test_thousands_of_groups_of_one_result_each() -> None:
    operations: list[_Operation] = [(place, 8, place % 40, 1, set()) for place in range(5_000)]
    found = collected([operations], "size_class")
    assert len(found) == 5_000
    assert found[(4_999,)].last_byte.percentile(50) == 1.0
    assert {each.count for each in found.values()} == {1}


@given(st.lists(OPERATIONS, min_size=1, max_size=12))
def test_figures_are_those_of_the_operations_one_by_one(operations: list[_Operation]) -> None:
    (figures,) = collected([operations]).values()
    fine = [each for each in operations if "failed" not in each[4]]
    moments = [(100 + ended / 8, last / 8) for _, last, ended, _, _ in fine]
    assert (figures.count, figures.failed) == (len(fine), len(operations) - len(fine))
    assert figures.lost == sum("lost" in each[4] for each in operations)
    assert figures.moved == sum(size for *_, size, _ in fine)
    assert figures.start == min((ended - last for ended, last in moments), default=math.inf)
    assert figures.end == max(100 + each[2] / 8 for each in operations)
    assert figures.by_second.counts == Counter(math.floor(ended) for ended, _ in moments)
    assert figures.by_second.failed == Counter(
        math.floor(100 + each[2] / 8) for each in operations if "failed" in each[4]
    )
    sizes: Counter[int] = Counter()
    for _, _, ended, size, _ in fine:
        sizes[math.floor(100 + ended / 8)] += size
    assert figures.by_second.moved == sizes
    in_window = [each for each, (ended, _) in zip(fine, moments, strict=True) if ended <= WINDOW.end]
    assert figures.window_totals.count == len(in_window)
    assert figures.window_totals.moved == sum(size for *_, size, _ in in_window)

    def values(latencies: Latencies) -> list[float]:
        return [latencies.smallest(place) for place in range(1, latencies.count + 1)]

    for found, expected in (
        (figures.last_byte, [each[1] / 8 for each in fine if "delayed" not in each[4]]),
        (figures.delayed, [each[1] / 8 for each in fine if "delayed" in each[4]]),
        (figures.first_byte, [each[1] / 16 for each in fine if "delayed" not in each[4]]),
    ):
        assert values(found) == sorted(each for each in expected if each > 0)
    step = figures.steps[1] if figures.steps else select_latencies(np.zeros(0))
    assert step.count == sum("step" in each[4] and "delayed" not in each[4] for each in fine)
