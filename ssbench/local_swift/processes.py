"""One server process of the embedded Swift, as seen by the process that starts and stops it."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from pathlib import Path

from ssbench.base import children, interruption
from ssbench.base.errors import ClusterError
from ssbench.base.quantities import format_duration

#: Seconds that a server may take until it listens; 2 are usual on an idle machine.
START_TIMEOUT_SECONDS = 60.0
_TAIL_LINES = 15

#: Seconds between two looks at whether to wait on.
_TICK_SECONDS = 0.1


class PortTakenError(Exception):
    """Another program took the port between its choice and its use."""


class ServerProcess:
    """A child process that serves some of Swift's apps, and can be made to fail.

    ``name`` is for messages and names the log file; ``apps`` are the configuration files it serves.
    """

    def __init__(self, directory: Path, name: str, apps: list[str]) -> None:
        self.name = name
        self.log = directory / "log" / f"{name}.log"
        self._directory = directory
        self._apps = apps
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id, None when it does not run."""
        with interruption.hold_signals():
            return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start it if it does not run, and wait until it listens; see :meth:`launch`, :meth:`wait_ready`."""
        with interruption.hold_signals():
            if self.pid is None:
                self.launch()
                self.wait_ready()

    def launch(self) -> None:
        """Start it, and do not wait.

        It ends when the calling *thread* ends: that is what Linux ties PR_SET_PDEATHSIG to.
        """
        self.log.parent.mkdir(exist_ok=True)
        environment = {
            **children.make_child_environment(),
            "PYTHONUNBUFFERED": "1",
            # All its addresses are numbers; importing what resolves names takes a quarter of the start.
            "EVENTLET_NO_GREENDNS": "yes",
        }
        program = children.make_python_command("ssbench.local_swift._serve", "-W", "ignore")
        with interruption.hold_signals(), self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - its own program and arguments
                [*program, str(self._directory / "etc"), str(os.getpid()), *self._apps],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._directory,
                env=environment,
                start_new_session=True,
            )

    def wait_ready(self, timeout: float = START_TIMEOUT_SECONDS) -> None:
        """Wait until it listens.

        Raises PortTakenError, ClusterError with the tail of its log when it ended or took longer than
        ``timeout`` seconds, and KeyboardInterrupt.
        """
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("wait_ready() without launch()")
        pipe = self._process.stdout
        deadline = time.monotonic() + timeout
        said = b""
        with interruption.hold_signals(), selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while not said.endswith(b"\n"):
                interruption.raise_if_interrupted()
                left = deadline - time.monotonic()
                if not selector.select(max(0.0, min(_TICK_SECONDS, left))):
                    if left > 0:
                        continue
                    self.kill()
                    raise ClusterError(
                        f"the local Swift's {self.name} server was not ready in {format_duration(timeout)}"
                        f"{self.tail()}"
                    )
                block = os.read(pipe.fileno(), 4096)
                if not block:
                    break
                said += block
        if said != b"ready\n":
            self.kill()
            if said.startswith(b"port "):
                raise PortTakenError(said.decode().strip())
            raise ClusterError(f"the local Swift's {self.name} server did not start{self.tail()}")

    def tail(self) -> str:
        """Return the last lines of its log, as the end of an error's text."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        except OSError:
            lines = []
        return "; its log ends:\n" + "\n".join(f"    {line}" for line in lines) if lines else ""

    def kill(self) -> None:
        """End it at once, running or stopped; its port then refuses connections."""
        if self._process is None:
            return
        with interruption.hold_signals():
            self._process.kill()
            self._process.wait()
            if self._process.stdout:
                self._process.stdout.close()
            self._process = None

    def restart(self) -> None:
        """Kill it and start it again, on the same port."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """Send SIGSTOP: it accepts connections and answers none."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        with interruption.hold_signals():
            if self._process:
                self._process.send_signal(number)
