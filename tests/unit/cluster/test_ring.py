"""Ring files, which a process of its own reads: servers, replicas of partitions, and files that are none."""

from __future__ import annotations

import gzip
import json
import struct
import sys
from array import array
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.cluster import ring
from ssbench.cluster.ring import RingKind, RingReplica

#: A ring of four partitions; the last replica has only two of them.
DEVICES: list[dict[str, Any] | None] = [
    {"id": 0, "ip": "10.0.0.1", "port": 6200, "device": "sda", "region": 1, "zone": 1, "weight": 1.0},
    None,
    {"id": 2, "ip": "fe80::2", "port": 6201, "device": "sdb", "region": 1, "zone": 1, "weight": 1.0},
]
PLACES = ([0, 2, 0, 2], [2, 0])


def write_ring(path: Path, devices: list[dict[str, Any] | None] = DEVICES) -> Path:
    """Write a ring as Swift 1.8 and later do: a header, its length, and the devices of each replica."""
    header = json.dumps(
        {"devs": devices, "part_shift": 30, "replica_count": len(PLACES), "byteorder": sys.byteorder}
    ).encode()
    places = b"".join(array("H", row).tobytes() for row in PLACES)
    path.write_bytes(gzip.compress(b"R1NG\0\1" + struct.pack("!I", len(header)) + header + places))
    return path


def test_servers_are_in_the_urls_of_all_rings_once(tmp_path: Path) -> None:
    write_ring(tmp_path / "object.ring.gz")
    write_ring(tmp_path / "object-1.ring.gz")
    write_ring(tmp_path / "container.ring.gz", [{**DEVICES[0], "port": 6211}] * 3)
    assert ring.read_ring_servers(tmp_path) == [
        "http://10.0.0.1:6200",
        "http://[fe80::2]:6201",
        "http://10.0.0.1:6211",
    ]


def test_replicas_of_partitions(tmp_path: Path) -> None:
    first, second = RingReplica("10.0.0.1", 6200, "sda"), RingReplica("fe80::2", 6201, "sdb")
    path = write_ring(tmp_path / "object-3.ring.gz")
    gold = RingKind("object", 3)
    found = ring.find_placed_replicas([path], {gold: [0, 1, 3, 9], RingKind("object", 0): [2]})
    assert found == {gold: {0: [first, second], 1: [second, first], 3: [second], 9: []}}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("object.ring.gz", RingKind("object", 0)),
        ("object-12.ring.gz", RingKind("object", 12)),
        ("container.ring.gz", RingKind("container", 0)),
        ("account.ring.gz", RingKind("account", 0)),
    ],
)
def test_what_a_ring_is_of_is_in_its_name(name: str, expected: RingKind) -> None:
    assert ring.parse_ring_kind(Path("/etc/swift") / name) == expected


@pytest.mark.parametrize("name", ["object.builder", "object-.ring.gz", "proxy.ring.gz", "object.ring"])
def test_other_names_are_refused(name: str, golden_words: GoldenWords) -> None:
    with golden_words.raises(ValueError):
        ring.parse_ring_kind(Path(name))


def test_a_folder_without_rings_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"^--observe {tmp_path}: no ring file there "):
        ring.read_ring_servers(tmp_path)


def test_a_file_that_is_no_ring_is_named_with_the_reason(tmp_path: Path, golden_words: GoldenWords) -> None:
    write_ring(tmp_path / "account.ring.gz")
    damaged = tmp_path / "object.ring.gz"
    damaged.write_bytes(gzip.compress(b"\x80\x02cposix\nsystem\nX\x04\0\0\0true\x85R."))
    with golden_words.raises(UsageError) as caught:
        ring.read_ring_servers(tmp_path)
    assert str(caught.value).startswith(f"{damaged}: ")


def test_a_device_whose_name_is_none_is_refused(tmp_path: Path) -> None:
    path = write_ring(tmp_path / "object.ring.gz", [{**DEVICES[0], "device": "a b"}] * 3)
    with pytest.raises(UsageError, match="'a b' is no name of a device"):
        ring.find_placed_replicas([path], {RingKind("object", 0): [0]})


def test_without_swift_it_is_said_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden_words: GoldenWords
) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "swift":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(UsageError, match=r"^--observe needs the package 'swift': .*; or name the servers"):
        ring.read_ring_servers(tmp_path)
    with golden_words.raises(UsageError):
        ring.find_placed_replicas([], {})
