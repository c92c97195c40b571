"""Account servers are judged by what container servers tell them of the containers that a run makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from counted import SCENARIO, Memory, row
from golden_words import GoldenWords
from result_rows import block
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import finding_sentences, own_times, suspect_search
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.join import LogJoin
from ssbench.cluster.joined_run import Device, JoinedRun
from ssbench.logs.log_files import LogFile
from ssbench.results.run_description import RunDescription
from ssbench.scenario.names import run_mark

DATA = Path(__file__).parents[2] / "data" / "swiftlogs"
HEALTHY = simulate(1, Cause(), Shape(devices=4, nodes=3, requests=200))
RUNS = 20
REQUEST_SECONDS = float(np.median(HEALTHY.operations.latency))


def told(seed: int, slow: dict[int, float], containers: int = 40) -> JoinedRun:
    """Each container's replicas tell one of three account servers each."""
    random = np.random.default_rng(seed)
    devices = [*HEALTHY.devices, *(Device(f"n{number}", "account", f"a{number}") for number in range(3))]
    server = np.tile(np.arange(3), containers)
    seconds = random.lognormal(np.log(0.003), 0.9, len(server))
    for number, more in slow.items():
        seconds[server == number] += more
    return replace(HEALTHY, devices=devices, account_updates=(len(HEALTHY.devices) + server, seconds))


def named(joined: JoinedRun) -> list[str]:
    return [
        each.name for each in make_attribution(joined).findings if each.part == own_times.ACCOUNT_UPDATES_PART
    ]


def suspected(joined: JoinedRun) -> list[str]:
    """Who is by these updates alone, which takes a fiftieth of all that a run shows."""
    measure = own_times._measure_account_updates(joined, REQUEST_SECONDS)
    return [str(joined.devices[each.candidate]) for each in suspect_search.find_suspects([measure]).suspects]


def test_a_slow_account_server_is_named(golden_words: GoldenWords) -> None:
    found = [suspected(told(seed, {1: 0.01})) for seed in range(RUNS)]
    assert found == [["account server's a1 on n1"]] * RUNS
    assert named(told(1, {1: 0.01})) == found[1]
    first = finding_sentences.describe_attribution(make_attribution(told(1, {1: 0.01})))[0]
    golden_words(first)
    assert " ms longer by its own log, in " in first
    assert " of them. +" in first
    golden_words(first)


def test_it_is_a_finding_like_others() -> None:
    (found,) = make_attribution(told(1, {1: 0.01})).findings
    assert (found.kind, found.name, found.part) == ("slow", "account server's a1 on n1", "account updates")


def test_two_slow_account_servers_are_both_named() -> None:
    both = {"account server's a0 on n0", "account server's a1 on n1"}
    assert sum({*suspected(told(seed, {0: 0.03, 1: 0.01}))} == both for seed in range(RUNS)) >= 18
    assert {*named(told(1, {0: 0.03, 1: 0.01}))} == both


def test_nobody_is_named_where_nobody_is_slow() -> None:
    # Five times as many runs, one wrong at the most.
    assert sum(bool(suspected(told(seed, {}))) for seed in range(5 * RUNS)) <= 1
    assert named(told(1, {})) == []
    # A difference that no request would feel, or of too few updates.
    assert named(told(1, {1: 0.0005}, containers=2000)) == []
    assert named(told(1, {1: 0.03}, containers=2)) == []


@pytest.mark.parametrize(
    ("also", "times"),
    [(None, 1), ("the same", 1), ("another", 2)],
    ids=["once", "twice", "of two transactions"],
)
def test_genuine_lines_of_account_updates(tmp_path: Path, also: str | None, times: int) -> None:
    """The same line in two files is one; a line of another transaction is another, though they are alike."""
    mark = f"-{run_mark(0x1234)}"
    lines = (DATA / "syslog-rfc3339.log").read_text()
    trans_id = "txeb8039b540b9445f85aab-006b021d3a"
    path = tmp_path / "log"
    path.write_text(lines.replace(trans_id, f"{trans_id}{mark}"))
    of_run = f"tx0123456789abcdef01234-006b021d3a{mark}"
    join = LogJoin(Memory(block([row()], [of_run]), run=RunDescription(SCENARIO, run_id=0x1234)))
    other = tmp_path / "other"
    other.write_text(
        path.read_text().replace(trans_id, f"{trans_id[:-1]}b") if also == "another" else path.read_text()
    )
    join.read([LogFile(path, "a"), *([LogFile(other, "b")] if also else [])])
    joined = join.joined()
    device, seconds = joined.account_updates
    assert {str(joined.devices[place]) for place in device} <= {
        f"account server's d{n} on vm" for n in range(5)
    }
    assert len(seconds) == times * lines.count('"container-server ')
    assert 0.0019 in seconds
