"""What is made of one log file, and of the results that several blocks hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from counted import Memory, row
from result_rows import block

from ssbench.cluster.join import LogJoin, WantedLines, read_log_file
from ssbench.cluster.joined_run import LINE_ROW
from ssbench.logs import transaction_ids
from ssbench.logs.envelopes import TRANS_ID
from ssbench.logs.log_files import LogFile
from ssbench.logs.swift_lines import CutLine, parse_swift_line
from ssbench.logs.transaction_ids import TransactionIds

GENUINE = Path(__file__).parents[2] / "data" / "swiftlogs"
#: 2026-11-22 and a hundred seconds later.
FIRST, LATER = "tx0123456789abcdef01234-006b021d00", "tx0123456789abcdef01234-006b021d64"


def wanted(*trans_ids: str) -> WantedLines:
    found, at = transaction_ids.ids_of_column([*trans_ids])
    return WantedLines(
        TransactionIds.of(transaction_ids.number_ids(found), at.astype(np.uint32)),
        (),
        None,
        frozenset(),
        None,
        None,
        False,
    )


def test_cut_lines_are_counted_and_lines_that_say_nothing_are_not(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    path.write_text(
        f"a line of {FIRST} that says nothing\n"
        f'object-server: 127.0.0.1 - - "proxy-server 1" ... {FIRST}\n'
        f"another one of {FIRST}\n"
        "one of nobody\n"
    )
    count = read_log_file(LogFile(path, "node"), wanted(FIRST)).count
    assert (count.lines, count.of_run, count.cut) == (4, 3, 1)


def test_access_lines_are_counted_that_were_cut_where_their_id_was(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    path.write_text(
        'object-server: 127.0.0.1 - - "PUT /d1/7 ... "proxy-server 1" 0.1\n'
        "proxy-server: 127.0.0.1 GET /v1/AUTH_a HTTP/1.0 ... 0.1\n"
        "object-server: it goes on ... and on\n"
        f'object-server: 127.0.0.1 - - "PUT /d1/7 ... {LATER} "proxy-server 1" 0.1\n'
    )
    count = read_log_file(LogFile(path, "node"), wanted(FIRST)).count
    assert (count.lines, count.of_run, count.cut) == (4, 0, 2)


def test_the_time_of_a_file_and_of_a_run_is_that_of_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    path.write_text("".join(f"{each}\n" for each in (LATER, FIRST)))
    count = read_log_file(LogFile(path, "node"), wanted(FIRST)).count
    assert (count.first, count.last, count.of_run) == (0x6B021D00, 0x6B021D64, 1)
    run = Memory(*(block([row()], [each]) for each in (LATER, FIRST)))
    joined = LogJoin(run).joined()
    assert (joined.began, joined.ended) == (0x6B021D00, 0x6B021D64)
    nothing = LogJoin(Memory(block([row()], [None]))).joined()
    assert (nothing.began, nothing.ended, nothing.without_id) == (None, None, 1)


@pytest.mark.parametrize(
    ("line", "cut"),
    [
        (b'h x: 127.0.0.1 "proxy-server 1 ... 0.1', True),
        (b"h x: 127.0.0.1 GET /v1/AUTH_a HTTP/1.0 ... 0.1", True),
        (b'h x: 127.0.0.1 "proxy-server 1" 0.1', False),
        (b"h x: 127.0.0.1 GET /v1/AUTH_a HTTP/1.0 0.1", False),
        (b"h x: it goes on ... and on", False),
    ],
)
def test_only_an_access_line_is_cut(line: bytes, cut: bool) -> None:
    assert isinstance(parse_swift_line(line), CutLine) == cut


def test_each_line_of_a_file_names_its_host(tmp_path: Path) -> None:
    lines = (GENUINE / "run-object.log").read_bytes().splitlines(keepends=True)
    trans_ids = [TRANS_ID.search(line)[0].decode() for line in lines]
    for number, line in enumerate(lines[:5]):
        path = tmp_path / f"{number}.log"
        path.write_bytes(line)
        found = read_log_file(LogFile(path, "node"), wanted(*trans_ids))
        host, device = line.split()[0].decode(), line.partition(b'"')[2].split(b"/")[1].decode()
        assert found.devices == [(host, "object", device)]
        assert found.count.of_run == 1
    path.write_bytes(b"".join(lines))
    whole = read_log_file(LogFile(path, "node"), wanted(*trans_ids))
    assert {node for node, _, _ in whole.devices} == {"o1", "o2", "o3"}
    assert (len(whole.rows), whole.count.of_run) == (len(lines) * LINE_ROW.size, len(lines))


def test_troubles_of_requests_of_the_run_that_are_no_results_are_kept_apart(tmp_path: Path) -> None:
    trouble = "proxy-server: ERROR Insufficient Storage 10.0.0.2:6200/d1 (txn: {})\n"
    mark = "-ssb-0000002a"
    path = tmp_path / "proxy.log"
    path.write_text("".join(trouble.format(each) for each in (FIRST + mark, LATER + mark, LATER)))
    ours = wanted(FIRST + mark)
    found = read_log_file(LogFile(path, "node"), replace(ours, marks=(mark.encode(),)))
    assert (found.errors.total(), found.other_errors.total()) == (1, 1)


def test_it_is_known_of_which_writes_a_container_server_was_not_told(tmp_path: Path) -> None:
    # As object servers of Swift 2.38 write it of a container server that was stopped.
    line = (
        "2026-11-27T08:19:53.842 ERROR object-server: ERROR container update failed with {}"
        " (saving for async update later): Timeout (3.0s) (txn: {}-ssb-2cefe861)\n"
    )
    told = [("127.0.0.1:28974/d2", LATER), ("127.0.0.1:28974/d2", FIRST), ("127.0.0.1:28975/d3", FIRST)]
    for node in ("o1", "o2"):
        (tmp_path / f"{node}.log").write_text("".join(line.format(*each) for each in told))
    join = LogJoin(Memory(*(block([row()], [f"{each}-ssb-2cefe861"]) for each in (FIRST, LATER))))
    join.read([LogFile(tmp_path / f"{node}.log", node) for node in ("o1", "o2")])
    found = {who: places.tolist() for who, places in join.joined().not_updated.items()}
    assert found == {("127.0.0.1:28974", "d2"): [0, 1], ("127.0.0.1:28975", "d3"): [0]}
