"""Stat files of ssbench 0.0.1 to 0.3.9: genuine ones where they are, and some made from the description."""

from __future__ import annotations

import gzip
import math
import os
import re
import tracemalloc
from pathlib import Path
from random import Random

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from old_formats import Pickler, failure, msgpack_file, pickle_file, state, success

from ssbench.base.errors import StatFileError
from ssbench.document.columns import measure_width
from ssbench.reports import csv, json, run_text
from ssbench.reports.writing import ReportOptions
from ssbench.results.legacy import msgpack_stream, python2_pickle
from ssbench.results.legacy.old_results import OldResultColumns
from ssbench.results.reading import RunResults, StatFileStream, open_results
from ssbench.statistics.run_statistics import RunStatistics
from ssbench.statistics.summary import summarize

REPOSITORY = Path(__file__).parents[3]
GENUINE = Path(os.environ.get("SSBENCH_OLDSTATS") or REPOSITORY.parent / "shared" / "oldstats")

needs_genuine = pytest.mark.skipif(
    not GENUINE.is_dir(), reason="no folder of genuine stat files: set SSBENCH_OLDSTATS"
)


def genuine_files() -> list[Path]:
    return sorted(GENUINE.glob("*/*.stat*"))


def read(data: bytes, tmp_path: Path) -> RunStatistics:
    path = tmp_path / "file.stat"
    path.write_bytes(data)
    return summarize(open_results(path))


def rows(path: Path) -> tuple[RunResults, int]:
    results = open_results(path)
    return results, sum(len(block) for block in results.blocks())


def opened(path: Path) -> RunResults | None:
    """Return results that were read to their end, None when they were refused in one line."""
    try:
        results, _ = rows(path)
    except StatFileError as error:
        if not re.fullmatch(rf"{re.escape(str(path))}: .+", str(error)):
            raise
        return None
    return results


# --- genuine files ---


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


# --- made from the description ---


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
    data = make(results)  # type: ignore[operator]
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


@pytest.mark.parametrize(
    "pickler",
    [
        Pickler(first=0),
        Pickler(share=True),
        Pickler(ordered="collections"),
        Pickler(ordered="ssbench.ordered_dict", share=True),
    ],
    ids=["counted from 0", "shared", "OrderedDict", "old OrderedDict, shared"],
)
def test_pickles_of_other_picklers(pickler: Pickler, tmp_path: Path) -> None:
    results = [success(completed=100.0 + i, size_str="tiny", noop=True) for i in range(5)]
    # The state of the scenario itself is always a plain dictionary.
    data = pickle_file(results, pickler) if not pickler._ordered else b"".join(pickler.file(results, state()))
    assert read(data, tmp_path).total.count == 5


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


@pytest.mark.parametrize("name", ["\\ ' \" \t \n \r \x00 \x7f \\n \\x41", "'", '"'])
def test_what_repr_escapes_comes_back(name: str, tmp_path: Path) -> None:
    assert read(pickle_file([success()], name=name), tmp_path).run.scenario.name == name


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
        success(last=None, exception=None),  # type: ignore[arg-type]
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
    "make", [lambda results: msgpack_file([results]), pickle_file], ids=["msgpack", "pickle"]
)
def test_progress_goes_once_to_the_end(make: object, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(make([success(completed=1e9 + i) for i in range(3000)]))  # type: ignore[operator]
    shares: list[float] = []
    results = open_results(path, lambda done, total: shares.append(done / total))
    assert sum(len(block) for block in results.blocks()) == 3000
    after_head = shares[1:]  # the first piece is read to know the format
    assert after_head == sorted(after_head)
    assert after_head[0] < 0.3
    assert after_head[-1] == 1.0


def test_batches_may_be_of_any_size(tmp_path: Path) -> None:
    results = [success(completed=1e9 + i / 1000) for i in range(20_000)]
    assert read(msgpack_file([results, [], results[:1]]), tmp_path).total.count == 20_001


# --- what is no stat file, or a broken one ---

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
BOMB = msgpack.packb(state(), use_bin_type=False)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x1f\x8b",
        PNG,
        gzip.compress(b"", mtime=0),
        gzip.compress(PNG, mtime=0),
        gzip.compress(b"hello" * 1000, mtime=0),
        gzip.compress(b"hello", mtime=0)[:-3],
        msgpack.packb({"a": 1}),
        msgpack.packb([1, 2, 3]),
        msgpack.packb({"_scenario_data": 7}),
        b"\xdf\xff\xff\xff\xff",
        BOMB + b"\xdd\xff\xff\xff\xff",
        BOMB + b"\xdd\xff\xff\xff\xff" + b"\x91" * 2000,
        BOMB + msgpack.packb("what"),
        b"(lp1\n",
        b"(lp1\n.",
        b"(lp1\nI1\na.",
        b"(lp1\ncos\nsystem\np2\n(S'true'\ntR.",
        b"(lp1\ncposix\nsystem\n(S'true'\ntR.",
        b"(lp1\n(ibuiltins\nexec\n.",
        b"(lp1\n" + b"(" * 200_000,
        b"(lp1\ng999999999\n.",
        b"(lp1\ng99999999999999999999\n.",
        b"(lp1\nL" + b"9" * 100_000 + b"L\na.",
        b"(lp1\nS'\\x'\na.",
        b"(lp1\nS'\\sizes'\na.",
        b"(lp1\nS'\\777'\na.",
        b"(lp1\nS'\\'\na.",
        b"(lp1\nFone\na.",
        b"ssbench results 2\n",
        b"ssbench results 1\n",
        b"ssbench results x\n",
    ],
)
def test_what_is_no_stat_file_is_said_so_in_one_line(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(data)
    with pytest.raises(StatFileError) as caught:
        summarize(open_results(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [PNG, gzip.compress(PNG * 1000, mtime=0), b"\x85", b"\xde\0\1", b"\xdf\xff\xff\xff\xff", b"\xdd"]
)
def test_what_begins_like_no_stat_file_is_called_that(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    with pytest.raises(StatFileError, match="not a stat file of ssbench"):
        open_results(path)


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    for module in ("os", "posix", "nt", "subprocess"):
        path = tmp_path / "evil"
        path.write_bytes(f"(lp1\nc{module}\nsystem\n(S'touch {witness}'\ntRa(lp2\na.".encode())
        with pytest.raises(StatFileError, match=f"names {module}.system"):
            open_results(path)
    assert not witness.exists()


def test_no_control_character_of_a_file_gets_into_a_message(tmp_path: Path) -> None:
    path = tmp_path / "evil"
    path.write_bytes(b"(lp1\ncos\x1b[2J\r\nsystem\np2\n(S'true'\ntR.")
    with pytest.raises(StatFileError) as caught:
        open_results(path)
    assert str(caught.value).isprintable()


def test_a_folder_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StatFileError, match="not a file"):
        open_results(tmp_path)
    with pytest.raises(StatFileError, match="No such file"):
        open_results(tmp_path / "none")
    with pytest.raises(StatFileError, match="cannot be read"):
        open_results(tmp_path / "nul\0")


def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", 1) as out:
        out.write(BOMB + b"\x91\xdf\x00\x0f\x42\x40")
        nils = b"\x01" + b"\xdd\x00\x0f\x42\x40" + b"\xc0" * 1_000_000
        for _ in range(100):
            out.write(nils)
    tracemalloc.start()
    try:
        with pytest.raises(StatFileError, match="without end"):
            rows(path)
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()


def test_damage_in_the_middle_leaves_what_stands_before_it(tmp_path: Path) -> None:
    results = [success(completed=1e9 + i) for i in range(3000)]
    for data in (msgpack_file([[result] for result in results]), pickle_file(results)):
        path = tmp_path / "damaged"
        packed = bytearray(gzip.compress(data))
        packed[len(packed) * 3 // 4] ^= 0x55
        path.write_bytes(packed)
        results_, count = rows(path)
        assert count > 1500
        assert f"{count:,} results before that" in results_.warnings[0]


def test_zeros_between_and_behind_members_are_padding(tmp_path: Path) -> None:
    members = msgpack_file([]), msgpack_file([[success()]])[len(msgpack_file([])) :]
    path = tmp_path / "padded"
    path.write_bytes(gzip.compress(members[0]) + bytes(9) + gzip.compress(members[1]) + bytes(70_000))
    results, count = rows(path)
    assert count == 1
    assert results.warnings == []
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"what is no gzip member")
    results, count = rows(path)
    assert count == 1
    where = re.search(r"damaged at or before byte ([\d,]+) of", results.warnings[0])
    assert where
    assert size <= int(where[1].replace(",", "")) <= size + 10


def test_damage_that_shows_only_in_one_piece_of_input(tmp_path: Path) -> None:
    # The checksum of this header is wrong, which isal finds only when it is given the header whole.
    header = b"\x1f\x8b\x08\xb3\x01;\x01\x00k\x00\xff\xff\xff\xfe\x00\x01\xea\xef\xaa"
    path = tmp_path / "damaged"
    path.write_bytes(gzip.compress(msgpack_file([[success()]])) + header)
    results, count = rows(path)
    assert count == 1
    assert "the compressed data are damaged" in results.warnings[0]


def assert_read_or_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "fuzzed"
    path.write_bytes(data)
    if not opened(path):
        return
    statistics = summarize(open_results(path))
    assert run_text.make_sections_report(statistics, ReportOptions(99.9)).count("\n") >= 10
    assert csv.make_run_csv(statistics, ReportOptions(100)).count("\n") == 2
    assert "".join(json.make_run_json(statistics, ReportOptions(95))).startswith("{")
    assert csv.make_requests_per_second_csv(statistics, ReportOptions())


WHOLE = {
    "msgpack": msgpack_file([[success(), failure()], [success(0)]]),
    "pickle": pickle_file([success(), failure(), success(0, auth_kwargs={"key": "k"})], Pickler(share=True)),
}


@pytest.mark.parametrize("format_", WHOLE)
@pytest.mark.parametrize("compressed", [False, True])
@given(data=st.data())
def test_bytes_changed_anywhere(
    format_: str, compressed: bool, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = gzip.compress(WHOLE[format_], mtime=0) if compressed else WHOLE[format_]
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(changed) - 1))
        match data.draw(st.sampled_from(["change", "insert", "delete", "cut"])):
            case "change":
                changed[place] = data.draw(st.integers(0, 255))
            case "insert":
                changed[place:place] = data.draw(st.binary(max_size=20))
            case "delete":
                del changed[place : place + data.draw(st.integers(1, 20))]
            case "cut":
                del changed[place:]
        if not changed:
            break
    assert_read_or_refused(bytes(changed), tmp_path_factory.getbasetemp())


# --- files that were made to take time or memory ---


def nested(kind: bytes, levels: int = 40) -> bytes:
    """Return instructions that make a list (l) or tuple (t) which holds the same one twice, and so on."""
    makes = b"(%bp900\n" % kind
    for level in range(levels):
        makes += b"0(g%d\ng%d\n%bp%d\n" % (900 + level, 900 + level, kind, 901 + level)
    return makes


CYCLE = b"(lp900\ng900\na"


def with_entry(entry: bytes, result: dict[str, object] | None = None) -> bytes:
    """Return a pickle with one more entry at the beginning of the scenario's content."""
    whole = pickle_file([result or success()])
    place = whole.index(b"\n", whole.index(b"(d", whole.index(b"S'_scenario_data'"))) + 1
    return whole[:place] + entry + b"s" + whole[place:]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (nested(b"t") + b"I1\n", "a key that is no text"),
        (b"S'x'\n(d" + nested(b"t") + b"I1\ns", "a key that is no text"),
        (b"S'x'\n(" + nested(b"t") + b"I1\nd", "a key that is no text"),
        (b"S'x'\nccollections\nOrderedDict\n((l(l" + nested(b"t") + b"aI1\naatR", "a key that is no text"),
        (b"S'x'\n" + nested(b"t"), "more than 200,000 values"),
        (b"S'x'\n" + nested(b"l"), "more than 200,000 values"),
        (b"S'x'\n" + CYCLE, "nested deeper than 50 levels"),
        (b"S'x'\n(lS'" + b"x" * 500_000 + b"'\np900\na" + b"g900\na" * 9000, "8,388,608 characters"),
    ],
    ids=[
        "key",
        "key in another",
        "key of d",
        "ordered key",
        "tuples",
        "lists",
        "cycle",
        "text again and again",
    ],
)
def test_a_pickle_that_would_expand_without_end_is_refused(entry: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(StatFileError, match=reason):
        read(with_entry(entry), tmp_path)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("secret", [nested(b"l"), nested(b"t"), CYCLE], ids=["lists", "tuples", "cycle"])
def test_secrets_that_cannot_be_searched_leave_nothing_of_the_failure(secret: bytes, tmp_path: Path) -> None:
    whole = pickle_file([failure(exception="no sesame", token="sesame")])
    assert whole.count(b"S'sesame'\n") == 1
    path = tmp_path / "file"
    path.write_bytes(re.sub(rb"S'sesame'\np\d+\n", secret, whole))
    (block,) = open_results(path).blocks()
    assert block.failures[0].detail == "left out, because it may hold any of too many secrets"


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


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (b"\x90" * 300_000, "more entries than a file of its size holds"),
        (b"\xdd\x00\x04\x93\xe0" + b"\xc0" * 300_000, "more entries than a file of its size holds"),
        (b"\x91\xdd\x00\x0f\x42\x40" + b"\x80" * 1_000_000 * 5, "goes on without end|no msgpack"),
    ],
    ids=["empty batches", "nothing", "maps"],
)
def test_a_small_file_cannot_claim_many_entries(
    tail: bytes, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(msgpack_stream, "_FREE_DOCUMENTS", 20_000)
    with pytest.raises(StatFileError, match=reason):
        read(gzip.compress(BOMB + tail), tmp_path)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"N0" * 150_000, "more instructions than a file of its size holds"),
        (b"S'" + b"x" * 5_000_000 + b"'\n", "a line that goes on without end"),
        ((b"S'" + b"x" * 50_000 + b"'\n0") * 100, "an entry that goes on without end"),
    ],
    ids=["instructions", "line", "entry"],
)
def test_a_small_pickle_cannot_hold_much(
    body: bytes, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python2_pickle, "_FREE_INSTRUCTIONS", 20_000)
    with pytest.raises(StatFileError, match=reason):
        read(gzip.compress(b"(lp1\n" + body), tmp_path)


def test_compressed_data_may_expand_as_far_as_gzip_can(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    with gzip.open(path, "wb", 6) as out:
        for _ in range(80):
            out.write(bytes(1_000_000))
    stream = StatFileStream(path)
    assert 1000 * stream.size < 80_000_000
    expanded = 0
    while data := stream.read_some(1_000_000):
        expanded += len(data)
    stream.close()
    assert (expanded, stream.damage) == (80_000_000, None)


def test_what_is_kept_of_names_is_bounded(tmp_path: Path) -> None:
    long = "x" * 20_000
    results = [success(size_str=long, worker_id=long, container=long), failure(exception=long)]
    path = tmp_path / "file"
    path.write_bytes(msgpack_file([results]))
    found = open_results(path)
    (block,) = found.blocks()
    assert len(found.size_classes[-1]) == len(found.worker_names[-1]) == len(block.container[0]) == 1024
    assert len(block.failures[1].detail) == 10_000


def test_size_classes_beyond_any_genuine_number_are_skipped(tmp_path: Path) -> None:
    results = [success(completed=1e9 + place, size_str=f"c{place}") for place in range(2100)]
    path = tmp_path / "file"
    path.write_bytes(msgpack_file([results]))
    found, count = rows(path)
    assert count == len(found.size_classes) - 2 == 1998
    assert found.warnings == ["entries that are no whole result and were skipped: 102"]


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


@settings(max_examples=30)
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


@given(st.binary(max_size=200))
def test_any_bytes_behind_a_beginning(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    for beginning in (b"", b"\x1f\x8b\x08", b"(lp1\n", BOMB, b"ssbench results 1\n"):
        assert_read_or_refused(beginning + data, tmp_path_factory.getbasetemp())
