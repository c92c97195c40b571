"""Which lines are compared with which: own times of reads and deletes, look-ups of containers and"
" accounts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joined_runs import joined_run, object_lines, servers, successes

from ssbench.cluster.findings import make_attribution
from ssbench.cluster.joined_run import OBJECT, OTHER, UPDATE, Device, JoinedRun
from ssbench.cluster.own_times import UsableOperations, _measure_lines, is_own_time
from ssbench.scenario.operations import CREATE, DELETE, READ

DEVICES = [
    Device("n0", "object", "d0"),
    Device("n0", "container", "c0"),
    Device("n0", "account", "a0"),
    Device("n1", "container", "c1"),
]


def run(code: list[int], device: list[int], of: int, each: int = 1) -> JoinedRun:
    """Each operation has some lines, on these devices."""
    count = len(code)
    every = np.arange(count)
    operations = successes(np.array(code), np.full(count, 4096, np.int64), np.full(count, 0.02), every)
    lines = object_lines(
        DEVICES,
        np.repeat(every, each),
        np.array(device),
        np.zeros(count * each, np.int64),
        np.full(count * each, 0.01),
    )
    zero = np.zeros(count, np.int64)
    joined = joined_run(operations, lines, DEVICES, servers(DEVICES), ["p"], zero, np.full(count, 0.015))
    return replace(joined, lines=replace(lines, of=np.full(count * each, of, np.uint8)))


def strata(part: str, joined: JoinedRun) -> list[list[int]]:
    lines, none = joined.lines, np.zeros(len(joined.lines), np.int64)
    found = _measure_lines(part, joined, np.arange(len(lines)), lines.seconds, none).units.stratum.tolist()
    return [[place for place, each in enumerate(found) if each == one] for one in dict.fromkeys(found)]


def test_look_ups_of_an_account_are_not_those_of_a_container() -> None:
    joined = run([READ.code] * 20, [1, 2, 3, 2] * 10, OTHER, each=2)
    containers, accounts = [*range(0, 40, 2)], [*range(1, 40, 2)]
    assert strata("lookups", joined) == [containers, accounts]
    assert strata(
        "updates", replace(joined, lines=replace(joined.lines, of=np.full(40, UPDATE, np.uint8)))
    ) == [[*range(40)]]


def test_reads_are_compared_with_those_of_their_size_and_deletes_with_all() -> None:
    joined = run([READ.code] * 20 + [DELETE.code] * 20, [0] * 40, OBJECT)
    joined.operations.size[::2] = 1 << 20
    assert strata("own", joined) == [[*range(0, 20, 2)], [*range(1, 20, 2)], [*range(20, 40)]]
    measure = _measure_lines("own", joined, np.arange(40), joined.lines.seconds, np.zeros(40, np.int64))
    assert measure.groups == ("reads", "deletes")
    assert measure.units.group[measure.units.stratum].tolist() == [0] * 20 + [1] * 20
    assert measure.request == pytest.approx(0.02)


def test_own_times_are_of_answers_to_reads_and_deletes_that_one_server_gave() -> None:
    joined = run(
        [READ.code, READ.code, DELETE.code, DELETE.code, CREATE.code, READ.code, READ.code], [0] * 7, OBJECT
    )
    joined.lines.status[5] = 404
    joined.lines.of[6] = OTHER
    first_try = np.array([True, True, True, False, True, True, True])
    compared = np.array([True, False, False, False, True, True, True])
    found = is_own_time(joined, UsableOperations(first_try, compared))
    assert found.tolist() == [True, False, True, False, False, False, False]


@pytest.mark.parametrize(("meet", "quarters"), [(1, 4), (8, 0)])
def test_quarters_of_the_run_are_compared_where_requests_do_not_wait_for_each_other(
    meet: int, quarters: int
) -> None:
    """A queue comes and goes, and tells nothing of who has it."""
    devices = [Device(f"n{place}", "object", f"d{place}") for place in range(4)]
    count, every = 640, np.arange(640)
    # Of those who come to a device at once each waits for all that were there before it.
    before = every // len(devices) % meet
    seconds = np.random.default_rng(1).lognormal(np.log(0.01), 0.1, count) * (1 + before)
    operations = successes(np.full(count, READ.code), np.full(count, 4096, np.int64), seconds, every)
    began = operations.ended[every - every % (4 * meet)] + every * 1e-6
    operations = replace(operations, ended=began + seconds)
    lines = object_lines(devices, every, every % 4, np.zeros(count, np.int64), seconds)
    zero = np.zeros(count, np.int64)
    joined = joined_run(operations, lines, devices, servers(devices), ["p"], zero, seconds)
    found = make_attribution(replace(joined, lines=replace(lines, status=np.full(count, 200))))
    assert found.has_queues is (quarters == 0)
    assert found.comparisons == 16 + 4 * quarters  # each device in as many other ways


def test_few_slow_requests_are_found_beside_those_that_met_the_same_queue() -> None:
    """In a queue others wait for as long as these are delayed."""
    devices = [Device(f"n{place}", "object", f"d{place}") for place in range(6)]
    count, every = 1500, np.arange(1500)
    random = np.random.default_rng(1)
    # Requests come in waves, and two at a time are served.
    began = np.sort(random.uniform(0, 1, count) + 0.25 * np.repeat(np.arange(10), 150))
    device = random.integers(0, 6, count)
    free, ended = np.zeros((6, 2)), np.zeros(count)
    delayed = (device == 1) & (random.random(count) < 0.05)
    for place in every.tolist():
        server = free[device[place]]
        first = int(np.argmin(server))
        server[first] = max(began[place], server[first]) + random.lognormal(np.log(0.02), 0.5)
        ended[place] = server[first] + 0.2 * delayed[place]
    seconds = ended - began
    assert np.quantile(seconds[~delayed], 0.8) > 0.2
    operations = successes(np.full(count, READ.code), np.full(count, 4096, np.int64), seconds, every)
    operations = replace(operations, ended=ended)
    lines = object_lines(devices, every, device, np.zeros(count, np.int64), seconds)
    joined = joined_run(
        operations, lines, devices, servers(devices), ["p"], np.zeros(count, np.int64), seconds
    )
    found = make_attribution(replace(joined, lines=replace(lines, status=np.full(count, 200))))
    assert found.has_queues
    assert [(each.kind, each.name) for each in found.findings if each.kind == "slow"] == [
        ("slow", "d1 on n1")
    ]
