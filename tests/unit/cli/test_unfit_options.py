"""Options that do not go together or do not fit the scenario: refused or, where set elsewhere, left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_commands import ask
from golden_words import GoldenWords
from said import RUN_HAS_RATE
from settings_files import enter_empty_folder, write_own_settings, write_settings

from ssbench.base.errors import UsageError
from ssbench.cli import run_scenario as command
from ssbench.cli import unfit_options
from ssbench.cli.asked import fit_options, get_value, name_field
from ssbench.cli.option_table import RunScenarioAsked
from ssbench.cli.parser import Origin


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, without settings; the user has none either."""
    return enter_empty_folder(tmp_path, monkeypatch)


def fit(*words: str) -> RunScenarioAsked:
    """Return what is asked of run-scenario, without what does not fit."""
    asked = fit_options(ask("run-scenario", *words, settings=True), unfit_options.UNFIT_FOR_CALL, None)
    unfit_options.check_options(asked)
    return asked


def test_a_sweep_writes_all_of_its_reports_wherever_they_are_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    write_own_settings('[run-scenario]\nhtml = "found.html"\nci = "found.xml"')
    caplog.set_level("INFO")
    found = fit("-f", "small", "-r", "1", "--sweep", "users=1..8")
    assert (str(found.html), found.ci) == ("found.html", [])
    assert "--ci is ignored: --sweep has no such report" in caplog.text


def test_of_several_reports_for_ci_those_that_a_sweep_has_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    write_own_settings('[run-scenario]\nci = ["found.xml", "found.md"]')
    caplog.set_level("INFO")
    found = fit("-f", "small", "-r", "1", "--sweep", "users=1..8")
    assert [str(path) for _, path in found.ci] == ["found.md"]
    assert "some values of --ci are ignored: --sweep has no such report" in caplog.text
    assert len(fit("-f", "small", "-r", "1").ci) == 2


def test_a_sweep_leaves_out_what_is_set_for_single_runs(
    caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    write_settings(
        '[run-scenario]\nfail-if = ["errors > 0.1%"]\nreport = "summary"\nworkers = 4\nuser-count = 8'
    )
    caplog.set_level("INFO")
    found = fit("-f", "small", "-r", "1", "--sweep", "users=1..8")
    assert (found.fail_if, found.report, found.workers) == ([], None, 4)
    assert [each.flag for each in found.left_out] == ["--report", "--fail-if"]
    for option in ("--fail-if", "--report"):
        said = f"ssbench.toml [run-scenario]: {option} is ignored: --sweep makes many runs"
        assert said in caplog.text
    fit("-f", "small", "-r", "1", "--sweep", "workers=1..4")
    with golden_words.raises(UsageError):
        fit("-f", "small", "-r", "1", "--sweep", "users=1..8", "--fail-if", "errors > 1%")
    with pytest.raises(UsageError, match="--workers"):
        fit("-f", "small", "-r", "1", "--sweep", "workers=1..4", "--workers", "2")


@pytest.mark.parametrize("words", [[], ["-u", "2"]])
def test_a_pause_of_no_effect_is_refused(words: list[str]) -> None:
    write_settings(
        '[run-scenario]\npause = "1s"'
    )  # which is for runs that are repeated, and right with all others
    fit("-f", "small", "-r", "1", *words)
    with pytest.raises(UsageError, match="leave out --pause"):
        fit("-f", "small", "-r", "1", "--pause", "1s", *words)


STAGED = """
name: staged
sizes: [{name: tiny, size_min: 1, size_max: 1}]
initial_files: {tiny: 1}
crud_profile: {read: 1}
user_count: 2
stages: [{seconds: 1, users: 1}, {seconds: 1, rate: 5}]
"""


@pytest.mark.parametrize(
    ("setting", "words", "said"),
    [
        ('ci = "x.xml"', ["--repeat", "2"], "--ci is ignored: --repeat has no such report"),
        (
            "metrics = 9102",
            ["--repeat", "2", "--versus="],
            "--metrics is ignored: --versus is for",
        ),
        ('until = "2%"', ["--rate", "5"], f"--until is ignored: {RUN_HAS_RATE}"),
        ('versus = "-u 2"', [], "--versus is ignored: it needs --repeat"),
        ("run-seconds = 60", ["-f", "staged.yaml"], "--run-seconds is ignored: the scenario has stages"),
        ('policy = "gold"', ["--ab", "a=gold", "b=silver"], "--policy is ignored: --ab names the policies"),
    ],
)
def test_what_is_set_and_does_not_fit_is_ignored(
    setting: str, words: list[str], said: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "staged.yaml").write_text(STAGED)
    write_own_settings(f"[run-scenario]\n{setting}")
    caplog.set_level("INFO")
    words = [*([] if "-f" in words else ["-f", "small"]), *words]
    flag = "--" + setting.partition(" ")[0]
    asked = ask("run-scenario", *words, settings=True)
    assert get_value(asked, name_field(flag))
    fitted, _ = command.load_asked_scenario(fit(*words), command.RunPlace())
    assert not get_value(fitted, name_field(flag))
    assert get_value(asked, name_field(flag))  # what was asked stays as it was
    assert [each.flag for each in fitted.left_out] == [flag]
    is_of_scenario = fitted.find_source(name_field(flag)).origin is Origin.SCENARIO
    assert is_of_scenario == (flag in {"--until", "--run-seconds"})
    assert f"ssbench.toml [run-scenario]: {said}" in caplog.text


@pytest.mark.parametrize(
    "words",
    [
        ["-f", "small"],
        ["-o", "5"],
        ["-r", "5"],
        ["-c", "3"],
        ["--delete-after", "60"],
        ["--phases", "put,get"],
        ["--ab", "a=gold", "b=silver"],
        ["--existing", "c"],
        ["--part", "1/2"],
        ["--verify"],
        ["--until", "read.p99 5%"],
    ],
)
def test_a_replay_says_itself_what_is_done(words: list[str]) -> None:
    asked = ask("run-scenario", "--replay", "proxy.log speed 2", *words, settings=True)
    with pytest.raises(UsageError, match=r"^--replay .*: leave out -"):
        fit_options(asked, unfit_options.UNFIT_FOR_SIDE, None)


@pytest.mark.parametrize(
    "setting", ["sizes=3", "profile.read=2", "initial_files.object=9", "objects=9", "think_time=1s"]
)
def test_a_replay_takes_no_setting_of_what_the_log_says(setting: str, golden_words: GoldenWords) -> None:
    with golden_words.raises(UsageError):
        unfit_options.check_replay(ask("run-scenario", "--replay", "proxy.log", "--set", setting))
    unfit_options.check_replay(
        ask("run-scenario", "--replay", "proxy.log", "--set", "body={compressible: 0.5}")
    )
    unfit_options.check_replay(ask("run-scenario", "-f", "small", "--set", setting))


def test_a_replay_is_swept_by_its_rate_alone(golden_words: GoldenWords) -> None:
    unfit_options.check_replay(ask("run-scenario", "--replay", "proxy.log", "--sweep", "rate=10..40"))
    with golden_words.raises(UsageError):
        unfit_options.check_replay(ask("run-scenario", "--replay", "proxy.log", "--sweep", "users=1,2"))
