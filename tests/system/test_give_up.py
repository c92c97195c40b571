"""Nothing moves, or nothing will ever succeed again: the programs say so, heed Ctrl-C, and end in time."""

from __future__ import annotations

import itertools
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from fault_server import FaultServer, Reply, Request
from processes import Fleet, Program, free_ports
from runs import INITIAL, TOKEN, Store, is_object, outcome, results_so_far, store, wait_until, write_scenario
from said import AGAIN_FAILED, GAVE_UP, STILL_THERE
from stand_in_account import StandInAccount

from ssbench.base.errors import ExitCode

HELPERS = Path(__file__).parents[1] / "helpers"

#: Creates and reads only, so that no delete of an own object is missing in what is left.
GROWS = {"crud_profile": [1, 1, 0, 0]}

#: An answer that begins and never ends, though a byte comes every tenth of a second.
DRIP = Reply(200, headers=(("X-Drip", "x" * 10_000),), pieces=1, pause=0.1)


def assert_reported(run: Program, fleet: Fleet, code: ExitCode) -> None:
    """The report is there, the stat file is whole, and each comes before the clean-up."""
    assert run.end() == code, run.err
    assert "Traceback" not in run.err
    found = outcome(fleet.stats)
    assert found.summary is not None
    assert f"Count: {found.causes[None]:5d} " in run.out
    if "Deleting the" in run.err:
        assert run.err.index("Results saved to") < run.err.index("Deleting the")


def test_too_many_errors_end_a_run_with_its_report_and_thresholds(fleet: Fleet, tmp_path: Path) -> None:
    rule = Store(0.005)
    rule.fault = lambda request: Reply(503) if is_object(request) and request.method == "GET" else None
    with FaultServer(rule=rule) as server:
        scenario = write_scenario(tmp_path, fail_if=["create.p50 > 100s"], **GROWS)
        # So many that among as many creates there are enough for a median, though some may be delayed.
        limits = ("--retries", 0, "--give-up-after", "100 errors", "--fail-if", "errors > 1%")
        run = fleet.run(
            scenario, "--workers", 1, "-r", 600, "--report", "both", *limits, "-S", server.url, "-T", TOKEN
        )
        assert_reported(run, fleet, ExitCode.THRESHOLD)
        assert len(rule.objects()) == INITIAL  # what it created is deleted
    found = outcome(fleet.stats)
    assert 100 < found.causes["HTTP 503"] < 2000
    summary = run.out.partition("fleet - ENDED EARLY after ")[2]
    assert re.search(
        r"^! The run ended early: more operations failed than --give-up-after 100 errors", summary, re.M
    )
    assert re.search(r"^fail-if create.p50 > 100s: ok \([\d.]+ms\)$", summary, re.M)
    assert re.search(r"^fail-if errors > 1%: FAILED \([\d.]+%\)$", summary, re.M)


def test_a_store_that_dies_for_good_ends_the_run_with_its_report(fleet: Fleet, tmp_path: Path) -> None:
    with FaultServer(port=free_ports(1)[0], rule=(rule := Store())) as server:
        fleet.worker(1, "-c", 8)
        scenario = write_scenario(tmp_path, operation_count=1_000_000, **GROWS)
        run = fleet.run(scenario, "--give-up-after", 3, "-S", server.url, "-T", TOKEN)
        # More than the failures in a row that end the clean-up.
        wait_until(lambda: len(rule.objects()) > INITIAL + 40, "created objects")
        server.stop()
        assert_reported(run, fleet, ExitCode.CLUSTER)
    assert re.search(
        r"WARNING:The run ended early: nothing has succeeded for \d+ s: \d+ x connect refused.*"
        r" \(the last: .*127\.0\.0\.1.*: Connection refused\) \(given up after --give-up-after 3\)",
        run.err,
    )
    assert "The run ended early: nothing has succeeded" in run.out
    left = re.search(rf"WARNING:([\d,]+) of the ([\d,]+) {STILL_THERE}", run.err)
    assert left, run.err
    assert left[1] == left[2]
    assert f"{GAVE_UP} a row" in run.err
    assert "ssbench-master cleanup-containers --container-base fleet" in run.err


@pytest.mark.long
def test_a_store_that_dies_in_a_timed_run(fleet: Fleet, tmp_path: Path) -> None:
    """The report comes first; the clean-up counts what it deleted and soon ends."""
    with store() as (rule, options):
        fleet.worker(1, "-c", 8)
        deletes = itertools.count(1)  # by the clean-up: nothing else deletes
        # Far slower than the operations: a master that is delayed is not asked to have told the worker yet.
        rule.fault = lambda request: (
            Reply(500, delay=1.5) if request.method == "DELETE" and next(deletes) > 5 else None
        )
        run = fleet.run(write_scenario(tmp_path, **GROWS), "-r", 3, *options)
        assert_reported(run, fleet, ExitCode.FAILED)
    left = re.search(rf"WARNING:([\d,]+) of the ([\d,]+) {STILL_THERE} (.*)", run.err)
    assert left, run.err
    rest, whole = (int(number.replace(",", "")) for number in left.groups()[:2])
    assert whole - rest == 5
    assert re.search(r"\d+ x HTTP 500", left[3])
    # Twenty failures in a row, and what the worker did until it was told: a turn through a busy master.
    assert next(deletes) <= max(60, whole / 4)


def test_uploads_that_never_succeed_are_given_up(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        fleet.worker(1, "-c", 8)
        rule.fault = lambda request: Reply(500) if is_object(request) else None
        scenario = write_scenario(tmp_path, initial_files={"tiny": 1_000_000})
        run = fleet.run(scenario, "--give-up-after", 1, *options)
        assert run.end() == ExitCode.CLUSTER, run.err
    assert re.search(r"ERROR:nothing has succeeded for \d+ s: \d+ x HTTP 500", run.err.splitlines()[-1])


def test_slow_operations_are_told_and_waited_for(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        fleet.worker(1, "-c", 8)
        rule.hold(INITIAL)
        scenario = write_scenario(tmp_path, operation_count=8, crud_profile=[0, 1, 0, 0])
        run = fleet.run(scenario, "--give-up-after", 1, *options)
        run.wait_for(
            r"INFO:Waiting for 8 operations to end \(worker 1 on \S+ has 8\); nothing has ended for \d+ s\n"
        )
        rule.release()
        assert run.end() == ExitCode.OK, run.err
    assert outcome(fleet.stats).causes == {None: 8}


def stuck_worker(fleet: Fleet, worker_id: int, concurrency: int) -> Program:
    """A worker that claims its jobs for ever."""
    environment = {"PYTHONPATH": os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])}
    return fleet.worker(worker_id, "-c", concurrency, module="stuck_worker", environment=environment)


def test_a_worker_that_claims_its_jobs_for_ever_is_told_and_used_no_more(
    fleet: Fleet, tmp_path: Path
) -> None:
    with store() as (_, options):
        fleet.worker(1, "-c", 8)
        stuck_worker(fleet, 2, 4)
        limits = ["--connect-timeout", 0.5, "--network-timeout", 0.4, "--retries", 0]
        run = fleet.run(
            write_scenario(tmp_path, operation_count=500), "--expect-workers", 2, *limits, *options
        )
        run.wait_for(r"INFO:Waiting for 4 initial uploads to end \(worker 2 on \S+ has 4\)")
        assert run.end() in {ExitCode.OK, ExitCode.FAILED}, run.err
    assert re.search(
        r"WARNING:Worker 2 on \S+ \(pid \d+\) has held jobs for over \d+ s, longer than any of them can take;"
        r" they count as lost \(4\), and the worker is not used any more",
        run.err,
    )
    found = outcome(fleet.stats)
    assert set(found.workers) == {1}
    assert found.count + sum(count for *_, count in found.summary.not_sendable) == 500


def test_a_token_that_dies_for_good_ends_the_run(fleet: Fleet, tmp_path: Path) -> None:
    with FaultServer(rule=(rule := Store())) as server:
        account = ("X-Storage-Url", server.url), ("X-Auth-Token", TOKEN)
        alive = True
        began = time.monotonic()

        def fault(request: Request) -> Reply | None:
            if "auth" in request.target:
                return Reply(200, headers=account) if alive else Reply(503)
            return None if alive else Reply(401)

        rule.fault = fault
        fleet.worker(1, "-c", 8)
        scenario = write_scenario(tmp_path, operation_count=1_000_000)
        arguments = ["-A", server.url.replace("v1/AUTH_test", "auth/v1.0"), "-U", "a:u", "-K", "k"]
        run = fleet.run(scenario, "--give-up-after", 3, *arguments)
        run.wait_for(r"[._]{40}")
        alive = False
        assert_reported(run, fleet, ExitCode.CLUSTER)
        seconds = time.monotonic() - began
    why = run.wait_for(r"The run ended early: nothing has succeeded for \d+ s: (.*)")[1]
    assert re.search(r"\d+ x authentication failed", why)
    assert re.search(r"\(the last: .*auth/v1.0: .*HTTP 503 Service Unavailable\)", why)
    # Told once, and then every ten seconds.
    assert run.err.count(AGAIN_FAILED) <= 1 + seconds / 10
    assert set(outcome(fleet.stats).causes) == {None, "HTTP 401"}


def test_a_token_that_aged_before_the_containers_is_renewed(fleet: Fleet, tmp_path: Path) -> None:
    with FaultServer(rule=(rule := Store())) as server:
        tokens: list[str] = []

        def fault(request: Request) -> Reply | None:
            if "auth" in request.target:
                tokens.append(f"AUTH_tk{len(tokens)}")
                return Reply(200, headers=(("X-Storage-Url", server.url), ("X-Auth-Token", tokens[-1])))
            return Reply(401) if request.headers["x-auth-token"] == "AUTH_tk0" else None

        rule.fault = fault
        fleet.worker(1, "-c", 8)
        arguments = ["-A", server.url.replace("v1/AUTH_test", "auth/v1.0"), "-U", "a:u", "-K", "k"]
        run = fleet.run(write_scenario(tmp_path, container_concurrency=10, container_count=10), *arguments)
        assert run.end() == ExitCode.OK, run.err
    assert tokens == ["AUTH_tk0", "AUTH_tk1"]
    # The workers were given the new one: none of their requests was refused.
    assert not any(is_object(each) and each.headers["x-auth-token"] == tokens[0] for each in server.requests)


def test_containers_that_drip_are_told_and_ctrl_c_ends_it_at_once(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        rule.fault = lambda _request: DRIP
        fleet.worker(1, "-c", 8)
        run = fleet.run(write_scenario(tmp_path), *options)
        run.wait_for(
            r"INFO:Waiting for containers: 0 of 2 are there, none has come for \d+ s;"
            r" under way: fleet_00000[01], fleet_00000[01]"
        )
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    assert "Traceback" not in run.err


def standing_still(server: FaultServer, what: str) -> threading.Event:
    """Have the server drip at requests of a kind; returns what is set once it does."""
    account = StandInAccount()
    account.hold({f"ssbench_00000{number}": [f"o{i:03}" for i in range(50)] for number in range(3)})
    deleted = 0
    stands = threading.Event()

    def rule(request: Request) -> Reply:
        nonlocal deleted
        kind = "objects" if is_object(request) else "containers" if request.method == "DELETE" else "listings"
        drips = kind == what and (kind != "objects" or deleted >= 20) and "prefix=" not in request.target
        if drips:
            stands.set()
            return DRIP
        deleted += kind == "objects"
        return account(request)

    server.rule = rule
    return stands


@pytest.mark.parametrize("what", ["objects", "containers", "listings"])
def test_a_clean_up_that_stands_still_heeds_ctrl_c(
    fleet: Fleet, fault_server: FaultServer, what: str
) -> None:
    stands = standing_still(fault_server, what)
    run = fleet.master("cleanup-containers", "-S", fault_server.url, "-T", "token", "-c", 1)
    assert stands.wait(60)
    run.signal(signal.SIGINT)
    assert run.end() == ExitCode.INTERRUPTED, run.err
    assert "Traceback" not in run.err
    done = 20 if what == "objects" else 0
    assert f"INFO:Deleted 0 containers and {done} objects " in run.err
    assert run.err.endswith("\nERROR:Interrupted; run it again to delete the rest\n")


def test_a_clean_up_that_stands_still_says_so_and_gives_up(fleet: Fleet, fault_server: FaultServer) -> None:
    standing_still(fault_server, "listings")
    run = fleet.master("cleanup-containers", "-S", fault_server.url, "-T", "token", "--give-up-after", 12)
    run.wait_for(r"INFO:Waiting for Swift: nothing listed or deleted for \d+ s, 3 containers under way")
    assert run.end() == ExitCode.CLUSTER, run.err
    assert "ERROR:Nothing succeeded for 12 s (--give-up-after); run it again to delete the rest\n" in run.err


def test_ctrl_c_in_the_clean_up_says_what_is_left(fleet: Fleet, tmp_path: Path) -> None:
    with store() as (rule, options):
        fleet.worker(1, "-c", 8)
        rule.fault = lambda request: Reply(204, delay=1.0) if request.method == "DELETE" else None
        run = fleet.run(write_scenario(tmp_path, **GROWS), *options)
        run.wait_for(r"Deleting the [\d,]+ objects")
        run.signal(signal.SIGINT)
        assert_reported(run, fleet, ExitCode.INTERRUPTED)
    assert re.search(rf"WARNING:[\d,]+ of the [\d,]+ {STILL_THERE}", run.err)
    assert results_so_far(fleet.stats) == 200
