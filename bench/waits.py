"""Whether reports name waits that are as long as a constant of the system, and none where there are none.

    python bench/waits.py [--simulated] [--real] [--rounds N] [--keep FOLDER] [CAUSE...]
    python bench/waits.py --again FOLDER [CAUSE...]

``--simulated`` draws 300 healthy runs, 300 whose store pauses at times, and runs with each wait planted in
2 %, 30 % and all of the requests of one operation. ``--real`` makes real ones on this machine: a server with
Nagle's algorithm, segments and SYNs that the kernel drops, a full listen queue, a name server that does not
answer (in a network namespace), and an embedded Swift of which a server is stopped or takes no connections;
then healthy runs. ``--keep`` leaves their stat files in a folder, ``--again`` judges such files once more.
It ends with 1 where fewer than nine of ten waits are named, or where more than one of 20 healthy runs or 1 %
of the simulated ones has one.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from simulated_waits import Plant, pausing, statistics_of

from ssbench.local_swift import Layout, LocalSwift
from ssbench.results.reading import open_results
from ssbench.statistics.summary import summarize
from ssbench.statistics.waits import WAIT_LENGTHS, describe_wait

#: Makes a run in a folder, and returns its stat file.
Cause = Callable[[Path], Path]
STORE = Path(__file__).parent.parent / "tests" / "helpers" / "waiting_store.py"
SERVERS = Layout(replicas=3, devices=4, object_servers=3, proxies=1)
#: What files of runs without a cause are called.
_HEALTHY = "healthy"
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
    within: Sequence[object] = (),
) -> Path:
    """Run a scenario of small objects, and return its stat file.

    ``begins`` is called once the initial objects are there. ``within`` is a command that runs the rest of its
    line.
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
    command = [*map(str, within), sys.executable, "-m", "ssbench.cli.master", *map(str, words)]
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
    return results


@contextmanager
def store(*options: object, within: Sequence[object] = ()) -> Iterator[tuple[str, int]]:
    """Run the small store; yields its port and process id."""
    command = [str(word) for word in (*within, sys.executable, STORE, *options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.kill()
        process.wait()


def of_store(*options: object, operations: int = 400, users: int = 4, seconds: int = 0) -> Cause:
    """Have the small store with these options, for ``seconds`` rather than some operations if given."""
    lasting = ("-r", seconds) if seconds else ()

    def cause(folder: Path) -> Path:
        with store(*options) as (port, _):
            url = f"http://127.0.0.1:{port}/v1/AUTH_test"
            return run(folder, url, "-u", users, *lasting, operations=operations)

    return cause


def slow_name_server(folder: Path) -> Path:
    """Have the first name server of a network of its own answer nothing, and connections be new."""
    names = folder / "resolv.conf"
    names.write_text("nameserver 127.0.0.2\nnameserver 127.0.0.3\n")
    script = 'ip link set lo up && mount --bind "$0" /etc/resolv.conf && exec "$@"'
    within = ("unshare", "--map-root-user", "--net", "--mount", "sh", "-c", script, names)
    with store("--close", "--names", within=within) as (port, process):
        inside = ("nsenter", "--target", process, "--user", "--net", "--mount", "--preserve-credentials")
        return run(folder, f"http://store.test:{port}/v1/AUTH_test", "-u", 4, "-r", 40, within=inside)


def of_swift(
    fault: Callable[[LocalSwift, ExitStack], None] | None,
    operations: int = 300,
    lasting: float = 30.0,
    users: int = 1,
    crud: Sequence[int] = (4, 5, 0, 1),
    early: bool = False,
    **options: str,
) -> Cause:
    """Have something happen to an embedded Swift for the first seconds of a run's operations.

    What takes time to bring about has happened before the run. More users make requests on two busy cores so
    slow that they cannot be told from those that wait for half a second.
    """

    def cause(folder: Path) -> Path:
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
                    if not early:
                        fault(swift, stack)
                    timer.start()

            try:
                if fault and early:
                    fault(swift, stack)
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


#: Each with a word of what it is to be named, and whether connections wait.
CAUSES: dict[str, tuple[Cause, str, bool]] = {
    "Nagle with delayed ACK": (of_store("--nagle"), "Nagle", False),
    "lost segments": (of_store("--lose", 0.03, operations=2000), "retransmission", False),
    "lost SYNs": (of_store("--close", "--drop-syn", 0.05, operations=600), "SYN", True),
    # By time: a fast machine would have done 3,000 operations after two pauses of the store, and one is none.
    "full listen queue": (
        of_store("--close", "--backlog", 4, "--pause", 0.1, users=16, seconds=20),
        "SYN",
        True,
    ),
    "slow name server": (slow_name_server, "name server", True),
    "stopped container server": (of_swift(stopped_container_server), "container_update_timeout", False),
    # Of what it is asked to write it would first say 100 Continue, which proxies await for node_timeout.
    "stopped replica, deletes": (
        of_swift(stopped_object_server, 100, crud=(0, 0, 0, 1)),
        "post_quorum_timeout",
        False,
    ),
    "stopped replica, reads": (
        of_swift(stopped_object_server, 200, lasting=45.0, users=6),
        "node_timeout",
        False,
    ),
    "full object server": (of_swift(full_object_server, early=True), "conn_timeout", False),
    "concurrent gets": (
        of_swift(stopped_object_server, crud=(0, 1, 0, 0), concurrent_gets="yes", concurrency_timeout="0.5"),
        "concurrency_timeout",
        False,
    ),
}


HEALTHY = [of_store(), of_store("--close"), of_swift(None), of_swift(None, concurrent_gets="yes")]


def runs(rounds: int, chosen: list[str], folder: Path) -> Iterator[tuple[str, Path]]:
    """Make runs with each cause, then healthy ones (an empty name); yields names and stat files."""
    plan = [(name, cause) for name, (cause, *_) in CAUSES.items() if not chosen or name in chosen]
    plan = [each for each in plan for _ in range(rounds)]
    if not chosen:
        plan += [("", HEALTHY[place % len(HEALTHY)]) for place in range(10 * rounds)]
    for place, (name, cause) in enumerate(plan):
        made = cause(folder)
        print(f"load {os.getloadavg()[0]:.0f}", end=", ")
        yield name, made.rename(folder / f"{place:02} {name or _HEALTHY}.stat.gz")


def kept(chosen: list[str], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and stat files of earlier runs."""
    for path in sorted(folder.glob("*.stat.gz")):
        name = path.name.partition(" ")[2].removesuffix(".stat.gz")
        if not chosen or name in chosen:
            yield "" if name == _HEALTHY else name, path


def judged(made: Iterable[tuple[str, Path]]) -> bool:
    named = tried = healthy = wrong = 0
    for name, path in made:
        found = summarize(open_results(path)).waits
        if name:
            _, word, connecting = CAUSES[name]
            right = any(word in each.name and each.connecting == connecting for each in found)
            named, tried = named + right, tried + 1
            said = f"{'named' if right else 'MISSED'}: {name}"
        else:
            healthy, wrong = healthy + 1, wrong + bool(found)
            said = f"healthy: {'WRONG' if found else 'nothing'}"
        print(said, *map(describe_wait, found), sep="\n    ", flush=True)
    print(f"real: {named} of {tried} named; of {healthy} healthy runs {wrong} with a wait")
    return named >= 0.9 * tried and wrong <= max(1, healthy // 20)


def simulated() -> bool:
    wrong = sum(bool(statistics_of(seed).waits) for seed in range(300))
    print(f"simulated: {wrong} of 300 healthy runs have a wait")
    paused = sum(bool(pausing(seed).waits) for seed in range(300))
    print(f"simulated: {paused} of 300 healthy runs with pauses have one")
    wrong = max(wrong, paused)
    for length in WAIT_LENGTHS:
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
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--again", type=Path, metavar="FOLDER")
    parser.add_argument("causes", nargs="*", metavar="CAUSE")
    arguments = parser.parse_args()
    right = True
    if arguments.simulated or not (arguments.real or arguments.again):
        right &= simulated()
    if arguments.again:
        right &= judged(kept(arguments.causes, arguments.again))
    if arguments.real:
        with tempfile.TemporaryDirectory() as temporary:
            folder = arguments.keep or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            right &= judged(runs(arguments.rounds, arguments.causes, folder))
    sys.exit(not right)


if __name__ == "__main__":
    main()
