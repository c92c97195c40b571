"""Cores of this machine, divided between a local Swift and the load."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from ssbench.run.core_split import choose_cores, keep_cores_apart, parse_cores


def test_four_cores_or_more_are_divided_in_halves() -> None:
    assert [choose_cores(range(count)) for count in (1, 2, 3, 4, 5)] == ["all", "all", "all", "0,1", "0,1"]
    assert choose_cores({9, 3, 7, 5}) == "3,5"


def test_cores_are_numbers_and_ranges() -> None:
    assert parse_cores("0", {0, 1}) == {0}
    assert parse_cores("0-2,5", range(8)) == {0, 1, 2, 5}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected cores, as 0-1,3, or all, not ''"),
        ("one", "expected cores, as 0-1,3, or all, not 'one'"),
        ("0,9", "this process may not use core 9"),
        ("1-0", "1-0: the first core of a range comes first"),
        ("0-3", "0-3: leaves no core for the load"),
    ],
)
def test_what_the_load_cannot_be_kept_from_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        parse_cores(text, range(4))


@pytest.fixture
def process() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        yield child.pid
        child.kill()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_processes_are_kept_apart_with_all_their_threads_and_the_load_gets_its_cores_back(
    process: int,
) -> None:
    usual = os.sched_getaffinity(0)
    first = frozenset(sorted(usual)[:1])
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        with keep_cores_apart({process: first, 2**22 + 1: first}, [os.getpid()]):
            assert os.sched_getaffinity(process) == first
            for each in (0, thread.native_id or 0):
                assert os.sched_getaffinity(each) == usual - first
        assert os.sched_getaffinity(thread.native_id or 0) == os.sched_getaffinity(0) == usual
    finally:
        ended.set()
        thread.join()
