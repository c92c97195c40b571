"""Objects that exist already: those that are found, and names that a file has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from golden_words import GoldenWords

from ssbench.base.errors import ClusterError, UsageError
from ssbench.run.bench_options import ExistingIn, RunOptions
from ssbench.run.setup import _read_names, find_existing_objects
from ssbench.run.tokens import TokenSource
from ssbench.scenario.model import Scenario, SizeClass, UserGroup
from ssbench.store.stores import STORE

READS = {"read": 3.0, "list": 1.0}
SMALL = SizeClass("small", 1, 10, 3, READS)
LARGE = SizeClass("large", 11, 1000, 1, {"read": 1.0, "range": 1.0})
SCENARIO = Scenario("s", (SMALL, LARGE), 4, 100, delete_after=60, policy="gold")


def test_a_group_of_users_without_any_object_is_refused(
    monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    """Its operations could be for none of its size classes."""
    groups = tuple(
        UserGroup(name, tuple(replace(each, weight=float(each is own)) for each in (SMALL, LARGE)), 1)
        for name, own in (("web", SMALL), ("backup", LARGE))
    )
    scenario = replace(SCENARIO, groups=groups)
    listed = [("a", 5), ("b", 7)]
    monkeypatch.setattr(STORE, "objects", lambda *_arguments, **_options: listed)
    tokens = cast(TokenSource, SimpleNamespace(sessions=[None], renewing=lambda _number: None))
    with golden_words.raises(ClusterError):
        find_existing_objects(scenario, RunOptions(), ExistingIn(("c",)), tokens)
    listed.append(("c", 500))
    assert len(find_existing_objects(scenario, RunOptions(), ExistingIn(("c",)), tokens)) == 3


def test_names_of_a_file(tmp_path: Path, golden_words: GoldenWords) -> None:
    path = tmp_path / "names"
    path.write_bytes("photos/a/b.jpg\n\n/photos/#1 ä \r\n".encode())
    assert list(_read_names(path)) == [("photos", "a/b.jpg"), ("photos", "#1 ä ")]
    path.write_bytes(b"photos/a\nphotos\n")
    with pytest.raises(UsageError, match=r":2: expected CONTAINER/OBJECT.*'photos'"):
        list(_read_names(path))
    path.write_bytes(b"photos/a\nphotos/\xff\n")
    with pytest.raises(UsageError, match=r":2: expected UTF-8"):
        list(_read_names(path))
    with pytest.raises(UsageError, match="cannot be read"):
        list(_read_names(tmp_path / "missing"))
    path.write_bytes(b"a/ok\n../x\n")
    with pytest.raises(UsageError, match=":2: expected CONTAINER/OBJECT"):
        list(_read_names(path))
    path.write_bytes(b"\n\n")
    with golden_words.raises(UsageError):
        list(_read_names(path))


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", "/", "x" * 257, "ü" * 129, "\udcff"])
def test_what_no_container_can_be_called_is_refused(name: str) -> None:
    # The listing of the container "" would be that of the account: containers, taken for objects.
    with pytest.raises(UsageError, match=r"existing: .* cannot be the name of a container"):
        ExistingIn(("photos", name))
    assert ExistingIn(("ü" * 128, "...", ".a")).containers
