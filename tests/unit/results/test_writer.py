"""Stat files as they are written: compressed, soon on the disk, and what happens where that cannot be."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import result_rows
from any_results import RUN, SCENARIO, SUMMARY, numbers, read, row, write
from golden_words import GoldenWords
from hypothesis import given, settings
from hypothesis import strategies as st

from ssbench.base.errors import StatFileError
from ssbench.results import current
from ssbench.results import writer as writer_module
from ssbench.results.block import Failure, ResultBlock
from ssbench.results.reading import open_results
from ssbench.results.writer import RunResultsWriter


def test_the_file_is_a_gzip_that_other_tools_can_read(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    write(path, [row(i) for i in range(3)])
    data = gzip.decompress(path.read_bytes())
    assert data.startswith(b"ssbench results 2\nRUN ")
    _, size, _ = current.RECORD_HEADER.unpack_from(data, len(current.FILE_PREAMBLE))
    start = len(current.FILE_PREAMBLE) + current.RECORD_HEADER.size
    assert json.loads(data[start : start + size])["scenario"]["name"] == SCENARIO.name
    plain = tmp_path / "run.stat"
    plain.write_bytes(data)
    assert numbers(read(plain)[0]) == [0, 1, 2]


def test_results_are_on_the_disk_within_a_second(tmp_path: Path, golden_words: GoldenWords) -> None:
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RUN)
    head = path.stat().st_size
    writer.add(result_rows.block([row(1)]))
    for _ in range(100):
        if path.stat().st_size > head:
            break
        threading.Event().wait(0.1)
    blocks, warnings = read(path)
    assert numbers(blocks) == [1]
    (warning,) = warnings
    golden_words(warning)
    writer.end(SUMMARY)


#: How a column of a block may be: the values that it takes in turn.
_RATIOS = st.fixed_dictionaries(
    {
        "operation": st.lists(st.integers(0, 3), min_size=1, max_size=3),
        "worker": st.lists(st.integers(0, 300), min_size=1, max_size=9),
        "object": st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40),
        "size": st.lists(st.integers(0, 2**40), min_size=1, max_size=3),
        "last_byte": st.lists(st.floats(0, 1e4), min_size=1, max_size=40),
        "step": st.lists(st.sampled_from([0.0, 1e-9, 1e-6, 0.25, 3600.0]), min_size=1, max_size=9),
    }
)


@settings(max_examples=15)
@given(
    ratios=_RATIOS,
    count=st.integers(1, 2 * current.MAX_BLOCK_ROWS),
    batch=st.sampled_from([1, 100, 1000, current.MAX_BLOCK_ROWS]),
    failed=st.text(max_size=1000),
    again=st.booleans(),
)
def test_whatever_a_run_writes_is_read_whole(
    ratios: dict[str, list[float]],
    count: int,
    batch: int,
    failed: str,
    again: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """However few bytes its results take: all equal, none, failed with the same text, compressed again."""
    folder = tmp_path_factory.mktemp("ratios")
    values = {name: np.resize(np.array(each), count) for name, each in ratios.items()}
    completed = 1.7e9 + np.cumsum(values.pop("step"))
    given_columns = {**values, "completed": np.minimum(completed, 1.7e9 + 300 * 86400)}
    given_columns["size_class"] = given_columns["container"] = np.zeros(count, np.int64)
    failures = {row: Failure("HTTP 503", failed, {}) for row in range(min(count, 5000))} if failed else {}
    block = ResultBlock(count, given_columns, failures)
    writer = RunResultsWriter(folder / "run.stat.gz", RUN)
    batch = max(batch, count // 200 + 1)
    for start in range(0, count, batch):
        writer.add(block.part(start, start + batch))
    writer.end(replace(SUMMARY, interrupted=False))
    if again:
        content = gzip.decompress(writer.path.read_bytes())
        writer.path.write_bytes(gzip.compress(content, 9))
    results = open_results(writer.path)
    read = sum(map(len, results.blocks()))
    assert (read, results.damaged, results.warnings) == (count, False, list(SUMMARY.warnings))
    shutil.rmtree(folder)


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (Path("/proc/nothing/here"), tmp_path, tmp_path / "file" / "below", Path("/dev/full")):
        with pytest.raises(StatFileError, match=f"{path}: cannot be written: "):
            RunResultsWriter(path, RUN)


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place to write to that takes 64 kB and then no more: a pipe that nobody empties."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    monkeypatch.setattr(writer_module, "FINISH_SECONDS", 0.3)
    return path


def test_a_disk_that_stands_still_holds_nobody_up(
    stuck: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    monkeypatch.setattr(writer_module, "MAX_WAITING_ROWS", 200_000)
    reader = os.open(stuck, os.O_RDONLY | os.O_NONBLOCK)
    try:
        writer = RunResultsWriter(stuck, RUN)
        generator = np.random.default_rng(1)
        for _ in range(300):
            writer.add(result_rows.many(range(1000), last_byte=generator.random(1000)))
        assert writer.failure is not None
        assert "slower" in writer.failure.strerror
        assert writer.results_lost >= 300_000 - 200_000 - 65_536
        writer.end(SUMMARY)
        golden_words(caplog.messages)
        assert writer.results_lost > 200_000
    finally:
        os.close(reader)  # the thread's write fails now, and it ends
    writer._thread.join(10)
    assert not writer._thread.is_alive()
    writer.end(SUMMARY)
