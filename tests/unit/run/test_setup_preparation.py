"""Initial objects, uploaded over a simulated fleet."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from golden_words import GoldenWords
from simulated import Network, failure, success

from ssbench.base.errors import ClusterError
from ssbench.fleet.phase import ClosedLoop
from ssbench.fleet.wire import Job, RunParameters
from ssbench.run import setup
from ssbench.run.bench_options import RunOptions, RunSide
from ssbench.run.group_run import container_set_of
from ssbench.run.loop import MasterLoop
from ssbench.run.phases import InitialUploads
from ssbench.run.run_workers import wait_for_workers
from ssbench.run.setup import upload_initial_objects
from ssbench.run.tokens import TokenRenewal
from ssbench.run.worker_messages import WorkerNews
from ssbench.scenario.draws import Workload
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.population import Population
from ssbench.store.contract import JobResult

SCENARIO = Scenario(
    name="s",
    size_classes=(SizeClass("c", 10, 10, 20, (0, 1, 0, 0)),),
    user_count=4,
    container_count=3,
    operation_count=10,
)


class Bench:
    """A loop over a simulated fleet of one worker."""

    def __init__(self) -> None:
        self.network = Network()
        self.news = WorkerNews()
        self.loop = MasterLoop(
            self.network.fleet(RunParameters(run_id=1, size_classes=["c"])),
            ClosedLoop(4),
            self.news,
            [[TokenRenewal(None)]],
            clock=lambda: self.network.now,
        )
        self.worker = self.network.worker(1)
        wait_for_workers(self.loop, lambda: 1, 10.0, "advice")

    def upload(self) -> InitialUploads:
        workload = Workload(SCENARIO, 1)
        return upload_initial_objects(
            SCENARIO, RunOptions(), workload, Population(SCENARIO, workload), self.loop
        )


def some_fail(job: Job, parameters: RunParameters) -> JobResult | None:
    return (failure("HTTP 503") if job[4] <= 3 else success)(job, parameters)


def test_initial_objects_are_uploaded_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    with caplog.at_level(logging.INFO):
        uploads = bench.upload()
    assert (uploads.uploaded, uploads.failed) == (20, 0)
    assert caplog.messages[-1] == "Initial objects: 20 uploaded, 0 replaced, 0 reused"
    assert bench.news.warnings == []


def test_a_warning_says_how_many_could_not_be_uploaded(golden_words: GoldenWords) -> None:
    bench = Bench()
    bench.worker.answer = some_fail
    assert bench.upload().failed == 3
    (warning,) = bench.news.warnings
    golden_words(warning)


def test_without_a_single_initial_object_the_run_ends(golden_words: GoldenWords) -> None:
    bench = Bench()
    bench.worker.answer = failure("HTTP 507")
    with golden_words.raises(ClusterError):
        bench.upload()


def test_initial_objects_that_are_too_large_for_the_store_are_explained() -> None:
    bench = Bench()
    bench.worker.answer = failure("HTTP 413")
    with pytest.raises(ClusterError, match=r"20 x HTTP 413.*Swift 5 GiB.*: segment_size divides objects"):
        bench.upload()


def test_an_interrupted_run_is_not_warned_of_initial_objects() -> None:
    bench = Bench()
    bench.worker.answer = failure("HTTP 507")
    bench.worker.seconds = 1.0
    bench.network.at(1.5, bench.loop.interrupted.set)
    assert 0 < bench.upload().failed < 20
    assert bench.news.warnings == []


@pytest.mark.parametrize(
    "sides",
    [
        (RunSide("swift", api="swift"), RunSide("s3", api="s3")),
        (RunSide("old"), RunSide("new")),
    ],
)
def test_one_account_over_two_apis_is_not_called_two(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    sides: tuple[RunSide, ...],
    golden_words: GoldenWords,
) -> None:
    monkeypatch.setattr(setup, "STORE", SimpleNamespace(prepare=lambda *_, **__: None))
    tokens: Any = SimpleNamespace(sessions=[None, None], renewing=lambda _: None)
    places = [container_set_of(SCENARIO, account) for account in (0, 1)]
    with caplog.at_level(logging.INFO):
        setup._make_container_sets(
            places, SCENARIO, RunOptions(sides=sides), tokens, Bench().loop, None, kinds=[(str, {})]
        )
    (said,) = (each for each in caplog.messages if each.startswith("Making sure that 3 containers"))
    golden_words(said)
