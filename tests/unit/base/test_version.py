"""How a package that is missing is added to where ssbench is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from golden_words import GoldenWords

from ssbench.base.version import describe_install


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("uv-receipt.toml", '[tool]\nrequirements = [{ name = "ssbench", extras = ["zstd"] }]\n'),
        ("uv-receipt.toml", '[tool]\nrequirements = [{ name = "ssbench", path = "/x/ssbench-1.whl" }]\n'),
        ("uv-receipt.toml", "["),
        ("pipx_metadata.json", "{}"),
        ("pyvenv.cfg", ""),
    ],
)
def test_the_command_is_that_of_the_installer(
    file: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    (tmp_path / file).write_text(content)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    golden_words(describe_install("swift eventlet", "swift"))
