"""What is wrong with logs: nodes that are several in one file, lines without ids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from golden_words import GoldenWords
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster.attribution_records import describe_log_faults
from ssbench.cluster.joined_run import OBJECT, Device, FileCount, JoinedRun
from ssbench.scenario.operations import CREATE, READ


@pytest.fixture
def joined() -> JoinedRun:
    return simulate(1, Cause(), Shape(devices=6, nodes=3, requests=200))


def on_one_node(joined: JoinedRun) -> JoinedRun:
    """Take the names of nodes away, as in one file of lines that do not name their host."""
    return replace(joined, devices=[Device("log", each.server, "d1") for each in joined.devices])


def one_device_a_node(joined: JoinedRun) -> JoinedRun:
    """Let the lines of all devices be those of one, which then has several of each write."""
    lines = joined.lines
    return replace(joined, lines=replace(lines, device=np.where(lines.of == OBJECT, 0, lines.device)))


def test_nothing_is_wrong_with_logs_that_name_their_nodes(joined: JoinedRun) -> None:
    assert describe_log_faults(joined) == []
    assert describe_log_faults(on_one_node(joined)) == []  # devices of their own


def test_a_device_with_two_lines_of_a_write_is_of_several_nodes(
    joined: JoinedRun, golden_words: GoldenWords
) -> None:
    merged = one_device_a_node(joined)
    (said,) = describe_log_faults(merged)
    golden_words(said)


def test_reads_failures_and_retries_prove_nothing(joined: JoinedRun) -> None:
    merged = one_device_a_node(joined)
    operations, lines = merged.operations, merged.lines
    for unsure in (
        replace(merged, operations=replace(operations, code=np.full_like(operations.code, READ.code))),
        replace(merged, operations=replace(operations, retries=np.ones_like(operations.retries))),
        replace(merged, lines=replace(lines, status=np.full_like(lines.status, 503))),
    ):
        assert describe_log_faults(unsure) == []


@pytest.mark.parametrize(("twice", "doubted"), [(2, False), (3, True)])
def test_a_few_writes_prove_nothing(joined: JoinedRun, twice: int, doubted: bool) -> None:
    """The same replica of an object twice in 2 of 100 writes, or in one more."""
    operation = np.concatenate([np.arange(100), np.arange(twice)])
    lines = joined.lines
    columns = {name: getattr(lines, name)[: len(operation)] for name in type(lines).__slots__}
    columns |= {"operation": operation}
    columns |= dict.fromkeys(("device", "partition"), np.zeros_like(operation))
    columns |= {"status": np.full_like(operation, 201), "of": np.full(len(operation), OBJECT, np.uint8)}
    writes = np.full_like(joined.operations.code, CREATE.code)
    few = replace(joined, lines=type(lines)(**columns), operations=replace(joined.operations, code=writes))
    assert bool(describe_log_faults(few)) is doubted


def test_a_file_of_lines_without_ids_is_named(joined: JoinedRun, golden_words: GoldenWords) -> None:
    files = [
        FileCount("proxy.log", "p", 9, 0, 0, None, None, without_id=9),
        FileCount("object.log", "o", 9, 9, 0, 1, 2),
    ]
    (said,) = describe_log_faults(replace(joined, files=files))
    golden_words(said)
