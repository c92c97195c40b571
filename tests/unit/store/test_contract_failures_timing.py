"""How long the longest job may take, and the pauses before retries."""

from __future__ import annotations

import pytest

from ssbench.store import contract
from ssbench.store.contract import longest_job_seconds


def test_each_part_counts() -> None:
    plain = longest_job_seconds(1.0, 2.0, None, 0, 0)
    assert plain > 2 * (2 * 1.0 + 3 * 2.0)
    assert longest_job_seconds(2.0, 2.0, None, 0, 0) > plain
    assert longest_job_seconds(1.0, 3.0, None, 0, 0) > plain
    assert longest_job_seconds(1.0, 3.0, 6.0, 0, 0) == plain
    assert longest_job_seconds(1.0, 2.0, None, 0, 1_000_000) > plain + 100
    assert longest_job_seconds(1.0, 2.0, None, 10, 0) > 10 * plain


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("0", 0.0, 0.06),
        ("3", 3, 3),
        ("99999999999999999999", 10, 10),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 10, 10),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0, 0.06),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 0.0, 0.06),
        ("soon", 0.0, 0.06),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 0.0, 0.06),
        ("Mon, 01 Jan 2026 00:00:00 +99999999999999999", 0.0, 0.06),
        ("-5", 0.0, 0.06),
        ("١", 0.0, 1),
        (None, 0.02, 0.06),
    ],
)
def test_pause(value: str | None, low: float, high: float) -> None:
    assert low <= contract.pause_before(1, value) <= high


def test_pauses_grow_and_are_bounded() -> None:
    assert max(contract.pause_before(retry, None) for retry in range(1, 100)) <= contract.MAX_PAUSE_SECONDS
    assert contract.pause_before(5, None) > contract.pause_before(1, None)
