"""Whole runs against stores whose answers have the statuses of successes and lack something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fault_server import FaultServer, Reply, Request
from processes import Fleet
from runs import TOKEN, Store, is_object, write_scenario
from said import NO_MD5

from ssbench.results.reading import open_results
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.run_verdict import Outcome, verdict_of
from ssbench.statistics.summary import summarize


def run(fleet: Fleet, folder: Path, rule: Store, **changes: Any) -> tuple[RunStatistics, str]:
    """Return the statistics and the report of a run against a store."""
    with FaultServer(rule=rule) as server:
        fleet.worker(1, "-c", 8)
        scenario = write_scenario(folder, **changes)
        program = fleet.run(scenario, "-S", server.url, "-T", TOKEN)
        assert program.end() == 0, program.err
    return summarize(open_results(fleet.stats)), program.out


def listing(rule: Store, every: int) -> Any:
    """Answer listings of containers with one name of so many; 0: with none."""

    def answer(request: Request) -> Reply | None:
        place, _, query = request.target.partition("?")
        if request.method != "GET" or "format=json" not in query:
            return None
        names = sorted(name[len(place) + 1 :] for name in rule.objects() if name.startswith(f"{place}/"))
        kept = names[::every] if every else []
        return Reply(body=json.dumps([{"name": name} for name in kept]).encode())

    return answer


@pytest.mark.parametrize(("every", "share"), [(0, 1.0), (2, 0.5), (1, 0.0)])
def test_listings_that_lack_names_are_a_warning(
    fleet: Fleet, tmp_path: Path, every: int, share: float
) -> None:
    rule = Store(etags=True)
    rule.fault = listing(rule, every)
    # So many objects that those that come and go meanwhile, which no listing has to have, are few.
    profile = {"list": 3, "create": 1, "read": 3, "delete": 1}
    found, _ = run(fleet, tmp_path, rule, crud_profile=profile, initial_files={"tiny": 600})
    counted = found.total.counted
    missing, names = counted["missing_names"], counted["entries"] + counted["missing_names"]
    assert missing / max(names, 1) == pytest.approx(share, abs=0.1)
    assert (missing == 0) == (share == 0.0)
    verdict = verdict_of(found)
    said = [each.text for each in verdict.reasons]
    assert any(each.startswith(f"listings lacked {missing:,} of {names:,} names (") for each in said) == bool(
        missing
    )
    # A machine with much load has warnings of its own.
    assert verdict.outcome is Outcome.WARNED or not missing, said


@pytest.mark.parametrize("ages", [True, False])
def test_verified_reads_that_a_cache_answers_with_what_was_replaced_fail(
    fleet: Fleet, tmp_path: Path, ages: bool
) -> None:
    """Each object stays in the cache as it was first read, or as it was last written."""
    rule = Store(etags=True)
    cached: dict[str, bytes] = {}
    with FaultServer(rule=rule) as server:

        def answer(request: Request) -> Reply | None:
            """Read what was written last."""
            if request.method != "GET" or not is_object(request):
                return None
            came = reversed(list(server.requests))
            body = next(each.body for each in came if (each.method, each.target) == ("PUT", request.target))
            return Reply(body=cached.setdefault(request.target, body) if ages else body)

        rule.fault = answer
        for worker in (1, 2):
            fleet.worker(worker, "-c", 8)
        # All of one size: else the size would tell.
        sizes = [{"name": "tiny", "size_min": 200, "size_max": 200}]
        scenario = write_scenario(tmp_path, crud_profile=[0, 1, 1, 0], sizes=sizes)
        program = fleet.run(scenario, "-S", server.url, "-T", TOKEN, "--verify", "--expect-workers", 2)
        assert program.end() == int(ages), program.err
    found = summarize(open_results(fleet.stats))
    assert {*found.errors} == ({"older version"} if ages else set())
    assert found.total.failed > 0 or not ages


def test_a_store_without_etags_is_a_warning(fleet: Fleet, tmp_path: Path) -> None:
    found, _ = run(fleet, tmp_path, Store(), crud_profile=[1, 0, 0, 0])
    # The ETag of one upload in 128 is checked.
    assert found.total.counted["unchecked"] == 2
    said = (
        f"{NO_MD5}2 answers, about all of those that were looked at: bodies were"
        " checked by their length alone"
    )
    assert said in [each.text for each in verdict_of(found).reasons]


def test_bytes_that_were_not_sent_are_in_no_rate(fleet: Fleet, tmp_path: Path) -> None:
    """The store answers as soon as it has the head of a request; 20 MB are more than fit into buffers."""
    rule, size, count = Store(etags=True), 20_000_000, 30
    rule.fault = lambda request: (
        Reply(201, early=True) if request.method == "PUT" and "_000001" not in request.target[-7:] else None
    )
    with FaultServer(rule=rule) as server:
        fleet.worker(1, "-c", 2)
        scenario = write_scenario(
            tmp_path,
            sizes=[{"name": "tiny", "size_min": size, "size_max": size}],
            initial_files={"tiny": 1},
            operation_count=count,
            crud_profile=[1, 0, 0, 0],
            user_count=2,
        )
        program = fleet.run(scenario, "-S", server.url, "-T", TOKEN)
        assert program.end() == 0, program.err
        arrived = server.ignored
    found = summarize(open_results(fleet.stats))
    total = found.total
    early = total.counted["unsent"]
    assert (total.count, total.failed) == (count, 0)
    assert early > 0
    # What came before the answer was ready is not among what arrived after it.
    assert arrived <= total.moved + (count - early) * size
    assert total.moved < size * count
    said = [each.text for each in verdict_of(found).reasons]
    number = "1 upload was" if early == 1 else f"{early} uploads were"
    assert f"{number} answered before the body was sent: bytes count only what was sent" in said
    assert "answered before" in " ".join(program.out.split())
