"""Reports into files at the end of a run: nothing that goes wrong there holds up the run."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from asked_commands import ask
from golden_words import GoldenWords

from ssbench.cli import output_file, run_report
from ssbench.cli.options import ReportFiles
from ssbench.cli.run_report import ReportPrinter
from ssbench.reports.writing import ReportOptions
from ssbench.results.reading import open_results
from ssbench.run.benchmark_run import RunOutcome
from ssbench.statistics.summary import summarize

KNOWN = Path(__file__).parents[2] / "data" / "version-1-known.stat.gz"


def printed(*wanted: tuple[str, Path]) -> ReportPrinter:
    printer = ReportPrinter(ReportFiles(wanted, force=False))
    printer.print(lambda: summarize(open_results(KNOWN)), None, ReportOptions())
    return printer


def test_a_file_that_cannot_be_written_is_told_and_the_others_are_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    good, bad = tmp_path / "good.xml", tmp_path / "bad.md"
    bad.write_text("made meanwhile by somebody else")
    with caplog.at_level(logging.INFO):
        printer = printed(("summary_md", bad), ("junit", good))
        assert printer.trouble() is None
    assert not printer.files_written
    golden_words(caplog.messages)
    assert f"{bad}: exists already" in caplog.text
    assert f"Wrote {good}" in caplog.text
    assert good.read_text().startswith("<?xml")


def test_a_pipe_is_written_last_because_its_reader_may_be_slow(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        printer = printed(("summary_md", pipe))
        assert os.read(reader, 1) == b""
        assert printer.trouble() is None
        assert os.read(reader, 1 << 16).startswith(b"### ")
    finally:
        os.close(reader)
    assert printer.files_written


def test_what_is_quick_is_written_before_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(
        output_file, "try_to_write_output", lambda path, *_, **__: not written.append(path.name)
    )
    os.mkfifo(tmp_path / "pipe")
    printer = printed(("json", tmp_path / "pipe"), ("html", tmp_path / "page"))
    assert written == ["page"]
    assert printer.trouble() is None
    assert written == ["page", "pipe"]


def test_a_page_that_ctrl_c_leaves_out_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    page = tmp_path / "a page"
    os.mkfifo(page)
    words = ["run-scenario", "-f", "small", "--no-default-report", "--html", str(page)]
    report = run_report.PrintedRunReport(ask(*words), judges=False)

    def interrupted() -> None:
        with pytest.raises(KeyboardInterrupt), report.interruptible():
            raise KeyboardInterrupt

    interrupted()
    assert not caplog.records
    report.print(RunOutcome(run_id=1, seed=1, path=KNOWN))
    interrupted()
    (said,) = (each.message for each in caplog.records if each.levelno == logging.WARNING)
    assert said.startswith(f"Not written: {page}. Write it with: ")
    assert said.endswith(f" report-scenario {KNOWN} '--html={page}'")


def test_a_pipe_without_a_reader(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    printer = printed(("json", pipe))
    assert printer.files_written
    printer.trouble()
    assert not printer.files_written
    assert str(pipe) in caplog.text
