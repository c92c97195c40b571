"""Options that override keys of a scenario: each with a value of its key, with a file and without."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from asked_commands import ask

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
    return command._load_scenario(asked, command._Place())[1]


@pytest.mark.parametrize("name", OVERRIDING_OPTIONS)
def test_an_option_overrides_its_key(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = list_settable_options(master.make_command_parsers()["run-scenario"])
    (option,) = (each for each, action in options.items() if action.dest == OVERRIDING_OPTIONS[name])
    text, rule = TEXTS.get(name, str(KEYS[name].example)), KEYS[name].rule
    assert rule is not None
    value = rule.read(yaml.safe_load(text))
    arguments = parse("-f", "small", f"--{option}", text)
    assert getattr(load(parse("-f", "small")), name) != value
    assert getattr(load(arguments), name) == value
    assert command.run(parse("--size", "4kB", "--mix", "get", "--print-scenario", f"--{option}", text)) == 0
    assert yaml.safe_load(capsys.readouterr().out)[name] == value


@pytest.mark.parametrize(("sweep", "is_idle"), [("rate=5,10", False), ("users=1,2", True)])
def test_arrivals_that_change_nothing_are_warned_of_in_sweeps_of_anything_but_rates(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sweep: str, is_idle: bool
) -> None:
    file = tmp_path / "poisson.yaml"
    file.write_text(read_scenario_text("very_small") + "arrivals: poisson\n")
    load(parse("-f", str(file), "-r", "1", "--sweep", sweep))
    assert ("arrivals: poisson has no effect" in caplog.text) == is_idle
