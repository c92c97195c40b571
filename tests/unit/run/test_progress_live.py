"""The live screen: what it shows, that it fits, that it is drawn over and erased as a whole."""

from __future__ import annotations

import logging
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from result_rows import block, many, row
from screen import Screen

from ssbench.base.printable import TonedText
from ssbench.results.block import Failure
from ssbench.results.result_fields import NOT_MEASURED, ResultMark
from ssbench.results.run_description import RunSummary
from ssbench.run import terminal
from ssbench.run.progress import (
    LiveScreen,
    LiveView,
    OperationView,
    ProgressFigures,
    WorkerView,
    compose_live_screen,
)
from ssbench.scenario.model import Scenario, SizeClass

SCENARIO = Scenario("live", (SizeClass("s", 1, 1, 1, (1, 1, 1, 1)),), user_count=4, run_seconds=60.0)
READ = OperationView("read", 450.0, 61.2e6, 0.0121, 0.0173, 0.03, 1.5, 3)
WORKERS = [
    WorkerView(number, f"host-{number % 2}", True, number / 10, 0.1 / 2**0.5, number)
    for number in range(1, 10)
]


def view(**changes: object) -> LiveView:
    usual = {
        "title": "live",
        "figures": ProgressFigures(
            share=0.5, left=30, rate=450, moved=61.2e6, causes={"HTTP 503": 3}, there=9
        ),
        "operations": [READ],
        "workers": WORKERS,
        "rates": {3: 50.0},
    }
    return LiveView(**usual | changes)


def test_what_is_shown() -> None:
    lines = compose_live_screen(view(), 80, 24)
    assert lines[0] == "live"
    assert "50 %" in lines[1]
    read = next(line for line in lines if line.startswith("READ")).split()
    assert read == ["READ", "450.0", "61.2", "|", "12.1", "17.3", "30.0", "1500", "3"]
    third = next(line for line in lines if line.split()[:1] == ["3"])
    assert third.split() == ["3", "50.0", "3", "|", "30.0", "70.7", "ms", "host-1"]
    assert lines[-1].split() == ["3", "x", "HTTP", "503"]


def test_the_busiest_and_those_that_get_no_jobs_are_shown_where_there_is_little_room() -> None:
    lost = WorkerView(0, "host-0", False, None, None, 0)
    lines = compose_live_screen(view(workers=[lost, *WORKERS]), 80, 12)
    shown = [line.split()[0] for line in lines if re.match(r" +\d+ +[\d.]+ +\d+ \|", line)]
    assert shown[0] == "0"
    assert shown[-1] == "9"
    assert any("! gets no jobs" in line for line in lines)
    assert any("and 8 less busy workers" in line for line in lines)
    busy = compose_live_screen(view(workers=[WorkerView(1, "h", True, 0.97, 0.1, 5)]), 80, 24)
    assert any("! its core is the limit" in line for line in busy)


def test_a_wide_terminal_shows_how_it_went() -> None:
    read = replace(READ, history=[0, 1, 2, 4])
    shown = view(operations=[read], of_workers={3: [4.0, 0.0]}, of_causes={"HTTP 503": [0, 3]})
    narrow = compose_live_screen(shown, 100, 24)
    assert narrow == compose_live_screen(view(), 100, 24)
    wide = compose_live_screen(shown, 120, 24, "utf-8")
    assert next(line for line in wide if line.startswith("READ")) == narrow[4].ljust(80) + "  " + "▁▃▅█"
    assert "ops/s in each" in wide[3]
    assert next(line for line in wide if line.split()[:1] == ["3"]).endswith(" █▁")
    assert wide[-1].endswith("▁█")
    assert all(len(line) <= 120 for line in wide)


def test_a_picture_hides_no_warning() -> None:
    lost = WorkerView(3, "bench-host-07.example.com", False, None, None, 0)
    wide = compose_live_screen(view(workers=[lost], of_workers={3: [1.0, 2.0]}), 140, 24, "utf-8")
    assert any("bench-host-07.example.com  ! gets no jobs" in line for line in wide)


def test_what_the_user_should_look_at_has_a_tone() -> None:
    lines = compose_live_screen(view(workers=[WorkerView(0, "host-0", False, None, None, 0)]), 80, 24)
    tones = {line.split()[0]: line.tone for line in lines if isinstance(line, TonedText)}
    assert tones == {"READ": "bad", "0": "doubtful", "3": "bad"}


def test_the_history_is_of_whole_seconds(screen: LiveScreen) -> None:
    screen.tick(0.0)
    for now in np.arange(0.25, 5.1, 0.25):
        screen.add(many(range(10), operation=1, worker=3, completed=1.0, last_byte=0.01))
        screen.tick(float(now))
    (read,) = screen.view(5.0).operations
    assert read.history == [40] * 5
    assert screen.view(5.0).of_workers == {3: [40] * 5}


@given(
    width=st.integers(20, 200),
    height=st.integers(3, 50),
    title=st.text(max_size=300),
    host=st.text(max_size=100),
    number=st.integers(0, 2**62),
    cause=st.text(min_size=1, max_size=100),
    value=st.floats(0, 1e15),
)
def test_it_fits_any_terminal(
    width: int, height: int, title: str, host: str, number: int, cause: str, value: float
) -> None:
    workers = [WorkerView(number, host, bool(n % 2), value, value, number) for n in range(30)]
    operations = [OperationView(title, value, value, value, None, value, value, number) for _ in range(6)]
    figures = ProgressFigures(rate=value, causes={cause: number}, there=1, expected=2)
    lines = compose_live_screen(
        view(title=title, figures=figures, operations=operations, workers=workers), width, height
    )
    assert len(lines) <= height
    assert all(line.isascii() and (line.isprintable() or not line) for line in lines)
    assert max(map(len, lines)) <= width


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> LiveScreen:
    monkeypatch.setattr(terminal, "can_redraw", lambda: True)
    monkeypatch.setattr(terminal, "shows_progress", lambda: True)
    monkeypatch.setattr(terminal, "terminal_width", lambda: 80)
    monkeypatch.setattr(terminal, "terminal_height", lambda: 24)
    return LiveScreen(SCENARIO, lambda: (9, 9), lambda: WORKERS)


def test_figures_are_of_the_last_seconds(screen: LiveScreen) -> None:
    screen.tick(0.0)
    for now in np.arange(0.25, 20.0, 0.25):
        latency = 0.01 if now > 10 else 1.0
        columns = {"operation": 1, "worker": 3, "size": 1000, "completed": 1.0, "last_byte": latency}
        screen.add(many(range(100), **columns))
        screen.tick(float(now))
    failed = row(operation=1, last_byte=NOT_MEASURED, completed=1.0, worker=3)
    screen.add(block([failed], failures={0: Failure("HTTP 503", "", {})}))
    screen.tick(20.0)
    found = screen.view(20.0)
    (read,) = found.operations
    assert read.name == "read"
    assert read.rate == pytest.approx(400, rel=0.1)
    assert read.moved == pytest.approx(400_000, rel=0.1)
    assert (read.p50, read.p99, read.longest) == (0.01, 0.01, 0.01)
    assert read.failed == 1
    assert found.rates == {3: pytest.approx(read.rate)}


def test_latencies_that_reports_leave_out_are_not_shown(screen: LiveScreen) -> None:
    """Of a worker that stalled meanwhile."""
    screen.tick(0.0)
    rows = [row(operation=1, worker=3, completed=1.0, last_byte=0.01 if n else 4.0) for n in range(10)]
    screen.add(block(rows, rare={"marks": {0: int(ResultMark.DELAYED)}}))
    screen.tick(1.0)
    found = screen.view(1.0)
    (read,) = found.operations
    assert (read.longest, found.latencies[0]) == (0.01, 0.01)


def test_it_is_drawn_over_as_a_whole(screen: LiveScreen, capsys: pytest.CaptureFixture[str]) -> None:
    screen.tick(0.0)
    screen.tick(0.3)
    first = capsys.readouterr().err
    assert first.startswith("\r")
    height = first.count("\r\n")
    assert height > 5
    screen.tick(0.6)
    assert capsys.readouterr().err.startswith(f"\r\x1b[{height}A")
    terminal.write_line("a message")
    assert capsys.readouterr().err == f"\r\x1b[{height}A\x1b[Ja message\n"
    screen.tick(0.9)
    capsys.readouterr()
    screen.end(RunSummary(ended=1.0))
    last = capsys.readouterr().err
    assert last.startswith(f"\r\x1b[{height}A")
    assert last.endswith("\x1b[J\r\n")  # it remains


def test_without_a_terminal_it_is_a_line_each_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        screen = LiveScreen(SCENARIO, lambda: (1, 1), lambda: WORKERS)
        for second in range(25):
            screen.tick(float(second))
    assert len(caplog.messages) == 2
    assert "left" in caplog.messages[0]


def test_a_tall_terminal_shows_latencies_over_time() -> None:
    went = view(latencies=[0.01, 0.02, float("nan"), 0.04], workers=WORKERS[:2])
    assert compose_live_screen(went, 80, 14) == compose_live_screen(view(workers=WORKERS[:2]), 80, 14)
    lines = compose_live_screen(went, 80, 24, "utf-8")
    begins = lines.index("    ms p95, in each of the last seconds")
    chart = lines[begins + 1 :][:10]
    assert chart[0] == "      40.0 |   █"
    assert chart[-1] == "         0 |██ █"
    assert lines[-1].split() == ["3", "x", "HTTP", "503"]
    # With many workers too, where the screen is tall.
    many_workers = view(latencies=[0.01], workers=[*WORKERS] * 10)
    assert "    ms p95, in each of the last seconds" in compose_live_screen(many_workers, 80, 40)
    assert len(compose_live_screen(many_workers, 80, 40)) <= 40


def test_the_latencies_of_a_second_are_kept(screen: LiveScreen) -> None:
    screen.tick(0.0)
    for now in np.arange(0.25, 3.1, 0.25):
        if not 1.0 < now <= 2.0:
            screen.add(many(range(10), operation=1, worker=3, completed=1.0, last_byte=0.01))
        screen.tick(float(now))
    first, second, third = screen.view(3.0).latencies
    assert (first, third) == (0.01, 0.01)
    assert np.isnan(second)


@pytest.mark.parametrize("interrupted", [True, False])
def test_the_last_screen_remains(
    screen: LiveScreen, interrupted: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "is_reader_behind", lambda: False)
    screen.tick(0.0)
    screen.add(many(range(10), operation=1, worker=3, completed=1.0, last_byte=0.01))
    screen.tick(0.5)
    screen.end(RunSummary(ended=1.0, interrupted=interrupted))
    shown = Screen(80).write(capsys.readouterr().err).lines
    assert "live" in shown
    assert shown[-1] == ""
