"""Stat files of several masters: one run of all their results, or a reason why they make none."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_words import GoldenWords
from result_rows import block, row

from ssbench.base.errors import StatFileError, UsageError
from ssbench.cli import master
from ssbench.results import current
from ssbench.results.block import Failure, ResultBlock, make_constant_column
from ssbench.results.merging_masters import MergedResults
from ssbench.results.reading import open_results
from ssbench.results.result_fields import NO_WORKER
from ssbench.results.run_description import (
    Gap,
    LoadSample,
    RunDescription,
    RunSummary,
    StageFacts,
    WorkerFacts,
)
from ssbench.results.writer import RunResultsWriter
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.statistics.summary import summarize

SCENARIO = Scenario("two masters", (SizeClass("tiny", 10, 10, 4, (1, 1, 1, 1)),), 4, run_seconds=10.0)
T = 1e9


def write(path: Path, number: int, *, count: int = 100, **changes: Any) -> Path:
    """The file of one of two masters, whose results end at moments, and take times, of their own."""
    options = {"part": f"{number}/2", "object_tag": f"part{number}of2", "retries": 10}
    summary = {
        "workers": (WorkerFacts(1, "h"), WorkerFacts(2, "h")),
        "counters": {"drawn": float(count)},
        "warnings": ("both", f"of {number}"),
        "gaps": (Gap(2, T + 3, 0.2),),
        "generator_load": (LoadSample(T + 2, 2.0, 0.1 * number, None, 0.2, 0.3 / number),),
        "stages": (StageFacts(T + number / 10, T + 10, None),),
        "sent_until": T + 10.0,
        **changes.pop("summary", {}),
    }
    run = RunDescription(
        changes.pop("scenario", SCENARIO),
        version="1.0",
        seed=number,
        options=options | changes.pop("options", {}),
        host=changes.pop("host", "vm"),
        run_id=number,
        started=T,
        workers=(WorkerFacts(1, "h"),),
        storage_urls=changes.pop("storage_urls", ("http://a/v1/x",)),
    )
    assert not changes
    writer = RunResultsWriter(path, run)
    rng = np.random.default_rng(number)
    for start in range(0, count, 50):
        rows = [
            row(
                operation=place % 4,
                worker=NO_WORKER if place == 3 else 1 + place % 2,
                object=place,
                size=10,
                last_byte=float(rng.exponential(0.1)),
                completed=T + 1 + place * 8 / count,
                status=200,
            )
            for place in range(start, start + 50)
        ]
        ids = [f"tx{number}-{place}" for place in range(start, start + 50)]
        # At once, so that the file has several records.
        writer._write_block(
            block(rows, ids, {7: Failure("HTTP 503", "no", {})}, rare={"storage_url": {9: 0}})
        )
    writer.end(RunSummary(T + 11, **summary))
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [write(tmp_path / f"{number}.stat.gz", number) for number in (1, 2)]


def everything(blocks: list[ResultBlock]) -> Counter[tuple[Any, ...]]:
    """All that is known of each result, but whose it is."""
    found: Counter[tuple[Any, ...]] = Counter()
    for each in blocks:
        for place in range(len(each)):
            latency = float(each.last_byte[place])
            known = (int(each.operation[place]), int(each.object[place]), float(each.completed[place]))
            found[(*known, latency, each.trans_id[place], each.failures.get(place) is not None)] += 1
    return found


def test_all_results_are_there_once_and_percentiles_are_of_all(files: list[Path], tmp_path: Path) -> None:
    merged = tmp_path / "all.stat.gz"
    assert master.main(["merge", *map(str, files), "-o", str(merged)]) == 0
    whole = open_results(merged)
    blocks = list(whole.blocks())
    singles = [each for path in files for each in open_results(path).blocks()]
    assert everything(blocks) == everything(singles)
    assert len(everything(blocks)) == 200
    first = [float(each.completed[0]) for each in blocks]
    assert first == sorted(first)
    latencies = np.sort(np.concatenate([each.last_byte[~each.failed] for each in singles]))
    for statistics in (summarize(open_results(merged)), summarize(MergedResults(files))):
        assert statistics.total.count == len(latencies)
        assert statistics.total.last_byte.percentile(100) == pytest.approx(latencies[-1])
        assert statistics.total.last_byte.percentile(50) == pytest.approx(
            latencies[len(latencies) // 2 - 1], abs=2e-3
        )


def test_what_is_known_of_both_is_put_together(files: list[Path], tmp_path: Path) -> None:
    merged = tmp_path / "all.stat.gz"
    assert master.main(["merge", *map(str, files), "-o", str(merged)]) == 0
    whole = open_results(merged)
    blocks = list(whole.blocks())
    run, summary = whole.run, whole.summary
    assert summary is not None
    assert (run.scenario.user_count, run.scenario.size_classes[0].initial_files) == (8, 8)
    assert run.options["retries"] == 10
    assert "part" not in run.options
    assert run.run_ids == (1, 2)
    assert run.run_id not in {1, 2, None}
    assert summary.counters == {"drawn": 200.0}
    assert summary.warnings == ("both", "vm (part 1/2): of 1", "vm (part 2/2): of 2")
    assert summary.stages == (StageFacts(T + 0.1, T + 10),)
    ids = [worker.worker_id for worker in summary.workers]
    assert ids == [1, 2, 1001, 1002]
    assert [gap.worker_id for gap in summary.gaps] == [2, 1002]
    # The most that any of the masters and their workers used.
    assert summary.generator_load == (LoadSample(T + 2, 2.0, 0.2, None, 0.2, 0.3),)
    seen = {int(each) for one in blocks for each in one.worker}
    assert seen == {*ids, NO_WORKER}
    for one in blocks:
        for place in np.flatnonzero(one.worker != NO_WORKER).tolist():
            assert int(one.master[place]) == (int(one.worker[place]) > 1000)
    names = [run.name_object("tiny", 7, 0, number) for number in (0, 1)]
    assert names == ["tiny-part1of2_000007", "tiny-part2of2_000007"]


def test_a_merged_file_can_be_merged_with_a_third(tmp_path: Path) -> None:
    three = [
        write(tmp_path / f"{number}.stat.gz", number, options={"part": f"{number}/3"}) for number in (1, 2, 3)
    ]
    two, all_ = tmp_path / "two.stat.gz", tmp_path / "all.stat.gz"
    assert master.main(["merge", *map(str, three[:2]), "-o", str(two)]) == 0
    assert "not all parts are there: 3/3 is missing" in MergedResults(three[:2]).warnings
    assert master.main(["merge", str(two), str(three[2]), "-o", str(all_)]) == 0
    whole = open_results(all_)
    blocks = list(whole.blocks())
    assert everything(blocks) == everything([each for path in three for each in open_results(path).blocks()])
    assert {int(each) for one in blocks for each in one.master} == {0, 1, 2}
    assert whole.run.run_ids == (1, 2, 3)
    assert len({worker.worker_id for worker in whole.summary.workers}) == 6


def test_other_columns_are_copied_as_they_stand(files: list[Path]) -> None:
    results = open_results(files[0])
    payload = next(results.payloads())  # type: ignore[attr-defined]
    results.close()
    assert current.change_columns(payload, {}) == payload
    moved = current.change_columns(payload, {"worker": lambda numbers: numbers + 5})
    kept = {
        each.number: payload[each.start : each.end]
        for each in current._walk_columns(payload, current.count_rows(payload))
    }
    for each in current._walk_columns(moved, current.count_rows(moved)):
        assert (moved[each.start : each.end] == kept[each.number]) is (each.number != 3)


def test_storage_urls_are_those_of_all(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"{number}.stat.gz", number, storage_urls=(f"http://{number}/v1/x",))
        for number in (1, 2)
    ]
    several = MergedResults(paths)
    assert several.run.storage_urls == ("http://1/v1/x", "http://2/v1/x")
    for each in several.blocks():
        known = each.storage_url >= 0
        assert (each.storage_url[known] == each.master[known]).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"scenario": replace(SCENARIO, name="other")},
        {"options": {"retries": 3}},
        {"options": {"part": "1/2"}},
        {"options": {"part": "2/3"}},
        {"options": {"part": None}},
        {"summary": {"stages": (StageFacts(T + 60, T + 70),), "sent_until": T + 70}},
        {"host": "other", "options": {"store_clock": [2.0, 2.2]}},
    ],
)
def test_runs_that_do_not_fit_are_refused(
    tmp_path: Path, changes: dict[str, Any], golden_words: GoldenWords
) -> None:
    one = write(tmp_path / "1.stat.gz", 1, options={"store_clock": [0.1, 0.2]})
    other = write(tmp_path / "2.stat.gz", 2, **changes)
    with golden_words.raises(UsageError):
        MergedResults([one, other])
    merged = tmp_path / "all.stat.gz"
    assert master.main(["merge", str(one), str(other), "-o", str(merged)]) == 2
    assert not merged.exists()


def test_what_is_not_known_or_odd_is_a_warning(tmp_path: Path, golden_words: GoldenWords) -> None:
    one = write(tmp_path / "1.stat.gz", 1)
    short = {"stages": (StageFacts(T + 2, T + 10),)}
    other = write(tmp_path / "2.stat.gz", 2, host="other", summary=short)
    text = "\n".join(MergedResults([one, other]).warnings)
    golden_words(text)
    golden_words(text)


def test_files_that_cannot_be_merged(files: list[Path], tmp_path: Path) -> None:
    killed = tmp_path / "killed.stat.gz"
    whole = gzip.decompress(files[1].read_bytes())
    killed.write_bytes(gzip.compress(whole[: whole.rindex(current.END_KIND)]))
    both = tmp_path / "both.stat.gz"
    both.write_bytes(files[0].read_bytes() + files[1].read_bytes())
    old = Path(__file__).parents[2] / "data" / "version-1-known.stat.gz"
    for other, reason in (
        (killed, "its end is missing"),
        (both, "another run follows"),
        (files[0], "are of the same run"),
        (tmp_path / "none", "No such file"),
        (old, "do not make one run"),
    ):
        with pytest.raises((UsageError, StatFileError), match=reason):
            MergedResults([files[0], other])
    with pytest.raises(UsageError, match="two stat files or more"):
        MergedResults(files[:1])


def with_other_operations(path: Path, source: Path, code: int) -> Path:
    """Write a copy whose second block has an operation that nobody knows, with checksums that are right."""
    content = gzip.decompress(source.read_bytes())
    out, position, blocks = content[: len(current.FILE_PREAMBLE)], len(current.FILE_PREAMBLE), 0
    while position < len(content):
        kind, size, _ = current.RECORD_HEADER.unpack_from(content, position)
        payload = content[position + current.RECORD_HEADER.size :][:size]
        position += current.RECORD_HEADER.size + size
        blocks += kind == current.ROWS_KIND
        if kind == current.ROWS_KIND and blocks == 2:
            payload = current.change_columns(
                payload, {"operation": lambda numbers: np.full(len(numbers), code)}
            )
        out += current.encode_record(kind, payload)
    path.write_bytes(gzip.compress(out))
    return path


@pytest.mark.parametrize("code", [99, 64, 255, 2**40])
def test_results_that_no_report_can_show_are_not_merged(
    code: int,
    files: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden_words: GoldenWords,
) -> None:
    """Neither dropped nor copied in silence."""
    other = with_other_operations(tmp_path / "other.stat.gz", files[1], code)
    merged = tmp_path / "all.stat.gz"
    assert master.main(["merge", str(files[0]), str(other), "-o", str(merged)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    golden_words(line)
    assert not merged.exists()
    assert master.main(["report-scenario", str(files[0]), str(other)]) == 2
    assert master.main(["report-scenario", str(other)]) == 1
    assert "this is about the 50 results before that" in capsys.readouterr().err


def test_files_of_many_results_and_few_bytes_are_merged_whole(tmp_path: Path) -> None:
    paths, count = [], 20 * current.MAX_BLOCK_ROWS
    for number in (1, 2):
        path = write(tmp_path / f"{number}.stat.gz", number, count=0)
        with closing(open_results(path)) as before:
            run = before.run
        writer = RunResultsWriter(path, run)
        same = {
            name: make_constant_column(0, current.MAX_BLOCK_ROWS)
            for name in ("operation", "size_class", "worker")
        }
        same["completed"] = make_constant_column(T + 5, current.MAX_BLOCK_ROWS)
        for _ in range(20):
            writer._write_block(ResultBlock(current.MAX_BLOCK_ROWS, same))
        writer.end(RunSummary(T + 11, stages=(StageFacts(T, T + 10, None),), sent_until=T + 10))
        assert count > 1_000_000 + 8 * path.stat().st_size
        paths.append(path)
    with (tmp_path / "all.stat.gz").open("wb") as out:
        MergedResults(paths).copy_to(out)
    for results in (MergedResults(paths), open_results(tmp_path / "all.stat.gz")):
        assert sum(map(len, results.blocks())) == 2 * count
        assert not results.damaged


def test_merge_overwrites_nothing_unasked(
    files: list[Path], capsys: pytest.CaptureFixture[str], golden_words: GoldenWords
) -> None:
    before = files[1].read_bytes()
    assert master.main(["merge", *map(str, files), "-o", str(files[1]), "--force"]) == 2
    golden_words(capsys.readouterr().err)
    assert files[1].read_bytes() == before


def test_merge_writes_no_stat_file_to_a_terminal(
    files: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden_words: GoldenWords,
) -> None:
    ours, terminal = os.openpty()
    with os.fdopen(terminal, "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        assert master.main(["merge", *map(str, files), "-o", "-"]) == 2
    os.close(ours)
    golden_words(capsys.readouterr().err)


def test_a_report_of_several_is_that_of_the_merged_one(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merged = tmp_path / "all.stat.gz"
    assert master.main(["merge", *map(str, files), "-o", str(merged)]) == 0
    capsys.readouterr()
    found = []
    for names in (["-s", *map(str, files)], [*map(str, files)], [str(merged)]):
        assert master.main(["report-scenario", *names, "--report", "full"]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1] == found[2]
    assert "HTTP 503" in found[0]
