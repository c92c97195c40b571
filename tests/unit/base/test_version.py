"""How a package that is missing is added to where ssbench is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ssbench.base.version import describe_install


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        (
            "uv-receipt.toml",
            '[tool]\nrequirements = [{ name = "ssbench", extras = ["zstd"] }]\n',
            "uv tool install 'ssbench[swift]'",
        ),
        (
            "uv-receipt.toml",
            '[tool]\nrequirements = [{ name = "ssbench", path = "/x/ssbench-1.whl" }]\n',
            "uv tool install '/x/ssbench-1.whl[swift]'",
        ),
        ("uv-receipt.toml", "[", "uv tool install 'ssbench[swift]'"),
        ("pipx_metadata.json", "{}", "pipx inject ssbench swift eventlet"),
        ("pyvenv.cfg", "", "pip install swift eventlet (or '.[swift]' in a clone of ssbench)"),
    ],
)
def test_the_command_is_that_of_the_installer(
    file: str, content: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).write_text(content)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert describe_install("swift eventlet", "swift") == expected
