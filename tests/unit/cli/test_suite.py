"""``suite``: which reports it replaces, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from golden_words import GoldenWords

from ssbench.base.errors import ExitCode, UsageError
from ssbench.cli import master
from ssbench.cli.options import choose_report_files

SCENARIO = {
    "sizes": [{"name": "o", "size": 1}],
    "initial_files": {"o": 1},
    "profile": {"read": 1},
    "user_count": 1,
}


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
