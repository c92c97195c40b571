"""What a run leaves, over a simulated fleet, and what is said of it."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from golden_words import GoldenWords
from msgspec import structs
from simulated import Network, failure

from ssbench.base import interruption
from ssbench.fleet.phase import ClosedLoop
from ssbench.fleet.wire import RunParameters
from ssbench.run import leftovers
from ssbench.run.bench_options import RunOptions, RunSide
from ssbench.run.group_run import ContainerSet, make_group_runs
from ssbench.run.leftovers import Leftovers, accounts_to_clean, describe_deletion
from ssbench.run.loop import MasterLoop
from ssbench.run.tokens import TokenRenewal, TokenSource
from ssbench.run.worker_messages import WorkerNews
from ssbench.scenario.model import BENCHMARK_FIELDS, SCENARIO_KEYS, Scenario, SizeClass
from ssbench.store.credentials import Credentials, Session

SCENARIO = Scenario("s", (SizeClass("c", 1, 1, 500, (1, 1, 1, 1)),), 8, operation_count=1, container_base="b")


class Run:
    """A run that has made so many objects, and a fleet with a worker."""

    def __init__(
        self,
        count: int,
        *,
        noop: bool = False,
        local_swift: bool = False,
        sides: tuple[RunSide, ...] = (),
    ) -> None:
        self.network = Network()
        self.news = WorkerNews()
        fleet = self.network.fleet(RunParameters(run_id=1))
        self.loop = MasterLoop(
            fleet, ClosedLoop(8), self.news, [[TokenRenewal(None)]], 60.0, lambda: self.network.now
        )
        self.worker = self.network.worker(1)
        fleet.receive(0)
        size_class = replace(SCENARIO.size_classes[0], initial_files=max(1, count))
        (part,) = make_group_runs(replace(SCENARIO, size_classes=(size_class,)), 1, None)
        part.workers = fleet.groups[0]
        part.state.owns_initial = count > 0
        for number in range(1, count + 1):
            part.state.add_initial(0, number, 1)
        options = RunOptions(noop=noop, sides=sides)
        self.leftovers = Leftovers([part], self.loop, options, local_swift=local_swift)
        self.part = part

    def warning(self) -> str:
        (warning,) = self.news.warnings
        return warning


def test_all_is_deleted(caplog: pytest.LogCaptureFixture, golden_words: GoldenWords) -> None:
    caplog.set_level(logging.INFO)
    run = Run(30)
    assert run.leftovers.count() == 30
    assert run.leftovers.delete(gave_up=False)
    assert {job[4] for batch in run.worker.batches for job in batch.jobs} == {*range(1, 31)}
    golden_words(caplog.messages[0])
    assert caplog.messages[-1] == "Deleted 30 of 30"
    assert run.news.warnings == []


def test_an_interruption_before_it_does_not_end_it(
    caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    caplog.set_level(logging.INFO)
    run = Run(30)
    run.loop.interrupted.set()
    began: list[bool] = []
    assert run.leftovers.delete(gave_up=False, on_begin=lambda: began.append(run.loop.interrupted.is_set()))
    assert began == [False]  # one from then on does
    golden_words(caplog.messages[0])


def test_where_nothing_is_left_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    run = Run(0)
    assert run.leftovers.delete(gave_up=True)
    run.leftovers.say_what_stays()
    run.leftovers.say_what_operations_left(0)
    assert caplog.messages == []


def test_what_is_kept_can_be_deleted_by_a_command(
    caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    caplog.set_level(logging.INFO)
    assert Run(7).leftovers.say_what_is_kept() == 7
    assert Run(7, local_swift=True).leftovers.say_what_is_kept() == 7
    golden_words(caplog.messages)


def test_one_object_is_no_plural(caplog: pytest.LogCaptureFixture, golden_words: GoldenWords) -> None:
    caplog.set_level(logging.INFO)
    assert Run(1).leftovers.delete(gave_up=False)
    Run(1).leftovers.say_what_is_kept()
    run = Run(1)
    run.leftovers.say_what_stays()
    golden_words(caplog.messages[0])
    assert any(line.startswith("Keeping the 1 object that the run created; ") for line in caplog.messages)
    golden_words(run.warning())


def test_old_parts_are_said_with_the_command_that_deletes_them(
    caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    Run(7, local_swift=True).leftovers.say_what_updates_left()
    assert caplog.messages == []
    Run(7).leftovers.say_what_updates_left()
    (said,) = caplog.messages
    golden_words(said)
    assert said.endswith(": ssbench-master cleanup-containers --container-base b")


def test_a_run_of_two_sides_says_what_deletes_both(
    caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    caplog.set_level(logging.INFO)
    Run(7).leftovers.say_where_sides_are()
    over_both = RunSide("swift", api="swift"), RunSide("s3", api="s3")
    Run(7, sides=over_both, local_swift=True).leftovers.say_where_sides_are()
    assert caplog.messages == []
    Run(7, sides=over_both).leftovers.say_where_sides_are()
    golden_words(caplog.messages)


def test_it_tries_less_often_and_keys_of_the_benchmark_alone_do_not_hold() -> None:
    run = Run(3)
    requests = structs.replace(run.loop.fleet.parameters.requests, retries=7)
    changes = {key.name: key.rule.read(key.example) for key in SCENARIO_KEYS if key.benchmark_only}
    run.loop.fleet.forget_jobs(requests=requests, **changes)
    run.leftovers.delete(gave_up=False)
    assert run.worker.parameters.requests.retries == 2
    assert {name: getattr(run.worker.parameters, name) for name in changes} == BENCHMARK_FIELDS


def test_deletions_that_fail_are_counted_with_their_cause_and_what_to_do(golden_words: GoldenWords) -> None:
    run = Run(5)
    run.worker.answer = failure("HTTP 403")
    assert not run.leftovers.delete(gave_up=False)
    warning = run.warning()
    golden_words(warning)
    assert warning.endswith("ssbench-master cleanup-containers --container-base b")
    assert "gave up" not in warning


def test_after_many_failures_in_a_row_no_more_is_tried(golden_words: GoldenWords) -> None:
    run = Run(200)
    run.worker.answer = failure("HTTP 503")
    assert not run.leftovers.delete(gave_up=False)
    warning = run.warning()
    assert warning.startswith("200 of the 200 objects")
    golden_words(warning)
    assert sum(len(batch.jobs) for batch in run.worker.batches) < 60


@pytest.mark.parametrize(("gave_up", "seconds"), [(True, 10.0), (False, 60.0)])
def test_a_run_that_gave_up_is_less_patient(gave_up: bool, seconds: float, golden_words: GoldenWords) -> None:
    run = Run(500)
    run.worker.answer = failure("timeout")
    run.worker.seconds = seconds * 0.6
    began = run.network.now
    assert not run.leftovers.delete(gave_up=gave_up)
    early, left = run.news.warnings
    golden_words(early)
    golden_words(left)
    assert seconds < run.network.now - began < 2 * seconds


def test_after_an_interruption_it_has_a_few_seconds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(leftovers, "_LAST_DELETION_SECONDS", -1.0)  # they are over already
    run = Run(5)
    run.loop.interrupted.set()
    assert not run.leftovers.delete(gave_up=False)
    golden_words(caplog.messages[0])
    golden_words(run.warning())
    assert not run.loop.interrupted.is_set()  # so that another one can end it


def test_another_interruption_ends_it() -> None:
    run = Run(500)
    run.worker.seconds = 1.0
    run.network.at(3.0, run.loop.interrupted.set)
    assert not run.leftovers.delete(gave_up=False)
    left = int(run.warning().split()[0])
    assert 400 < left < 500


def test_what_stays_is_said_where_nothing_deletes_it(golden_words: GoldenWords) -> None:
    run = Run(4)
    run.leftovers.say_what_stays()
    golden_words(run.warning())
    run = Run(4, noop=True)
    run.leftovers.say_what_stays()
    assert run.news.warnings == []  # there are none


def test_what_operations_of_several_requests_left(golden_words: GoldenWords) -> None:
    run = Run(0, local_swift=True)
    run.part.workers.left = 3
    run.leftovers.say_what_operations_left(2)
    golden_words(run.warning())
    run = Run(0)
    run.leftovers.say_what_operations_left(1)
    assert "0 deletions failed, and 1 such operations" in run.warning()


def sessions(count: int) -> TokenSource:
    urls = iter(range(count))
    return TokenSource(
        [Credentials(version="1.0", auth_url="http://h/auth", endpoint_type="")] * count,
        [],
        lambda _: Session((f"http://h/v1/AUTH_{next(urls)}",), "t"),
    )


def test_options_that_find_several_accounts() -> None:
    several = replace(SCENARIO, accounts=3, account_base="bench")
    assert accounts_to_clean(several, None) == []
    assert accounts_to_clean(SCENARIO, sessions(1)) == []
    assert accounts_to_clean(several, sessions(3)) == ["--credentials", "FILE"]


def test_what_deletes_them() -> None:
    place = ContainerSet("my base", "gold", 3)
    command = "ssbench-master cleanup-containers --container-base 'my base' -p gold"
    assert describe_deletion([place], (), local_swift=False).endswith(f": {command}")
    assert describe_deletion([replace(place, policy=None)], (), local_swift=False).endswith(
        " --container-base 'my base'"
    )
    accounts = describe_deletion([place], (), local_swift=False, options=["--accounts=2"])
    assert "cleanup-containers --accounts=2 --container-base" in accounts
    # Nothing can be deleted in a Swift that is gone when the user reads this.
    assert "cleanup-containers" not in describe_deletion([place], (), local_swift=True)


def what_deletes_of(*sides: RunSide) -> str:
    places = (part.places[0] for part in make_group_runs(SCENARIO, 1, None, sides))
    return describe_deletion(places, sides, local_swift=False)


def test_what_deletes_both_sides(golden_words: GoldenWords) -> None:
    command = "ssbench-master cleanup-containers --container-base b"
    both = what_deletes_of(RunSide("x", policy="gold"), RunSide("y", policy="ec"))
    assert both.endswith(f": {command} -p gold; {command} -p ec")
    both = what_deletes_of(RunSide("x", "http://one/v1/a"), RunSide("y", "http://two/v1/a"))
    assert both.endswith(f": {command} -S http://one/v1/a; {command} -S http://two/v1/a")
    both = what_deletes_of(RunSide("old"), RunSide("new"))
    golden_words(both)


def last_lines(run: Run, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(interruption._state, "say", said.append)
    run.leftovers.write_last_line()
    return said


def test_where_the_program_ends_on_the_spot_the_command_is_its_last_line(
    monkeypatch: pytest.MonkeyPatch,
    golden_words: GoldenWords,
) -> None:
    run = Run(30)
    (line,) = last_lines(run, monkeypatch)
    golden_words(line)
    assert line.endswith("\n")
    assert "ssbench-master cleanup-containers --container-base " in line
    run.leftovers.say_what_stays()
    assert last_lines(run, monkeypatch) == [], "it was said"
    assert last_lines(Run(30, local_swift=True), monkeypatch) == [], "they are removed with the folder"


def test_objects_that_change_at_this_moment_are_some(
    monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    run = Run(30)

    def change() -> int:
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(run.leftovers, "count", change)
    (line,) = last_lines(run, monkeypatch)
    golden_words(line)
