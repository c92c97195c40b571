"""Results on their way to columns, without the command line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from counted import Memory, row
from genuine_logs import DATA
from golden_words import GoldenWords
from result_rows import block, many

from ssbench.cluster.attribution_records import describe_log_faults
from ssbench.cluster.finding_sentences import list_coverage_notes
from ssbench.cluster.findings import make_attribution
from ssbench.cluster.join import LogJoin
from ssbench.cluster.joined_run import MAX_SLOWEST_OPERATIONS, NO_INDEX, OBJECT
from ssbench.logs.log_files import LogFile
from ssbench.results.block import ResultBlock, TextColumn
from ssbench.results.result_fields import ResultMark

ID = "tx{:021x}-006b021d00"


def test_operations_on_one_object_have_one_subject_in_all_blocks() -> None:
    def named(containers: list[str], objects: list[str]) -> ResultBlock:
        """Results of old files, which have names."""
        made = many(range(len(objects)))
        columns = {name: getattr(made, name) for name in made.given}
        texts = {"container": TextColumn.of(containers), "object": TextColumn.of(objects)}
        return ResultBlock(len(objects), {**columns, **texts})

    joined = LogJoin(Memory(named(["c", "c", "d"], ["a", "b", "a"]), named(["c"], ["b"]))).joined()
    subject = joined.operations.subject.tolist()
    assert len(set(subject)) == 3
    assert subject[3] == subject[1]
    assert (joined.containers, joined.operations.container.tolist()) == (["c", "d"], [0, 0, 1, 0])
    numbers = many(range(4), container=np.array([1, 2, 1, 1]), size_class=np.array([0, 0, 1, 0]))
    again = many(range(1), container=1)
    joined = LogJoin(Memory(numbers, again)).joined()
    subject = joined.operations.subject.tolist()
    assert len(set(subject)) == 4
    assert joined.operations.container.tolist() == [0, 1, 0, 0, 0]
    assert [name[-7:] for name in joined.containers] == ["_000001", "_000002"]
    assert subject[4] == subject[0]


def test_the_time_of_an_operation_that_its_worker_delayed_is_left_out(golden_words: GoldenWords) -> None:
    delayed = many(
        range(4),
        marks=np.array(
            [0, ResultMark.DELAYED, ResultMark.WARM_UP, ResultMark.WARM_UP | ResultMark.DELAYED], np.uint8
        ),
    )
    joined = LogJoin(Memory(delayed)).joined()
    assert np.isnan(joined.operations.latency).tolist() == [False, True, False, True]
    assert np.isnan(joined.operations.first_byte).tolist() == [False, True, False, True]
    answer = make_attribution(joined)
    assert (answer.coverage.failed, answer.coverage.delayed) == (0, 2)
    golden_words(list_coverage_notes(answer.coverage))


def test_all_lines_of_a_transaction_are_kept_although_it_is_not_among_the_slowest(tmp_path: Path) -> None:
    count = 2 * MAX_SLOWEST_OPERATIONS
    rows = [row(last=1.0 + place) for place in range(count)]
    run = Memory(block(rows, [ID.format(place) for place in range(count)]))
    path = tmp_path / "node.log"
    path.write_text("".join(f"a line of {ID.format(place)}\n" for place in range(count)))
    for transaction, more in ((None, []), (ID.format(1), [1]), (f"{ID.format(2)}-suffix", [2])):
        join = LogJoin(run, transaction=transaction)
        join.read([LogFile(path, "node")])
        joined = join.joined()
        expected = [*more, *range(MAX_SLOWEST_OPERATIONS, count)]
        assert joined.trans_ids == {place: ID.format(place) for place in expected}
        assert joined.kept == [
            ("node", False, f"a line of {ID.format(place)}".encode()) for place in expected
        ]


def test_an_operation_without_a_line_is_of_no_policy(tmp_path: Path) -> None:
    lines = (DATA / "run-object.log").read_text().splitlines()
    line = next(each for each in lines if "PUT" in each)
    own = re.search(r"tx[0-9a-f]{21}-[0-9a-f]{10}", line)
    assert own
    for policy in (0, 1):
        path = tmp_path / f"node{policy}.log"
        path.write_text(line.rpartition(" ")[0] + f" {policy}\n")
        join = LogJoin(Memory(block([row(), row()], [own[0], ID.format(1)])))
        join.read([LogFile(path, "node")])
        assert join.joined().policy.tolist() == [policy, -1]


def test_each_operation_has_the_process_of_the_proxy_that_asked_for_it(tmp_path: Path) -> None:
    ids = [ID.format(place) for place in range(6)]
    asked = [_LINE.format("GET", "200 4096").replace("ID", each) for each in ids[:5]]
    path = tmp_path / "node.log"
    path.write_text(
        "".join(line.replace("server 8", f"server {8 + place % 2}") for place, line in enumerate(asked))
    )
    join = LogJoin(Memory(block([row(operation=1) for _ in ids], ids)))
    join.read([LogFile(path, "node")])
    joined = join.joined()
    names = [joined.proxy_workers[each] for each in joined.proxy_worker[:5].tolist()]
    assert [names[place][-1] for place in range(5)] == ["8", "9", "8", "9", "8"]
    assert joined.proxy_worker[5] == NO_INDEX


#: A line of an object server.
_LINE = (
    'node object-server: ::1 - - [27/Nov/2026:14:59:23 +0000] "{0} /d1/3/AUTH_a/c/o" {1} "{0} http://h/v1/AUTH_a/c/o"'
    ' "ID" "proxy-server 8" 0.0538 "-" 9 0\n'
)
#: Of a DELETE over s3api, which looks at the object before.
S3_DELETE = _LINE.format("HEAD", "200 4096") + _LINE.format("DELETE", "204 -")


def test_what_looks_at_an_object_before_a_delete_is_no_second_replica(tmp_path: Path) -> None:
    """Else a node would seem to be several, whose logs are mixed, and no device of it could be judged."""
    rows = [row(operation=3 if place % 2 else 1) for place in range(20)]  # deletes and reads
    ids = [ID.format(place) for place in range(20)]
    path = tmp_path / "node.log"
    path.write_text("".join(S3_DELETE.replace("ID", each) for each in ids))
    join = LogJoin(Memory(block(rows, ids)))
    join.read([LogFile(path, "node")])
    joined = join.joined()
    assert np.bincount(joined.lines.operation).tolist() == [2, 1] * 10
    assert set(joined.lines.of.tolist()) == {OBJECT}
    assert describe_log_faults(joined) == []
