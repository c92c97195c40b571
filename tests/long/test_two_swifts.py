"""Two Swifts of one run: the verdict, the part, and whose CPU it is that a filter in one proxy uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from json_records import valid
from processes import PATIENCE, Fleet

from ssbench.cli.archives import open_stat_file
from ssbench.statistics.summary import summarize

#: Seconds of CPU that it uses for each request of a client: several times as much as all else.
COST = 0.02

FILTER = """
import time

def burn(conf, seconds, **_):
    def wrap(app):
        def run(env, start_response):
            end = time.thread_time() + float(seconds)
            while time.thread_time() < end:
                pass
            return app(env, start_response)
        return run
    return wrap
"""


@pytest.fixture
def swifts(tmp_path: Path) -> None:
    """Files with the settings of two Swifts: plain.yaml and slow.yaml."""
    (tmp_path / "planted.py").write_text(FILTER)
    for name, seconds in (("plain", 0), ("slow", COST)):
        (tmp_path / f"{name}.yaml").write_text(
            f'filters: ["paste:planted:burn"]\nproxy-server: {{"filter:burn": {{seconds: "{seconds}"}}}}\n'
        )


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("swifts")
def test_a_filter_that_uses_cpu_in_one_proxy_is_found_there(fleet: Fleet, tmp_path: Path) -> None:
    stats, page = tmp_path / "ab.stat.gz", tmp_path / "ab.json"
    run = fleet.master(
        *("run-scenario", "-f", "smoke", "-u", 4, "-r", 20, "--workers", 1, "-s", stats, "--json", page),
        *("--ab", f"plain={tmp_path}/plain.yaml", f"slow={tmp_path}/slow.yaml"),
        environment={"PYTHONPATH": str(tmp_path)},
    )
    assert run.end(5 * PATIENCE) == 0, run.err
    assert "differ in: burn.seconds 0 -> 0.02" in " ".join(run.out.split())
    verdict, by_part = run.out.partition("\nBy the logs of both: ")[::2]
    assert re.search(r"^slower: ALL p50", verdict, re.M), verdict
    assert re.search(r"^proxy +CPU ms .* more$", verdict, re.M), verdict
    sentence = by_part.partition("\n\n")[0]
    found = re.fullmatch(
        r"READ is \S+ ms slower: the proxy's own part \S+ ms \(.*?\), its CPU \+(\S+) ms an operation.*",
        " ".join(sentence.split()),
    )
    assert found, sentence
    assert "What clients waited, and its parts (ms)" in by_part
    report = valid(page.read_text(), "report")
    assert report["by_part"]["answer"] == " ".join(sentence.split())
    before, after = report["sides"]
    more = after["server_cpu"]["proxy"]["seconds"] - before["server_cpu"]["proxy"]["seconds"]
    assert float(found[1]) == pytest.approx(1000 * more, rel=0.1)
    # A busy machine makes each request cost more, but none of the filter's time is lost.
    assert COST < more < 2 * COST
    with open_stat_file(stats) as results:
        operations = [side.numbers.total.count for side in summarize(results).sides]
    for side, count in zip((before, after), operations, strict=True):
        assert side["server_cpu"]["proxy"]["operations"] == pytest.approx(count, rel=0.1)


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("swifts")
def test_runs_in_turn_are_compared_by_part_too(fleet: Fleet, tmp_path: Path) -> None:
    words = ["run-scenario", "-f", "smoke", "-u", 2, "-r", 8, "--workers", 1, "-s", tmp_path / "v.stat.gz"]
    words += ["--local-swift", "--swift-config", tmp_path / "plain.yaml"]
    words.append(f"--versus=--swift-config {tmp_path}/slow.yaml")
    environment = {"PYTHONPATH": str(tmp_path)}
    run = fleet.master(*words, "--repeat", 2, environment=environment)
    assert run.end(5 * PATIENCE) == 0, run.err
    by_part = run.out.partition("\nBy the logs of both: ")[2]
    assert re.match(r"READ is \S+ ms slower: the proxy's own part \+", by_part), run.out
    assert "earlier call" not in run.out
    more = fleet.master(*words, "--repeat", 3, "--resume", environment=environment)
    assert more.end(5 * PATIENCE) == 0, more.err
    assert "4 of 6 runs are those of an earlier call, whose logs are gone" in more.out
