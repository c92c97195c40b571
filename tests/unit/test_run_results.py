"""Today's stat files: what is written is read again, whatever happens in between."""

from __future__ import annotations

import gzip
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssbench.errors import StatFileError
from ssbench.results import LOST, NOT_MEASURED, Failure, ResultBlock, ResultRow, TextColumn
from ssbench.run_results import RunDescription, RunResultsWriter, RunSummary, WorkerFacts, open_results
from ssbench.run_results import blocks as layout
from ssbench.run_results import writer as writer_module
from ssbench.scenario.model import Scenario, SizeClass

SCENARIO = Scenario(
    "Test / scénario 🐌",
    (SizeClass("tiny", 1, 2, 3, (1, 2, 3, 4)), SizeClass("größer", 10**12, 10**13, 1, (0, 1, 0, 0))),
    user_count=4,
    run_seconds=1.5,
    delete_after=60,
    policy="gold",
    data={"name": "x", "sizes": [{"name": "tiny"}]},
)
RUN = RunDescription(
    SCENARIO,
    version="1.0",
    seed=2**80,
    options={"noop": True, "file": "\udcff", "urls": ["http://a"], "none": None},
    host="box",
    run_id=2**62,
    started=1.7e9,
    workers=(WorkerFacts(7, "box", "1.0"),),
)
SUMMARY = RunSummary(
    ended=1.7e9 + 2,
    not_sendable=((1, 0, 3),),
    lost_jobs=1,
    warnings=("the load generator was the limit",),
    interrupted=True,
    workers=(WorkerFacts(7, "box", "1.0", 0.97, 0.01, -3.5),),
    counters={"stale": 2},
)


def row(number: int = 0, **changes: float) -> ResultRow:
    values = {
        "operation": 1,
        "size_class": 0,
        "worker": 7,
        "container": 3,
        "number": number,
        "size": 2,
        "first": 0.001,
        "last": 0.002,
        "completed": 1.7e9 + number / 1000,
        "retries": 0,
    }
    return tuple({**values, **changes}.values())  # type: ignore[return-value]


def write(path: Path, rows: Sequence[ResultRow], batch: int = 64) -> RunResultsWriter:
    writer = RunResultsWriter(path, RUN)
    for first in range(0, len(rows), batch):
        part = rows[first : first + batch]
        writer.add(part, [f"tx{r[4]}" for r in part])
    writer.finish(SUMMARY)
    return writer


def read(path: Path) -> tuple[list[ResultBlock], list[str]]:
    results = open_results(path)
    blocks = list(results.blocks())
    return blocks, results.warnings


def numbers(blocks: list[ResultBlock]) -> list[int]:
    return [number for block in blocks for number in np.asarray(block.object).tolist()]


def test_what_is_known_of_a_run_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "run.stat.gz"
    writer = write(path, [row(i) for i in range(3)])
    assert writer.failure is None
    results = open_results(path)
    assert results.run.scenario == SCENARIO
    assert results.run.seed == RUN.seed
    assert results.run.options == {"noop": True, "file": "?", "urls": ["http://a"], "none": None}
    assert results.run.workers == RUN.workers
    (block,) = results.blocks()
    assert results.summary == SUMMARY
    assert results.warnings == ["the load generator was the limit"]
    assert list(block.trans_ids) == ["tx0", "tx1", "tx2"]


def test_the_file_is_a_gzip_that_other_tools_can_read(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    write(path, [row(i) for i in range(3)])
    data = gzip.decompress(path.read_bytes())
    assert data.startswith(b"ssbench results 1\nRUN ")
    _, size, _ = layout.RECORD_HEADER.unpack_from(data, len(layout.PREAMBLE))
    start = len(layout.PREAMBLE) + layout.RECORD_HEADER.size
    assert json.loads(data[start : start + size])["scenario"]["name"] == SCENARIO.name
    plain = tmp_path / "run.stat"
    plain.write_bytes(data)
    assert numbers(read(plain)[0]) == [0, 1, 2]


LATENCIES = st.just(NOT_MEASURED) | st.floats(0, 1e5)
ROWS = st.tuples(
    st.integers(0, 3),
    st.integers(0, 1),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**62),
    LATENCIES,
    LATENCIES,
    st.floats(0, 4e9),
    st.integers(0, 2**32 - 1),
)
FAILURES = st.builds(
    Failure,
    st.none() | st.text(max_size=9),
    st.text(max_size=9),
    st.dictionaries(st.text(max_size=9), st.integers(0, 9), max_size=3),
)
ENTRIES = st.lists(st.tuples(ROWS, st.none() | st.text(max_size=40), st.none() | FAILURES), max_size=30)


@given(batches=st.lists(ENTRIES, max_size=4))
def test_every_result_comes_back(
    batches: list[list[tuple[ResultRow, str | None, Failure | None]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "roundtrip.stat.gz"
    writer = RunResultsWriter(path, RUN)
    for batch in batches:
        failures = {place: failure for place, (_, _, failure) in enumerate(batch) if failure}
        writer.add([entry[0] for entry in batch], [entry[1] for entry in batch], failures)
    writer.finish(SUMMARY)
    read_rows, read_ids, read_failures = [], [], []
    for block in read(path)[0]:
        names = "operation size_class worker container object size first_byte last_byte completed retries"
        read_rows += zip(*(getattr(block, name).tolist() for name in names.split()), strict=True)
        read_ids += list(block.trans_ids)
        read_failures += [block.failures.get(place) for place in range(len(block))]
        assert block.failed.tolist() == [
            failure is not None and failure.cause is not None
            for failure in (block.failures.get(place) for place in range(len(block)))
        ]
    entries = [entry for batch in batches for entry in batch]
    assert [id_ or None for id_ in read_ids] == [entry[1] or None for entry in entries]
    assert read_failures == [entry[2] for entry in entries]
    for got, (wanted, _, _) in zip(read_rows, entries, strict=True):
        assert got[:6] == wanted[:6]
        assert got[9] == wanted[9]
        assert got[6:9] == pytest.approx(wanted[6:9], abs=1e-6, nan_ok=True)


def test_many_rows_make_several_blocks(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    count = 2 * layout.MAX_ROWS + 100
    writer = RunResultsWriter(path, RUN)
    writer.add(
        [row(i) for i in range(count)], [f"tx{i}" for i in range(count)], {count - 1: Failure(LOST, "", {})}
    )
    writer.finish(SUMMARY)
    blocks, _ = read(path)
    assert numbers(blocks) == list(range(count))
    assert blocks[-1].trans_ids[len(blocks[-1]) - 1] == f"tx{count - 1}"
    assert [int(block.failed.sum()) for block in blocks] == [0] * (len(blocks) - 1) + [1]


def test_results_are_on_the_disk_within_a_second(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RUN)
    head = path.stat().st_size
    writer.add([row(1)])
    for _ in range(100):
        if path.stat().st_size > head:
            break
        threading.Event().wait(0.1)
    blocks, warnings = read(path)
    assert numbers(blocks) == [1]
    (warning,) = warnings
    assert "its summary is missing, and perhaps results" in warning
    writer.finish(SUMMARY)


KILLED = """
import sys, os, signal
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_run_results import RUN, row
from ssbench.run_results import RunResultsWriter
writer = RunResultsWriter(Path(sys.argv[1]), RUN)
writer.add([row(i) for i in range(70_000)])
while writer._waiting:
    pass
writer.add([row(i) for i in range(10)])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_leaves_its_whole_blocks(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    process = subprocess.run(
        [sys.executable, "-c", KILLED, path, Path(__file__).parent], check=False, timeout=60
    )
    assert process.returncode == -signal.SIGKILL
    blocks, warnings = read(path)
    assert len(numbers(blocks)) >= 70_000
    assert len(warnings) == 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of three blocks."""
    path = tmp_path_factory.mktemp("whole") / "run.stat.gz"
    writer = RunResultsWriter(path, RUN)
    for part in range(3):
        writer.add([row(100 * part + i) for i in range(100)])
        while writer._waiting:
            threading.Event().wait(0.01)
    writer.finish(SUMMARY)
    assert [len(block) for block in read(path)[0]] == [100, 100, 100]
    return path.read_bytes()


@pytest.mark.parametrize("compressed", [True, False])
def test_a_file_cut_off_anywhere_is_read_up_to_its_last_whole_block(
    whole: bytes, compressed: bool, tmp_path: Path
) -> None:
    data = whole if compressed else gzip.decompress(whole)
    path = tmp_path / "cut"
    counts = []
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        try:
            blocks, warnings = read(path)
        except StatFileError:
            counts.append(-1)
            continue
        count = len(numbers(blocks))
        assert numbers(blocks) == list(range(count))
        assert len(warnings) == 1 or count == 300  # then that of the run itself is there
        counts.append(count)
    assert [count for count in counts if count >= 0] == sorted(count for count in counts if count >= 0)
    assert {-1, 100, 200, 300} <= set(counts) <= {-1, 0, 100, 200, 300}


@settings(max_examples=300)
@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
@pytest.mark.parametrize("compressed", [True, False])
def test_a_flipped_byte_is_noticed_and_what_stands_before_is_read(
    whole: bytes, compressed: bool, place: float, change: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = bytearray(whole if compressed else gzip.decompress(whole))
    data[int(place * len(data))] ^= change
    path = tmp_path_factory.getbasetemp() / "flipped"
    path.write_bytes(data)
    try:
        blocks, warnings = read(path)
    except StatFileError:
        return
    count = len(numbers(blocks))
    assert numbers(blocks) == list(range(count))
    assert count in (100, 200, 300)
    # A few bytes of a gzip header (its time, its system) say nothing: then all is there.
    assert count == 300 or f"{count} results before that" in warnings[0]


@given(payload=st.binary(max_size=300), kind=st.sampled_from([layout.ROWS, layout.RUN, layout.END, b"NEW "]))
def test_a_record_that_is_whole_but_makes_no_sense(
    payload: bytes, kind: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "nonsense"
    good = layout.pack_rows(layout.PendingRows(1, bytearray(layout.pack_row_numbers([row()]))))[0]
    for data in (layout.record(kind, payload), layout.record(kind, good[12:20] + payload)):
        path.write_bytes(layout.PREAMBLE + layout.run_record(RUN) + good + data)
        blocks, warnings = read(path)
        assert numbers(blocks)[:1] == [0]
        assert warnings


@pytest.mark.parametrize(
    "failures", [b"[", b"[[0]]", b'[[-1,"x","",{}]]', b'[[0,"\x95","",{}]]', b"[" * 2000]
)
def test_failures_that_are_none(failures: bytes, tmp_path: Path) -> None:
    path = tmp_path / "nonsense"
    good = layout.pack_rows(layout.PendingRows(1, bytearray(layout.pack_row_numbers([row()]))))[0]
    bad = layout.record(
        layout.ROWS, good[layout.RECORD_HEADER.size :] + layout._text(layout.Column.FAILURES, failures)
    )
    path.write_bytes(layout.PREAMBLE + layout.run_record(RUN) + good + bad)
    blocks, warnings = read(path)
    assert numbers(blocks) == [0]
    assert "1 results before that" in warnings[0]


def test_a_column_cannot_claim_more_than_there_is(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    header = layout._ROWS_HEADER.pack(2**32 - 1, 0) + bytes([1, 0])
    for data in (layout.record(layout.ROWS, header), layout.RECORD_HEADER.pack(b"ROWS", 2**32 - 1, 0)):
        path.write_bytes(layout.PREAMBLE + layout.run_record(RUN) + data)
        with pytest.raises(StatFileError, match="4,294,967,295"):
            read(path)


def test_a_newer_format_is_refused_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "newer"
    path.write_bytes(b"ssbench results 12\nwhatever")
    with pytest.raises(StatFileError, match="format 12 by a newer ssbench; this one reads up to format 1"):
        open_results(path)


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (Path("/proc/nothing/here"), tmp_path, tmp_path / "file" / "below", Path("/dev/full")):
        with pytest.raises(StatFileError, match=f"{path}: cannot be written: "):
            RunResultsWriter(path, RUN)


NO_ROOM = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_run_results import RUN, SUMMARY, row
from ssbench.run_results import RunResultsWriter
from ssbench.run_results.blocks import MAX_ROWS
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
for room in (None, 5):
    writer = RunResultsWriter(path, RUN)
    for first in range(2):
        writer.add([row(first * MAX_ROWS + i) for i in range(MAX_ROWS)])
        while writer._waiting:
            pass
    if room is None:
        most = path.stat().st_size + 5
    writer.finish(SUMMARY)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
print(writer.failure.strerror, writer.results_lost, MAX_ROWS)
"""


def test_a_disk_with_no_room_for_the_summary_loses_the_last_block_and_says_so(tmp_path: Path) -> None:
    """Which is what a full disk came to whenever the last block that found room left next to none."""
    path = tmp_path / "run.stat.gz"
    command = [sys.executable, "-c", NO_ROOM, path, Path(__file__).parent]
    process = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    *reason, lost, block = process.stdout.split()
    assert " ".join(reason) == "File too large"
    assert lost == block
    blocks, warnings = read(path)
    assert numbers(blocks) == list(range(int(block)))
    assert any(f"could not be written to the stat file: {int(lost):,}" in warning for warning in warnings)


FULL = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_run_results import RUN, SUMMARY, row
from ssbench.run_results import RunResultsWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
writer = RunResultsWriter(Path(sys.argv[1]), RUN)
for first in range(0, 300_000, 1000):
    writer.add([row(first + i, last=(first + i) ** 2 % 999983 / 1e6) for i in range(1000)])
writer.finish(SUMMARY)
print(writer.failure.strerror, writer.results_lost)
"""


def test_a_full_disk_ends_no_run_and_the_file_is_readable_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    command = [sys.executable, "-c", FULL, path, Path(__file__).parent]
    process = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    reason, _, lost = process.stdout.strip().rpartition(" ")
    assert reason == "File too large"
    assert process.stderr == ""
    blocks, warnings = read(path)
    assert numbers(blocks) == list(range(300_000 - int(lost)))
    assert int(lost) > 0
    assert any(f"could not be written to the stat file: {int(lost):,}" in warning for warning in warnings)


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place to write to that takes 64 kB and then no more: a pipe that nobody empties."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    monkeypatch.setattr(writer_module, "FINISH_SECONDS", 0.3)
    return path


def test_a_disk_that_stands_still_holds_nobody_up(
    stuck: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer_module, "MAX_WAITING_ROWS", 200_000)
    reader = os.open(stuck, os.O_RDONLY | os.O_NONBLOCK)
    try:
        writer = RunResultsWriter(stuck, RUN)
        generator = np.random.default_rng(1)
        for _ in range(300):
            writer.add([row(i, last=last) for i, last in enumerate(generator.random(1000).tolist())])
        assert writer.failure is not None
        assert "slower" in writer.failure.strerror
        assert writer.results_lost >= 300_000 - 200_000 - 65_536
        writer.finish(SUMMARY)
        assert "waiting for the disk" in caplog.text
        assert writer.results_lost > 200_000
    finally:
        os.close(reader)  # the thread's write fails now, and it ends
    writer._thread.join(10)
    assert not writer._thread.is_alive()
    writer.finish(SUMMARY)


def test_a_text_column() -> None:
    texts = ["a", None, "", "é🐌", "b"]
    column = TextColumn.of(texts)
    assert len(column) == 5
    assert list(column) == texts
    assert [column[i] for i in range(5)] == texts
    assert column[-1] == "b"
    assert column[1:4] == [None, "", "é🐌"]
    assert TextColumn(b"\xff", np.array([1]))[0] == "\ufffd"


def test_a_row_packs_to_the_size_that_is_documented() -> None:
    assert layout.PACKED_ROW.size == layout._PACKED_DTYPE.itemsize
    assert math.isnan(NOT_MEASURED)
