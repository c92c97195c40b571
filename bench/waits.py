"""Whether reports name waits that are as long as a constant of the system, and none where there are none.

    python bench/waits.py [--simulated] [--real] [--rounds N] [CAUSE...]

``--simulated`` draws 300 healthy runs, and runs with each wait planted in 2 %, 30 % and all of the requests
of one operation. ``--real`` makes real ones on this machine: a server with
Nagle's algorithm, segments and SYNs that the kernel drops, a full listen queue, and an
embedded Swift of which a server is stopped or takes no connections; then healthy runs. It ends with 1 where
fewer than nine of ten waits are named, or where more than one of 20 healthy runs or 1 % of the simulated ones
has one.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from simulated_waits import Plant, statistics_of

from ssbench.local_swift import Layout, LocalSwift
from ssbench.run_results import open_results
from ssbench.statistics import Wait, summarize
from ssbench.statistics.wait_lengths import LENGTHS
from ssbench.statistics.waits import sentence

STORE = Path(__file__).parent.parent / "tests" / "helpers" / "waiting_store.py"
SERVERS = Layout(replicas=3, devices=4, object_servers=3, proxies=1)
#: As Swift has them by default; the embedded one is more patient.
DEFAULTS = {"conn_timeout": "0.5", "node_timeout": "10"}
OBJECT_DEFAULTS = {"conn_timeout": "0.5", "node_timeout": "3", "container_update_timeout": "1"}


def run(
    folder: Path,
    url: str,
    *options: object,
    operations: int = 400,
    token: str = "t",
    crud: Sequence[int] = (4, 5, 0, 1),
    begins: Callable[[], None] = lambda: None,
) -> tuple[Wait, ...]:
    """Run a scenario of small objects, and return the waits that its report names.

    ``begins`` is called once the initial objects are there.
    """
    scenario, results = folder / "waits.yaml", folder / f"{time.monotonic_ns()}.stat.gz"
    scenario.write_text(
        yaml.safe_dump(
            {
                "name": "waits",
                "sizes": [
                    {"name": "tiny", "size_min": 1000, "size_max": 4000},
                    {"name": "small", "size_min": 20_000, "size_max": 60_000},
                ],
                # Deletes need an object each.
                "initial_files": dict.fromkeys(("tiny", "small"), operations if crud[3] > crud[0] else 20),
                "operation_count": operations,
                "crud_profile": [*crud],
                "user_count": 4,
                "container_count": 2,
            }
        )
    )
    words = ["run-scenario", "-f", scenario, "-s", results, "--workers", 1, "-R", *options]
    words += ["-S", url, "-T", token]
    command = [sys.executable, "-m", "ssbench.cli.master", *map(str, words)]
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith(("ST_", "OS_"))},
    ) as process:
        assert process.stderr
        for line in process.stderr:
            if "Starting the benchmark" in line:
                begins()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return summarize(open_results(results)).waits


@contextmanager
def store(*options: object) -> Iterator[str]:
    """Run the small store; yields its port."""
    process = subprocess.Popen([sys.executable, STORE, *map(str, options)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def of_store(*options: object, operations: int = 400, users: int = 4) -> Callable[[Path], tuple[Wait, ...]]:
    def cause(folder: Path) -> tuple[Wait, ...]:
        with store(*options) as port:
            return run(folder, f"http://127.0.0.1:{port}/v1/AUTH_test", "-u", users, operations=operations)

    return cause


def of_swift(
    fault: Callable[[LocalSwift, ExitStack], None] | None,
    operations: int = 300,
    lasting: float = 15.0,
    users: int = 2,
    crud: Sequence[int] = (4, 5, 0, 1),
    **options: str,
) -> Callable[[Path], tuple[Wait, ...]]:
    """Have something happen to an embedded Swift for the first seconds of a run's operations."""

    def cause(folder: Path) -> tuple[Wait, ...]:
        import swiftclient  # noqa: PLC0415

        proxy_options = {**DEFAULTS, **options}
        with (
            LocalSwift(layout=SERVERS, proxy_options=proxy_options, object_options=OBJECT_DEFAULTS) as swift,
            ExitStack() as stack,
        ):
            token = swiftclient.get_auth(swift.auth_url, swift.user, swift.key)[1]

            def repair() -> None:
                stack.close()
                swift.object_servers[1].resume()
                swift.listings.resume()

            timer = threading.Timer(lasting, repair)

            def begins() -> None:
                if fault:
                    fault(swift, stack)
                    timer.start()

            try:
                return run(
                    folder,
                    swift.storage_url,
                    "-u",
                    users,
                    operations=operations,
                    token=token,
                    crud=crud,
                    begins=begins,
                )
            finally:
                timer.cancel()
                repair()

    return cause


def stopped_object_server(swift: LocalSwift, _: ExitStack) -> None:
    """Stop a server of one device, so that no object has two replicas there."""
    swift.object_servers[1].stop()


def stopped_container_server(swift: LocalSwift, _: ExitStack) -> None:
    swift.listings.stop()


def full_object_server(swift: LocalSwift, stack: ExitStack) -> None:
    """A stopped server whose listen queue is full: its kernel drops SYNs."""
    server = swift.object_servers[1]
    server.stop()
    port = int(swift.recon_urls[server.name].split(":")[2].split("/")[0])
    for _ in range(6000):
        sock = stack.enter_context(socket.socket())
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", port))


CAUSES: dict[str, tuple[Callable[[Path], tuple[Wait, ...]], float, bool]] = {
    "Nagle with delayed ACK": (of_store("--nagle"), 0.04, False),
    "lost segments": (of_store("--lose", 0.03, operations=600), 0.2, False),
    "lost SYNs": (of_store("--close", "--drop-syn", 0.05, operations=300), 1.0, True),
    "SYNs lost twice": (of_store("--close", "--drop-syn", 0.3, operations=200), 2.0, True),
    "full listen queue": (
        of_store("--close", "--backlog", 4, "--pause", 0.1, operations=3000, users=16),
        1.0,
        True,
    ),
    "stopped container server": (of_swift(stopped_container_server), 1.0, False),
    # Of what it is asked to write it would first say 100 Continue, which proxies await for node_timeout.
    "stopped replica, deletes": (of_swift(stopped_object_server, 100, crud=(0, 0, 0, 1)), 0.5, False),
    "stopped replica, reads": (of_swift(stopped_object_server, 200, lasting=45.0, users=6), 10.0, False),
    "full object server": (of_swift(full_object_server), 0.5, False),
    "concurrent gets": (
        of_swift(stopped_object_server, crud=(0, 1, 0, 0), concurrent_gets="yes", concurrency_timeout="0.5"),
        0.5,
        False,
    ),
}


def real(rounds: int, chosen: list[str]) -> bool:
    named = tried = 0
    healthy = [of_store(), of_store("--close"), of_swift(None), of_swift(None, concurrent_gets="yes")]
    with tempfile.TemporaryDirectory() as temporary:
        for name, (cause, seconds, connecting) in CAUSES.items():
            for _ in range(rounds if not chosen or name in chosen else 0):
                found = cause(Path(temporary))
                # A SYN that is lost more than once is one as well.
                right = any(
                    each.connecting if connecting else (each.seconds, each.connecting) == (seconds, False)
                    for each in found
                )
                named, tried = named + right, tried + 1
                said = f"{'named' if right else 'MISSED'}: {name} (load {os.getloadavg()[0]:.0f})"
                print(said, *map(sentence, found), sep="\n    ", flush=True)
        wrong = 0
        for place in range(0 if chosen else 10 * rounds):
            found = healthy[place % len(healthy)](Path(temporary))
            wrong += bool(found)
            said = f"healthy: {'WRONG' if found else 'nothing'} (load {os.getloadavg()[0]:.0f})"
            print(said, *map(sentence, found), sep="\n    ", flush=True)
    print(f"real: {named} of {tried} named; of {10 * rounds} healthy runs {wrong} with a wait")
    return named >= 0.9 * tried and wrong <= max(1, rounds // 2)


def simulated() -> bool:
    wrong = sum(bool(statistics_of(seed).waits) for seed in range(300))
    print(f"simulated: {wrong} of 300 healthy runs have a wait")
    for length in LENGTHS:
        row = []
        for share in (0.02, 0.3, 1.0):
            plant = Plant(length.seconds, share, 0 if length.writes else 1, length.connecting)
            waits = [statistics_of(seed, plant, 2000).waits for seed in range(20)]
            row.append(sum(any(each.name == length.name for each in found) for found in waits))
        print(f"{length.seconds:5g} s {length.name:60} {row} of 20 with 2 %, 30 %, all", flush=True)
        wrong += 100 * (min(row[1:]) < 18)  # 2 % may be five requests or fewer
    return wrong <= 3


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("causes", nargs="*", metavar="CAUSE")
    arguments = parser.parse_args()
    right = True
    if arguments.simulated or not arguments.real:
        right &= simulated()
    if arguments.real:
        right &= real(arguments.rounds, arguments.causes)
    sys.exit(not right)


if __name__ == "__main__":
    main()
