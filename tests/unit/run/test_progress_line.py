"""The line that shows how far a run is: what it says, how long it is, what it counts."""

from __future__ import annotations

import logging

import pytest
import result_rows
from hypothesis import given
from hypothesis import strategies as st

from ssbench.results.block import Failure
from ssbench.results.result_fields import ResultMark
from ssbench.results.run_description import RunSummary
from ssbench.run import progress as run_progress
from ssbench.run import terminal
from ssbench.run.progress import ProgressFigures, ProgressLine, compose_progress_line
from ssbench.scenario.model import Scenario

BUSY = ProgressFigures(
    share=0.5,
    left=31,
    rate=12_340,
    moved=77.4e6,
    p50=0.014,
    p99=0.049,
    causes={"HTTP 503": 9, "connect timeout": 3},
    there=3,
    expected=4,
)
WELL = ProgressFigures(share=0.25, left=3605, rate=600, moved=1e6, p50=0.0042, p99=0.03, there=4, expected=4)


@pytest.mark.parametrize(
    ("figures", "width", "line"),
    [
        (
            WELL,
            120,
            f"[########{'.' * 24}]  25 %  1:00:05 left  600.0 ops/s  1.00 MB/s  p50 4.20 p99 30.0 ms"
            "  4 workers",
        ),
        (WELL, 77, "[###..........]  25 %  1:00:05 left  600.0/s  1.00 MB/s  p50 4.20 p99 30.0 ms"),
        (
            BUSY,
            79,
            "50 %  12,340/s  77.4 MB/s  p99 49.0 ms  errors: 9 HTTP 503, +3  3 of 4 workers",
        ),
        (BUSY, 40, "50 %  12,340/s  12 errors  3 of 4 workers"[:40]),
        (BUSY, 10, "50 %  12,3"),
    ],
)
def test_what_it_says(figures, width, line):
    assert compose_progress_line(figures, width) == line


@given(
    st.builds(
        ProgressFigures,
        share=st.floats(0, 2),
        left=st.none() | st.floats(0, 1e12),
        rate=st.floats(0, 1e7),
        moved=st.floats(0, 1e12),
        p50=st.none() | st.floats(0, 1e4),
        p99=st.none() | st.floats(0, 1e4),
        causes=st.dictionaries(st.text(max_size=30), st.integers(1, 10**9), max_size=4),
        there=st.integers(0, 1000),
        expected=st.integers(0, 1000),
    ),
    st.integers(1, 200),
)
def test_it_always_fits_and_nothing_in_it_moves_the_cursor(figures, width):
    line = compose_progress_line(figures, width)
    assert len(line) <= width
    assert line.isprintable()
    assert line.isascii()
    if width >= 60:
        assert "ops/s" in line or "/s" in line
        if figures.causes:
            assert "error" in line
        if figures.there < figures.expected:
            assert f"{figures.there} of {figures.expected} workers" in line


def scenario(**changes: object) -> Scenario:
    return Scenario("x", (), user_count=1, **changes)


def results(count: int, *, failed: int = 0, latency: float = 0.02):
    """So many results, of which the first ones failed."""
    rows = [
        result_rows.row(operation=1, size=1000, first_byte=0.001, last_byte=latency) for _ in range(count)
    ]
    failures = {place: Failure("HTTP 503", "", {}) for place in range(failed)}
    return result_rows.block(rows, failures=failures)


@pytest.fixture
def line(monkeypatch):
    """Return a function that makes a progress line, redrawn or not."""
    monkeypatch.setattr(terminal, "shows_progress", lambda: True)

    def make(redrawn: bool, **changes: object) -> ProgressLine:
        monkeypatch.setattr(terminal, "can_redraw", lambda: redrawn)
        return ProgressLine(scenario(**changes), lambda: (2, 3))

    return make


def feed(progress: ProgressLine, seconds: float, **kind: float) -> None:
    """Hand over a block of a hundred results each tenth of a second."""
    for tick in range(round(seconds * 10) + 1):
        if tick:
            progress.add(results(100, **kind))
        progress.tick(50 + tick / 10)


def test_rates_and_latencies_are_of_the_last_seconds_errors_and_progress_of_the_whole_run(line, capsys):
    progress = line(True, operation_count=40_000)
    feed(progress, 10, failed=10, latency=0.5)
    for tick in range(1, 101):
        progress.add(results(200))
        progress.tick(60 + tick / 10)
    figures = progress.figures(70)
    # Results that have come since the last gathering are not counted yet.
    assert figures.rate == pytest.approx(2000, rel=0.07)
    assert figures.moved == pytest.approx(2e6, rel=0.07)
    assert (figures.p50, figures.p99) == (0.02, 0.02)
    assert figures.causes == {"HTTP 503": 1000}
    assert figures.share == pytest.approx(0.75, abs=0.015)
    assert figures.left == pytest.approx(20 / 3, rel=0.07)
    assert (figures.there, figures.expected) == (2, 3)
    drawn = capsys.readouterr().err
    assert "\n" not in drawn
    assert 60 <= drawn.count("\r") <= 90
    progress.end(RunSummary(ended=0))
    assert capsys.readouterr().err == "\r\x1b[K"


def test_latencies_that_reports_leave_out_are_not_shown(line):
    """Of a worker that stalled meanwhile."""
    progress = line(True, operation_count=1000)
    progress.tick(0.0)
    rows = [result_rows.row(operation=1, size=1000, last_byte=4.0 if n % 4 else 0.02) for n in range(400)]
    marks = {n: int(ResultMark.DELAYED) for n in range(400) if n % 4}
    progress.add(result_rows.block(rows, rare={"marks": marks}))
    progress.tick(1.0)
    figures = progress.figures(1.0)
    assert figures.p50 == 0.02
    assert figures.rate == pytest.approx(400)


def test_progress_by_time(line):
    progress = line(True, run_seconds=40.0)
    feed(progress, 10)
    figures = progress.figures(60)
    assert (figures.share, figures.left) == (0.25, 30)


def test_a_message_removes_the_line_and_the_next_drawing_brings_it_back(line, capsys):
    progress = line(True, run_seconds=10.0)
    feed(progress, 1)
    terminal.write_line("WARNING:a message")
    progress.tick(60)
    drawn = capsys.readouterr().err
    assert "\r\x1b[KWARNING:a message\n\r" in drawn
    progress.end(RunSummary(ended=0))


def test_without_a_terminal_there_is_one_line_each_ten_seconds(line, capsys, caplog):
    progress = line(False, run_seconds=100.0)
    with caplog.at_level(logging.INFO):
        feed(progress, 35)
        progress.end(RunSummary(ended=0))
    assert capsys.readouterr().err == ""
    assert len(caplog.messages) == 3
    assert max(map(len, caplog.messages)) <= 75
    assert caplog.messages[0].endswith(
        "10 %  1:30 left  1,000/s  1.00 MB/s  p50 20.0 p99 20.0 ms  2 of 3 workers"
    )


def test_it_shows_nothing_where_no_progress_is_wanted(line, monkeypatch, capsys, caplog):
    monkeypatch.setattr(terminal, "shows_progress", lambda: False)
    progress = ProgressLine(scenario(run_seconds=5.0), lambda: (1, 1))
    feed(progress, 20)
    progress.end(RunSummary(ended=0))
    assert capsys.readouterr().err == ""
    assert not caplog.messages


def test_results_do_not_pile_up(line):
    progress = line(False, run_seconds=1e6)
    feed(progress, 30)
    assert sum(len(each.latencies) for each in progress._gathered) <= 50 * run_progress._MAX_LINE_LATENCIES
    assert len(progress._blocks) <= 3
