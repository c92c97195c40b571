"""``suite``: where it goes on, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from asked_commands import ask
from golden_words import GoldenWords

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import master, run_scenario
from ssbench.cli.options import choose_report_files

SCENARIO = {
    "sizes": [{"name": "o", "size": 1}],
    "initial_files": {"o": 1},
    "profile": {"read": 1},
    "user_count": 1,
}


def choose(folder: Path, *, resume: bool = True) -> Path:
    arguments = ask("suite", results_dir=folder, resume=resume)
    return run_scenario.choose_plan_file(arguments, run_scenario.PlanFiles("my_suite", "the suite my suite"))


def test_it_goes_on_with_the_last_call_that_has_a_result(tmp_path: Path) -> None:
    """One that was killed while it prepared has an empty file, and all runs still to make."""
    with pytest.raises(UsageError, match="has no run of the suite my suite"):
        choose(tmp_path)
    (tmp_path / "my_suite.2026-01-02.030406.a-1.stat.gz").touch()
    (tmp_path / "other.2027-01-02.030406.a-1.stat.gz").write_text("x")
    assert choose(tmp_path).name == "my_suite.2026-01-02.030406.stat.gz"
    (tmp_path / "my_suite.2026-01-02.030405.a-1.stat.gz").write_text("x")
    (tmp_path / "my_suite.2026-01-01.030405.a-1.stat.gz").write_text("x")
    assert choose(tmp_path).name == "my_suite.2026-01-02.030405.stat.gz"
    assert choose(tmp_path, resume=False).name > "my_suite.2026-01-02.030406.stat.gz"


def test_reports_of_the_call_that_was_interrupted_are_replaced(tmp_path: Path) -> None:
    """So that the same command goes on: Ctrl-C has written them."""
    page = tmp_path / "page.html"
    page.write_text("of the first call")
    words = ["suite", "quick", "--html", str(page)]
    parser = master.make_command_parsers()["suite"]
    with pytest.raises(UsageError, match="exists already"):
        choose_report_files(parser.parse_args(words[1:])).check([], None)
    choose_report_files(parser.parse_args([*words[1:], "--resume"])).check([], None)


def test_what_is_refused_before_the_first_run_writes_no_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    page = tmp_path / "page.html"
    page.write_text("of an earlier suite")
    rows = {
        "quiet": {"scenario": "o"},
        "fault": {"scenario": "o", "set": {"events": [{"at": 1, "command": "x"}]}},
    }
    suite = {"name": "s", "seconds": 1, "scenarios": {"o": SCENARIO}, "rows": rows}
    file = tmp_path / "suite.yaml"
    file.write_text(yaml.safe_dump(suite))
    words = ["suite", str(file), "--noop", "--workers", "1", "--results-dir", str(tmp_path)]
    assert master.main([*words, "--html", str(page), "--force"]) == ExitCode.USAGE
    said = capsys.readouterr()
    golden_words(said.err)
    assert "Run 1" not in said.err
    assert page.read_text() == "of an earlier suite"
    assert not said.out
