"""The process that watches a cluster: proxies, datagrams, and what was left in the socket before."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from fault_server import FaultServer, Reply
from runs import wait_until

from ssbench.base import own_processes
from ssbench.cluster import _watch
from ssbench.cluster._watch import Task, Watch, count_dropped_datagrams
from ssbench.results.cluster_observation import Observation

INFO = Reply(200, body=json.dumps({"swift": {"version": "2.35.0"}, "slo": {}}).encode())


@pytest.fixture
def statsd() -> Iterator[socket.socket]:
    """A socket for datagrams, whose descriptor a watch takes over."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound


def task(bound: socket.socket) -> Task:
    return Task(statsd=os.dup(bound.fileno()), statsd_port=bound.getsockname()[1], interval=5.0)


def send(bound: socket.socket, *lines: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for line in lines:
            sender.sendto(line, bound.getsockname())


def seen(watch: Watch) -> set[str]:
    statsd = watch._observation().statsd
    assert statsd is not None
    return {metric.name for metric in statsd.metrics}


def test_silent_proxies_do_not_hide_those_that_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were asked one after the other, and of those after two silent ones it said that none answered."""
    monkeypatch.setattr(_watch, "BEFORE_SECONDS", 1.0)
    with (
        FaultServer(default=Reply(stall=True)) as first,
        FaultServer(default=Reply(stall=True)) as second,
        FaultServer(default=INFO) as third,
    ):
        urls = tuple(each.url.partition("/v1")[0] for each in (first, second, third))
        watch = Watch(Task(proxies=urls))
        found = watch.begin().proxies
    assert [each.url for each in found] == [*urls]
    assert [each.failure for each in found] == ["no answer in 1 s", "no answer in 1 s", None]
    assert found[2].version == "2.35.0"


def test_datagrams_are_counted_from_the_beginning_on(statsd: socket.socket) -> None:
    send(statsd, b"left.over:1|c", b"left.over:1|c")
    watch = Watch(task(statsd))
    watch.begin()
    assert seen(watch) == set()
    send(statsd, b"proxy-server.GET.200.timing:5.5|ms")
    wait_until(lambda: seen(watch), "a datagram is counted")
    assert seen(watch) == {"proxy-server.GET.200.timing"}
    end = watch.end()
    assert end.statsd is not None
    assert (end.statsd.port, end.statsd.dropped) == (statsd.getsockname()[1], 0)
    assert 0 < end.ended < 600
    assert abs(end.began - time.time()) < 600


def test_what_the_kernel_drops_is_known(statsd: socket.socket) -> None:
    assert count_dropped_datagrams(statsd) == 0
    statsd.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the least that there is
    send(statsd, *[b"x" * 1000] * 50)
    statsd.setblocking(False)
    taken = 0
    with suppress(BlockingIOError):
        while statsd.recv(2000):
            taken += 1
    assert count_dropped_datagrams(statsd) == 50 - taken > 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        assert count_dropped_datagrams(other) == 0


def test_what_was_dropped_before_is_not_counted(statsd: socket.socket) -> None:
    statsd.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    send(statsd, *[b"x" * 1000] * 50)
    assert count_dropped_datagrams(statsd) > 0
    found = Watch(task(statsd)).begin().statsd
    assert found is not None
    assert found.dropped == 0


def test_the_program_answers_two_lines_and_ends_with_its_input(tmp_path: Path) -> None:
    with FaultServer(default=INFO) as server:
        url = server.url.partition("/v1")[0]
        asked = msgspec.json.encode(Task(proxies=(url,))) + b"\n"
        for told, answers in ((asked, 1), (asked + b"end\n", 2)):
            done = subprocess.run(
                own_processes.make_python_command("ssbench.cluster._watch"),
                input=told,
                capture_output=True,
                timeout=100,
                check=True,
                cwd=tmp_path,
            )
            found = [msgspec.json.decode(line, type=Observation) for line in done.stdout.splitlines()]
            assert len(found) == answers
            assert [each.proxies[0].version for each in found] == ["2.35.0"] * answers
            assert not done.stderr


def test_a_task_that_is_none_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}}\n")))
    with pytest.raises(msgspec.DecodeError):
        _watch.main()
