"""Which server a line of the run is of, who asked, and what else is taken of it, by made-up lines."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from counted import Memory, row
from result_rows import block

from ssbench.cluster import log_background, node_addresses
from ssbench.cluster.join import FileLines, LogJoin, WantedLines, read_log_file
from ssbench.cluster.joined_run import (
    LINE_ROW,
    LOOK,
    NO_ASKER,
    OBJECT,
    OTHER,
    PROXY_ROW,
    UPDATE,
)
from ssbench.logs import transaction_ids
from ssbench.logs.log_files import LogFile

IDS = [f"tx{number:021x}-006b021d00" for number in range(3)]


def wanted() -> WantedLines:
    found, at = transaction_ids.ids_of_column(IDS)
    ids = transaction_ids.TransactionIds.of(transaction_ids.number_ids(found), at.astype(np.uint32))
    return WantedLines(ids, (), None, frozenset(), None, None, False)


def access(
    trans_id: str = IDS[0],
    server: str = "object",
    method: str = "PUT",
    path: str = "/d1/14/AUTH_test/c/o",
    asker: str = "proxy-server 31",
    referer: str = "PUT http://p/v1/AUTH_test/c/o",
    status: int = 201,
    client: str = "10.0.0.1",
    host: str = "n1",
) -> str:
    return (
        f"Nov 21 22:41:33 {host} {server}-server: {client} - - [21/Nov/2026:22:41:33 +0000]"
        f' "{method} {path}" {status} - "{referer}" "{trans_id}" "{asker}" 0.0444 "-" 4015 0\n'
    )


def proxy(trans_id: str, seconds: float, source: str = "-", policy: str = "0") -> str:
    return (
        f"Nov 21 22:41:33 p1 proxy-server: 10.0.0.7 10.0.0.7 21/Nov/2026/22/41/33 PUT /v1/AUTH_test/c/o"
        f" HTTP/1.0 201 - client - 8192 - - {trans_id} - {seconds:.4f} {source} -"
        " 1795300893.123456789 1795300893.223456789"
        f" {policy} -\n"
    )


class Line(NamedTuple):
    operation: int
    device: tuple[str, str, str]
    process: tuple[str, str, str]
    partition: tuple[int, int]
    status: int
    of: int
    asker: int


def read(path: Path, *lines: str) -> tuple[list[Line], FileLines]:
    path.write_text("".join(lines))
    found = read_log_file(LogFile(path, "node"), wanted())
    made = [
        Line(
            place,
            found.devices[device],
            found.processes[process],
            found.partitions[partition],
            status,
            of,
            asker,
        )
        for place, device, process, partition, seconds, status, of, asker in LINE_ROW.iter_unpack(found.rows)
    ]
    return made, found


@pytest.mark.parametrize(
    ("line", "server", "of", "asker"),
    [
        (access(), "object", OBJECT, 0),
        (access(method="DELETE"), "object", OBJECT, 0),
        (access(method="GET"), "object", LOOK, 0),
        (access(method="HEAD"), "object", LOOK, 0),
        (access(server="container", path="/d1/14/AUTH_test/c", method="HEAD"), "container", OTHER, 0),
        (access(server="account", path="/d1/14/AUTH_test", method="PUT"), "account", OTHER, 0),
        (access(server="container", asker="object-server 7", referer="-"), "container", UPDATE, NO_ASKER),
        (
            access(
                server="container", asker="object-server 7", referer="PUT http://p:6200/d3/9/AUTH_test/c/o"
            ),
            "container",
            UPDATE,
            0,
        ),
    ],
)
def test_whose_line_it_is_follows_from_its_path_and_who_asked(
    tmp_path: Path, line: str, server: str, of: int, asker: int
) -> None:
    (found,), _ = read(tmp_path / "log", line)
    assert (found.device, found.process) == (("n1", server, "d1"), ("n1", server, "4015"))
    assert (found.operation, found.partition, found.status) == (0, (0, 14), 201)
    assert (found.of, found.asker) == (of, asker)


def test_lines_of_other_askers_are_of_the_run_and_nobodys_time(tmp_path: Path) -> None:
    for asker in ("object-updater 7", "container-sharder 1", "object-reconstructor 1"):
        made, found = read(tmp_path / "log", access(asker=asker), access(IDS[1]))
        assert [each.operation for each in made] == [1]
        assert found.count.of_run == 2


def test_askers_and_senders_are_numbered_as_they_come(tmp_path: Path) -> None:
    update = {"server": "container", "asker": "object-server 7"}
    lines = [
        access(asker="proxy-server 31"),
        access(asker="proxy-server 32"),
        access(asker="proxy-server 31", client="10.0.0.2"),
        access(asker="proxy-server 31"),
        access(referer="PUT http://p:6200/d3/9/AUTH_test/c/o", client="10.0.0.5", **update),
        access(IDS[1], referer="PUT http://p:6200/d4/9/AUTH_test/c/o", client="10.0.0.5", **update),
        access(IDS[1], referer="PUT http://p:6200/d3/9/AUTH_test/c/o", client="10.0.0.5", **update),
    ]
    made, found = read(tmp_path / "log", *lines)
    assert [each.asker for each in made] == [0, 1, 2, 0, 0, 1, 0]
    assert found.workers == ["10.0.0.1 31", "10.0.0.1 32", "10.0.0.2 31"]
    assert found.senders == {("10.0.0.5", "d3"): [0, 1], ("10.0.0.5", "d4"): [1]}


@pytest.mark.parametrize("most", [2, 3])
def test_of_a_sender_some_operations_are_kept(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_addresses, "MAX_SENDER_OPERATIONS", most)
    line = {"server": "container", "asker": "object-server 7", "referer": "PUT http://p:6200/d3/9/A/c/o"}
    _, found = read(tmp_path / "log", *(access(each, **line) for each in IDS))
    assert found.senders == {("10.0.0.1", "d3"): [0, 1, 2][:most]}


def test_a_proxys_own_lines_have_their_time_and_policy(tmp_path: Path) -> None:
    _, found = read(
        tmp_path / "log",
        proxy(IDS[0], 0.25),
        proxy(IDS[1], 0.5, policy="-"),
        proxy(IDS[2], 0.75, source="SLO"),  # what it asked itself for
    )
    rows = [(place, seconds, policy) for place, _, seconds, policy in PROXY_ROW.iter_unpack(found.proxy_rows)]
    assert rows == [(0, 0.25, 0), (1, 0.5, -1)]
    assert found.proxies == ["p1"]
    assert found.count.of_run == 3


HANDOFF = "Nov 21 22:41:33 p1 proxy-server: Handoff requested (1) (txn: {})\n"
TIMEOUT = (
    "Nov 21 22:41:33 p1 proxy-server: ERROR with Object server 10.0.0.1:6200/d7 re: Trying to GET"
    " /v1/AUTH_test/c/o: Timeout (0.5s) (txn: {})\n"
)


def test_errors_have_their_first_and_last_operation_and_handoffs_each(tmp_path: Path) -> None:
    key = ("timeout", "object", "10.0.0.1:6200", "d7")
    order = [IDS[1], IDS[2], IDS[0], IDS[1]]
    _, found = read(
        tmp_path / "log", *(TIMEOUT.format(each) for each in order), *(HANDOFF.format(each) for each in order)
    )
    assert found.errors[key] == 4
    assert found.error_places[key] == (0, 2)
    assert [*found.handoffs] == [1, 2, 0, 1]
    assert found.errors.total() == 8
    joined = LogJoin(Memory(block([row() for _ in IDS], IDS)))
    joined.read([LogFile(tmp_path / "log", "node")])
    made = joined.joined()
    assert made.handoffs.tolist() == [1, 2, 1]
    assert (made.errors[key], made.error_places[key]) == (4, (0, 2))
    assert made.other_errors == Counter()


def test_what_a_server_calls_slow_is_counted_in_milliseconds(tmp_path: Path) -> None:
    line = (
        "o1 2026-11-21T22:41:33.850 WARNING object-server: Slow DELETE (0.050s) for /d1/14/AUTH_test/c/o,"
        " status 204, start_time=1795300893.800, open=0.040s, read=0.010s (txn: {})\n"
    )
    _, found = read(tmp_path / "log", line.format(IDS[0]), line.format(IDS[1]))
    assert found.slow == {("o1", "d1", ""): 2, ("o1", "d1", "open"): 80, ("o1", "d1", "read"): 20}


def test_lines_are_kept_of_operations_that_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(access(each) for each in IDS))
    found = read_log_file(LogFile(path, "node"), replace(wanted(), shown=frozenset((1,))))
    assert [kept.decode() for kept in found.kept] == [access(IDS[1]).rstrip()]


def test_daemons_are_looked_for_from_some_time_before_the_first_id_to_the_last() -> None:
    first, last = 0x6B021D00, 0x6B021E80
    ids = [f"tx{0:021x}-{second:010x}" for second in (first + 9, last, first, first + 1)]
    join = LogJoin(Memory(block([row() for _ in ids[:2]], ids[:2]), block([row() for _ in ids[2:]], ids[2:])))
    assert join._wanted.window == log_background.background_window(first, last)
    assert LogJoin(Memory(block([row()], [None])))._wanted.window is None
