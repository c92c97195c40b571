"""Folders of sockets: whose are removed, and whose are left alone."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from ssbench.base.socket_folders import remove_if_left, socket_folder


@pytest.fixture(autouse=True)
def folder_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def bind(path: Path) -> None:
    """Make a socket there, also where the whole path is longer than the 107 bytes of a socket's address."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


def test_folders_of_any_length_will_do_for_these_tests(tmp_path: Path) -> None:
    long = tmp_path / ("d" * 120)
    long.mkdir()
    bind(long / "1")
    assert (long / "1").is_socket()


def test_it_is_private_and_gone_at_the_end() -> None:
    with socket_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        bind(folder / "1")
    assert not folder.exists()


def test_one_of_a_living_master_stays() -> None:
    with socket_folder() as one, socket_folder() as other:
        remove_if_left(one)
        assert one.exists()
        assert other.exists()


def test_one_of_a_master_that_was_killed_is_removed(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from ssbench.base.socket_folders import socket_folder\n"
        "with socket_folder() as folder:\n"
        "    print(folder, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, check=False, timeout=60
    )
    left = Path(os.fsdecode(done.stdout.strip()))
    bind(left / "1")
    with socket_folder() as folder:
        assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("kind", ["another name", "more in it", "open to others", "a link", "a file"])
def test_what_is_not_ours_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("something" if kind == "another name" else "ssbench-sockets-x")
    target = tmp_path / "target"
    if kind == "a file":
        path.write_text("")
    elif kind == "a link":
        target.mkdir(0o700)
        path.symlink_to(target)
    else:
        path.mkdir(0o755 if kind == "open to others" else 0o700)
        if kind == "more in it":
            (path / "file").write_text("")
    remove_if_left(path)
    with socket_folder():
        assert os.path.lexists(path)
    if kind == "more in it":
        assert (path / "file").exists()


def test_the_lock_of_a_dying_master_is_waited_for(tmp_path: Path) -> None:
    left = tmp_path / "ssbench-sockets-x"
    left.mkdir(0o700)
    lock = os.open(left, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    remove_if_left(left)
    assert left.exists()
    release = threading.Timer(0.1, os.close, [lock])
    release.start()
    remove_if_left(left, wait=30)
    release.join()
    assert not left.exists()
