"""The report as JUnit XML."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from full_run import write_full_run
from golden_words import GoldenWords
from old_formats import msgpack_file, success

from ssbench.cli.master import main

KNOWN = Path(__file__).parents[2] / "data" / "version-1-known.stat.gz"


def suite(
    capsys: pytest.CaptureFixture[str], path: Path, *conditions: str
) -> tuple[int, ElementTree.Element]:
    arguments = ["-q", "report-scenario", "-s", str(path), "--ci", "xml=-"]
    code = main([*arguments, *(part for each in conditions for part in ("--fail-if", each))])
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert root.tag == "testsuites"
    (found,) = root
    assert found.attrib.items() >= {"tests": str(len(found.findall("testcase")))}.items()
    assert found.get("failures") == root.get("failures") == str(len(found.findall("testcase/failure")))
    return code, found


def failures(found: ElementTree.Element) -> dict[str, str | None]:
    return {
        str(case.get("name")): failure.get("message")
        if (failure := case.find("failure")) is not None
        else None
        for case in found.findall("testcase")
    }


def test_a_case_for_each_threshold(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = suite(capsys, KNOWN, "read.p99 > 100ms", "errors > 90%", "update.max > 1s")
    assert code == 5
    cases = failures(found)
    assert cases.pop("the run went on to its end") is None
    assert cases.pop("all operations succeeded") is None
    # The condition on errors says how many there may be.
    skipped = found.find("testcase[@name='all operations succeeded']/skipped")
    assert skipped.get("message").endswith(
        "2 of 5 operations failed (40.0 %): 1 x lost worker, 1 x short body"
    )
    assert cases.pop("few requests were retried") is None
    assert cases.pop("the mix was as asked") is None
    assert cases.pop("not errors > 90%") is None
    assert "FAILED" in str(cases.pop("not read.p99 > 100ms"))
    assert "not measured" in str(cases.pop("not update.max > 1s"))
    assert not cases
    assert found.get("timestamp") == "2001-09-09T01:46:40"
    assert [float(case.get("time", -1)) for case in found.findall("testcase")] == [4.0, 0, 0, 0, 0, 0, 0]
    assert "Warning: worker 1 was busy" in str(found.findtext("system-out"))


def test_failed_operations_and_an_undecided_condition(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = suite(capsys, KNOWN, "read.p99 > 9s")
    assert code == 6
    failed = failures(found)["all operations succeeded"]
    assert failed == "2 of 5 operations failed (40.0 %): 1 x lost worker, 1 x short body"
    assert failures(found)["not read.p99 > 9s"] is None
    skipped = found.find("testcase[@name='not read.p99 > 9s']/skipped")
    assert "undecided (1.5s, of 2 operations; about 370 would decide)" in skipped.get("message")
    assert found.find("testcase[@name='the mix was as asked']/skipped") is not None
    skipped = found.find("testcase[@name='few requests were retried']/skipped")
    assert " retried after " in skipped.get("message")
    assert found.get("skipped") == "3"


def test_names_of_a_stat_file_stay_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    _, found = suite(capsys, write_full_run(tmp_path / "run.stat.gz", interrupted=True))
    assert found.get("name") == "Füll <b>&|"
    golden_words(failures(found)["the run went on to its end"])
    path = tmp_path / "old.stat"
    path.write_bytes(msgpack_file([[success()]], name="a\ufffe\x01b"))
    _, found = suite(capsys, path)
    assert found.get("name") == "a\ufffd\ufffdb"
    assert set(failures(found).values()) == {None}
