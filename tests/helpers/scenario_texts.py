"""A scenario file, what is read of it, and the faults of others."""

from __future__ import annotations

import pytest
import yaml

from ssbench.base.errors import ExitCode, ScenarioError
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.scenario_reading import read_scenario

YAML = """\
name: Small test scenario
sizes:
- name: tiny
  size_min: 4096
  size_max: 65536
- name: small
  size_min: 100000
  size_max: 200000
  crud_profile: [0, 9, 0, 1]
- name: unused
  size_min: 1
  size_max: 2
initial_files:
  small: 10
  tiny: 100
operation_count: 500
crud_profile: [3, 4, 2, 2]
user_count: 7
"""

EXPECTED = Scenario(
    name="Small test scenario",
    size_classes=(
        SizeClass("tiny", 4096, 65536, 100, (3.0, 4.0, 2.0, 2.0)),
        SizeClass("small", 100000, 200000, 10, (0.0, 9.0, 0.0, 1.0)),
    ),
    user_count=7,
    operation_count=500,
    data=yaml.safe_load(YAML),
)


def faults_of(path: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        read_scenario(path)
    assert caught.value.exit_code == ExitCode.USAGE
    lines = str(caught.value).splitlines()
    assert all(line.startswith(path + ":") for line in lines)
    return [line.removeprefix(path + ":") for line in lines]


STAGES = """\
stages:
- {seconds: 60, users: 16}
- {seconds: 30s, users: 16..64}
- {seconds: 1m, rate: 500}
- {seconds: 10, rate: 0..99.5, users: 7}
"""


def with_stages(stages: str = STAGES, users: str = "user_count: 64\n") -> str:
    return YAML.replace("operation_count: 500\n", stages).replace("user_count: 7\n", users)
