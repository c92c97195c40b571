"""Reads with a Range field of the scenario, on stores that heed it, ignore it or send another part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from fault_server import FaultServer, Reply, Request
from sent_scenarios import make_sent

from ssbench.fleet.wire import RunParameters
from ssbench.scenario.operations import OPERATIONS, OperationSettings
from ssbench.store.contract import RequestOutcome
from ssbench.store.request_options import RequestOptions
from ssbench.worker.worker_run import WorkerRun

SIZE = 100
BODY = bytes(range(SIZE))


def send_part(request: Request) -> Reply:
    """Answer as RFC 9110 says, of one object."""
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers["range"])
    if found is None:
        return Reply(206, b"several")
    first, last = found.groups()
    begin = int(first) if first else max(SIZE - int(last), 0)
    part = BODY[begin : min(int(last) + 1, SIZE)] if first and last else BODY[begin:]
    if not part:
        return Reply(416)
    return Reply(206, part, headers=(("Content-Range", f"bytes {begin}-{begin + len(part) - 1}/{SIZE}"),))


def ignore_range(_request: Request) -> Reply:
    return Reply(200, BODY)


def send_half(request: Request) -> Reply:
    answer = send_part(request)
    return Reply(206, answer.body[: len(answer.body) // 2], headers=answer.headers)


def send_another_part(request: Request) -> Reply:
    answer = send_part(request)
    return Reply(206, answer.body, headers=(("Content-Range", f"bytes 50-59/{SIZE}"),))


@contextmanager
def asked(rule: Callable[[Request], Reply], wanted: str, size: int = SIZE) -> Iterator[RequestOutcome]:
    """Read an object of a store with this Range field; it is sent once."""
    read = OPERATIONS.named("read")
    settings = OperationSettings("read", headers=(("X-Newest", "true"), ("Range", wanted)))
    with FaultServer(rule=rule) as server:
        parameters = RunParameters(
            1,
            storage_urls=[server.url],
            token="t",
            scenario=make_sent(container_base="base", operations=(settings,)),
            size_classes=["tiny"],
            size_ranges=[(SIZE, SIZE)],
            requests=RequestOptions(retries=0),
        )
        run = WorkerRun(parameters, 1)
        try:
            assert run.plan(read.code, 0, 2) is None  # the short way takes whole objects
            yield run.perform((1, read.code, 0, 2, 7, size), None)[0]
        finally:
            run.close()
        (request,) = server.requests
        assert request.headers["x-newest"] == "true"


@pytest.mark.parametrize("size", [SIZE, 0], ids=["size known", "not known"])
@pytest.mark.parametrize(
    ("wanted", "length"),
    [("bytes=0-9", 10), ("bytes=90-200", 10), ("bytes=60-", 40), ("bytes=-7", 7), ("bytes=-500", SIZE)],
)
def test_the_part_that_was_asked_for_is_a_success(wanted: str, length: int, size: int) -> None:
    """Each was an error: HTTP 206."""
    with asked(send_part, wanted, size) as outcome:
        assert (outcome.cause, outcome.size, outcome.status) == (None, length, 206), outcome.detail


def test_several_parts_are_a_success_of_any_length() -> None:
    with asked(send_part, "bytes=0-1,5-6") as outcome:
        assert (outcome.cause, outcome.size) == (None, len(b"several"))


@pytest.mark.parametrize(
    ("rule", "wanted", "cause"),
    [
        (ignore_range, "bytes=0-9", "HTTP 200"),
        (ignore_range, "bytes=0-1,5-6", "HTTP 200"),
        (send_part, "bytes=100-109", "HTTP 416"),
        (send_half, "bytes=0-9", "wrong size"),
        (send_another_part, "bytes=0-9", "wrong content"),
    ],
)
def test_any_other_answer_is_a_failure(rule: Callable[[Request], Reply], wanted: str, cause: str) -> None:
    with asked(rule, wanted) as outcome:
        assert outcome.cause == cause, outcome.detail
