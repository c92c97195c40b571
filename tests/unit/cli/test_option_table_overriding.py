"""Options that override keys of a scenario: each with a value of its key, with a file and without."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from asked_commands import ask

from ssbench.base.errors import ScenarioError, UsageError
from ssbench.cli import master
from ssbench.cli import run_scenario as command
from ssbench.cli.option_table import RunScenarioAsked
from ssbench.cli.settings import list_settable_options
from ssbench.scenario.model import OVERRIDING_OPTIONS, SCENARIO_KEYS, Scenario
from ssbench.scenario.scenario_files import read_scenario_text

KEYS = {key.name: key for key in SCENARIO_KEYS}

#: In place of examples that only files may have.
TEXTS = {"delete_after": "60"}


def parse(*words: str) -> RunScenarioAsked:
    return ask("run-scenario", *words, settings=True)


def load(asked: RunScenarioAsked) -> Scenario:
    return command.load_asked_scenario(asked, command.RunPlace())[1]


@pytest.mark.parametrize("name", OVERRIDING_OPTIONS)
def test_an_option_overrides_its_key(name: str) -> None:
    options = list_settable_options(master.make_command_parsers()["run-scenario"])
    (option,) = (each for each, action in options.items() if action.dest == OVERRIDING_OPTIONS[name])
    text, rule = TEXTS.get(name, str(KEYS[name].example)), KEYS[name].rule
    assert rule is not None
    value = rule.read(yaml.safe_load(text))
    words = (f"--{option}", f"{name}={text}" if option == "set" else text)
    assert getattr(load(parse("-f", "small")), name) != value
    assert getattr(load(parse("-f", "small", *words)), name) == value
    assert getattr(load(parse("-f", "size=4kB mix=get", *words)), name) == value


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("think_time", "'think_time' is not KEY=VALUE"),
        ("user_count=4", "user_count has an option of its own: --user-count"),
        ("seconds=4", "seconds has an option of its own: --run-seconds"),
        ("popularity={", "popularity: '{' is not YAML"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(
    setting: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse("-f", "small", "--set", setting)
    assert f"argument --set: {said}" in capsys.readouterr().err


def test_settings_reach_every_key_of_a_scenario() -> None:
    words = ("--set", "popularity={zipf: 0.9}", "--set", "size=8kB", "--set", "sizes.tiny.size=2kB")
    found = load(parse("-f", "very_small", *words))
    assert found.popularity is not None
    assert {each.name: each.size_max for each in found.size_classes}["tiny"] == 2000
    assert {each.size_max for each in found.size_classes} == {2000, 8000}
    with pytest.raises(ScenarioError, match=r"think_tim: unknown key.*did you mean think_time"):
        load(parse("-f", "very_small", "--set", "think_tim=1"))
    with pytest.raises(UsageError, match=r"^--set sizes.x.size: there is no sizes.x \("):
        load(parse("-f", "very_small", "--set", "sizes.x.size=1"))


@pytest.mark.parametrize(("sweep", "is_idle"), [("rate=5,10", False), ("users=1,2", True)])
def test_arrivals_that_change_nothing_are_warned_of_in_sweeps_of_anything_but_rates(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sweep: str, is_idle: bool
) -> None:
    file = tmp_path / "poisson.yaml"
    file.write_text(read_scenario_text("very_small") + "arrivals: poisson\n")
    load(parse("-f", str(file), "-r", "1", "--sweep", sweep))
    assert ("arrivals: poisson has no effect" in caplog.text) == is_idle
