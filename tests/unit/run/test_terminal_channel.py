"""The channel to standard error: real pipes and files, no waiting for anybody."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

import pytest

from ssbench.run import terminal
from ssbench.run.terminal import OutputChannel


@pytest.fixture
def pipe() -> Iterator[tuple[FileIO, FileIO]]:
    reading, writing = os.pipe()
    with FileIO(reading, "r") as read_end, FileIO(writing, "w") as write_end:
        yield read_end, write_end


def fill(end: FileIO) -> int:
    """Fill a pipe; returns how many bytes it took."""
    os.set_blocking(end.fileno(), False)
    count = 0
    with suppress(BlockingIOError):
        while True:
            count += os.write(end.fileno(), b"x")
    os.set_blocking(end.fileno(), True)
    return count


def test_everything_arrives_in_order(pipe: tuple[FileIO, FileIO]) -> None:
    channel = OutputChannel(pipe[1].fileno())
    print("one", file=channel)
    channel.write_if_read("two")
    channel.write("\udcff\n")
    assert channel.drain(10)
    assert channel.unread == 0
    assert pipe[0].read(100) == b"one\ntwo\\udcff\n"


def test_what_can_be_spared_is_dropped_first(pipe: tuple[FileIO, FileIO]) -> None:
    held = fill(pipe[1])
    channel = OutputChannel(pipe[1].fileno())
    for _ in range(30):
        channel.write_if_read("." * 10_000)
    assert channel.behind
    channel.write("a line\n")
    assert not channel.drain(0.01)
    assert channel.unread == 300_007
    assert channel.why == "it has no reader"
    data = b""
    while not data.endswith(b"a line\n"):
        data += pipe[0].read(65536)
    assert len(data) == held + 260_000 + 7
    assert channel.drain(10)
    assert channel.unread == 40_000
    assert not channel.behind


def test_of_a_text_that_never_fits_the_beginning_is_written(pipe: tuple[FileIO, FileIO]) -> None:
    writing = OutputChannel(pipe[1].fileno())
    writing.write("x" * (terminal._MAX_WAITING_BYTES + 1000))
    left = terminal._MAX_WAITING_BYTES
    while left:
        left -= len(pipe[0].read(left))
    assert writing.drain(30)
    assert writing.unread == 1000


def test_a_line_is_dropped_when_very_much_waits(pipe: tuple[FileIO, FileIO]) -> None:
    fill(pipe[1])
    channel = OutputChannel(pipe[1].fileno())
    for _ in range(12):
        channel.write("a" * 99_999 + "\n")
    assert channel.unread == 1_200_000
    pipe[0].close()
    assert channel.drain(10)
    assert channel.unread == 1_200_000
    assert channel.why == "Broken pipe"


def test_the_end_spares_what_can_be_spared(pipe: tuple[FileIO, FileIO]) -> None:
    fill(pipe[1])
    channel = OutputChannel(pipe[1].fileno())
    channel.write("first")
    for _ in range(20):
        channel.write_if_read("." * 10_000)
    channel.write("last")
    finishing = threading.Thread(target=channel.finish, args=(0.05,))
    finishing.start()
    finishing.join(10)
    data = b""
    while not data.endswith(b"last"):
        data += pipe[0].read(65536)
    assert data.endswith(b"firstlast")
    assert channel.drain(10)
    assert channel.unread == 200_000


def test_a_descriptor_that_somebody_made_non_blocking(pipe: tuple[FileIO, FileIO]) -> None:
    held = fill(pipe[1])
    os.set_blocking(pipe[1].fileno(), False)
    channel = OutputChannel(pipe[1].fileno())
    channel.write("a line\n")
    assert not channel.drain(0.01)
    data = b""
    while not data.endswith(b"a line\n"):
        data += pipe[0].read(65536)
    assert len(data) == held + 7
    assert channel.drain(10)
    assert channel.unread == 0


def test_a_disk_with_room_again(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        channel = OutputChannel(file.fileno())
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
        try:
            channel.write("0123456789too much")
            assert channel.drain(10)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (channel.unread, channel.why) == (8, "File too large")
        channel.write("\nnext\n")
        assert channel.drain(10)
    assert (tmp_path / "log").read_text() == "0123456789\nnext\n"


def test_a_closed_one() -> None:
    channel = OutputChannel(None)
    channel.write("lost")
    assert channel.drain(0)
    assert (channel.unread, channel.why, channel.isatty()) == (4, "it is closed", False)
    with pytest.raises(OSError, match="closed"):
        channel.fileno()


def test_a_signal_handler_may_write_in_the_middle_of_a_write(pipe: tuple[FileIO, FileIO]) -> None:
    channel = OutputChannel(pipe[1].fileno())

    class Text(str):
        __slots__ = ()

        def encode(self, encoding: str = "", errors: str = "") -> bytes:
            with channel._counting:  # where a signal is worst
                signal.raise_signal(signal.SIGUSR1)
            return str(self).encode()

    before = signal.signal(signal.SIGUSR1, lambda *_: print("handler", file=channel))
    try:
        channel.write(Text("text\n"))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert channel.drain(10)
    assert pipe[0].read(100) == b"handler\ntext\n"
