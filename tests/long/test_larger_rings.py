"""A slow device among six and more, on rings that no test has seen before."""

from __future__ import annotations

from pathlib import Path

import pytest
from attributed_runs import attributed_on_a_fresh_ring


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("devices", "guilty", "where", "crud"),
    [
        # Devices of equal weight make few sets of three: all writes with one are with the same two others.
        (6, "d1", "commit", (8, 3, 1, 3)),
        (9, "d5", "open", (3, 10, 1, 1)),
        (12, "d8", "commit", (8, 3, 1, 3)),
        (16, "d11", "request", (3, 10, 1, 1)),
    ],
)
def test_no_healthy_device_is_named_for_a_slow_one(
    tmp_path: Path, devices: int, guilty: str, where: str, crud: tuple[int, ...]
) -> None:
    attributed_on_a_fresh_ring(tmp_path, devices, guilty, where, crud=crud)
