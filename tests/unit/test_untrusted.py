"""What comes from others costs a bounded amount."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssbench.untrusted import MAX_DEPTH, TooMuchError, plain, read_small

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(ANYTHING)
def test_whatever_it_was_it_becomes_json(value: object) -> None:
    msgspec.json.encode(plain(value))


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1), st.lists))
def test_what_is_plain_stays_as_it_is(value: object) -> None:
    assert plain(value) == value


def test_large_numbers_and_strange_keys() -> None:
    assert plain([10**400, -(10**400), 2**64]) == [math.inf, -math.inf, 2.0**64]
    assert plain({None: 1, 5: 2, b"caf\xc3\xa9": 3, (1, 2): 4, "\ud800": 5}) == {
        "None": 1,
        "5": 2,
        "café": 3,
        "(tuple)": 4,
        "?": 5,
    }


def test_nothing_expands_without_end() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    with pytest.raises(TooMuchError, match=f"deeper than {MAX_DEPTH}"):
        plain(cycle)
    twice: object = []
    for _ in range(MAX_DEPTH - 1):
        twice = [twice, twice]
    with pytest.raises(TooMuchError, match="more than 200,000 values"):
        plain(twice)
    with pytest.raises(TooMuchError, match="characters"):
        plain(["x" * 100_000] * 100)


def test_small_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    assert read_small(path, 10) == b"x" * 10
    with pytest.raises(TooMuchError, match="more than 9 bytes"):
        read_small(path, 9)
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(TooMuchError, match="not a plain file"):
            read_small(place, 10)
    with pytest.raises(FileNotFoundError):
        read_small(tmp_path / "none", 10)


def test_the_limits_of_a_process() -> None:
    program = (
        "from ssbench.untrusted import limit_this_process\n"
        "limit_this_process(256 * 1024 * 1024, 1)\n"
        "try:\n    bytes(512 * 1024 * 1024)\n"
        "except MemoryError:\n    print('no memory', flush=True)\n"
        "while True: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=100, check=False)
    assert done.stdout == b"no memory\n"
    assert done.returncode < 0
