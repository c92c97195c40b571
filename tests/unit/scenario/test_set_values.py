"""Values that suites and the command line put into a scenario; what they do to runs is tested with suites."""

from __future__ import annotations

import pytest
from golden_words import GoldenWords

from ssbench.scenario.set_values import set_value


def test_objects_are_those_of_all_size_classes_in_their_proportion(golden_words: GoldenWords) -> None:
    data: dict[str, object] = {"initial_files": {"small": 2, "large": 1, "none": 0}}
    set_value(data, "objects", "1e4")  # YAML says that this is a text
    assert data["initial_files"] == {"small": 6667, "large": 3333, "none": 0}
    for value in (0, 1.5, "x", None, 2e9):
        with golden_words.raises(ValueError):
            set_value(data, "objects", value)
    with pytest.raises(ValueError, match="no initial_files"):
        set_value({}, "objects", 5)


def test_one_of_two_keys_that_say_the_same_replaces_the_other() -> None:
    data: dict[str, object] = {"container_count": 5, "crud_profile": [1, 0, 0, 0]}
    set_value(data, "objects_per_container", 100)
    set_value(data, "profile", {"read": 1})
    assert data == {"objects_per_container": 100, "profile": {"read": 1}}
    set_value(data, "container_count", 7)
    assert data == {"container_count": 7, "profile": {"read": 1}}
