"""Which objects whole runs ask a store for."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request
from processes import Fleet
from runs import TOKEN, Store, outcome, store, write_scenario
from said import OTHER_SIZE

from ssbench.base.errors import ExitCode


class UnevenStore(Store):
    """A store whose answers take very different times, which notes what overlaps with a write."""

    def __init__(self) -> None:
        super().__init__()
        self.overlaps: list[tuple[str, str, str]] = []
        self._delays = itertools.cycle([0.0, 0.03, 0.005, 0.1, 0.0, 0.01])
        self._under_way: list[tuple[str, str]] = []
        self._book = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        if request.target.count("/") <= 3:
            return super().__call__(request)
        key = (request.method, request.target)
        with self._book:
            for method, target in self._under_way:
                if target == request.target and {method, request.method} != {"GET"}:
                    self.overlaps.append((target, method, request.method))
            self._under_way.append(key)
            delay = next(self._delays)
        threading.Event().wait(delay)
        reply = super().__call__(request)
        with self._book:
            self._under_way.remove(key)
        return reply


@pytest.mark.parametrize("batch_size", [1, 16])
def test_no_operation_overtakes_a_write_of_its_object(fleet: Fleet, tmp_path: Path, batch_size: int) -> None:
    """Many more users than objects: no 404 of our own making, and nothing beside a write."""
    rule = UnevenStore()
    with FaultServer(rule=rule) as server:
        scenario = write_scenario(
            tmp_path, initial_files={"tiny": 20}, operation_count=1500, crud_profile=[2, 4, 2, 2]
        )
        run = fleet.run(
            scenario, "--workers", 1, "-u", 100, "--batch-size", batch_size, "-S", server.url, "-T", TOKEN
        )
        assert run.end() == ExitCode.OK, run.err
    found = outcome(fleet.stats)
    assert set(found.causes) == {None}
    assert not found.retried
    assert not rule.overlaps
    assert found.summary is not None
    counters = found.summary.counters
    assert found.count + sum(times for *_, times in found.summary.not_sendable) == counters["drawn"] == 1500
    assert counters["waited"] > 0
    assert f"small population: {counters['waited']:.0f} operations waited for a free object" in run.out


def test_initial_objects_of_a_wrong_size_are_uploaded_again(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        reads = {"operation_count": 30, "crud_profile": [0, 1, 0, 0], "initial_files": {"tiny": 10}}
        run = fleet.run(write_scenario(tmp_path, **reads), "--workers", 1, *options)
        assert run.end() == ExitCode.OK, run.err
        assert "Initial objects: 10 uploaded, 0 replaced" in run.err
        small = rule.sizes.copy()
        del rule.sizes[min(rule.objects())]
        rule.sizes[max(rule.objects())] = 5000
        sizes = [{"name": "tiny", "size_min": 5000, "size_max": 6000}]
        run = fleet.run(write_scenario(tmp_path, sizes=sizes, **reads), "--workers", 1, *options)
        assert run.end() == ExitCode.OK, run.err
        assert "Initial objects: 1 uploaded, 8 replaced" in run.err
        assert "1 reused" in run.err
        said = f"initial objects: 1 uploaded, 8 replaced ({OTHER_SIZE}), 1 reused"
        assert said in " ".join(run.out.split())
        assert all(5000 <= rule.sizes[name] <= 6000 for name in rule.objects())
        assert set(small) == set(rule.sizes)
    summary = outcome(fleet.stats).summary
    assert summary is not None
    assert [summary.counters[f"initial_{what}"] for what in ("uploaded", "replaced", "reused")] == [1, 8, 1]
