"""Stat files of ssbench 0.0.1 to 0.3.9: genuine ones where they are, and some made from the description."""

from __future__ import annotations

import gzip
import math
import os
import re
from pathlib import Path
from random import Random

import msgpack
import pytest
from golden_words import GoldenWords
from hypothesis import example, given, settings
from hypothesis import strategies as st
from old_files import assert_read_or_refused, opened, read, rows
from old_formats import failure, msgpack_file, pickle_file, state, success

from ssbench.base.errors import StatFileError
from ssbench.document.columns import measure_width
from ssbench.reports import csv, json, run_text
from ssbench.reports.writing import ReportOptions
from ssbench.results.legacy.old_results import OldResultColumns
from ssbench.results.reading import open_results
from ssbench.statistics.summary import summarize

REPOSITORY = Path(__file__).parents[4]
GENUINE = Path(os.environ.get("SSBENCH_OLDSTATS") or REPOSITORY.parent / "shared" / "oldstats")

needs_genuine = pytest.mark.skipif(
    not GENUINE.is_dir(), reason="no folder of genuine stat files: set SSBENCH_OLDSTATS"
)


def genuine_files() -> list[Path]:
    return sorted(GENUINE.glob("*/*.stat*"))


def comparable(report: str) -> list[str]:
    """Leave out what the old program got wrong: the expiration line without one, start, end and duration."""
    lines = report.split("\n")
    return [
        re.sub(r"Ran .*", "", line)
        for line in lines
        if line != "Object expiration (X-Delete-After): None (sec)"
    ]


def same_columns(report: str) -> list[tuple[str, str]]:
    header, data, _ = report.split("\n")
    columns = zip(header.split(","), re.findall(r'"[^"]*"|[^,]+', data), strict=True)
    return [column for column in columns if column[0] not in ('"start_time"', '"stop_time"', '"duration"')]


@needs_genuine
@pytest.mark.parametrize("path", genuine_files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_genuine_file_gives_the_report_of_the_reference_version(path: Path) -> None:
    case = path.name.removesuffix(".gz").removesuffix(".stat")
    statistics = summarize(open_results(path))
    assert statistics.warnings == ()
    version = "" if path.parent.name == "0.3.9" else ".by039"
    for suffix, percentile in (("", 95), (".p50", 50), (".p99", 99)):
        expected = path.parent / f"{case}{version}{suffix}.txt"
        if expected.exists():
            ours = run_text.make_sections_report(statistics, ReportOptions(percentile))
            assert comparable(ours) == comparable(expected.read_text())
        expected = path.parent / f"{case}{version}{suffix}.csv"
        if expected.exists():
            assert same_columns(csv.make_run_csv(statistics, ReportOptions(percentile))) == same_columns(
                expected.read_text()
            )
    expected = path.parent / f"{case}.rps"
    if expected.exists():
        assert csv.make_requests_per_second_csv(statistics, ReportOptions()) == expected.read_text()
    assert run_text.make_sections_report(statistics, ReportOptions(95)) == run_text.make_table_report(
        statistics, ReportOptions(95)
    )
    lines = run_text.make_summary_report(statistics, ReportOptions(95)).splitlines()
    assert any(line.startswith("ALL ") for line in lines)
    assert max(map(measure_width, lines)) <= 80


@needs_genuine
@pytest.mark.parametrize("path", genuine_files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_numbers_of_an_older_layout_are_in_ours(path: Path) -> None:
    case = path.name.removesuffix(".gz").removesuffix(".stat")
    statistics = summarize(open_results(path))
    for suffix, percentile in (("", 95), (".p50", 50)):
        expected = path.parent / f"{case}{suffix}.txt"
        if not expected.exists():
            continue
        ours, theirs = (
            run_text.make_sections_report(statistics, ReportOptions(percentile)),
            expected.read_text(),
        )
        latencies = [line for line in theirs.splitlines() if "latency: " in line]
        assert latencies == [line for line in ours.splitlines() if "latency: " in line]
        if statistics.total.failed == 0:  # they counted failures as requests, or left their times out
            pattern = r"Count: +(\d+).*Average requests per second: +([\d.]+)"
            assert re.findall(pattern, ours) == re.findall(pattern, theirs)


@needs_genuine
@pytest.mark.parametrize("path", genuine_files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_genuine_file_cut_off_anywhere_is_read_up_to_there(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    _, whole = rows(path)
    cut = tmp_path / "cut"
    seen = []
    for length in sorted({0, 1, 20, *(len(data) * part // 6 for part in range(1, 6)), len(data) - 1}):
        cut.write_bytes(data[:length])
        results = opened(cut)
        if results:
            count = results.results_read
            seen.append(count)
            assert count <= whole
            assert len(results.warnings) == 1
            assert f"{count:,} results" in results.warnings[0]
    assert seen == sorted(seen)
    if whole > 100:
        assert max(seen) > whole / 2


@needs_genuine
@pytest.mark.parametrize("path", genuine_files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_secret_of_a_genuine_file_is_kept(path: Path) -> None:
    results = open_results(path)
    for block in results.blocks():
        for failed in block.failures.values():
            assert "AUTH_test" not in failed.detail
            assert "'tok'" not in failed.detail


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    "make", [lambda results: msgpack_file([results[:1], results[1:]]), pickle_file], ids=["msgpack", "pickle"]
)
def test_both_formats_say_the_same(make: object, compressed: bool, tmp_path: Path) -> None:
    results = [
        success(0, 100.5, 0.25, size=5000, retries=2),
        success(1, 101.5, 0.5, worker_id=1),
        success(1, 103.0, 1.0, size_str="zero"),
        success(3, 104.0, 0.125, retries=None),
        failure(2, 105.0, retries=10),
    ]
    data = make(results)
    statistics = read(gzip.compress(data) if compressed else data, tmp_path)
    assert statistics.run.scenario.name == "Old scenario"
    assert [c.name for c in statistics.run.scenario.size_classes] == ["tiny", "zero"]
    assert statistics.run.scenario.size_classes[1].crud_profile == (60, 15, 20, 5)
    total = statistics.total
    assert (total.count, total.failed, total.counted["retries"], total.lost) == (4, 1, 12, 0)
    assert (statistics.start, statistics.end) == (100.25, 105.0)
    assert total.requests_per_second == pytest.approx(4 / 4.75)
    assert [section.operation.name for section in statistics.sections[1:] if section.operation] == [
        "create",
        "read",
        "update",
        "delete",
    ]
    assert [line.size_class for line in total.lines] == [None, "tiny", "zero"]
    assert total.lines[0].last_byte.maximum == 1.0
    assert total.lines[0].last_byte.slowest is not None
    assert total.lines[0].last_byte.slowest.trans_id == "tx103.0"
    assert tuple(statistics.requests_by_second) == ((1, 1), (2, 1), (3, 0), (4, 1), (5, 1))
    assert statistics.worker_count == 2


def test_what_the_command_line_set_wins_over_the_scenario(tmp_path: Path) -> None:
    scenario = read(msgpack_file([[success()]], user_count=60), tmp_path).run.scenario
    assert scenario.user_count == 60
    old = {**state()["_scenario_data"], "delete_after": 60}
    assert read(pickle_file([success()], _scenario_data=old), tmp_path).run.scenario.delete_after == 60
    scenario = read(msgpack_file([[success()]], _scenario_data=old), tmp_path).run.scenario
    assert scenario.delete_after is None  # recorded as nil: the command line said so


def test_texts_may_be_any(tmp_path: Path) -> None:
    name = "políticas / テスト \\ 'q' \"d\" 🐌"
    for data in (
        pickle_file([success(size_str=name, trans_id=name)], name=name),
        pickle_file([success(size_str=name.encode(), trans_id=name.encode())], name=name.encode()),
        msgpack_file([[success(size_str=name, trans_id=name)]], name=name),
    ):
        statistics = read(data, tmp_path)
        assert statistics.run.scenario.name == name
        assert name in run_text.make_sections_report(statistics, ReportOptions(95))
        assert statistics.total.lines[1].size_class == name


def test_bytes_that_are_no_utf8_are_shown_somehow(tmp_path: Path) -> None:
    pickled = read(pickle_file([success()], name=b"caf\xe9"), tmp_path)
    assert pickled.run.scenario.name == "café"
    packed = read(msgpack_file([[success(trans_id=b"tx\xff")]], name=b"caf\xe9"), tmp_path)
    assert packed.run.scenario.name == "caf\ufffd"


def test_entries_that_are_no_results_are_skipped_and_counted(tmp_path: Path) -> None:
    bad: list[object] = [
        {},
        "text",
        None,
        success(type="list_objects"),
        success(completed=math.nan),
        success(completed_at="yesterday"),
        success(completed_at=None),
        success(last=None, exception=None),
        success(worker_id=[1]),
        success(size_str=None),
        success(last_byte_latency=-1.0),
    ]
    for key in ("type", "size_str", "worker_id", "completed_at", "last_byte_latency"):
        lacking = success()
        del lacking[key]
        bad.append(lacking)
    for data in (msgpack_file([[*bad, success()]]), pickle_file([*bad, success()])):
        statistics = read(data, tmp_path)
        assert statistics.total.count == 1
        assert len(statistics.warnings) == 1
        assert f": {len(bad)}" in statistics.warnings[0]


def test_workers_may_be_called_anything(tmp_path: Path) -> None:
    path = tmp_path / "workers"
    path.write_bytes(msgpack_file([[success(worker_id=id_) for id_ in (3, "web", "db", 2**64 - 1, "web")]]))
    results = open_results(path)
    (block,) = results.blocks()
    names = [results.worker_names.get(worker, str(worker)) for worker in block.worker.tolist()]
    assert names == ["3", "web", "db", str(2**64 - 1), "web"]


def test_a_scenario_that_makes_no_sense_still_has_a_report(tmp_path: Path) -> None:
    for nonsense in (
        {},
        {"sizes": 3},
        {"sizes": [3, {"name": 4}], "initial_files": {"a": "b"}},
        {"name": ["x"]},
    ):
        statistics = read(msgpack_file([[success()]], _scenario_data=nonsense, user_count="many"), tmp_path)
        assert statistics.total.count == 1
        assert run_text.make_sections_report(statistics, ReportOptions(95))
        assert csv.make_run_csv(statistics, ReportOptions(95))


def test_secrets_in_a_failure_are_not_kept(tmp_path: Path) -> None:
    kwargs = {"key": "sesame", "os_options": {"password": ["hunter2"]}}
    exception = "Failed with sesame at http://host/v1/AUTH_x using hunter2 and token AUTH_tk123"
    bad = failure(
        exception=exception, auth_kwargs=kwargs, token="AUTH_tk123", storage_url="http://host/v1/AUTH_x"
    )
    path = tmp_path / "secret"
    for data in (msgpack_file([[bad]]), pickle_file([bad])):
        path.write_bytes(data)
        (block,) = open_results(path).blocks()
        assert block.failures[0].detail == "Failed with *** at *** using *** and token ***"


@pytest.mark.parametrize(
    "value",
    [msgpack.Timestamp(1), msgpack.ExtType(5, b"x"), 2**64 - 1, math.nan, math.inf, b"\xff"],
    ids=repr,
)
def test_whatever_a_scenario_of_old_holds_can_be_written_as_json(value: object, tmp_path: Path) -> None:
    data = {**state()["_scenario_data"], "comment": value}
    path = tmp_path / "file"
    path.write_bytes(
        msgpack.packb({**state(), "_scenario_data": data}) + msgpack.packb([success()], use_bin_type=False)
    )
    json.make_run_json(summarize(open_results(path)), ReportOptions(95))


def test_keys_of_an_old_scenario_may_be_any(tmp_path: Path) -> None:
    data = {**state()["_scenario_data"], 5: 1, 1e300: 2, None: 3, True: 4, b"\xff": 5}
    statistics = read(msgpack_file([[success()]], _scenario_data=data), tmp_path)
    assert json.make_run_json(statistics, ReportOptions(95))


def test_what_is_kept_of_names_is_bounded(tmp_path: Path) -> None:
    long = "x" * 20_000
    results = [success(size_str=long, worker_id=long, container=long), failure(exception=long)]
    path = tmp_path / "file"
    path.write_bytes(msgpack_file([results]))
    found = open_results(path)
    (block,) = found.blocks()
    assert len(found.size_classes[-1]) == len(found.worker_names[-1]) == len(block.container[0]) == 1024
    assert len(block.failures[1].detail) == 10_000


def test_size_classes_beyond_any_genuine_number_are_skipped(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    results = [success(completed=1e9 + place, size_str=f"c{place}") for place in range(2100)]
    path = tmp_path / "file"
    path.write_bytes(msgpack_file([results]))
    found, count = rows(path)
    assert count == len(found.size_classes) - 2 == 1998
    golden_words(found.warnings)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
RESULTS = st.builds(
    lambda base, changes: {**base, **changes},
    st.sampled_from([success(), failure(), success(0)]),
    st.dictionaries(st.sampled_from([*success(retries=0, size=0), "exception"]), PLAIN, max_size=4),
)


@given(
    results=st.lists(RESULTS | PLAIN, max_size=4), changes=st.dictionaries(st.sampled_from([*state()]), PLAIN)
)
@example(results=[success(completed=1e-300)], changes={"name": "\ud800"[:0]})
def test_values_of_any_type(
    results: list[object], changes: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert_read_or_refused(msgpack_file([results], **changes), tmp_path_factory.getbasetemp())
    assert_read_or_refused(pickle_file(results, **changes), tmp_path_factory.getbasetemp())


def both_ways(data: bytes, folder: Path) -> tuple[object, object]:
    """Return all that is known of the results of a file, read many at once and entry by entry."""
    path = folder / "file.stat"
    path.write_bytes(data)

    def read() -> object:
        results = open_results(path)
        try:
            blocks = list(results.blocks())
        except StatFileError as error:
            return str(error)
        columns = [[[*getattr(block, name)] for block in blocks for name in sorted(block.given)]]
        failures = [block.failures for block in blocks]
        return repr((columns, failures, results.warnings, results.size_classes, results.worker_names))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OldResultColumns, "extend", lambda *_: False)
        careful = read()
    return read(), careful


USUAL = st.builds(
    lambda operation, completed, last, more: success(operation, completed, last, **more),
    st.integers(0, 3),
    st.floats(-1e12, 1e12),
    st.floats(allow_nan=True),
    st.fixed_dictionaries(
        {},
        optional={
            "retries": st.none() | st.integers(-1, 2**33),
            "size": st.none() | st.integers(-2, 2**54),
            "worker_id": st.integers(-1, 2**64 - 1) | st.text(max_size=3),
            "size_str": st.sampled_from(["zero", "new"]),
            "first_byte_latency": st.floats() | st.integers(0, 5),
            "name": st.text() | st.just("x" * 1025) | st.binary(max_size=3),
            "trans_id": st.none() | st.text(),
            "exception": st.none() | st.just("x"),
            "unknown": PLAIN,
        },
    ),
)


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(st.lists(USUAL | RESULTS, max_size=4), max_size=4),
    damage=st.integers(0, 3),
    random=st.randoms(use_true_random=False),
)
@example(
    batches=[[success(), success(0, size=7)], [failure()], [success(3, last=math.inf), 5]],
    damage=0,
    random=Random(1),
)
def test_usual_results_are_read_the_same_at_once_and_one_by_one(
    batches: list[list[object]], damage: int, random: Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    head, data = len(msgpack_file([])), bytearray(msgpack_file(batches))
    for _ in range(damage if batches else 0):
        data[random.randrange(head, len(data))] = random.randrange(256)
    at_once, one_by_one = both_ways(bytes(data), tmp_path_factory.getbasetemp())
    assert at_once == one_by_one


def test_usual_results_have_the_fast_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [[success(completed=1e9 + each, retries=0)] * 10 for each in range(300)]
    data = msgpack_file([*batches, [failure()], *batches])
    monkeypatch.setattr(OldResultColumns, "add", lambda self, result: taken.append(result))
    taken: list[object] = []
    (tmp_path / "file.stat").write_bytes(data)
    _, count = rows(tmp_path / "file.stat")
    assert (count, len(taken)) == (6000, 1)
