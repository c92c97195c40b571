"""Several runs in one process, with the same workers, token and Swift: the API of ssbench.run."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import socket
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from fault_server import FaultServer, Reply, Request
from processes import Fleet
from runs import INITIAL, TOKEN, After, Store, alive, children, listens, outcome, worker_pids, write_scenario
from said import ABOVE_ZERO, NO_MORE_SENT, OBJECTS_OF_RUN

from ssbench.base.errors import ClusterError, ExitCode, StatFileError, UsageError
from ssbench.cluster.observer import Observer
from ssbench.fleet.addresses import BindAddress
from ssbench.local_swift import LocalSwift
from ssbench.results.block import UNFINISHED_CAUSE
from ssbench.results.cluster_observation import Observation
from ssbench.results.reading import open_results
from ssbench.results.run_description import RunDescription
from ssbench.run import benchmark_run
from ssbench.run.bench import Bench
from ssbench.run.bench_options import BenchOptions, RunOptions
from ssbench.run.benchmark_run import RunOutcome
from ssbench.run.run_records import make_run_description
from ssbench.run.setup import StoreSetup
from ssbench.scenario.model import Scenario
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.store.credentials import Credentials
from ssbench.store.request_options import RequestOptions

#: Creates and reads only, so that no operation has to wait for another one.
GROWS = {"crud_profile": [1, 1, 0, 0]}


def scenario(folder: Path, **changes: object) -> Scenario:
    return read_scenario(str(write_scenario(folder, **changes)))


def assert_complete(done: RunOutcome, count: int) -> None:
    """The run ended well, and its stat file says so."""
    assert done.exit_code == ExitCode.OK, done
    assert done.path is not None
    assert done.ended_early is None
    assert (done.count, done.errors) == (count, 0)
    assert outcome(done.path).causes == {None: count}


def description(done: RunOutcome) -> RunDescription:
    assert done.path is not None
    results = open_results(done.path)
    for _ in results.blocks():
        pass  # to its end, which closes it
    return results.run


def warnings(done: RunOutcome) -> list[str]:
    """The warnings, but for those of a machine that has other things to do."""
    return [text for text in done.warnings if not text.startswith("The load generator ")]


#: Children of this process that a test found when it began, such as the servers of the session's Swift.
_others: set[int] = set()


@pytest.fixture(autouse=True)
def _remember_others(request: pytest.FixtureRequest) -> None:
    if "swift" in request.fixturenames:
        request.getfixturevalue("swift")
    _others.clear()
    _others.update(children(os.getpid()))


def programs() -> dict[int, str]:
    """The command lines of the children that the test started, by process id; that which forks them stays."""
    found = {}
    for pid in set(children(os.getpid())) - _others:
        with Path(f"/proc/{pid}/cmdline").open() as file:
            found[pid] = file.read().replace("\0", " ")
    return {pid: command for pid, command in found.items() if "fork_server.py" not in command}


def local_workers() -> set[int]:
    return worker_pids() - _others


def test_a_second_run_has_the_same_workers_and_the_same_token(tmp_path: Path) -> None:
    with FaultServer(rule=(store := Store())) as server:
        account = ("X-Storage-Url", server.url), ("X-Auth-Token", TOKEN)
        store.fault = lambda request: Reply(200, headers=account) if "auth" in request.target else None
        credentials = Credentials(
            version="1.0", auth_url=server.url.replace("v1/AUTH_test", "auth/v1.0"), user="a:u", key="k"
        )
        before = signal.getsignal(signal.SIGINT)
        with Bench(BenchOptions(workers=2, credentials=credentials)) as bench:
            first = bench.run(
                scenario(tmp_path, **GROWS), RunOptions(seed=1, stats_file=tmp_path / "1", noop=True)
            )
            assert_complete(first, 200)
            assert not server.requests
            workers = local_workers()
            assert len(workers) == 2

            saved: list[RunOutcome] = []
            second = bench.run(
                scenario(tmp_path, **GROWS),
                RunOptions(seed=2, stats_file=tmp_path / "2"),
                on_measured=saved.append,
            )
            assert_complete(second, 200)
            assert saved == [second]

            (tmp_path / "mine.gz").write_text("mine")
            with pytest.raises(StatFileError, match="exists already"):
                bench.run(scenario(tmp_path), RunOptions(stats_file=tmp_path / "mine"))

            other = scenario(
                tmp_path, name="other", container_base="other", user_count=3, operation_count=50, **GROWS
            )
            third = bench.run(other, RunOptions(seed=3, stats_file=tmp_path / "3", batch_size=2))
            assert_complete(third, 50)
            assert local_workers() == workers
        assert not local_workers()
        assert signal.getsignal(signal.SIGINT) is before
        assert sum("auth" in each.target for each in server.requests) == 1
        # Both runs deleted what they created, and nothing else.
        assert len(store.objects()) == 2 * INITIAL
    read = [description(done) for done in (first, second, third)]
    assert [each.seed for each in read] == [first.seed, second.seed, third.seed] == [1, 2, 3]
    assert [each.scenario.name for each in read] == ["fleet", "fleet", "other"]
    assert len({each.run_id for each in read}) == 3


@pytest.mark.long
def test_a_swift_that_died_in_one_run_is_started_again_for_the_next(tmp_path: Path) -> None:
    def find_servers() -> dict[str, int | None]:
        (store,) = bench._trial_stores.values()
        return {server.name: server.pid for server in cast(LocalSwift, store).servers}

    def kill_proxy() -> None:
        pid = find_servers()["proxy"]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    with Bench(BenchOptions(workers=2, local_swift=True)) as bench:
        long = scenario(tmp_path, operation_count=1_000_000, **GROWS)
        given_up = bench.run(
            long,
            RunOptions(stats_file=tmp_path / "1", give_up_after=1, requests=RequestOptions(retries=1)),
            sinks=[After(20, kill_proxy)],
        )
        assert given_up.exit_code == ExitCode.CLUSTER
        assert isinstance(given_up.error, ClusterError)
        assert given_up.ended_early is not None
        assert given_up.ended_early.startswith("nothing has succeeded for ")
        assert any("are still there" in warning for warning in given_up.warnings)
        assert given_up.path is not None
        assert outcome(given_up.path).summary is not None
        workers = local_workers()

        done = bench.run(scenario(tmp_path, **GROWS), RunOptions(stats_file=tmp_path / "2"))
        assert_complete(done, 200)
        assert warnings(done) == []
        assert local_workers() == workers
        servers = find_servers()
        assert all(servers.values())
    assert not programs()
    assert not any(alive(pid) for pid in servers.values() if pid)


@pytest.mark.parametrize("how", ["signal", "thread"])
def test_an_interrupt_ends_only_the_run_that_goes_on(tmp_path: Path, how: str) -> None:
    with FaultServer(rule=(store := Store())) as server:
        credentials = Credentials(version="none", token=TOKEN, storage_urls=(server.url,))
        with Bench(BenchOptions(workers=1, credentials=credentials)) as bench:

            def interrupt() -> None:
                if how == "signal":
                    os.kill(os.getpid(), signal.SIGINT)
                else:
                    threading.Thread(target=bench.interrupt).start()

            long = scenario(tmp_path, operation_count=1_000_000, **GROWS)
            stopped = bench.run(long, RunOptions(stats_file=tmp_path / "1"), sinks=[After(50, interrupt)])
            assert stopped.interrupted
            assert stopped.exit_code == ExitCode.INTERRUPTED
            assert stopped.path is not None
            found = outcome(stopped.path)
            assert found.summary is not None
            assert found.summary.interrupted
            assert 50 <= stopped.count == found.count
            # An upload that did not end in time may reach the store after its deletion, on a busy machine.
            assert 0 <= len(store.objects()) - INITIAL <= found.causes[UNFINISHED_CAUSE]

            # Before the benchmark begins there is nothing to report.
            requests = itertools.count()

            def interrupted_at_containers(_request: Request) -> Reply | None:
                if next(requests) == 0:
                    interrupt()
                return Reply(204, delay=1.0)

            store.fault = interrupted_at_containers
            early = bench.run(long, RunOptions(stats_file=tmp_path / "2"))
            assert (early.path, early.summary, early.count) == (None, None, 0)
            assert early.exit_code == ExitCode.INTERRUPTED
            assert not (tmp_path / "2.gz").exists()

            store.fault = lambda _request: None
            bench.interrupt()  # between runs: without effect
            done = bench.run(scenario(tmp_path, **GROWS), RunOptions(stats_file=tmp_path / "3"))
            assert_complete(done, 200)
            assert not done.interrupted


def test_local_workers_that_died_or_are_too_small_are_started_again(tmp_path: Path) -> None:
    with Bench(BenchOptions(workers=2)) as bench:

        def run(number: int, **changes: object) -> RunOutcome:
            return bench.run(
                scenario(tmp_path, **changes), RunOptions(noop=True, stats_file=tmp_path / f"{number}")
            )

        assert_complete(run(1), 200)
        before = local_workers()
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)
        again = run(2)
        assert_complete(again, 200)
        assert warnings(again) == []
        assert len(local_workers() & before) == 1
        between = local_workers()
        more = run(3, user_count=64)
        assert_complete(more, 200)
        assert warnings(more) == []
        assert not local_workers() & between
        assert more.summary is not None
        assert sorted(each.worker_id for each in more.summary.workers) == [0, 1]
        # There is room for fewer users too.
        assert_complete(run(4, user_count=2), 200)


def test_local_workers_may_have_room_for_more_users_than_the_first_run_has(tmp_path: Path) -> None:
    with Bench(BenchOptions(workers=1, first_room=16)) as bench:
        found = []
        for number, users in enumerate((2, 16, 20)):
            made = scenario(tmp_path, user_count=users)
            assert_complete(bench.run(made, RunOptions(noop=True, stats_file=tmp_path / f"{number}")), 200)
            found.append(local_workers())
        assert found[0] == found[1]
        assert not found[1] & found[2]


def test_workers_of_others_serve_each_run_and_may_go_between_two(fleet: Fleet, tmp_path: Path) -> None:
    first, _ = fleet.worker(1, "-c", 8), fleet.worker(2, "-c", 8)
    address = BindAddress("127.0.0.1", fleet.work_port, fleet.results_port)
    with Bench(BenchOptions(address=address)) as bench:
        options = RunOptions(noop=True, expect_workers=2)
        both = bench.run(scenario(tmp_path), replace(options, stats_file=tmp_path / "1"))
        assert_complete(both, 200)
        assert both.summary is not None
        assert len(both.summary.workers) == 2
        # Both are waited for again, though one would do.
        again = bench.run(scenario(tmp_path), RunOptions(noop=True, stats_file=tmp_path / "2"))
        assert_complete(again, 200)
        assert again.summary is not None
        assert len(again.summary.workers) == 2
        first.signal(signal.SIGKILL)
        first.end()
        # One that has gone is not, nor does its end count as trouble of the next run.
        last = bench.run(scenario(tmp_path), RunOptions(noop=True, stats_file=tmp_path / "3"))
        assert_complete(last, 200)
        assert warnings(last) == []
        assert last.summary is not None
        assert [each.worker_id for each in last.summary.workers] == [2]


def test_workers_that_wait_for_a_master_are_used_instead_of_local_ones(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As ssbench 0.x took them: two local ones measured, and the fleet waited."""
    caplog.set_level(logging.INFO)
    for each in (fleet.worker(1, "-c", 8), fleet.worker(2, "-c", 8)):
        each.wait_for("no process listens there")
    offer = BindAddress("127.0.0.1", fleet.work_port, fleet.results_port)
    with Bench(BenchOptions(workers=1, offer=offer)) as bench:
        done = bench.run(scenario(tmp_path), RunOptions(noop=True, stats_file=tmp_path / "1"))
    assert_complete(done, 200)
    assert done.summary is not None
    assert {each.worker_id for each in done.summary.workers} == {1, 2}
    assert f"Using 2 workers that connected to ports {fleet.work_port} and " in caplog.text


@pytest.mark.parametrize("taken", [False, True])
def test_where_no_worker_waits_for_a_master_local_ones_are_used_with_a_warning(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture, taken: bool
) -> None:
    offer = BindAddress("127.0.0.1", fleet.work_port, fleet.results_port)
    with (
        socket.create_server(("127.0.0.1", fleet.work_port)) if taken else nullcontext(),
        Bench(BenchOptions(workers=1, offer=offer)) as bench,
    ):
        # Nobody else can take jobs then.
        assert listens(fleet.work_port) is taken
        assert not listens(fleet.results_port)
        done = bench.run(scenario(tmp_path), RunOptions(noop=True, stats_file=tmp_path / "1"))
    assert_complete(done, 200)
    assert done.summary is not None
    assert [each.worker_id for each in done.summary.workers] == [0]
    (said,) = (each.message for each in caplog.records if ": using 1 local worker (" in each.message)
    assert ("in use" if taken else "No worker connected to ports") in said


def test_options_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="workers or address"):
        BenchOptions()
    with pytest.raises(UsageError, match="batch_size: expected 1 or more, not 0"):
        RunOptions(batch_size=0)
    with pytest.raises(UsageError, match=f"network_timeout: {ABOVE_ZERO}, not nan"):
        RunOptions(requests=RequestOptions(network_timeout=float("nan")))
    with (
        Bench(BenchOptions(workers=1)) as bench,
        pytest.raises(UsageError, match="credentials or local_swift"),
    ):
        bench.run(scenario(tmp_path))
    with pytest.raises(RuntimeError, match="has to be entered"):
        bench.run(scenario(tmp_path), RunOptions(noop=True))


def test_an_interrupt_during_the_report_says_that_objects_are_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It once said that none were, and deleted all of them."""
    caplog.set_level(logging.INFO)
    with (
        FaultServer(rule=(store := Store())) as server,
        Bench(
            BenchOptions(
                workers=1,
                credentials=Credentials(version="none", token=TOKEN, storage_urls=(server.url,)),
            )
        ) as bench,
    ):
        done = bench.run(
            scenario(tmp_path, **GROWS),
            RunOptions(stats_file=tmp_path / "1"),
            on_measured=lambda _: bench.interrupt(),
        )
        assert (done.exit_code, done.trouble) == (ExitCode.INTERRUPTED, False)
        assert len(store.objects()) == INITIAL
    said = next(text for text in caplog.messages if text.startswith("Interrupted: "))
    assert said == (
        f"Interrupted: the report is finished, then the {OBJECTS_OF_RUN} are deleted. Ctrl-C again"
        " ends the run at once and leaves them there"
    )


def test_an_interrupt_just_before_the_benchmark_says_that_a_report_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It said that the run ends before its benchmark, which began then."""
    bench = Bench(BenchOptions(workers=1))
    make = make_run_description

    def interrupt(*arguments: Any, **named: Any) -> RunDescription:
        bench.interrupt()
        return make(*arguments, **named)

    monkeypatch.setattr(benchmark_run, "make_run_description", interrupt)
    with bench:
        done = bench.run(scenario(tmp_path, **GROWS), RunOptions(stats_file=tmp_path / "1", noop=True))
    assert (done.path, done.exit_code) == (tmp_path / "1.gz", ExitCode.INTERRUPTED)
    assert f"Interrupted: {NO_MORE_SENT}; the report follows" in caplog.text


@pytest.mark.parametrize("how", ["signal", "thread"])
def test_an_interrupt_after_the_clean_up_is_in_the_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """It was logged, and the exit code was 0; the next run of a plan began."""
    bench = Bench(BenchOptions(workers=1))

    def interrupt(*_arguments: object, **_named: object) -> None:
        if how == "signal":
            signal.raise_signal(signal.SIGINT)
        else:
            bench.interrupt()

    monkeypatch.setattr(StoreSetup, "leave", interrupt)
    with bench:
        done = bench.run(scenario(tmp_path, **GROWS), RunOptions(stats_file=tmp_path / "1", noop=True))
    assert (done.count, done.errors) == (200, 0)
    assert done.interrupted
    assert done.exit_code == ExitCode.INTERRUPTED
    # What was measured is whole.
    assert done.path is not None
    summary = outcome(done.path).summary
    assert summary is not None
    assert not summary.interrupted


class InterruptedObserver(Observer):
    """Ends as it does when another Ctrl-C comes while it waits for the servers."""

    def end(self) -> Observation:
        raise KeyboardInterrupt


def test_ctrl_c_while_the_cluster_is_observed_leaves_a_complete_stat_file(tmp_path: Path) -> None:
    path = tmp_path / "x.stat.gz"
    with InterruptedObserver([], interval=1.0) as observer, Bench(BenchOptions(workers=1)) as bench:
        options = RunOptions(stats_file=path, noop=True)
        with pytest.raises(KeyboardInterrupt):
            bench.run(scenario(tmp_path, **GROWS), options, observer=observer)
    results = open_results(path)
    assert sum(len(block) for block in results.blocks()) == 200
    assert results.summary is not None


def test_what_a_sink_raises_ends_the_run_with_its_file_and_its_clean_up(tmp_path: Path) -> None:
    """Its results were lost, and what it had created stayed without a word."""

    def fail() -> None:
        raise ValueError("of the sink")

    rule, path = Store(), tmp_path / "run.stat.gz"
    taken: list[int] = []
    with FaultServer(rule=rule) as server:
        credentials = Credentials(version="none", storage_urls=(server.url,), token=TOKEN)
        options = RunOptions(stats_file=path)
        with Bench(BenchOptions(workers=1, credentials=credentials)) as bench:
            sinks = [After(50, fail), After(1, lambda: taken.append(1))]
            endless = scenario(tmp_path, operation_count=1_000_000, **GROWS)
            with pytest.raises(ValueError, match="of the sink"):
                bench.run(endless, options, sinks=sinks)
            assert len(rule.objects()) == INITIAL
            assert taken == [1]
            # The next one is possible.
            done = bench.run(scenario(tmp_path), replace(options, stats_file=tmp_path / "next.stat.gz"))
            assert_complete(done, 200)
    found = outcome(path)
    assert found.count >= 50
    assert found.summary is not None
    assert found.summary.ended_early == "a sink of its results failed: ValueError('of the sink')"
