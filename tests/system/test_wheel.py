"""What a wheel has beside the modules; only where the tests run with one, as ``tox`` installs it."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from ssbench.cli import master


def test_a_wheel_has_the_manual_page_of_each_command() -> None:
    """They were in those of ``tox -e release`` alone, not in what ``python -m build`` makes."""
    installed = metadata.distribution("ssbench")
    # One that was made in place names them nowhere, and the folder of sources has another list.
    if "py.typed" not in (installed.read_text("RECORD") or ""):
        pytest.skip("installed in place, without the files of a wheel")
    pages = {each.name: each for each in installed.files or [] if each.name.endswith(".1")}
    wanted = {f"ssbench-master-{command}.1" for command in master.COMMANDS} | {
        "ssbench-master.1",
        "ssbench-worker.1",
    }
    assert set(pages) == wanted
    text = Path(pages["ssbench-worker.1"].locate()).read_text()
    assert re.search(r'^\.TH "?ssbench.{1,2}worker"? "?1"? ', text, re.MULTILINE)
    assert "zmq" in text
