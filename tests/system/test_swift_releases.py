"""Releases of Swift that cannot be had, in the whole program: one line each, and nothing is left."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import PATIENCE, Fleet, Program

#: pip tries once, and asks nobody else.
PIP = {"PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_CONFIG_FILE": "/dev/null"}

FOLDER = f"9.9.9-py3.{sys.version_info[1]}"


def start(fleet: Fleet, tmp_path: Path, index: str, *words: object, release: object = "9.9.9") -> Program:
    """Start a run with a Swift from an index; the program finds pip and no uv."""
    return fleet.master(
        *("run-scenario", "-f", "smoke", "--workers", 1, "-q", "-s", tmp_path / "run.stat.gz"),
        *(f"--local-swift={release}", *words),
        environment={**PIP, "PATH": str(tmp_path), "PIP_INDEX_URL": index, "XDG_CACHE_HOME": str(tmp_path)},
    )


def list_left(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in (tmp_path / "ssbench" / "swift").iterdir())


@pytest.fixture
def index() -> Iterator[socket.socket]:
    """An index that accepts connections and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE)
        yield listening


@pytest.mark.long
def test_without_a_network(fleet: Fleet, tmp_path: Path, index: socket.socket) -> None:
    port = index.getsockname()[1]
    index.close()
    run = start(fleet, tmp_path, f"http://127.0.0.1:{port}/simple")
    assert run.end(PATIENCE) == 2
    assert run.err == "ERROR:Swift 9.9.9 cannot be installed: PyPI cannot be reached\n"
    assert list_left(tmp_path) == ["lock"]


@pytest.mark.long
def test_a_release_that_does_not_exist(fleet: Fleet, tmp_path: Path) -> None:
    page = tmp_path / "simple" / "swift" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text('<a href="swift-2.38.3-py3-none-any.whl">swift-2.38.3-py3-none-any.whl</a>')
    run = start(fleet, tmp_path, (tmp_path / "simple").as_uri())
    assert run.end(PATIENCE) == 2
    why = "PyPI has no such release, but 1 others up to 2.38.3"
    assert run.err == f"ERROR:Swift 9.9.9 cannot be installed: {why}\n"
    assert list_left(tmp_path) == ["lock"]


@pytest.mark.long
def test_ctrl_c_while_pip_installs(fleet: Fleet, tmp_path: Path, index: socket.socket) -> None:
    run = start(fleet, tmp_path, f"http://127.0.0.1:{index.getsockname()[1]}/simple")
    connection, _ = index.accept()
    with connection:
        assert list_left(tmp_path) == [FOLDER, "lock"]
        run.signal(signal.SIGINT)
        assert run.end(PATIENCE) == 130
        connection.settimeout(PATIENCE)
        while connection.recv(4096):  # pip has ended: nobody has the connection
            pass
    assert len(run.err.splitlines()) == 1, run.err
    assert list_left(tmp_path) == ["lock"]


@pytest.mark.long
def test_a_filter_that_a_release_lacks(fleet: Fleet, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho \'["2.23.0", "3.9.18", "/tmp", ["slo"]]\'\n')
    python.chmod(0o755)
    run = start(fleet, tmp_path, "", "--swift-config", "+etag_quoter", release=python)
    assert run.end(PATIENCE) == 2
    assert run.err == "ERROR:filter etag-quoter: Swift 2.23.0 has none of this name\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["python"]
