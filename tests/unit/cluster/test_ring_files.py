"""Files of rings: read without Swift, and named after what they are of."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from ssbench.base.errors import UsageError
from ssbench.cluster import ring


def test_rings_without_a_swift_to_read_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(
        UsageError,
        match=r"needs the package 'swift': pip install swift eventlet \(or [^)]*\); or name the",
    ):
        ring.read_ring_servers(tmp_path)
    with pytest.raises(
        UsageError,
        match=r"--ring needs the package 'swift': pip install swift eventlet \(or [^)]*\)$",
    ):
        ring.find_placed_replicas([tmp_path / "object.ring.gz"], {})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("object.ring.gz", ("object", 0)),
        ("object-12.ring.gz", ("object", 12)),
        ("account.ring.gz", ("account", 0)),
        ("object.builder", None),
        ("objects.ring.gz", None),
    ],
)
def test_what_a_ring_is_of_is_in_its_name(name: str, expected: tuple[str, int] | None):
    if expected is None:
        with pytest.raises(ValueError, match=r"expected object\.ring\.gz, "):
            ring.parse_ring_kind(Path(name))
    else:
        assert ring.parse_ring_kind(Path("/etc/swift", name)) == expected
