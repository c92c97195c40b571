"""The marks of runs, in a container that a small server keeps."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

import pytest
from fault_server import FaultServer, Reply, Request
from msgspec import structs

from ssbench.run import run_marks
from ssbench.run.run_marks import (
    ENDED_MARK_LIFETIME,
    MARK_LIFETIME,
    RunMark,
    RunMarks,
    containers_in_use,
    describe_this_process,
)
from ssbench.scenario.names import mark_name
from ssbench.store.contract import AttemptError, StoreAccess
from ssbench.store.credentials import Session

DATE = "Sun, 01 Mar 2026 10:01:00 GMT"


class Kept:
    """Objects by (container, name), each with its bytes and when it was written."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], tuple[bytes, str]] = {}
        self.listed_only: list[str] = []

    def __call__(self, request: Request) -> Reply | None:
        _, _, _, container, *rest = unquote(urlsplit(request.target).path).split("/", 4)
        if not rest:
            rows = [
                {"name": name, "bytes": len(body)}
                for (its, name), (body, _) in self.objects.items()
                if its == container
            ]
            rows += [{"name": name, "bytes": 9} for name in self.listed_only]
            found = json.dumps(rows).encode()
            return Reply(200, found, (("Content-Type", "application/json"),)) if rows else Reply(404)
        place = container, rest[0]
        if request.method == "PUT":
            return Reply(201)
        if place not in self.objects:
            return Reply(404)
        body, written = self.objects[place]
        if request.method == "DELETE":
            del self.objects[place]
            return Reply(204)
        return Reply(200, body, (("Date", DATE), ("Last-Modified", written)))

    def keep(self, mark: RunMark, container: str = "c", *, written: str = DATE) -> None:
        self.objects[container, mark_name(mark.run)] = json.dumps(structs.asdict(mark)).encode(), written


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def server(kept: Kept) -> Iterator[FaultServer]:
    with FaultServer(rule=kept) as running:
        yield running


def made(server: FaultServer, extra: str | None = None) -> RunMarks:
    return RunMarks(StoreAccess(Session((server.url,), "t"), (5.0, 10.0), trans_id_extra=extra), "c")


@pytest.mark.parametrize(
    ("mark", "lifetime"),
    [
        (RunMark(run="1f"), str(MARK_LIFETIME)),
        (RunMark(run="1f", ended=True), str(ENDED_MARK_LIFETIME)),
        (RunMark(run="1f", kept=3), None),
    ],
)
def test_a_mark_expires_unless_objects_are_kept(
    server: FaultServer, mark: RunMark, lifetime: str | None
) -> None:
    made(server, "extra").put(mark)
    (request,) = server.requests
    assert request.target.endswith(f"/c/{mark_name('1f')}")
    assert request.headers.get("x-delete-after") == lifetime
    assert request.headers["x-trans-id-extra"] == "extra"
    assert json.loads(request.body)["run"] == "1f"


def test_marks_of_others_are_found(server: FaultServer, kept: Kept) -> None:
    kept.keep(RunMark(run="1", host="h", pid=7, scenario="s"))
    kept.keep(RunMark(run="2"))
    (found,) = made(server).others("2")
    assert str(found) == "run 1 of host h (pid 7, scenario s)"
    assert found.sentence_start == "Run 1 of host h (pid 7, scenario s)"
    assert len(made(server).others()) == 2
    assert str(RunMark(run="3", host="\x1b[31m")) == "run 3 of host ??31m (pid 0)"


def test_no_container_has_no_marks(server: FaultServer) -> None:
    assert made(server).others() == []


def test_an_old_mark_counts_for_nothing_and_is_deleted(server: FaultServer, kept: Kept) -> None:
    kept.keep(RunMark(run="1"), written="Sun, 01 Mar 2026 10:00:00 GMT")  # of its last second
    kept.keep(RunMark(run="2"), written="Sun, 01 Mar 2026 09:59:59 GMT")
    kept.keep(RunMark(run="3", ended=True), written="Sun, 01 Mar 2026 09:00:00 GMT")
    assert [mark.run for mark in made(server).others()] == ["1", "3"]
    assert ("c", mark_name("2")) not in kept.objects


def test_one_that_is_only_listed_is_deleted_from_the_listing(server: FaultServer, kept: Kept) -> None:
    kept.listed_only = [mark_name("5")]
    assert made(server).others() == []
    assert server.requests[-1].method == "DELETE"


def test_what_is_no_mark_is_passed_over_and_stays(server: FaultServer, kept: Kept) -> None:
    kept.keep(RunMark(run="1"))
    kept.objects["c", mark_name("2")] = b"nonsense", DATE
    kept.objects["c", mark_name("3")] = b'{"run": "4"}', DATE  # of another name
    kept.objects["c", mark_name("6")] = b'{"run": "6"}' + b" " * 5000, DATE  # too large
    assert [mark.run for mark in made(server).others()] == ["1"]
    assert len(kept.objects) == 4


def test_deleting_one_that_is_gone_is_no_fault_but_one_that_may_not_be_is(server: FaultServer) -> None:
    made(server).delete("1")
    server.rule = lambda _request: Reply(403)
    for ask in (lambda: made(server).delete("1"), lambda: made(server).others()):
        with pytest.raises(AttemptError) as raised:
            ask()
        assert run_marks.is_denied(raised.value)


def test_a_run_of_a_process_that_has_ended_is_over(server: FaultServer, kept: Kept) -> None:
    boot, space, pid, start = describe_this_process().split("/")
    assert int(pid) == os.getpid()
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait(60)
    other_start = str(int(start) + 1)
    alive = [
        f"{boot}/{space}/{os.getppid()}/{run_marks._start_of(os.getppid())}",
        f"other/{space}/{child.pid}/1",
        "",
        "x/y",
    ]
    gone = [f"{boot}/{space}/{child.pid}/1", f"{boot}/{space}/{pid}/{other_start}"]
    for number, process in enumerate([*alive, *gone], 1):
        kept.keep(RunMark(run=f"{number:x}", process=process))
    assert [mark.run for mark in made(server).others()] == ["1", "2", "3", "4"]
    assert len(kept.objects) == len(alive)


def test_a_run_that_was_killed_is_over_although_nobody_has_asked_how_it_ended(
    server: FaultServer, kept: Kept
) -> None:
    """Its process stays in the table of processes until then, as below a supervisor or a script."""
    boot, space, *_ = describe_this_process().split("/")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        kept.keep(RunMark(run="a", process=f"{boot}/{space}/{child.pid}/{run_marks._start_of(child.pid)}"))
        assert [mark.run for mark in made(server).others()] == ["a"]
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not made(server).others()
        assert not kept.objects


def test_a_listing_that_is_nested_deeply_is_a_failed_request(server: FaultServer) -> None:
    server.rule = lambda _: Reply(200, b"[" * 100_000, (("Content-Type", "application/json"),))
    with pytest.raises(AttemptError, match="bad response") as raised:
        made(server).others()
    assert raised.value.cause == "bad response"


def test_of_this_process_a_run_is_over_that_is_not_under_way(server: FaultServer, kept: Kept) -> None:
    for run in ("a", "b"):
        kept.keep(RunMark(run=run, process=describe_this_process()))
    run_marks.MARKS_UNDER_WAY.add("a")
    try:
        assert [mark.run for mark in made(server).others()] == ["a"]
    finally:
        run_marks.MARKS_UNDER_WAY.discard("a")


def test_a_run_uses_all_containers_of_its_base_and_policy(
    server: FaultServer, kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    session, timeouts = Session((server.url,), "t"), (5.0, 10.0)
    names = [f"x_{number:06}{policy}" for policy in ("", "_gold") for number in range(3)]
    kept.keep(RunMark(run="1"), "x_000000_gold")
    kept.keep(RunMark(run="2", ended=True), "x_000000")
    kept.keep(RunMark(run="3"), "x_000001")  # runs put theirs into the first container only
    used = containers_in_use(StoreAccess(session, timeouts), [*names, "other"])
    assert {name: mark.run for name, mark in used.items()} == dict.fromkeys(names[3:], "1")
    server.rule = lambda _request: Reply(403)
    with caplog.at_level(logging.WARNING):
        assert containers_in_use(StoreAccess(session, timeouts), names[:2]) == {}
    assert caplog.messages == ["Whether a run uses x_000000 is not known: HTTP 403 Forbidden"]


def test_a_moment_that_no_clock_can_show_tells_no_age(server: FaultServer, kept: Kept) -> None:
    """It was a traceback of a clean-up."""
    kept.keep(RunMark(run="a1"), "x_000000", written="Mon, 01 Jan 99999999999999999999 00:00:00 GMT")
    used = containers_in_use(StoreAccess(Session((server.url,), "t"), (5.0, 5.0)), ["x_000000"])
    assert used["x_000000"].run == "a1"


@pytest.mark.parametrize(("seconds", "attempts"), [(None, 5), (1.0, 3)])
def test_a_listing_that_cannot_be_read_is_asked_for_as_long_as_there_is_patience(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch, seconds: float | None, attempts: int
) -> None:
    now = 0.0

    def sleep(pause: float) -> None:
        nonlocal now
        now += pause

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    server.rule = lambda _request: Reply(200, b"<html>")
    marks = RunMarks(StoreAccess(Session((server.url,), "t"), (5.0, 10.0)), "c", seconds)
    with pytest.raises(AttemptError):
        marks.others()
    assert len(server.requests) == attempts
