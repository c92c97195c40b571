"""What one master takes: fleets of stand-ins that speak the protocol and answer each job at once.

    python bench/scale.py [--workers N ...] [--seconds S] [--key] [--json FILE]
    python bench/scale.py --handshakes [--workers N ...] [--key]
    python bench/scale.py --against FOLDER [--rounds N] [--workers N ...] [--seconds S] [--key]

Prints the table of doc/scale.rst. The stand-ins (stand_in_process.py) run in three processes
on the same cores as the master, so rates are lower bounds. For each number of workers:

join          from the moment the master listens until all workers are ready
ops/s         no-op operations a second of a run with one user a worker
master        CPU seconds a second while it runs, and its largest resident memory
relay         CPU seconds a second of the process that relays its ports
end           from the end of that run until the master has printed the report and exited
Ctrl-C        from SIGINT in the middle of a second run until the master has exited
third lost    in a third run one of the three processes is killed: until the master says so, until it has
              exited after the end of the run, and its exit code
kill-workers  until all workers of a fleet have been told to exit and the command has ended, and its exit code
refused       connections for which there was no room at a listener of this machine, in all of that

``--handshakes`` is what of joining is libzmq's: seconds until two bare sockets have shaken hands with
both of each stand-in, where nobody says anything, and the CPU of that process.

``--against`` measures join, rate and CPU an operation, of master and relay and with the stand-ins, by turns
with another checkout, of any protocol, whose stand-ins serve its master. It prints the median of the ratios
of the pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import zmq
from program import child_processes, read_process
from saving import save
from yardsticks import free_port

from ssbench.fleet.descriptors import raise_descriptor_limit
from ssbench.fleet.keys import AllowedClients, ZapHandler, read_fleet_key, write_fleet_key
from ssbench.results.reading import open_results

CHECKOUT = Path(__file__).resolve().parents[1]
STAND_IN_PROCESS = Path(__file__).with_name("stand_in_process.py")
PROCESSES = 3
CAPACITY = 64

SCENARIO = {
    "name": "Scale",
    "sizes": [{"name": "tiny", "size_min": 4096, "size_max": 4096}],
    "initial_files": {"tiny": 20_000},
    "operation_count": 1,
    "crud_profile": [1, 97, 1, 1],
    "user_count": 1,
    "container_count": 20,
}


@dataclass
class Row:
    """A line of the table: seconds, operations a second, megabytes."""

    workers: int
    join: float = 0.0
    rate: float = 0.0
    cpu: float = 0.0
    relay: float = 0.0
    stand_ins: float = 0.0
    megabytes: float = 0.0
    end: float = 0.0
    interrupt: float = 0.0
    lost_said: float = 0.0
    lost_end: float = 0.0
    lost_code: int = -1
    kill: float = 0.0
    kill_code: int = -1
    refused: int = 0
    load: float = 0.0


class Program:
    """A running ``ssbench-master``, with the time of each line that it wrote to standard error."""

    def __init__(self, arguments: list[object], checkout: Path) -> None:
        command = [sys.executable, "-m", "ssbench.cli.master", *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=checkout,
        )
        self.lines: list[tuple[float, str]] = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._more:
                self.lines.append((time.time(), line))
                self._more.notify_all()

    def when(self, word: str, seconds: float, other: str = "\0") -> float:
        """Return when a line with one of the words came; ends the program where none comes in time."""

        def found() -> float | None:
            return next((when for when, line in self.lines if word in line or other in line), None)

        with self._more:
            self._more.wait_for(lambda: found() is not None, seconds)
            when = found()
        if when is None:
            self.process.kill()
            sys.exit(f"no line with {word!r} within {seconds:g} s:\n" + self.said)
        return when

    @property
    def said(self) -> str:
        return "".join(line for _, line in self.lines)

    def end(self, seconds: float) -> tuple[float, int]:
        """Wait for its end; return when that was, and its exit code."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            sys.exit(f"the master did not end within {seconds:g} s:\n" + self.said)
        ended = time.time()
        self._reader.join()
        return ended, code


class StandIns:
    """The processes of stand-ins of one fleet, each of which runs ``capacity`` jobs at once.

    They say that each took up to ``longest`` milliseconds. They speak the protocol of ``checkout``.
    """

    def __init__(
        self,
        count: int,
        ports: tuple[int, int],
        key: Path | None,
        *,
        processes: int = PROCESSES,
        capacity: int = CAPACITY,
        longest: int = 0,
        checkout: Path = CHECKOUT,
    ) -> None:
        shares = [count // processes + (place < count % processes) for place in range(processes)]
        self._commands = []
        first = 1
        for share in shares:
            command = [sys.executable, STAND_IN_PROCESS, checkout, share, first, *ports, capacity, longest]
            self._commands.append([*map(str, command), *([str(key)] if key else [])])
            first += share
        self.processes: list[subprocess.Popen[bytes]] = []
        self.start()

    def start(self) -> None:
        """Start those that do not run."""
        for place, command in enumerate(self._commands):
            if place >= len(self.processes):
                self.processes.append(subprocess.Popen(command))
            elif self.processes[place].poll() is not None:
                self.processes[place] = subprocess.Popen(command)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def wait_for_listener(port: int, seconds: float) -> float:
    """Return when something began to listen on a port of 127.0.0.1."""
    wanted, deadline = f":{port:04X} 00000000:0000 0A", time.time() + seconds
    while wanted not in Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text().replace(
        "0" * 32, "0" * 8
    ):
        if time.time() > deadline:
            sys.exit(f"nothing listens on port {port}")
        time.sleep(0.01)
    return time.time()


def listen_overflows() -> int:
    """Connections for which there was no room at any listener of this machine, since it started."""
    lines = Path("/proc/net/netstat").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("TcpExt:"))
    return int(values[names.index("ListenOverflows")])


def cpu_seconds(pids: list[int]) -> float:
    """CPU seconds of processes so far; 0 of those that have ended."""
    return sum(each.cpu for each in map(read_process, pids) if each is not None)


def peak_megabytes(pid: int) -> float:
    """Largest resident memory of a process so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return float(status.partition("VmHWM:")[2].split()[0]) / 1000


class Bench:
    """A fleet of stand-ins and the masters that use it, one after the other, all of one checkout."""

    def __init__(self, count: int, folder: Path, checkout: Path = CHECKOUT, *, sealed: bool) -> None:
        self.count = count
        self._checkout = checkout
        self.row = Row(count, load=os.getloadavg()[0])
        self.stats = folder / "run.stat.gz"
        self._scenario = folder / "scenario.json"
        self._scenario.write_text(json.dumps(SCENARIO))
        self._ports = (free_port(), free_port())
        work, results = self._ports
        self._common = [f"--zmq-work-port={work}", f"--zmq-results-port={results}", "--zmq-bind-ip=127.0.0.1"]
        key = folder / "fleet.key" if sealed else None
        if key is not None:
            subprocess.run([sys.executable, "-m", "ssbench.cli.master", "keygen", key], check=True)
            self._common.append(f"--zmq-key={key}")
        self.fleet = StandIns(count, self._ports, key, checkout=checkout)
        self._let_them_start()

    def _let_them_start(self) -> None:
        time.sleep(1 + self.count / 500)

    def _run(self, seconds: float) -> Program:
        arguments = [
            "run-scenario",
            "-f",
            self._scenario,
            "-s",
            self.stats,
            "--force",
            "-r",
            seconds,
            "--noop",
        ]
        return Program(
            [*arguments, "-u", self.count, "--expect-workers", self.count, *self._common], self._checkout
        )

    def whole_run(self, seconds: float) -> None:
        """Join, rate, CPU, memory, end."""
        master, row = self._run(seconds), self.row
        listening = wait_for_listener(self._ports[1], 60)
        row.join = master.when("Starting the", 90, "Uploading") - listening
        master.when("Starting the benchmark", 90)
        time.sleep(1)
        kinds = (
            [master.process.pid],
            child_processes(master.process.pid),
            [each.pid for each in self.fleet.processes],
        )
        began, before = time.time(), [cpu_seconds(pids) for pids in kinds]
        time.sleep(max(1.0, seconds - 3))
        after, took = [cpu_seconds(pids) for pids in kinds], time.time() - began
        while master.process.poll() is None:
            with suppress(OSError, IndexError):
                row.megabytes = peak_megabytes(master.process.pid)
            time.sleep(0.02)
        exited, _ = master.end(60)
        row.cpu, row.relay, row.stand_ins = (
            (late - early) / took for early, late in zip(before, after, strict=True)
        )
        results = open_results(self.stats)
        row.rate = sum(len(block) for block in results.blocks()) / seconds
        assert results.summary is not None
        assert results.summary.sent_until is not None
        row.end = exited - results.summary.sent_until

    def interrupted_run(self) -> None:
        """SIGINT in the middle."""
        master = self._run(60)
        sleep_until(master.when("Starting the benchmark", 90) + 4)
        asked = time.time()
        master.process.send_signal(signal.SIGINT)
        self.row.interrupt = master.end(90)[0] - asked

    def run_with_a_loss(self) -> None:
        """A third of the workers is killed."""
        seconds, row = 14.0, self.row
        master = self._run(seconds)
        begun = master.when("Starting the benchmark", 90)
        sleep_until(begun + 3)
        self.fleet.processes[0].kill()
        killed = time.time()
        row.lost_said = master.when("not been heard of", 60) - killed
        exited, row.lost_code = master.end(120)
        row.lost_end = exited - begun - seconds

    def kill_workers(self) -> None:
        """All that there are, those included that were killed."""
        self.fleet.start()
        self._let_them_start()
        began = time.time()
        killer = Program(["kill-workers", *self._common], self._checkout)
        ended, self.row.kill_code = killer.end(120)
        self.row.kill = ended - began
        print("   " + killer.said.strip().splitlines()[-1], file=sys.stderr)


def handshakes(count: int, *, sealed: bool) -> tuple[float, float]:
    """Return how long all connections of ``count`` stand-ins took to shake hands, and CPU, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.key"
        write_fleet_key(path)
        key = read_fleet_key(path) if sealed else None
        ports = (free_port(), free_port())
        fleet = StandIns(count, ports, path if sealed else None)
        time.sleep(1 + count / 500)
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        handler = ZapHandler(context, None if key is None else AllowedClients(key))
        sockets = (context.socket(zmq.ROUTER), context.socket(zmq.PULL))
        monitors = [socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED) for socket in sockets]
        poller = zmq.Poller()
        try:
            for socket, monitor in zip(sockets, monitors, strict=True):
                handler.guard(socket, key)
                socket.linger, socket.backlog = 0, 4096
                poller.register(monitor, zmq.POLLIN)
            began, cpu = time.monotonic(), time.process_time()
            for socket, port in zip(sockets, ports, strict=True):
                socket.bind(f"tcp://127.0.0.1:{port}")
            left = 2 * count
            while left > 0:
                for monitor, _ in poller.poll():
                    while monitor.poll(0):
                        monitor.recv_multipart()
                        left -= 1
            return time.monotonic() - began, time.process_time() - cpu
        finally:
            fleet.end()
            for socket, monitor in zip(sockets, monitors, strict=True):
                socket.disable_monitor()
                monitor.close()
                socket.close()
            context.term()
            handler.join()


def sleep_until(when: float) -> None:
    time.sleep(max(0.0, when - time.time()))


def measure(count: int, seconds: float, *, sealed: bool) -> Row:
    """Fill one line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        before = listen_overflows()
        bench = Bench(count, Path(folder), sealed=sealed)
        try:
            bench.whole_run(seconds)
            bench.interrupted_run()
            bench.run_with_a_loss()
            bench.kill_workers()
        finally:
            bench.fleet.end()
        bench.row.refused = listen_overflows() - before
    return bench.row


def compare(count: int, seconds: float, rounds: int, other: Path, *, sealed: bool) -> None:
    """Measure by turns with the master of another checkout, and print what the pairs say."""
    found: dict[Path, list[tuple[float, ...]]] = {other: [], CHECKOUT: []}
    for number in range(rounds):
        for checkout in (other, CHECKOUT) if number % 2 == 0 else (CHECKOUT, other):
            with tempfile.TemporaryDirectory() as folder:
                bench = Bench(count, Path(folder), checkout, sealed=sealed)
                try:
                    bench.whole_run(seconds)
                finally:
                    bench.fleet.end()
            row = bench.row
            own = 1e6 * (row.cpu + row.relay) / row.rate
            whole = own + 1e6 * row.stand_ins / row.rate
            found[checkout].append((row.join, row.rate, own, whole))
            print(
                f"{'this ' if checkout == CHECKOUT else 'other'} join {row.join:.1f} s,"
                f" {row.rate:,.0f} ops/s, us an operation {own:.2f} (relay"
                f" {1e6 * row.relay / row.rate:.2f}), with stand-ins {whole:.2f},"
                f" load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    for place, name in enumerate(("join", "ops/s", "us an operation", "with stand-ins")):
        ratios = sorted(
            mine[place] / theirs[place] for mine, theirs in zip(found[CHECKOUT], found[other], strict=True)
        )
        print(f"{name}: {statistics.median(ratios):.3f} times ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def show(rows: list[Row]) -> None:
    """Print the table as it is in doc/scale.rst."""
    print(
        "workers  join  ops/s    master       relay  end    Ctrl-C  third lost           kill-workers refused"
        "  load\n"
        "         s              CPU    MB    CPU    s      s       said s  end s  code  s      code"
    )
    for row in rows:
        print(
            f"{row.workers:7,}  {row.join:4.1f}  {row.rate:7,.0f}  {row.cpu:4.2f}  {row.megabytes:5,.0f}"
            f"  {row.relay:5.2f}  {row.end:5.1f}  {row.interrupt:6.1f}  {row.lost_said:6.1f}"
            f"  {row.lost_end:5.1f}  {row.lost_code:4}"
            f"  {row.kill:5.1f}  {row.kill_code:4}  {row.refused:6}  {row.load:5.1f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[100, 500, 1000, 2000, 3000])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--key", action="store_true", help="seal the fleet with a key")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "scale.json")
    parser.add_argument("--handshakes", action="store_true", help="how long libzmq's part of joining takes")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="compare with another checkout")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.handshakes:
        raise_descriptor_limit()
        for count in options.workers:
            seconds, cpu = handshakes(count, sealed=options.key)
            print(f"{count:7,} workers: {seconds:.2f} s, {cpu:.2f} s of CPU", flush=True)
        return
    if options.against:
        for count in options.workers:
            compare(count, options.seconds, options.rounds, options.against.resolve(), sealed=options.key)
        return
    rows = []
    for count in options.workers:
        rows.append(measure(count, options.seconds, sealed=options.key))
        show(rows[-1:])
    show(rows)
    save(options.json, results=[asdict(row) for row in rows])


if __name__ == "__main__":
    main()
