"""Whole runs against servers that misbehave: what each fault is called, and how the report tells of it."""

from __future__ import annotations

import dataclasses
import datetime
import re
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from fault_server import Certificates, FaultServer, Reply, Request, black_hole
from processes import Fleet, Program, free_ports
from runs import ENDED, TOKEN, Store, is_object, outcome, wait_until, write_scenario

from ssbench.base.errors import ExitCode
from ssbench.results.reading import open_results

_TX = "tx{:021x}-0065f0aa00"

#: Bytes of each object.
_SIZE = 5000

#: What happens to reads, and what it is called: None for no error at all.
FAULTS: tuple[tuple[str | None, Reply], ...] = (
    ("HTTP 429", Reply(429, retry_after="0.2", body=b"slow down")),
    ("HTTP 498", Reply(498, retry_after="0", body=b"rate limited")),
    ("HTTP 503", Reply(503, body=b"busy")),
    ("HTTP 500", Reply(500)),
    ("HTTP 302", Reply(302)),
    ("reset", Reply(reset=True)),
    ("closed", Reply(cut=30)),
    ("read timeout", Reply(stall=True)),
    ("read timeout", Reply(body=bytes(9000), stall=True, cut=5000)),
    ("short body", Reply(body=b"abc", claim=9, drops=True)),
    ("bad response", Reply(body=b"abcdefgh", claim=3)),
    ("bad response", Reply(raw=b"SSH-2.0-OpenSSH_9.2\r\n")),
    ("bad response", Reply(raw=b"HTTP/1.1 200 OK\r\n" + b"X-More: yes\r\n" * 100, endless=True)),
    ("wrong size", Reply(body=bytes(_SIZE), gzipped=True)),
    (None, Reply(body=bytes(_SIZE), chunked=True)),
    (None, Reply(body=bytes(_SIZE), closes=True)),
    (None, Reply(body=bytes(_SIZE), unframed=True)),
)
#: Those that have no transaction id, because no whole head of an answer came.
_NO_HEAD = {"reset", "closed"}


def causes_in(report: str) -> dict[str, tuple[int, str]]:
    """The report's table of causes, which is two where one is too wide: count and transaction id."""
    section = re.search(r"\nErrors\n((?: .*\n|\n(?= ))+)", report)
    assert section, report
    counts: dict[str, int] = {}
    ids: dict[str, str] = {}
    for table in section[1].split("\n\n"):
        head, *rows = table.splitlines()
        for row in rows:
            cause, *cells = re.split(r"  +", row.strip())
            if " errors " in head:
                counts[cause] = int(cells[0])
            if (place := head.find("first transaction id")) >= 0:
                ids[cause] = row[place:].strip()
        if "retries" in head:
            break
    return {cause: (count, ids[cause]) for cause, count in counts.items()}


def test_each_fault_is_counted_by_its_cause_with_a_transaction_id(fleet: Fleet, tmp_path: Path) -> None:
    count = len(FAULTS)
    rule = Store()

    def fault(request: Request) -> Reply | None:
        name = request.target.rpartition("/")[2]
        if request.method != "GET" or not name.startswith("tiny_"):
            return None
        number = int(name.removeprefix("tiny_"))
        reply = FAULTS[number % count][1]
        headers = (*reply.headers, ("X-Trans-Id", _TX.format(number)))
        return dataclasses.replace(reply, headers=headers)

    rule.fault = fault
    with FaultServer(rule=rule) as server:
        fleet.worker(1, "-c", 40)
        scenario = write_scenario(
            tmp_path,
            sizes=[{"name": "tiny", "size_min": _SIZE, "size_max": _SIZE}],
            initial_files={"tiny": count},
            operation_count=2 * count,
            crud_profile=[0, 1, 0, 0],
            user_count=2 * count,
        )
        # Longer than any process of a busy machine waits for its turn: no other read times out.
        run = fleet.run(scenario, "--network-timeout", 8, "--retries", 1, "-S", server.url, "-T", TOKEN)
        assert run.end() == ExitCode.FAILED, run.err
    assert "Traceback" not in run.err + run.out
    # Each object is read twice.
    expected = Counter({cause: 2 * number for cause, number in Counter(c for c, _ in FAULTS).items()})
    found = outcome(fleet.stats)
    assert found.causes == expected
    table = causes_in(run.out)
    assert {cause: number for cause, (number, _) in table.items()} == {
        cause: number for cause, number in expected.items() if cause is not None
    }
    ours = {_TX.format(number): cause for number, (cause, _) in enumerate(FAULTS)}
    ours[_TX.format(count)] = FAULTS[0][0]  # there is no object 0
    for cause, (_, trans_id) in table.items():
        assert trans_id or cause in _NO_HEAD, cause
        assert not trans_id or ours[trans_id] == cause
    assert found.retried["HTTP 429"] == 2
    assert found.retried["read timeout"] == 4
    assert "cause of retries" in run.out


def test_time_out_and_retries_are_the_master_s_for_all_workers(fleet: Fleet, tmp_path: Path) -> None:
    count = 12
    replies = (Reply(body=bytes(9000), pieces=50, pause=0.2), Reply(404), Reply(503), None)
    rule = Store()
    rule.fault = lambda request: (
        replies[int(request.target[-6:]) % 4]
        if request.method == "GET" and "/tiny_" in request.target
        else None
    )
    with FaultServer(rule=rule) as server:
        worker = fleet.worker(1, "-c", count, "--retries", 7)
        scenario = write_scenario(
            tmp_path,
            initial_files={"tiny": count},
            operation_count=count,
            crud_profile=[0, 1, 0, 0],
            user_count=count,
        )
        limits = ("--network-timeout", 3, "--retries", 1)
        run = fleet.run(scenario, *limits, "-S", server.url, "-T", TOKEN)
        assert run.end() == ExitCode.FAILED, run.err
    found = outcome(fleet.stats)
    assert found.causes == {None: 3, "request timeout": 3, "HTTP 404": 3, "HTTP 503": 3}
    assert found.retried == {"HTTP 503": 3}
    assert "Request options --retries 1 " in " ".join(run.out.split())
    worker.wait_for("WARNING.*--retries has no effect on a worker")
    assert [found.options[name] for name in ("network_timeout", "retries")] == [3, 1]


def test_failures_name_the_storage_url_that_failed(fleet: Fleet, tmp_path: Path) -> None:
    rule, bad_rule = Store(), Store()
    bad_rule.fault = lambda request: Reply(500) if is_object(request) else None
    with FaultServer(rule=rule) as good, FaultServer(rule=bad_rule) as bad:
        fleet.worker(1, "-c", 8)
        run = fleet.run(
            write_scenario(tmp_path, crud_profile=[1, 0, 0, 0]),
            *("-S", good.url, "-S", bad.url, "-T", TOKEN),
        )
        assert run.end() == ExitCode.FAILED, run.err
        assert re.search(rf"could not be uploaded: \d+ x HTTP 500; for example: {bad.url}: 500 ", run.err)
        assert good.url not in run.err
        assert {detail for detail in outcome(fleet.stats).details if detail} == {f"{bad.url}: 500 Reason"}
    assert outcome(fleet.stats).causes["HTTP 500"] > 20
    results = open_results(fleet.stats)
    assert results.run.storage_urls == (good.url, bad.url)
    for block in results.blocks():
        assert (block.storage_url == block.failed).all()
        assert (block.status == np.where(block.failed, 500, 201)).all()
        seconds = block.completed - block.started
        assert ((seconds > 0) & (seconds < 60)).all()
        assert (block.size == np.where(block.failed, 0, block.expected_size)).all()
        assert (block.expected_size >= 100).all()


def test_a_server_that_goes_and_one_that_does_not_answer(fleet: Fleet, tmp_path: Path) -> None:
    rule = Store(0.01)
    with FaultServer(port=free_ports(1)[0], rule=rule) as server:
        fleet.worker(1, "-c", 8)
        scenario = write_scenario(tmp_path, crud_profile=[0, 1, 0, 0])
        options = ["--connect-timeout", 0.5, "--retries", 1, "-S", server.url, "-T", TOKEN]
        run = fleet.run(scenario, "-r", 600, *options)
        run.wait_for(r"\.{40}")
        server.stop()
        run.wait_for("X{20}")
        with black_hole(server.host, server.port):
            wait_until(lambda: outcome(fleet.stats).causes["connect timeout"], "time-outs")
        server.start()
        run.wait_for("X" + ENDED + "{40}")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    assert found.causes["connect refused"] > 0
    assert found.causes["connect timeout"] > 0
    assert found.settled() <= {None, "connect refused", "connect timeout", "reset", "closed"}
    table = causes_in(run.out)
    assert table["connect refused"][0] == found.causes["connect refused"]
    assert "Traceback" not in run.err


def https_run(
    fleet: Fleet, folder: Path, server: FaultServer, certificates: Certificates, *options: object
) -> Program:
    authority = folder / "authority.pem"
    authority.write_text(certificates.pem)
    scenario = write_scenario(folder, operation_count=30)
    fixed = ["--workers", 1, "--os-cacert", authority, "-S", server.url, "-T", TOKEN]
    return fleet.run(scenario, *fixed, *options)


LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


@pytest.mark.parametrize("fault", ["unknown authority", "expired", "another name"])
def test_a_wrong_certificate_is_refused_in_one_line(
    fleet: Fleet, tmp_path: Path, certificates: Certificates, fault: str
) -> None:
    context = {
        "unknown authority": lambda: Certificates().server(),
        "expired": lambda: certificates.server(not_before=LONG_AGO, not_after=LONG_AGO),
        "another name": lambda: certificates.server("elsewhere.test"),
    }[fault]()
    with FaultServer(rule=Store(), tls=context) as server:
        run = https_run(fleet, tmp_path, server, certificates)
        assert run.end() == ExitCode.CLUSTER, run.err
        errors = re.findall("ERROR:.*", run.err)
        assert len(errors) == 1
        assert "certificate" in errors[0]
        assert "Traceback" not in run.err
        assert TOKEN not in str(server.requests)


def test_insecure_takes_a_certificate_that_is_wrong_in_each_way(
    fleet: Fleet, tmp_path: Path, certificates: Certificates
) -> None:
    context = Certificates().server("elsewhere.test", not_before=LONG_AGO, not_after=LONG_AGO)
    with FaultServer(rule=Store(), tls=context) as server:
        run = https_run(fleet, tmp_path, server, certificates, "--insecure")
        assert run.end() == ExitCode.OK, run.err


def test_a_certificate_that_turns_wrong_is_a_cause(
    fleet: Fleet, tmp_path: Path, certificates: Certificates
) -> None:
    rule = Store(0.02)
    with FaultServer(rule=rule, tls=certificates.server()) as server:
        run = https_run(fleet, tmp_path, server, certificates, "-r", 600)
        run.wait_for(r"[._]{40}")
        server.tls = certificates.server("elsewhere.test")
        server.drop_connections()
        run.wait_for("X{20}")
        server.tls = certificates.server()
        run.wait_for("X" + ENDED + "{40}")
        run.signal(signal.SIGINT)
        assert run.end() == ExitCode.INTERRUPTED, run.err
    found = outcome(fleet.stats)
    assert found.causes["TLS certificate"] >= 20
    assert causes_in(run.out)["TLS certificate"][0] == found.causes["TLS certificate"]
    assert found.causes[None] >= 80
