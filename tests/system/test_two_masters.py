"""One run of two masters at once on one real Swift: begun together, merged, and nothing counted twice."""

from __future__ import annotations

import time
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path

import pytest
import swiftclient
from processes import Fleet
from runs import outcome, write_scenario

from ssbench.base.errors import ExitCode
from ssbench.local_swift import LocalSwift
from ssbench.results.reading import open_results
from ssbench.results.result_export import write_csv
from ssbench.scenario.names import MARK_PREFIX

#: Seconds until both begin, in which workers start and initial objects are uploaded, and how often a program
#: could start in them besides: that says how busy this machine is.
_UNTIL_BOTH_BEGIN, _STARTS = 6, 9

RATE, SECONDS = 30, 4


@pytest.mark.timeout(300)
def test_two_masters_make_one_run(
    tmp_path: Path, swift: LocalSwift, account: swiftclient.Connection, container_base: str
) -> None:
    scenario = write_scenario(tmp_path, container_base=container_base, operation_count=None, run_seconds=60)
    with ExitStack() as stack:
        fleets = []
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            fleets.append(stack.enter_context(Fleet(tmp_path / name)))
        began = time.time()
        assert fleets[0].master("check-scenario", scenario).end() == ExitCode.OK
        now = time.time()
        moment = int(now + _UNTIL_BOTH_BEGIN + _STARTS * (now - began))
        login = ["-A", swift.auth_url, "-U", swift.user, "-K", swift.key]
        load = ["--workers", 1, "--rate", RATE, "-r", SECONDS, "--seed", 7]
        masters = [
            fleet.run(scenario, *login, *load, "--part", f"{number}/2@@{moment}")
            for number, fleet in enumerate(fleets, 1)
        ]
        for each in masters:
            assert each.end(150) in {ExitCode.OK, ExitCode.NOT_DELIVERED}, each.err
            assert "Initial objects: 30 uploaded" in each.err
            assert "behind the store's" in each.err
            assert "under way in the same containers" not in each.err
        assert "carries out another part of this run" in masters[0].err + masters[1].err
        merged = tmp_path / "merged.stat.gz"
        merge = fleets[0].master("merge", *(fleet.stats for fleet in fleets), "-o", merged)
        assert merge.end() == ExitCode.OK, merge.err

    whole, parts = outcome(merged), [outcome(fleet.stats) for fleet in fleets]
    for counts in ("causes", "operations"):
        assert getattr(whole, counts) == getattr(parts[0], counts) + getattr(parts[1], counts)
    assert sum(whole.workers.values()) == sum(sum(part.workers.values()) for part in parts)
    assert len(whole.workers) == 2
    assert whole.summary is not None
    assert whole.summary.stages[0].due == RATE * SECONDS
    begins = [part.summary.stages[0].begins for part in parts if part.summary is not None]
    assert moment <= min(begins) <= max(begins) < min(begins) + 6.0  # one may be paused just then
    # Names apart, and nothing left of either.
    rows = BytesIO()
    write_csv(open_results(merged), rows)
    for number in (1, 2):
        assert f",tiny-part{number}of2_0000".encode() in rows.getvalue()
    assert b",tiny_0" not in rows.getvalue()
    containers = [row["name"] for row in account.get_account(prefix=container_base)[1]]
    left = [row["name"] for name in containers for row in account.get_container(name)[1]]
    assert [name for name in left if not name.startswith(MARK_PREFIX)] == []
