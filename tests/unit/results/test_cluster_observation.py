"""What was seen of the cluster, written and read."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import result_rows
from any_results import RUN, SUMMARY, numbers, row
from golden_words import GoldenWords

from ssbench.results import current
from ssbench.results.reading import open_results
from ssbench.results.writer import RunResultsWriter


def test_what_was_seen_of_the_cluster_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "run.stat.gz"
    writer = RunResultsWriter(path, RUN)
    writer.add(result_rows.block([row()]))
    writer.end(replace(SUMMARY, cluster=result_rows.CLUSTER))
    results = open_results(path)
    assert numbers(list(results.blocks())) == [0]
    assert results.summary == replace(SUMMARY, cluster=result_rows.CLUSTER)
    assert b'"cluster":null' not in gzip.decompress(path.read_bytes())


def test_what_a_later_version_saw_of_the_cluster_is_left_out(
    tmp_path: Path, golden_words: GoldenWords
) -> None:
    path = tmp_path / "run.stat"
    later = current.encode_record(current.CLUSTER_KIND, b'{"servers": {"of": "another shape"}}')
    closing = current.encode_closing(current.ClosingRecord(0, 0, SUMMARY))
    path.write_bytes(current.FILE_PREAMBLE + current.encode_run(RUN) + later + closing)
    results = open_results(path)
    assert list(results.blocks()) == []
    assert results.summary == SUMMARY
    golden_words(results.warnings)
