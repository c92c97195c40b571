"""The live page without a browser: what is read of a growing stat file, what is served, and to whom."""

from __future__ import annotations

import http.client
import re
import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from full_run import RUN, write_full_run
from live_pages import TOKEN, ask, events
from result_rows import many
from said import NO_REGULAR_FILE

from ssbench.cli import sides
from ssbench.cli.master import main
from ssbench.comparison.archive import compare_with_earlier, list_folder_runs
from ssbench.document.elements import Document, Tone
from ssbench.document.renderers.html import PagePart, make_page_parts
from ssbench.monitoring.page_server import WAITING_DOCUMENT, LiveDocument, PageApplication
from ssbench.monitoring.sink import PageMessage, decode_message, encode_message
from ssbench.reports import products
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results.current import ResultsFollower
from ssbench.results.reading import DamageError, open_results
from ssbench.results.run_description import RunSummary
from ssbench.results.writer import RunResultsWriter
from ssbench.statistics.summary import summarize


def rows(first: int, count: int) -> Any:
    here = np.arange(first, first + count)
    return many(
        here, operation=here % 4, completed=1e9 + here / 1000, last_byte=0.001 + here * 7919 % 6007 / 1e6
    )


def test_a_file_is_read_as_it_grows_wherever_it_is_cut(tmp_path: Path) -> None:
    whole, path = write_full_run(tmp_path / "whole.stat.gz").read_bytes(), tmp_path / "growing.stat.gz"
    path.write_bytes(b"")
    found, following = 0, ResultsFollower(path)
    with closing(following), path.open("ab", buffering=0) as out:
        for place in range(0, len(whole), 7):
            out.write(whole[place : place + 7])
            found += sum(map(len, following.blocks()))
    results = open_results(tmp_path / "whole.stat.gz")
    assert following.run == results.run
    assert found == sum(map(len, results.blocks())) == 4
    assert (following.summary, following.warnings) == (results.summary, results.warnings)


def test_what_a_writer_takes_back_is_noticed(tmp_path: Path) -> None:
    path = write_full_run(tmp_path / "run.stat.gz")
    following = ResultsFollower(path)
    with closing(following):
        assert [len(each) for each in following.blocks()] == [4]
    following = ResultsFollower(path)
    with closing(following):
        assert len(next(following.blocks())) == 4
        path.write_bytes(path.read_bytes()[:-10])
        with pytest.raises(DamageError, match="taken back"):
            list(following.blocks())


def test_the_page_goes_with_the_run_and_ends_as_the_report_of_its_file(tmp_path: Path) -> None:
    path, live = tmp_path / "run.stat.gz", LiveDocument()
    assert live.look() is WAITING_DOCUMENT
    assert not live.begun
    writer = RunResultsWriter(path, RUN)
    live.tell(PageMessage.of(path, RunSummary(1e9, warnings=("a warning so far",))))
    assert live.begun
    writer.add(rows(0, 3000))
    while "3,000" not in (shown := page_of(live.look())):
        assert "RUNNING" in shown or "not begun" in shown
    assert "a warning so far" in shown
    assert not live.ended
    killed = live.without_end()
    assert killed is not None
    assert killed.verdict is not None
    assert killed.verdict.line.startswith("FAILED: ")
    writer.add(rows(3000, 3000))
    writer.end(RunSummary(1e9 + 6))
    found = live.look()
    assert live.ended
    results = open_results(path)
    statistics = summarize(results, products.PAGE_GROUPS, over_time=True)
    made = make_run_report("html", statistics, ReportOptions())
    for each in make_page_parts(found):
        assert each.html in made
    # Another run over the same bench.
    other = write_full_run(tmp_path / "other.stat.gz")
    live.tell(PageMessage.of(other, RunSummary(1e9)))
    assert not live.ended
    assert live.look().title == RUN.scenario.name
    assert live.ended


def write_sides(path: Path, day: int) -> None:
    run = replace(RUN, sides=("old", "new"), started=1e9 + day * 86400, seed=day)
    writer = RunResultsWriter(path, run)
    here = np.arange(4000)
    last_byte = 0.01 * np.exp(np.random.default_rng(day).normal(0, 0.1, 4000))
    completed = (run.started or 0) + here / 100
    writer.add(many(here, operation=1, group=here % 2, completed=completed, last_byte=last_byte))
    writer.end(RunSummary((run.started or 0) + 40))


def test_sides_are_compared_by_earlier_runs_as_at_the_end(tmp_path: Path) -> None:
    """The page had what is assumed without any, the report what these showed."""
    for day in range(7):
        write_sides(tmp_path / f"{day}.stat.gz", day)
    path, live = tmp_path / "6.stat.gz", LiveDocument()
    live.earlier = list_folder_runs(tmp_path)
    live.tell(PageMessage.of(path, RunSummary(1e9)))
    shown = "".join(each.html for each in make_page_parts(live.look()))
    assert "Variation from run to run is taken from 6 earlier equal runs" in shown
    # As the report has it.
    statistics = summarize(open_results(path), products.PAGE_GROUPS)
    assert sides.compare_sides_of_files(tmp_path, [path], statistics) == compare_with_earlier(
        live.earlier, path, statistics
    )
    assert list_folder_runs(tmp_path / "none") is None is list_folder_runs(None)
    live.earlier = None
    live.tell(PageMessage.of(path, RunSummary(1e9)))
    assert "earlier equal runs in --results-dir" in "".join(
        each.html for each in make_page_parts(live.look())
    )


def page_of(document: Document) -> str:
    assert document.verdict is not None
    assert document.verdict.tone is Tone.OPEN
    return "".join(each.html for each in make_page_parts(document))


def test_a_message_keeps_any_name_of_a_file() -> None:
    message = PageMessage.of(Path("/tmp/\udcff\n\u20ac.stat.gz"), RunSummary(1.0, warnings=("w",)))
    line = encode_message(message)
    assert line.count("\n") == 1
    assert decode_message(line.encode()) == message
    assert decode_message(line.encode()).file == Path("/tmp/\udcff\n\u20ac.stat.gz")


@pytest.mark.parametrize(
    "path", ["/", "/the-toke/", "/the-token-/", "/the-token/x", "/the-token/../", "/\u00ff/"]
)
def test_without_the_token_nothing_is_told(site: tuple[PageApplication, int], path: str) -> None:
    for method in ("GET", "HEAD", "POST"):
        with closing(socket.create_connection(("127.0.0.1", site[1]), 30)) as connection:
            connection.sendall(f"{method} {path} HTTP/1.0\r\n\r\n".encode("latin-1"))
            head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
        code = int(head.split()[1])
        assert code == 404 or (method == "POST" and path.startswith("/the-token/") and code == 405)
        assert TOKEN.encode() not in head + body
        assert len(body) < 30


def test_what_is_served_to_those_who_have_it(site: tuple[PageApplication, int]) -> None:
    _, port = site
    code, headers, body = ask(port, f"/{TOKEN}/")
    assert code == 200
    assert b"<h2>One</h2>" in body
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    (nonce,) = re.findall(r"script-src 'nonce-([\w-]+)'", headers["Content-Security-Policy"])
    assert body.count(b"<script") == body.count(f"<script nonce={nonce}>".encode()) == 2
    head = ask(port, f"/{TOKEN}/", "HEAD")
    assert (head[0], head[2]) == (200, b"")
    assert head[1]["Content-Length"] == str(len(body))
    assert ask(port, f"/{TOKEN}/", "DELETE")[:1] == (405,)
    assert ask(port, f"/{TOKEN}/events", "HEAD")[0] == 503


def test_a_stream_has_what_changes_and_ends_with_the_last(site: tuple[PageApplication, int]) -> None:
    made, port = site
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", f"/{TOKEN}/events")
        answer = connection.getresponse()
        assert answer.getheader("Content-Type") == "text/event-stream"
        found = events(answer)
        first = next(found)
        assert first["order"] == [*first["changed"]] == ["contents", "head", "one", "two"]
        assert made.read
        made.publish(
            "t", [PagePart("one", first["changed"]["one"]), PagePart("two", "<p id=two>new</p>")], last=True
        )
        assert list(found) == [
            {"title": "t", "order": ["one", "two"], "changed": {"two": "<p id=two>new</p>"}, "last": True}
        ]
    assert made.wait_for_readers(30)


def test_a_port_that_is_taken_and_other_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run-scenario", "-f", "very_small", "--noop", "--workers", "1", "-o", "1"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main([*command, "-s", str(tmp_path / "s"), "--metrics", f"web:{port}"]) == 2
    assert (
        f"--metrics web: cannot listen at 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err
    )
    assert main([*command, "--metrics", "web", "web:8080"]) == 2
    assert "--metrics web: one page is possible" in capsys.readouterr().err
    assert main([*command, "-s", "/dev/null", "--force", "--metrics", "web"]) == 2
    assert f"--metrics web reads the stat file, and /dev/null {NO_REGULAR_FILE}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*command, "--metrics", "web:port"])
    assert "'port' is not a port or ADDRESS:PORT" in capsys.readouterr().err
