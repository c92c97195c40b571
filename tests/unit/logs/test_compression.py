"""Logs as they are read: whatever compresses them, up to where they are damaged."""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import lzma
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from golden_words import GoldenWords
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ssbench.base.errors import StatFileError
from ssbench.logs.compression import open_log_source

Compress = Callable[[bytes], bytes]


def zstd(data: bytes) -> bytes:
    """Compress as zstd(1) does, with a checksum."""
    module = pytest.importorskip("zstandard")
    return bytes(module.ZstdCompressor(write_checksum=True).compress(data))


FORMATS: dict[str, Compress] = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
if importlib.util.find_spec("zstandard"):
    FORMATS["zstd"] = zstd
each_format = pytest.mark.parametrize("compress", FORMATS.values(), ids=FORMATS)
#: The folder is the same for all examples, which write the same file anew.
examples = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

LINES = b"".join(
    b"Nov 23 16:00:00 o1 object-server: %d GET /d1/%d\n" % (n, n * 7919 % 1024) for n in range(3000)
)


@cache
def compressed(compress: Compress) -> bytes:
    """Return all lines compressed, once for all examples."""
    return compress(LINES)


def read(path: Path) -> tuple[bytes, str | None]:
    """Return all that can be read of a file, and what is said of its damage."""
    opened = open_log_source(path)
    try:
        return b"".join(iter(lambda: opened.read_some(1000), b"")), opened.damage
    finally:
        opened.close()


@pytest.mark.parametrize("data", [b"", b"\n", b"BZ", b"BZh9 is no archive\n", LINES], ids=range(5))
def test_a_plain_file_is_read_as_it_is(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    assert read(path) == (data, None)


@each_format
@pytest.mark.parametrize("padding", [b"", b"\0" * 600], ids=["", "padded"])
def test_streams_one_after_the_other_are_one(tmp_path: Path, compress: Compress, padding: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(compress(LINES) + padding + compress(b"") + compress(b"the end\n") + padding)
    assert read(path) == (LINES + b"the end\n", None)


@each_format
@examples
@given(st.data())
def test_a_file_that_is_cut_off_is_read_so_far(
    tmp_path: Path, compress: Compress, data: st.DataObject
) -> None:
    path, whole = tmp_path / "log", compressed(compress)
    # What is shorter than the beginning of a format is a plain file.
    path.write_bytes(whole[: data.draw(st.integers(10, len(whole) - 1))])
    found, damage = read(path)
    assert LINES.startswith(found)
    assert damage is not None
    assert "cut off" in damage


@each_format
@examples
@given(st.data())
def test_damage_ends_the_reading_and_is_said(tmp_path: Path, compress: Compress, data: st.DataObject) -> None:
    path, whole = tmp_path / "log", bytearray(compressed(compress))
    at = data.draw(st.integers(10, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    found, damage = read(path)
    # Some bits of a head mean nothing for the data.
    assert damage is not None or found == LINES


@pytest.mark.parametrize(
    ("beginning", "unpack"),
    [(b"PK\x03\x04", "zip, .*unzip"), (b"\x04\x22\x4d\x18", "lz4, .*lz4 -d"), (b"\x1f\x9d", "compress, ")],
)
def test_another_compression_is_named_with_what_unpacks_it(
    tmp_path: Path, beginning: bytes, unpack: str
) -> None:
    path = tmp_path / "log"
    path.write_bytes(beginning + bytes(100))
    with pytest.raises(StatFileError, match=f"log: compressed by {unpack}"):
        open_log_source(path)


def test_without_what_reads_zstd_it_is_said_how_to_install_or_to_unpack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    for module in ("compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))  # installed by pip
    path = tmp_path / "log"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    with pytest.raises(StatFileError) as raised:
        open_log_source(path)
    golden_words(str(raised.value))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(StatFileError):
            open_log_source(path)


def test_a_file_that_cannot_be_read_on_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.write_bytes(bz2.compress(LINES))
    opened: Any = open_log_source(path)

    class Broken:
        def read(self, _size: int) -> bytes:
            raise OSError(5, "Input/output error")

        def close(self) -> None:
            pass

    opened._file.close()
    monkeypatch.setattr(opened, "_file", Broken())
    with pytest.raises(StatFileError, match=f"^{re.escape(str(path))}: cannot be read: Input/output error$"):
        opened.read_some(1000)
