"""What the kernel says of a machine, and when one was shared with other programs."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ssbench.base import host
from ssbench.local_swift.cluster import find_server_processes
from ssbench.results.run_description import HostFacts
from ssbench.run.load_samples import HostUsage
from ssbench.statistics.load_generator import describe_shared_host


def proc(folder: Path, **files: str) -> Path:
    """Make a folder like /proc of some files, whose slashes are underscores here."""
    for name, text in files.items():
        path = folder / name.replace("_", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def test_all_counters_of_a_kernel(tmp_path: Path) -> None:
    tick = os.sysconf("SC_CLK_TCK")
    cpu = " ".join(str(number * tick) for number in (1, 2, 4, 1000, 2000, 8, 16, 32, 0, 0))
    found = host.read_host_counters(
        proc(
            tmp_path,
            stat=f"cpu  {cpu}\ncpu0 {cpu}\nintr 1\n",
            loadavg="20.5 3.25 1.00 3/179 25831\n",
            pressure_cpu="some avg10=99.10 avg60=99.35 avg300=98.54 total=2500000\nfull avg10=0 total=0\n",
            self_schedstat="3000000000 1500000000 7\n",
        )
    )
    assert (found.busy, found.stolen, found.load) == (1 + 2 + 4 + 8 + 16, 32, 20.5)
    assert (found.pressed, found.waited) == (2.5, 1.5)
    assert found.cores == os.cpu_count()


def test_network_cards_are_those_of_a_known_speed(tmp_path: Path) -> None:
    """Bridges have a speed that nothing limits them to."""
    moved = " 1000 9 0 0 0 0 0 0 2000 9 0 0 0 0 0 0"
    names = ("lo", "eth0", "br0", "eth1")
    lines = ["Inter-|   Receive", " face |bytes", *(f"{each:>6}:{moved}" for each in names)]
    proc(tmp_path, net_dev="\n".join(lines) + "\n")
    for name, speed in [("eth0", "10000\n"), ("br0", "10000\n"), ("eth1", "-1\n")]:
        card = tmp_path / "class" / "net" / name
        card.mkdir(parents=True)
        (card / "speed").write_text(speed)
        if name != "br0":
            (card / "device").mkdir()
    assert host.read_host_counters(tmp_path, tmp_path).cards == (
        host.CardCounters("eth0", 1000.0, 2000.0, 1.25e9),
    )


@pytest.mark.parametrize("text", ["", "\n", "cpu\n", "some words of a later version\n"])
def test_what_a_kernel_does_not_tell_is_not_known(tmp_path: Path, text: str) -> None:
    assert host.read_host_counters(tmp_path / "nowhere").load is None
    files = ("stat", "loadavg", "pressure_cpu", "self_schedstat")
    found = host.read_host_counters(proc(tmp_path, **dict.fromkeys(files, text)))
    assert [found.busy, found.stolen, found.load, found.pressed, found.waited] == [None] * 5


def test_children_are_found_with_their_cpu() -> None:
    program = "import time\nwhile time.process_time() < 0.1: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert 0.09 <= dict(host.read_child_cpu_times())[child.pid] < 60
        child.communicate(b"\n")


IDLE = HostFacts("h", 2, 0.5, 0.5, 0.2, other_cpu=0.02, stolen=0.0, pressed=0.1, waited=0.01, denied=0.05)
CROWDED = replace(IDLE, load_begin=20.0, load_end=45.0, other_cpu=0.75, pressed=0.99, waited=0.1, denied=0.7)
UNTOLD = replace(CROWDED, waited=None, denied=None)

OTHERS = "other programs used 75.0 % of its CPU"


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (IDLE, ""),
        (CROWDED, OTHERS),
        (replace(IDLE, stolen=0.3), "a hypervisor gave 30.0 % of its CPU to others"),
        # All of the load is the run's own: its workers wait for each other.
        (replace(CROWDED, own_cpu=0.97, other_cpu=0.03), ""),
        # Programs of low priority use what is left.
        (replace(CROWDED, waited=0.001, denied=0.01), ""),
        # What used one core left the other one to the run.
        (replace(IDLE, other_cpu=0.5), ""),
        # No schedstat: the run queue, of which the processes of the run are no part.
        (UNTOLD, OTHERS),
        (replace(UNTOLD, pressed=None), OTHERS),
        (replace(UNTOLD, processes=42), ""),
        (replace(UNTOLD, pressed=0.3), ""),
        (replace(UNTOLD, cores=0), OTHERS),
        (HostFacts("h", 2), ""),
    ],
)
def test_a_machine_was_shared_where_the_run_waited_for_others(facts: HostFacts, why: str) -> None:
    assert describe_shared_host(facts) == why


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_listening_socket_is_found_with_its_process(family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family) as listening:
        try:
            listening.bind((address, 0))
        except OSError:
            pytest.skip("this machine has no such address")
        port = listening.getsockname()[1]
        assert host.find_listening_sockets(address, port) == set()  # it does not listen yet
        listening.listen()
        found = host.find_listening_sockets(address, port)
        assert len(found) == 1
        assert host.has_socket(os.getpid(), found)
        assert not host.has_socket(os.getpid(), set())
        assert host.find_listening_sockets("192.0.2.1", port) == set()
        assert host.find_listening_sockets("box.test", port) == set()
    assert not host.has_socket(os.getpid(), found)


def test_a_socket_of_all_addresses_listens_at_each(tmp_path: Path) -> None:
    head = "  sl  local_address rem_address st tx_queue tr tm->when retrnsmt uid timeout inode\n"
    lines = [
        "0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 7 1",
        "1: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 8 1",
        "2: 00000000:1F90 00000000:0000 01 00000000:00000000 00:00000000 00000000 0 0 9 1",
        "3: cut",
    ]
    folder = proc(tmp_path, net_tcp=head + "\n".join(lines))
    assert host.find_listening_sockets("127.0.0.1", 8080, folder) == {"socket:[7]"}
    (folder / "net" / "tcp").rename(folder / "net" / "tcp6")
    assert host.find_listening_sockets("127.0.0.1", 8080, folder) == {"socket:[7]"}


def test_the_cpu_of_processes_that_are_there() -> None:
    mine = os.getpid()
    found = dict(host.read_cpu_times([mine, 2**22 + 1]))
    assert list(found) == [mine]
    assert 0 < found[mine] <= time.process_time() + 0.1


def test_without_a_free_descriptor_nothing_is_known() -> None:
    """Looking for children after a measurement was a traceback, and the report was lost."""
    used = HostUsage([os.getpid()])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        assert list(host.read_child_cpu_times()) == []
        assert [pid for pid, _ in host.read_cpu_times([os.getpid()])] == [os.getpid()]
        assert host.find_listening_sockets("127.0.0.1", 1) == set()
        assert not host.has_socket(os.getpid(), {"socket:[1]"})
        assert host.read_host_counters().load is None
        assert list(used.facts([])) == []  # the run was short
        assert find_server_processes(["http://127.0.0.1:1/"]) == set()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert host.list_process_folders()
