"""What says how a log is replayed, as words of ``--replay`` and as options of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked_commands import ask
from full_run import write_full_run
from golden_words import GoldenWords

from ssbench.base.errors import UsageError
from ssbench.scenario.replay_source import Replay
from ssbench.traffic.run_options import ReplayAsked


def read(*words: object, settings: bool = False) -> tuple[str, Replay] | None:
    log = ask("run-scenario", *map(str, words), settings=settings).log
    assert isinstance(log, ReplayAsked)
    return log.read()


def test_options_say_the_same_as_words(tmp_path: Path) -> None:
    run = write_full_run(tmp_path / "run.stat.gz")
    by_words = read("--replay", f"{run} from 0.5s to 4s speed 2 copies 3")
    by_options = read("--replay", run, "--from", "0.5s", "--to", "4s", "--speed", "2", "--copies", "3")
    both = read("--replay", f"{run} from 0.5s copies 3", "--speed", "2", "--to", "4s")
    assert by_words is not None
    assert by_options is not None
    assert both is not None
    assert by_words[0] == by_options[0] == both[0]
    assert len(by_words[1]) == len(by_options[1]) == len(both[1])
    whole = read("--replay", run)
    assert whole is not None
    assert len(whole[1]) != len(by_words[1])


@pytest.mark.parametrize(
    "words",
    [
        ("--speed", "2"),
        ("--replay", "a.log speed 3", "--speed", "2"),
        ("--replay", "a.log from 10:00", "--from", "11:00"),
        ("--replay", "a.log speed 1", "--speed", "2"),
    ],
)
def test_options_without_a_log_or_said_twice_are_refused(
    words: tuple[str, ...], golden_words: GoldenWords
) -> None:
    with golden_words.raises(UsageError):
        read(*words)


def test_the_command_line_wins_over_what_else_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = write_full_run(tmp_path / "run.stat.gz")
    twice = read("--replay", f"{run} speed 2")
    assert twice is not None
    monkeypatch.setenv("SSBENCH_SPEED", "3")
    with caplog.at_level("INFO"):
        found = read("--replay", f"{run} speed 2", settings=True)
    assert found is not None
    assert found[0] == twice[0]
    assert caplog.messages == ["SSBENCH_SPEED: --speed is ignored: --replay says speed"]
    monkeypatch.setenv("SSBENCH_REPLAY", f"{run} speed 3")
    found = read("--speed", "2", settings=True)
    assert found is not None
    assert found[0] == twice[0]


def test_what_variables_say_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSBENCH_SPEED", "2")
    monkeypatch.setenv("SSBENCH_REPLAY", "a.log speed 2")
    with pytest.raises(UsageError, match=r"--replay says speed too"):
        read(settings=True)


def test_what_a_variable_sets_is_for_replays_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SSBENCH_SPEED", "2")
    with caplog.at_level("INFO"):
        assert read("-f", "small", settings=True) is None
    assert caplog.messages == ["SSBENCH_SPEED: --speed is ignored: it is for --replay"]


@pytest.mark.parametrize("words", [("--speed", "0"), ("--copies", "1.5"), ("--from", "noon")])
def test_a_wrong_value_is_refused(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ask("run-scenario", "--replay", "a.log", *words)
    assert words[1] in capsys.readouterr().err
