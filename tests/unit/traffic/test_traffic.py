"""``ssbench-master traffic``, by the command line; and its page of documentation."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from golden_words import GoldenWords
from json_records import valid
from logged_traffic import BEGAN, swift_line, write_uses_log

from ssbench.cli.master import main
from ssbench.run import bars
from ssbench.scenario.scenario_reading import read_scenario
from ssbench.traffic.traffic_figures import TRAFFIC_FIGURES

DOCUMENT = Path(__file__).parents[3] / "doc" / "own-traffic.rst"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "proxy.log"
    random = np.random.default_rng(1)
    write_uses_log(path, [f"secret{number}" for number in random.zipf(1.6, 3000) if number < 400])
    return path


def test_the_report_has_the_halves_beside(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["traffic", str(log)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"log +first half +second half\n", out)
    assert re.search(r"^read +100\.00 % +100\.00 % +100\.00 %$", out, re.MULTILINE)
    assert "secret" not in out


def test_a_scenario_is_written_edited_and_read_again(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "mine.yaml"
    assert main(["traffic", str(log), "-o", str(made)]) == 0
    text = made.read_text()
    assert not [each for each in ("secret", "AUTH", "proxy.log", "127.0.0.1") if each in text]
    scenario = read_scenario(str(made))
    assert (scenario.name, scenario.container_count, scenario.is_open) == ("mine", 1, True)
    made.write_text(re.sub(r"initial_files: \{object: \d+\}", "initial_files: {object: 50}", text))
    assert read_scenario(str(made)).size_classes[0].initial_files == 50
    capsys.readouterr()
    assert main(["traffic", str(log), "-o", str(made)]) == 2  # it exists
    assert "--force" in capsys.readouterr().err
    assert main(["traffic", str(log), "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("# What users did in ")


@pytest.mark.parametrize("option", ["-o", "--html"])
def test_a_log_is_not_overwritten(option: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = log.read_bytes()
    assert main(["traffic", str(log), option, str(log), "--force"]) == 2
    assert "is read, and cannot be an output too" in capsys.readouterr().err
    assert log.read_bytes() == before


def test_two_logs_are_compared_with_the_halves_beside(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.log"
    write_uses_log(other, range(500), rate=50)
    page = tmp_path / "page.html"
    assert main(["traffic", str(log), "--compare", str(other), "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"log +other +distance +log's halves\n", out)
    assert re.search(r"^requests a second +[\d.]+ +[\d.]+ +-\d+\.\d % ", out, re.MULTILINE)
    assert "Hit ratio of a cache" in page.read_text()


#: The same reads as lines of HAProxy, in another order of fields than usual, or of Ceph.
OTHER_LINES = {
    "haproxy": "{date}.{ms:03d} 10 200 1000 GET /v1/AUTH_test/c/{name}\n",
    "rgw": '{{"bucket":"c","time":"2026-11-22T00:00:{second:02d}.{ms:03d}000Z","user":"u",'
    '"operation":"get_obj","uri":"GET /swift/v1/c/{name} HTTP/1.1","http_status":"200",'
    '"bytes_sent":1000,"bytes_received":0,"object_size":1000,"total_time":10,"remote_addr":"1"}}\n',
}


@pytest.mark.parametrize(
    "options",
    [
        ("--compare-format", "haproxy", "--compare-log-format", "%tr %Ta %ST %B %HM %HU"),
        ("--compare-format", "rgw"),
    ],
)
def test_logs_of_two_formats_are_compared(
    options: tuple[str, ...], log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.log"
    lines = []
    for place in range(500):
        second, ms = divmod(20 * place, 1000)
        date = f"22/Nov/2026:00:00:{second:02d}"
        lines.append(OTHER_LINES[options[1]].format(date=date, second=second, ms=ms, name=place % 50))
    other.write_text("".join(lines))
    assert main(["traffic", str(log), "--compare", str(other), *options]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^requests a second +\d+ +50\.1 ", out, re.MULTILINE)
    assert re.search(r"^size by use, p50 +1 kB +1 kB +\+0\.0 %", out, re.MULTILINE)
    assert main(["traffic", str(log), "--compare", str(other)]) == 2
    if options[1] == "rgw":
        assert "(--compare-format rgw reads it)" in capsys.readouterr().err


def test_progress_is_said_of_lines_figures_and_the_scenario(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn: list[str] = []  # on a terminal
    monkeypatch.setattr(bars, "_draw", lambda what, *_arguments, **_options: drawn.append(what))
    monkeypatch.setattr(bars, "_LINE_SECONDS", 0.0)
    assert main(["traffic", str(log), "-o", str(tmp_path / "made.yaml")]) == 0
    assert drawn == ["Lines read", "Making the scenario", "Figures"]
    figures = len(TRAFFIC_FIGURES)
    lines = len(log.read_text().splitlines())
    said = capsys.readouterr().err
    assert f"Lines read: {lines}, " in said
    assert f"Figures: {figures + 1} of {3 * figures}, " in said


def test_all_figures_are_json(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.log"
    write_uses_log(other, range(500), rate=50)
    assert main(["traffic", str(log), "--compare", str(other), "--json", "-", "--share"]) == 0
    out = capsys.readouterr().out
    found = valid(out, "traffic")
    assert (found["format"], found["clients"], found["unreadable"]) == ("ssbench traffic", 1, 0)
    assert [each["name"] for each in found["figures"]] == [each.title for each in TRAFFIC_FIGURES]
    figures = {each["name"]: each for each in found["figures"]}
    assert figures["requests a second"]["log"] == pytest.approx(100, rel=0.01)
    assert figures["requests a second"]["distance"] == pytest.approx(-0.5, abs=0.01)
    assert abs(figures["requests a second"]["halves_distance"]) < 0.01
    assert (figures["size by use, p95"]["other"], figures["lifetime, median"]["log"]) == (1000, None)
    whole = tmp_path / "one.json"
    assert main(["traffic", str(log), "-o", str(tmp_path / "m.yaml"), "--json", str(whole)]) == 0
    assert main(["traffic", str(log), "--json", str(whole)]) == 2  # it exists
    alone = valid(whole.read_text(), "traffic")
    assert "other" in alone["figures"][0]
    assert alone["figures"][0]["other"] is None


def test_what_is_shared_has_no_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    write_uses_log(log, [number % 50 for number in range(400)])
    with log.open("a") as out:
        out.write(swift_line(BEGAN, "GET", "/v1/a/c/secret").replace("HTTP/1.0 200", "HTTP/1.0 many"))
    assert main(["traffic", str(log)]) == 0
    assert "secret" in capsys.readouterr().out
    assert main(["traffic", str(log), "--share"]) == 0
    out_of_others = capsys.readouterr().out
    assert "1 line cannot be read" in out_of_others
    assert "secret" not in out_of_others


def test_lines_that_are_left_out_are_counted_with_an_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, page = tmp_path / "log", tmp_path / "page.html"
    write_uses_log(log, [number % 50 for number in range(400)])
    with log.open("a") as out:
        out.write("proxy-server: autocreate account '/secret'\n" * 12)
    assert main(["traffic", str(log), "--compare", str(log), "--html", str(page)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    said = "12 lines left out as no requests of clients"
    assert words.count(said) == 2
    assert f"the other: {said}, such as: proxy-server: autocreate account '/secret'" in words
    assert said in page.read_text()
    assert main(["traffic", str(log), "--share"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert said in words
    assert "secret" not in words


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "rgw"],
        ["--format", "s3", "--log-format", "x"],
        ["--compare", "LOG", "-o", "-"],
        ["--html", "-", "-o", "-"],
        ["missing.log"],
        ["--compare-format", "rgw"],
    ],
)
def test_mistakes_are_a_line(
    log: Path, arguments: list[str], capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    given = [str(log) if each == "LOG" else each for each in arguments]
    assert main(["traffic", str(log), *given]) == 2
    err = capsys.readouterr().err
    golden_words(err)
    assert "Traceback" not in err


def test_the_examples_of_the_documentation_run(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    log.with_name("run.log").write_bytes(log.read_bytes())
    commands = re.findall(
        r"^   \$ ssbench-master (traffic .*proxy\.log.*)$", DOCUMENT.read_text(), re.MULTILINE
    )
    assert len(commands) >= 3
    for command in commands:
        assert main(shlex.split(command)) == 0, command
    capsys.readouterr()
    assert main(["check-scenario", "mine.yaml"]) == 0
    assert "objects are chosen by popularity: counts" in capsys.readouterr().out
