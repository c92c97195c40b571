"""Stat files of ssbench 0.2.14 to 0.3.9: batches of any size, and what may not fill the memory."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest
from old_files import BOMB, read, rows
from old_formats import msgpack_file, success

from ssbench.base.errors import StatFileError
from ssbench.results.legacy import msgpack_stream


def test_batches_may_be_of_any_size(tmp_path: Path) -> None:
    results = [success(completed=1e9 + i / 1000) for i in range(20_000)]
    assert read(msgpack_file([results, [], results[:1]]), tmp_path).total.count == 20_001


def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", 1) as out:
        out.write(BOMB + b"\x91\xdf\x00\x0f\x42\x40")
        nils = b"\x01" + b"\xdd\x00\x0f\x42\x40" + b"\xc0" * 1_000_000
        for _ in range(100):
            out.write(nils)
    tracemalloc.start()
    try:
        with pytest.raises(StatFileError, match="without end"):
            rows(path)
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (b"\x90" * 300_000, "more entries than a file of its size holds"),
        (b"\xdd\x00\x04\x93\xe0" + b"\xc0" * 300_000, "more entries than a file of its size holds"),
        (b"\x91\xdd\x00\x0f\x42\x40" + b"\x80" * 1_000_000 * 5, "goes on without end|no msgpack"),
    ],
    ids=["empty batches", "nothing", "maps"],
)
def test_a_small_file_cannot_claim_many_entries(
    tail: bytes, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(msgpack_stream, "_FREE_DOCUMENTS", 20_000)
    with pytest.raises(StatFileError, match=reason):
        read(gzip.compress(BOMB + tail), tmp_path)
