"""A program that gets too little memory says so in one line."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from golden_words import GoldenWords

from ssbench.base import own_processes
from ssbench.base.errors import UsageError


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        ImportError("numpy.so: failed to map segment from shared object"),
    ],
)
def test_errors_of_too_little_memory_are_known(error: Exception) -> None:
    text = own_processes.describe_memory_shortage(error)
    assert text is not None
    assert "not enough memory" in text
    assert "\n" not in text
    outer = ValueError("cannot be loaded")
    outer.__cause__ = error
    assert own_processes.describe_memory_shortage(outer) == text


def test_a_process_too_many_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the kernel, because ``ulimit -u`` holds back neither root nor tests in a namespace."""

    def fork(*_: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "_fork_exec", fork)
    monkeypatch.setattr(subprocess, "_USE_POSIX_SPAWN", False)  # as Python 3.13 does wherever it can
    with pytest.raises(BlockingIOError) as caught:
        subprocess.Popen([sys.executable])
    text = own_processes.describe_memory_shortage(caught.value)
    assert text is not None
    assert "too many threads or processes" in text
    with pytest.raises(BlockingIOError) as caught:
        fork()  # as of a socket
    assert own_processes.describe_memory_shortage(caught.value) is None


def test_any_error_of_a_process_that_used_its_memory_up_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmPeak:\t  190000 kB\n")
    error = AttributeError("module 'datetime' has no attribute 'datetime_CAPI'")
    assert own_processes.describe_memory_shortage(error, status) is None
    limit = (200000 * 1024, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda which: limit)
    text = own_processes.describe_memory_shortage(error, status)
    assert text is not None
    assert "(ulimit -v is 200000" in text
    status.write_text("VmPeak:\t  100000 kB\n")
    assert own_processes.describe_memory_shortage(error, status) is None
    assert own_processes.describe_memory_shortage(error, tmp_path / "nowhere") is None


def test_what_cannot_be_had_is_refused(golden_words: GoldenWords) -> None:
    own_processes.check_memory_available()
    with golden_words.raises(UsageError):
        own_processes.check_memory_available(1 << 60)


@pytest.mark.parametrize("program", ["master run-scenario -f very_small --noop --workers 1", "worker 1"])
def test_a_program_with_little_address_space_ends_with_one_line(tmp_path: Path, program: str) -> None:
    name, *arguments = program.split()
    command = [sys.executable, "-m", f"ssbench.cli.{name}", *arguments]
    ended = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -v 130000; exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].count("raise the limit") == 1
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) <= 2, ended.stderr
