"""What is no stat file, or a damaged one: what is said of it, and what is read before the damage."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import msgpack
import pytest
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st
from old_files import BOMB, assert_read_or_refused, rows
from old_formats import Pickler, failure, msgpack_file, pickle_file, success

from ssbench.base.errors import StatFileError
from ssbench.results.reading import StatFileStream, open_results
from ssbench.statistics.summary import summarize


@pytest.mark.parametrize(
    "make", [lambda results: msgpack_file([results]), pickle_file], ids=["msgpack", "pickle"]
)
def test_progress_goes_once_to_the_end(make: object, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(make([success(completed=1e9 + i) for i in range(3000)]))
    shares: list[float] = []
    results = open_results(path, lambda done, total: shares.append(done / total))
    assert sum(len(block) for block in results.blocks()) == 3000
    after_head = shares[1:]  # the first piece is read to know the format
    assert after_head == sorted(after_head)
    assert after_head[0] < 0.3
    assert after_head[-1] == 1.0


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x1f\x8b",
        PNG,
        gzip.compress(b"", mtime=0),
        gzip.compress(PNG, mtime=0),
        gzip.compress(b"hello" * 1000, mtime=0),
        gzip.compress(b"hello", mtime=0)[:-3],
        msgpack.packb({"a": 1}),
        msgpack.packb([1, 2, 3]),
        msgpack.packb({"_scenario_data": 7}),
        b"\xdf\xff\xff\xff\xff",
        BOMB + b"\xdd\xff\xff\xff\xff",
        BOMB + b"\xdd\xff\xff\xff\xff" + b"\x91" * 2000,
        BOMB + msgpack.packb("what"),
        b"(lp1\n",
        b"(lp1\n.",
        b"(lp1\nI1\na.",
        b"(lp1\ncos\nsystem\np2\n(S'true'\ntR.",
        b"(lp1\ncposix\nsystem\n(S'true'\ntR.",
        b"(lp1\n(ibuiltins\nexec\n.",
        b"(lp1\n" + b"(" * 200_000,
        b"(lp1\ng999999999\n.",
        b"(lp1\ng99999999999999999999\n.",
        b"(lp1\nL" + b"9" * 100_000 + b"L\na.",
        b"(lp1\nS'\\x'\na.",
        b"(lp1\nS'\\sizes'\na.",
        b"(lp1\nS'\\777'\na.",
        b"(lp1\nS'\\'\na.",
        b"(lp1\nFone\na.",
        b"ssbench results 2\n",
        b"ssbench results 1\n",
        b"ssbench results x\n",
    ],
)
def test_what_is_no_stat_file_is_said_so_in_one_line(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(data)
    with pytest.raises(StatFileError) as caught:
        summarize(open_results(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [PNG, gzip.compress(PNG * 1000, mtime=0), b"\x85", b"\xde\0\1", b"\xdf\xff\xff\xff\xff", b"\xdd"],
    ids=["image", "compressed image", "array", "map", "map of many", "array of many"],
)
def test_what_begins_like_no_stat_file_is_called_that(
    data: bytes, tmp_path: Path, golden_words: GoldenWords
) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    with golden_words.raises(StatFileError):
        open_results(path)


def test_a_folder_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StatFileError, match="not a file"):
        open_results(tmp_path)
    with pytest.raises(StatFileError, match="No such file"):
        open_results(tmp_path / "none")
    with pytest.raises(StatFileError, match="cannot be read"):
        open_results(tmp_path / "nul\0")


def test_damage_in_the_middle_leaves_what_stands_before_it(tmp_path: Path) -> None:
    results = [success(completed=1e9 + i) for i in range(3000)]
    for data in (msgpack_file([[result] for result in results]), pickle_file(results)):
        path = tmp_path / "damaged"
        packed = bytearray(gzip.compress(data))
        packed[len(packed) * 3 // 4] ^= 0x55
        path.write_bytes(packed)
        results_, count = rows(path)
        assert count > 1500
        assert f"{count:,} results before that" in results_.warnings[0]


def test_zeros_between_and_behind_members_are_padding(tmp_path: Path) -> None:
    members = msgpack_file([]), msgpack_file([[success()]])[len(msgpack_file([])) :]
    path = tmp_path / "padded"
    path.write_bytes(gzip.compress(members[0]) + bytes(9) + gzip.compress(members[1]) + bytes(70_000))
    results, count = rows(path)
    assert count == 1
    assert results.warnings == []
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"what is no gzip member")
    results, count = rows(path)
    assert count == 1
    where = re.search(r"damaged at or before byte ([\d,]+) of", results.warnings[0])
    assert where
    assert size <= int(where[1].replace(",", "")) <= size + 10


def test_damage_that_shows_only_in_one_piece_of_input(tmp_path: Path) -> None:
    # The checksum of this header is wrong, which isal finds only when it is given the header whole.
    header = b"\x1f\x8b\x08\xb3\x01;\x01\x00k\x00\xff\xff\xff\xfe\x00\x01\xea\xef\xaa"
    path = tmp_path / "damaged"
    path.write_bytes(gzip.compress(msgpack_file([[success()]])) + header)
    results, count = rows(path)
    assert count == 1
    assert "the compressed data are damaged" in results.warnings[0]


WHOLE = {
    "msgpack": msgpack_file([[success(), failure()], [success(0)]]),
    "pickle": pickle_file([success(), failure(), success(0, auth_kwargs={"key": "k"})], Pickler(share=True)),
}


@pytest.mark.parametrize("format_", WHOLE)
@pytest.mark.parametrize("compressed", [False, True])
@given(data=st.data())
def test_bytes_changed_anywhere(
    format_: str, compressed: bool, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = gzip.compress(WHOLE[format_], mtime=0) if compressed else WHOLE[format_]
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(changed) - 1))
        match data.draw(st.sampled_from(["change", "insert", "delete", "cut"])):
            case "change":
                changed[place] = data.draw(st.integers(0, 255))
            case "insert":
                changed[place:place] = data.draw(st.binary(max_size=20))
            case "delete":
                del changed[place : place + data.draw(st.integers(1, 20))]
            case "cut":
                del changed[place:]
        if not changed:
            break
    assert_read_or_refused(bytes(changed), tmp_path_factory.getbasetemp())


def test_compressed_data_may_expand_as_far_as_gzip_can(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    with gzip.open(path, "wb", 6) as out:
        for _ in range(80):
            out.write(bytes(1_000_000))
    stream = StatFileStream(path)
    assert 1000 * stream.size < 80_000_000
    expanded = 0
    while data := stream.read_some(1_000_000):
        expanded += len(data)
    stream.close()
    assert (expanded, stream.damage) == (80_000_000, None)


@given(st.binary(max_size=200))
def test_any_bytes_behind_a_beginning(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    for beginning in (b"", b"\x1f\x8b\x08", b"(lp1\n", BOMB, b"ssbench results 1\n"):
        assert_read_or_refused(beginning + data, tmp_path_factory.getbasetemp())
