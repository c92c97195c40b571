"""Files of rings: read without Swift, and named after what they are of."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.cluster import ring


def test_rings_without_a_swift_to_read_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, golden_words: GoldenWords
):
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with golden_words.raises(UsageError):
        ring.read_ring_servers(tmp_path)
    with golden_words.raises(UsageError):
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
def test_what_a_ring_is_of_is_in_its_name(
    name: str, expected: tuple[str, int] | None, golden_words: GoldenWords
):
    if expected is None:
        with golden_words.raises(ValueError):
            ring.parse_ring_kind(Path(name))
    else:
        assert ring.parse_ring_kind(Path("/etc/swift", name)) == expected
