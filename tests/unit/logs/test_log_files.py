"""Files of logs: which are found, and how they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssbench.base.errors import UsageError
from ssbench.logs import log_files
from ssbench.logs.log_files import _name_log_files, find_log_files


def names(*paths: str) -> list[str]:
    return [*_name_log_files([Path(each) for each in paths]).values()]


def test_files_have_as_many_folders_in_their_names_as_tell_them_apart() -> None:
    assert names("/logs/proxy.log") == ["proxy"]
    assert names("/logs/proxy.log", "/logs/object.log") == ["proxy", "object"]
    assert names("/logs/a/swift.log", "/logs/b/swift.log") == ["a/swift", "b/swift"]
    assert names("/a/logs/swift.log", "/b/logs/swift.log") == ["a/logs/swift", "b/logs/swift"]
    assert names("/swift.log", "/a/swift.log") == ["//swift", "a/swift"]


def test_files_of_one_folder_that_differ_in_their_endings_are_one_log() -> None:
    assert names("/logs/a.log", "/logs/a.log.1", "/logs/a.log.2.gz", "/logs/a-20261121.log") == ["a"] * 4


def test_a_node_may_be_named_and_a_folder_is_all_files_in_it(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("one.log", "deep/two.log"):
        (tmp_path / name).write_text("")
    found = find_log_files([str(tmp_path), f"n1={tmp_path / 'one.log'}"])
    assert {(each.path.name, each.node, each.named) for each in found} == {
        ("one.log", "n1", True),
        ("two.log", "two", False),
    }
    with pytest.raises(UsageError, match="no such log file"):
        find_log_files([str(tmp_path / "three.log")])


def test_files_of_a_rotation_are_of_one_node(tmp_path: Path) -> None:
    for name in ("object.log", "object.log.1", "object.log-20261121.gz", "proxy-1.log"):
        (tmp_path / name).touch()
    assert sorted(file.node for file in log_files.find_log_files([str(tmp_path)])) == [
        "object",
        "object",
        "object",
        "proxy-1",
    ]


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no files"):
        log_files.find_log_files([str(tmp_path)])
