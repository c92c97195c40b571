"""Signals to a master with a local Swift at any moment: does it always end, and leave nothing?

    python bench/interrupts.py [--starts 500] [--within 2.0] [--from-ready] [--at-once 2] [--kill] [--run]

Starts ``ssbench-master local-swift`` again and again and sends SIGTERM and SIGINT by turns, with ``--kill``
SIGKILL too, each time at another moment of the first seconds, evenly spread; with ``--from-ready`` of those
after its file of variables is there. ``--run`` starts ``run-scenario --local-swift`` for three seconds
instead. Each has to end within 60 seconds, with exit code 0; or with 130, and one line of ``local-swift``,
where SIGINT came while it was loading; or by a signal where SIGTERM or SIGKILL did, or where Python was still
starting. No process and no temporary folder may be left. Prints how each ended and how long that took; the
exit code is 1 where anything was not so.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

#: Seconds in which one must end, and in which its children must be gone after that.
_MOST, _MOST_AFTER = 60.0, 20.0

_TOKEN = "SSBENCH_INTERRUPTS"


@dataclass(frozen=True)
class Ended:
    """How one ended: the signal came ``after`` so many seconds, and it ``took`` so many more."""

    number: signal.Signals
    after: float
    took: float
    code: int | None
    said: str
    left: tuple[object, ...]
    is_run: bool = False

    @property
    def fault(self) -> str:
        """What is wrong; nothing where all is as documented."""
        if self.code is None:
            return "did not end"
        if self.left:
            return f"left {', '.join(map(str, self.left))}"
        if self.code == -self.number or "Fatal Python error: init_" in self.said:
            return ""
        if "Traceback" in self.said:
            return self.said
        if self.code == 0 or (self.code == 130 and (self.is_run or self.said.count("\n") == 1)):
            return ""
        return f"exit code {self.code}: {self.said}"


def _start(token: str, after: float, number: signal.Signals, *, from_ready: bool, is_run: bool) -> Ended:
    with tempfile.TemporaryDirectory(prefix="ssbench-interrupts-") as place:
        folder, variables = Path(place, "tmp"), Path(place, "swift.env")
        folder.mkdir()
        environment = {**os.environ, "TMPDIR": str(folder), _TOKEN: token}
        command = ["local-swift", "--env-file", str(variables)]
        if is_run:
            command = ["run-scenario", "-f", "smoke", "--local-swift", "--workers", "2", "-r", "3"]
            command += ["-s", f"{place}/run.stat"]
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "ssbench.cli.master", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd="/",
        )
        while from_ready and not variables.exists() and process.poll() is None:
            time.sleep(0.002)
            began = time.monotonic()
        time.sleep(max(0.0, after - (time.monotonic() - began)))
        sent = time.monotonic()
        process.send_signal(number)
        try:
            _, said = process.communicate(timeout=_MOST)
        except subprocess.TimeoutExpired:
            print(f"{process.pid} did not end: {number.name} after {after:.3f} s", flush=True)
            process.kill()
            process.wait()
            return Ended(number, after, _MOST, None, "", ())
        took = time.monotonic() - sent
        deadline = time.monotonic() + _MOST_AFTER
        # Nobody is left who could remove the file of a master that was killed; the servers remove folders.
        others = [] if number == signal.SIGKILL else [variables]
        while True:
            # Logs of local workers stay, as doc/fleet.rst says.
            made = [each for each in folder.iterdir() if not each.match("ssbench-worker-local-*.log")]
            left = [*_processes(token), *made, *(each for each in others if each.exists())]
            if not left or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        return Ended(number, after, took, process.returncode, said, tuple(left), is_run)


def _processes(token: str) -> list[str]:
    """Return the ids of the processes that have the token in their environment."""
    wanted = f"{_TOKEN}={token}\0".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in path.read_bytes():
                found.append(path.parent.name)
        except OSError:  # it has ended, or is not ours
            pass
    return found


def main() -> int:
    """Do all of it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--starts", type=int, default=500, metavar="N")
    parser.add_argument("--within", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument("--from-ready", action="store_true")
    parser.add_argument("--at-once", type=int, default=2, metavar="N")
    parser.add_argument("--kill", action="store_true", help="send SIGKILL too")
    parser.add_argument("--run", action="store_true", help="of run-scenario")
    options = parser.parse_args()
    # A shell that starts this in the background has it ignore SIGINT, and so all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    numbers = [signal.SIGTERM, signal.SIGINT, *([signal.SIGKILL] if options.kill else [])]
    lock, done = threading.Lock(), Counter[str]()
    ended: list[Ended] = []

    def one(index: int) -> None:
        number = numbers[index % len(numbers)]
        after = options.within * index / options.starts
        token = f"{os.getpid()}-{index}"
        found = _start(token, after, number, from_ready=options.from_ready, is_run=options.run)
        with lock:
            ended.append(found)
            done[f"{found.number.name}: exit code {found.code}"] += 1
            if found.fault:
                print(f"{found.number.name} after {found.after:.3f} s: {found.fault}", flush=True)

    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(one, range(options.starts)))
    for what, count in sorted(done.items()):
        print(f"{count:5d} {what}")
    took = sorted(each.took for each in ended)
    print(f"from the signal to the end: {took[len(took) // 2]:.2f} s (median), {took[-1]:.2f} s (longest)")
    faults = sum(bool(each.fault) for each in ended)
    print(f"{faults} of {len(ended)} did not end as they should")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
