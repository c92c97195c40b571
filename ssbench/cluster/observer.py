"""The master's end of watching a cluster: starts the process that does it, and takes its observation."""

from __future__ import annotations

import logging
import queue
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO

import msgspec

from ssbench.base import interruption, own_processes
from ssbench.base.errors import UsageError
from ssbench.base.text_values import parse_http_url, redact_url, refuse_user_info
from ssbench.cluster._watch import AFTER_SECONDS, BEFORE_SECONDS, Task
from ssbench.cluster.judgments import describe_judgments, judge_cluster
from ssbench.results.cluster_observation import Observation
from ssbench.store.stores import SECRET_VARIABLES

_log = logging.getLogger(__name__)

#: Seconds that the process has to start, and to hand over what it has.
_SLACK_SECONDS = 6.0

#: Room for some seconds of datagrams, as far as the kernel allows (bytes).
_BUFFER_BYTES = 8 * 1024 * 1024


class Observer:
    """Watches the servers at the ``recon`` URLs, and receives statsd lines at a port; a context manager.

    Servers are sampled every ``interval`` seconds. Entering binds the port; it and making one raise
    UsageError. After that failures are recorded in the observation.
    """

    def __init__(
        self, recon: Sequence[str] = (), *, interval: float = 5.0, statsd_port: int | None = None
    ) -> None:
        self._recon = tuple(dict.fromkeys(parse_recon_url(url) for url in recon))
        self._interval = interval
        self._statsd_port = statsd_port
        self._statsd: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._last = Observation()
        self._said: set[str] = set()

    def __enter__(self) -> Observer:
        if self._statsd_port is not None:
            self._statsd = _bind_statsd_port(self._statsd_port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._statsd is not None:
            self._statsd.close()
            self._statsd = None

    def begin(
        self, storage_urls: Sequence[str] = (), *, insecure: bool = False, ca_certificates: str | None = None
    ) -> None:
        """See the cluster before the run, and have it watched from then on.

        ``/info`` of the proxies is asked as well. Waits some seconds for the servers' answers, and logs
        what is to be warned of.
        """
        self.stop()
        proxies = dict.fromkeys(url.partition("/v1")[0].rstrip("/") for url in storage_urls)
        task = Task(
            self._recon,
            self._interval,
            tuple(proxies),
            insecure,
            ca_certificates,
            self._statsd.fileno() if self._statsd else None,
            self._statsd_port or 0,
        )
        _log.info("Looking at the cluster before the run (%d servers)", len(self._recon) + len(proxies))
        try:
            self._start(task)
        except OSError as error:
            self._last = Observation(failure=f"no process for it: {error.strerror}")
        else:
            self._last = self._receive(BEFORE_SECONDS)
            if self._last.failure:
                self.stop()
        self._said = set()
        # Lines of statsd have had no time to come.
        self._say(msgspec.structs.replace(self._last, statsd=None))

    def end(self) -> Observation:
        """See the cluster once more, end watching, and return what was seen."""
        if self._process is not None:
            before = self._last
            with suppress(BrokenPipeError):
                self._write(b"end\n")
            self._last = self._receive(AFTER_SECONDS)
            if self._last.failure:  # what was seen before the run is kept
                self._last = msgspec.structs.replace(before, failure=self._last.failure)
            self.stop()
            self._say(self._last)
        return self._last

    def find_warnings(self, observation: Observation) -> list[str]:
        """Return sentences on what makes the results doubtful."""
        return describe_judgments(judge_cluster(observation), warnings=True)

    def _say(self, observation: Observation) -> None:
        """Log what is to be warned of and was not said before."""
        for sentence in self.find_warnings(observation):
            if sentence not in self._said:
                self._said.add(sentence)
                _log.warning("%s", sentence)

    def _start(self, task: Task) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - _stop() closes it
        self._lines = queue.SimpleQueue()
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            own_processes.make_python_command("ssbench.cluster._watch"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=[task.statsd] if task.statsd is not None else [],
            # Ctrl-C in a terminal is for the master.
            process_group=0,
            env=own_processes.make_child_environment(SECRET_VARIABLES),
        )
        threading.Thread(
            target=_pass_lines_on, args=(self._process.stdout, self._lines), name="observer", daemon=True
        ).start()
        with suppress(BrokenPipeError):
            self._write(msgspec.json.encode(task) + b"\n")

    def _write(self, data: bytes) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def _receive(self, patience: float) -> Observation:
        """Return what the process says next; one that says nothing is recorded as a failure."""
        try:
            line = interruption.take_from_queue(self._lines, patience + _SLACK_SECONDS)
            return msgspec.json.decode(line, type=Observation)
        except queue.Empty:
            return Observation(failure=f"no result within {patience + _SLACK_SECONDS:g} s")
        except msgspec.DecodeError:
            return Observation(failure=f"its process has ended{self._error_text()}")

    def _error_text(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        return f": {lines[-1]}" if lines else ""

    def stop(self) -> None:
        """End watching; :meth:`end` then returns what was seen before the run."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.close()
        if self._errors is not None:  # also where no process could be made
            self._errors.close()
            self._errors = None


def _pass_lines_on(pipe: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    """Hand on lines, and an empty one at the end; the body of a thread."""
    with pipe:
        while line := pipe.readline():
            lines.put(line)
    lines.put(b"")


def parse_recon_url(text: str) -> str:
    """Return ``http://HOST:PORT`` of a server's URL, given with or without ``/recon``; raises UsageError."""
    refuse_user_info(text, "--observe")
    parts = parse_http_url(text)
    if parts is None or parts.port is None or parts.path.rstrip("/") not in {"", "/recon"} or parts.query:
        raise UsageError(
            f"--observe {redact_url(text)}: expected the URL of an account, container or object server with"
            " its port, as in http://10.0.0.4:6200"
        )
    return f"{parts.scheme}://{parts.netloc}"


def _bind_statsd_port(port: int) -> socket.socket:
    """Bind a UDP port of every address, IPv6 too where there is any; raises UsageError."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        listener.bind(("", port))
    except OSError as error:
        listener.close()
        raise UsageError(f"--observe statsd:{port}: {error.strerror}") from None
    return listener
