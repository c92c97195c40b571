"""Which address is which node's, by what object servers tell container servers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from counted import SCENARIO, Memory, row
from genuine_logs import DATA
from result_rows import block
from simulated_cluster import Cause, Shape, simulate

from ssbench.cluster import findings, joined_run, node_addresses
from ssbench.cluster.join import LogJoin
from ssbench.cluster.joined_run import OBJECT, Device, JoinedLines, JoinedRun
from ssbench.cluster.node_addresses import NodeAddresses
from ssbench.cluster.operation_times import READS
from ssbench.logs.log_files import LogFile
from ssbench.results.run_description import RunDescription

NODES = 4
ADDRESSES = {f"10.0.0.{number + 1}": f"n{number}" for number in range(NODES)}
OF_RUN = "tx0123456789abcdef01234-006b021e1d"


def cluster(kind: str, names: str = "alike") -> JoinedRun:
    """Twelve devices on n0 to n3, called sda to sdc on each, and who told container servers of writes."""
    joined = simulate(1, Cause(), Shape(devices=12, nodes=NODES, requests=800, ring=kind))
    devices = [
        replace(each, name=f"sd{'abc'[int(each.name[1:]) // NODES]}")
        if each.server == "object" and names == "alike"
        else each
        for each in joined.devices
    ]
    lines = joined.lines
    senders: dict[tuple[str, str], list[int]] = {}
    told = (lines.of == OBJECT) & ~READS[joined.operations.code[lines.operation]]
    for at in np.flatnonzero(told).tolist():
        device = devices[int(lines.device[at])]
        known = senders.setdefault((f"10.0.0.{int(device.node[1:]) + 1}", device.name), [])
        if len(known) < node_addresses.MAX_SENDER_OPERATIONS:
            known.append(int(lines.operation[at]))
    return replace(joined, devices=devices, senders=senders)


def without(joined: JoinedRun, node: str, share: float = 1.0) -> JoinedRun:
    """Leave out lines of a node, all or a share of them."""
    lost = np.array([each.node == node for each in joined.devices])[joined.lines.device]
    kept = ~(lost & (np.random.default_rng(1).random(len(lost)) < share))
    lines = JoinedLines(**{name: getattr(joined.lines, name)[kept] for name in JoinedLines.__slots__})
    left = [place for place, each in enumerate(joined.devices) if each.node != node or share < 1]
    place_of = np.zeros(len(joined.devices), np.int64)
    place_of[left] = np.arange(len(left))
    lines = replace(lines, device=place_of[lines.device])
    return replace(joined, lines=lines, devices=[joined.devices[place] for place in left])


@pytest.mark.parametrize("names", ["alike", "different"])
def test_addresses_are_known_where_a_ring_does_not_keep_devices_together(names: str) -> None:
    joined = cluster("grown", names)
    assert node_addresses.match_update_addresses(joined) == (ADDRESSES, [])
    name = "sda" if names == "alike" else "d1"
    assert NodeAddresses(joined, {}).name("10.0.0.2:6200", name, "object") == f"{name} on n1"
    # What the user says wins.
    assert NodeAddresses(joined, {"10.0.0.2": "n3"}).name("10.0.0.2:6200", name, "object") == f"{name} on n3"


def test_senders_of_five_operations_have_a_share_of_them_on_each_device_of_their_name() -> None:
    joined = cluster("grown", "alike")
    told = {sent: [*dict.fromkeys(places)] for sent, places in joined.senders.items()}
    (first, second, third) = [sent for sent in told if sent[1] == "sda"][:3]
    senders = {first: told[first][:4], second: told[second][:5], third: told[third][:4] + told[second][:1]}
    # The same operation twice is one of them.
    senders[second].append(senders[second][0])
    found = node_addresses._measure_sender_shares(replace(joined, senders=senders))
    assert {*found} == {second, third}
    lines = joined.lines
    for sent, shares in found.items():
        wrote = [*dict.fromkeys(senders[sent])]
        for place, share in shares.items():
            mine = set(lines.operation[(lines.device == place) & (lines.of == OBJECT)].tolist())
            assert joined.devices[place].name == "sda"
            assert share == sum(each in mine for each in wrote) / len(wrote)
        assert len(shares) == NODES
    assert node_addresses._measure_sender_shares(replace(joined, senders={first: told[first][:4]})) == {}


@pytest.mark.parametrize("kind", ["fresh", "grown"])
@pytest.mark.parametrize("names", ["alike", "different"])
@pytest.mark.parametrize("lost", ["n0", "n1", "n3"])
def test_nobody_is_called_by_a_wrong_name_and_a_missing_log_is_that_of_its_node(
    kind: str, names: str, lost: str
) -> None:
    address = next(each for each, node in ADDRESSES.items() if node == lost)
    whole = cluster(kind, names)
    assert node_addresses.match_update_addresses(whole).unlogged == []
    assert node_addresses.match_update_addresses(whole).hosts.items() <= ADDRESSES.items()
    found = node_addresses.match_update_addresses(without(whole, lost))
    assert found.hosts.items() <= ADDRESSES.items()
    assert found.unlogged in ([], [address])
    if kind == "grown" or names == "different":
        assert found.unlogged == [address]
        assert NodeAddresses(without(whole, lost), {}).unlogged == [address]
    # With half of its lines it is not without a log.
    assert node_addresses.match_update_addresses(without(whole, lost, 0.5)).unlogged == []


#: As Swift 2.38 writes it: the referer has the address of the proxy, as the client called it.
UPDATE = (
    "{} container-server: {} - - [21/Nov/2026:22:41:33 +0000]"
    ' "PUT /c1/4/AUTH_a/c/o" 201 - "PUT http://swift.example.com:8080/{}/9/AUTH_a/c/o"'
    f' "{OF_RUN}" "object-server 7" 0.0010 "-" 9 0\n'
)


def joined_lines(path: Path, text: str) -> JoinedRun:
    path.write_text(text)
    run = RunDescription(SCENARIO, run_id=0x1234)
    join = LogJoin(Memory(block([row()], [OF_RUN]), run=run))
    join.read([LogFile(path, "n1"), LogFile(path, "n2")])
    return join.joined()


def test_the_sender_of_an_update_is_in_its_line(tmp_path: Path) -> None:
    text = UPDATE.format("n1", "10.0.0.1", "sda") + UPDATE.format("n1", "fd00::2", "sda")
    joined = joined_lines(tmp_path / "log", text)
    assert joined.senders == {("10.0.0.1", "sda"): [0, 0], ("fd00::2", "sda"): [0, 0]}
    assert joined.devices == [Device("n1", "container", "c1")]


OBJECT_LINE = (
    "{} object-server: {} - - [21/Nov/2026:22:41:33 +0000]"
    ' "PUT /{}/9/AUTH_a/c/o" 201 - "PUT http://swift.example.com:8080/v1/AUTH_a/c/o"'
    f' "{OF_RUN}" "proxy-server 5" 0.0040 "-" {{}} 0\n'
)


@pytest.mark.parametrize(
    ("lines", "sender"),
    [
        ([("n1", "sda", 7), ("n2", "sdb", 7), ("n2", "sda", 8)], "sda on n1"),
        ([("n2", "sda", 8)], None),
        # Two nodes may have processes of the same number, and devices of the same name.
        ([("n1", "sda", 7), ("n2", "sda", 7)], None),
        ([], None),
    ],
)
def test_which_device_sent_an_update_is_known_by_process_and_name(
    tmp_path: Path, lines: list[tuple[str, str, int]], sender: str | None
) -> None:
    text = "".join(OBJECT_LINE.format(node, "10.0.0.9", device, pid) for node, device, pid in lines)
    path = tmp_path / "log"
    path.write_text(text + UPDATE.format("n1", "10.0.0.1", "sda"))
    join = LogJoin(Memory(block([row()], [OF_RUN]), run=RunDescription(SCENARIO, run_id=0x1234)))
    join.read([LogFile(path, "")])
    joined = join.joined()
    (update,) = np.flatnonzero(joined.lines.of == joined_run.UPDATE)
    place = joined.lines.sender[update]
    assert (None if place == joined_run.NO_INDEX else str(joined.devices[place])) == sender
    others = np.delete(joined.lines.sender, update)
    assert (others == joined_run.NO_INDEX).all()
    assert len(others) == len(lines)


def test_genuine_updates_name_no_proxy_as_a_storage_node(tmp_path: Path) -> None:
    # Two proxies at 127.0.0.1:18081 and 18082; three object servers at one IP.
    text = (DATA / "container.log").read_text()
    senders = {
        sent
        for trans_id in re.findall(r"tx[0-9a-f]{21}-[0-9a-f]{10}", text)
        for sent in joined_lines(tmp_path / "log", text.replace(trans_id, OF_RUN)).senders
    }
    assert senders == {("127.0.0.1", name) for name in ("d1", "d2", "d3")}


def test_an_address_of_several_nodes_tells_nothing() -> None:
    joined = cluster("grown", "different")
    senders = {("10.0.0.9", device): places for (_, device), places in joined.senders.items()}
    assert node_addresses.match_update_addresses(replace(joined, senders=senders)) == ({}, [])
    # Nor does it say that the log of one of them is missing.
    assert node_addresses.match_update_addresses(replace(without(joined, "n1"), senders=senders)) == ({}, [])


@pytest.mark.parametrize("how", ["user", "ring"])
def test_a_server_without_a_log_is_named_once(how: str) -> None:
    joined = without(cluster("grown"), "n1")
    assert findings.find_unlogged_servers(joined, NodeAddresses(joined, {}), []) == ["10.0.0.2"]
    if how == "ring":
        by_ring = ["10.0.0.2:6200"]
        assert findings.find_unlogged_servers(joined, NodeAddresses(joined, {}), by_ring) == by_ring
    else:  # it says that a node of the logs has this address
        assert (
            findings.find_unlogged_servers(joined, NodeAddresses(joined, {"10.0.0.2:6200": "n3"}), []) == []
        )


@pytest.mark.parametrize(
    ("referer", "device"),
    [
        (b"PUT http://[fd00::1]:6200/sda/9/a/c/o", b"sda"),
        (b"DELETE http://localhost/sda/9/a/c/o", b"sda"),
        (b"-", None),
        (b"PUT /sda/9/a/c/o", None),
        (b"PUT http://10.0.0.1:6200/", None),
    ],
)
def test_referers(referer: bytes, device: bytes | None) -> None:
    assert node_addresses.device_of_referer(referer) == device
