"""Today's stat files: what is written is read again, whatever happens in between."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import shutil
import struct
import threading
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import result_rows
from any_results import RUN, SCENARIO, SUMMARY, numbers, read, row, values, write
from full_run import RUN as FULL_RUN
from full_run import write_full_run
from golden_words import GoldenWords
from hypothesis import given, settings
from hypothesis import strategies as st

from ssbench.base import untrusted
from ssbench.base.errors import ExitCode, StatFileError
from ssbench.cli.master import main
from ssbench.comparison.archive import is_sound_entry, make_entry
from ssbench.reports import run_text
from ssbench.reports.writing import ReportOptions, make_run_report
from ssbench.results import current, reading, result_export
from ssbench.results import writer as writer_module
from ssbench.results.block import LOST_CAUSE, Failure, ResultBlock, RowCollector, TextColumn
from ssbench.results.reading import DamageError, open_results
from ssbench.results.result_fields import FIELDS, FieldKind, row_fields
from ssbench.results.run_description import Gap, LoadSample, MasterFacts, StageFacts
from ssbench.results.writer import RunResultsWriter
from ssbench.statistics.summary import summarize

DATA = Path(__file__).parents[2] / "data"


def test_what_is_known_of_a_run_comes_back(tmp_path: Path, golden_words: GoldenWords) -> None:
    path = tmp_path / "new" / "folder" / "run.stat.gz"
    writer = write(path, [row(i) for i in range(3)])
    assert writer.failure is None
    results = open_results(path)
    assert results.run.scenario == SCENARIO
    assert results.run.seed == RUN.seed
    assert results.run.options == {"noop": True, "file": "?", "urls": ["http://a"], "none": None}
    assert results.run.workers == RUN.workers
    (block,) = results.blocks()
    assert results.summary == SUMMARY
    golden_words(results.warnings)
    assert list(block.trans_id) == ["tx0", "tx1", "tx2"]


RESULTS = st.fixed_dictionaries({name: values(field) for name, field in FIELDS.items()})
GIVEN = st.sets(st.sampled_from([name for name, field in FIELDS.items() if not field.in_row]))


def as_block(results: list[dict[str, Any]], given: set[str]) -> ResultBlock:
    """Results as columns, without the columns that are not given and need not be."""
    columns: dict[str, Any] = {}
    for name, field in FIELDS.items():
        column = [result[name] for result in results]
        if field.kind is FieldKind.TEXT:
            columns[name] = column
        elif field.kind is not FieldKind.FAILURES:
            columns[name] = np.array(column, np.int64 if field.kind is FieldKind.NUMBER else np.float64)
        if not field.in_row and name not in given:
            columns.pop(name, None)
    failures = {row: result["failures"] for row, result in enumerate(results) if result["failures"]}
    return ResultBlock(len(results), columns, failures)


@settings(max_examples=20)
@given(parts=st.lists(st.tuples(st.lists(RESULTS, min_size=1, max_size=6), GIVEN), max_size=3))
def test_every_result_comes_back(
    parts: list[tuple[list[dict[str, Any]], set[str]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "roundtrip.stat.gz"
    writer = RunResultsWriter(path, RUN)
    blocks = [as_block(results, given) for results, given in parts]
    for block in blocks:
        writer.add(block)
    writer.end(SUMMARY)
    read_blocks = read(path)[0]
    for name, field in FIELDS.items():
        written = [value for block in blocks for value in getattr(block, name)]
        got = [value for block in read_blocks for value in getattr(block, name)]
        if field.kind is FieldKind.FAILURES:
            written, got = (
                [block.failures.get(place) for block in some for place in range(len(block))]
                for some in (blocks, read_blocks)
            )
        if field.kind in (FieldKind.SECONDS, FieldKind.COMPLETION, FieldKind.MOMENT):
            assert got == pytest.approx(written, abs=1e-6, nan_ok=True), name
        else:
            assert got == written, name
    failed = [flag for block in read_blocks for flag in block.failed.tolist()]
    assert failed == [flag for block in blocks for flag in block.failed.tolist()]


def test_a_file_without_an_end_may_be_of_a_run_under_way(tmp_path: Path, golden_words: GoldenWords) -> None:
    """A report made meanwhile said that the run had been killed, or its disk been full."""
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RUN)
    try:
        _, (warning,) = read(path)
    finally:
        writer.end(SUMMARY)
    golden_words(warning)


def test_many_rows_make_several_blocks(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    count = 2 * current.MAX_BLOCK_ROWS + 100
    writer = RunResultsWriter(path, RUN)
    failures = {count - 1: Failure(LOST_CAUSE, "", {})}
    rows = result_rows.many(range(count), trans_id=[f"tx{i}" for i in range(count)])
    rows.failures.update(failures)
    writer.add(rows)
    writer.end(SUMMARY)
    blocks, _ = read(path)
    assert numbers(blocks) == list(range(count))
    assert blocks[-1].trans_id[len(blocks[-1]) - 1] == f"tx{count - 1}"
    assert [int(block.failed.sum()) for block in blocks] == [0] * (len(blocks) - 1) + [1]


def test_files_that_were_put_together_are_not_taken_for_the_first_of_them(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    first, second = tmp_path / "first.stat.gz", tmp_path / "second.stat.gz"
    for path in (first, second):
        write(path, [row(1), row(2)])
    both = tmp_path / "both.stat.gz"
    both.write_bytes(first.read_bytes() + second.read_bytes())
    blocks, warnings = read(both)
    assert numbers(blocks) == [1, 2]
    golden_words(warnings[0])
    statistics = summarize(open_results(both))
    for name in ("both", "full", "html", "json", "summary_md"):
        assert "another stat file follows" in " ".join(
            make_run_report(name, statistics, ReportOptions()).split()
        ), name
    # The first run was killed, so that it has no end.
    whole = gzip.decompress(first.read_bytes())
    killed = whole[: whole.rindex(current.END_KIND)]
    both.write_bytes(gzip.compress(killed) + second.read_bytes())
    blocks, warnings = read(both)
    assert numbers(blocks) == [1, 2]
    golden_words(warnings[0])
    both.write_bytes(first.read_bytes() + gzip.compress(b"x"))
    golden_words(read(both)[1][0])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of three blocks."""
    path = tmp_path_factory.mktemp("whole") / "run.stat.gz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer_module, "FLUSH_SECONDS", 0.01)
        writer = RunResultsWriter(path, RUN)
        for part in range(3):
            writer.add(result_rows.block([row(100 * part + i) for i in range(100)]))
            while writer._waiting:
                threading.Event().wait(0.01)
        writer.end(SUMMARY)
    assert [len(block) for block in read(path)[0]] == [100, 100, 100]
    return path.read_bytes()


@pytest.mark.parametrize("compressed", [True, False])
def test_a_file_cut_off_anywhere_is_read_up_to_its_last_whole_block(
    whole: bytes, compressed: bool, tmp_path: Path
) -> None:
    data = whole if compressed else gzip.decompress(whole)
    path = tmp_path / "cut"
    counts = []
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        try:
            blocks, warnings = read(path)
        except StatFileError:
            counts.append(-1)
            continue
        count = len(numbers(blocks))
        assert numbers(blocks) == list(range(count))
        assert len(warnings) == 1 or count == 300  # then that of the run itself is there
        counts.append(count)
    assert [count for count in counts if count >= 0] == sorted(count for count in counts if count >= 0)
    assert {-1, 100, 200, 300} <= set(counts) <= {-1, 0, 100, 200, 300}


@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
@pytest.mark.parametrize("compressed", [True, False])
def test_a_flipped_byte_is_noticed_and_what_stands_before_is_read(
    whole: bytes, compressed: bool, place: float, change: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = bytearray(whole if compressed else gzip.decompress(whole))
    data[int(place * len(data))] ^= change
    path = tmp_path_factory.getbasetemp() / "flipped"
    path.write_bytes(data)
    try:
        blocks, warnings = read(path)
    except StatFileError:
        return
    count = len(numbers(blocks))
    assert numbers(blocks) == list(range(count))
    assert count in (100, 200, 300)
    # A few bytes of a gzip header (its time, its system) say nothing: then all is there.
    assert count == 300 or f"{count} results before that" in warnings[0]


@given(
    payload=st.binary(max_size=300),
    kind=st.sampled_from(
        [current.ROWS_KIND, current.RUN_KIND, current.CLUSTER_KIND, current.END_KIND, b"NEW "]
    ),
)
def test_a_record_that_is_whole_but_makes_no_sense(
    payload: bytes, kind: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "nonsense"
    good = current.encode_record(current.ROWS_KIND, current.encode_rows(result_rows.block([row()])))
    for data in (current.encode_record(kind, payload), current.encode_record(kind, good[12:20] + payload)):
        path.write_bytes(current.FILE_PREAMBLE + current.encode_run(RUN) + good + data)
        blocks, warnings = read(path)
        assert numbers(blocks)[:1] == [0]
        assert warnings


@pytest.mark.parametrize(
    "failures", [b"[", b"[[0]]", b'[[-1,"x","",{}]]', b'[[0,"\x95","",{}]]', b"[" * 2000]
)
def test_failures_that_are_none(failures: bytes, tmp_path: Path) -> None:
    path = tmp_path / "nonsense"
    good = current.encode_record(current.ROWS_KIND, current.encode_rows(result_rows.block([row()])))
    bad = current.encode_record(
        current.ROWS_KIND, good[current.RECORD_HEADER.size :] + current._encode_text(13, failures)
    )
    path.write_bytes(current.FILE_PREAMBLE + current.encode_run(RUN) + good + bad)
    blocks, warnings = read(path)
    assert numbers(blocks) == [0]
    assert "1 results before that" in warnings[0]


def test_a_column_cannot_claim_more_than_there_is(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    header = current._ROWS_HEADER.pack(2**32 - 1, 0) + bytes([1, 0])
    for data in (
        current.encode_record(current.ROWS_KIND, header),
        current.RECORD_HEADER.pack(b"ROWS", 2**32 - 1, 0),
    ):
        path.write_bytes(current.FILE_PREAMBLE + current.encode_run(RUN) + data)
        with pytest.raises(StatFileError, match="4,294,967,295"):
            read(path)


def same_again(path: Path, kind: bytes, payload: bytes, times: int) -> None:
    """Write the beginning of a stat file, and a record of that kind again and again."""
    head = current.FILE_PREAMBLE + (current.encode_run(RUN) if kind != current.RUN_KIND else b"")
    with gzip.open(path, "wb") as out:
        out.write(head)
        for _ in range(times):
            out.write(current.encode_record(kind, payload))


def constant_payload(begin: int = 1, **bases: int) -> bytes:
    """Return the payload of a full block whose columns are of width 0: some bytes for 65,536 results."""
    usual = ("operation", "size_class", "worker", "container", "object", "size", "last_byte", "completed")
    payload = struct.pack("<Iq", current.MAX_BLOCK_ROWS, begin)
    for name, base in {**dict.fromkeys(usual, 0), **bases}.items():
        payload += struct.pack("<BBq", FIELDS[name].number, 16, base)
    return payload


def test_a_small_file_may_hold_any_number_of_results(tmp_path: Path) -> None:
    """As of a no-op run, or of a store that always takes as long; compressed again, thousands to a byte."""
    path = tmp_path / "many.stat.gz"
    same_again(path, current.ROWS_KIND, constant_payload(last_byte=1000), 40)
    assert 1_000_000 + 8 * path.stat().st_size < current.MAX_BLOCK_ROWS * 40
    results = open_results(path)
    assert sum(len(each) for each in results.blocks()) == 40 * current.MAX_BLOCK_ROWS
    assert not results.damaged


def test_reading_ends_where_the_memory_of_the_computer_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.stat.gz"
    same_again(path, current.ROWS_KIND, constant_payload(last_byte=1000), 1_000)
    size = int(untrusted._PROCESS_MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(untrusted, "memory_bound", lambda: size + 32 * 1024 * 1024)
    results = open_results(path)
    with pytest.raises(StatFileError, match=r"GB of memory is needed for its results, of which [\d,]+ "):
        summarize(results)
    assert 0 < results.results_read < 100 * current.MAX_BLOCK_ROWS


def test_what_costs_no_memory_is_read_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "many.stat.gz"
    same_again(path, current.ROWS_KIND, constant_payload(last_byte=1000), 60)
    size = int(untrusted._PROCESS_MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(untrusted, "memory_bound", lambda: size + 32 * 1024 * 1024)
    assert sum(map(len, open_results(path).blocks())) == 60 * current.MAX_BLOCK_ROWS


def test_results_end_in_no_more_seconds_than_those_of_a_year(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.setattr(reading, "_MAX_SECONDS", 100_000)
    path = tmp_path / "years.stat.gz"
    with gzip.open(path, "wb") as out:
        out.write(current.FILE_PREAMBLE + current.encode_run(RUN))
        for day in range(3):
            payload = constant_payload(day * 86400 * 10**9, completed=2 * 10**9)  # zigzag: a second each
            out.write(current.encode_record(current.ROWS_KIND, payload))
    results = open_results(path)
    list(results.blocks())
    assert results.damaged
    golden_words(results.warnings[0])


def test_results_that_all_failed_with_the_same_long_text_are_read(tmp_path: Path) -> None:
    """They expand nearly as far as gzip can."""
    writer = RunResultsWriter(tmp_path / "run.stat.gz", RUN)
    count = 800
    failure = Failure("HTTP 503", "x" * 100_000, {})
    rows = RowCollector()
    for _ in range(count):
        rows.rows.append(rows.pack(*row()[: len(row_fields())]))
        rows.trans_ids.append(None)
    taken = rows.take()
    taken.failures = dict.fromkeys(range(count), failure)
    for start in range(0, count, 8192):
        writer.add(taken.part(start, start + 8192))
    writer.end(SUMMARY)
    results = open_results(writer.path)
    assert sum(map(len, results.blocks())) == count
    assert not results.damaged


def test_an_end_that_tells_of_other_results_is_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A block was taken out, whose checksum is gone with it."""
    path = tmp_path / "less.stat.gz"
    path.write_bytes(
        current.FILE_PREAMBLE
        + current.encode_run(RUN)
        + current.encode_record(current.ROWS_KIND, current.encode_rows(result_rows.block([row(), row(1)])))
        + current.encode_closing(current.ClosingRecord(500, 0, replace(SUMMARY, interrupted=False)))
    )
    assert main(["report-scenario", "-s", str(path)]) == ExitCode.FAILED
    words = "its end says 500 results: this is about the 2 results before that"
    assert words in capsys.readouterr().err


def test_a_file_has_no_more_workers_than_any_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden_words: GoldenWords
) -> None:
    monkeypatch.setattr(reading, "_MAX_WORKERS", 100)
    path = tmp_path / "file.stat.gz"
    blocks = [
        result_rows.block([row(number, worker=number * 2**20) for number in range(first, first + 50)])
        for first in (0, 50, 100)
    ]
    with gzip.open(path, "wb") as out:
        out.write(current.FILE_PREAMBLE + current.encode_run(RUN))
        for block in blocks:
            out.write(current.encode_record(current.ROWS_KIND, current.encode_rows(block)))
    results = open_results(path)
    assert sum(len(each) for each in results.blocks()) == 100
    golden_words(results.warnings[0])


@pytest.mark.parametrize("place", ["options", "data"])
@pytest.mark.parametrize("what", ["deep", "many"])
def test_what_is_known_of_a_run_cannot_be_without_end(place: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "file.stat.gz"
    value = "[" * 200 + "]" * 200 if what == "deep" else "[" + "0," * 250_000 + "0]"
    text = current.encode_run(RUN)[current.RECORD_HEADER.size :].decode()
    found = text.replace(f'"{place}":{{', f'"{place}":{{"x":{value},', 1)
    assert found != text
    same_again(path, current.RUN_KIND, found.encode(), 1)
    with pytest.raises(StatFileError, match=r"nested deeper than 50 levels|more than 200,000 values"):
        open_results(path)


#: What a file may hold in the place of any value.
STRANGE = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        2**53,
        2**63,
        2**64,
        10**30,
        -1e308,
        1e308,
        0.5,
        "",
        "\x1b[2J\u202e",
        "=1+1",
        [],
        {},
        [[]],
    ]
)


def changed(value: Any, data: st.DataObject) -> Any:
    """Return JSON in which one value, anywhere, is another one or is gone."""
    if not isinstance(value, (dict, list)) or not value or data.draw(st.integers(0, 5)) == 0:
        return data.draw(STRANGE)
    if isinstance(value, dict):
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.integers(0, 9)) == 0:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: changed(value[key], data)}
    place = data.draw(st.integers(0, len(value) - 1))
    return [*value[:place], changed(value[place], data), *value[place + 1 :]]


@given(data=st.data())
def test_a_file_with_strange_values_is_reported_on_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "strange.stat.gz"
    write(path, [row(number, completed=1.7e9 + number / 10) for number in range(30)])
    content = gzip.decompress(path.read_bytes())
    out, position = content[: len(current.FILE_PREAMBLE)], len(current.FILE_PREAMBLE)
    wanted = data.draw(st.sampled_from([current.RUN_KIND, current.END_KIND, current.ROWS_KIND]))
    while position < len(content):
        kind, size, _ = current.RECORD_HEADER.unpack_from(content, position)
        position += current.RECORD_HEADER.size + size
        payload = bytearray(content[position - size : position])
        if kind == wanted == current.ROWS_KIND:
            payload[data.draw(st.integers(0, size - 1))] = data.draw(st.integers(0, 255))
        elif kind == wanted:
            payload = bytearray(json.dumps(changed(json.loads(payload), data)).encode())
        out += current.encode_record(kind, bytes(payload))
    path.write_bytes(out)
    try:
        statistics = summarize(open_results(path), ("worker", "storage_url", "group"), over_time=True)
    except StatFileError:
        return
    for name in ("summary", "full", "csv", "json", "junit", "summary_md", "requests_per_second"):
        assert make_run_report(name, statistics, ReportOptions(95, verbose=True))
    entry = make_entry(statistics, "strange.stat.gz", 1, 1)
    assert is_sound_entry(entry), entry


#: Numbers that no writer makes, for any column.
_ABSURD = st.sampled_from([-(2**63), -1, 2**31, 2**32, 2**53, 10**18, 2**62, 2**63 - 1])


def absurd(source: bytes, data: st.DataObject) -> bytes:
    """Return a file of the same with one value of the run, of its end or of its results an absurd one."""
    out, position = source[: len(current.FILE_PREAMBLE)], len(current.FILE_PREAMBLE)
    wanted = data.draw(st.sampled_from([current.RUN_KIND, current.END_KIND, current.ROWS_KIND]))
    while position < len(source):
        kind, size, _ = current.RECORD_HEADER.unpack_from(source, position)
        position += current.RECORD_HEADER.size + size
        payload = source[position - size : position]
        if kind == wanted == current.ROWS_KIND:
            # Of columns that are not there the numbers of a default would have to be known.
            there = {each.number for each in current._walk_columns(payload, current.count_rows(payload))}
            field = data.draw(
                st.sampled_from([name for name, each in FIELDS.items() if each.number in there - {13}])
            )
            number, one = data.draw(_ABSURD), data.draw(st.booleans())

            def change(numbers: Any, number: int = number, one: bool = one) -> Any:
                return (
                    np.where(np.arange(len(numbers)) == 1, number, numbers) if one else numbers * 0 + number
                )

            payload = current.change_columns(payload, {field: change})
        elif kind == wanted:
            payload = json.dumps(changed(json.loads(payload), data)).encode()
        out += current.encode_record(kind, payload)
    return gzip.compress(out, 1)


#: What is asked of a file A, beside a whole one B of the same run, in a folder D of both.
_ASKED = (
    "report-scenario A --report full --json O --html O2 --ci O3.xml --force",
    "report-scenario A --csv",
    "merge A B -o O --force",
    "report-scenario A B",
    "compare A B",
    "compare A B --format html",
    "compare A B --format markdown",
    "list --results-dir D",
    "export A",
)


@settings(max_examples=9)
@given(data=st.data())
def test_whatever_a_file_holds_each_command_reports_or_gives_one_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With checksums that are right. A traceback, and a warning of numpy, fail the test."""
    folder = tmp_path_factory.mktemp("absurd")
    shown = {"A": folder / "a.stat.gz", "B": folder / "b.stat.gz", "D": folder}
    for number, name in enumerate(("A", "B")):
        write_full_run(
            shown[name],
            replace(FULL_RUN, run_id=number, options={"part": f"{number + 1}/2"}),
            stages=(StageFacts(1e9, 1e9 + 3, 4),),
            sent_until=1e9 + 2.4,
            gaps=(Gap(2, 1e9 + 1, 0.2),),
            master=MasterFacts(0.2, 0.1, 1.0),
            generator_load=(LoadSample(1e9 + 2, 2.0, 0.1, None, 0.2, 0.3),),
        )
    shown["A"].write_bytes(absurd(gzip.decompress(shown["A"].read_bytes()), data))
    outputs = {name: folder / f"out.{name}" for name in ("O", "O2", "O3.xml")}
    for command in [data.draw(st.sampled_from(_ASKED))]:
        words = [str({**shown, **outputs}.get(word, word)) for word in command.split()]
        with redirect_stdout(_Output()), redirect_stderr(io.StringIO()) as err:
            code = main(words)
        errors = [line for line in err.getvalue().splitlines() if line.startswith("ERROR")]
        if code == ExitCode.USAGE:
            assert len(errors) == 1, (command, errors)
        elif code == ExitCode.OK:  # others say why, such as a rate that was not delivered
            assert not errors, (command, errors)
    shutil.rmtree(folder)


def test_a_seed_that_no_run_has_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.stat.gz"
    write_full_run(path, replace(FULL_RUN, seed=-1))
    with pytest.raises(StatFileError, match="seed"):
        open_results(path)


class _Output(io.TextIOWrapper):
    """A standard output whose content nobody wants."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")


@pytest.mark.parametrize("moment", ["sent_until", "ended"])
def test_a_run_ends_in_no_other_age_of_the_world(moment: str, tmp_path: Path) -> None:
    """Seconds up to then are more than any number that counts them."""
    path = tmp_path / "x.stat.gz"
    write(path, [row(number, completed=1.7e9 + number / 10) for number in range(30)])
    content = gzip.decompress(path.read_bytes())
    position = content.rindex(current.END_KIND)
    end = json.loads(content[position + current.RECORD_HEADER.size :])
    end["summary"][moment] = 1e308
    path.write_bytes(content[:position] + current.encode_record(current.END_KIND, json.dumps(end).encode()))
    results = open_results(path)
    assert make_run_report("summary", summarize(results, (), over_time=True), ReportOptions(95))
    assert results.damaged


@pytest.mark.parametrize(
    ("field", "number"),
    [("size", 10**18), ("connections", 2**62), ("retries", -1), ("status", 2**31), ("entries", 2**62)],
)
def test_a_number_that_no_field_can_have_is_damage(
    field: str, number: int, tmp_path: Path, golden_words: GoldenWords
) -> None:
    payload = current.encode_rows(result_rows.block([row(), row(1)]))
    wrong = (
        current.change_columns(payload, {field: lambda numbers: numbers * 0 + number})
        if field in ("size", "retries", "entries")
        else payload + current._encode_numbers(FIELDS[field].number, np.full(2, number))
    )
    with golden_words.raises(DamageError):
        current.decode_rows(wrong, 2)


def test_a_newer_format_is_refused_by_its_number(tmp_path: Path, golden_words: GoldenWords) -> None:
    path = tmp_path / "newer"
    path.write_bytes(b"ssbench results 12\nwhatever")
    with golden_words.raises(StatFileError):
        open_results(path)


@pytest.mark.parametrize("name", ["known", "noop"])
def test_files_of_version_1_give_this_report(name: str) -> None:
    path = DATA / f"version-1-{name}.stat.gz"
    assert gzip.decompress(path.read_bytes()).startswith(b"ssbench results 1\n")
    assert run_text.make_sections_report(summarize(open_results(path)), ReportOptions()) == path.with_name(
        f"version-1-{name}.txt"
    ).read_text(encoding="utf-8")


def test_files_of_version_1_are_exported_with_what_they_have() -> None:
    out = io.BytesIO()
    result_export.write_csv(open_results(DATA / "version-1-known.stat.gz"), out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue().decode())))
    with (DATA / "version-1-known.csv").open(encoding="utf-8") as known:
        wanted = list(csv.DictReader(known))
    assert [{name: row[name] for name in wanted[0]} for row in rows] == wanted
    assert [row["status"] for row in rows] == [""] * 5
    assert [row["started_at"] for row in rows] == ["1000000000.25", "1000000000.5", "1000000001.25", "", ""]
    assert [row["attempts"] for row in rows] == ["1", "3", "1", "2", "1"]


def test_a_text_column() -> None:
    texts = ["a", None, "", "é🐌", "b"]
    column = TextColumn.of(texts)
    assert len(column) == 5
    assert list(column) == texts
    assert [column[i] for i in range(5)] == texts
    assert column[-1] == "b"
    assert column[1:4] == [None, "", "é🐌"]
    assert TextColumn(b"\xff", np.array([1]))[0] == "\ufffd"
