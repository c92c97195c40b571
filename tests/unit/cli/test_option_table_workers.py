"""Which options say that workers of other hosts come, and which commands have those of a run."""

from __future__ import annotations

import pytest
from asked_commands import ask

from ssbench.cli import master, option_table


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run-scenario", False),
        ("run-scenario --batch-size 2", False),
        ("run-scenario --expect-workers 1", True),
        ("run-scenario --worker-timeout 60", True),
        ("run-scenario --part 1/2", True),
        ("run-scenario --part 1/2@14:30:00", True),
        ("run-scenario --zmq-work-port 13579", True),
        ("run-scenario --zmq-key FILE", True),
        ("suite", False),
        ("suite --worker-timeout 60", True),
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
