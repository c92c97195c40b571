"""What a run has to do with its live page: start the process that serves it, and tell that where to look."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

import msgspec

from ssbench.base import interruption, own_processes
from ssbench.base.errors import UsageError
from ssbench.monitoring.serving import open_listening_socket
from ssbench.results.block import ReadSoFar, ResultBlock
from ssbench.results.run_description import RunSummary
from ssbench.run.terminal import OutputChannel


class PageMessage(msgspec.Struct, frozen=True):
    """The stat file that is written, as bytes of its name, and what only the master knows of the run."""

    path: bytes
    so_far: RunSummary

    @classmethod
    def of(cls, path: Path, so_far: RunSummary) -> PageMessage:
        """Make one."""
        return cls(os.fsencode(path), so_far)

    @property
    def file(self) -> Path:
        """The stat file."""
        return Path(os.fsdecode(self.path))


def encode_message(message: PageMessage) -> str:
    """Return a line."""
    return msgspec.json.encode(message).decode() + "\n"


def decode_message(line: bytes) -> PageMessage:
    """Return the message of a line."""
    return msgspec.json.decode(line, type=PageMessage)


# -- The page of a run --------------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

#: Seconds between two messages.
_MESSAGE_SECONDS = 1.0

#: Seconds that the process has for the end of the page, and those after which a line says what is waited for.
_LAST_SECONDS, _SAY_AFTER_SECONDS = 15.0, 2.0


class LivePage:
    """A context manager: the page at an address and a port (0: any that is free); raises UsageError.

    ``url`` is where it is. ``earlier`` is a folder of earlier runs, by which two sides are compared.
    """

    def __init__(self, address: str, port: int, earlier: Path | None = None) -> None:
        token = secrets.token_urlsafe(16)
        try:
            listening = open_listening_socket(address, port)
        except OSError as error:
            raise UsageError(f"--metrics web: cannot listen at {address}:{port}: {error.strerror}") from None
        with listening:
            self.url = f"http://{_format_host(address)}:{listening.getsockname()[1]}/{token}/"
            self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [
                    *own_processes.make_python_command("ssbench.monitoring.page_server"),
                    str(listening.fileno()),
                    *([] if earlier is None else [str(earlier)]),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[listening.fileno()],
                env=own_processes.make_child_environment(),
                start_new_session=True,  # so that Ctrl-C is for the master alone
            )
        if self._process.stdin is None:
            raise RuntimeError("the process was started with a pipe")
        self._channel = OutputChannel(self._process.stdin.fileno())
        self._channel.write(f"{token}\n")
        self._said = False

    def __enter__(self) -> LivePage:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """End the process, when it has shown the end of the run to those who look."""
        try:
            if kind is None or not issubclass(kind, KeyboardInterrupt):
                self._let_finish()
        finally:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._errors.close()

    def sink(self, so_far: ReadSoFar) -> PageSink:
        """Return what a run is to be given."""
        return PageSink(self, so_far)

    def tell(self, message: PageMessage) -> None:
        """Tell the process something, unless it does not listen."""
        if self._process.poll() is None:
            self._channel.write_if_read(encode_message(message))
        elif not self._said:
            self._said = True
            self._errors.seek(0)
            lines = self._errors.read().decode("utf-8", "replace").split("\n")
            why = next((line for line in reversed(lines) if line.strip()), "no reason is known")
            _log.warning("The live page has ended: %s. The run continues without it", why)

    def _let_finish(self) -> None:
        self._channel.finish(_SAY_AFTER_SECONDS)
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._ends(_SAY_AFTER_SECONDS):
            return
        _log.info("Waiting for the browser to show the end of the run, for %g s at most", _LAST_SECONDS)
        if not self._ends(_LAST_SECONDS):
            _log.warning(
                "The live page does not show the end of the run: its browser did not read it in time"
            )

    def _ends(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self._process.poll() is None:
            if time.monotonic() >= end:
                return False
            interruption.sleep_interruptibly(0.05)
        return True


class PageSink:
    """A :class:`~ssbench.results.block.Sink` that takes no results: these are in the stat file."""

    def __init__(self, page: LivePage, so_far: ReadSoFar) -> None:
        self._page = page
        self._so_far = so_far
        self._next = 0.0

    def add(self, block: ResultBlock) -> None:
        """Do nothing."""

    def tick(self, now: float) -> None:
        """Tell the page about the run, once a second."""
        if now >= self._next:
            self._next = now + _MESSAGE_SECONDS
            self._tell()

    def end(self, summary: RunSummary) -> None:
        """Make sure that the page knows of the run, however short it was."""
        self._tell()

    def _tell(self) -> None:
        known = self._so_far()
        if known is not None:
            self._page.tell(PageMessage.of(*known))


def _format_host(address: str) -> str:
    """Return the host of a URL that reaches an address."""
    if address in {"0.0.0.0", "::", ""}:  # noqa: S104 - compared with, not bound
        return socket.gethostname()
    return f"[{address}]" if ":" in address else address
