"""``ssbench-master age``: what is refused before any run."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_words import GoldenWords
from refusals import refuse


@pytest.mark.parametrize(
    "words",
    [
        ["--objects", "many"],
        ["--object-size", "large"],
        ["--object-size", "4kB..8kX"],
        ["--operations", "reed"],
        ["--operations", "create"],
        ["--fill-rate", "0"],
        ["--set", "stages=5"],
        ["--set", "objects=5"],
        ["-c", "5", "--set", "objects_per_container=100"],
    ],
)
def test_what_is_refused(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    golden_words: GoldenWords,
) -> None:
    common = ["age", "--workers", "1", "--results-dir", str(tmp_path), "--local-swift"]
    golden_words(refuse([*common, *words], capsys, caplog))
