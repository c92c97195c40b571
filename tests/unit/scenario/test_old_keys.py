"""Keys of scenario files that ssbench 0.x took, and how each is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from golden_words import GoldenWords

from ssbench import load_scenario
from ssbench.base.errors import ScenarioError
from ssbench.scenario.scenario_reading import read_scenario

OLD = {
    "name": "old",
    "sizes": [{"name": "tiny", "size_min": 10, "size_max": 20}],
    "initial_files": {"tiny": 5},
    "operation_count": 20,
    "crud_profile": [1, 6, 1, 1],
    "user_count": 2,
}

#: As an article on ssbench prints one.
CAPITALS = """\
{
"Name": "old",
"Sizes": [{
"Name": "tiny",
"Size_min": 10,
"Size_max": 20
}],
"Initial_files": {
"Tiny": 5
},
"Operation_count": 20,
"Crud_profile": [1, 6, 1, 1],
"User_count": 2
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "old.scenario"


def with_changes(**changes: Any) -> dict[str, Any]:
    return json.loads(json.dumps(OLD | changes))


def test_a_key_that_nobody_knows_in_an_old_file_is_a_warning(
    file: Path, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    """ssbench 0.3.9 ignored it."""
    sizes = [{**OLD["sizes"][0], "_comment": "small ones"}]
    file.write_text(json.dumps(with_changes(description="mine", sizes=sizes)))
    assert read_scenario(str(file)) == load_scenario(OLD)
    golden_words(caplog.messages)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            json.dumps(with_changes(container_conut=5)),
            "container_conut: unknown key; did you mean container_c",
        ),
        (json.dumps(with_changes(description="mine", warmup=5)), "description: unknown key"),
        (yaml.safe_dump(with_changes(description="mine")), "description: unknown key"),
    ],
    ids=["misspelt", "a key of today", "YAML"],
)
def test_an_unknown_key_anywhere_else_is_a_fault(file: Path, text: str, expected: str) -> None:
    file.write_text(text)
    with pytest.raises(ScenarioError, match=expected):
        read_scenario(str(file))


def test_a_mapping_from_a_program_has_no_unknown_keys() -> None:
    with pytest.raises(ScenarioError, match="description: unknown key"):
        load_scenario(with_changes(description="mine"))


def test_keys_in_any_case_with_one_warning(
    file: Path, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    file.write_text(CAPITALS)
    assert read_scenario(str(file)) == load_scenario(OLD)
    golden_words(caplog.messages)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"User_count": 2', '"User_count": 0'),
        ('"Size_max": 20', '"Size_max": -1'),
        ('"Tiny": 5', '"Tiny": -1'),
        ('"User_count": 2', '"User_count": 2, "user_count": 3'),
    ],
)
def test_faults_of_such_a_file_have_their_lines(
    file: Path, old: str, new: str, golden_words: GoldenWords
) -> None:
    file.write_text(CAPITALS.replace(old, new))
    with golden_words.raises(ScenarioError):
        read_scenario(str(file))
