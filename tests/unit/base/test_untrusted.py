"""What comes from others costs a bounded amount."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from asked_commands import ask
from golden_words import GoldenWords
from hypothesis import given
from hypothesis import strategies as st

from ssbench.base.errors import UsageError
from ssbench.base.untrusted import MAX_DEPTH, TooMuchError, copy_plain, read_small_file
from ssbench.cli import auth_options, sides
from ssbench.run import setup
from ssbench.scenario import sizes
from ssbench.store.credentials import Session

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(ANYTHING)
def test_whatever_it_was_it_becomes_json(value: object) -> None:
    msgspec.json.encode(copy_plain(value))


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1), st.lists))
def test_what_is_plain_stays_as_it_is(value: object) -> None:
    assert copy_plain(value) == value


def test_large_numbers_and_strange_keys() -> None:
    assert copy_plain([10**400, -(10**400), 2**64]) == [math.inf, -math.inf, 2.0**64]
    assert copy_plain({None: 1, 5: 2, b"caf\xc3\xa9": 3, (1, 2): 4, "\ud800": 5}) == {
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
        copy_plain(cycle)
    twice: object = []
    for _ in range(MAX_DEPTH - 1):
        twice = [twice, twice]
    with pytest.raises(TooMuchError, match="more than 200,000 values"):
        copy_plain(twice)
    with pytest.raises(TooMuchError, match="characters"):
        copy_plain(["x" * 100_000] * 100)


@pytest.fixture(params=["pipe", "/dev/zero"])
def endless(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A pipe that nobody writes to, or a device without an end."""
    if request.param != "pipe":
        return Path(request.param)
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_no_file_that_an_option_names_is_read_without_end(endless: Path, golden_words: GoldenWords) -> None:
    arguments = ask("run-scenario", "--credentials", str(endless), "--ab", f"a=@{endless}", "b=@other")
    with golden_words.raises(UsageError):
        auth_options.read_account_credentials(arguments, {})
    with pytest.raises(UsageError, match="not a plain file"):
        sides.make_side_credentials(arguments, sides.parse_sides(arguments), {})
    with pytest.raises(UsageError, match="not a plain file"):
        list(setup._read_names(endless))
    with pytest.raises(ValueError, match="not a plain file"):
        sizes.read_size({"file": str(endless)}, Path())
    with pytest.raises(UsageError, match="not a plain file"):
        auth_options._check_readable(str(endless), "--os-cacert")
    with pytest.raises(UsageError, match="not a plain file"):
        _ = Session(("http://a/v1/x",), "token", ca_file=str(endless)).ca_certificates


def test_a_line_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_bytes(b"c/o\n")
    assert list(setup._read_names(path)) == [("c", "o")]
    os.truncate(path, 1 << 40)  # it takes no room on the disk
    with pytest.raises(UsageError, match="on each line: a line of more than"):
        list(setup._read_names(path))


def test_small_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    assert read_small_file(path, 10) == b"x" * 10
    with pytest.raises(TooMuchError, match="more than 9 bytes"):
        read_small_file(path, 9)
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(TooMuchError, match="not a plain file"):
            read_small_file(place, 10)
    with pytest.raises(FileNotFoundError):
        read_small_file(tmp_path / "none", 10)


def test_the_limits_of_a_process() -> None:
    program = (
        "from ssbench.base.untrusted import limit_this_process\n"
        "limit_this_process(256 * 1024 * 1024, 1)\n"
        "try:\n    bytes(512 * 1024 * 1024)\n"
        "except MemoryError:\n    print('no memory', flush=True)\n"
        "while True: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=100, check=False)
    assert done.stdout == b"no memory\n"
    assert done.returncode < 0
