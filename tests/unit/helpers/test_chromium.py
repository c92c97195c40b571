"""The browser of tests leaves nothing behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

import chromium
import pytest


def test_what_a_driver_leaves_when_it_is_told_to_end_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = tmp_path / "driver"
    driver.write_text(
        '#!/bin/sh\nmktemp -d >&2\necho "ChromeDriver was started successfully on port 7"\nexec sleep 60\n'
    )
    driver.chmod(0o700)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(chromium, "DRIVER", str(driver))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    with chromium._driver() as port:
        assert port == "7"
        assert [*temporary.rglob("tmp.*")]
    assert not [*temporary.iterdir()]
