"""The report as JSON: against its schema, and against the numbers that it was made from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from full_run import RUN, SUMMARY, write_full_run
from old_formats import failure, msgpack_file, pickle_file, success
from said import NO_REGULAR_FILE, STAT_FILE_ITSELF

from ssbench.base.record import format_json_schema
from ssbench.cli.master import main
from ssbench.reports import writing as reports
from ssbench.reports.json import RunReportRecord, make_scenario_record
from ssbench.reports.writing import ReportOptions
from ssbench.results.block import LOST_CAUSE, ResultBlock
from ssbench.results.reading import open_results
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.operations import DELETE, READ
from ssbench.statistics.latencies import Latencies
from ssbench.statistics.summary import summarize

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "doc" / "report-schema.json"
KNOWN = ROOT / "tests" / "data" / "version-1-known.stat.gz"
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))


def report(path: Path, options: ReportOptions | None = None) -> dict[str, Any]:
    statistics = summarize(open_results(path), ("worker", "storage_url"), over_time=True)
    made: dict[str, Any] = json.loads(reports.make_run_report("json", statistics, options or ReportOptions()))
    VALIDATOR.validate(made)
    return made


def test_the_schema_in_the_documentation_is_that_of_the_code() -> None:
    # After a change: ssbench-master schema report > doc/report-schema.json
    assert SCHEMA.read_text() == format_json_schema(RunReportRecord)


def test_a_file_of_version_1() -> None:
    made = report(KNOWN, ReportOptions(99.5, (12.25,)))
    everything = made["operations"][0]
    assert everything["operation"] == "all"
    assert everything["figures"]["count"] == 3
    assert everything["figures"]["ops_per_second"] == 2.0
    assert {"12.25", "99.5", "99.99"} < everything["figures"]["last_byte"]["percentiles"].keys()
    assert [each["size_class"] for each in everything["size_classes"]] == ["tiny", "huge"]


def test_the_life_of_objects_has_both_ends_where_they_differ() -> None:
    statistics = summarize(open_results(KNOWN))
    for least, most, words in ((None, None, ""), (60, None, "60"), (60, 90, "60 to 90")):
        scenario = replace(statistics.run.scenario, delete_after=least, delete_after_most=most)
        asked: Any = make_scenario_record(scenario)
        assert (asked.delete_after, asked.delete_after_most, scenario.expiry) == (least, most, words)


def test_every_part(tmp_path: Path) -> None:
    made = report(write_full_run(tmp_path / "run.stat.gz"))
    assert made["run"]["run_id"] == str(2**62)
    assert made["run"]["scenario"]["file"] == {"name": "Füll", "rate": None}
    names = [each["operation"] for each in made["operations"]]
    assert names == ["all", READ.name, DELETE.name]
    read = made["operations"][1]
    assert [each["size_class"] for each in read["size_classes"]] == ["tiny", "big"]
    assert read["figures"]["last_byte"]["max"] == pytest.approx(0.4)
    slowest = read["figures"]["last_byte"]["slowest"]
    assert (slowest["trans_id"], slowest["size_class"], slowest["worker_id"]) == ("tx1", "big", 2)
    assert slowest["container"] == slowest["object"] == "1"
    workers = {each["worker_id"]: each for each in made["workers"]}
    assert workers.keys() == {1, 2, 9, None}
    assert workers[1]["cpu_share"] == 0.5
    assert workers[9]["figures"] is None
    assert workers[2]["figures"]["errors"] == workers[None]["figures"]["lost"] == 1
    urls = {each["url"]: each["figures"]["count"] for each in made["storage_urls"]}
    assert urls == {"http://a/v1/x": 1, "http://b/v1/x": 1, None: 0}
    causes = {each["cause"]: each for each in made["errors"]}
    assert causes["HTTP 503"]["statuses"] == {"503": 1}
    assert causes["HTTP 503"]["operations"] == {"delete": 1}
    assert causes[LOST_CAUSE]["statuses"] == {"none": 1}
    assert [each["slowest"]["trans_id"] for each in made["slowest"]] == ["tx1", "tx0"]
    assert made["slowest"][0]["storage_url"] == "http://b/v1/x"
    everything = made["over_time"]["operations"][0]
    assert everything["operation"] == "all"
    assert (sum(everything["count"]), sum(everything["failed"]), sum(everything["bytes"])) == (2, 2, 100)
    assert made["retries"] == [{"cause": "HTTP 503", "count": 1}]
    assert made["not_sendable"] == [{"operation": "delete", "size_class": "tiny", "count": 2}]
    assert made["cluster"]["servers"][0]["url"] == "http://h:6200"


OLD = {
    "msgpack": msgpack_file([[success(), failure(0), success(3, 1e9 + 1)]]),
    "pickle": pickle_file([success(), failure(2), success(worker_id="host-1")]),
    "only errors": msgpack_file([[failure()]]),
    "empty": msgpack_file([]),
    "surrogate": msgpack_file([[success(trans_id="tx")]], name="a\ud800".encode("utf-8", "surrogatepass")),
}


@pytest.mark.parametrize("content", OLD.values(), ids=OLD)
def test_old_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "old.stat"
    path.write_bytes(content)
    made = report(path)
    assert not made["current"]
    assert made["course"] is None


def test_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.json"
    arguments = ["report-scenario", "-s", str(KNOWN)]
    assert main([*arguments, "--json", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "Known results" in out
    assert f"Wrote {file}" in err
    assert main([*arguments, "--json", "-"]) == 0
    alone = capsys.readouterr().out
    assert alone == file.read_text()
    VALIDATOR.validate(json.loads(alone))


def test_wrong_command_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.json"
    file.write_text("mine")
    run = ["run-scenario", "-f", "very_small", "--workers", "1"]
    show = ["report-scenario", "-s", str(KNOWN)]
    for arguments, message in (
        ([*run, "--json", str(file)], f"{file}: exists already"),
        ([*show, "--json", str(file)], f"{file}: exists already"),
        ([*show, "--json", "-", "-f", "-"], "standard output (-) is given for two outputs"),
        ([*show, "--json", str(KNOWN), "--force"], STAT_FILE_ITSELF),
        ([*run, "--json", str(tmp_path)], NO_REGULAR_FILE),
        ([*run, "--json", str(tmp_path / "no" / "where")], "cannot be written: No such file or directory"),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err
    assert file.read_text() == "mine"


@pytest.mark.parametrize(("workers", "in_full"), [(100, True), (101, False)])
def test_many_workers_do_not_make_it_large(
    workers: int, in_full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    interval = Latencies.interval
    monkeypatch.setattr(
        Latencies, "interval", lambda self, rank: asked.append(rank) or interval(self, rank), raising=True
    )
    count, numbers = 4040, np.arange(4040)
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, replace(RUN, workers=()))
    same = {name: np.zeros(count, np.int64) for name in ("operation", "size_class")}
    own = {
        "worker": numbers % workers,
        "last_byte": 0.01 + numbers % 97 / 1000,
        "completed": 1e9 + numbers / 999,
    }
    writer.add(ResultBlock(count, same | own))
    writer.end(replace(SUMMARY, workers=(), not_sendable=(), lost_jobs=0))
    made = report(path)
    assert len(made["workers"]) == workers
    assert sum(each["figures"]["count"] for each in made["workers"]) == count
    assert all(each["figures"]["last_byte"]["percentiles"]["50"] for each in made["workers"])
    assert {each["figures"]["last_byte"]["slowest"] is not None for each in made["workers"]} == {in_full}
    assert (len(asked) > 2 * workers) == in_full
    statistics = summarize(open_results(path), ("worker",))
    text = "".join(reports.make_run_report("json", statistics, ReportOptions()))
    lines = [line for line in text.splitlines() if line.startswith('  {"worker_id"')]
    assert len(lines) == (0 if in_full else workers)
    assert all(len(line) < 2500 for line in lines)
