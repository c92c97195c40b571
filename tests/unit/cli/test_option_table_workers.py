"""Which options say that workers of other hosts come, and which commands have those of a run."""

from __future__ import annotations

import pytest
from asked_commands import ask
from golden_words import GoldenWords

from ssbench.base.errors import ExitCode
from ssbench.cli import master, option_table, plans
from ssbench.run.bench_options import ErrorLimit


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run-scenario", False),
        ("run-scenario --batch-size 2", False),
        ("run-scenario --expect-workers 1", True),
        ("run-scenario --expect-workers 1@60", True),
        ("run-scenario --part 1/2", True),
        ("run-scenario --part 1/2@14:30:00", True),
        ("run-scenario --zmq-work-port 13579", True),
        ("run-scenario --zmq-key FILE", True),
        ("suite", False),
        ("suite --expect-workers 1@60s", True),
        ("prepare", False),
        ("prepare --expect-workers 1", True),
    ],
)
def test_options_of_a_fleet_say_that_other_workers_come(
    words: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSBENCH_ZMQ_KEY", raising=False)
    assert option_table.expects_other_workers(ask(*words.split())) is expected


@pytest.mark.parametrize("command", ["suite", "noise"])
def test_commands_of_many_runs_have_no_options_of_one(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = master.parser([command])
    names = [row.name for row in option_table.list_single_run_options()]
    assert names == ["part"]
    assert ask(command).options.part is None
    with pytest.raises(SystemExit):
        parser.parse_args([command, "--part", "1/2"])
    assert "--part" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("--give-up-after=5m", (300.0, None)),
        ("--give-up-after=0", (0.0, None)),
        ("--give-up-after=1 error", (60.0, ErrorLimit(count=1))),
        ("--give-up-after=0.5% errors", (60.0, ErrorLimit(share=0.005))),
        ("--give-up-after=100 errors or 5s", (5.0, ErrorLimit(count=100))),
    ],
)
@pytest.mark.parametrize("command", ["run-scenario", "suite"])
def test_a_run_is_given_up_after_a_time_or_errors(
    command: str, words: str, fields: tuple[float, ErrorLimit | None]
) -> None:
    found = ask(command, words).options
    assert (found.give_up_after, found.max_errors) == fields


def test_the_second_way_to_run_may_be_given_up_earlier() -> None:
    asked = ask("run-scenario", "-f", "small", "--repeat=2", "--versus=--give-up-after='9 errors'")
    found = plans.parse_second_side(asked).options
    assert (found.give_up_after, found.max_errors) == (60.0, ErrorLimit(count=9))
    assert asked.options.max_errors is None


def test_workers_are_waited_for_so_long() -> None:
    found = ask("run-scenario", "--expect-workers", "4@5m").options
    assert (found.expect_workers, found.worker_timeout) == (4, 300.0)
    found = ask("prepare", "--expect-workers", "4").options
    assert (found.expect_workers, found.worker_timeout) == (4, 60.0)


@pytest.mark.parametrize(
    "words",
    [
        "--expect-workers=0",
        "--expect-workers=4@",
        "--expect-workers=4@0",
        "--expect-workers=@60",
        "--give-up-after=-1",
        "--give-up-after=",
        "--give-up-after=1%",
        "--give-up-after=x errors",
        "--give-up-after=1 or 2",
        "--give-up-after=1 error or 2 errors",
    ],
)
def test_other_values_are_refused(
    words: str, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    with pytest.raises(SystemExit):
        ask("run-scenario", words)
    golden_words(capsys.readouterr().err)


def test_uploads_are_not_given_up_after_errors(
    capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    assert master.main(["prepare", "small", "--give-up-after", "1% errors"]) == ExitCode.USAGE
    golden_words(capsys.readouterr().err)
