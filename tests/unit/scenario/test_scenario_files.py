"""Where scenario files are found: by path, or by the name of one that ships."""

from __future__ import annotations

from importlib import resources

import pytest
from golden_words import GoldenWords
from said import NO_SUCH_FILE
from scenario_texts import YAML, faults_of

from ssbench.base.errors import ScenarioError
from ssbench.scenario.scenario_files import list_shipped_scenarios
from ssbench.scenario.scenario_reading import read_scenario


def test_no_such_file_tells_what_there_is(tmp_path):
    (fault,) = faults_of(str(tmp_path / "none.yaml"))
    assert f"{NO_SUCH_FILE}; expected a scenario file or the name of a shipped one" in fault
    assert "very_small" in fault


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("scenarios/smal_test.scenario", "small_test"),
        ("smal", "small"),
        ("Very-Small.yaml", "very_small"),
        ("4kb_read", "4kB_read"),
    ],
)
def test_what_replaces_a_scenario_that_is_not_there(
    tmp_path, monkeypatch, asked, meant, golden_words: GoldenWords
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        read_scenario(asked)
    text = str(caught.value)
    golden_words(text)
    assert "'ssbench-master help scenarios'" in text  # other sub-commands say this too
    assert "\n" not in text


def test_folder_and_names_that_are_none(tmp_path):
    assert "expected a scenario file" in faults_of(str(tmp_path))[0]
    with pytest.raises(ScenarioError, match="expected a scenario file"):
        read_scenario("a\0b")
    with pytest.raises(ScenarioError, match="cannot be read: File name too long"):
        read_scenario("a" * 5000)
    with pytest.raises(ScenarioError, match=f"{NO_SUCH_FILE}; did you mean very_small, which ships"):
        read_scenario("../very_small")


@pytest.mark.parametrize(
    "name", ["very_small", "very_small.yaml", "very_small.scenario", "scenarios/very_small.scenario"]
)
def test_shipped_scenarios_by_name(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert read_scenario(name).name == "Small test scenario"
    assert "very_small" in dict(list_shipped_scenarios())


def test_a_file_wins_over_a_shipped_scenario_and_a_folder_does_not(tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "very_small").mkdir()
    assert read_scenario("very_small").name == "Small test scenario"
    write(YAML, "small")
    assert read_scenario("small").name == "Small test scenario"


def test_shipped_scenarios_of_an_installed_package(tmp_path, monkeypatch, write):
    write("# What for\n" + YAML, "mine.yaml")
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    assert list_shipped_scenarios() == [("mine", "What for")]
    assert read_scenario("mine").name == "Small test scenario"


def test_a_folder_is_no_scenario(tmp_path, golden_words: GoldenWords):
    with golden_words.raises(ScenarioError):
        read_scenario(str(tmp_path))
