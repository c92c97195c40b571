"""``ssbench-master age``: what is refused before any run."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import refuse
from said import NO_OPERATION


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--objects", "many"], "'many' is not a number from 1 to 1,000,000,000"),
        (["--object-size", "large"], "--object-size: 'large' is not a number of bytes"),
        (["--object-size", "4kB..8kX"], "--object-size: '8kX' is not a number of bytes"),
        (["--operations", "reed"], f"'reed' {NO_OPERATION} read?"),
        (["--operations", "create"], "--operations: create would leave another number of objects"),
        (["--fill-rate", "0"], "--fill-rate: '0' is not"),
        (["--set", "stages=5"], "stages: expected"),
        (["--set", "objects=5"], "--set objects: --objects says how many there are"),
    ],
)
def test_what_is_refused(
    words: list[str],
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    common = ["age", "--workers", "1", "--results-dir", str(tmp_path), "--local-swift"]
    assert why in refuse([*common, *words], capsys, caplog)
