"""The process that serves the page of a run: what it does with its messages and at the end of them."""

from __future__ import annotations

import io
import queue
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ssbench.document.elements import Document
from ssbench.monitoring import page_server
from ssbench.monitoring.page_server import LiveDocument, PageApplication
from ssbench.monitoring.sink import PageMessage, encode_message
from ssbench.results.run_description import RunSummary


def document(title: str) -> Document:
    return Document(title, ())


class Run:
    """A run of which there are so many states, and what is known of one that never ended."""

    def __init__(self, states: int, *, begun: bool = True, ends: bool = True) -> None:
        self.begun = begun
        self.states = iter(range(states))
        self.ends = ends
        self.ended = False

    def look(self) -> Document:
        number = next(self.states)
        self.ended = self.ends and number > 1
        return document(f"state {number}")

    def without_end(self) -> Document | None:
        return document("killed")


class Page:
    """What would be shown to browsers."""

    def __init__(self, *, read: bool = True) -> None:
        self.read = read
        self.shown: list[tuple[str, bool]] = []
        self.waited: list[float] = []

    def publish(self, title: str, parts: object, *, last: bool = False) -> None:
        self.shown.append((title, last))

    def wait_for_readers(self, seconds: float) -> bool:
        self.waited.append(seconds)
        return True


def finish(site: Page, live: Run) -> None:
    page_server._show_end(cast(PageApplication, site), cast(LiveDocument, live), document("before"))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_server, "time", SimpleNamespace(sleep=lambda _: None, monotonic=time.monotonic))


def test_messages_end_with_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    message = PageMessage.of(tmp_path / "r\udcff.stat", RunSummary(ended=1.0))
    lines = encode_message(message).encode() * 2
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines)))
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    page_server._read_messages(messages)
    now = time.monotonic()
    assert page_server._next_message(messages, now + 60.0) == message
    assert page_server._next_message(messages, now) == message
    assert page_server._next_message(messages, now + 60.0) is None
    assert page_server._next_message(messages, now) is True  # it is time to look


def test_where_nobody_looks_the_process_ends_at_once() -> None:
    site = Page(read=False)
    finish(site, Run(0))
    assert site.shown == []
    assert site.waited == []


def test_those_who_look_see_the_end() -> None:
    site = Page()
    finish(site, Run(3))
    assert site.shown == [("state 2", True)]
    assert site.waited == [page_server._LAST_SEND_SECONDS]


def test_the_end_of_a_run_whose_master_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_server, "_LAST_MAKE_SECONDS", 0.01)
    site = Page()
    finish(site, Run(10**9, ends=False))
    assert site.shown == [("killed", True)]


def test_a_run_that_never_began_shows_what_there_was() -> None:
    site = Page()
    finish(site, Run(0, begun=False))
    assert site.shown == [("before", True)]
