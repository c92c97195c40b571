"""What a run has to do with its live page: the real process that serves it, and what that is told."""

from __future__ import annotations

import html
import http.client
import logging
import signal
import socket
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from full_run import RUN, write_full_run
from golden_words import GoldenWords
from runs import wait_until

from ssbench.base.errors import UsageError
from ssbench.monitoring.sink import LivePage, PageSink
from ssbench.results.block import ResultBlock
from ssbench.results.run_description import RunSummary

SUMMARY = RunSummary(ended=RUN.started + 1)


class Listener(LivePage):
    """Takes what the process would be told."""

    def __init__(self) -> None:
        self.told: list[Path] = []

    def tell(self, message: object) -> None:
        self.told.append(message.file)  # type: ignore[attr-defined]


def get(url: str) -> tuple[int, str]:
    where = urlsplit(url)
    with closing(http.client.HTTPConnection(str(where.hostname), where.port or 0, timeout=60)) as connection:
        connection.request("GET", where.path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_it_is_told_of_the_run_once_a_second_and_at_the_end(tmp_path: Path) -> None:
    known: list[tuple[Path, RunSummary]] = []
    page = Listener()
    sink = PageSink(page, lambda: known[0] if known else None)
    sink.tick(10.0)
    assert not page.told  # nothing is known yet
    known.append((tmp_path / "run.stat", SUMMARY))
    for now in (10.5, 11.0, 11.9, 12.0):
        sink.tick(now)
    sink.add(ResultBlock(1, {"completed": np.array([1.0])}))
    assert len(page.told) == 2
    sink.end(SUMMARY)
    assert page.told == [tmp_path / "run.stat"] * 3


def test_a_port_that_is_taken_is_named(golden_words: GoldenWords) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with golden_words.raises(UsageError):
            LivePage("127.0.0.1", port)


def test_the_process_serves_what_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    write_full_run(path)
    with LivePage("127.0.0.1", 0, tmp_path / "earlier") as page:
        assert page.url.startswith("http://127.0.0.1:")
        status, first = get(page.url)
        assert (status, "<html" in first) == (200, True)
        assert get(page.url.replace(page.url.rsplit("/", 2)[1], "other"))[0] == 404
        page.sink(lambda: (path, SUMMARY)).end(SUMMARY)
        name = html.escape(RUN.scenario.name)
        assert name not in first
        wait_until(lambda: name in get(page.url)[1], "the run on the page")
        process = page._process
    assert process.returncode is not None


def test_a_page_that_was_killed_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, golden_words: GoldenWords
) -> None:
    caplog.set_level(logging.WARNING)
    with LivePage("127.0.0.1", 0) as page:
        page._process.send_signal(signal.SIGKILL)
        page._process.wait()
        sink = page.sink(lambda: (tmp_path / "run.stat", SUMMARY))
        sink.tick(1.0)
        sink.tick(5.0)
    golden_words(caplog.messages)


def test_of_all_addresses_the_url_has_the_name_of_the_host() -> None:
    with LivePage("0.0.0.0", 0) as page:
        assert urlsplit(page.url).hostname == socket.gethostname().lower()
        page._process.kill()
