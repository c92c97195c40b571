"""The bytes of a file: the same whether they are decompressed ahead or not, with the same words on damage."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import StatFileError
from ssbench.results import reading as results_reading
from ssbench.results.reading import StatFileStream, iterate_ahead

#: How a file is damaged.
Damage = Callable[[bytes], bytes]

MEMBERS = st.lists(
    st.tuples(st.binary(max_size=3000), st.integers(0, 200), st.integers(0, 9)), min_size=1, max_size=4
)


def cut(at: float) -> Damage:
    return lambda data: data[: 2 + int(at * (len(data) - 2))]


def changed(at: float) -> Damage:
    def change(data: bytes) -> bytes:
        place = 2 + int(at * (len(data) - 3))
        return data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]

    return change


SHARES = st.floats(0.0, 1.0)
DAMAGE = st.one_of(st.just(lambda data: data), SHARES.map(cut), SHARES.map(changed))


def everything(path: Path, sizes: list[int]) -> tuple[bytes, str | None, list[tuple[int, int]]]:
    """Return what is in a file, read by these sizes in turn, its damage, and the progress."""
    progress: list[tuple[int, int]] = []
    reading = StatFileStream(path, lambda done, size: progress.append((done, size)))
    found = bytearray()
    number = 0
    while True:
        size = sizes[number % len(sizes)]
        number += 1
        start = reading.peek(size)
        data = reading.read(size) if number % 2 else reading.read_some(size)
        assert start[: len(data)] == data[: len(start)]
        if not data:
            break
        found += data
    reading.close()
    return bytes(found), reading.damage, progress


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streams")


@given(members=MEMBERS, damage=DAMAGE, sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=3))
def test_decompressing_ahead_changes_nothing(
    folder: Path, members: list[tuple[bytes, int, int]], damage: Damage, sizes: list[int]
) -> None:
    path = folder / "x.gz"
    whole = b"".join(content * (1 + times) for content, times, _ in members)
    path.write_bytes(
        damage(
            b"".join(
                gzip.compress(content * (1 + times)) + bytes(padding) for content, times, padding in members
            )
        )
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results_reading, "_PIECE_BYTES", 512)
        patch.setattr(results_reading, "_MAX_PIECE_BYTES", 700)
        patch.setattr(results_reading, "_LARGE_FILE_BYTES", 10**9)
        alone = everything(path, sizes)
        patch.setattr(results_reading, "_LARGE_FILE_BYTES", 0)
        assert everything(path, sizes) == alone
    found, why, progress = alone
    assert whole.startswith(found) or why is not None
    assert why is not None or found == whole[: len(found)]
    assert [done for done, _ in progress] == sorted(done for done, _ in progress)
    assert not any(thread.name == "read ahead" for thread in threading.enumerate())


def test_a_large_file_is_read_ahead_until_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_reading, "_LARGE_FILE_BYTES", 1000)
    monkeypatch.setattr(results_reading, "_MAX_PIECES_AHEAD", 1)
    small, large, plain = (tmp_path / name for name in ("small", "large", "plain"))
    small.write_bytes(gzip.compress(b"x" * 10))
    large.write_bytes(gzip.compress(bytes(range(256)) * 1000, 0))
    plain.write_bytes(bytes(5000))
    for path, threaded in ((small, False), (large, True), (plain, False)):
        reading = StatFileStream(path)
        assert reading.peek(2) == reading.read(2)
        assert any(thread.name == "read ahead" for thread in threading.enumerate()) == threaded
        reading.close()
        assert not any(thread.name == "read ahead" for thread in threading.enumerate())


@pytest.mark.parametrize("large", [False, True])
def test_a_file_that_cannot_be_read_on(tmp_path: Path, large: bool) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"x"))
    reading = StatFileStream(path)

    class Broken:
        def read(self, _size: int) -> bytes:
            raise OSError(5, "Input/output error")

    decompressor = results_reading._Gunzip(Broken())
    reading._pieces = iterate_ahead(decompressor.pieces(), 1) if large else decompressor.pieces()
    with pytest.raises(StatFileError, match="cannot be read: Input/output error"):
        reading.read(1)
    reading.close()


@pytest.mark.parametrize("large", [0, 10**9])
def test_damage_is_known_as_soon_as_all_before_it_is_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    """Bytes that make no sense just before it are not called wrong without it."""
    monkeypatch.setattr(results_reading, "_LARGE_FILE_BYTES", large)
    data = bytearray(gzip.compress(bytes(5000)))
    data[-8] ^= 1  # the checksum
    path = tmp_path / "x.gz"
    path.write_bytes(data)
    reading = StatFileStream(path)
    assert reading.read(1) == b"\0"
    assert reading.damage is not None
    assert "damaged at or before byte" in reading.damage
    assert len(reading.read(5000)) > 4000
    reading.close()
