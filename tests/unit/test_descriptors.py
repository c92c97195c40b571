"""How many descriptors are free: with the real ones of this process, under a limit of its own."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from ssbench.fleet.descriptors import Descriptors

OPEN = Path("/proc/self/fd")


@pytest.fixture
def descriptors() -> Iterator[Descriptors]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    made = Descriptors()
    # Only the soft limit: the hard one could not be raised again.
    used = max(int(each.name) for each in OPEN.iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 200, before[1]))
    try:
        yield made
    finally:
        made.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def use_all() -> list[int]:
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return taken


def test_what_is_reserved_is_there_when_all_others_are_used(descriptors: Descriptors) -> None:
    assert not descriptors.scarce()
    open_before = len(list(OPEN.iterdir()))
    assert not descriptors.scarce()
    assert len(list(OPEN.iterdir())) == open_before
    taken = use_all()
    try:
        assert descriptors.scarce()
        descriptors.release()
        assert not descriptors.scarce()
        # Others have to be free, besides the reserved ones, before those are held again.
        assert not descriptors.hold()
        for _ in range(20):
            os.close(taken.pop())
        assert descriptors.hold()
    finally:
        for each in taken:
            os.close(each)
    assert not descriptors.scarce()
