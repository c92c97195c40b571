"""The sub-command attribute: results joined with genuine lines of Swift, and options that go together."""

from __future__ import annotations

import functools
import gzip
import hashlib
import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from asked_commands import ask
from genuine_logs import DATA, attribute, write_stat_file
from golden_words import GoldenWords
from json_records import valid
from said import (
    EVIDENCE_TITLE,
    PARTITIONS_TITLE,
    PARTS_TITLE,
    SLOWEST_TITLE,
    TIME_GOES,
    WITH_OBJECT_LINES,
    WITH_PROXY_LINE,
)

from ssbench.base.errors import UsageError
from ssbench.cli.master import main
from ssbench.cli.parser import Origin, ValueSource
from ssbench.cluster.attribute import check_request_options


def test_the_settings_of_a_run_do_not_make_attribute_write_to_a_url(golden_words: GoldenWords) -> None:
    words = ("attribute", "x", "--swift-logs", "y", "--otlp", "http://collector:4318")
    given = ask(*words)
    with golden_words.raises(UsageError):
        check_request_options(given)
    variable = ValueSource(Origin.VARIABLE, "SSBENCH_OTLP")
    assert check_request_options(replace(given, sources={"otlp": variable})).otlp is None


@pytest.fixture
def stat_file(tmp_path: Path) -> Path:
    return write_stat_file(tmp_path / "run.stat.gz")


def logs_of_nodes(folder: Path) -> list[str]:
    """The lines of each object server in a file of its own, as they are copied from its host."""
    for node in ("o1", "o2", "o3"):
        lines = [
            line.removeprefix(f"{node} ")
            for line in (DATA / "run-object.log").read_text().splitlines(keepends=True)
            if line.startswith(node)
        ]
        (folder / node).mkdir()
        (folder / node / "object.log").write_text("".join(lines))
    return [str(folder / node / "object.log") for node in ("o1", "o2", "o3")]


def test_every_operation_finds_its_lines(stat_file: Path, tmp_path: Path) -> None:
    code, found = attribute(stat_file, DATA / "run-proxy.log", *logs_of_nodes(tmp_path))
    assert code == 0
    coverage = found["coverage"]
    assert (coverage["operations"], coverage["failed"], coverage["without_id"]) == (41, 1, 1)
    assert (coverage["with_proxy"], coverage["complete"], coverage["compared"]) == (40, 40, 40)
    assert (coverage["lines_of_run"], coverage["cut"], coverage["duplicates"]) == (116, 0, 0)
    assert coverage["reasons"] == []
    assert {row["name"] for row in found["devices"]} == {
        "d1 on o1/object",
        "d4 on o1/object",
        "d2 on o2/object",
        "d3 on o3/object",
    }
    # By hand: of 18 creates and 22 reads each has its lines once.
    assert sum(row["requests"] for row in found["devices"]) == 76
    report = stat_file.with_name("report.txt").read_text()
    assert f"successes {WITH_OBJECT_LINES}: 40 (100.0 %)" in report
    assert max(map(len, report.splitlines())) <= 80
    # What to look for in the logs, and whether who is named took part.
    logs = (DATA / "run-proxy.log").read_text()
    ids = [row["trans_id"] for row in found["slowest"]]
    assert len(set(ids)) == 20
    assert all(logs.count(each) for each in ids)
    assert all(each in report for each in ids[:5])
    (slow,) = (each["name"] for each in found["findings"] if each["kind"] == "slow")
    lines = (DATA / "run-object.log").read_text().splitlines()
    for row in found["slowest"]:
        took_part = any(row["trans_id"] in line and "/d3/" in line for line in lines)
        assert row["named"] == ([slow] if took_part else [])
    assert any(row["named"] for row in found["slowest"])


def test_parts_are_differences_of_durations(stat_file: Path) -> None:
    _, found = attribute(stat_file, DATA / "run-proxy.log", DATA / "run-object.log")
    for row in found["parts"]:
        client, proxy, backend = (row[part][0] for part in ("client", "proxy", "backend"))
        assert 0 <= client < 0.02
        assert client + proxy + backend == pytest.approx(row["latency"][0], rel=0.25)


def test_lines_twice_or_compressed_change_nothing(stat_file: Path, tmp_path: Path) -> None:
    logs = [DATA / "run-proxy.log", DATA / "run-object.log"]
    _, once = attribute(stat_file, *logs)
    with gzip.open(tmp_path / "run-object.log.1.gz", "wb") as file:
        file.write(logs[1].read_bytes())
    _, twice = attribute(stat_file, *logs, tmp_path / "run-object.log.1.gz")
    assert twice["coverage"].pop("duplicates") == 76
    assert once["devices"] == twice["devices"]
    assert once["parts"] == twice["parts"]


def test_a_node_may_be_named(stat_file: Path, tmp_path: Path) -> None:
    named = [f"rack{place}={path}" for place, path in enumerate(logs_of_nodes(tmp_path))]
    _, found = attribute(stat_file, *named)
    assert {row["name"] for row in found["nodes"]} == {"rack0", "rack1", "rack2"}
    assert any("no access line of a proxy" in reason for reason in found["coverage"]["reasons"])


def test_a_node_whose_log_is_missing(stat_file: Path, tmp_path: Path) -> None:
    _, found = attribute(stat_file, DATA / "run-proxy.log", *logs_of_nodes(tmp_path)[:2])
    assert found["coverage"]["complete"] < 40
    assert any("every storage node" in reason for reason in found["coverage"]["reasons"])


def test_a_compressed_log_that_is_cut_off_is_used_up_to_there(
    stat_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = gzip.compress((DATA / "run-object.log").read_bytes())
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    code, found = attribute(stat_file, DATA / "run-proxy.log", tmp_path / "cut.gz")
    assert code == 0
    assert 40 < found["coverage"]["lines_of_run"] < 116


def test_ids_of_old_swift_tell_no_time(tmp_path: Path, golden_words: GoldenWords) -> None:
    def old(trans_id: str) -> str:
        return f"tx{hashlib.sha256(trans_id.encode()).hexdigest()[:32]}"

    stat_file = write_stat_file(tmp_path / "run.stat.gz", old)
    text = re.sub(
        r"tx[0-9a-f]{21}-[0-9a-f]{10}", lambda found: old(found[0]), (DATA / "run-proxy.log").read_text()
    )
    lines = sorted(text.splitlines(keepends=True), key=lambda line: re.findall(r"tx\w{22}(\w+)", line))
    (tmp_path / "proxy.log").write_text("".join(lines[1:-1]))
    _, found = attribute(stat_file, tmp_path / "proxy.log")
    assert found["coverage"]["with_proxy"] == 38
    golden_words([reason.split(":")[0] for reason in found["coverage"]["reasons"]])


def test_a_log_that_ends_before_the_run_is_named(tmp_path: Path) -> None:
    moments = iter(range(40))

    @functools.cache
    def later(trans_id: str) -> str:
        return f"{trans_id[:24]}{0x6B021E1D + 3 * next(moments):010x}"

    stat_file = write_stat_file(tmp_path / "run.stat.gz", later)
    for node in ("o1", "o2", "o3"):
        text = "".join(
            re.sub(r"tx[0-9a-f]{21}-[0-9a-f]{10}", lambda found: later(found[0]), line)
            for line in (DATA / "run-object.log").read_text().splitlines(keepends=True)
            if line.startswith(node)
        )
        lines = sorted(text.splitlines(keepends=True), key=lambda line: re.findall("tx.{22}(.{10})", line))
        (tmp_path / f"{node}.log").write_text("".join(lines[:9] if node == "o2" else lines))
    _, found = attribute(stat_file, *(tmp_path / f"{node}.log" for node in ("o1", "o2", "o3")))
    (reason,) = (each for each in found["coverage"]["reasons"] if each.startswith("the log of"))
    assert re.fullmatch(r"the log of o2 ends \d\d s before the run: were they copied too early\?", reason), (
        reason
    )


def test_escape_sequences_of_a_log_do_not_get_to_a_terminal(
    stat_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "object.log"
    hostile = b"o1\x1b]0;title\x07\x1b[2J\xe2\x80\xae "
    log.write_bytes((DATA / "run-object.log").read_bytes().replace(b"o1 ", hostile))
    for options in ([], ["--json", "-"]):
        arguments = ["attribute", "-s", stat_file, *options, "--swift-logs", DATA / "run-proxy.log", log]
        assert main(list(map(str, arguments))) == 0
        shown = "".join(capfd.readouterr())
        assert "title" in shown
        assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
    names = {row["name"] for row in json.loads(shown)["nodes"]}
    assert any("\x1b" in name for name in names)  # JSON loses nothing, by escapes


@pytest.mark.timeout(60)
def test_a_log_of_nothing_but_line_ends_is_read_at_once(stat_file: Path, tmp_path: Path) -> None:
    log = tmp_path / "endless.log.gz"
    with gzip.open(log, "wb", 1) as out:
        for _ in range(60):
            out.write(b"\n" * 1_000_000)
    code, found = attribute(stat_file, DATA / "run-proxy.log", *logs_of_nodes(tmp_path), log)
    assert code == 0
    assert found["coverage"]["lines"] == 60_000_000 + 116


def test_the_page_has_the_answer_and_the_tables(stat_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    logs = [DATA / "run-proxy.log", *logs_of_nodes(tmp_path)]
    code, found = attribute(stat_file, *logs, "--html", file)
    assert code == 0
    page = html.unescape(file.read_text())
    # One verdict, where the page had that of the run in one colour above that of the logs in another.
    assert re.findall(r"<strong>(.*?)</strong><span>(.*?)</span>", page) == [
        ("Slow: d3 on o3/object", "The run itself failed.")
    ]
    (facts,) = re.findall("<ul class=facts>(.*?)</ul>", page)
    assert facts == "<li>31.9 ms longer</li><li>47.5 % of all requests</li>"
    for sentence in found["answer"]:
        assert sentence in page[: page.index("<h2>")]
    section = page[page.index(f"<h2>A {PARTS_TITLE}") : page.index("<div class=tiles>")]
    assert f"{WITH_PROXY_LINE}: 40 (100.0 %)" in section
    assert re.findall("<h2>(.*?)</h2>", section) == [
        f"A {PARTS_TITLE}, part by part",
        EVIDENCE_TITLE,
        "Times in Swift's logs",
        SLOWEST_TITLE,
        "Coverage",
    ]
    assert section.count("</h2></summary>") == 5
    # A column of noughts made a table of its own in a terminal: "operation  more".
    parts = section[section.index(f"<h3>{TIME_GOES} (ms)") : section.index("<h3>Proxies (ms)")]
    assert "slowest server p99" in parts
    assert "more servers" not in parts
    assert re.findall("<h3>(.*?)</h3>", section) == [
        f"{TIME_GOES} (ms)",
        "Proxies (ms)",
        "Nodes (ms)",
        "Devices (ms)",
        f"{PARTITIONS_TITLE} (ms)",
        "Where the time of the slowest operations went (ms)",
    ]
    (row,) = re.findall(
        "<tr><td><span class=bad-text>d3 on o3/object</span>(.*?)\\s*<(?:tr|/table)>", section
    )
    cells = row.split("<td class=number>")[1:]
    (device,) = (each for each in found["devices"] if each["name"] == "d3 on o3/object")
    assert cells[0] == f"{device['requests']}"
    assert float(cells[1]) == pytest.approx(1000 * device["longer"]["median"], abs=0.05)
    numbers = [1000 * number for pair in (device["seconds"], device["latency"]) for number in pair]
    assert [float(cell) for cell in cells[4:8]] == pytest.approx(numbers, abs=0.05)


def test_a_log_is_not_overwritten(
    stat_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "proxy.log"
    log.write_bytes((DATA / "run-proxy.log").read_bytes())
    before = log.read_bytes()
    words = ["attribute", "-s", str(stat_file), "--swift-logs", str(log), "--html", str(log), "--force"]
    assert main(words) == 2
    assert "is read, and cannot be an output too" in capsys.readouterr().err
    assert log.read_bytes() == before


def test_only_one_output_goes_to_standard_output(stat_file: Path) -> None:
    files = ["-s", str(stat_file), "--swift-logs", str(DATA / "run-proxy.log")]
    assert main(["attribute", *files, "--json", "-", "--html", "-"]) == 2


@pytest.mark.parametrize(
    "log",
    [
        "object.log",
        "handoff-and-shortened.log",
        "run-client.csv",
        "README.rst",
        "missing.log",
    ],
)
def test_logs_that_do_not_belong_to_the_run(
    stat_file: Path, log: str, capfd: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    code, _ = attribute(stat_file, DATA / log)
    assert code == 2
    golden_words(" ".join(capfd.readouterr().err.split()))


def test_the_json_alone_goes_to_standard_output(stat_file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    logs = [str(DATA / "run-proxy.log"), str(DATA / "run-object.log")]
    assert main(["-q", "attribute", "-s", str(stat_file), "--json", "-", "--swift-logs", *logs]) == 0
    found = valid(capfd.readouterr().out, "attribution")
    assert found["coverage"]["operations"] == 41
    assert found["answer"]
