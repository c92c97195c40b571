"""The master's side of a fleet over simulated sockets: what is sent, what is taken in, what is reported."""

from __future__ import annotations

import msgspec
import pytest
from golden_words import GoldenWords
from simulated import Network, SimulatedWorker, failure, success

from ssbench.fleet import fleet_events, wire
from ssbench.fleet.fleet import Fleet, ReceivedResults
from ssbench.fleet.wire import LAG_BUCKETS, Refusal, RunParameters
from ssbench.fleet.worker_state import History, Task, WorkerState, was_tried
from ssbench.results.block import INVALID_CAUSE
from ssbench.store.contract import JobResult

CREATE = 0


@pytest.fixture
def network() -> Network:
    return Network()


def tasks(count: int) -> list[Task]:
    return [(CREATE, 0, 0, number, 100) for number in range(count)]


def ready(network: Network, *workers: int, parameters: RunParameters | None = None) -> Fleet:
    """A fleet whose workers have answered a ping."""
    fleet = network.fleet(parameters)
    fleet.allocation.limit = 100
    for instance in workers:
        network.worker(instance)
    turn(fleet, network)
    turn(fleet, network)
    fleet.take_events()
    return fleet


def turn(fleet: Fleet, network: Network, seconds: float = 0.1) -> list[ReceivedResults]:
    fleet.tick(network.now)
    return fleet.receive(seconds)


def state(fleet: Fleet, instance: int = 1) -> WorkerState:
    worker = fleet.roster.known(instance)
    assert worker is not None
    return worker


def run_jobs(
    fleet: Fleet, network: Network, batch: list[Task], histories: list[History | None]
) -> ReceivedResults:
    assert fleet.send(state(fleet), batch, network.now, histories)
    (arrival,) = fleet.receive(1.0)
    return arrival


def test_a_worker_is_used_once_it_has_answered_a_ping(network: Network) -> None:
    fleet = network.fleet()
    network.worker(1, capacity=7)
    fleet.receive(0.1)
    assert not fleet.roster.living()
    fleet.tick(network.now)
    fleet.receive(0.1)
    assert fleet.take_events() == [fleet_events.WorkerJoined(state(fleet), 7)]
    assert fleet.take_events() == []


def test_tasks_go_out_and_come_back_as_results(network: Network) -> None:
    fleet = ready(network, 1)
    arrival = run_jobs(fleet, network, tasks(1), [])
    assert [(task, result.cause) for task, result in arrival.ended] == [(tasks(1)[0], None)]
    assert (arrival.worker, arrival.special, arrival.generation) == (state(fleet), [], 0)
    assert not fleet.ledger.in_flight


def test_results_tell_in_which_times_their_worker_stalled(network: Network) -> None:
    fleet = ready(network, 1)
    network.now += 3.0
    stalled = (network.now - 2.0, network.now - 1.0)
    network.workers[wire.work_address(1)].gaps = [stalled]
    run_jobs(fleet, network, tasks(1), [])
    assert state(fleet).load.gaps == [stalled]


def test_failures_and_jobs_sent_again_are_marked(network: Network) -> None:
    fleet = ready(network, 1)
    worker = network.workers[wire.work_address(1)]
    sent_at = network.now
    history = History(2, sent_at - 5.0, {"HTTP 401": 2}, ended=sent_at - 1.0)
    assert run_jobs(fleet, network, tasks(1), [history]).special == [(0, sent_at, history)]
    assert worker.batches[-1].histories == [(2, sent_at - 5.0, sent_at - 1.0, False)]
    worker.answer = failure("HTTP 503")
    sent_at = network.now
    arrival = run_jobs(fleet, network, tasks(1), [])
    assert arrival.special == [(0, sent_at, None)]
    assert arrival.ended[0][1].cause == "HTTP 503"


def test_what_cannot_be_sent_is_kept_for_another_worker(network: Network) -> None:
    fleet = ready(network, 1, 2)
    network.workers[wire.work_address(1)].connected = False
    history = History(1, 0.0, {})
    assert not fleet.send(state(fleet, 1), tasks(2), network.now, [history, None])
    assert list(fleet.ledger.backlog) == [(tasks(2)[0], history), (tasks(2)[1], None)]
    assert {fleet.allocation.next_worker() for _ in range(4)} == {state(fleet, 2)}


def test_results_of_another_run_are_counted_and_dropped(network: Network) -> None:
    fleet = ready(network, 1)
    fleet.send(state(fleet), tasks(3), network.now)
    fleet.forget_jobs(think_time=2.0)
    assert fleet.parameters.run_id != 1
    assert fleet.receive(1.0) == []
    assert fleet.ledger.late_results == 3
    assert len(fleet.ledger.in_flight) == 3


def test_workers_see_changed_parameters_with_their_next_batch(network: Network) -> None:
    fleet = ready(network, 1)
    run_jobs(fleet, network, tasks(1), [])
    fleet.change(token="new")
    worker = network.workers[wire.work_address(1)]
    assert worker.parameters.token is None
    assert run_jobs(fleet, network, tasks(1), []).generation == 1
    assert worker.parameters.token == "new"


def test_an_impossible_result_ends_its_job_as_an_error(network: Network) -> None:
    fleet = ready(network, 1)
    worker = network.workers[wire.work_address(1)]
    worker.answer = lambda job, _: JobResult(job[0], 0.0, 60.0, 0.0)
    arrival = run_jobs(fleet, network, tasks(1), [])
    assert arrival.ended[0][1].cause == INVALID_CAUSE
    assert len(arrival.special) == 1
    assert [type(event) for event in fleet.take_events()] == [fleet_events.Invalid]
    assert fleet.ledger.invalid_results == 1


@pytest.mark.parametrize("fields", [{"cause": "x", "spent": 1e9}, {"late": 1e9}])
def test_failures_and_lateness_are_checked_too(network: Network, fields: dict[str, object]) -> None:
    fleet = ready(network, 1)
    worker = network.workers[wire.work_address(1)]
    worker.seconds = 0.2
    worker.answer = lambda job, _: JobResult(job[0], 0.1, 0.1, 0.0, **fields)
    arrival = run_jobs(fleet, network, tasks(1), [])
    assert arrival.ended[0][1].cause == INVALID_CAUSE


def test_the_longest_job_allows_for_what_users_think(network: Network) -> None:
    fleet = network.fleet()
    before = fleet.ledger.longest_job
    fleet.change(think_time=300.0)
    assert fleet.ledger.longest_job == before + 300.0


def test_a_worker_that_keeps_a_job_and_says_that_none_has_begun_is_overdue(network: Network) -> None:
    fleet = ready(network, 1)
    worker = network.workers[wire.work_address(1)]
    worker.seconds = 0.0

    def answer(job: wire.Job, parameters: RunParameters) -> JobResult | None:
        worker.begun = 0
        return success(job, parameters) if job[4] else None

    worker.answer = answer
    fleet.ledger.longest_job = 10.0
    assert fleet.send(state(fleet), tasks(1), network.now)
    for _ in range(30):
        assert fleet.send(state(fleet), tasks(2)[1:], network.now)
        turn(fleet, network, 0.5)
        turn(fleet, network, 0.5)
    assert fleet_events.Overdue in [type(event) for event in fleet.take_events()]


def test_of_many_invalid_messages_three_are_reported_and_all_counted(network: Network) -> None:
    fleet = ready(network)
    for _ in range(100):
        network.arrives(0.0, b"nonsense")
    assert fleet.receive(0.1) == []
    assert fleet.invalid_messages == 100
    assert [type(event) for event in fleet.take_events()] == [fleet_events.InvalidMessage] * 3


def old_heartbeat(worker: SimulatedWorker) -> bytes:
    message = wire.Heartbeat(
        wire.PROTOCOL, worker.instance, worker.instance, 0, 0.0, 1, [], 0.0, [0] * LAG_BUCKETS, "h", 1, "1"
    )
    return wire.pack_message(msgspec.structs.replace(message, protocol=wire.PROTOCOL + 1))


def test_parameters_are_sent_once_and_again_where_a_worker_may_not_have_them(network: Network) -> None:
    accounts: list[wire.AccountAccess] = [(["http://h/v1/AUTH_" + "x" * 80], "t" * 150) for _ in range(100)]
    fleet = ready(network, 1, 2, parameters=RunParameters(run_id=1, accounts=accounts))
    worker = network.workers[wire.work_address(1)]
    sizes: list[int] = []
    receive = worker.receive
    worker.receive = lambda message: (sizes.append(len(message)), receive(message))[1]

    def send() -> bool:
        run_jobs(fleet, network, tasks(1), [])
        return sizes[-1] > 20_000

    assert [send() for _ in range(3)] == [True, False, False]
    fleet.renew(7, "another")
    assert [send() for _ in range(2)] == [True, False]
    assert worker.parameters.accounts[7][1] == "another"
    # It has lost its connection and come back: nobody else knows, and it says so itself.
    worker.known.clear()
    assert fleet.send(state(fleet), tasks(1), network.now)
    assert fleet.receive(0.1) == []
    assert [task for task, _ in fleet.ledger.backlog] == tasks(1)
    assert [send() for _ in range(2)] == [True, False]
    worker.connected = False
    assert not fleet.send(state(fleet), tasks(1), network.now)
    worker.connected = True
    assert [send() for _ in range(2)] == [True, False]


def test_a_worker_with_another_protocol_is_refused_and_told_so_once_a_second(network: Network) -> None:
    fleet = ready(network)
    worker = SimulatedWorker(network, 5, 1)
    network.workers[wire.work_address(5)] = worker
    network.arrives(0.0, old_heartbeat(worker))
    fleet.receive(0.1)
    (event,) = fleet.take_events()
    reason = f"speaks protocol {wire.PROTOCOL + 1}, this master {wire.PROTOCOL}"
    assert event == fleet_events.Refused(state(fleet, 5), reason)
    for _ in range(25):
        turn(fleet, network)
    assert worker.notices == [Refusal(reason)] * 3
    assert fleet.invalid_messages == 0


def test_what_a_worker_hands_back_is_sent_to_another(network: Network) -> None:
    fleet = ready(network, 1, 2)
    worker = network.workers[wire.work_address(1)]
    worker.stopped = True
    fleet.send(state(fleet), tasks(2), network.now)
    worker.send(wire.Handback(1, 1, 1, 0, list(fleet.ledger.in_flight)))
    fleet.receive(0.1)
    assert fleet.heard_news
    assert sorted(task for task, _ in fleet.ledger.backlog) == tasks(2)
    assert fleet.ledger.handed_back == 2


def test_results_alone_are_no_news(network: Network) -> None:
    fleet = ready(network, 1)
    assert run_jobs(fleet, network, tasks(1), []).ended
    assert not fleet.heard_news


def test_a_worker_that_says_goodbye_has_left(network: Network) -> None:
    fleet = ready(network, 1)
    network.workers[wire.work_address(1)].send(wire.Goodbye(1, 1, "received SIGTERM"))
    fleet.receive(0.1)
    assert fleet.take_events() == [fleet_events.Left(state(fleet), "received SIGTERM")]


def test_a_second_run_counts_from_zero_with_the_same_workers(network: Network) -> None:
    fleet = ready(network, 1)
    fleet.send(state(fleet), tasks(1), network.now)
    fleet.forget_jobs()
    fleet.receive(1.0)
    network.arrives(0.0, b"nonsense")
    fleet.receive(0.1)
    assert (fleet.ledger.late_results, fleet.invalid_messages) == (1, 1)
    fleet.dispatcher.abandon()
    assert fleet.begin(RunParameters(run_id=99), [10]) == [state(fleet)]
    assert (fleet.ledger.late_results, fleet.invalid_messages) == (0, 0)
    fleet.allocation.limit = 1
    assert not fleet.roster.living()
    turn(fleet, network)
    assert fleet.roster.living() == [state(fleet)]
    assert run_jobs(fleet, network, tasks(1), []).ended


def test_due_times_are_of_the_workers_clock_and_stay_when_a_job_is_handed_back(network: Network) -> None:
    fleet = ready(network, 1, 2)
    now = network.now
    state(fleet).clock.offset.observe(now + 5000.0, now)
    assert fleet.send(state(fleet), tasks(3), now, (), [now + 1.0, now + 1.5, now + 2.0])
    batch = network.workers[state(fleet).address].batches[-1]
    assert batch.start == pytest.approx(now + 1.0 + 5000.0)
    assert batch.dues == pytest.approx([0.0, 0.5, 1.0])
    fleet.dispatcher.hand_back([batch.batch_id + 1], state(fleet), 10, asked=True)
    ((task, history),) = fleet.ledger.backlog
    assert not was_tried(history)
    assert fleet.send(state(fleet, 2), [task], now, [history])
    other = network.workers[state(fleet, 2).address].batches[-1]
    assert other.start == pytest.approx(now + 1.0)
    assert (other.dues, other.histories) == (pytest.approx([0.5]), [(0, None, None, False)])


def test_who_is_refused_at_the_ports_is_said_and_counted_for_each_run(network: Network) -> None:
    network.refused_connections = 3
    fleet = ready(network)
    network.port_news = ["one", "two"]
    network.refused_connections = 8
    for _ in range(3):
        turn(fleet, network)
    assert fleet.take_events() == [fleet_events.PortNews("one"), fleet_events.PortNews("two")]
    assert fleet.ledger.refused_connections == 8  # those before it began, too
    network.port_news = ["three"]
    network.refused_connections = 10
    fleet.count_refused_connections()
    assert fleet.take_events() == [fleet_events.PortNews("three")]
    assert fleet.ledger.refused_connections == 10
    fleet.begin(RunParameters(run_id=2), [])
    assert fleet.ledger.refused_connections == 0
    network.refused_connections = 11
    turn(fleet, network)
    assert fleet.ledger.refused_connections == 1


def test_what_strangers_send_to_the_port_for_work_is_invalid(
    network: Network, golden_words: GoldenWords
) -> None:
    fleet = ready(network)
    for _ in range(5):
        network.strange_frames = 10
        turn(fleet, network)
    assert fleet.invalid_messages == 50
    (said,) = {*fleet.take_events()}
    assert isinstance(said, fleet_events.InvalidMessage)
    golden_words(said.why)
