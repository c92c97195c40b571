"""``--versus 'without GROUP'``: both ways to run, and what does not go with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_commands import ask

from ssbench.base.errors import UsageError
from ssbench.cli import run_scenario as command
from ssbench.cli import unfit_options
from ssbench.cli.asked import fit_options
from ssbench.plans.plan_work import PlanSide

SCENARIO = """\
name: three
sizes:
  - {name: small, size_min: 1, size_max: 10}
  - {name: big, size_min: 1000, size_max: 2000}
initial_files: {small: 20, big: 3}
run_seconds: 5
groups:
  - {name: web, users: 3, sizes: {small: 1}, profile: {read: 1}}
  - {name: api, users: 2, sizes: {small: 1}, profile: {read: 1}}
  - {name: noisy, users: 9, sizes: {big: 1}, profile: {create: 1}}
fail_if: [errors > 1%, noisy.create.p99 > 1s, web.read.p99 > 2s]
"""


@pytest.fixture(name="scenario", autouse=True)
def _scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SSBENCH_CONFIG", "")
    path = tmp_path / "three.yaml"
    path.write_text(SCENARIO)
    return path


def make_sides(*words: object) -> list[PlanSide]:
    asked = ask("run-scenario", "--noop", "--workers", "1", "--repeat", "4", *map(str, words))
    return command._make_sides(asked, asked, command.RunPlace())[1]


def test_the_first_way_lacks_the_group_with_its_objects_users_conditions_and_goals(scenario: Path) -> None:
    without, whole = make_sides(
        "-f", scenario, "-r", 60, "--versus", "without noisy", "--until", "web.rate 5% and noisy.rate 5%"
    )
    assert [each.name for each in whole.scenario.groups] == ["web", "api", "noisy"]
    assert [each.name for each in without.scenario.groups] == ["web", "api"]
    assert (without.scenario.user_count, whole.scenario.user_count) == (5, 14)
    assert without.scenario.fail_if == ("errors > 1%", "web.read.p99 > 2s")
    initial = [[each.initial_files for each in side.scenario.size_classes] for side in (without, whole)]
    assert initial == [[40, 0], [40, 3]]
    assert [[each.group for each in side.options.until] for side in (without, whole)] == [
        ["web"],
        ["web", "noisy"],
    ]
    assert without.scenario.run_seconds == whole.scenario.run_seconds == 60
    # The other groups are what they were.
    assert without.scenario.parts == whole.scenario.parts[:2]


def test_a_group_that_is_not_there_is_refused(scenario: Path) -> None:
    with pytest.raises(
        UsageError, match=r"^nosy is not a group .* 'three', which has web, api, noisy; did you mean noisy"
    ):
        make_sides("-f", scenario, "--versus", "without nosy")
    with pytest.raises(UsageError, match=r"^web: the scenario .* has no groups of users"):
        make_sides("-f", "very_small", "--versus", "without web")
    lines = SCENARIO.splitlines()
    scenario.write_text(
        "\n".join(
            line
            for line in lines
            if "name: api" not in line and "name: noisy" not in line and "fail_if" not in line
        )
    )
    with pytest.raises(UsageError, match="three has no users but those of group 'web'"):
        make_sides("-f", scenario, "--versus", "without web")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "--versus needs --repeat"),
        (("--repeat", "4", "--replay", "proxy.log"), "leave out .*--replay"),
        (("--repeat", "4", "--ab", "a=gold", "b=silver"), "leave out .*--ab"),
        (("--repeat", "4", "--sweep", "users=1,2"), "leave out --sweep"),
        (("--repeat", "4", "--find", "p99 < 1s"), "leave out .*--find"),
        (("--repeat", "4", "--metrics", "9102"), "runs of two kinds"),
    ],
)
def test_what_does_not_go_with_it(words: tuple[str, ...], why: str, scenario: Path) -> None:
    asked = ask("run-scenario", "-f", str(scenario), "--versus", "without noisy", *words)
    with pytest.raises(UsageError, match=why):
        fit_options(asked, unfit_options.UNFIT_FOR_CALL, None)


def test_a_page_shows_both_kinds_of_runs(scenario: Path) -> None:
    asked = ask(
        "run-scenario",
        "-f",
        str(scenario),
        *("--versus", "without noisy", "--repeat", "4"),
        "--metrics",
        "web",
    )
    assert fit_options(asked, unfit_options.UNFIT_FOR_CALL, None) is asked
