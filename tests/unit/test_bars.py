"""Progress of what can be counted, where there is no terminal to draw a bar on."""

from __future__ import annotations

import logging
import re

import pytest

from ssbench.screen import bars
from ssbench.screen.bars import Bar


@pytest.mark.parametrize(
    ("total", "line"),
    [(2500, r"Cleaning up: 10 of 2500, [\d,]+/s, [\d,]+ s left"), (None, r"Cleaning up: 10, [\d,]+/s")],
)
def test_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, total: int | None, line: str
) -> None:
    caplog.set_level(logging.INFO)
    with Bar("Cleaning up", total) as bar:
        bar.advance(9)
        assert not caplog.messages
        monkeypatch.setattr(bars, "_LINE_SECONDS", 0.0)
        bar.advance()
    (said,) = caplog.messages
    assert re.fullmatch(line, said)
